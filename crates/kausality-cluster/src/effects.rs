//! What decisions write into the cluster.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use kausality_api::annotation::SETTLED;
use kausality_core::{Decision, Drift, decision::Effect, summary::ObjectId};
use kube::{
    api::{Patch, PatchParams},
    core::DynamicObject,
};
use serde_json::json;

use crate::{
    cluster::Cluster,
    index::Sight,
    pending::{Annotations, Until, Waiting},
};

/// What a status update showed is written once its object has been quiet for so long: a write in between would
/// make the controller's own next write fail.
const QUIET: Duration = Duration::from_secs(2);

/// How long a `scale` may take to be stored after it was allowed.
const SCALE_PATIENCE: Duration = Duration::from_secs(3);

/// How often it is looked for.
const TICK: Duration = Duration::from_millis(500);

impl Cluster {
    /// Uses up the `once` approval that a decision rests on. An error means: decide again.
    pub(crate) async fn consume(&self, decision: &Decision) -> Result<(), String> {
        for effect in &decision.effects {
            if let Effect::ConsumeOnce { parent, uid, resource_version, annotations, .. } = effect {
                self.annotate(parent, uid, Some(resource_version), annotations).await?;
            }
        }
        Ok(())
    }

    /// Starts what comes after the answer.
    pub(crate) fn follow(self: Arc<Self>, decision: &Decision) {
        for effect in &decision.effects {
            match effect {
                Effect::ConsumeOnce { .. } => {}
                Effect::RecordStatus { object, uid, generation, annotations } => {
                    self.pending.note(object, uid, *generation, annotations, Until::Quiet);
                }
                Effect::RecordScale { object, uid, generation, annotations } => {
                    // A retry of the same request finds its record under way.
                    if self.pending.note(object, uid, *generation, annotations, Until::Scaled) {
                        let (cluster, uid) = (self.clone(), uid.clone());
                        tokio::spawn(async move { cluster.record_scale(&uid).await });
                    }
                }
                Effect::Report(drift) => self.announce(drift, decision),
            }
        }
    }

    /// Writes what status updates showed to the objects that did not keep it, for ever.
    pub async fn record(self: Arc<Self>) {
        let mut ticks = tokio::time::interval(TICK);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            for (uid, waiting) in self.pending.ripe(QUIET) {
                self.record_one(&uid, &waiting).await;
            }
        }
    }

    async fn record_one(&self, uid: &str, Waiting { object, annotations, generation, .. }: &Waiting) {
        let kind = self.kinds.of_kind(&object.api_version, &object.kind).await;
        let Ok(kind) = kind else { return self.pending.done(uid, annotations) };
        let stored = match self.watch(&kind).look(&object.namespace, &object.name, uid) {
            Sight::Here(stored) => Some(stored),
            Sight::Departed => None,
            Sight::Unseen | Sight::Blind => match self.read(&kind, &object.namespace, &object.name).await {
                Ok(stored) => stored.filter(|stored| stored.uid == uid).map(Arc::new),
                // Later.
                Err(_) => return,
            },
        };
        let mut current = annotations.clone();
        let kept = stored.is_none_or(|stored| {
            if stored.generation != *generation {
                current.remove(SETTLED);
            }
            current.iter().all(|(key, value)| stored.annotation(key) == value.as_deref())
        });
        if kept || self.write(uid, object, &current).await {
            self.pending.done(uid, annotations);
        }
    }

    /// Writes what a `scale` did once it has happened: earlier, the write would make it fail.
    async fn record_scale(&self, uid: &str) {
        let deadline = Instant::now() + SCALE_PATIENCE;
        while let Some(Waiting { object, annotations, generation, .. }) = self.pending.get(uid) {
            let kind = self.kinds.of_kind(&object.api_version, &object.kind).await;
            let Ok(kind) = kind else { return self.pending.done(uid, &annotations) };
            let index = self.watch(&kind);
            let left = deadline.checked_duration_since(Instant::now());
            let seen = match index.look(&object.namespace, &object.name, uid) {
                Sight::Here(seen) => Some(seen),
                // The watch may have stalled: ask once.
                _ if left.is_none() => {
                    self.read(&kind, &object.namespace, &object.name).await.ok().flatten().map(Arc::new)
                }
                _ => None,
            };
            if seen.is_some_and(|seen| seen.uid == uid && seen.generation > generation) {
                self.write(uid, &object, &annotations).await;
                return self.pending.done(uid, &annotations);
            }
            // It was denied by somebody else, or failed.
            let Some(left) = left else { return self.pending.done(uid, &annotations) };
            index.changed(left).await;
        }
    }

    async fn write(&self, uid: &str, object: &ObjectId, annotations: &Annotations) -> bool {
        let written = self.annotate(object, uid, None, annotations).await;
        match &written {
            Ok(()) => self.pending.done(uid, annotations),
            Err(error) => tracing::warn!(%object, %error, "annotations could not be recorded"),
        }
        written.is_ok()
    }

    /// Writes annotations to the object with this uid; at this version only, if one is given.
    async fn annotate(
        &self,
        object: &ObjectId,
        uid: &str,
        resource_version: Option<&str>,
        annotations: &Annotations,
    ) -> Result<(), String> {
        let kind =
            self.kinds.of_kind(&object.api_version, &object.kind).await.map_err(|error| error.to_string())?;
        let mut metadata = json!({"uid": uid, "annotations": annotations});
        if let (Some(version), Some(metadata)) = (resource_version, metadata.as_object_mut()) {
            metadata.insert("resourceVersion".to_owned(), version.into());
        }
        let patch = Patch::Merge(json!({"metadata": metadata}));
        let parameters =
            PatchParams { field_manager: Some("kausality".to_owned()), ..PatchParams::default() };
        let written = self.api(&kind, &object.namespace).patch(&object.name, &parameters, &patch).await;
        written.map(|_: DynamicObject| ()).map_err(|error| error.to_string())
    }

    fn announce(self: &Arc<Self>, drift: &Drift, decision: &Decision) {
        if drift.snoozed {
            return;
        }
        let (cluster, drift, verdict) = (self.clone(), drift.clone(), decision.verdict.as_str());
        tokio::spawn(async move {
            if let Err(error) = cluster.events.publish(&drift, verdict == "deny").await {
                tracing::warn!(drift = drift.id(), %error, "event could not be written");
            }
        });
    }
}
