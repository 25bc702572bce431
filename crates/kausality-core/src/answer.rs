//! What people and the audit log read: denials, warnings, audit entries. All rendered from the decision.

use std::collections::BTreeMap;

use kausality_api::{annotation, text::shorten};

use crate::{
    cause::Cause,
    change::Drift,
    class,
    decision::Decision,
    entries,
    review::Request,
    summary::{ObjectId, Summary},
};

/// Changes that a denial lists at most.
const SHOWN_CHANGES: usize = 5;
/// Characters of an error, or of the list of changes, that a denial quotes: what to do next comes after it.
const MAX_QUOTE: usize = 800;

pub(crate) fn parent_gone(child: &ObjectId) -> String {
    format!(
        "kausality: the owner of {child} does not exist any more. Create the owner first, or create the \
         object without a controller ownerReference."
    )
}

pub(crate) fn parent_unreadable(child: &ObjectId, why: &str) -> String {
    let why = shorten(why, MAX_QUOTE);
    format!(
        "kausality: the owner of {child} could not be read ({why}), so this change cannot be judged. Try \
         again; if it lasts, check that Kausality may read the owner's kind."
    )
}

pub(crate) fn may_not_decide(child: &ObjectId, request: &Request<'_>) -> String {
    let place = match child.namespace.as_str() {
        "" => "in the whole cluster".to_owned(),
        namespace => format!("in namespace {namespace}"),
    };
    let how = match request.object {
        None => Some("deleting it"),
        Some(_) if class::changes_owners(request) => Some("giving it other owners"),
        Some(_) => None,
    };
    if let Some(how) = how {
        return format!(
            "kausality: {child} carries rejections, and {how} would lift them: that takes the verb \"approve\" on \
             drifts.kausality.io {place}, which {} does not have. Ask somebody who has it, or for a role with that rule.",
            shorten(request.user(), MAX_QUOTE),
        );
    }
    format!(
        "kausality: {} may not decide about drifts of {child}: approvals, rejections, freeze, snooze and a mode that lets more \
         pass are for those who have the verb \"approve\" on drifts.kausality.io {place}. Ask for a role with that rule.",
        shorten(request.user(), MAX_QUOTE),
    )
}

pub(crate) fn authority_unknown(child: &ObjectId, request: &Request<'_>, why: &str) -> String {
    format!(
        "kausality: whether {} may decide about drifts of {child} could not be found out ({}). Try again.",
        shorten(request.user(), MAX_QUOTE),
        shorten(why, MAX_QUOTE),
    )
}

pub(crate) fn frozen(parent: &ObjectId, child: &ObjectId, reason: &str) -> String {
    format!(
        "kausality: {parent} is frozen {reason}. Nothing below it changes, {child} included. To lift the \
         freeze: {}",
        annotate(parent, &format!("{}-", annotation::FREEZE))
    )
}

/// The frozen object itself is to be deleted, and its freeze with it, or to get owners for want of which it would be.
pub(crate) fn frozen_itself(object: &ObjectId, reason: &str, what: &str) -> String {
    format!(
        "kausality: {object} is frozen {reason}, and {what} before the freeze is lifted: {}",
        annotate(object, &format!("{}-", annotation::FREEZE))
    )
}

/// A program is to delete an object that carries rejections, which would go with it.
pub(crate) fn rejecting_itself(object: &ObjectId) -> String {
    format!(
        "kausality: {object} carries rejections, and no controller or service account can delete it before they are lifted: {}",
        annotate(object, &format!("{}-", annotation::REJECTIONS))
    )
}

pub(crate) fn rejected(parent: &ObjectId, child: &ObjectId, reason: &str) -> String {
    format!("kausality: drift of {child}, a child of {parent}, is {reason}")
}

pub(crate) fn denied(parent: &ObjectId, child: &ObjectId, reason: &str) -> String {
    let reason = shorten(reason, MAX_QUOTE);
    format!("kausality: this change of {child}, a child of {parent}, is {reason}")
}

/// How somebody else can approve exactly the change that a policy denies.
pub(crate) fn approvable(parent: &Summary, child: &ObjectId, drift: &Drift) -> String {
    let (often, term) = term(parent);
    let entry = entry(&parent.id, child, &format!(r#"{term},"diff":"{}""#, drift.diff.hash()));
    let annotate = annotate(&parent.id, &approvals_with(parent, &entry));
    format!(". Somebody else can approve it (drift {}) {often}: {annotate}", drift.id())
}

/// An approval for a child.
fn entry(parent: &ObjectId, child: &ObjectId, term: &str) -> String {
    let ObjectId { api_version, kind, namespace, name } = child;
    let place = entries::bound(parent, namespace).map(|it| format!(r#""namespace":"{it}","#));
    let place = place.unwrap_or_default();
    format!(r#"{{"apiVersion":"{api_version}","kind":"{kind}",{place}"name":"{name}",{term}}}"#)
}

/// How often an approval holds, and how it says so. Without a generation to bind it to, one for once would be void.
fn term(parent: &Summary) -> (&'static str, String) {
    match parent.generation {
        Some(generation) => ("once", format!(r#""generation":{generation},"mode":"once""#)),
        None => ("from now on", r#""mode":"always""#.to_owned()),
    }
}

pub(crate) fn blocked(parent: &Summary, child: &ObjectId, drift: &Drift, hint: Option<&str>) -> String {
    let user = &drift.report.spec.request.user;
    let verb = match drift.report.spec.request.operation.as_str() {
        "CREATE" => "creates",
        "DELETE" => "deletes",
        _ => "changes",
    };
    let (often, term) = term(parent);
    let approval = approvals_with(parent, &entry(&parent.id, child, &term));
    let parent = &parent.id;
    let hint = hint.map(|hint| format!("Shortly before: {}. ", shorten(hint, MAX_QUOTE))).unwrap_or_default();
    format!(
        "kausality: drift {}: {user} {verb} {child} although nobody changed {parent}, which has settled. \
         Changes: {}. {hint}To let it happen {often}: {}",
        drift.id(),
        shorten(&drift.diff.limited(SHOWN_CHANGES).to_string().replace('\n', "; "), MAX_QUOTE),
        annotate(parent, &approval),
    )
}

/// Warnings beyond 120 characters may be cut, so the id comes early.
pub(crate) fn logged(parent: &ObjectId, child: &ObjectId, drift: &Drift) -> String {
    let happens = match drift.report.spec.request.operation.as_str() {
        "CREATE" => "is created",
        "DELETE" => "is deleted",
        _ => "changes",
    };
    format!("kausality: drift {}: {child} {happens} although nobody changed {parent}", drift.id())
}

/// What else changed shortly before a drift that log mode let pass.
pub(crate) fn hint(drift: &Drift, hint: &str) -> String {
    format!("kausality: shortly before drift {}: {hint}", drift.id())
}

/// The argument of `kubectl annotate` that adds an entry to the parent's approvals and keeps the others.
fn approvals_with(parent: &Summary, entry: &str) -> String {
    let kept = parent.annotation(annotation::APPROVALS);
    let others: Option<Vec<serde_json::Value>> = kept.and_then(|text| serde_json::from_str(text).ok());
    let mut list: String = others.iter().flatten().map(|other| format!("{other},")).collect();
    list.push_str(entry);
    let overwrite = if kept.is_some() { "--overwrite " } else { "" };
    format!("{overwrite}{}='[{}]'", annotation::APPROVALS, list.replace('\'', r"'\''"))
}

pub(crate) fn not_decided(keys: &str) -> String {
    shorten(&format!("kausality: {keys}: ignored, whoever reconciles an object decides nothing on it"), 120)
}

fn annotate(object: &ObjectId, what: &str) -> String {
    let namespace = match object.namespace.as_str() {
        "" => String::new(),
        namespace => format!(" -n {namespace}"),
    };
    let kind = match object.group() {
        "" => object.kind.to_lowercase(),
        group => format!("{}.{group}", object.kind.to_lowercase()),
    };
    format!("kubectl annotate{namespace} {kind}/{} {what}", object.name)
}

/// The audit entries of a decision. Keys have no slash: the API server rejects those.
pub(crate) fn audit(decision: &Decision) -> BTreeMap<&'static str, String> {
    let mut audit = BTreeMap::from([
        ("decision", decision.verdict.as_str().to_owned()),
        ("resolution", decision.resolution.as_str().to_owned()),
    ]);
    if let Some(cause) = decision.cause {
        audit.insert("cause", cause.as_str().to_owned());
        audit.insert("drift", (cause == Cause::Drift).to_string());
    }
    if let Some(mode) = decision.mode {
        audit.insert("mode", mode.to_string());
    }
    if let Some(phase) = decision.phase {
        audit.insert("phase", phase.to_string());
    }
    if let Some(rule) = decision.explanation.deciding() {
        audit.insert("rule", rule.as_str().to_owned());
    }
    if let Some(trace) = &decision.trace {
        let written = decision.patch.annotations.get(annotation::TRACE).cloned().flatten();
        audit.insert("trace", written.unwrap_or_else(|| trace.encode()));
    }
    audit
}
