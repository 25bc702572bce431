//! The command, and what it says.

use std::{
    io::Write,
    process::{Child, Command, Stdio},
};

use serde_json::Value;

use crate::plan::stage::{Output, Stage, only};

impl Stage {
    /// Compares manifests that come on standard input, declared by the manager `ci`.
    pub(crate) fn diff(&self, manifests: &str, arguments: &[&str]) -> Output {
        self.diff_as("ci", manifests, arguments)
    }

    pub(crate) fn diff_as(&self, manager: &str, manifests: &str, arguments: &[&str]) -> Output {
        self.finish(self.diff_begun(manager, manifests, arguments))
    }

    pub(crate) fn diff_begun(&self, manager: &str, manifests: &str, arguments: &[&str]) -> Child {
        let mut child = Command::new(env!("CARGO_BIN_EXE_kausality"))
            .args(["diff", "-f", "-", "--manager", manager, "--kubeconfig"])
            .arg(self.kubeconfig())
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(manifests.as_bytes()).unwrap();
        child
    }

    /// The verdicts on the one object that is declared, drift or not, a line each: `takeover! spec.replicas 3 5
    /// kubectl`, with an exclamation mark for drift. The exit code must say the same.
    #[track_caller]
    pub(crate) fn verdicts(&self, manager: &str, manifest: &str, arguments: &[&str]) -> Vec<String> {
        let output = self.diff_as(manager, manifest, &[&["-o", "json", "--all"], arguments].concat());
        let document = output.json();
        let object = only(&document);
        let fields = object["fields"].as_array().unwrap();
        let has_drifted = fields.iter().any(|field| field["drift"] == true);
        assert_eq!(output.code, i32::from(has_drifted), "{document:#}");
        assert_eq!(object["state"], if has_drifted { "drift" } else { "clean" }, "{document:#}");
        fields.iter().map(line).collect()
    }
}

fn line(field: &Value) -> String {
    let value = |key: &str| field.get(key).map_or("-".to_owned(), Value::to_string);
    let owners = field["owners"].as_array().unwrap();
    let owners: Vec<&str> = owners.iter().map(|owner| owner["manager"].as_str().unwrap()).collect();
    let mark = if field["drift"] == true { "!" } else { "" };
    let words = [
        format!("{}{mark}", field["verdict"].as_str().unwrap()),
        field["path"].as_str().unwrap().to_owned(),
        value("declared"),
        value("live"),
        owners.join("+"),
    ];
    words.join(" ").trim_end().to_owned()
}
