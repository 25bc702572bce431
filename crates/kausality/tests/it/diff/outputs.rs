//! What programs read, exit codes, and many objects.

use std::{fmt::Write, process::Command};

use serde_json::Value;

use crate::plan::stage::*;

const MANIFESTS: &str = "
{apiVersion: v1, kind: ConfigMap, metadata: {name: drifted}, data: {a: '1 < 2 & \"3\"', b: x}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: clean}, data: {a: x}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: missing}}
";

const NOT_SERVED: &str = "{apiVersion: example.com/v1, kind: Nothing, metadata: {name: nothing}}";

#[tokio::test(flavor = "multi_thread")]
async fn formats_are_as_they_were_and_exit_codes_are_kubectls() {
    let Some(stage) = stage().await else { return };
    let existing = MANIFESTS.rsplit_once("---").unwrap().0;
    stage.apply("ci", existing);
    let output = stage.diff(existing, &[]);
    assert_eq!((output.code, output.stdout.as_str()), (0, "2 objects: 2 as declared\n"));
    stage.apply("other", "{apiVersion: v1, kind: ConfigMap, metadata: {name: drifted}, data: {a: '2'}}");
    stage.must(&["patch", "configmap", "drifted", "--type=merge", "-p", r#"{"data":{"b":null}}"#]);

    let all = format!("{MANIFESTS}---\n{NOT_SERVED}");
    for (format, code) in [("table", 1), ("json", 1), ("sarif", 1), ("junit", 1)] {
        assert_eq!(stage.diff(MANIFESTS, &["-o", format]).code, code, "{format}");
        let output = stage.diff(&all, &["-o", format]);
        assert_eq!(output.code, 2, "{format}: {output:#?}");
        match format {
            "junit" => well_formed(&output.stdout),
            "table" => {}
            _ => {
                let document = output.json();
                if format == "sarif" {
                    let run = &document["runs"][0];
                    assert_eq!(document["version"], "2.1.0");
                    let rules: Vec<&Value> = run["tool"]["driver"]["rules"]
                        .as_array()
                        .unwrap()
                        .iter()
                        .map(|rule| &rule["id"])
                        .collect();
                    for result in run["results"].as_array().unwrap() {
                        assert!(rules.contains(&&result["ruleId"]), "{result:#}");
                    }
                    assert_eq!(run["invocations"][0]["executionSuccessful"], false);
                }
            }
        }
        insta::assert_snapshot!(format, without_times(&output.stdout));
    }

    // A version that is not served is no object that is missing.
    let old = "{apiVersion: apps/v1beta1, kind: Deployment, metadata: {name: d}}";
    let output = stage.diff(old, &[]);
    assert_eq!(output.code, 2, "{output:#?}");
    assert!(output.stdout.contains("does not serve Deployment in apps/v1beta1"), "{output:#?}");
    for (text, expected) in [("", "no objects found"), ("a: [", "not YAML"), ("kind: X", "no apiVersion")] {
        let output = stage.diff(text, &[]);
        assert!(output.code == 2 && output.stderr.contains(expected), "{output:#?}");
    }
}

/// The order is that of files, and of the objects in them.
#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_manifests_stay_in_order() {
    let Some(stage) = stage().await else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut applied = String::new();
    for nth in 0..200 {
        let map = |value: &str| {
            format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: m{nth}}}, data: {{k: {value}}}}}\n")
        };
        std::fs::write(folder.path().join(format!("{nth:03}.yaml")), map("x")).unwrap();
        // Every tenth is missing, and the one after it has drifted.
        match nth % 10 {
            0 => {}
            1 => writeln!(applied, "{}---", map("z")).unwrap(),
            _ => writeln!(applied, "{}---", map("x")).unwrap(),
        }
    }
    stage.apply("ci", &applied);
    let output = Command::new(env!("CARGO_BIN_EXE_kausality"))
        .args(["diff", "--manager", "ci", "-o", "json", "--kubeconfig"])
        .arg(stage.kubeconfig())
        .arg("-f")
        .arg(folder.path())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let states: Vec<(&str, &str)> = document["objects"]
        .as_array()
        .unwrap()
        .iter()
        .map(|object| (object["name"].as_str().unwrap(), object["state"].as_str().unwrap()))
        .collect();
    let names: Vec<String> = (0..200).map(|nth| format!("m{nth}")).collect();
    let state = |nth: usize| ["missing", "drift"].get(nth % 10).copied().unwrap_or("clean");
    let expected: Vec<(&str, &str)> =
        names.iter().enumerate().map(|(nth, name)| (name.as_str(), state(nth))).collect();
    assert_eq!(states, expected);
    assert_eq!(
        document["summary"],
        serde_json::json!({"drifted": 20, "missing": 20, "clean": 160, "failed": 0, "fields": 20})
    );
}

/// The text with the same time in place of any: `(update, 3s)`, `"time": "2026-11-15T13:40:27Z"`.
fn without_times(text: &str) -> String {
    let line = |line: &str| match line.split_once(r#""time": ""#) {
        Some((before, _)) => format!(r#"{before}"time": "TIME""#),
        None => {
            let age = |word: &str| match word.strip_suffix("s)").map(str::parse::<u32>) {
                Some(Ok(_)) => "AGE)".to_owned(),
                _ => word.to_owned(),
            };
            line.split(' ').map(age).collect::<Vec<String>>().join(" ")
        }
    };
    text.lines().map(line).collect::<Vec<String>>().join("\n")
}

/// Every element that is opened is closed, in order, and no text has a character that begins one.
fn well_formed(xml: &str) {
    let mut open: Vec<&str> = Vec::new();
    for part in xml.split('<').skip(1) {
        let (tag, text) = part.split_once('>').unwrap_or_else(|| panic!("<{part} is not closed: {xml}"));
        assert!(!text.contains('>'), "{text}");
        let name = tag.split([' ', '/', '?']).find(|name| !name.is_empty()).unwrap();
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name), "{xml}");
        } else if !(tag.ends_with('/') || tag.starts_with('?')) {
            open.push(name);
        }
    }
    assert!(open.is_empty(), "{open:?}: {xml}");
}
