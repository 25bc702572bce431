use super::*;
use crate::schema::{Atom, Field, List, Map, Relationship, Scalar, ScalarKind};
use serde_json::json;
use std::collections::BTreeMap;

fn scalar(format: Option<Format>) -> TypeRef {
    let scalar = Some(Scalar { kind: ScalarKind::Untyped, format });
    TypeRef::Inline(Box::new(Atom { scalar, ..Atom::default() }))
}

fn check(format: Format, a: &Value, b: &Value) -> bool {
    let (schema, of) = (Schema::deduced(), scalar(Some(format)));
    let [there, back] = [equal(Type::new(&schema, &of), a, b), equal(Type::new(&schema, &of), b, a)];
    assert_eq!(there, back, "{a} {b}");
    there
}

#[test]
fn amounts_written_in_different_ways_are_the_same() {
    for same in [
        json!(["1000m", "1", 1, "1e0", "1.0", "+1", "1.", 1.0]),
        json!(["1Gi", "1073741824", 1_073_741_824, "1024Mi", "1048576Ki"]),
        json!(["0.5", ".5", "500m", "5e-1", "5E-1", 0.5]),
        json!(["1k", "1000", "1e3", "1E+3", "0.001M"]),
        json!(["0", "-0", "0Gi", "0e99999"]),
        json!(["0.5Gi", "512Mi"]),
        json!(["1E", "1e18", "1000P"]),
        // Rounded up to what can be stored.
        json!(["0.1n", "1n", "1e-90", "0.000000000000000000000000000000000000000000001"]),
        json!(["-0.1n", "-1n"]),
        json!(["8Ei", "9223372036854775807"]),
    ] {
        let same = same.as_array().unwrap();
        for a in same {
            for b in same {
                assert!(check(Format::Quantity, a, b), "{a} {b}");
            }
        }
    }
}

#[test]
fn other_amounts_differ() {
    for (a, b) in [
        ("1", "1001m"),
        ("1Gi", "1G"),
        ("1m", "1M"),
        ("-1", "1"),
        ("100000000000000000001n", "100000000000000000002n"),
        // What is no amount is a text.
        ("1e", "1"),
        ("1 ", "1"),
        ("", "0"),
        (".", "0"),
        ("1.0.0", "1"),
        ("1ki", "1Ki"),
        ("1mi", "1m"),
        ("e3", "1000"),
        ("ä", "1"),
        ("1e9999999999", "1e9999999998"),
        ("1e2147483647", "1e2147483646"),
        ("99999999999999999999999999999999999999999999", "99999999999999999999999999999999999999999998"),
    ] {
        assert!(!check(Format::Quantity, &json!(a), &json!(b)), "{a} {b}");
        assert!(check(Format::Quantity, &json!(a), &json!(a)), "{a}");
    }
    assert!(!check(Format::Quantity, &json!(true), &json!(1)));
    assert!(!check(Format::Quantity, &json!(null), &json!(0)));
}

#[test]
fn amounts_are_in_order() {
    let amounts = ["-1", "-1m", "0", "1n", "1m", "0.5", "1", "1k", "1Ki", "1G", "1Gi", "1E"];
    let parsed: Vec<_> = amounts.iter().map(|text| Amount::parse(text).unwrap()).collect();
    assert!(parsed.is_sorted_by(|a, b| a < b));
}

#[test]
fn an_int_or_string_means_what_it_says() {
    assert!(!check(Format::IntOrString, &json!(80), &json!("80")));
    assert!(!check(Format::IntOrString, &json!("50%"), &json!("50.0%")));
    assert!(check(Format::IntOrString, &json!(80), &json!(80.0)));
}

#[test]
fn one_instant_has_many_names() {
    for (a, b) in [
        ("2026-01-01T00:00:00Z", "2026-01-01T01:00:00+01:00"),
        ("2026-01-01T00:00:00Z", "2025-12-31T18:30:00-05:30"),
        ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00.000Z"),
        ("2026-01-01T00:00:00.5Z", "2026-01-01T00:00:00.500000000000Z"),
        ("2024-02-29T23:59:59Z", "2024-03-01T00:59:59+01:00"),
        ("1969-12-31T23:00:00Z", "1970-01-01T00:00:00+01:00"),
        ("2000-02-29T00:00:00-00:00", "2000-02-29T00:00:00+00:00"),
    ] {
        assert!(check(Format::DateTime, &json!(a), &json!(b)), "{a} {b}");
    }
    for (a, b) in [
        ("2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z"),
        ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00.000000001Z"),
        // What is no time is a text.
        ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00z"),
        ("2026-01-01T00:00:00Z", "2026-01-01 00:00:00Z"),
        ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00.Z"),
        ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z "),
        ("2026-03-01T00:00:00Z", "2026-02-29T00:00:00Z"),
        ("1900-03-01T00:00:00Z", "1900-02-29T00:00:00Z"),
        ("2026-01-01T00:01:00Z", "2026-01-01T00:00:60Z"),
        ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00"),
        ("2026-01-01T00:00:00Z", "+026-01-01T00:00:00Z"),
        ("2026-01-01T00:00:00Z", "2026-01-ÄT00:00:00Z"),
    ] {
        assert!(!check(Format::DateTime, &json!(a), &json!(b)), "{a} {b}");
    }
}

#[test]
fn instants_are_in_order() {
    let times =
        ["0000-03-01T00:00:00Z", "1969-12-31T23:59:59.9Z", "1970-01-01T00:00:00Z", "2026-11-15T12:00:00Z"];
    let parsed: Vec<_> = times.iter().map(|text| Instant::parse(text).unwrap()).collect();
    assert!(parsed.is_sorted_by(|a, b| a < b));
}

#[test]
fn parts_are_compared_by_their_own_types() {
    let quantities = Map {
        fields: BTreeMap::from([("plain".to_owned(), Field { of: scalar(None), default: None })]),
        element: Some(scalar(Some(Format::Quantity))),
        relationship: Relationship::Atomic,
    };
    let map = TypeRef::Inline(Box::new(Atom { map: Some(quantities), ..Atom::default() }));
    let list = List { element: map, relationship: Relationship::Atomic, keys: Vec::new() };
    let of = TypeRef::Inline(Box::new(Atom { list: Some(list), ..Atom::default() }));
    let schema = Schema::deduced();
    let of = Type::new(&schema, &of);

    assert!(equal(of, &json!([{"cpu": "1"}]), &json!([{"cpu": "1000m"}])));
    assert!(!equal(of, &json!([{"plain": "1"}]), &json!([{"plain": "1000m"}])));
    assert!(!equal(of, &json!([{"cpu": "1"}]), &json!([{"cpu": "1"}, {"cpu": "1"}])));
    assert!(!equal(of, &json!([{"cpu": "1"}]), &json!([{"gpu": "1"}])));
}

#[test]
fn bytes_are_the_same_however_their_lines_are_broken() {
    assert!(check(Format::Bytes, &json!("aHVu\ndGVy"), &json!("aHVudGVy")));
    assert!(check(Format::Bytes, &json!("aHVu\r\ndGVy\n"), &json!("aHVudGVy")));
    assert!(!check(Format::Bytes, &json!("aHVu dGVy"), &json!("aHVudGVy")));
    assert!(!check(Format::Bytes, &json!("aHVudGVz"), &json!("aHVudGVy")));
}
