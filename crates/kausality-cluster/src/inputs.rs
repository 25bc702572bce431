//! Changes of inputs: what people changed beside the parents themselves.
//!
//! Those that were reviewed here are remembered; replicas tell each other of them (`share`), and where kinds are watched they show
//! on objects, by their traces. All are asked only where a change would be drift otherwise.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};

use jiff::Timestamp;
use kausality_api::{identity::Hashes, policy::Input};
use kausality_core::{
    Activity, Decision, Known, KnownParent, Review, Settings, Summary,
    cause::Cause,
    class::Class,
    inputs::{self, Changed, Recent},
    is_bound_to_conflict,
    review::{BadReview, Request},
    settle::Settled,
};

use serde_json::Value;

use crate::{
    cluster::{Cluster, Freshness},
    index::Sight,
};

mod share;

use share::Share;

/// How many changes are remembered.
const MAX_CHANGES: usize = 1024;

/// The changes that were reviewed here.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    /// Those of possible inputs, oldest first.
    inputs: Mutex<VecDeque<Changed>>,
    /// Those of anything, for hints.
    recent: Mutex<Recent>,
    /// Those of inputs, as replicas tell each other.
    share: Share,
}

impl Changes {
    /// Notes what a request changes, if it was allowed.
    pub(crate) fn note(
        &self,
        request: &Request<'_>,
        decision: &Decision,
        settings: &Settings,
        now: Timestamp,
    ) {
        let Some(change) = Changed::of(request, decision, now) else { return };
        if inputs::matters(&settings.policies, &request.resource.group, &request.resource.resource) {
            self.share.tell(&change);
        }
        self.keep(change, request, settings);
    }

    /// Notes what a request changes, where that is all that it is looked at for.
    fn observe(&self, request: &Request<'_>, settings: &Settings, now: Timestamp) {
        let Some(change) = Changed::observed(request, settings, now) else { return };
        self.share.tell(&change);
        self.keep(change, request, settings);
    }

    fn keep(&self, change: Changed, request: &Request<'_>, settings: &Settings) {
        if inputs::is_input(&settings.policies, &request.resource.group, &request.resource.resource) {
            let mut changes = self.inputs.lock().unwrap_or_else(PoisonError::into_inner);
            if changes.len() >= MAX_CHANGES {
                changes.pop_front();
            }
            changes.push_back(change.clone());
        }
        self.recent.lock().unwrap_or_else(PoisonError::into_inner).note(change);
    }

    fn of_inputs(&self) -> Vec<Changed> {
        self.inputs.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}

/// What else there is beside a parent.
#[derive(Debug)]
pub(crate) struct Around {
    /// The changes of inputs.
    changes: Vec<Changed>,
    /// The parent's owner, and the plural name of its kind.
    owner: Option<(Arc<Summary>, Arc<str>)>,
    /// All of the parent, where inputs depend on its fields.
    whole: Option<Arc<Value>>,
}

impl Cluster {
    /// What was seen below an object, here and by other replicas.
    pub(crate) fn activity_below(&self, uid: &str) -> Activity {
        let mut activity = self.below.of(uid);
        activity.last = activity.last.max(self.changes.share.last_step(uid));
        activity
    }

    /// Has other replicas know of a change of a child below a parent that looks done: its quiet time begins anew. What is below
    /// a parent that shows to be busy needs nobody to be told.
    pub(crate) fn tell_of_step(&self, request: &Request<'_>, known: &Known, decision: &Decision) {
        if let (KnownParent::Found { summary, .. }, true, Some(Settled::Restless(_))) =
            (&known.parent, decision.carries_out, &decision.settled)
            && !request.is_dry_run()
            && !is_bound_to_conflict(request)
        {
            self.changes.share.tell_of_step(&summary.uid, known.now);
        }
    }

    /// Looks at a review of an object that controllers act on beside their parents. It is always allowed. With the decision
    /// comes what `describe` says of the request.
    ///
    /// # Errors
    /// If the bytes are no review.
    pub fn observe<T>(
        &self,
        bytes: &[u8],
        describe: impl FnOnce(&Request<'_>) -> T,
    ) -> Result<(T, Decision), BadReview> {
        let review = Review::parse(bytes)?;
        let settings = self.settings();
        self.changes.observe(&review.request, &settings, self.clock.now());
        let class = Class::of(&review.request, &settings);
        Ok((describe(&review.request), Decision::allow(class)))
    }

    /// Has all replicas know of changes of inputs, by way of a ConfigMap in Kausality's namespace, for ever.
    pub async fn share_inputs(self: Arc<Self>, namespace: String) {
        self.changes.share.keep(self.fresh.clone(), &namespace, || self.clock.now()).await;
    }

    /// Finds out what else changed that a parent's controller acts on: as far as it is known here, or `live`, for what is drift
    /// without it.
    pub(crate) async fn look_around(
        &self,
        parent: &KnownParent,
        live: bool,
        settings: &Settings,
    ) -> Option<Around> {
        let KnownParent::Found { summary, resource } = parent else { return None };
        let declared = inputs::declared(&settings.policies, summary.id.group(), resource);
        let (changes, owner) = tokio::join!(
            async {
                if live {
                    // What another replica has just seen.
                    self.changes.share.refresh().await;
                }
                if declared.is_empty() { Vec::new() } else { self.changes_of(&declared).await }
            },
            self.owner_of(summary, live),
        );
        let mut whole = None;
        if live
            && summary.whole.is_none()
            && inputs::depend_on_fields(&declared, summary, &changes)
            && let Ok(kind) = self.kinds.of_kind(&summary.id.api_version, &summary.id.kind).await
            && let Ok(Some(live)) = self.read(&kind, &summary.id.namespace, &summary.id.name, true).await
        {
            whole.clone_from(&live.whole);
        }
        Some(Around { changes, owner, whole })
    }

    /// Adds to what is known what may explain a change, and what came shortly before. Tells whether the decision may be another
    /// with it.
    pub(crate) fn explain(
        &self,
        request: &Request<'_>,
        known: &mut Known,
        decision: &Decision,
        around: &Around,
        settings: &Settings,
    ) -> bool {
        let KnownParent::Found { summary, resource } = &known.parent else { return false };
        let declared = inputs::declared(&settings.policies, summary.id.group(), resource);
        let last = known.below_parent.last.max(self.changes.share.last_step(&summary.uid));
        let is_later = last > known.below_parent.last;
        known.below_parent.last = last;
        let mut parent = Summary::clone(summary);
        parent.whole = parent.whole.take().or_else(|| around.whole.clone());
        let mut controllers: Hashes = known.below_parent.users.clone();
        parent.controllers().iter().for_each(|user| controllers.note(user, &Hashes::default()));
        let input = inputs::last(&declared, &parent, &controllers, around.changes.iter());
        known.input = input.or(known.input.take());
        if let Some((owner, resource)) = &around.owner {
            let below = self.activity_below(&owner.uid);
            let above = inputs::from_above(settings, &parent, (owner, resource), &below, known.now);
            known.input = above.or(known.input.take());
        }
        if decision.cause == Some(Cause::Drift) {
            let recent = self.changes.recent.lock().unwrap_or_else(PoisonError::into_inner);
            known.hints = recent.hints(request, &parent, &controllers, &declared, known.now);
        }
        known.input.is_some() || !known.hints.is_empty() || is_later
    }

    /// The owner of a parent and the plural name of its kind: as it is, if it `must` be known, else as far as it is watched.
    async fn owner_of(&self, parent: &Summary, must: bool) -> Option<(Arc<Summary>, Arc<str>)> {
        let owner = parent.owner.as_ref()?;
        let namespace = owner.namespace.as_deref().unwrap_or(&parent.id.namespace);
        if must {
            return match self.parent(owner, namespace, Freshness::Live).await {
                KnownParent::Found { summary, resource } => Some((summary, resource)),
                _ => None,
            };
        }
        let kind = self.kinds.seen(&owner.api_version, &owner.kind)?;
        let namespace = if kind.namespaced { namespace } else { "" };
        match self.watched(&kind)?.look(namespace, &owner.name, &owner.uid) {
            Sight::Here(summary) => Some((self.pending.over(summary), kind.resource.plural.as_str().into())),
            _ => None,
        }
    }

    /// The changes of inputs that are known.
    async fn changes_of(&self, declared: &[&Input]) -> Vec<Changed> {
        let mut changes = self.changes.of_inputs();
        changes.extend(self.changes.share.all());
        for (group, resource) in named(declared) {
            let Ok(kind) = self.kinds.of_resource(&group, &resource).await else { continue };
            if let Some(index) = self.watched(&kind) {
                changes.extend(index.all().iter().filter_map(|object| Changed::seen(object, &resource)));
            }
        }
        changes
    }
}

/// The groups and resources that inputs name.
fn named(inputs: &[&Input]) -> Vec<(String, String)> {
    let mut named = Vec::new();
    for input in inputs {
        for group in &input.api_groups {
            named.extend(input.resources.iter().map(|resource| (group.clone(), resource.clone())));
        }
    }
    named
}
