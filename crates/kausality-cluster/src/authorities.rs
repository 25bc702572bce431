//! Who may decide about drifts, as the API server says.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use kausality_api::GROUP;
use kausality_core::{authority::Authority, review::Request};
use kube::{
    Api, Client,
    api::PostParams,
    core::{ApiResource, DynamicObject},
};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};

/// How long an answer holds.
const MEMORY: Duration = Duration::from_secs(10);

/// How many answers are remembered.
const MAX_ANSWERS: usize = 1024;

/// How long the API server may take.
const PATIENCE: Duration = Duration::from_secs(3);

/// The namespace, and the user with all that may matter about them.
type Question = (String, String);

/// Answers of the API server, for a while.
#[derive(Debug, Default)]
pub(crate) struct Authorities(Mutex<BTreeMap<Question, (Instant, bool)>>);

impl Authorities {
    /// Whether whoever sends a request may `approve` drifts in its namespace.
    pub(crate) async fn of(&self, client: &Client, request: &Request<'_>, until: Instant) -> Authority {
        let user = &request.user_info;
        let groups: Vec<&str> = user.groups.iter().flatten().map(|group| &**group).collect();
        let question =
            (request.namespace.to_string(), format!("{} {} {groups:?}", &*user.username, &*user.uid));
        if let Some(may) = self.known(&question) {
            return answer(may);
        }
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "metadata": {},
            "spec": {
                "user": &*user.username, "uid": &*user.uid, "groups": groups,
                "resourceAttributes": {
                    "group": GROUP, "resource": "drifts", "verb": "approve", "namespace": question.0,
                },
            },
        });
        let asked = timeout_at(until.min(Instant::now() + PATIENCE), ask(client, review)).await;
        match asked {
            Ok(Ok(may)) => {
                self.remember(question, may);
                answer(may)
            }
            Ok(Err(error)) => Authority::Unknown(error.to_string()),
            Err(_) => Authority::Unknown("the API server did not answer in time".to_owned()),
        }
    }

    fn known(&self, question: &Question) -> Option<bool> {
        let answers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        answers.get(question).filter(|(at, _)| at.elapsed() < MEMORY).map(|(_, may)| *may)
    }

    fn remember(&self, question: Question, may: bool) {
        let mut answers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if answers.len() >= MAX_ANSWERS {
            answers.retain(|_, (at, _)| at.elapsed() < MEMORY);
        }
        if answers.len() < MAX_ANSWERS {
            answers.insert(question, (Instant::now(), may));
        }
    }
}

fn answer(may: bool) -> Authority {
    if may { Authority::Granted } else { Authority::Refused }
}

async fn ask(client: &Client, review: Value) -> Result<bool, kube::Error> {
    let resource = ApiResource {
        group: "authorization.k8s.io".to_owned(),
        version: "v1".to_owned(),
        api_version: "authorization.k8s.io/v1".to_owned(),
        kind: "SubjectAccessReview".to_owned(),
        plural: "subjectaccessreviews".to_owned(),
    };
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    let review = serde_json::from_value(review).map_err(kube::Error::SerdeError)?;
    let answer = api.create(&PostParams::default(), &review).await?;
    Ok(answer.data.pointer("/status/allowed").and_then(Value::as_bool).unwrap_or_default())
}
