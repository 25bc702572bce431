//! Who wrote the annotations that belong to people: what a controller wrote there is a copy, and means nothing.
//!
//! Copies are not undone, since whoever made them would make them again. Each review of a write records who made it, and what
//! was never reviewed is told by field managers.

use std::{
    cell::OnceCell,
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use kausality_api::annotation::{self, PREFIX, WRITERS};
use serde_json::Value;

use crate::{
    annotations::{Wanted, Writer},
    managers,
    review::Metadata,
};

/// Who wrote each annotation of people's, and a digest of what it was then.
#[derive(Debug, Default, PartialEq, Eq)]
struct Record(BTreeMap<String, (Writer, u32)>);

impl Record {
    /// Reads the fact: `freeze=p1a2b3c4d,mode=c00ff00ff`.
    fn parse(text: &str) -> Self {
        let entry = |part: &str| {
            let (name, rest) = part.split_once('=')?;
            let (writer, digest) = rest.split_at_checked(1)?;
            let writer = match writer {
                "p" => Writer::Free,
                "c" => Writer::Controller,
                _ => return None,
            };
            Some((format!("{PREFIX}{name}"), (writer, u32::from_str_radix(digest, 16).ok()?)))
        };
        Self(text.split(',').filter_map(entry).collect())
    }

    fn encode(&self) -> String {
        let mut text = String::new();
        for (key, (writer, digest)) in &self.0 {
            let separator = if text.is_empty() { "" } else { "," };
            let letter = if *writer == Writer::Controller { 'c' } else { 'p' };
            let name = key.strip_prefix(PREFIX).unwrap_or(key);
            let _ = write!(text, "{separator}{name}={letter}{digest:08x}");
        }
        text
    }

    /// Who wrote this value, if that was seen.
    fn of(&self, key: &str, value: &str) -> Option<Writer> {
        self.0.get(key).filter(|(_, known)| *known == digest(value)).map(|(writer, _)| *writer)
    }
}

/// FNV-1a: it tells whether a value is the one that was seen, and protects nothing.
fn digest(value: &str) -> u32 {
    value.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// Tells which annotations of people's count on an object: those that a person wrote. `reporters` are the field managers that
/// report on the object. The record and the managed fields are read once, whatever the number of annotations.
pub(crate) fn counting<'m>(
    metadata: &'m Metadata<'_>,
    reporters: impl Fn() -> Vec<String> + 'm,
) -> impl Fn(&str) -> bool + 'm {
    let (record, copied) = (OnceCell::new(), OnceCell::new());
    move |key| {
        if annotation::owner(key) != annotation::Owner::User {
            return true;
        }
        let Some(value) = metadata.annotations.get(key) else { return true };
        let record =
            record.get_or_init(|| metadata.annotations.get(WRITERS).map(Record::parse).unwrap_or_default());
        match record.of(key, value) {
            Some(writer) => writer == Writer::Free,
            None => !copied
                .get_or_init(|| {
                    let owner = metadata.owner.as_ref().map_or("", |owner| &owner.uid);
                    let controllers = managers::of_owner(metadata, owner).into_iter().chain(reporters());
                    managers::copied(metadata, &controllers.collect())
                })
                .contains(key),
        }
    }
}

/// Records who writes the annotations of people's that are new. `stored` has what was seen before.
pub(crate) fn record(wanted: &mut Wanted, stored: Option<&Metadata<'_>>, writer: Writer) {
    let before =
        stored.and_then(|stored| stored.annotations.get(WRITERS)).map(Record::parse).unwrap_or_default();
    let mut record = Record::default();
    for (key, value) in wanted.iter().filter(|(key, _)| annotation::owner(key) == annotation::Owner::User) {
        let was = stored
            .and_then(|stored| stored.annotations.get(key))
            .filter(|was| adds_nothing(was, value, writer));
        let who = was.map_or(Some(writer), |was| before.of(key, was));
        record.0.extend(who.map(|who| (key.clone(), (who, digest(value)))));
    }
    if record == Record::default() {
        wanted.remove(WRITERS);
    } else {
        wanted.insert(WRITERS.to_owned(), record.encode());
    }
}

/// Whether a value says nothing that another did not. Kausality itself signs entries, carries them over to the next
/// generation, and lets go of those that are over; a controller may do no more than that.
fn adds_nothing(was: &str, value: &str, writer: Writer) -> bool {
    let entries = |text: &str| -> Option<Vec<Value>> { serde_json::from_str(text).ok() };
    let gist = |entry: &Value| {
        let mut entry = entry.clone();
        if let Some(fields) = entry.as_object_mut() {
            fields.retain(|key, _| key != "generation" && (key != "by" || writer == Writer::Controller));
        }
        // Keys are sorted: equal entries have equal texts.
        entry.to_string()
    };
    let generation = |entry: &Value| entry["generation"].as_i64();
    let kept = |was: Vec<Value>, is: Vec<Value>| {
        let mut known: BTreeSet<(String, Option<i64>)> = BTreeSet::new();
        for entry in &was {
            let (gist, generation) = (gist(entry), generation(entry));
            match writer {
                Writer::Free => drop(known.insert((gist, None))),
                Writer::Controller => {
                    known.insert((gist.clone(), generation.map(|generation| generation.saturating_add(1))));
                    known.insert((gist, generation));
                }
            }
        }
        let carried = |is: &Value| match writer {
            Writer::Free => known.contains(&(gist(is), None)),
            Writer::Controller => known.contains(&(gist(is), generation(is))),
        };
        (!is.is_empty() || was.is_empty()) && is.iter().all(carried)
    };
    was == value || entries(was).zip(entries(value)).is_some_and(|(was, is)| kept(was, is))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_comes_back_as_it_was() {
        let wanted = || -> Wanted {
            let pairs = [("kausality.io/freeze", "true"), ("kausality.io/trace-ticket", "T=1,2")];
            pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).into()
        };
        let mut by_person = wanted();
        record(&mut by_person, None, Writer::Free);
        let read = Record::parse(&by_person[WRITERS]);
        assert_eq!(read.of("kausality.io/freeze", "true"), Some(Writer::Free));
        assert_eq!(read.of("kausality.io/freeze", "false"), None, "another value was not seen");
        assert_eq!(read.of("kausality.io/trace-ticket", "T=1,2"), Some(Writer::Free));
        assert_eq!(Record::parse(&read.encode()), read);
        assert_eq!(Record::parse("freeze=x1,=,mode,mode=p,mode=pzz,a=é1"), Record::default());
        let mut none = Wanted::new();
        record(&mut none, None, Writer::Free);
        assert!(none.is_empty());
    }
}
