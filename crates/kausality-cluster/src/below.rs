//! What controllers have lately done below the objects that they reconcile, as far as this replica has seen. It delays the
//! moment from which a parent counts as settled; what matters to other replicas, `inputs::share` tells them.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use kausality_api::identity::UserHash;
use kausality_core::{Activity, Decision, Known, KnownParent, is_bound_to_conflict, review::Request};

/// How many parents are remembered.
const MAX_PARENTS: usize = 10_000;

/// Activity by the uid of the parent.
#[derive(Debug, Default)]
pub(crate) struct Below(Mutex<HashMap<String, Activity>>);

impl Below {
    /// Notes a change of a child that was allowed since its parent's controller carries out the parent's intent by it.
    pub(crate) fn note(&self, request: &Request<'_>, known: &Known, decision: &Decision) {
        let KnownParent::Found { summary, .. } = &known.parent else { return };
        if !decision.carries_out || request.is_dry_run() || is_bound_to_conflict(request) {
            return;
        }
        let now = known.now;
        let user = UserHash::of(&request.user_info.username, &request.user_info.uid);
        let mut parents = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if parents.len() >= MAX_PARENTS && !parents.contains_key(&summary.uid) {
            // The older half, so that not every request looks at all of them.
            let mut times: Vec<_> = parents.values().map(|activity| activity.last).collect();
            let (_, middle, _) = times.select_nth_unstable(MAX_PARENTS / 2);
            let middle = *middle;
            parents.retain(|_, activity| activity.last > middle);
        }
        let activity = parents.entry(summary.uid.clone()).or_default();
        activity.note(user, now);
        activity.act_on(known.input.as_ref());
    }

    /// What was seen below an object.
    pub(crate) fn of(&self, uid: &str) -> Activity {
        let parents = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        parents.get(uid).cloned().unwrap_or_default()
    }
}
