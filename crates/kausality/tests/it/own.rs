//! `kausality own`, run as a person would.

use std::{
    io::Write,
    process::{Command, Stdio},
};

use serde_json::{Value, json};

/// What the command prints about an object, and whether it succeeded.
fn own(object: &Value, arguments: &[&str]) -> (bool, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_kausality"))
        .args(["own", "-f", "-"])
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(object.to_string().as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    (output.status.success(), text)
}

fn secret() -> Value {
    json!({"apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "s", "namespace": "shop", "uid": "u", "managedFields": [
            {"manager": "vault", "operation": "Update", "apiVersion": "v1", "time": "2020-01-01T00:00:00Z",
                "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {".": {}, "f:password": {}}, "f:type": {}}},
            {"manager": "person", "operation": "Apply", "apiVersion": "v1", "subresource": "status",
                "fieldsType": "FieldsV1", "fieldsV1": {"f:type": {}}}]},
        "data": {"password": "aHVudGVyMg=="}, "type": "Opaque"})
}

#[test]
fn every_field_has_its_owners_and_secrets_stay_secret() {
    let (done, text) = own(&secret(), &[]);
    assert!(done, "{text}");
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0], ["Secret", "shop/s"]);
    let age = lines.iter().find(|line| line[0] == "data").unwrap().last().unwrap().trim_end_matches("d)");
    assert!(age.parse::<u32>().unwrap() > 2000, "{text}");
    let of_type = lines.iter().find(|line| line[0] == "type").unwrap().join(" ");
    assert!(of_type.starts_with("type Opaque vault (update, "), "{text}");
    assert!(of_type.ends_with("+ person (apply status)"), "{text}");
    assert!(text.contains("redacted:") && !text.contains("aHVudGVyMg"), "{text}");
}

#[test]
fn programs_get_json_without_places_that_are_no_fields() {
    let (_, text) = own(&secret(), &["-o", "json", "--manager", "person"]);
    let document: Value = serde_json::from_str(&text).unwrap();
    let expected = json!({"apiVersion": "v1", "kind": "Secret", "namespace": "shop", "name": "s",
        "fields": [{"path": "type", "value": "Opaque", "owners": [
            {"manager": "vault", "operation": "Update", "subresource": "", "apiVersion": "v1", "time": "2020-01-01T00:00:00Z"},
            {"manager": "person", "operation": "Apply", "subresource": "status", "apiVersion": "v1", "time": null}]}]});
    assert_eq!(document, expected);
}

#[test]
fn faults_are_explained() {
    let mut bare = secret();
    bare["metadata"]["managedFields"].take();
    let mut broken = secret();
    broken["metadata"]["managedFields"][0]["fieldsV1"] = json!({"x:type": {}});
    for (object, arguments, expected) in [
        (&bare, &[][..], "--show-managed-fields"),
        (&broken, &[][..], "metadata.managedFields make no sense"),
        (&secret(), &["--manager", "nobody"][..], r#""nobody" owns nothing here"#),
        (&json!([]), &[][..], "no apiVersion"),
    ] {
        let (done, text) = own(object, arguments);
        assert!(!done && text.contains(expected), "{text}");
    }
}
