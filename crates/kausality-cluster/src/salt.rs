//! What goes into the digests of secrets: the same in all replicas, and for nobody else to know.

use std::{sync::Arc, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use kube::{
    Api, Client,
    api::PostParams,
    core::{ApiResource, DynamicObject},
};
use serde_json::json;
use tokio::time::sleep;

use crate::cluster::Cluster;

/// The Secret of the salt, in the namespace of Kausality. The controller makes it, once; where none runs, the webhook does.
pub const SECRET: &str = "kausality-salt";

/// The field of that Secret.
pub const FIELD: &str = "salt";

/// How soon the Secret is looked for again while it is not there.
const MISSING: Duration = Duration::from_secs(5);

/// How often it is read once it is there, or where that is of no use: whoever deletes it has replicas disagree until then.
const AGAIN: Duration = Duration::from_secs(60);

/// How long the API server may take to answer.
const ANSWER: Duration = Duration::from_secs(10);

/// What is found of the salt of an installation. Without it, each process has one of its own: digests that differ between
/// replicas, and with every restart, are better than no admission, and nobody can guess values by them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Salt {
    /// It is there.
    Known(Vec<u8>),
    /// It is not made yet.
    Missing,
    /// There is none, for this reason.
    Unusable(&'static str),
}

impl Salt {
    /// The salt, or else another; if need be, it is said why.
    #[must_use]
    pub fn or_own(self, namespace: &str, own: Vec<u8>) -> Vec<u8> {
        match self {
            Self::Known(salt) => salt,
            Self::Missing => own,
            Self::Unusable(why) => {
                warn(namespace, why);
                own
            }
        }
    }
}

fn warn(namespace: &str, why: &str) {
    tracing::warn!(
        namespace,
        secret = SECRET,
        why,
        "digests of secrets differ between replicas, and after a restart, for want of a common salt"
    );
}

fn api(client: &Client, namespace: &str) -> Api<DynamicObject> {
    let resource = ApiResource {
        group: String::new(),
        version: "v1".to_owned(),
        api_version: "v1".to_owned(),
        kind: "Secret".to_owned(),
        plural: "secrets".to_owned(),
    };
    Api::namespaced_with(client.clone(), namespace, &resource)
}

impl Cluster {
    /// The salt of an installation in this namespace.
    ///
    /// # Errors
    /// If the API server does not tell.
    pub async fn salt(client: &Client, namespace: &str) -> Result<Salt, kube::Error> {
        let secret = match api(client, namespace).get_opt(SECRET).await {
            Err(kube::Error::Api(status)) if status.code == 403 => {
                return Ok(Salt::Unusable("it may not be read"));
            }
            read => read?,
        };
        let Some(secret) = secret else { return Ok(Salt::Missing) };
        let text = secret.data.get("data").and_then(|data| data.get(FIELD)?.as_str());
        let salt = text.and_then(|text| STANDARD.decode(text).ok()).filter(|salt| !salt.is_empty());
        Ok(salt.map_or(Salt::Unusable("it is empty"), Salt::Known))
    }

    /// The same, where no controller makes it: what is not there is made of these bytes.
    ///
    /// # Errors
    /// If the API server does not tell.
    pub async fn make_salt(client: &Client, namespace: &str, bytes: &[u8]) -> Result<Salt, kube::Error> {
        let found = Self::salt(client, namespace).await?;
        if found != Salt::Missing {
            return Ok(found);
        }
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": SECRET}, "data": {FIELD: STANDARD.encode(bytes)},
        });
        let secret = serde_json::from_value(secret).map_err(kube::Error::SerdeError)?;
        match api(client, namespace).create(&PostParams::default(), &secret).await {
            Ok(_) => Ok(Salt::Known(bytes.to_vec())),
            // Another replica was quicker.
            Err(kube::Error::Api(status)) if status.code == 409 => Self::salt(client, namespace).await,
            Err(kube::Error::Api(status)) if status.code < 500 => Ok(Salt::Unusable("it may not be made")),
            Err(error) => Err(error),
        }
    }

    /// Takes over the salt of an installation as soon as it is there, for ever.
    pub async fn follow_salt(self: Arc<Self>, namespace: String) {
        let mut told = None;
        loop {
            let read = tokio::time::timeout(ANSWER, Self::salt(&self.fresh, &namespace)).await;
            let pause = match read {
                Ok(Ok(Salt::Known(salt))) => {
                    if self.settings().salt != salt {
                        tracing::info!(secret = SECRET, "digests of secrets have another salt");
                        self.set_salt(&salt);
                    }
                    told = None;
                    AGAIN
                }
                Ok(Ok(Salt::Missing)) => MISSING,
                Ok(Ok(Salt::Unusable(why))) => {
                    if told.replace(why) != Some(why) {
                        warn(&namespace, why);
                    }
                    AGAIN
                }
                // It is asked again, and what is known holds on.
                Ok(Err(_)) | Err(_) => AGAIN,
            };
            sleep(pause).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        collections::VecDeque,
        sync::{Mutex, PoisonError},
    };

    use http::{Method, Request, Response};
    use kausality_core::Settings;
    use kube::client::Body;
    use serde_json::Value;

    use super::*;
    use crate::clock::Clock;

    const PATH: &str = "/api/v1/namespaces/kausality-system/secrets";

    /// Answers about the Secret, one after the other, the last again and again. Only creations are sent to the collection.
    fn client(answers: impl IntoIterator<Item = (u16, Value)>) -> Client {
        let answers: Mutex<VecDeque<_>> = Mutex::new(answers.into_iter().collect());
        let service = tower::service_fn(move |request: Request<Body>| {
            let path =
                if request.method() == Method::POST { PATH.to_owned() } else { format!("{PATH}/{SECRET}") };
            let mut answers = answers.lock().unwrap_or_else(PoisonError::into_inner);
            let (code, answer) = match answers.len() {
                _ if request.uri().path() != path => failure(404),
                1 => answers[0].clone(),
                _ => answers.pop_front().unwrap(),
            };
            let answer = Response::builder().status(code).body(Body::from(answer.to_string().into_bytes()));
            async move { Ok::<_, std::convert::Infallible>(answer.unwrap()) }
        });
        Client::new(service, "default")
    }

    fn secret(data: Value) -> (u16, Value) {
        (200, json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": SECRET}, "data": data}))
    }

    fn failure(code: u16) -> (u16, Value) {
        let reason = if code == 404 { "NotFound" } else { "Testing" };
        let status = json!({"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": ""});
        (code, status)
    }

    fn sea() -> (u16, Value) {
        secret(json!({FIELD: STANDARD.encode("sea")}))
    }

    #[tokio::test]
    async fn a_salt_that_is_not_there_or_may_not_be_read_is_none() {
        let known = || Ok(Salt::Known(b"sea".to_vec()));
        let unusable = |why| Ok(Salt::Unusable(why));
        for (answer, expected) in [
            (sea(), known()),
            (secret(json!({FIELD: ""})), unusable("it is empty")),
            (secret(json!({})), unusable("it is empty")),
            (failure(404), Ok(Salt::Missing)),
            (failure(403), unusable("it may not be read")),
            (failure(503), Err(())),
        ] {
            let salt = Cluster::salt(&client([answer.clone()]), "kausality-system").await;
            assert_eq!(salt.map_err(drop), expected, "{answer:?}");
        }
    }

    #[tokio::test]
    async fn where_nobody_makes_a_salt_the_first_replica_does() {
        for (answers, expected) in [
            (vec![sea()], Salt::Known(b"sea".to_vec())),
            (vec![failure(404), (201, sea().1)], Salt::Known(b"own".to_vec())),
            (vec![failure(404), failure(409), sea()], Salt::Known(b"sea".to_vec())),
            (vec![failure(404), failure(403)], Salt::Unusable("it may not be made")),
            (vec![failure(403)], Salt::Unusable("it may not be read")),
        ] {
            let salt = Cluster::make_salt(&client(answers.clone()), "kausality-system", b"own").await;
            assert_eq!(salt.unwrap(), expected, "{answers:?}");
        }
    }

    /// Who starts before the salt is made, or cannot read it yet, must agree with the others soon.
    #[tokio::test(start_paused = true)]
    async fn the_salt_is_taken_over_when_it_is_there() {
        for first in [failure(404), failure(403), failure(503), secret(json!({}))] {
            let client = client([first, sea()]);
            let settings = Settings { salt: b"own".to_vec(), ..Settings::default() };
            let cluster = Cluster::new(client.clone(), client, settings, Clock::default());
            let following = tokio::spawn(cluster.clone().follow_salt("kausality-system".to_owned()));
            sleep(MISSING / 2).await;
            assert_eq!(cluster.settings().salt, b"own");
            sleep(AGAIN).await;
            assert_eq!(cluster.settings().salt, b"sea");
            following.abort();
        }
    }
}
