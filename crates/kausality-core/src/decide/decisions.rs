//! What a request itself decides, on objects that are not looked at otherwise: parents of some that are.

use std::collections::BTreeMap;

use kausality_api::{
    annotation::{CONTROLLERS, EXCEPTED, INITIALIZED, OBSERVED_GENERATION, PHASE, SETTLED},
    identity::UserHash,
};

use super::Draft;
use crate::{
    answer,
    authority::{self, Authority, DECIDING},
    child::Child,
    class::Class,
    decision::Decision,
    explain::Rule,
    facts::Facts,
    patch::Patch,
    review::{Annotations, Review},
};

/// What Kausality itself writes onto parents, and decides by. Traces are left alone: without a review nobody would write
/// another.
const GUARDED: [&str; 6] = [CONTROLLERS, PHASE, INITIALIZED, SETTLED, OBSERVED_GENERATION, EXCEPTED];

/// The annotations that a request must change to be worth a review of its decisions.
pub fn decisive() -> impl Iterator<Item = &'static str> {
    DECIDING.into_iter().chain(GUARDED)
}

/// Decides nothing but whether the sender of a request may decide about drifts: approve, reject, freeze and snooze. For
/// objects of kinds that are not watched, which may be parents of some that are. The object is never gated, nor traced.
#[must_use]
pub fn decisions(review: &Review<'_>, facts: &Facts<'_>) -> Decision {
    let request = &review.request;
    let class = Class::of(request, facts.settings);
    let user = UserHash::of(&request.user_info.username, &request.user_info.uid);
    let mut draft = Draft::new(class);
    let (Some(sent), Some(child)) = (&request.object, Child::of(request)) else {
        draft.pass_by(class);
        return draft.finish(request);
    };
    if class == Class::Own {
        draft.pass_by(class);
        return draft.finish(request);
    }
    draft.saw(Rule::Class, "not watched: only what people decide about its children is looked at");
    draft.decided_by(Rule::Class);

    let none = Annotations::default();
    let sent = &sent.metadata.annotations;
    let stored = request.old_object.as_ref().map_or(&none, |stored| &stored.metadata.annotations);
    // A controller may copy what it finds on the owner, and must be able to go on.
    let copies = child.has_owner && facts.authority == Authority::Refused;
    let bound = !request.sub_resource.is_empty() || child.controllers().contains(user) || copies;
    let kept = GUARDED.into_iter().chain(DECIDING.into_iter().filter(|_| bound));
    let kept: Vec<&str> = kept.filter(|key| sent.get(key) != stored.get(key)).collect();
    let mut wanted: BTreeMap<String, String> =
        sent.ours().map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
    for key in &kept {
        wanted.remove(*key);
        wanted.extend(stored.get(key).map(|value| ((*key).to_owned(), value.to_owned())));
    }
    draft.decision.patch = Patch::between(sent, &wanted);
    let ignored: Vec<&str> = kept.into_iter().filter(|key| DECIDING.contains(key)).collect();
    if !ignored.is_empty() {
        let keys = ignored.join(", ");
        draft.saw(Rule::Annotations, format!("the change of {keys} is ignored"));
        draft.warn(answer::not_decided(&keys));
    }
    if !bound {
        authority::apply(&mut draft.decision, request, user, facts.settings, &facts.authority);
    }
    draft.finish(request)
}

#[cfg(test)]
mod tests;
