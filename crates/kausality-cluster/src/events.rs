//! Events on parents, where `kubectl describe` shows them.

use k8s_openapi::api::core::v1::ObjectReference;
use kausality_api::text::shorten;
use kausality_core::Drift;
use kube::{
    Client,
    runtime::events::{Event, EventType, Recorder, Reporter},
};

/// Writes events. Repeated ones become one event with a count.
pub(crate) struct Events {
    recorder: Recorder,
}

impl Events {
    pub(crate) fn new(client: Client) -> Self {
        let reporter = Reporter { controller: "kausality.io/webhook".to_owned(), instance: None };
        Self { recorder: Recorder::new(client, reporter) }
    }

    /// Tells the parent of a drift about it.
    pub(crate) async fn publish(&self, drift: &Drift, denied: bool) -> Result<(), kube::Error> {
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
        let note = format!(
            "drift {}: {} {done} {} {}, although nobody changed this object: {changes}",
            drift.id(),
            spec.request.user,
            spec.child.kind,
            spec.child.name,
        );
        let event = Event {
            type_: EventType::Warning,
            reason: reason.to_owned(),
            note: Some(shorten(&note, 900)),
            action: "Gate".to_owned(),
            secondary: Some(ObjectReference {
                api_version: Some(spec.child.api_version.clone()),
                kind: Some(spec.child.kind.clone()),
                name: Some(spec.child.name.clone()),
                namespace: Some(spec.child.namespace.clone()).filter(|namespace| !namespace.is_empty()),
                uid: spec.child.uid.clone(),
                ..ObjectReference::default()
            }),
        };
        let parent = ObjectReference {
            api_version: Some(spec.parent.api_version.clone()),
            kind: Some(spec.parent.kind.clone()),
            name: Some(spec.parent.name.clone()),
            namespace: Some(spec.parent.namespace.clone()).filter(|namespace| !namespace.is_empty()),
            uid: spec.parent.uid.clone(),
            ..ObjectReference::default()
        };
        self.recorder.publish(&event, &parent).await
    }
}
