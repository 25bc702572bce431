use super::*;
use crate::path::{Path, Step};
use crate::scalar::Scalar;
use std::borrow::Cow;

const NOON: &str = "2026-01-01T12:00:00Z";
const LATER: &str = "2026-01-01T12:00:01Z";

/// An entry as the API server writes it. An operation may be followed by a subresource: `Update/status`.
fn entry(manager: &str, operation: &str, time: &str, fields: &str) -> String {
    let (operation, subresource) = operation.split_once('/').unwrap_or((operation, ""));
    let subresource = match subresource {
        "" => String::new(),
        name => format!(r#","subresource":"{name}""#),
    };
    format!(
        r#"{{"manager":"{manager}","operation":"{operation}","apiVersion":"apps/v1","time":"{time}","fieldsType":"FieldsV1","fieldsV1":{fields}{subresource}}}"#
    )
}

fn list(entries: &[String]) -> String {
    format!("[{}]", entries.join(","))
}

/// What happened, one entry a line: `written helm +spec.replicas -spec.paused`.
fn check(before: &[String], after: &[String]) -> String {
    let (before, after) = (list(before), list(after));
    let attribution = attribute(Some(&before), Some(&after)).unwrap();
    let line = |(what, moved): (&str, &Moved)| {
        let moves = match moved.moves() {
            Ok(moves) => {
                let gained = moves.gained.iter().map(|path| format!(" +{path}"));
                gained.chain(moves.lost.iter().map(|path| format!(" -{path}"))).collect::<String>()
            }
            Err(error) => format!(" unknown: {error}"),
        };
        format!("{what} {}{moves}", moved.owner.manager)
    };
    let written = attribution.written.iter().map(|moved| ("written", moved));
    let reduced = attribution.reduced.iter().map(|moved| ("reduced", moved));
    written.chain(reduced).map(line).collect::<Vec<_>>().join("\n")
}

fn field(name: &str) -> Step {
    Step::Field(name.to_owned())
}

fn path(steps: &[Step]) -> Path {
    steps.iter().cloned().collect()
}

fn key(parts: &[(&'static str, Scalar)]) -> Step {
    Step::Key(parts.iter().map(|(name, value)| (Cow::Borrowed(*name), value.clone())).collect())
}

#[test]
fn nothing_changed() {
    assert!(attribute(None, None).unwrap().is_empty());
    // Not even looked at.
    assert!(attribute(Some("?"), Some("?")).unwrap().is_empty());
    let (a, b) = (entry("a", "Update", NOON, "{}"), entry("b", "Apply", NOON, "{}"));
    assert_eq!(check(&[a.clone(), b.clone()], &[b, a]), "");
}

#[test]
fn a_new_entry_is_written() {
    let helm = entry("helm", "Apply", NOON, r#"{"f:spec":{".":{},"f:replicas":{}}}"#);
    assert_eq!(check(&[], std::slice::from_ref(&helm)), "written helm +spec +spec.replicas");
    let text = list(std::slice::from_ref(&helm));
    assert_eq!(attribute(None, Some(&text)).unwrap().manager(), Some("helm"));
    assert_eq!(attribute(Some("null"), Some(&text)).unwrap().manager(), Some("helm"));
    assert_eq!(check(&[helm], &[]), "reduced helm -spec -spec.replicas");
}

#[test]
fn who_takes_writes_and_who_loses_does_not() {
    let before = entry("helm", "Apply", NOON, r#"{"f:spec":{"f:paused":{},"f:replicas":{}}}"#);
    let after = [
        entry("hpa", "Update/scale", LATER, r#"{"f:spec":{"f:replicas":{}}}"#),
        entry("helm", "Apply", NOON, r#"{"f:spec":{"f:paused":{}}}"#),
    ];
    assert_eq!(check(&[before], &after), "written hpa +spec.replicas\nreduced helm -spec.replicas");
}

/// The values changed, and what it owns is the same.
#[test]
fn another_time_is_a_write() {
    let before = entry("helm", "Apply", NOON, r#"{"f:spec":{"f:paused":{}}}"#);
    let after = entry("helm", "Apply", LATER, r#"{"f:spec":{"f:paused":{}}}"#);
    assert_eq!(check(&[before], &[after]), "written helm");
}

#[test]
fn entries_of_one_manager_are_told_apart() {
    let fields = r#"{"f:spec":{"f:x":{}}}"#;
    let operations = ["Apply", "Update", "Update/status"];
    let before: Vec<_> = operations.iter().map(|operation| entry("m", operation, NOON, fields)).collect();
    let mut after = before.clone();
    after[2] = entry("m", "Update/status", LATER, r#"{"f:spec":{"f:y":{}}}"#);
    assert_eq!(check(&before, &after), "written m +spec.y -spec.x");
    let (before, after) = (list(&before), list(&after));
    let attribution = attribute(Some(&before), Some(&after)).unwrap();
    assert_eq!(attribution.written[0].owner.subresource, "status");
}

#[test]
fn an_apply_is_the_same_entry_in_every_version() {
    let before = entry("m", "Apply", NOON, r#"{"f:spec":{"f:x":{}}}"#);
    let after = before.replace("apps/v1", "apps/v2").replace(NOON, LATER);
    assert_eq!(check(std::slice::from_ref(&before), &[after]), "written m");
    let before = before.replace("Apply", "Update");
    let after = before.replace("apps/v1", "apps/v2");
    assert_eq!(check(&[before], &[after]), "written m +spec.x\nreduced m -spec.x");
}

#[test]
fn nobody_writes_under_the_names_of_the_api_server() {
    let before = [
        entry("ancient-changes", "Update", NOON, r#"{"f:spec":{"f:a":{}}}"#),
        entry("old", "Update", NOON, r#"{"f:spec":{"f:b":{}}}"#),
    ];
    let after = [
        entry("ancient-changes", "Update", NOON, r#"{"f:spec":{"f:a":{},"f:b":{}}}"#),
        entry("new", "Update", LATER, r#"{"f:spec":{"f:c":{}}}"#),
    ];
    assert_eq!(check(&before, &after), "written new +spec.c\nreduced old -spec.b");
}

#[test]
fn only_what_differs_is_found() {
    let fields = |containers: &str| {
        format!(
            r#"{{"f:metadata":{{"f:labels":{{".":{{}},"f:a\"b":{{}}}}}},"f:spec":{{"f:containers":{{{containers}}},"f:z":{{}}}}}}"#
        )
    };
    let app = r#""k:{\"name\":\"app\"}":{".":{},"f:image":{},"f:name":{}}"#;
    let bare = r#""k:{\"name\":\"app\"}":{"f:image":{},"f:name":{}}"#;
    let proxy = r#""k:{\"name\":\"proxy\"}":{".":{},"f:name":{}}"#;
    let member = r#""v:\"x\"":{}"#;
    for (before, after, expected) in [
        (
            format!("{app},{proxy}"),
            app.to_owned(),
            " -spec.containers[name=proxy] -spec.containers[name=proxy].name",
        ),
        (
            proxy.to_owned(),
            format!("{app},{proxy}"),
            " +spec.containers[name=app] +spec.containers[name=app].image +spec.containers[name=app].name",
        ),
        (app.to_owned(), bare.to_owned(), " -spec.containers[name=app]"),
        (bare.to_owned(), app.to_owned(), " +spec.containers[name=app]"),
        (String::new(), member.to_owned(), " +spec.containers[\"x\"] -spec.containers"),
        (r#"".":{}"#.to_owned(), String::new(), ""),
        (format!("{app},{proxy}"), format!("{proxy}, {app}"), ""),
        (
            format!("{app},{app}"),
            format!("{proxy},{app},{app}"),
            " +spec.containers[name=proxy] +spec.containers[name=proxy].name",
        ),
        (r#""f:a":null"#.to_owned(), r#""f:a":{},"f:b":null"#.to_owned(), " +spec.containers.b"),
    ] {
        let [before, after] =
            [entry("m", "Update", NOON, &fields(&before)), entry("m", "Update", LATER, &fields(&after))];
        assert_eq!(check(&[before], &[after]), format!("written m{expected}"));
    }
}

#[test]
fn what_cannot_be_read_is_unknown() {
    let good = r#"{"f:spec":{"f:x":{}}}"#;
    for (bad, reason) in [
        (r#"{"f:spec":{"x:y":{}}}"#, "is of an unknown kind"),
        (r#"{"f:spec":{"k:{":{}}}"#, "is no step"),
        (r#"{"f:spec":[]}"#, "at spec"),
        (r#"{"spec":{}}"#, "is no step"),
        (r#"{"f:spec":7}"#, "at spec"),
        ("7", "expected an object of fields"),
    ] {
        for (before, after) in [(good, bad), (bad, good), ("{}", bad)] {
            let [before, after] = [entry("m", "Update", NOON, before), entry("m", "Update", LATER, after)];
            let shown = check(&[before], &[after]);
            assert!(shown.starts_with("written m unknown: ") && shown.contains(reason), "{bad}: {shown}");
        }
    }
    let deep = format!("{}{}", r#"{"f:a":"#.repeat(110), "{}".to_owned() + &"}".repeat(110));
    let deeper = deep.replacen("{}", r#"{"f:b":{}}"#, 1);
    let shown = check(&[entry("m", "Update", NOON, &deep)], &[entry("m", "Update", LATER, &deeper)]);
    assert!(shown.contains("nested deeper"), "{shown}");

    for bad in ["{}", "[7]", "[{}]", r#"[{"operation":"Update","fieldsType":"FieldsV2"}]"#, "", "["] {
        assert!(attribute(None, Some(bad)).is_err(), "{bad}");
        assert!(Claims::read(Some(bad)).is_err(), "{bad}");
    }
    let twice = [entry("m", "Update", NOON, good), entry("m", "Update", LATER, good)];
    let error = attribute(None, Some(&list(&twice))).unwrap_err();
    assert!(error.to_string().contains("more than once"), "{error}");
}

#[test]
fn a_megabyte_of_fields() {
    let fields = |name: &str| {
        let items = (0..12_000).map(|nth| {
            let image = if nth == 6_000 { name } else { "image" };
            format!(r#""k:{{\"name\":\"container-{nth:05}\"}}":{{".":{{}},"f:{image}":{{}},"f:name":{{}},"f:resources":{{}}}}"#)
        });
        format!(r#"{{"f:spec":{{"f:containers":{{{}}}}}}}"#, items.collect::<Vec<_>>().join(","))
    };
    let (before, after) =
        (entry("m", "Update", NOON, &fields("image")), entry("m", "Update", NOON, &fields("args")));
    assert!(before.len() > 1_000_000);
    let container = "spec.containers[name=container-06000]";
    assert_eq!(check(&[before], &[after]), format!("written m +{container}.args -{container}.image"));
}

fn names(owners: &Owners) -> String {
    let names =
        |owners: &[Owner]| owners.iter().map(|owner| owner.manager.clone()).collect::<Vec<_>>().join("+");
    match owners {
        Owners::Of(owners) => names(owners),
        Owners::Above { path, owners } => format!("{path}: {}", names(owners)),
        Owners::Unknown(_) => "?".to_owned(),
    }
}

#[test]
fn fields_are_handed_over() {
    let before = [
        entry("helm", "Apply", NOON, r#"{"f:spec":{"f:paused":{},"f:replicas":{}}}"#),
        entry("argo", "Apply", NOON, r#"{"f:spec":{"f:paused":{}}}"#),
    ];
    let after = [entry("hpa", "Update", LATER, r#"{"f:spec":{"f:replicas":{}}}"#), before[1].clone()];
    let paths = ["replicas", "paused", "other"].map(|name| path(&[field("spec"), field(name)]));
    let handed = handovers(Some(&list(&before)), Some(&list(&after)), &paths).unwrap();
    let shown: Vec<_> =
        handed.iter().map(|handover| (names(&handover.before), names(&handover.after))).collect();
    let expected = [("helm", "hpa"), ("argo+helm", "argo"), ("", "")];
    assert_eq!(shown, expected.map(|(before, after)| (before.to_owned(), after.to_owned())));
    // A change that adds or removes an object is one of all its parts.
    assert_eq!(
        names(&Claims::read(Some(&list(&before))).unwrap().owners(&path(&[field("spec")]))),
        "argo+helm"
    );
}

/// A diff is made without types. Its paths may name items in another way.
#[test]
fn items_are_found_by_whatever_their_keys_share() {
    let ports = r#"{"f:spec":{"f:selector":{},"f:ports":{
        "k:{\"port\":53,\"protocol\":\"TCP\"}":{".":{},"f:port":{}},
        "k:{\"port\":53,\"protocol\":\"UDP\"}":{".":{},"f:port":{}},
        "k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{},"f:port":{}}}},
        "f:metadata":{"f:ownerReferences":{".":{},"k:{\"uid\":\"1\"}":{}}}}"#;
    let claims = Claims::read(Some(&list(&[entry("helm", "Apply", NOON, ports)]))).unwrap();
    let owners = |steps: &[Step]| names(&claims.owners(&path(steps)));
    let port = |step: Step| owners(&[field("spec"), field("ports"), step, field("port")]);
    let text = |text: &str| Scalar::Text(text.to_owned());

    assert_eq!(port(key(&[("port", Scalar::Integer(53)), ("protocol", text("UDP"))])), "helm");
    assert_eq!(port(key(&[("protocol", text("UDP")), ("port", Scalar::Integer(53))])), "helm");
    assert_eq!(port(key(&[("port", Scalar::Integer(80))])), "helm");
    assert_eq!(port(key(&[("port", Scalar::Integer(80)), ("name", text("web"))])), "helm");
    assert_eq!(port(key(&[("port", Scalar::Integer(443))])), "");
    assert_eq!(port(key(&[("port", Scalar::Integer(53))])), "?");
    assert_eq!(port(key(&[("name", text("dns"))])), "?");
    assert_eq!(port(Step::Index(0)), "?");

    // What is owned as a whole, or nearest to what cannot be told.
    assert_eq!(owners(&[field("spec"), field("selector"), field("app")]), "spec.selector: helm");
    let reference = [field("metadata"), field("ownerReferences"), key(&[("name", text("x"))]), field("name")];
    assert_eq!(owners(&reference), "metadata.ownerReferences: helm");
}

#[test]
fn an_entry_that_cannot_be_read_may_own_anything() {
    let entries = [entry("a", "Apply", NOON, r#"{"f:x":{}}"#), entry("b", "Apply", NOON, r#"{"z:x":{}}"#)];
    let owners = Claims::read(Some(&list(&entries))).unwrap().owners(&path(&[field("x")]));
    let Owners::Unknown(reason) = owners else { panic!("{owners:?}") };
    assert!(reason.starts_with("\"b\" (Apply): the set of fields cannot be read"), "{reason}");
}

#[test]
fn an_attribution_is_plain_json() {
    let before = entry("helm", "Apply", NOON, r#"{"f:spec":{"f:x":{}}}"#);
    let after = [before.clone(), entry("hpa", "Update/scale", LATER, r#"{"f:spec":{"f:y":{}}}"#)];
    let (before, after) = (list(&[before]), list(&after));
    let attribution = attribute(Some(&before), Some(&after)).unwrap();
    assert_eq!(
        serde_json::to_value(attribution).unwrap(),
        serde_json::json!({"reduced": [], "written": [{"manager": "hpa", "operation": "Update", "subresource": "scale",
            "apiVersion": "apps/v1", "time": LATER, "gained": ["spec.y"], "lost": []}]})
    );
}
