use kausality_fields::schema::{GroupVersionKind, Kinds, structural};
use serde_json::json;

use super::*;
use crate::{
    live::without_facts,
    plan::{
        planned::{Name, Planned},
        table,
    },
};

fn garden() -> Kinds {
    let spec = json!({"type": "object", "properties": {
        "beds": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["row"],
            "items": {"type": "object", "properties": {"row": {"type": "integer"}, "plant": {"type": "string"}}}},
        "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "path": {"type": "array", "items": {"type": "string"}},
        "size": {"type": "integer"}, "seen": {"type": "string"}, "note": {"type": "string", "nullable": true}}});
    let definition = json!({"spec": {"group": "example.com", "names": {"kind": "Garden"}, "versions": [
        {"name": "v1", "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}}]}});
    structural::custom_resource(&definition).unwrap()
}

/// An object with this spec, of which managers own these fields.
fn object(spec: Value, owners: &[(&str, Value)]) -> Value {
    let entries: Vec<Value> = owners
        .iter()
        .map(|(manager, fields)| {
            json!({"manager": manager, "operation": if manager.starts_with('u') { "Update" } else { "Apply" },
                "apiVersion": "example.com/v1", "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": fields}})
        })
        .collect();
    json!({"apiVersion": "example.com/v1", "kind": "Garden", "spec": spec,
        "metadata": {"name": "g", "namespace": "n", "uid": "random", "managedFields": entries}})
}

const NOW: &str = "2026-01-01T00:00:00Z";

fn find(typed: bool, live: Option<&Value>, answers: &[Value]) -> Vec<Field> {
    let kinds = garden();
    let of = kinds.type_of(&GroupVersionKind::new("example.com/v1", "Garden")).unwrap();
    let of = typed.then(|| Type::new(&kinds.schema, &of));
    let found = between(of, live, &answers[0], &answers[1..], NOW.parse().unwrap()).unwrap();
    assert_eq!(found.guessed, !typed);
    found.fields
}

fn shown(live: Option<&Value>, fields: Vec<Field>) -> String {
    let object = Name { kind: "Garden".to_owned(), name: "g".to_owned(), ..Name::default() };
    let mut out = anstream::StripStream::new(Vec::new());
    table::table(&mut out, &[Planned::foreseen(object, live.is_some(), fields)]).unwrap();
    let text = String::from_utf8(out.into_inner()).unwrap();
    let lines = text.lines().filter(|line| line.starts_with("  "));
    lines.collect::<Vec<&str>>().join("\n")
}

fn check(live: Option<&Value>, answers: &[Value]) -> String {
    shown(live, find(true, live, answers))
}

#[test]
fn values_and_owners_before_and_after() {
    let live = object(
        json!({"size": 1, "seen": "x", "tags": ["a", "b"], "path": ["p"],
            "beds": [{"row": 1, "plant": "rose"}, {"row": 2, "plant": "oak"}]}),
        &[
            (
                "ci",
                json!({"f:size": {}, "f:tags": {"v:\"a\"": {}}, "f:path": {},
                "f:beds": {"k:{\"row\":2}": {".": {}, "f:row": {}, "f:plant": {}}}}),
            ),
            (
                "user",
                json!({"f:seen": {}, "f:beds": {"k:{\"row\":1}": {".": {}, "f:row": {}, "f:plant": {}}}}),
            ),
        ],
    );
    let new = object(
        json!({"size": 2, "seen": "x", "tags": ["b", "c"], "path": ["p", "q"],
            "beds": [{"row": 1, "plant": "mint"}]}),
        &[
            (
                "ci",
                json!({"f:size": {}, "f:tags": {"v:\"c\"": {}}, "f:path": {}, "f:seen": {},
                "f:beds": {"k:{\"row\":1}": {".": {}, "f:row": {}, "f:plant": {}}}}),
            ),
            ("user", json!({"f:seen": {}, "f:beds": {"k:{\"row\":1}": {".": {}, "f:row": {}}}})),
        ],
    );
    insta::assert_snapshot!(check(Some(&live), &[new.clone(), new]), @r#"
      ~ spec.beds[row=1].plant  rose → mint        owner: user (update) → ci
      = spec.beds[row=1].row    1                  owner: user (update) → user (update) + ci
      - spec.beds[row=2].plant  oak                owner: ci → nobody
      - spec.beds[row=2].row    2                  owner: ci → nobody
      ~ spec.path               ["p"] → ["p","q"]  owner: ci
      = spec.seen               x                  owner: user (update) → user (update) + ci
      ~ spec.size               1 → 2              owner: ci
      - spec.tags["a"]          a                  owner: ci → nobody
      + spec.tags["c"]          c                  owner: ci
    "#);
}

#[test]
fn what_the_server_chooses_is_not_known() {
    let owners = [("ci", json!({"f:size": {}}))];
    let answer = |seen: &str| object(json!({"size": 1, "seen": seen, "note": "same"}), &owners);
    insta::assert_snapshot!(check(None, &[answer("a"), answer("b")]), @r"
      + spec.note  same
      + spec.seen  (known after apply)
      + spec.size  1                    owner: ci
    ");
    let live = answer("0");
    insta::assert_snapshot!(check(Some(&live), &[answer("a"), answer("b")]), @"  ~ spec.seen  \"0\" → (known after apply)");
    // Two dry-runs in one second write the same time.
    let now = answer("2026-01-01T00:00:02Z");
    insta::assert_snapshot!(check(Some(&live), &[now.clone(), now]), @"  ~ spec.seen  \"0\" → (known after apply)");
}

/// The API server's allocators answer dry-runs with placeholders.
#[test]
fn what_services_are_allocated_is_not_known() {
    let service = |cluster_ip: Value, owned: Value| {
        json!({"apiVersion": "v1", "kind": "Service", "spec": {"clusterIP": cluster_ip, "type": "ClusterIP"},
            "metadata": {"managedFields": [{"manager": "ci", "operation": "Apply", "apiVersion": "v1",
                "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": owned}}]}})
    };
    let found =
        |answer: Value| shown(None, between(None, None, &answer, &[], NOW.parse().unwrap()).unwrap().fields);
    insta::assert_snapshot!(found(service("10.0.0.0".into(), json!({"f:type": {}}))), @r"
      + spec.clusterIP  (known after apply)
      + spec.type       ClusterIP            owner: ci
    ");
    insta::assert_snapshot!(found(service("None".into(), json!({"f:clusterIP": {}, "f:type": {}}))), @r"
      + spec.clusterIP  None       owner: ci
      + spec.type       ClusterIP  owner: ci
    ");
}

/// Containers in another order are rolled out.
#[test]
fn another_order_of_items_is_a_change() {
    let spec = |rows: &[i64]| {
        let beds: Vec<Value> = rows.iter().map(|row| json!({"row": row})).collect();
        object(json!({"beds": beds, "tags": ["a"]}), &[])
    };
    let live = spec(&[1, 2, 3]);
    insta::assert_snapshot!(check(Some(&live), &[spec(&[3, 4, 1])]), @r"
      ~ spec.beds             [row=1] [row=3] → [row=3] [row=1]
      - spec.beds[row=2].row  2
      + spec.beds[row=4].row  4
    ");
    assert_eq!(check(Some(&live), &[spec(&[1, 2, 3])]), "");
}

#[test]
fn bookkeeping_is_no_change() {
    let mut live = object(json!({"size": 1}), &[("ci", json!({"f:size": {}}))]);
    live["metadata"]["generation"] = 3.into();
    live["metadata"]["resourceVersion"] = "7".into();
    live["metadata"]["managedFields"][0]["time"] = NOW.into();
    let mut new = object(json!({"size": 1.0, "note": null}), &[("ci", json!({"f:size": {}}))]);
    new["metadata"]["generation"] = 4.into();
    new["metadata"]["uid"] = "other".into();
    assert_eq!(check(Some(&live), &[new]), "");
}

#[test]
fn without_a_type_items_are_named_as_they_usually_are() {
    let live = object(json!({"containers": [{"name": "a", "image": "a:1"}]}), &[]);
    let new = object(json!({"containers": [{"name": "a", "image": "a:2"}, {"name": "b"}]}), &[]);
    insta::assert_snapshot!(shown(Some(&live), find(false, Some(&live), std::slice::from_ref(&new))), @r#"
      ~ spec.containers[name=a].image  a:1 → a:2
      + spec.containers[name=b]        {"name":"b"}
    "#);
    insta::assert_snapshot!(shown(None, find(false, None, &[new])), @r#"  + spec.containers  [{"image":"a:2","name":"a"},{"name":"b"}]"#);
}

/// Without a type, annotations are compared as a whole: what Kausality keeps there must be out before.
#[test]
fn facts_are_no_change_where_there_is_no_type() {
    let bare = object(json!({"size": 1}), &[]);
    let mut marked = bare.clone();
    marked["metadata"]["annotations"] = json!({"kausality.io/trace.k3v09fa": "[]"});
    let differ = |live: &Value, new: Value| !find(false, Some(live), &[new]).is_empty();
    assert!(differ(&bare, marked.clone()));
    assert!(!differ(&bare, without_facts(marked.clone(), &bare)));
    assert!(differ(&bare, without_facts(marked.clone(), &marked)), "declared");
}

#[test]
fn owners_that_make_no_sense_are_an_error() {
    let mut live = object(json!({}), &[]);
    live["metadata"]["managedFields"] = json!([{"manager": "x", "operation": "Dance"}]);
    let error = between(None, Some(&live), &live, &[], NOW.parse().unwrap()).unwrap_err();
    assert!(error.to_string().contains("Apply or Update"), "{error}");
}
