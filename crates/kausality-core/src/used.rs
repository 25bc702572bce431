//! Approvals for once that were used up a moment ago, as their parent records them.
//!
//! An approval is taken off before the answer goes out, and the change may not come to be: the replica is killed in between,
//! somebody else refuses the change, storage meets a conflict. Who made it then tries again, and any replica may be asked. The
//! record gives the approval back to the same change by the same user, from where it started: once it has happened, it cannot
//! happen from there again. A creation starts from nowhere, and is not given anything back.

use jiff::{SignedDuration, Timestamp};
use kausality_api::{
    annotation::{TRACE, USED},
    approval::Approval,
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use crate::{review::Request, summary::Summary};

/// For how long.
const MEMORY: SignedDuration = SignedDuration::from_secs(30);

/// How many are recorded on one parent. The oldest go first.
const MAX_USED: usize = 32;

/// An approval that was used up.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Use {
    #[serde(flatten)]
    start: Start,
    at: Timestamp,
    approval: Approval,
}

impl Use {
    fn is_recent(&self, now: Timestamp) -> bool {
        now.duration_since(self.at).abs() < MEMORY
    }
}

/// A change, and where it starts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Start {
    /// What is changed into what, and by whom.
    change: String,
    /// The stored version. Storage takes one write from each.
    version: String,
    /// Where the stored version has become another: the generation and the trace. Whoever changes the object, and back, gives it
    /// others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    state: Option<String>,
}

impl Start {
    fn of(request: &Request<'_>) -> Option<Self> {
        let old = request.old_object.as_ref()?;
        let metadata = &old.metadata;
        if metadata.uid.is_empty() || metadata.resource_version.is_empty() {
            return None;
        }
        let from = old.intent.hash().to_string();
        let to = request.object.as_ref().map(|new| new.intent.hash().to_string()).unwrap_or_default();
        let operation = request.operation.as_str();
        // Somebody may label an object meanwhile. Where nothing else changes, labels and owners are what does.
        let sent = request.object.as_ref().map(|new| &new.metadata).filter(|_| from == to);
        let labels = sent.and_then(|sent| sent.labels).map_or("", RawValue::get);
        let owner = sent.and_then(|sent| sent.owner.as_ref()).map_or("", |owner| &owner.uid);
        let change =
            [&*metadata.uid, operation, &request.sub_resource, &from, &to, labels, owner, request.user()];
        let generation = metadata.generation.map(|generation| generation.to_string());
        let trace = metadata.annotations.get(TRACE);
        // What leaves the intent as it is leaves no trace, and may happen again and again at one generation.
        let state = (from != to && (generation.is_some() || trace.is_some()))
            .then(|| digest(&[&generation.unwrap_or_default(), trace.unwrap_or_default()]));
        Some(Self { change: digest(&change), version: metadata.resource_version.to_string(), state })
    }

    fn is_same(&self, other: &Self) -> bool {
        let is_there_yet = self.version == other.version || self.state.is_some() && self.state == other.state;
        self.change == other.change && is_there_yet
    }
}

fn digest(parts: &[&str]) -> String {
    let mut sum = Sha256::new();
    for part in parts {
        sum.update((part.len() as u64).to_be_bytes());
        sum.update(part.as_bytes());
    }
    sum.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// What is recorded. What cannot be understood gives nothing back.
fn read(parent: &Summary) -> Vec<Use> {
    parent.annotation(USED).and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

/// The approval that was used up for this very change a moment ago.
pub(crate) fn given_back(parent: &Summary, request: &Request<'_>, now: Timestamp) -> Option<Approval> {
    let uses = read(parent);
    if uses.is_empty() {
        return None;
    }
    let start = Start::of(request)?;
    let used = uses.into_iter().find(|used| used.is_recent(now) && used.start.is_same(&start))?;
    Some(used.approval)
}

/// The record of a parent, with an approval that is used up for a request, and without those that are over; nothing, if it is
/// empty.
pub(crate) fn record(
    parent: &Summary,
    approval: Option<&Approval>,
    request: &Request<'_>,
    now: Timestamp,
) -> Option<String> {
    let mut uses = read(parent);
    uses.retain(|used| used.is_recent(now));
    if let (Some(approval), Some(start)) = (approval, Start::of(request)) {
        uses.push(Use { start, at: now, approval: approval.clone() });
    }
    uses.drain(..uses.len().saturating_sub(MAX_USED));
    (!uses.is_empty()).then(|| serde_json::to_string(&uses).ok())?
}

#[cfg(test)]
mod tests;
