//! What all workers share: when parts were down, and what became of writes.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    process::Stdio,
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use kausality_testbed::{MASTERS, eventually};
use serde_json::Value;
use tokio::process::Command;

/// How long after it is ready again a part may be felt to have been away.
const GRACE: SignedDuration = SignedDuration::from_secs(5);

/// How long something may take that happens by itself.
const PATIENCE: Duration = Duration::from_secs(180);

/// How soon a write is tried again.
const AGAIN: Duration = Duration::from_millis(250);

pub(super) struct World {
    kubeconfig: PathBuf,
    stopped: AtomicBool,
    /// When the API server or its store was down.
    outages: Mutex<Vec<(Timestamp, Timestamp)>>,
    tally: Mutex<BTreeMap<String, u64>>,
    refused: Mutex<Vec<String>>,
}

impl World {
    pub(super) fn new(kubeconfig: PathBuf) -> Self {
        Self {
            kubeconfig,
            stopped: AtomicBool::new(false),
            outages: Mutex::default(),
            tally: Mutex::default(),
            refused: Mutex::default(),
        }
    }

    pub(super) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_over(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Notes that the API server cannot be counted upon until the end that is noted, too.
    pub(super) fn outage_begins(&self) {
        self.outages.lock().unwrap().push((Timestamp::now(), Timestamp::MAX));
    }

    pub(super) fn outage_ends(&self) {
        let until = Timestamp::now() + GRACE;
        self.outages.lock().unwrap().last_mut().unwrap().1 = until;
    }

    /// Whether a part was down at any time between these.
    pub(super) fn was_down(&self, from: Timestamp, until: Timestamp) -> bool {
        self.outages.lock().unwrap().iter().any(|(begin, end)| *begin <= until && from <= *end)
    }

    pub(super) fn note(&self, what: &str) {
        *self.tally.lock().unwrap().entry(what.to_owned()).or_default() += 1;
    }

    pub(super) fn count(&self, what: &str) -> u64 {
        self.tally.lock().unwrap().get(what).copied().unwrap_or_default()
    }

    pub(super) fn account(&self) -> String {
        let tally = self.tally.lock().unwrap();
        tally.iter().map(|(what, count)| format!("{count} {what}")).collect::<Vec<_>>().join(", ")
    }

    pub(super) fn refuse(&self, why: String) {
        self.note("refused");
        self.refused.lock().unwrap().push(format!("{}: {why}", Timestamp::now()));
    }

    pub(super) fn refused(&self) -> Vec<String> {
        self.refused.lock().unwrap().clone()
    }

    /// Writes until it is done, as people and controllers do when a server is away or somebody was quicker. None, if it is
    /// denied; that it was is for the caller to expect: `expected` is what the denial says then.
    pub(super) async fn write<T>(
        &self,
        what: &str,
        expected: Option<(&str, &str)>,
        write: impl AsyncFn() -> Result<T, kube::Error>,
    ) -> Option<T> {
        loop {
            let begun = Timestamp::now();
            let error = match write().await {
                Ok(written) => {
                    self.note("written");
                    return Some(written);
                }
                Err(error) => error,
            };
            let said = error.to_string();
            if let Some((name, words)) = expected
                && said.contains(words)
            {
                self.note(name);
                return None;
            }
            match &error {
                kube::Error::Api(status) if status.code == 409 => self.note("conflicts"),
                _ if self.was_down(begun, Timestamp::now()) => self.note("failed in an outage"),
                _ => {
                    self.refuse(format!("{what}: {said}"));
                    return None;
                }
            }
            tokio::time::sleep(AGAIN).await;
        }
    }

    /// Waits for what happens by itself. That it does not is as bad as a refusal.
    pub(super) async fn wait<T>(
        &self,
        what: &str,
        mut look: impl AsyncFnMut() -> Result<T, String>,
    ) -> Option<T> {
        match eventually(PATIENCE, what, async || look().await).await {
            Ok(found) => Some(found),
            Err(error) => {
                self.refuse(format!("{error:#}"));
                None
            }
        }
    }

    /// Has a person run a command of ours, until it succeeds or there is no need any more.
    pub(super) async fn command(&self, arguments: &[&str], mut needless: impl AsyncFnMut() -> bool) -> bool {
        let mut done = false;
        self.wait(&arguments.join(" "), async || {
            let output = Command::new(env!("CARGO_BIN_EXE_kausality"))
                .args(arguments)
                .args(["--as", "dave", "--as-group", MASTERS])
                .env("KUBECONFIG", &self.kubeconfig)
                .stdin(Stdio::null())
                .output()
                .await
                .map_err(|error| error.to_string())?;
            done = output.status.success();
            if done || needless().await {
                return Ok(());
            }
            Err(String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
        })
        .await;
        done
    }
}

/// Whether a Deployment is rolled out.
pub(super) fn is_rolled_out(deployment: &Value) -> bool {
    let conditions = deployment["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let number = |pointer: &str| deployment.pointer(pointer).and_then(Value::as_i64).unwrap_or_default();
    conditions.iter().any(|condition| condition["reason"] == "NewReplicaSetAvailable")
        && number("/status/observedGeneration") == number("/metadata/generation")
        && number("/status/updatedReplicas") == number("/spec/replicas")
        && number("/status/availableReplicas") == number("/spec/replicas")
        && number("/status/replicas") == number("/spec/replicas")
}
