//! Entries while they are worked on.

use super::{Entry, Identity, Operation};
use crate::ownership::{Claim, Managers};
use std::collections::BTreeMap;

/// Claims by identity, and when each was last touched.
#[derive(Debug, Clone, Default)]
pub(super) struct State {
    pub(super) managers: Managers<Identity>,
    pub(super) times: BTreeMap<Identity, Option<String>>,
}

impl State {
    pub(super) fn of(entries: Vec<Entry>) -> Self {
        let mut state = Self::default();
        for entry in entries {
            let id = entry.identity();
            state.times.insert(id.clone(), entry.time);
            let applied = entry.operation == Operation::Apply;
            let claim = Claim { fields: entry.fields, api_version: entry.api_version, applied };
            state.managers.insert(id, claim);
        }
        state
    }

    /// The entries in the order of the API server.
    pub(super) fn into_entries(mut self) -> Vec<Entry> {
        let entry = |(id, claim): (Identity, Claim)| Entry {
            time: self.times.remove(&id).flatten(),
            manager: id.manager,
            operation: if claim.applied { Operation::Apply } else { id.operation },
            api_version: claim.api_version,
            fields: claim.fields,
            subresource: id.subresource,
        };
        let mut entries: Vec<_> = self.managers.into_iter().map(entry).collect();
        super::sort(&mut entries);
        entries
    }
}
