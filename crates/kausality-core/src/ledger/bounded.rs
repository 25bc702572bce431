//! How large an entry may become: whatever a drift says of itself comes from others, and etcd holds it.

use kausality_api::{
    drift::{
        DriftSpec, DriftStep, FieldChange, MAX_CHANGES, MAX_CHANGES_BYTES, MAX_ENTRY, MAX_EXPLANATION,
        MAX_TRACE,
    },
    report::{ChildReference, ParentReference, RequestContext},
    text::fit,
    trace::Trace,
};
use serde::Serialize;

/// Bytes of a user: people must not decide about their own changes, so names are cut only where they are none.
const MAX_USER: usize = 1024;
/// Bytes of a name, a group of users or a version.
const MAX_NAME: usize = 253;
/// Bytes of a kind, a uid, a namespace or a field manager.
const MAX_WORD: usize = 128;
/// Bytes of all groups together.
const MAX_GROUPS: usize = 2048;
/// Bytes of an explanation with everything that is around its texts.
const MAX_STEPS_BYTES: usize = MAX_EXPLANATION + 2048;
/// Bytes that are kept free for what becomes of an entry: who decided what, why it is over, which endpoints have been told.
const RESERVE: usize = 4096;

/// The bytes that something takes as JSON.
pub(super) fn size(it: &impl Serialize) -> usize {
    serde_json::to_vec(it).map_or(usize::MAX, |text| text.len())
}

/// Leaves the objects out of an entry that would be too large with them.
pub(super) fn without_large_objects(mut spec: DriftSpec, explanation: &[DriftStep]) -> DriftSpec {
    if size(&spec).saturating_add(size(&explanation)).saturating_add(RESERVE) > MAX_ENTRY {
        (spec.old_object, spec.new_object) = (None, None);
    }
    spec
}

/// As many changes as there is room for. The first one has room.
pub(super) fn changes(all: impl Iterator<Item = FieldChange>) -> Vec<FieldChange> {
    let mut room = MAX_CHANGES_BYTES;
    let fits = |change: &FieldChange| match room.checked_sub(size(change) + 1) {
        Some(left) => {
            room = left;
            true
        }
        None => false,
    };
    all.take(MAX_CHANGES).take_while(fits).collect()
}

/// What an entry says of a trace.
pub(super) fn trace(trace: &Trace) -> Option<Trace> {
    trace.within(MAX_TRACE)
}

pub(super) fn parent(parent: &ParentReference) -> ParentReference {
    ParentReference {
        api_version: fit(&parent.api_version, MAX_NAME),
        kind: fit(&parent.kind, MAX_WORD),
        namespace: fit(&parent.namespace, MAX_WORD),
        name: fit(&parent.name, MAX_NAME),
        uid: word(parent.uid.as_ref()),
        controller_manager: word(parent.controller_manager.as_ref()),
        ..parent.clone()
    }
}

pub(super) fn child(child: &ChildReference) -> ChildReference {
    ChildReference {
        api_version: fit(&child.api_version, MAX_NAME),
        kind: fit(&child.kind, MAX_WORD),
        namespace: fit(&child.namespace, MAX_WORD),
        name: fit(&child.name, MAX_NAME),
        uid: word(child.uid.as_ref()),
        generation: child.generation,
    }
}

/// What an entry says of the request in which a drift was seen.
#[must_use]
pub fn request(request: &RequestContext) -> RequestContext {
    let mut room = MAX_GROUPS;
    let group = |group: &String| {
        let group = fit(group, MAX_NAME);
        room = room.checked_sub(size(&group) + 1)?;
        Some(group)
    };
    RequestContext {
        user: fit(&request.user, MAX_USER),
        groups: request.groups.iter().map_while(group).collect(),
        uid: fit(&request.uid, MAX_WORD),
        field_manager: word(request.field_manager.as_ref()),
        operation: fit(&request.operation, MAX_WORD),
        dry_run: request.dry_run,
    }
}

/// An explanation that was written down, within its bounds, however its texts have to be escaped: what was looked at goes first,
/// then all that did not decide.
pub(super) fn explanation(mut steps: Vec<DriftStep>) -> Vec<DriftStep> {
    if size(&steps) > MAX_STEPS_BYTES {
        steps.iter_mut().for_each(|step| step.evidence.clear());
    }
    if size(&steps) > MAX_STEPS_BYTES {
        steps.retain(|step| step.decided);
        steps.truncate(1);
        steps.iter_mut().for_each(|step| step.finding = fit(&step.finding, MAX_EXPLANATION));
    }
    steps
}

fn word(text: Option<&String>) -> Option<String> {
    text.map(|text| fit(text, MAX_WORD))
}
