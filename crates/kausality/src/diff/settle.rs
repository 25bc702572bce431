//! What only the API server can tell: whether it makes of what is declared just what is there.
//!
//! It fills in parts of objects and lists that are owned as a whole (`fieldRef: {fieldPath: …}` gets an `apiVersion`,
//! items of a list get defaults), and leaves out what is empty where the type allows. Neither is drift, and neither can
//! be told from a change by looking. A dry-run of the apply tells.

use kausality_fields::{
    FieldSet, Path,
    attribution::Owner,
    typed::Type,
    verdict::{Finding, Report, Unknown, Verdict},
};
use serde_json::Value;

/// Whether there is something that the API server must be asked.
pub(super) fn is_open(report: &Report) -> bool {
    report.findings.iter().any(may_be_same)
}

/// Takes back what is no difference: what the apply would leave as it is.
pub(super) fn settle(report: &mut Report, manager: &str, of: Type<'_>, live: &Value, applied: &Value) {
    let Ok(found) = of.compare(live, applied) else { return };
    let changed = found.added.union(&found.modified).union(&found.removed);
    report.findings.retain_mut(|finding| {
        if !may_be_same(finding) || touches(&changed, &finding.path) {
            return true;
        }
        as_same(finding, manager).map(|verdict| finding.verdict = verdict).is_some()
    });
}

/// Without an answer, there is no telling of what is more than declared.
pub(super) fn leave_open(report: &mut Report, why: &str) {
    for finding in report.findings.iter_mut().filter(|finding| may_be_same(finding)) {
        let filled_in = match (&finding.declared, &finding.live) {
            (Some(declared), Some(live)) => covers(live, declared),
            _ => finding.live.is_none(),
        };
        if filled_in && finding.verdict == Verdict::OwnDrift {
            finding.verdict = Verdict::Unknown { reason: Unknown::Unasked(why.to_owned()), equal: true };
        }
    }
}

/// Whether a value is all that another is, and perhaps more.
fn covers(value: &Value, less: &Value) -> bool {
    match (value, less) {
        (Value::Object(value), Value::Object(less)) => {
            less.iter().all(|(name, less)| value.get(name).map_or(is_zero(less), |value| covers(value, less)))
        }
        (Value::Array(value), Value::Array(less)) => {
            value.len() == less.len() && value.iter().zip(less).all(|(value, less)| covers(value, less))
        }
        _ => value == less,
    }
}

/// Whether a field that seems to differ may be what the API server makes of what is declared.
fn may_be_same(finding: &Finding) -> bool {
    let differs = matches!(
        finding.verdict,
        Verdict::OwnDrift | Verdict::Takeover { equal: false } | Verdict::Unknown { equal: false, .. }
    );
    let is_whole = |value: &Value| value.is_object() || value.is_array();
    differs
        && match (&finding.declared, &finding.live) {
            (Some(declared), Some(live)) => is_whole(declared) && is_whole(live),
            (Some(declared), None) => is_zero(declared),
            (None, _) => false,
        }
}

/// The verdict on a field that has the declared value after all; `None` if all is well.
fn as_same(finding: &Finding, manager: &str) -> Option<Verdict> {
    let is_own = |owner: &&Owner| owner.manager == manager && owner.subresource.is_empty();
    let own = finding.owners.iter().filter(is_own).count();
    match &finding.verdict {
        Verdict::Takeover { .. } => Some(Verdict::Takeover { equal: true }),
        Verdict::Unknown { reason, .. } => Some(Verdict::Unknown { reason: reason.clone(), equal: true }),
        _ if own == 0 => finding.live.is_some().then_some(Verdict::Unowned),
        _ => (own < finding.owners.len()).then_some(Verdict::CoOwned),
    }
}

/// Whether a field is in a set, or anything below it.
fn touches(set: &FieldSet, path: &Path) -> bool {
    let mut steps = path.steps().iter();
    let below = steps.try_fold(set, |set, step| set.below(step));
    set.has(path) || below.is_some_and(|below| !below.is_empty())
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(true) => false,
    }
}
