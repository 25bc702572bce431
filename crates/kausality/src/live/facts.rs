//! What Kausality keeps in annotations of objects: nobody declares it, and it changes with every write.

use kausality_api::annotation::SYSTEM;
use kausality_fields::{Path, Step};
use serde_json::Value;

/// Whether a field is an annotation that Kausality alone writes, on its own object or copied to another. One that a
/// manifest declares is shown like any other field: it does not belong there.
pub(crate) fn is_fact(path: &Path, manifest: &Value) -> bool {
    let [Step::Field(metadata), Step::Field(annotations), Step::Field(key)] = path.steps() else {
        return false;
    };
    metadata == "metadata" && annotations == "annotations" && is_undeclared(key, manifest)
}

/// An object without such annotations: what is compared without a type may differ as a whole map.
pub(crate) fn without_facts(mut object: Value, manifest: &Value) -> Value {
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return object };
    let annotations = metadata.get_mut("annotations").and_then(Value::as_object_mut);
    let is_emptied = annotations.is_some_and(|annotations| {
        let before = annotations.len();
        annotations.retain(|key, _| !is_undeclared(key, manifest));
        annotations.is_empty() && before > 0
    });
    if is_emptied {
        metadata.remove("annotations");
    }
    object
}

fn is_undeclared(key: &str, manifest: &Value) -> bool {
    let is_declared = || manifest.pointer("/metadata/annotations").is_some_and(|all| all.get(key).is_some());
    is_system(key) && !is_declared()
}

/// Facts carry the suffix of their object: `kausality.io/trace.k3v09fa`.
fn is_system(key: &str) -> bool {
    let is_suffix =
        |text: &str| text.len() == 7 && text.bytes().all(|it| it.is_ascii_lowercase() || it.is_ascii_digit());
    let name = key.rsplit_once('.').filter(|(_, suffix)| is_suffix(suffix)).map_or(key, |(name, _)| name);
    SYSTEM.contains(&name)
}

#[cfg(test)]
mod tests {
    use kausality_api::annotation::{Suffix, TRACE};
    use serde_json::json;

    use super::*;

    #[test]
    fn facts_are_told_from_what_people_write() {
        let check = |steps: &[&str], manifest: Value, expected: bool| {
            let path: Path = steps.iter().map(|step| Step::Field((*step).to_owned())).collect();
            assert_eq!(is_fact(&path, &manifest), expected, "{path}");
        };
        let annotation = |key: &str, manifest: Value, expected: bool| {
            check(&["metadata", "annotations", key], manifest, expected);
        };
        for fact in SYSTEM {
            annotation(&Suffix::of("apps", "Deployment", "a", "web").key(fact), json!({}), true);
            annotation(fact, json!({}), true);
            annotation(fact, json!({"metadata": {"annotations": {fact: "mine"}}}), false);
        }
        for other in
            ["kausality.io/mode", "kausality.io/freeze", "kausality.io/trace-ticket", "example.com/a"]
        {
            annotation(other, json!({}), false);
        }
        annotation("kausality.io/trace.Upper12", json!({}), false);
        check(&["metadata", "labels", TRACE], json!({}), false);
        check(&["metadata", "annotations"], json!({}), false);
    }

    #[test]
    fn an_object_without_facts_is_one_that_kausality_has_not_seen() {
        let fact = Suffix::of("apps", "Deployment", "a", "web").key(TRACE);
        let object = |annotations: Value| json!({"metadata": {"name": "web", "annotations": annotations}});
        let bare = json!({"metadata": {"name": "web"}});
        assert_eq!(without_facts(object(json!({&fact: "[]", TRACE: "[]"})), &json!({})), bare);
        let mine = object(json!({"a": "b", "kausality.io/mode": "log"}));
        assert_eq!(
            without_facts(object(json!({"a": "b", "kausality.io/mode": "log", &fact: "[]"})), &json!({})),
            mine
        );
        let declared = object(json!({&fact: "[]"}));
        for object in [declared.clone(), object(json!({})), bare, json!({}), json!("text")] {
            assert_eq!(without_facts(object.clone(), &declared), object);
        }
    }
}
