//! What the API server is asked.

use std::time::Duration;

use kube::{
    Client,
    api::{Patch, PatchParams, ValidationDirective},
    core::{Request, Status, params::GetParams},
};
use serde_json::Value;

/// How long one answer may take. Webhooks are asked in between, and each may take 30 s.
const DEADLINE: Duration = Duration::from_secs(60);

/// How often an API server that is busy is asked again.
const PATIENCE: u32 = 5;

/// The API server, as a manager sees it.
pub(crate) struct Server {
    pub(crate) client: Client,
    pub(crate) manager: String,
}

/// Why there is no answer.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The API server says no.
    Status(Box<Status>),
    /// It did not answer, or not in JSON.
    Silent(String),
}

/// Whether what others hold is taken from them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Force {
    No,
    Yes,
}

impl Server {
    /// The object as it is.
    pub(crate) async fn get(&self, url: &str, name: &str) -> Result<Value, Failure> {
        let request = Request::new(url).get(name, &GetParams::default());
        self.ask(request.map_err(|error| Failure::Silent(error.to_string()))?).await
    }

    /// The object as it would be.
    pub(crate) async fn dry_run(
        &self,
        url: &str,
        name: &str,
        manifest: &Value,
        force: Force,
    ) -> Result<Value, Failure> {
        let parameters = PatchParams {
            dry_run: true,
            force: force == Force::Yes,
            field_manager: Some(self.manager.clone()),
            field_validation: Some(ValidationDirective::Strict),
        };
        let request = Request::new(url).patch(name, &parameters, &Patch::Apply(manifest));
        self.ask(request.map_err(|error| Failure::Silent(error.to_string()))?).await
    }

    async fn ask(&self, request: http::Request<Vec<u8>>) -> Result<Value, Failure> {
        let mut patience = PATIENCE;
        loop {
            let answer = tokio::time::timeout(DEADLINE, self.client.request_text(request.clone())).await;
            let error = match answer {
                Ok(Ok(text)) => {
                    return serde_json::from_str(&text).map_err(|_| silent("the answer is no JSON"));
                }
                Ok(Err(error)) => error,
                Err(_) => return Err(silent(&format!("no answer within {} s", DEADLINE.as_secs()))),
            };
            match error {
                kube::Error::Api(status) if status.code == 429 && patience > 0 => {
                    patience -= 1;
                    let after = status.details.as_ref().map_or(1, |details| details.retry_after_seconds);
                    tokio::time::sleep(Duration::from_secs(after.clamp(1, 10).into())).await;
                }
                kube::Error::Api(status) => return Err(Failure::Status(status)),
                other => return Err(silent(&chain(&other))),
            }
        }
    }
}

fn silent(why: &str) -> Failure {
    Failure::Silent(why.to_owned())
}

/// An error with its causes: the outermost says little.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let inner_text = inner.to_string();
        if !text.contains(&inner_text) {
            text = format!("{text}: {inner_text}");
        }
        cause = inner.source();
    }
    text
}
