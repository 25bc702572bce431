//! The ledger: what is entered of a drift, and when that is over.

use jiff::{SignedDuration, Timestamp};
use kausality_api::{
    annotation::TRACE,
    approval::Approval,
    drift::{
        Drift as Entry, DriftDecision, DriftResolution, DriftSpec, DriftState, DriftStatus, DriftStep,
        DriftSummary, FieldChange, MAX_VALUE, ResolutionReason, short_user,
    },
    text::{fit, shorten},
    trace::Trace,
};
use kausality_fields::Leaf;
use serde_json::Value;

use crate::{
    cause::Cause,
    change::{Change, Drift},
    child::Child,
    decision::Decision,
    facts::Settings,
    gate::Resolution,
    review::Review,
    standing::Standing,
    summary::Summary,
};

mod bounded;
mod superseded;

pub use bounded::request;

/// How long a change that a policy denied stays open if nobody tries it again.
const TRIED_AGAIN: SignedDuration = SignedDuration::from_hours(24);
/// Bytes of the name of who decided.
const MAX_USER: usize = 256;
/// Bytes of a change in a table.
const MAX_CHANGE: usize = 100;
/// Bytes of a name in a table.
const MAX_NAME: usize = 80;

/// The entry of a drift that was seen for the first time.
#[must_use]
pub fn entry(drift: &Drift, decision: &Decision, now: Timestamp) -> Entry {
    let report = &drift.report.spec;
    let leaf = |leaf: &Leaf| {
        let text = serde_json::to_string(leaf).unwrap_or_default();
        fit(&text, MAX_VALUE)
    };
    let owners = |place: usize| drift.owners.get(place);
    let change = |(place, change): (usize, &kausality_fields::Change)| FieldChange {
        path: fit(&change.path.to_string(), MAX_VALUE),
        old: change.old.as_ref().map(leaf),
        new: change.new.as_ref().map(leaf),
        old_owner: owners(place).map(|handover| fit(&handover.before.to_string(), MAX_NAME)),
        new_owner: owners(place).map(|handover| fit(&handover.after.to_string(), MAX_NAME)),
    };
    let all = &drift.diff.changes;
    let changes = bounded::changes(all.iter().enumerate().map(change));
    let explanation = explanation(decision);
    let spec = DriftSpec {
        id: report.id.clone(),
        parent: bounded::parent(&report.parent),
        parent_intent: drift.parent_intent.to_string(),
        child: bounded::child(&report.child),
        request: request(&report.request),
        diff: drift.diff.hash(),
        more_changes: all.len().saturating_sub(changes.len()) as u64,
        changes,
        trace: drift.parent_trace.as_ref().and_then(bounded::trace),
        old_object: report.old_object.as_ref().map(lean),
        new_object: Some(lean(&report.new_object)),
        summary: summary(drift),
        denied_by: report.denied_by.as_deref().map(|rule| fit(rule, MAX_VALUE)),
    };
    let spec = bounded::without_large_objects(spec, &explanation);
    let status = DriftStatus {
        state: state(decision),
        count: 1,
        first_seen: now,
        last_seen: now,
        counted_at: now,
        explanation,
        resolution: None,
        decision: None,
        deliveries: Vec::new(),
    };
    Entry::new(spec, status)
}

/// How it came to a decision, as an entry tells it.
#[must_use]
pub fn explanation(decision: &Decision) -> Vec<DriftStep> {
    bounded::explanation(decision.explanation.recorded())
}

/// An object without its managed fields: who owned what changed is told beside the change.
fn lean(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    object
}

/// What becomes of a drift, or of another change that is entered, that was decided like this.
#[must_use]
pub fn state(decision: &Decision) -> DriftState {
    match &decision.resolution {
        Resolution::Denied(_) if decision.cause != Some(Cause::Drift) => DriftState::Denied,
        Resolution::Rejected | Resolution::Denied(_) => DriftState::Rejected,
        Resolution::Logged => DriftState::Passed,
        _ => DriftState::Blocked,
    }
}

fn summary(drift: &Drift) -> DriftSummary {
    let report = &drift.report.spec;
    let name = |kind: &str, name: &str| fit(&format!("{kind}/{name}"), MAX_NAME);
    let fields = match drift.diff.changes.as_slice() {
        [] => String::new(),
        [only] => only.to_string(),
        [first, rest @ ..] => format!("{} (+{} more)", shorten(&first.to_string(), MAX_CHANGE), rest.len()),
    };
    let change = match report.request.operation.as_str() {
        "CREATE" => "create".to_owned(),
        "DELETE" => "delete".to_owned(),
        _ => fields,
    };
    DriftSummary {
        parent: name(&report.parent.kind, &report.parent.name),
        child: name(&report.child.kind, &report.child.name),
        actor: short_user(&report.request.user),
        change: fit(&change, MAX_CHANGE + 20),
    }
}

/// The namespace and the id of the entry that a request has, if it is about this parent's child and was decided like this.
#[must_use]
pub fn key(
    review: &Review<'_>,
    decision: &Decision,
    parent: &Summary,
    settings: &Settings,
) -> Option<(String, String)> {
    let child = Child::of(&review.request)?;
    let id = Change::new(review, settings.redaction(&review.request)).id(
        parent,
        &child,
        decision.cause == Some(Cause::Drift),
    );
    Some((child.id.namespace, id))
}

/// What becomes of an entry whose drift an approval has let pass.
#[must_use]
pub fn passed(approval: &Approval, now: Timestamp) -> (DriftResolution, DriftDecision) {
    let why = approval.reason.as_deref().map(|why| format!(": {why}")).unwrap_or_default();
    let message = fit(&format!("approved ({}){why}", approval.mode.as_str()), MAX_VALUE);
    let (reason, by) = (ResolutionReason::Approved, approval.by.as_deref().map(who));
    (DriftResolution { reason, at: now, by, message }, approved(approval, now))
}

fn approved(approval: &Approval, now: Timestamp) -> DriftDecision {
    DriftDecision {
        action: "approve".to_owned(),
        mode: Some(approval.mode),
        by: approval.by.as_deref().map(who),
        at: now,
        reason: approval.reason.as_deref().map(|reason| fit(reason, MAX_VALUE)),
    }
}

/// A name that stands in an annotation.
fn who(by: &str) -> String {
    fit(by, MAX_USER)
}

/// The parent of an entry, as it is now.
#[derive(Clone, Debug)]
pub enum ParentNow<'a> {
    /// It is there.
    Here(&'a Summary),
    /// It is gone, or another has its name.
    Gone,
    /// It cannot be told.
    Unknown,
}

/// The child of an entry, as it is now.
#[derive(Clone, Copy, Debug)]
pub enum ChildNow<'a> {
    /// It is there, and is this.
    Here(&'a Value),
    /// It is gone, or another has its name.
    Gone,
    /// It cannot be told, or nobody has asked.
    Unknown,
}

/// Whether somebody has asked for something else of the parent since. What its own controller writes into its spec is no new
/// intent: the trace stays.
#[must_use]
pub fn parent_changed(spec: &DriftSpec, parent: &Summary) -> bool {
    let trace = || parent.annotation(TRACE).and_then(|text| Trace::decode(text).ok());
    let is_same = |trace: Trace| {
        spec.trace.as_ref().is_some_and(|it| trace == *it || bounded::trace(&trace).as_ref() == Some(it))
    };
    parent.intent.to_string() != spec.parent_intent && !trace().is_some_and(is_same)
}

/// Why an open entry is over, if it is.
#[must_use]
pub fn resolution(
    entry: &Entry,
    parent: &ParentNow<'_>,
    child: ChildNow<'_>,
    now: Timestamp,
) -> Option<DriftResolution> {
    let Entry { spec, status, .. } = entry;
    let over = |reason, by, message: String| Some(DriftResolution { reason, at: now, by, message });
    let parent = match parent {
        ParentNow::Here(parent) => parent,
        ParentNow::Gone => {
            return over(ResolutionReason::ParentGone, None, "the parent is gone".to_owned());
        }
        ParentNow::Unknown => return None,
    };
    if parent_changed(spec, parent) {
        let what = match spec.denied_by {
            Some(_) => "approvals of what was denied before do not hold any more",
            None => "it is no drift any more",
        };
        let message = format!("the parent's intent has changed: {what}");
        return over(ResolutionReason::ParentChanged, None, message);
    }
    // A drift that a rule of a policy denied passes no approval. If it does one day, that is seen then.
    if let Some(approval) = Standing::of(spec, parent, now).approval()
        && !entry.is_barred()
    {
        return Some(passed(approval, now).0);
    }
    match child {
        // What was to be created was never there.
        ChildNow::Gone if spec.request.operation != "CREATE" => {
            return over(ResolutionReason::ChildGone, None, "the child is gone".to_owned());
        }
        ChildNow::Here(child) => {
            if let Some(why) = superseded::superseded(entry, child) {
                return over(ResolutionReason::Superseded, None, why);
            }
        }
        ChildNow::Gone | ChildNow::Unknown => {}
    }
    // Controllers try again as long as they want something; people do not.
    if spec.denied_by.is_some() && now.duration_since(status.last_seen) >= TRIED_AGAIN {
        return over(ResolutionReason::Expired, None, "nobody has tried it again for 24 hours".to_owned());
    }
    None
}

/// What a person has decided about an entry, as its parent says.
#[must_use]
pub fn decision(spec: &DriftSpec, parent: &Summary, now: Timestamp) -> Option<DriftDecision> {
    let standing = Standing::of(spec, parent, now);
    if let Some(rejection) = standing.rejection().cloned() {
        return Some(DriftDecision {
            action: "reject".to_owned(),
            mode: None,
            by: rejection.by.as_deref().map(who),
            at: now,
            reason: Some(fit(&rejection.reason, MAX_VALUE)),
        });
    }
    standing.approval().map(|approval| approved(approval, now))
}

/// Whether nothing on the parent rejects an entry any more.
#[must_use]
pub fn is_unrejected(spec: &DriftSpec, parent: &Summary, now: Timestamp) -> bool {
    let standing = Standing::of(spec, parent, now);
    standing.rejection().is_none() && standing.rejection_faults.is_empty()
}

#[cfg(test)]
mod tests;
