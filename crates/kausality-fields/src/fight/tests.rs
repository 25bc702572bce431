use super::*;
use crate::attribution::attribute;
use crate::path::Step;

fn field(name: &str) -> Path {
    Path::from_iter([Step::Field("spec".to_owned()), Step::Field(name.to_owned())])
}

fn check(managers: &str) -> Option<(String, usize)> {
    let mut fights = Fights::default();
    managers.chars().for_each(|manager| fights.take(&field("x"), &manager.to_string()));
    fights.at(&field("x")).map(|fight| (fight.managers.concat(), fight.switches))
}

#[test]
fn managers_that_alternate_fight() {
    assert_eq!(check("abab"), Some(("ab".to_owned(), 3)));
    assert_eq!(check("aabbaabb"), Some(("ab".to_owned(), 3)));
    assert_eq!(check("abcabc"), Some(("abc".to_owned(), 5)));
    assert_eq!(check("acbcab"), Some(("abc".to_owned(), 5)));
}

#[test]
fn managers_that_hand_on_do_not() {
    for managers in ["", "a", "ab", "aba", "abcd", "abac", "aaaa"] {
        assert_eq!(check(managers), None, "{managers}");
    }
}

#[test]
fn memory_is_bounded() {
    let mut fights = Fights::default();
    for manager in ["a", "b", "a", "b"] {
        fights.take(&field("kept"), manager);
    }
    for nth in 0..3 * MAX_FIELDS {
        fights.take(&field(&nth.to_string()), "a");
        if nth % 100 == 0 {
            fights.take(&field("kept"), "a");
        }
        fights.take(&field("many"), &nth.to_string());
    }
    assert_eq!((fights.fields.len(), fights.by_age.len()), (MAX_FIELDS, MAX_FIELDS));
    assert!(fights.fields.values().all(|holders| holders.taken.len() <= MAX_MANAGERS));
    assert_eq!(fights.iter().map(|(path, _)| path.to_string()).collect::<Vec<_>>(), ["spec.kept"]);
    assert!(fights.at(&field("0")).is_none());
}

/// The first owner is known only by what it loses.
#[test]
fn requests_tell_of_fights() {
    let entry = |manager: &str, second: u32, fields: &str| {
        format!(
            r#"{{"manager":"{manager}","operation":"Update","apiVersion":"v1","time":"2026-01-01T00:00:{second:02}Z","fieldsType":"FieldsV1","fieldsV1":{{"f:spec":{{"f:y":{{}}{fields}}}}}}}"#
        )
    };
    let state = |holder: usize, second: u32| {
        let fields = [",\"f:x\":{}", ""];
        format!("[{},{}]", entry("a", second, fields[holder]), entry("b", second, fields[1 - holder]))
    };
    let mut fights = Fights::default();
    for (second, holder) in [1, 0, 1].into_iter().enumerate() {
        assert!(fights.at(&field("x")).is_none());
        let (before, after) = (state(1 - holder, second as u32), state(holder, second as u32));
        fights.feed(&attribute(Some(&before), Some(&after)).unwrap());
    }
    let fight = fights.at(&field("x")).unwrap();
    assert_eq!(fight.to_string(), "a and b took it from each other 3 times");
    assert!(fights.at(&field("y")).is_none());
}
