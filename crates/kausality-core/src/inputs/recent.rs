//! What people changed lately, whether or not a policy declares it as an input: hints for those who look into a drift. No
//! decision rests on them.

use std::collections::{BTreeMap, VecDeque};

use jiff::{SignedDuration, Timestamp};
use kausality_api::{
    GROUP,
    identity::{Hashes, UserHash},
    policy::{Input, InputOperation},
};

use super::{Changed, Extent, asks, candidates::candidates, reaches};
use crate::{
    review::Request,
    summary::{ObjectId, Summary},
};

/// How long before a drift a change may have been to be worth a hint.
const SHORTLY: SignedDuration = SignedDuration::from_secs(30);
/// How many objects are remembered per namespace, and how many namespaces.
const MAX_OBJECTS: usize = 16;
const MAX_NAMESPACES: usize = 256;
/// How many hints a drift has at most.
const MAX_HINTS: usize = 3;

/// Kinds that are written all the time, and that no controller acts on as people mean it.
const NOISE: [(&str, &str); 5] = [
    ("", "events"),
    ("", "endpoints"),
    ("events.k8s.io", "events"),
    ("coordination.k8s.io", "leases"),
    ("discovery.k8s.io", "endpointslices"),
];

/// A change that came shortly before a drift and that no policy declares as an input of the parent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hint {
    /// What was changed.
    pub object: ObjectId,
    /// What was done to it.
    pub operation: InputOperation,
    /// By whom.
    pub user: String,
    /// When.
    pub at: Timestamp,
}

impl Hint {
    /// The hint in words.
    pub(crate) fn told(&self, now: Timestamp) -> String {
        let done = match self.operation {
            InputOperation::Create => "created",
            InputOperation::Update => "changed",
            InputOperation::Delete => "deleted",
        };
        let earlier = now.duration_since(self.at).as_secs_f64().max(0.0);
        let Self { object, user, .. } = self;
        format!("{object} {done} by {user} {earlier:.1} s earlier (not declared as an input)")
    }
}

/// The last changes that people made in each namespace. Bounded.
#[derive(Debug, Default)]
pub struct Recent {
    /// One change of each object, oldest first. Objects without a namespace are under the empty name.
    namespaces: BTreeMap<String, VecDeque<Changed>>,
}

impl Recent {
    /// Notes a change.
    pub fn note(&mut self, change: Changed) {
        let group = change.object.group();
        // Who scales an object is known by the object's own trace.
        let noise = group == GROUP
            || change.object.kind == "Scale"
            || change.extent == Extent::Annotations
            || NOISE.contains(&(group, change.resource.as_str()));
        if noise || !change.user_name().is_some_and(asks) {
            return;
        }
        let namespace = &change.object.namespace;
        if self.namespaces.len() >= MAX_NAMESPACES && !self.namespaces.contains_key(namespace) {
            let newest = |changes: &VecDeque<Changed>| changes.back().map(|change| change.at);
            let stalest = self.namespaces.iter().min_by_key(|(name, changes)| (newest(changes), *name));
            if let Some(stalest) = stalest.map(|(name, _)| name.clone()) {
                self.namespaces.remove(&stalest);
            }
        }
        let changes = self.namespaces.entry(namespace.clone()).or_default();
        // A hot loop on one object must not push out what somebody else did.
        changes.retain(|known| known.object != change.object);
        if changes.len() >= MAX_OBJECTS {
            changes.pop_front();
        }
        changes.push_back(change);
    }

    /// The changes shortly before a drift of a parent's child, newest first, that none of the parent's inputs accounts for. What
    /// its controllers did themselves is none, nor are changes of the parent and its children.
    #[must_use]
    pub fn hints(
        &self,
        request: &Request<'_>,
        parent: &Summary,
        controllers: &Hashes,
        inputs: &[&Input],
        now: Timestamp,
    ) -> Vec<Hint> {
        let hints = self.suspects(request, parent, controllers, inputs, now).into_iter();
        hints.take(MAX_HINTS).filter_map(Changed::hint).collect()
    }

    /// Every way in which a policy could declare what came shortly before a drift as an input of the parent: one list per
    /// change, the narrowest relation first. What changes how a controller works is left out.
    #[must_use]
    pub fn candidates(
        &self,
        request: &Request<'_>,
        parent: &Summary,
        controllers: &Hashes,
        inputs: &[&Input],
        now: Timestamp,
    ) -> Vec<Vec<Input>> {
        let suspects = self.suspects(request, parent, controllers, inputs, now).into_iter();
        suspects.map(|change| candidates(parent, change)).collect()
    }

    fn suspects(
        &self,
        request: &Request<'_>,
        parent: &Summary,
        controllers: &Hashes,
        inputs: &[&Input],
        now: Timestamp,
    ) -> Vec<&Changed> {
        let actor = UserHash::of(&request.user_info.username, &request.user_info.uid);
        let mut places = vec!["", &*request.namespace, &*parent.id.namespace];
        places.sort_unstable();
        places.dedup();
        let is_hint = |change: &&Changed| {
            let before = now.duration_since(change.at);
            let own = change.user.is_some_and(|user| user == actor || controllers.contains(user));
            let related = change.object.kind == parent.id.kind && change.object.name == parent.id.name
                || change.object.kind == *request.kind.kind && change.object.name == *request.name
                || change.owner.as_deref().is_some_and(|owner| !owner.is_empty() && owner == parent.uid);
            !before.is_negative()
                && before < SHORTLY
                && !own
                && !related
                && !inputs.iter().any(|input| reaches(input, parent, change))
        };
        let changes = places.into_iter().filter_map(|place| self.namespaces.get(place)).flatten();
        let mut suspects: Vec<&Changed> = changes.filter(is_hint).collect();
        suspects.sort_by(|a, b| b.at.cmp(&a.at).then_with(|| a.object.cmp(&b.object)));
        suspects
    }
}

impl Changed {
    fn user_name(&self) -> Option<&str> {
        Some(&*self.trace.as_ref()?.hops().first()?.user)
    }

    fn hint(&self) -> Option<Hint> {
        let user = self.user_name()?.to_owned();
        Some(Hint { object: self.object.clone(), operation: self.operation, user, at: self.at })
    }
}
