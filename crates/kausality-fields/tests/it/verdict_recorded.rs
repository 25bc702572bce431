//! Attribution of what a real API server asked about, against the users that it says made the requests.

use kausality_fields::attribution::{Owners, attribute, handovers};
use kausality_fields::{Redaction, intent};
use serde_json::Value;

fn reviews() -> impl Iterator<Item = Value> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/admission-reviews");
    let names = ["custom-resources", "deployment-lifecycle", "deployment-rollout", "drift-after-rollout"];
    names.into_iter().flat_map(move |name| {
        let text = std::fs::read_to_string(format!("{folder}/{name}.jsonl")).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<Value>>()
    })
}

fn managed(object: &Value) -> Option<String> {
    object.pointer("/metadata/managedFields").map(Value::to_string)
}

#[test]
fn the_writer_is_the_one_that_the_user_suggests() {
    let (mut told, mut seen) = (0, 0);
    for review in reviews() {
        let request = &review["request"];
        // A Scale has no managed fields of its own object, and a DELETE no new ones.
        if request["operation"] == "DELETE" || request["kind"]["kind"] == "Scale" {
            continue;
        }
        seen += 1;
        let [before, after] = ["oldObject", "object"].map(|name| managed(&request[name]));
        let attribution = attribute(before.as_deref(), after.as_deref()).unwrap();
        assert!(attribution.written.iter().all(|moved| moved.moves().is_ok()));
        let Some(manager) = attribution.manager() else {
            assert!(attribution.written.is_empty(), "{attribution:?}");
            continue;
        };
        told += 1;
        let user = request["userInfo"]["username"].as_str().unwrap();
        let is_controller = user.starts_with("system:serviceaccount:kube-system:");
        assert_eq!(manager == "kube-controller-manager", is_controller, "{user} as {manager}");

        // Whatever the request changed in the spec, and did not remove, somebody owns.
        if request["subResource"].as_str().unwrap_or_default().is_empty() {
            let old = Some(&request["oldObject"]).filter(|old| !old.is_null());
            let diff = intent(old, Some(&request["object"]), &Redaction::new("salt"));
            let paths = diff.changes.iter().filter(|change| change.new.is_some()).map(|change| &change.path);
            for handover in handovers(before.as_deref(), after.as_deref(), paths).unwrap() {
                let Owners::Of(owners) = &handover.after else { continue };
                assert!(owners.iter().any(|owner| owner.manager == manager), "{handover:?}");
            }
        }
    }
    println!("{told} of {seen} requests have a writer");
    assert!(told * 2 >= seen);
}
