//! The leader's loop: tells endpoints what the ledger says they have yet to hear.
//!
//! ```text
//!  watch of Drifts ──▶ Ledger ──▶ a Queue for each endpoint ──▶ up to eight flights at once
//!                                                                 │ the Drift and its parent, read live
//!                                                                 │ delivery::next: what is to be told
//!                                                                 │ Sender::send
//!                                                                 ▼
//!                                   status.deliveries, at the version on which it was decided
//! ```
//!
//! What has been told is in the cluster and nowhere else. It is recorded after the endpoint took it over: whoever stops
//! in between, the next leader tells it again, and the id shows that it is the same.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use futures::{StreamExt as _, stream::FuturesUnordered};
use jiff::Timestamp;
use kausality_api::{
    API_VERSION, GROUP,
    drift::{Drift, plural},
};
use kausality_cluster::{Kinds, Which, follow};
use kube::{
    Api, Client,
    api::{Patch, PatchParams},
    core::{ApiResource, DynamicObject},
};
use serde_json::json;
use tokio::time::{Instant, sleep_until, timeout};

use crate::{
    delivery::{Next, Record, Standing, depends_on_snooze, next, record},
    metrics::Metrics,
    sender::Sender,
};

mod ledger;
mod parent;
mod queue;

use ledger::{Key, Ledger};
use parent::{Quiet, quiet};
use queue::{Flight, Landing, Owed, Queue};

/// Under which name deliveries are recorded.
const MANAGER: &str = "kausality-controller";

/// How long the API server may take to answer.
const ANSWER: Duration = Duration::from_secs(10);

/// How often it is looked whether a snooze has been lifted.
const SNOOZE_LOOK: Duration = Duration::from_secs(60);

/// How often faults of the cluster are logged.
const GRUMBLE: Duration = Duration::from_secs(10);

/// How often a record is tried in a row when others write at the same time.
const MAX_CONFLICTS: usize = 10;

/// Delivers reports of the cluster behind `client`, for ever. Dropped, it stops at once, wherever it is: the next one goes
/// on from what is recorded.
pub async fn run(client: Client, senders: &[Sender], metrics: &Metrics) {
    let ledger = Ledger::default();
    let office = Office {
        kinds: Kinds::new(client.clone()),
        client,
        ledger: &ledger,
        senders,
        names: senders.iter().map(Sender::name).collect(),
        metrics,
        snoozes: Mutex::default(),
        grumbled: Mutex::default(),
    };
    let (drifts, clusterdrifts) = (ledger.side(true), ledger.side(false));
    let all = |namespace| Api::all_with(office.client.clone(), &resource(namespace));
    let everything = Which::default();
    // When this is dropped, this replica knows no longer what waits.
    let _reset = Reset(&office);
    tokio::select! {
        () = follow(all("any"), &everything, "drifts", &drifts) => {}
        () = follow(all(""), &everything, "cluster drifts", &clusterdrifts) => {}
        () = office.deliver() => {}
    }
}

/// How entries in a namespace are reached; those without one, if it is empty.
fn resource(namespace: &str) -> ApiResource {
    let kind = if namespace.is_empty() { "ClusterDrift" } else { "Drift" };
    ApiResource {
        group: GROUP.to_owned(),
        version: API_VERSION.rsplit('/').next().unwrap_or_default().to_owned(),
        api_version: API_VERSION.to_owned(),
        kind: kind.to_owned(),
        plural: plural(namespace).to_owned(),
    }
}

/// What all flights share.
struct Office<'a> {
    client: Client,
    kinds: Kinds,
    ledger: &'a Ledger,
    senders: &'a [Sender],
    names: Vec<&'a str>,
    metrics: &'a Metrics,
    /// Until when parents were snoozed when a drift had to wait for it: the parent may be gone when it is over.
    snoozes: Mutex<HashMap<Key, Timestamp>>,
    /// When a fault of the cluster was last logged.
    grumbled: Mutex<Option<Instant>>,
}

struct Reset<'a>(&'a Office<'a>);

impl Drop for Reset<'_> {
    fn drop(&mut self) {
        for name in &self.0.names {
            self.0.metrics.pending(name, 0);
        }
    }
}

/// Why something could not be recorded.
enum Unrecorded {
    /// The Drift is gone, or another by now: there is nothing to record it in.
    Moot,
    /// The API server did not take it.
    Refused(String),
}

impl Office<'_> {
    async fn deliver(&self) {
        let mut queues: Vec<Queue> = self.senders.iter().map(|_| Queue::default()).collect();
        let mut flights = FuturesUnordered::new();
        loop {
            let now = Instant::now();
            for (key, standing) in self.ledger.changes() {
                self.enter(&mut queues, &key, standing.as_ref(), now);
            }
            for ((queue, sender), place) in queues.iter_mut().zip(self.senders).zip(0_usize..) {
                while let Some(flight) = queue.take(now) {
                    flights.push(async move {
                        let landing = self.fly(sender, &flight).await;
                        (place, flight, landing)
                    });
                }
                self.metrics.pending(sender.name(), queue.pending());
            }
            let due = queues.iter().filter_map(Queue::next_due).min();
            tokio::select! {
                () = self.ledger.told.notified() => {}
                Some((place, flight, landing)) = flights.next() => {
                    if let Some(queue) = queues.get_mut(place) {
                        queue.land(flight, landing, Instant::now(), random());
                    }
                }
                () = sleep_until(due.unwrap_or(now)), if due.is_some() => {}
            }
        }
    }

    /// Puts a Drift into the queues of those who are to hear of it.
    fn enter(&self, queues: &mut [Queue], key: &Key, standing: Option<&Standing>, now: Instant) {
        if standing.is_none() {
            self.snoozes().remove(key);
        }
        for (queue, name) in queues.iter_mut().zip(&self.names) {
            let is_done = |standing| next(standing, name, None, Timestamp::now()) == Next::Nothing;
            match standing {
                Some(standing) if !is_done(standing) => queue.want(key, now),
                _ => queue.forget(key),
            }
        }
    }

    /// Does for one Drift and one endpoint whatever is next.
    async fn fly(&self, sender: &Sender, flight: &Flight) -> Landing {
        let drift = match self.read(&flight.key).await {
            Ok(Some(drift)) => drift,
            Ok(None) => return Landing::Idle,
            Err(error) => {
                self.grumble(&flight.key, &error, "the Drift cannot be read");
                return Landing::Stuck;
            }
        };
        if let Some(owed) = &flight.owed {
            if drift.metadata.uid != owed.uid {
                return Landing::Told { more: true };
            }
            return self.settle(&flight.key, drift, sender.name(), owed.record.clone()).await;
        }
        let standing = Standing::from(&drift.status);
        let snooze = if depends_on_snooze(&standing, sender.name()) {
            match quiet(&self.client, &self.kinds, &drift.spec.parent, ANSWER).await {
                Quiet::Known(until) => until,
                Quiet::Gone => self.snoozes().get(&flight.key).copied(),
                Quiet::Unknown(error) => {
                    self.grumble(&flight.key, &error, "whether its parent is snoozed cannot be found out");
                    return Landing::Stuck;
                }
            }
        } else {
            None
        };
        let now = Timestamp::now();
        match next(&standing, sender.name(), snooze, now) {
            Next::Nothing => Landing::Idle,
            Next::Wait(until) => {
                self.snoozes().insert(flight.key.clone(), until);
                let left = Duration::try_from(until.duration_since(now)).unwrap_or_default();
                Landing::Snoozed(Instant::now() + left.min(SNOOZE_LOOK))
            }
            Next::Silence => self.settle(&flight.key, drift, sender.name(), Record::Silent).await,
            Next::Tell(phase) => {
                let sent = sender.send(&drift.report(phase), now).await;
                self.metrics.sent(sender.name(), phase, sent.is_ok());
                match sent {
                    Ok(()) => self.settle(&flight.key, drift, sender.name(), Record::Told(phase)).await,
                    Err(failure) => {
                        let (endpoint, error) = (sender.name(), &failure.text);
                        tracing::warn!(
                            endpoint,
                            drift = flight.key.name,
                            error,
                            "not delivered: trying again"
                        );
                        let complained = flight.may_complain;
                        if complained {
                            let complaint = Record::Failed(failure.text.clone());
                            // Only for people to see: where it cannot be written, it is in the log.
                            _ = self.record(&flight.key, drift, endpoint, &complaint).await;
                        }
                        Landing::Failed { failure, complained }
                    }
                }
            }
        }
    }

    /// Records what has been told.
    async fn settle(&self, key: &Key, drift: Drift, endpoint: &str, what: Record) -> Landing {
        let uid = drift.metadata.uid.clone();
        match self.record(key, drift, endpoint, &what).await {
            Ok(drift) => {
                let standing = Standing::from(&drift.status);
                let more = next(&standing, endpoint, None, Timestamp::now()) != Next::Nothing;
                self.ledger.note(key, standing);
                Landing::Told { more }
            }
            // Something else is to be told by now, or nothing: it is looked at anew.
            Err(Unrecorded::Moot) => Landing::Told { more: true },
            Err(Unrecorded::Refused(error)) => {
                self.grumble(key, &error, "it was delivered, and that cannot be recorded yet");
                Landing::Unrecorded(Owed { uid, record: what })
            }
        }
    }

    /// Writes a record, if what is in the Drift still asks for it.
    async fn record(
        &self,
        key: &Key,
        mut drift: Drift,
        endpoint: &str,
        what: &Record,
    ) -> Result<Drift, Unrecorded> {
        let uid = drift.metadata.uid.clone();
        for _ in 0..MAX_CONFLICTS {
            let standing = Standing::from(&drift.status);
            if drift.metadata.uid != uid || !asks_for(&standing, endpoint, what) {
                return Err(Unrecorded::Moot);
            }
            let now = Timestamp::now();
            let deliveries = record(&standing.deliveries, &self.names, endpoint, what, now);
            let patch = Patch::Merge(json!({
                "metadata": {"resourceVersion": drift.metadata.resource_version},
                "status": {"deliveries": deliveries},
            }));
            let parameters =
                PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
            let api = self.api(key);
            match timeout(ANSWER, api.patch(&key.name, &parameters, &patch)).await {
                Ok(Ok(patched)) => return parse(patched).map_err(Unrecorded::Refused),
                Ok(Err(kube::Error::Api(status))) if status.code == 404 => return Err(Unrecorded::Moot),
                Ok(Err(kube::Error::Api(status))) if status.code == 409 => {}
                Ok(Err(error)) => return Err(Unrecorded::Refused(error.to_string())),
                Err(_) => return Err(Unrecorded::Refused(format!("no answer within {ANSWER:?}"))),
            }
            drift = match self.read(key).await {
                Ok(Some(drift)) => drift,
                Ok(None) => return Err(Unrecorded::Moot),
                Err(error) => return Err(Unrecorded::Refused(error)),
            };
        }
        Err(Unrecorded::Refused("others write it all the time".to_owned()))
    }

    async fn read(&self, key: &Key) -> Result<Option<Drift>, String> {
        match timeout(ANSWER, self.api(key).get_opt(&key.name)).await {
            Ok(Ok(found)) => found.map(parse).transpose(),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err(format!("no answer within {ANSWER:?}")),
        }
    }

    fn api(&self, key: &Key) -> Api<DynamicObject> {
        let (client, resource) = (self.client.clone(), resource(&key.namespace));
        if key.namespace.is_empty() {
            Api::all_with(client, &resource)
        } else {
            Api::namespaced_with(client, &key.namespace, &resource)
        }
    }

    /// Logs what the cluster does not do for us, now and then: what fails for one Drift fails for all.
    fn grumble(&self, key: &Key, error: &str, what: &str) {
        let mut last = self.grumbled.lock().unwrap_or_else(PoisonError::into_inner);
        if last.is_none_or(|last| last.elapsed() >= GRUMBLE) {
            *last = Some(Instant::now());
            tracing::warn!(drift = key.name, namespace = key.namespace, error, "{what}: trying again");
        }
    }

    fn snoozes(&self) -> std::sync::MutexGuard<'_, HashMap<Key, Timestamp>> {
        self.snoozes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a record still fits. A drift that was over and is seen again starts afresh: that its end was told must not
/// be taken for silence about its new beginning.
fn asks_for(standing: &Standing, endpoint: &str, what: &Record) -> bool {
    let asked = next(standing, endpoint, None, Timestamp::now());
    match what {
        Record::Told(phase) => asked == Next::Tell(*phase),
        Record::Silent => standing.resolved.is_some() && depends_on_snooze(standing, endpoint),
        Record::Failed(_) => asked != Next::Nothing,
    }
}

fn parse(object: DynamicObject) -> Result<Drift, String> {
    serde_json::to_value(object).and_then(serde_json::from_value).map_err(|error| error.to_string())
}

/// A number nobody can guess, so that replicas and reports do not all come at once.
fn random() -> u64 {
    let mut bytes = [0; 8];
    match aws_lc_rs::rand::fill(&mut bytes) {
        Ok(()) => u64::from_le_bytes(bytes),
        // Without any, all is only less evenly spread.
        Err(_) => u64::MAX / 2,
    }
}

#[cfg(test)]
mod tests;
