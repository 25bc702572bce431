//! The first words with an API server: whoever serves others waits for it as long as it takes.

use std::{future::Future, time::Duration};

use anyhow::{Context, Result};
use kausality_cluster::UnknownKind;
use tokio::time::{sleep, timeout};

use crate::webhook::interrupted;

/// What `/readyz` says meanwhile.
pub(crate) const NOT_REACHED: &str = "the API server has not answered yet";

/// The first question.
pub(crate) const WHO: &str =
    "cannot ask the API server who we are: is the cluster reachable, the kubeconfig right?";

/// How long the API server may take to answer.
const ANSWER: Duration = Duration::from_secs(10);

/// How soon it is asked again, the first time and at most.
const PAUSES: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(15));

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Setback {
    /// Nobody answers, or somebody who cannot now.
    #[error("{0}")]
    Passing(String),
    /// This is what the API server says, and it will not say anything else.
    #[error("{0}")]
    Final(String),
}

impl From<kube::Error> for Setback {
    fn from(error: kube::Error) -> Self {
        match &error {
            kube::Error::Api(status) if !(status.code >= 500 || matches!(status.code, 408 | 429)) => {
                Self::Final(status.message.clone())
            }
            // Of the client itself, and so of its configuration.
            kube::Error::Auth(_)
            | kube::Error::InferConfig(_)
            | kube::Error::RustlsTls(_)
            | kube::Error::HttpError(_)
            | kube::Error::BuildRequest(_) => Self::Final(whole(error)),
            _ => Self::Passing(whole(error)),
        }
    }
}

impl From<UnknownKind> for Setback {
    fn from(error: UnknownKind) -> Self {
        Self::Passing(error.to_string())
    }
}

fn whole(error: kube::Error) -> String {
    format!("{:#}", anyhow::Error::new(error))
}

/// Asks until there is an answer; none, if it is told to stop before. `what` says what cannot be done without.
///
/// # Errors
/// If there never will be one.
pub(crate) async fn reach<T, F>(what: &str, question: impl Fn() -> F) -> Result<Option<T>>
where
    F: Future<Output = Result<T, Setback>>,
{
    let answered = async {
        let mut pause = PAUSES.0;
        loop {
            let answer = timeout(ANSWER, question()).await;
            let late = || Setback::Passing(format!("no answer within {} s", ANSWER.as_secs()));
            match answer.unwrap_or_else(|_| Err(late())) {
                Ok(answer) => return Ok(answer),
                Err(error @ Setback::Final(_)) => return Err(error),
                Err(error) => tracing::warn!(%error, ?pause, "{what} Trying again"),
            }
            sleep(pause).await;
            pause = (pause * 2).min(PAUSES.1);
        }
    };
    tokio::select! {
        answer = answered => answer.map(Some).with_context(|| what.to_owned()),
        () = interrupted() => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn status(code: u16) -> Setback {
        let status = kube::core::Status { code, message: "no".to_owned(), ..kube::core::Status::default() };
        kube::Error::Api(Box::new(status)).into()
    }

    /// An API server that comes up some time later is waited for.
    #[tokio::test(start_paused = true)]
    async fn whoever_does_not_answer_yet_is_asked_again() {
        let asked = Cell::new(0);
        let answer = reach("it", async || {
            asked.set(asked.get() + 1);
            match asked.get() {
                1 => Err(Setback::Passing("connection refused".to_owned())),
                2 => std::future::pending().await,
                3 => Err(status(503)),
                _ => Ok("here"),
            }
        });
        assert_eq!(answer.await.unwrap(), Some("here"));
        assert_eq!(asked.get(), 4);
    }

    /// Credentials that are refused will not get better.
    #[tokio::test(start_paused = true)]
    async fn a_refusal_is_final() {
        for code in [400, 401, 403, 404] {
            let asked = Cell::new(0);
            let answer = reach("cannot ask", async || {
                asked.set(asked.get() + 1);
                Err::<(), _>(status(code))
            });
            let error = format!("{:#}", answer.await.unwrap_err());
            assert_eq!((asked.get(), &*error), (1, "cannot ask: no"), "{code}");
        }
        assert!(matches!(status(429), Setback::Passing(_)));
    }
}
