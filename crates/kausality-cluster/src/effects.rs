//! What decisions write into the cluster.

use std::{sync::Arc, time::Duration};

use futures::StreamExt;
use kausality_api::{
    annotation::{CONTROLLERS, Suffix, TRACE},
    identity::UserHash,
};
use kausality_core::{
    Decision, Drift, Known, Summary, decision::Effect, managers, review::Request, summary::ObjectId,
};
use kube::{
    Client,
    api::{Patch, PatchParams},
    core::DynamicObject,
};
use serde_json::json;
use tokio::time::Instant;

use crate::{
    clock::left_until,
    cluster::{Cluster, Unread, api},
    index::Sight,
    kinds::{Kind, UnknownKind},
    pending::{Annotations, Claim, Evidence, Fact, Proof, Until, Waiting},
};

/// What a status update showed is written once its object has been quiet for so long: a write in between would
/// make the controller's own next write fail.
const QUIET: Duration = Duration::from_secs(2);

/// An object that is never quiet gets what its status updates showed after this time all the same.
const NEVER_QUIET: Duration = Duration::from_secs(15);

/// A status that has not been stored by then after its review never will be: no webhook has more time.
const PROOF: Duration = Duration::from_secs(35);

/// How long a write may take.
const WRITE_DEADLINE: Duration = Duration::from_secs(5);

/// How long a `scale` may take to be stored after it was allowed.
const SCALE_PATIENCE: Duration = Duration::from_secs(3);

/// How soon what a `scale` did is written again where somebody else has written meanwhile.
const AGAIN: Duration = Duration::from_millis(50);

/// How many objects are written to at once.
const AT_ONCE: usize = 8;

/// How often it is looked for.
const TICK: Duration = Duration::from_millis(500);

/// Why something was not written.
#[derive(Debug)]
pub(crate) struct Unwritten {
    pub(crate) reason: String,
    /// Whether it may be otherwise next time.
    pub(crate) may_pass: bool,
    /// Whether somebody else has written meanwhile.
    conflicts: bool,
    /// Whether there is nothing any more to write to.
    gone: bool,
}

impl Unwritten {
    fn unknown(reason: String) -> Self {
        Self { reason, may_pass: true, conflicts: false, gone: false }
    }

    fn late() -> Self {
        Self::unknown("the API server did not answer in time".to_owned())
    }
}

impl From<kube::Error> for Unwritten {
    fn from(error: kube::Error) -> Self {
        let refused =
            matches!(&error, kube::Error::Api(status) if matches!(status.code, 400 | 401 | 403 | 422));
        let is = |code| matches!(&error, kube::Error::Api(status) if status.code == code);
        Self { may_pass: !refused, conflicts: is(409), gone: is(404), reason: error.to_string() }
    }
}

impl Cluster {
    /// Uses up the `once` approval that a decision rests on. An error means: decide again.
    pub(crate) async fn consume(&self, decision: &Decision, until: Instant) -> Result<(), Unwritten> {
        for effect in &decision.effects {
            if let Effect::ConsumeOnce { parent, uid, suffix, resource_version, annotations, .. } = effect {
                let version = Some(resource_version.as_str());
                let written = self.annotate(&self.fresh, parent, uid, *suffix, version, annotations);
                let written = tokio::time::timeout_at(until, written).await;
                written.unwrap_or_else(|_| Err(Unwritten::late()))?;
            }
        }
        Ok(())
    }

    /// Whether a status update may tell of who sent it, where managed fields do not show that: whoever only takes a field away
    /// owns none. Then the review must be of the object as it is stored.
    pub(crate) async fn takes_word(
        &self,
        request: &Request<'_>,
        decision: &Decision,
        until: Instant,
    ) -> bool {
        let tells = |effect: &Effect| match effect {
            Effect::RecordStatus { annotations, .. } => {
                annotations.contains_key(CONTROLLERS) || annotations.contains_key(TRACE)
            }
            _ => false,
        };
        if self.believes_reviews() || !decision.effects.iter().any(tells) {
            return true;
        }
        managers::status_write(request).is_some() || matches!(self.is_seen(request, until).await, Ok(true))
    }

    /// Starts what comes after the answer. Claims of who wrote a status are taken up only if its `word` is taken.
    pub(crate) fn follow(
        self: Arc<Self>,
        request: &Request<'_>,
        known: &Known,
        decision: &Decision,
        word: bool,
    ) {
        for effect in &decision.effects {
            match effect {
                Effect::ConsumeOnce { .. } => {}
                Effect::RecordStatus { object, uid, generation, status, annotations } => {
                    let proof = Some(Proof::Status(status.clone()));
                    let mut annotations = annotations.clone();
                    let claims = claims(request, &mut annotations, word);
                    if annotations.is_empty() && claims.is_empty() {
                        continue;
                    }
                    self.pending.note(object, uid, *generation, &annotations, Until::Quiet, proof);
                    claims.into_iter().for_each(|claim| self.pending.claim(uid, claim));
                }
                Effect::RecordScale { object, uid, generation, annotations } => {
                    let before = known.scaled.as_ref().and_then(|scaled| scaled.as_ref().ok());
                    let proof = before.map(|before| Proof::of_scale(before));
                    // A retry of the same request finds its record under way.
                    if self.pending.note(object, uid, *generation, annotations, Until::Scaled, proof) {
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
            self.record_all(QUIET, NEVER_QUIET).await;
        }
    }

    /// Writes what still waits, quiet or not: nobody will do it later.
    pub async fn flush(&self, deadline: Duration) {
        let all = async {
            self.record_all(Duration::ZERO, Duration::ZERO).await;
            let mut ticks = tokio::time::interval(Duration::from_millis(50));
            while self.pending.is_scaling() {
                ticks.tick().await;
            }
        };
        self.afterwards.end(deadline).await;
        let (all, counts) = (all, tokio::time::timeout(deadline, self.ledger.flush()));
        let (all, _) = tokio::join!(tokio::time::timeout(deadline, all), counts);
        if all.is_err() {
            tracing::warn!("not everything that status updates showed could be recorded before the end");
        }
    }

    async fn record_all(&self, quiet: Duration, at_most: Duration) {
        let ripe = futures::stream::iter(self.pending.ripe(quiet, at_most));
        let record = |(uid, waiting): (String, Arc<Waiting>)| async move {
            if !self.record_one(&uid, &waiting).await {
                self.pending.postpone(&uid);
            }
        };
        ripe.for_each_concurrent(AT_ONCE, record).await;
    }

    /// Writes what waits for one object, unless it shows there already. Tells whether nothing is left to do.
    async fn record_one(&self, uid: &str, waiting: &Waiting) -> bool {
        let Waiting { object, annotations, claims, .. } = waiting;
        let kind = self.kinds.of_kind(&object.api_version, &object.kind).await;
        let kind = match kind {
            Ok(kind) => kind,
            Err(UnknownKind::NotServed(_)) => {
                self.pending.done(uid, Until::Quiet, &waiting.everything(), waiting.since);
                return true;
            }
            Err(UnknownKind::Failed(..)) => return false,
        };
        // Whatever is its own parent's child only is not watched for this alone.
        let seen = self.watched(&kind).map(|index| index.look(&object.namespace, &object.name, uid));
        let mut stored = match seen {
            Some(Sight::Here(stored)) => Some(stored),
            Some(Sight::Departed) => None,
            Some(Sight::Unseen | Sight::Blind) | None => match self.reread(&kind, object, uid).await {
                Ok(stored) => stored,
                Err(_) => return false,
            },
        };
        let proves = |stored: &Arc<Summary>| self.pending.prove(uid, waiting, &**stored);
        let shows = |stored: &Arc<Summary>| waiting.holding(&**stored, true).claims.len() == claims.len();
        let is_there = |stored: &Arc<Summary>| (annotations.is_empty() || proves(stored)) && shows(stored);
        if stored.as_ref().is_some_and(|stored| !is_there(stored)) {
            // The watch may lag behind, or the status never came to be.
            stored = match self.reread(&kind, object, uid).await {
                Ok(stored) => stored,
                Err(_) => return false,
            };
        }
        let Some(stored) = stored else {
            self.pending.done(uid, Until::Quiet, &waiting.everything(), waiting.since);
            return true;
        };
        let proven = proves(&stored);
        let held = waiting.holding(&*stored, proven);
        let current = &held.annotations;
        let kept = current.iter().all(|(key, value)| stored.annotation(key) == value.as_deref());
        // It speaks of the object as it was read.
        let version = Some(stored.resource_version.as_str());
        if !kept && !self.write(uid, object, stored.suffix, version, current).await {
            return false;
        }
        let lacks = !proven && !annotations.is_empty() || held.claims.len() < claims.len();
        let waits = lacks && waiting.since.elapsed() < PROOF;
        let done = if waits { held } else { waiting.everything() };
        self.pending.done(uid, Until::Quiet, &done, waiting.since);
        !waits
    }

    /// The object of a uid as the API server has it.
    async fn reread(
        &self,
        kind: &Kind,
        object: &ObjectId,
        uid: &str,
    ) -> Result<Option<Arc<Summary>>, Unread> {
        let stored = self.read(kind, &object.namespace, &object.name, false).await?;
        Ok(stored.filter(|stored| stored.uid == uid))
    }

    /// Writes what a `scale` did once it has happened: earlier, the write would make it fail. Goes on until nothing is
    /// left to write: more may come meanwhile.
    async fn record_scale(&self, uid: &str) {
        while let Some(waiting) = self.pending.get(uid, Until::Scaled) {
            let Waiting { object, since, .. } = &*waiting;
            let left = left_until(*since + SCALE_PATIENCE);
            let written = match self.scaled_by(uid, &waiting, left).await {
                // As long as there is time, not on top of what has come meanwhile.
                Some(seen) => {
                    let version = left.map(|_| seen.resource_version.as_str());
                    let held = waiting.holding(&*seen, true).annotations;
                    let written = self.write(uid, object, seen.suffix, version, &held).await;
                    if !written && left.is_some() {
                        tokio::time::sleep(AGAIN).await;
                    }
                    written
                }
                None => false,
            };
            // By then it was denied by somebody else, or failed, or somebody has left another trace.
            if written || left.is_none() {
                self.pending.done(uid, Until::Scaled, &waiting.everything(), *since);
            }
        }
    }

    /// An object as it shows that it has been scaled; waits for its watch to tell, while there is time, and else asks.
    async fn scaled_by(&self, uid: &str, waiting: &Waiting, left: Option<Duration>) -> Option<Arc<Summary>> {
        let object = &waiting.object;
        let Ok(kind) = self.kinds.of_kind(&object.api_version, &object.kind).await else {
            tokio::time::sleep(TICK).await;
            return None;
        };
        let index = self.watch(&kind);
        let mut changes = index.changes();
        let shows = |seen: &Arc<Summary>| self.pending.prove(uid, waiting, &**seen);
        match (index.look(&object.namespace, &object.name, uid), left) {
            (Sight::Here(seen), _) if shows(&seen) => Some(seen),
            (_, Some(left)) => {
                changes.next(left).await;
                None
            }
            (_, None) => self.reread(&kind, object, uid).await.ok().flatten().filter(shows),
        }
    }

    async fn write(
        &self,
        uid: &str,
        object: &ObjectId,
        suffix: Suffix,
        version: Option<&str>,
        annotations: &Annotations,
    ) -> bool {
        let writing = self.annotate(&self.client, object, uid, suffix, version, annotations);
        let written = tokio::time::timeout(WRITE_DEADLINE, writing).await;
        match written {
            Ok(Ok(())) => true,
            // Deleted since it was read.
            Ok(Err(Unwritten { gone: true, .. })) => true,
            // Next time.
            Ok(Err(Unwritten { conflicts: true, .. })) => false,
            Ok(Err(Unwritten { reason, .. })) => {
                tracing::warn!(%object, error = reason, "annotations could not be recorded");
                false
            }
            Err(_) => {
                tracing::warn!(%object, "annotations could not be recorded: no answer");
                false
            }
        }
    }

    /// Writes annotations to the object with this uid; at this version only, if one is given.
    async fn annotate(
        &self,
        client: &Client,
        object: &ObjectId,
        uid: &str,
        suffix: Suffix,
        resource_version: Option<&str>,
        annotations: &Annotations,
    ) -> Result<(), Unwritten> {
        let kind = self.kinds.of_kind(&object.api_version, &object.kind).await;
        let kind = kind.map_err(|error| Unwritten::unknown(error.to_string()))?;
        let stored: Annotations =
            annotations.iter().map(|(name, value)| (suffix.key(name), value.clone())).collect();
        let mut metadata = json!({"uid": uid, "annotations": stored});
        if let (Some(version), Some(metadata)) = (resource_version, metadata.as_object_mut()) {
            metadata.insert("resourceVersion".to_owned(), version.into());
        }
        let patch = Patch::Merge(json!({"metadata": metadata}));
        let parameters =
            PatchParams { field_manager: Some("kausality".to_owned()), ..PatchParams::default() };
        let written: DynamicObject =
            api(client, &kind, &object.namespace).patch(&object.name, &parameters, &patch).await?;
        self.lately.stored(uid, &written.metadata.resource_version.unwrap_or_default());
        Ok(())
    }

    /// Enters a drift into the ledger. Whether that succeeds changes nothing in the answer.
    pub(crate) async fn enter(&self, drift: &Drift, decision: &Decision, until: Instant) {
        self.ledger.enter(drift, decision, until).await;
    }

    /// How many drifts were not entered into the ledger, by what was full: `child`, `namespace` or `replica`.
    pub fn not_entered(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        self.ledger.refused.counts()
    }

    fn announce(&self, drift: &Drift, decision: &Decision) {
        if !drift.snoozed {
            self.events.tell(drift, !decision.verdict.is_allowed());
        }
    }
}

/// Takes off what a status update shows of who sent it, if its word is taken.
fn claims(request: &Request<'_>, annotations: &mut Annotations, word: bool) -> Vec<Claim> {
    let mut facts = Vec::new();
    if annotations.remove(CONTROLLERS).is_some() {
        let user = UserHash::of(&request.user_info.username, &request.user_info.uid);
        facts.push(Fact::Controller(user));
    }
    facts.extend(annotations.remove(TRACE).flatten().map(Fact::Trace));
    if facts.is_empty() || !word {
        return Vec::new();
    }
    let shown_by = managers::status_write(request).map_or(Evidence::Status, Evidence::Write);
    facts.into_iter().map(|fact| Claim { fact, shown_by: shown_by.clone() }).collect()
}
