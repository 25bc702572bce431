//! Mistakes in annotations that people write, told to them at once: an approval that approves nothing is found out about when it
//! is needed, and that is too late.

use std::collections::{BTreeMap, BTreeSet};

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

/// Faults of one list that are told.
const MAX_FAULTS: usize = 5;

/// Characters of an unknown name that are shown.
const MAX_NAME: usize = 80;

/// Unknown names that are told.
const MAX_UNKNOWN: usize = 3;

/// What is wrong with the annotations that a request sets or changes. `chosen` is the mode that was chosen for it, if any.
pub(crate) fn of(request: &Request<'_>, chosen: Option<Mode>) -> Vec<String> {
    let sent = request.object.as_ref().filter(|_| request.sub_resource.is_empty());
    let Some(sent) = sent.map(|object| &object.metadata.annotations) else { return Vec::new() };
    let stored = request.old_object.as_ref().map(|object| &object.metadata.annotations);
    let mut mistakes = Vec::new();
    for key in USER {
        let was = stored.and_then(|stored| stored.get(key));
        let value = sent.get(key).filter(|value| was != Some(*value));
        // That of a new object has been looked at where its mode was chosen.
        let has_been_told = key == MODE && chosen.is_some() && request.operation == Operation::Create;
        if let Some(value) = value.filter(|_| !has_been_told) {
            mistakes.extend(of_value(key, value, was));
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

/// What is wrong with entries of a list that was not wrong before, and has been told then. Kausality itself takes entries off
/// before it is asked again: places in the list say nothing.
fn of_entries<T: Entry>(key: &str, value: &str, was: Option<&str>) -> Vec<String> {
    let faults = |entries: &Entries<T>| -> Vec<String> {
        let what = |fault: String| match fault.split_once(": ") {
            Some((place, what)) if place.starts_with("entry ") => what.to_owned(),
            _ => fault,
        };
        entries.faults().map(what).collect()
    };
    let mut known: BTreeMap<String, usize> = BTreeMap::new();
    let was = was.map(Entries::<T>::decode).filter(Entries::is_list);
    for fault in was.iter().flat_map(faults) {
        *known.entry(fault).or_default() += 1;
    }
    let is_new = |fault: &String| match known.get_mut(fault) {
        Some(count) if *count > 0 => {
            *count -= 1;
            false
        }
        _ => true,
    };
    let mut new: Vec<String> = faults(&Entries::decode(value)).into_iter().filter(is_new).collect();
    let more = new.len().saturating_sub(MAX_FAULTS);
    new.truncate(MAX_FAULTS);
    let more = (more > 0).then(|| format!("{more} more entries cannot be understood"));
    new.into_iter().chain(more).map(|fault| format!("{key}: {fault}")).collect()
}

/// What is wrong with a value that was another.
fn of_value(key: &str, value: &str, was: Option<&str>) -> Vec<String> {
    let fault = |fault: Option<String>| fault.map(|fault| format!("{key}: {fault}")).into_iter().collect();
    match key {
        // Templates leave an empty value where nothing was meant.
        MODE if value.trim().is_empty() => Vec::new(),
        MODE => fault(value.parse::<Mode>().err().map(|error| format!("{error}: taken for enforce"))),
        APPROVALS => of_entries::<Approval>(APPROVALS, value, was),
        REJECTIONS => of_entries::<Rejection>(REJECTIONS, value, was),
        FREEZE => gate::frozen(Some(value)).map(|(_, faults)| faults).unwrap_or_default(),
        SNOOZE | SNOOZE_UNTIL => fault(Snooze::decode(value).err().map(|error| error.to_string())),
        _ => Vec::new(),
    }
}
