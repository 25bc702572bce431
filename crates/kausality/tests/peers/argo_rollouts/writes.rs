//! What the controller wrote, from the audit log.

use std::{collections::BTreeMap, fmt};

use kausality_testbed::AuditEvent;

use super::controller::USER;

/// Writes by what was done to which resource: `patch rollouts/status`.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Writes(BTreeMap<String, usize>);

impl Writes {
    /// Counts the writes of the controller that the API server took.
    pub(super) fn add(&mut self, events: &[AuditEvent]) {
        for event in events.iter().filter(|event| is_write(event)) {
            let slash = if event.subresource.is_empty() { "" } else { "/" };
            let what = format!("{} {}{slash}{}", event.verb, event.resource, event.subresource);
            *self.0.entry(what).or_default() += 1;
        }
    }

    pub(super) fn total(&self) -> usize {
        self.0.values().sum()
    }
}

impl fmt::Display for Writes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<_> = self.0.iter().map(|(what, count)| format!("{count} {what}")).collect();
        write!(f, "{:4} writes", self.total())?;
        if parts.is_empty() { Ok(()) } else { write!(f, ": {}", parts.join(", ")) }
    }
}

fn is_write(event: &AuditEvent) -> bool {
    event.user == USER
        && ["create", "update", "patch", "delete"].contains(&&*event.verb)
        && (200..300).contains(&event.code)
}
