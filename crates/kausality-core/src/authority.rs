//! Who may decide about drifts: approvals, rejections, freezes and snoozes are annotations, and whoever may write an object
//! could write them. Where it is asked for, only those decide who have the verb `approve` on `drifts.kausality.io`, and
//! what they decide carries their name.

use kausality_api::{
    annotation::{APPROVALS, FREEZE, REJECTIONS, SNOOZE, SNOOZE_UNTIL},
    identity::UserHash,
};
use serde_json::{Map, Value};

use crate::{
    actor::Actor,
    answer,
    child::Child,
    class::Class,
    decision::{Decision, Denial, Verdict},
    explain::Rule,
    facts::Settings,
    review::{Annotations, Request},
};

/// The annotations by which people decide.
const DECIDING: [&str; 5] = [APPROVALS, REJECTIONS, FREEZE, SNOOZE, SNOOZE_UNTIL];

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
    settings.authorization == Authorization::Rbac
        && request.sub_resource.is_empty()
        && matches!(Class::of(request, settings), Class::Create | Class::Update | Class::Metadata)
        && decides(request)
}

/// Whether a request changes what people have decided.
fn decides(request: &Request<'_>) -> bool {
    let none = Annotations::default();
    let of = |object: &Option<crate::review::Object<'_>>, key: &str| {
        object.as_ref().map_or(&none, |object| &object.metadata.annotations).get(key).map(ToOwned::to_owned)
    };
    DECIDING.iter().any(|key| of(&request.old_object, key) != of(&request.object, key))
}

/// Denies a request that decides without the right to, and signs what is decided with it.
pub(crate) fn apply(
    decision: &mut Decision,
    request: &Request<'_>,
    user: UserHash,
    settings: &Settings,
    authority: &Authority,
) {
    if !decision.verdict.is_allowed() || !matters(request, settings) {
        return;
    }
    let Some(child) = Child::of(request) else { return };
    if decision.actor == Some(Actor::Controller) || child.controllers().contains(user) {
        // What a controller decides counts for nothing anyway.
        return;
    }
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
    decision.verdict = Verdict::Deny(denial);
    decision.patch = Default::default();
    decision.effects.clear();
}

/// Writes the name of whoever decides into what they decide, whatever name they gave.
fn sign(decision: &mut Decision, request: &Request<'_>) {
    let Some(sent) = &request.object else { return };
    let stored = request.old_object.as_ref();
    for key in DECIDING {
        let will_be = match decision.patch.annotations.get(key) {
            Some(patched) => patched.as_deref(),
            None => sent.metadata.annotations.get(key),
        };
        let before = stored.and_then(|stored| stored.metadata.annotations.get(key));
        let Some(will_be) = will_be.filter(|text| Some(*text) != before) else { continue };
        let signed = match key {
            APPROVALS | REJECTIONS => signed_list(will_be, before, request.user()),
            _ => signed_one(will_be, request.user()),
        };
        if let Some(signed) = signed.filter(|signed| signed != will_be) {
            decision.patch.annotations.insert(key.to_owned(), Some(signed));
        }
    }
}

/// A list whose new entries carry the name of whoever wrote them. None, if it cannot be understood.
fn signed_list(text: &str, before: Option<&str>, user: &str) -> Option<String> {
    let mut entries: Vec<Value> = serde_json::from_str(text).ok()?;
    let known: Vec<Value> = before.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    for entry in entries.iter_mut().filter_map(Value::as_object_mut) {
        // An approval that is carried over to another generation is still the same.
        let same = known.iter().filter_map(Value::as_object).find(|known| gist(known) == gist(entry));
        match same {
            Some(known) => match known.get("by") {
                Some(by) => drop(entry.insert("by".to_owned(), by.clone())),
                None => drop(entry.remove("by")),
            },
            None => drop(entry.insert("by".to_owned(), user.into())),
        }
    }
    serde_json::to_string(&entries).ok()
}

/// An entry without what does not make it another.
fn gist(entry: &Map<String, Value>) -> Map<String, Value> {
    let mut entry = entry.clone();
    entry.retain(|key, _| key != "by" && key != "generation");
    entry
}

/// A freeze or a snooze in its long form, with the name of whoever wrote it.
fn signed_one(text: &str, user: &str) -> Option<String> {
    let mut value: Map<String, Value> = serde_json::from_str(text).ok()?;
    value.insert("user".to_owned(), user.into());
    serde_json::to_string(&value).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_entries_are_signed_and_old_ones_stay_as_they_were() {
        let before = r#"[{"kind":"A","generation":1,"by":"alice"},{"kind":"B"}]"#;
        let text = r#"[{"kind":"A","generation":2,"by":"mallory"},{"kind":"B","by":"mallory"},{"kind":"C","by":"alice"}]"#;
        let signed = signed_list(text, Some(before), "mallory").unwrap();
        let expected =
            r#"[{"by":"alice","generation":2,"kind":"A"},{"kind":"B"},{"by":"mallory","kind":"C"}]"#;
        let value = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        assert_eq!(value(&signed), value(expected));
        assert_eq!(signed_list("no list", None, "mallory"), None);
        assert_eq!(signed_one("true", "mallory"), None);
        let freeze = signed_one(r#"{"user":"alice","message":"stop"}"#, "mallory").unwrap();
        assert_eq!(value(&freeze), value(r#"{"user":"mallory","message":"stop"}"#));
    }
}
