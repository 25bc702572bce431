//! Who may decide about drifts: approvals, rejections, freezes and snoozes are annotations, and whoever may write an object
//! could write them, as well as a mode that lets drifts pass. Where it is asked for, only those decide who have the verb `approve` on
//! `drifts.kausality.io`. What anybody decides carries their name, and never that of another.

use std::collections::{BTreeMap, VecDeque};

use jiff::Timestamp;
use kausality_api::{
    annotation::{APPROVALS, FREEZE, MODE, REJECTIONS, SNOOZE, SNOOZE_UNTIL},
    approval::{Entries, Rejection},
    identity::UserHash,
    mode::Mode,
};
use serde_json::{Map, Value};

use crate::{
    actor::{Actor, deletes_for_others, is_machine},
    answer,
    cause::Cause,
    child::{self, Child},
    class::{self, Class},
    decision::{Decision, Denial, Verdict},
    explain::Rule,
    facts::{Facts, Settings},
    gate::Resolution,
    review::{Annotations, Request},
};

/// The annotations by which people decide.
pub const DECIDING: [&str; 6] = [APPROVALS, REJECTIONS, FREEZE, SNOOZE, SNOOZE_UNTIL, MODE];

/// Who may decide about drifts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Authorization {
    /// Whoever may write the parent.
    #[default]
    None,
    /// Whoever may, beside that, `approve` drifts in its namespace.
    Rbac,
}

/// Whether the sender of a request may decide about drifts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Authority {
    /// Nobody has asked, since nothing depends on it.
    #[default]
    Unasked,
    /// They may.
    Granted,
    /// They may not.
    Refused,
    /// It could not be found out: why.
    Unknown(String),
}

/// Whether a request must be sent by somebody who may decide about drifts.
#[must_use]
pub(crate) fn matters(request: &Request<'_>, settings: &Settings) -> bool {
    settings.authorization == Authorization::Rbac && may_decide(request, settings, None)
}

/// Whether a request is one by which people decide. Without a time, nothing has expired.
fn may_decide(request: &Request<'_>, settings: &Settings, now: Option<Timestamp>) -> bool {
    use Class::{Adopt, Create, Delete, Metadata, Relabel, Release, Update};
    // Few requests decide anything, and that is soon seen.
    request.sub_resource.is_empty()
        && (decides(request) || class::changes_owners(request) && lifts_rejections(request, now))
        && match Class::of(request, settings) {
            Create | Update | Release | Adopt | Relabel | Metadata => true,
            Delete => lifts_rejections(request, now),
            _ => false,
        }
}

/// Whether an object that carries rejections is deleted, or may be for want of an owner, and some that still hold go with it. What
/// cannot be understood holds.
fn lifts_rejections(request: &Request<'_>, now: Option<Timestamp>) -> bool {
    let child = Child::of(request).filter(|child| !child.deleting && !deletes_for_others(request));
    let Some(child) = child else { return false };
    let Some(entries) = child.stored(REJECTIONS).map(Entries::<Rejection>::decode) else { return false };
    let holds = |entry: &Rejection| {
        let is_stale = entry.generation.zip(child.generation).is_some_and(|(bound, is)| bound != is);
        let is_over = entry.expires.zip(now).is_some_and(|(expires, now)| now >= expires);
        !is_stale && !is_over
    };
    entries.faults().next().is_some() || entries.valid().any(|(_, entry)| holds(entry))
}

/// Whether a request changes what people have decided.
fn decides(request: &Request<'_>) -> bool {
    let [old, new] = [&request.old_object, &request.object]
        .map(|object| object.as_ref().map(|object| &object.metadata.annotations));
    let of = |annotations: Option<&Annotations<'_>>, key: &str| {
        annotations.and_then(|annotations| annotations.get(key)).map(ToOwned::to_owned)
    };
    DECIDING.iter().any(|key| match (of(old, key), of(new, key)) {
        (old, new) if *key == MODE => relaxes(old.as_deref(), new.as_deref()),
        (old, new) => old != new,
    })
}

/// Whether drifts may pass with another mode that did not before. Where none is said, namespaces and policies say it.
fn relaxes(old: Option<&str>, new: Option<&str>) -> bool {
    let read = |mode: Option<&str>| {
        let mode = mode.filter(|mode| !mode.trim().is_empty())?;
        Some(mode.parse().unwrap_or(Mode::Enforce))
    };
    let (old, new) = (read(old), read(new));
    old != new && old != Some(Mode::Log) && new != Some(Mode::Enforce)
}

/// Denies a request that decides without the right to, and signs what is decided with it.
pub(crate) fn apply(decision: &mut Decision, request: &Request<'_>, user: UserHash, facts: &Facts<'_>) {
    let settings = facts.settings;
    if !decision.verdict.is_allowed() || !may_decide(request, settings, Some(facts.now)) {
        return;
    }
    let Some(child) = Child::of(request) else { return };
    let reconciles = decision.actor == Some(Actor::Controller) || child.controllers().contains(user);
    let deletes = decision.class == Class::Delete;
    if reconciles && (!deletes || decision.cause == Some(Cause::Cleanup)) {
        // It counts for nothing, and whoever copies it would copy it again; and what belongs to an owner goes with it.
        return;
    }
    if settings.authorization == Authorization::None {
        // Where nobody finds out why, as on kinds that are not watched, what has an owner may be going with it.
        let cleans_up = match decision.cause {
            Some(cause) => cause == Cause::Cleanup,
            None => child.has_owner,
        };
        let is_program = reconciles || is_machine(request) && !cleans_up;
        if deletes && is_program {
            decision.explanation.saw(Rule::Rejection, "the object itself carries some that hold");
            decision.explanation.decides_alone(Rule::Rejection);
            decision.resolution = Resolution::Rejected;
            deny(decision, Denial::forbidden(answer::rejecting_itself(&child.id)));
        } else {
            sign(decision, request);
        }
        return;
    }
    let authority = &facts.authority;
    let denial = match authority {
        Authority::Granted => {
            decision.explanation.saw(Rule::Authorization, "may approve drifts here");
            return sign(decision, request);
        }
        Authority::Refused => {
            decision.explanation.saw(Rule::Authorization, "may not approve drifts here");
            Denial::forbidden(answer::may_not_decide(&child.id, request))
        }
        Authority::Unasked | Authority::Unknown(_) => {
            let why = if let Authority::Unknown(why) = authority { why } else { "nobody has asked" };
            decision.explanation.saw(Rule::Authorization, format!("unknown: {why}"));
            Denial::internal(answer::authority_unknown(&child.id, request, why))
        }
    };
    decision.explanation.decides_alone(Rule::Authorization);
    deny(decision, denial);
}

fn deny(decision: &mut Decision, denial: Denial) {
    decision.verdict = Verdict::Deny(denial);
    decision.patch = Default::default();
    decision.trace = None;
    decision.effects.clear();
}

/// Writes the name of whoever decides into what they decide, whatever name they gave.
fn sign(decision: &mut Decision, request: &Request<'_>) {
    let Some(sent) = &request.object else { return };
    let stored = request.old_object.as_ref();
    // Entries are carried over where the generation grows although nobody asks for anything.
    let bumps = child::annotations_bump_generation(&request.resource.group, &sent.kind)
        || decision.explanation.saw_rule(Rule::Reconciler);
    let bump = stored.and_then(|stored| stored.metadata.generation).filter(|_| bumps);
    for key in DECIDING {
        let will_be = match decision.patch.annotations.get(key) {
            Some(patched) => patched.as_deref(),
            None => sent.metadata.annotations.get(key),
        };
        let before = stored.and_then(|stored| stored.metadata.annotations.get(key));
        let Some(will_be) = will_be.filter(|text| Some(*text) != before) else { continue };
        let signed = match key {
            APPROVALS | REJECTIONS => signed_list(will_be, before, request.user(), bump),
            _ => signed_one(will_be, request.user()),
        };
        if let Some(signed) = signed {
            decision.patch.annotations.insert(key.to_owned(), Some(signed));
        }
    }
}

/// A list whose new entries carry the name of whoever wrote them. None, if that changes nothing, or it cannot be understood.
fn signed_list(text: &str, before: Option<&str>, user: &str, bump: Option<i64>) -> Option<String> {
    let sent: Vec<Value> = serde_json::from_str(text).ok()?;
    let mut entries = sent.clone();
    let stored: Vec<Value> = before.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    // The names on stored entries, by what the entries say. Each stands for one, in their order.
    let mut known: BTreeMap<(String, Option<i64>), VecDeque<Option<Value>>> = BTreeMap::new();
    for entry in stored.iter().filter_map(Value::as_object) {
        known.entry((gist(entry), generation(entry))).or_default().push_back(entry.get("by").cloned());
    }
    for entry in entries.iter_mut().filter_map(Value::as_object_mut) {
        let (gist, at) = (gist(entry), generation(entry));
        // An entry of the generation that an edit of annotations bumps is carried over to the next.
        let carried_from = bump.filter(|bump| at == Some(bump.saturating_add(1)));
        let mut name = |generation| known.get_mut(&(gist.clone(), generation)).and_then(VecDeque::pop_front);
        let by = name(at).or_else(|| carried_from.and_then(|bump| name(Some(bump))));
        match by.unwrap_or_else(|| Some(user.into())) {
            Some(by) => drop(entry.insert("by".to_owned(), by)),
            None => drop(entry.remove("by")),
        }
    }
    if entries == sent {
        return None;
    }
    serde_json::to_string(&entries).ok()
}

/// What an entry says, whatever name and generation it carries. Keys are sorted: equal entries have equal texts.
fn gist(entry: &Map<String, Value>) -> String {
    let mut entry = entry.clone();
    entry.retain(|key, _| key != "by" && key != "generation");
    Value::Object(entry).to_string()
}

fn generation(entry: &Map<String, Value>) -> Option<i64> {
    entry.get("generation").and_then(Value::as_i64)
}

/// A freeze or a snooze in its long form, with the name of whoever wrote it. None, if that changes nothing.
fn signed_one(text: &str, user: &str) -> Option<String> {
    let mut value: Map<String, Value> = serde_json::from_str(text).ok()?;
    match value.get("user") {
        Some(name) if name.as_str() == Some(user) => return None,
        _ => drop(value.insert("user".to_owned(), user.into())),
    }
    serde_json::to_string(&value).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mode_relaxes_what_was_stricter_or_not_known() {
        let (log, enforce) = (Some("log"), Some("enforce"));
        for (old, new) in
            [(None, log), (enforce, log), (enforce, None), (Some("lgo"), log), (enforce, Some(" "))]
        {
            assert!(relaxes(old, new), "{old:?} {new:?}");
        }
        for (old, new) in
            [(None, enforce), (log, enforce), (log, None), (None, Some("")), (log, log), (None, Some("lgo"))]
        {
            assert!(!relaxes(old, new), "{old:?} {new:?}");
        }
    }

    #[test]
    fn new_entries_are_signed_and_old_ones_stay_as_they_were() {
        let before = r#"[{"kind":"A","generation":1,"by":"alice"},{"kind":"B"}]"#;
        let text = r#"[{"kind":"A","generation":2,"by":"mallory"},{"kind":"B","by":"mallory"},{"kind":"C","by":"alice"}]"#;
        let signed = signed_list(text, Some(before), "mallory", Some(1)).unwrap();
        let expected =
            r#"[{"by":"alice","generation":2,"kind":"A"},{"kind":"B"},{"by":"mallory","kind":"C"}]"#;
        let value = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        assert_eq!(value(&signed), value(expected));
        assert_eq!(signed_list("no list", None, "mallory", None), None);
        assert_eq!(signed_one("true", "mallory"), None);
        let freeze = signed_one(r#"{"user":"alice","message":"stop"}"#, "mallory").unwrap();
        assert_eq!(value(&freeze), value(r#"{"user":"mallory","message":"stop"}"#));
    }

    #[test]
    fn an_entry_vouches_for_one_of_its_own_generation_and_no_more() {
        let before = r#"[{"kind":"A","generation":4,"by":"alice"}]"#;
        let text = r#"[{"kind":"A","generation":4},{"kind":"A","generation":4},{"kind":"A","generation":9},
            {"kind":"A","generation":5}]"#;
        let names = |bump: Option<i64>, text: &str| -> Vec<String> {
            let signed = signed_list(text, Some(before), "mallory", bump).unwrap();
            let entries: Vec<Value> = serde_json::from_str(&signed).unwrap();
            entries.iter().map(|entry| entry["by"].as_str().unwrap().to_owned()).collect()
        };
        assert_eq!(names(None, text), ["alice", "mallory", "mallory", "mallory"]);
        let carried = r#"[{"kind":"A","generation":5},{"kind":"A","generation":5}]"#;
        assert_eq!(names(Some(4), carried), ["alice", "mallory"]);
        assert_eq!(names(None, carried), ["mallory", "mallory"]);
    }
}
