//! What a request itself decides, on objects that are not looked at otherwise: parents of some that are.

use std::collections::BTreeMap;

use kausality_api::{
    annotation::{CONTROLLERS, EXCEPTED, INITIALIZED, OBSERVED_GENERATION, PHASE, SETTLED, USED, WRITERS},
    identity::UserHash,
};

use super::Draft;
use crate::{
    annotations::Writer,
    answer,
    authority::{self, Authority, DECIDING},
    child::Child,
    class::Class,
    decision::Decision,
    explain::Rule,
    facts::Facts,
    managers,
    patch::Patch,
    review::{Annotations, Review},
};

/// What Kausality itself writes onto parents, and decides by. Traces are left alone: without a review nobody would write
/// another.
pub const GUARDED: [&str; 8] =
    [CONTROLLERS, PHASE, INITIALIZED, SETTLED, OBSERVED_GENERATION, EXCEPTED, USED, WRITERS];

/// Decides nothing but whether the sender of a request may decide about drifts: approve, reject, freeze and snooze. For
/// objects of kinds that are not watched, which may be parents of some that are. The object is never gated, nor traced.
#[must_use]
pub fn decisions(review: &Review<'_>, facts: &Facts<'_>) -> Decision {
    let request = &review.request;
    let class = Class::of(request, facts.settings);
    let user = UserHash::of(&request.user_info.username, &request.user_info.uid);
    let mut draft = Draft::new(class);
    let Some(child) = Child::of(request).filter(|_| class != Class::Own) else {
        draft.pass_by(class);
        return draft.finish(request);
    };
    draft.saw(Rule::Class, "not watched: only what people decide about its children is looked at");
    draft.decided_by(Rule::Class);
    if draft.washes_freeze(request, &child) {
        return draft.finish(request);
    }
    let Some(sent) = &request.object else {
        authority::apply(&mut draft.decision, request, user, facts);
        return draft.finish(request);
    };

    let none = Annotations::default();
    let stored = request.old_object.as_ref().map_or(&none, |stored| &stored.metadata.annotations);
    let after = &sent.metadata.annotations;
    // A controller may copy what it finds on the owner, and must be able to go on. Nobody decides by way of the status.
    let unclear = child.has_owner
        && facts.authority == Authority::Refused
        && managers::of_request(request).is_none()
        && !child.controllers().contains(user);
    let bound = !request.sub_resource.is_empty() || unclear;
    let kept = GUARDED.into_iter().chain(DECIDING.into_iter().filter(|_| bound));
    let kept: Vec<&str> = kept.filter(|key| after.get(key) != stored.get(key)).collect();
    let mut wanted: BTreeMap<String, String> =
        after.ours().map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
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
    // What is known to be a copy means nothing here.
    let copies = child.controllers().contains(user) || child.has_owner && managers::copies(request);
    if !bound && !copies {
        authority::apply(&mut draft.decision, request, user, facts);
    }
    draft.writer = Some(if copies { Writer::Controller } else { Writer::Free }).filter(|_| !bound);
    draft.record_writer(request);
    draft.tell_mistakes(request);
    draft.finish(request)
}

#[cfg(test)]
mod tests;
