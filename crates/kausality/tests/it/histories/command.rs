//! The commands, each run once for all the objects that a manager declares.

use std::{collections::BTreeSet, process::Command};

use kausality_testbed::ControlPlane;
use serde_json::{Value, json};

use crate::histories::Case;

/// Runs a command on all cases, manager by manager, and hands each case what is said of it.
pub(crate) fn on_all(
    plane: &ControlPlane,
    cases: &mut [Case],
    command: &str,
    arguments: &[&str],
    put: impl Fn(&mut Case, Value),
) {
    let managers: BTreeSet<String> = cases.iter().map(|case| case.history.manager.clone()).collect();
    for manager in managers {
        let mut of_manager: Vec<&mut Case> =
            cases.iter_mut().filter(|case| case.history.manager == manager).collect();
        let items: Vec<&Value> = of_manager.iter().map(|case| &case.history.manifest).collect();
        let file = plane.folder().join("manifests.json");
        std::fs::write(&file, json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string())
            .unwrap();
        let output = Command::new(env!("CARGO_BIN_EXE_kausality"))
            .args([command, "-o", "json", "-n", "default", "--manager", &manager, "--kubeconfig"])
            .arg(plane.kubeconfig())
            .arg("-f")
            .arg(&file)
            .args(arguments)
            .output()
            .unwrap();
        let document: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
        let objects = document["objects"].as_array().unwrap();
        assert_eq!(objects.len(), of_manager.len());
        for (case, object) in of_manager.iter_mut().zip(objects) {
            assert_eq!(object["name"], case.history.name.as_str(), "objects are not in order");
            put(case, object.clone());
        }
    }
}
