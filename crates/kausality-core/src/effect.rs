//! Writes that follow a decision.

use std::collections::BTreeMap;

use kausality_api::{
    annotation::{APPROVALS, REJECTIONS, SETTLED},
    approval::{Approval, Entries},
};

use crate::{
    annotations::{self, Wanted},
    child::{self, Child},
    decision::Effect,
    gate::Used,
    summary::Summary,
};

/// Takes a used approval off the parent. Where that write itself bumps the generation, the entries that
/// are left go along.
pub(crate) fn consume(parent: &Summary, used: &Used) -> Effect {
    let mut wanted: Wanted = (parent.annotations())
        .filter(|(key, _)| [APPROVALS, REJECTIONS].contains(key))
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect();
    let left =
        parent.annotation(APPROVALS).map(Entries::<Approval>::decode).and_then(|it| it.without(used.place));
    match left {
        Some(left) => wanted.insert(APPROVALS.to_owned(), left),
        None => wanted.remove(APPROVALS),
    };
    if let (true, Some(generation)) =
        (child::annotations_bump_generation(parent.id.group(), &parent.id.kind), parent.generation)
    {
        annotations::restamp(&mut wanted, generation, generation.saturating_add(1));
    }
    let annotations = [APPROVALS, REJECTIONS]
        .into_iter()
        .filter(|key| parent.annotation(key) != wanted.get(*key).map(String::as_str))
        .map(|key| (key.to_owned(), wanted.get(key).cloned()))
        .collect();
    Effect::ConsumeOnce {
        parent: parent.id.clone(),
        uid: parent.uid.clone(),
        resource_version: parent.resource_version.clone(),
        approval: Box::new(used.approval.clone()),
        annotations,
    }
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
