use kausality_fields::schema::{GroupVersionKind, Kinds, structural};
use serde_json::json;

use super::*;

fn garden() -> Kinds {
    let spec = json!({"type": "object", "properties": {
        "beds": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["row"],
            "items": {"type": "object", "properties": {"row": {"type": "integer"}, "plant": {"type": "string"}}}},
        "path": {"type": "array", "items": {"type": "string"}}, "size": {"type": "integer"},
        "address": {"type": "string"}}});
    let definition = json!({"spec": {"group": "example.com", "names": {"kind": "Garden"}, "versions": [
        {"name": "v1", "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}}]}});
    structural::custom_resource(&definition).unwrap()
}

fn check(code: u16, message: &str, causes: &[(&str, &str)], kind: &str) -> String {
    let kinds = garden();
    let of = kinds.type_of(&GroupVersionKind::new("example.com/v1", "Garden")).unwrap();
    let object = |spec: Value| json!({"apiVersion": "example.com/v1", "kind": "Garden", "metadata": {"name": "g"}, "spec": spec});
    let mut live = object(json!({"size": 1, "path": ["p"], "address": "a",
        "beds": [{"row": 7, "plant": "old"}, {"row": 1, "plant": "rose"}]}));
    // The bed in row 7 goes: the API server counts without it.
    live["metadata"]["managedFields"] = json!([{"manager": "ci", "operation": "Apply",
        "apiVersion": "example.com/v1", "fieldsType": "FieldsV1",
        "fieldsV1": {"f:spec": {"f:beds": {"k:{\"row\":7}": {".": {}, "f:row": {}, "f:plant": {}}}}}}]);
    let manifest = object(json!({"size": 2, "path": ["p", "q"], "address": "b",
        "beds": [{"row": 1, "plant": "mint"}, {"row": 2}]}));
    let causes: Vec<Value> =
        causes.iter().map(|(field, message)| json!({"field": field, "message": message})).collect();
    let status = json!({"code": code, "message": message, "details": {"kind": kind, "causes": causes}});
    let status: Status = serde_json::from_value(status).unwrap();
    let object = Refused {
        live: Some(&live),
        manifest: &manifest,
        of: Some(Type::new(&kinds.schema, &of)),
        manager: "ci",
    };
    let line = |problem: Problem| {
        let field = problem.field.map(|field| format!(" {field}")).unwrap_or_default();
        let wanted = problem.wanted.iter().map(|(path, old, new)| {
            let text = |value: &Option<Value>| value.as_ref().map_or("-".to_owned(), ToString::to_string);
            format!("\n  {path}: {} → {}", text(old), text(new))
        });
        format!("{}{field}: {}{}", problem.why.as_str(), problem.message, wanted.collect::<String>())
    };
    explain(&status, object).into_iter().map(line).collect::<Vec<String>>().join("\n")
}

#[test]
fn what_cannot_change_is_shown_with_what_was_wanted() {
    let dump = r#"Invalid value: {"a":": b"}: field is immutable"#;
    insta::assert_snapshot!(check(422, "Garden g is invalid", &[("spec.beds", dump)], ""), @r#"
    Immutable spec.beds: cannot change: the object must be deleted and created again (field is immutable)
      spec.beds[row=1].plant: "rose" → "mint"
      spec.beds[row=2].row: - → 2
      spec.beds[row=7].plant: "old" → -
      spec.beds[row=7].row: 7 → -
    "#);
    // The API server complains of one field where another was meant.
    let refused = [("spec.addresses[0]", r#"Invalid value: ["b"]: may not change once set"#)];
    let text = check(422, "invalid", &refused, "");
    assert!(text.contains("spec.address: \"a\" → \"b\""), "{text}");
    let refused = "Forbidden: updates to statefulset spec for fields other than 'replicas' are forbidden";
    let text = check(422, "invalid", &[("spec", refused)], "");
    assert!(text.starts_with("Immutable spec: ") && text.contains("spec.size: 1 → 2"), "{text}");
}

#[test]
fn invalid_values_are_named_by_key() {
    let causes = [
        ("spec.beds[1].plant", "Required value: a bed needs one"),
        ("spec.path[1]", r#"Invalid value: "q": no"#),
        ("metadata.labels[a.b/c]", "Too long"),
        ("<nil>", "Invalid value: null: some validation rules were not checked"),
    ];
    insta::assert_snapshot!(check(422, "invalid", &causes, ""), @r#"
    Invalid spec.beds[row=2].plant: Required value: a bed needs one
    Invalid spec.path[1]: Invalid value: "q": no
    Invalid metadata.labels["a.b/c"]: Too long
    "#);
    let typed = "failed to create typed patch object (n/g; example.com/v1, Kind=Garden): errors:\n  \
        .spec.beds[row=2].plnt: field not declared in schema\n  .spec.size: expected numeric (int or float), got string";
    insta::assert_snapshot!(check(500, typed, &[], ""), @"
    Invalid spec.beds[row=2].plnt: field not declared in schema
    Invalid spec.size: expected numeric (int or float), got string
    ");
    let strict = r#"Garden in version "v1" cannot be handled as a Garden: strict decoding error: unknown field "spec.a", unknown field "spec.b""#;
    insta::assert_snapshot!(check(400, strict, &[], ""), @r#"
    Invalid: unknown field "spec.a"
    Invalid: unknown field "spec.b"
    "#);
}

#[test]
fn refusals_say_what_to_do() {
    for (code, message, kind, expected) in [
        (
            404,
            r#"namespaces "x" not found"#,
            "namespaces",
            r#"NamespaceNotFound: namespaces "x" not found, and the plan does not create it"#,
        ),
        (
            403,
            r#"gardens.example.com "g" is forbidden: User "bob" cannot patch resource "gardens" in API group "example.com" in the namespace "n""#,
            "gardens",
            "Forbidden: bob may not patch gardens.example.com in namespace n: a dry-run takes the same rights as the apply",
        ),
        (
            403,
            r#"namespaces "x" is forbidden: User "system:serviceaccount:a:b" cannot get resource "namespaces" in API group "" at the cluster scope"#,
            "namespaces",
            "Forbidden: system:serviceaccount:a:b may not get namespaces at the cluster scope: a plan compares with what is live",
        ),
        (
            400,
            r#"admission webhook "deny.example.com" denied the request: no gardens on Sundays"#,
            "",
            r#"Denied: admission webhook "deny.example.com" denied the request: no gardens on Sundays"#,
        ),
        (
            400,
            r#"admission webhook "old.example.com" does not support dry run"#,
            "",
            r#"NoDryRun: admission webhook "old.example.com" does not support dry run: it must declare sideEffects None or NoneOnDryRun, or leave such objects alone"#,
        ),
        (500, "etcd is away", "", "Failed: etcd is away"),
    ] {
        assert_eq!(check(code, message, &[], kind), expected);
    }
}
