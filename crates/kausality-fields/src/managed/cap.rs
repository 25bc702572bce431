//! The bound on the number of entries.

use super::state::State;
use super::{Identity, Operation};
use crate::ownership::Claim;
use std::collections::BTreeMap;

/// Entries of updates that are kept apart.
const MAX_UPDATERS: usize = 10;

/// Who owns what the oldest of too many updaters owned.
const ANCIENT: &str = "ancient-changes";

/// Merges the oldest updaters, each version for itself, until there are few enough.
pub(super) fn cap(state: &mut State) {
    let mut updaters: Vec<Identity> =
        state.managers.iter().filter(|(_, claim)| !claim.applied).map(|(id, _)| id.clone()).collect();
    let Some(mut excess) = updaters.len().checked_sub(MAX_UPDATERS) else { return };
    updaters.sort_by_cached_key(|id| (state.times.get(id).cloned().flatten(), id.text()));

    let mut first_of_version: BTreeMap<String, Identity> = BTreeMap::new();
    for id in updaters {
        if excess == 0 {
            return;
        }
        let Some(claim) = state.managers.get(&id).cloned() else { continue };
        let version = claim.api_version.clone();
        let Some(first) = first_of_version.get(&version) else {
            // One alone is not merged: it would only lose its name.
            first_of_version.insert(version, id);
            continue;
        };
        let bucket = Identity {
            manager: ANCIENT.to_owned(),
            operation: Operation::Update,
            api_version: Some(version),
            subresource: String::new(),
        };
        let before = match state.managers.get(&bucket) {
            Some(before) => before.fields.clone(),
            None => state.managers.remove(first).map(|claim| claim.fields).unwrap_or_default(),
        };
        let time = state.times.get(&id).cloned().flatten();
        state.managers.insert(bucket.clone(), Claim { fields: claim.fields.union(&before), ..claim });
        state.managers.remove(&id);
        state.times.insert(bucket, time);
        excess -= 1;
    }
}
