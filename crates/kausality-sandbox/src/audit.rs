//! The audit log: every call, and what admission said of it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// One call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditEntry {
    /// Under which the answer names it (header `Audit-Id`).
    pub id: String,
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`.
    pub verb: String,
    /// Who asked.
    pub user: String,
    /// By which program.
    pub user_agent: String,
    /// The group of the resource; empty for the core group.
    pub group: String,
    /// The resource: `deployments`. Empty for what is no resource.
    pub resource: String,
    /// The subresource; empty for the object itself.
    pub subresource: String,
    /// The namespace; empty for none, or all.
    pub namespace: String,
    /// The name; empty for a collection. Of a creation, the name that came of it.
    pub name: String,
    /// The code of the answer.
    pub code: u16,
    /// What webhooks had to say: `<webhook>/<key>`.
    pub annotations: BTreeMap<String, String>,
}

/// The calls, up to a number of them.
#[derive(Debug)]
pub(crate) struct AuditLog {
    entries: VecDeque<Arc<AuditEntry>>,
    /// How many there were before the first.
    dropped: usize,
    limit: usize,
}

impl AuditLog {
    pub(crate) fn new(limit: usize) -> Self {
        Self { entries: VecDeque::new(), dropped: 0, limit }
    }

    pub(crate) fn add(&mut self, entry: AuditEntry) {
        self.entries.push_back(Arc::new(entry));
        while self.entries.len() > self.limit {
            self.entries.pop_front();
            self.dropped += 1;
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.dropped + self.entries.len()
    }

    pub(crate) fn from(&self, start: usize) -> Vec<Arc<AuditEntry>> {
        self.entries.iter().skip(start.saturating_sub(self.dropped)).cloned().collect()
    }
}
