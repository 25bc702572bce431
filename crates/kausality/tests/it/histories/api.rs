//! Requests to the API server, just as they are.

use http::Request;
use kube::{Client, client::Body};
use serde_json::Value;

use crate::ownership::kinds::Kind;

pub(crate) struct Api {
    pub(crate) client: Client,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Force {
    No,
    Yes,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Run {
    Real,
    Dry,
}

/// The code, and the object or the reason.
pub(crate) type Answer = (u16, Value);

pub(crate) const MERGE: &str = "application/merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

impl Api {
    pub(crate) fn new(client: Client) -> Self {
        Self { client }
    }

    pub(crate) async fn get(&self, kind: Kind, name: &str) -> Option<Value> {
        let (code, object) = self.send("GET", &format!("{}/{name}", kind.path()), "", &Value::Null).await;
        (code == 200).then_some(object)
    }

    pub(crate) async fn apply(
        &self,
        kind: Kind,
        name: &str,
        manager: &str,
        manifest: &Value,
        force: Force,
        run: Run,
    ) -> Answer {
        let path = kind.path();
        let force = force == Force::Yes;
        let run = if run == Run::Dry { "&dryRun=All" } else { "" };
        let path = format!("{path}/{name}?fieldManager={manager}&force={force}{run}&fieldValidation=Strict");
        self.send("PATCH", &path, APPLY, manifest).await
    }

    /// Code 0 stands for no answer.
    pub(crate) async fn send(&self, method: &str, path: &str, content_type: &str, body: &Value) -> Answer {
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", content_type)
            .header("accept", "application/json")
            .body(Body::from(body))
            .unwrap();
        let none = |why: String| (0, Value::String(why));
        match self.client.send(request).await {
            Ok(response) => {
                let code = response.status().as_u16();
                match response.into_body().collect_bytes().await {
                    Ok(bytes) => (code, serde_json::from_slice(&bytes).unwrap_or_default()),
                    Err(error) => none(error.to_string()),
                }
            }
            Err(error) => none(error.to_string()),
        }
    }

    pub(crate) async fn serves(&self, kinds: &[Kind]) -> Result<(), String> {
        for kind in kinds {
            let (code, _) = self.send("GET", &kind.path(), "", &Value::Null).await;
            if code != 200 {
                return Err(format!("{kind:?}: {code}"));
            }
        }
        Ok(())
    }
}
