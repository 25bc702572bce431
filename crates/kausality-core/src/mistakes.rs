//! Mistakes in annotations that people write, told to them at once: an approval that approves nothing is found out about when it
//! is needed, and that is too late.

use std::collections::BTreeSet;

use kausality_api::{
    annotation::{APPROVALS, FREEZE, MODE, PREFIX, REJECTIONS, SNOOZE, SNOOZE_UNTIL, SYSTEM, USER},
    approval::{Approval, Entries, Entry, Rejection},
    mode::Mode,
    snooze::Snooze,
    text::shorten,
};

use crate::{
    actor::is_machine,
    gate,
    review::{Operation, Request},
};

/// Characters of an unknown name that are shown.
const MAX_NAME: usize = 80;

/// Unknown names that are told.
const MAX_UNKNOWN: usize = 3;

/// What is wrong with the annotations that a request sets or changes.
pub(crate) fn of(request: &Request<'_>) -> Vec<String> {
    let sent = request.object.as_ref().filter(|_| request.sub_resource.is_empty());
    let Some(sent) = sent.map(|object| &object.metadata.annotations) else { return Vec::new() };
    let stored = request.old_object.as_ref().map(|object| &object.metadata.annotations);
    let mut mistakes = Vec::new();
    for key in USER {
        let was = stored.and_then(|stored| stored.get(key));
        let value = sent.get(key).filter(|value| was != Some(*value));
        // That of a new object is looked at where its mode is chosen.
        let Some(value) = value.filter(|_| key != MODE || request.operation != Operation::Create) else {
            continue;
        };
        // What was wrong before has been told before. Kausality itself may have taken other entries off.
        if was.is_none_or(|was| of_value(key, was).is_empty()) {
            mistakes.extend(of_value(key, value));
        }
    }
    if is_machine(request) {
        return mistakes;
    }
    let known: BTreeSet<&str> = stored.into_iter().flat_map(|stored| stored.strays()).collect();
    let unknown = sent.strays().filter(|key| !is_fact(key) && !known.contains(key)).take(MAX_UNKNOWN);
    mistakes.extend(unknown.map(|key| {
        let known: Vec<&str> = USER.iter().filter_map(|key| key.strip_prefix(PREFIX)).collect();
        format!("{}: unknown, and without effect (known: {})", shorten(key, MAX_NAME), known.join(", "))
    }));
    mistakes
}

/// Whether this may be a fact of some object: controllers copy those.
fn is_fact(key: &str) -> bool {
    SYSTEM
        .iter()
        .any(|fact| key.strip_prefix(fact).is_some_and(|rest| rest.is_empty() || rest.starts_with('.')))
}

/// The same where Kausality takes off entries before it is asked again: places in the list say nothing.
fn of_entries<T: Entry>(key: &str, entries: &Entries<T>) -> Vec<String> {
    let fault = entries.faults().next().map(|fault| match fault.split_once(": ") {
        Some((place, what)) if place.starts_with("entry ") => format!("{key}: {what}"),
        _ => format!("{key}: {fault}"),
    });
    fault.into_iter().collect()
}

fn of_value(key: &str, value: &str) -> Vec<String> {
    let fault = |fault: Option<String>| fault.map(|fault| format!("{key}: {fault}")).into_iter().collect();
    match key {
        // Templates leave an empty value where nothing was meant.
        MODE if value.trim().is_empty() => Vec::new(),
        MODE => fault(value.parse::<Mode>().err().map(|error| format!("{error}: taken for enforce"))),
        APPROVALS => of_entries(APPROVALS, &Entries::<Approval>::decode(value)),
        REJECTIONS => of_entries(REJECTIONS, &Entries::<Rejection>::decode(value)),
        FREEZE => gate::frozen(Some(value)).map(|(_, faults)| faults).unwrap_or_default(),
        SNOOZE | SNOOZE_UNTIL => fault(Snooze::decode(value).err().map(|error| error.to_string())),
        _ => Vec::new(),
    }
}
