//! Writes that follow a decision.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kausality_api::{
    annotation::{APPROVALS, CONTROLLERS, EXCEPTED, REJECTIONS, SETTLED, UPDATERS, USED},
    approval::{Approval, ApprovalMode, Entries},
    identity::{Hashes, UserHash},
};

use crate::{
    annotations::{self, Wanted},
    child::{self, Child},
    decision::Effect,
    entries,
    exceptions::{self, Exceptions, Ruled},
    gate::Used,
    review::Request,
    settle::Mark,
    summary::{ObjectId, Summary},
    used,
};

/// Who spends an approval, and when.
pub(crate) type Spender<'a> = (&'a Request<'a>, Timestamp);

/// Takes a used approval off the parent.
pub(crate) fn consume(parent: &Summary, used: &Used, spender: Spender<'_>) -> Effect {
    let left =
        parent.annotation(APPROVALS).map(Entries::<Approval>::decode).and_then(|it| it.without(used.place));
    spend(parent, used.approval.clone(), APPROVALS, left, spender)
}

/// Records on the parent that a rule has let this child pass, unless it always does.
pub(crate) fn record_use(
    parent: &Summary,
    child: &ObjectId,
    ruled: &Ruled,
    all: &Exceptions,
    spender: Spender<'_>,
) -> Option<Effect> {
    let record = exceptions::used(ruled, all, child, parent)?;
    let approval = Approval {
        api_version: child.api_version.clone(),
        kind: child.kind.clone(),
        namespace: entries::bound(&parent.id, &child.namespace),
        name: child.name.clone(),
        generation: parent.generation,
        ..ruled.approval()
    };
    Some(spend(parent, approval, EXCEPTED, Some(record), spender))
}

/// Writes what is left of an approval to the parent. Where that write itself bumps the generation, the entries that are
/// left go along.
fn spend(
    parent: &Summary,
    approval: Approval,
    key: &str,
    left: Option<String>,
    (request, now): Spender<'_>,
) -> Effect {
    const BOUND: [&str; 4] = [APPROVALS, REJECTIONS, EXCEPTED, USED];
    let mut wanted: Wanted = (parent.annotations())
        .filter(|(key, _)| BOUND.contains(key))
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect();
    match left {
        Some(left) => wanted.insert(key.to_owned(), left),
        None => wanted.remove(key),
    };
    wanted.remove(USED);
    let once = Some(&approval).filter(|approval| approval.mode == ApprovalMode::Once);
    wanted.extend(used::record(parent, once, request, now).map(|used| (USED.to_owned(), used)));
    if let (true, Some(generation)) =
        (child::annotations_bump_generation(parent.id.group(), &parent.id.kind), parent.generation)
    {
        annotations::restamp(&mut wanted, generation, generation.saturating_add(1));
    }
    let annotations = BOUND
        .into_iter()
        .filter(|key| parent.annotation(key) != wanted.get(*key).map(String::as_str))
        .map(|key| (key.to_owned(), wanted.get(key).cloned()))
        .collect();
    Effect::ConsumeOnce {
        parent: parent.id.clone(),
        uid: parent.uid.clone(),
        suffix: parent.suffix,
        resource_version: parent.resource_version.clone(),
        approval: Box::new(approval),
        annotations,
    }
}

/// Leaves what is known of an object that its own controller scales, which is no new intent: a mark that stands is to go along with the
/// intent.
pub(crate) fn record_own_scale(scaled: &Summary, user: UserHash) -> Option<Effect> {
    let mut annotations = BTreeMap::new();
    let mut controllers = scaled.controllers();
    if !controllers.contains(user) {
        let updaters = scaled.annotation(UPDATERS).map(Hashes::decode).unwrap_or_default();
        controllers.note(user, &updaters);
        annotations.insert(CONTROLLERS.to_owned(), Some(controllers.encode()));
    }
    let mark = scaled.annotation(SETTLED).and_then(Mark::parse).filter(|mark| mark.intent == scaled.intent);
    annotations.extend(mark.map(|mark| (SETTLED.to_owned(), Some(mark.to_string()))));
    (!annotations.is_empty()).then(|| Effect::RecordScale {
        object: scaled.id.clone(),
        uid: scaled.uid.clone(),
        generation: scaled.generation,
        annotations,
    })
}

/// Leaves the trace of a `scale` on the object behind it.
pub(crate) fn record_scale(child: &Child<'_>, wanted: Wanted) -> Effect {
    let mut annotations: BTreeMap<String, Option<String>> =
        wanted.into_iter().map(|(key, value)| (key, Some(value))).collect();
    annotations.insert(SETTLED.to_owned(), None);
    Effect::RecordScale {
        object: child.id.clone(),
        uid: child.uid.clone().unwrap_or_default(),
        generation: child.generation,
        annotations,
    }
}
