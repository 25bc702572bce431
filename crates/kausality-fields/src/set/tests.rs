use super::FieldSet;
use crate::path::{Path, Step};

fn path(text: &str) -> Path {
    text.split('.').filter(|name| !name.is_empty()).map(|name| Step::Field(name.to_owned())).collect()
}

fn set(paths: &str) -> FieldSet {
    paths.split_whitespace().map(path).collect()
}

#[track_caller]
fn check(found: FieldSet, expected: &str) {
    assert_eq!(found.to_string().replace('\n', " "), expected);
    assert_eq!(found, set(expected));
}

#[test]
fn members_are_found_and_shown_in_order() {
    let set = set("b a.b.c a c.d a.b");
    check(set.clone(), "a a.b a.b.c b c.d");
    assert_eq!(set.len(), 5);
    assert!(set.has(&path("a.b.c")) && set.has(&path("a")));
    assert!(!set.has(&path("c")) && !set.has(&path("a.b.c.d")) && !set.has(&path("x.y")));
}

#[test]
fn nobody_owns_a_whole_object() {
    let mut set = FieldSet::new();
    set.insert(&Path::default());
    assert!(set.is_empty() && !set.has(&Path::default()));
    assert_eq!(set.len(), 0);
}

#[test]
fn union_keeps_all() {
    check(set("a b.c").union(&set("b b.d e")), "a b b.c b.d e");
}

#[test]
fn intersection_keeps_what_both_have() {
    check(set("a b b.c b.d").intersection(&set("b.c b.e c a.x")), "b.c");
    check(set("a.b").intersection(&set("a")), "");
}

#[test]
fn difference_keeps_what_lies_below() {
    check(set("a a.b c c.d").difference(&set("a c.d e")), "a.b c");
}

#[test]
fn recursive_difference_takes_what_lies_below() {
    check(set("a a.b a.b.c c c.d").recursive_difference(&set("a c.d e.f")), "c");
    check(set("a.b.c").recursive_difference(&set("a.b.c.d")), "a.b.c");
}

#[test]
fn leaves_have_nothing_below() {
    check(set("a a.b a.b.c d e.f e").leaves(), "a.b.c d e.f");
}

#[test]
fn prefixes_come_and_go() {
    check(set("a b.c").with_prefix(&path("x.y")), "x.y.a x.y.b.c");
    check(set("x x.y x.y.a x.z").without_prefix(&path("x.y")), "a");
    check(set("x").without_prefix(&path("x")), "");
    check(set("").with_prefix(&path("x")), "");
    assert_eq!(set("x.y x").below(&Step::Field("x".into())), Some(&set("y")));
    assert_eq!(set("x").below(&Step::Field("x".into())), None);
}
