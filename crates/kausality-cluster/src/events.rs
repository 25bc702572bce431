//! Events on parents, where `kubectl describe` shows them.
//!
//! An event is named after its drift, so all replicas tell of one drift in one event.

use std::{collections::HashMap, time::Duration};

use k8s_openapi::api::core::v1::ObjectReference;
use kausality_core::Drift;
use kube::{
    Api, Client,
    api::{Patch, PatchParams, PostParams},
    core::{ApiResource, DynamicObject},
};
use serde_json::{Value, json};
use tokio::{sync::mpsc, time::Instant};

use crate::clock::Clock;

/// How many events may wait to be written; more are dropped.
const MAX_WAITING: usize = 256;

/// How long a write may take.
const DEADLINE: Duration = Duration::from_secs(5);

/// An event that comes again is written again after this time at the earliest.
const REPEAT: Duration = Duration::from_secs(30);

/// So many different events of one parent are written in a [`WINDOW`].
const MAX_PER_PARENT: usize = 25;

/// After this time a parent may have as many events again.
const WINDOW: Duration = Duration::from_secs(300);

/// How many parents, and events, are remembered.
const MAX_REMEMBERED: usize = 4096;

/// Where events are handed in.
pub(crate) struct Events(mpsc::Sender<Event>);

/// One event.
struct Event {
    name: String,
    namespace: String,
    parent: String,
    body: Value,
}

impl Events {
    /// Events of the cluster behind `client`.
    pub(crate) fn new(client: Client, clock: Clock) -> Self {
        let (sender, receiver) = mpsc::channel(MAX_WAITING);
        tokio::spawn(write(client, clock, receiver));
        Self(sender)
    }

    /// Tells the author of a policy about it, some time.
    pub(crate) fn notify(&self, notice: &Notice<'_>) {
        if self.0.try_send(Event::about(notice)).is_err() {
            tracing::debug!(policy = notice.name, "too many events: this one is dropped");
        }
    }

    /// Tells the parent of a drift about it, some time.
    pub(crate) fn tell(&self, drift: &Drift, denied: bool) {
        if self.0.try_send(Event::of(drift, denied)).is_err() {
            tracing::debug!(drift = drift.id(), "too many events: this one is dropped");
        }
    }
}

/// Something about a policy that its author should know.
pub(crate) struct Notice<'a> {
    pub kind: &'a str,
    pub namespace: &'a str,
    pub name: &'a str,
    pub uid: &'a str,
    pub reason: &'a str,
    pub note: &'a str,
}

impl Event {
    fn about(notice: &Notice<'_>) -> Self {
        let namespace = if notice.namespace.is_empty() { "default" } else { notice.namespace };
        let policy = event_name(notice.name);
        // A policy that is made anew has events of its own.
        let uid: String = notice.uid.chars().take(8).collect();
        let name = format!("{policy}.{uid}.{}", notice.reason.to_lowercase());
        let body = json!({
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": namespace},
            "type": "Warning",
            "reason": notice.reason,
            "note": within(notice.note.to_owned(), 1000),
            "action": "Compile",
            "reportingController": "kausality.io/webhook",
            "reportingInstance": "kausality-webhook",
            "regarding": ObjectReference {
                api_version: Some(kausality_api::API_VERSION.to_owned()),
                kind: Some(notice.kind.to_owned()),
                name: Some(notice.name.to_owned()),
                namespace: Some(notice.namespace.to_owned()).filter(|namespace| !namespace.is_empty()),
                uid: Some(notice.uid.to_owned()),
                ..ObjectReference::default()
            },
        });
        let parent = format!("{namespace}/{}/{policy}", notice.kind);
        Self { namespace: namespace.to_owned(), parent, name, body }
    }

    fn of(drift: &Drift, denied: bool) -> Self {
        let spec = &drift.report.spec;
        let (reason, done) = match (denied, spec.request.operation.as_str()) {
            (true, "CREATE") => ("DriftDenied", "was kept from creating"),
            (true, "DELETE") => ("DriftDenied", "was kept from deleting"),
            (true, _) => ("DriftDenied", "was kept from changing"),
            (false, "CREATE") => ("DriftDetected", "created"),
            (false, "DELETE") => ("DriftDetected", "deleted"),
            (false, _) => ("DriftDetected", "changed"),
        };
        let changes = drift.diff.limited(5).to_string().replace('\n', "; ");
        let what =
            format!("{}: {} {done} {} {}", drift.id(), spec.request.user, spec.child.kind, spec.child.name);
        let (reason, note) = match &spec.denied_by {
            Some(rule) => ("DeniedByPolicy", format!("{what}, which {rule} denies: {changes}")),
            None => (reason, format!("drift {what}, although nobody changed this object: {changes}")),
        };
        // Events of what has no namespace live in this one.
        let namespace = Some(&spec.parent.namespace).filter(|namespace| !namespace.is_empty());
        let namespace = namespace.map_or("default", String::as_str);
        let parent = event_name(&spec.parent.name);
        let name = format!("{parent}.{}.{}", drift.id(), reason.to_lowercase());
        let parent_reference = ObjectReference {
            api_version: Some(spec.parent.api_version.clone()),
            kind: Some(spec.parent.kind.clone()),
            name: Some(spec.parent.name.clone()),
            namespace: Some(spec.parent.namespace.clone()).filter(|namespace| !namespace.is_empty()),
            uid: spec.parent.uid.clone(),
            ..ObjectReference::default()
        };
        let child_reference = ObjectReference {
            api_version: Some(spec.child.api_version.clone()),
            kind: Some(spec.child.kind.clone()),
            name: Some(spec.child.name.clone()),
            namespace: Some(spec.child.namespace.clone()).filter(|namespace| !namespace.is_empty()),
            uid: spec.child.uid.clone(),
            ..ObjectReference::default()
        };
        let body = json!({
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": namespace},
            "type": "Warning",
            "reason": reason,
            "note": within(note, 1000),
            "action": "Gate",
            "reportingController": "kausality.io/webhook",
            "reportingInstance": "kausality-webhook",
            "regarding": parent_reference,
            "related": child_reference,
        });
        Self { namespace: namespace.to_owned(), parent: format!("{namespace}/{parent}"), name, body }
    }
}

/// As much of a name as the name of an event may hold.
fn event_name(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_lowercase() || c.is_ascii_digit() { c } else { '-' };
    let name: String = name.chars().map(|c| if c == '.' { c } else { plain(c) }).take(200).collect();
    name.trim_matches(['.', '-']).replace("..", "-")
}

/// The API server counts bytes.
fn within(mut text: String, bytes: usize) -> String {
    if text.len() > bytes {
        let end = text.floor_char_boundary(bytes.saturating_sub('…'.len_utf8()));
        text.truncate(end);
        text.push('…');
    }
    text
}

/// Writes what is handed in, for ever.
async fn write(client: Client, clock: Clock, mut events: mpsc::Receiver<Event>) {
    let mut restraint = Restraint::default();
    while let Some(event) = events.recv().await {
        let Some(count) = restraint.admit(Instant::now(), &event.parent, &event.name) else { continue };
        let now = format!("{:.6}", clock.now());
        let written = tokio::time::timeout(DEADLINE, write_one(&client, &event, count, &now)).await;
        match written {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(event = event.name, %error, "event could not be written"),
            Err(_) => tracing::warn!(event = event.name, "event could not be written: no answer"),
        }
    }
}

async fn write_one(client: &Client, event: &Event, count: usize, now: &str) -> Result<(), kube::Error> {
    let resource = ApiResource {
        group: "events.k8s.io".to_owned(),
        version: "v1".to_owned(),
        api_version: "events.k8s.io/v1".to_owned(),
        kind: "Event".to_owned(),
        plural: "events".to_owned(),
    };
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), &event.namespace, &resource);
    let mut body = event.body.clone();
    body["eventTime"] = now.into();
    let body = serde_json::from_value(body).map_err(kube::Error::SerdeError)?;
    match api.create(&PostParams::default(), &body).await {
        Err(kube::Error::Api(status)) if status.code == 409 => {}
        created => return created.map(|_| ()),
    }
    // This replica, or another, has told of it before.
    let series = json!({"series": {"count": count.max(2), "lastObservedTime": now}});
    match api.patch(&event.name, &PatchParams::default(), &Patch::Merge(series)).await {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        patched => patched.map(|_| ()),
    }
}

/// Keeps a controller in a hot loop from filling the cluster with events.
#[derive(Default)]
struct Restraint {
    /// When an event was last written, and how often it has come.
    events: HashMap<String, (Instant, usize)>,
    /// How many events of a parent were written since when.
    parents: HashMap<String, (Instant, usize)>,
}

impl Restraint {
    /// How often an event has come by now, if it may be written.
    fn admit(&mut self, now: Instant, parent: &str, event: &str) -> Option<usize> {
        if let Some((last, count)) = self.events.get_mut(event) {
            *count += 1;
            if now.duration_since(*last) < REPEAT {
                return None;
            }
            *last = now;
            return Some(*count);
        }
        forget(&mut self.parents, now, WINDOW);
        let (since, written) = self.parents.entry(parent.to_owned()).or_insert((now, 0));
        if now.duration_since(*since) >= WINDOW {
            (*since, *written) = (now, 0);
        }
        if *written >= MAX_PER_PARENT {
            return None;
        }
        *written += 1;
        forget(&mut self.events, now, REPEAT);
        self.events.insert(event.to_owned(), (now, 1));
        Some(1)
    }
}

/// Makes place, first by what is over.
fn forget(known: &mut HashMap<String, (Instant, usize)>, now: Instant, after: Duration) {
    if known.len() >= MAX_REMEMBERED {
        known.retain(|_, (since, _)| now.duration_since(*since) < after);
    }
    if known.len() >= MAX_REMEMBERED {
        known.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_that_comes_again_is_counted_and_seldom_written() {
        let (mut restraint, now) = (Restraint::default(), Instant::now());
        assert_eq!(restraint.admit(now, "p", "e"), Some(1));
        assert_eq!(restraint.admit(now, "p", "e"), None);
        assert_eq!(restraint.admit(now + REPEAT / 2, "p", "e"), None);
        assert_eq!(restraint.admit(now + REPEAT, "p", "e"), Some(4));
        assert_eq!(restraint.admit(now + REPEAT, "p", "e"), None);
    }

    #[test]
    fn one_parent_has_so_many_events_and_no_more() {
        let (mut restraint, now) = (Restraint::default(), Instant::now());
        let mut written = |parent: &str, at| {
            (0..1000)
                .filter(|n| restraint.admit(at, parent, &format!("{parent}-{at:?}-{n}")).is_some())
                .count()
        };
        assert_eq!(written("p", now), MAX_PER_PARENT);
        assert_eq!(written("q", now), MAX_PER_PARENT);
        assert_eq!(written("p", now + WINDOW / 2), 0);
        assert_eq!(written("p", now + WINDOW), MAX_PER_PARENT);
    }

    #[test]
    fn what_the_api_server_would_refuse_is_not_written() {
        assert_eq!(event_name("system:node--proxier."), "system-node--proxier");
        assert_eq!(event_name(&"x".repeat(300)).len(), 200);
        assert_eq!(within("短い".to_owned(), 6), "短い");
        let cut = within("短".repeat(1000), 1000);
        assert!(cut.len() <= 1000 && cut.ends_with("短…"), "{}", cut.len());
    }

    #[test]
    fn memory_is_bounded() {
        let (mut restraint, now) = (Restraint::default(), Instant::now());
        for n in 0..3 * MAX_REMEMBERED {
            assert_eq!(restraint.admit(now, &format!("p{n}"), &format!("e{n}")), Some(1));
        }
        assert!(restraint.events.len() <= MAX_REMEMBERED && restraint.parents.len() <= MAX_REMEMBERED);
    }
}
