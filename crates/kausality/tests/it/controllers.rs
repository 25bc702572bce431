//! Recordings of third-party controllers, labelled by hand: what is drift is found, and nothing else is reported.
//!
//! `drift`: nobody asked for it. `notDrift`: somebody did, or it belongs to something that somebody asked for.
//! `otherInput`: a person changed something else that the controller acts on; drift, unless that is known or declared as an input.
//! `housekeeping`: for curated policies. `selfWrite`: a controller completes the spec of the object that it reconciles.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

type Lines = BTreeSet<u64>;
type Labels = BTreeMap<String, Lines>;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/controllers")
}

fn labels(recording: &str) -> Labels {
    let text = std::fs::read_to_string(folder().join("labels.json")).unwrap();
    let mut all: BTreeMap<String, Labels> = serde_json::from_str(&text).unwrap();
    all.remove(recording).unwrap()
}

/// What a replay comes to, for people.
fn summary(recording: &str, arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_kausality"))
        .args(["replay", "--only", "drift"])
        .arg(folder().join(format!("{recording}.gz")))
        .args(arguments)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The decisions on a recording, by line.
fn replay(recording: &str, arguments: &[&str]) -> BTreeMap<u64, Value> {
    replay_file(&folder().join(format!("{recording}.gz")), arguments)
}

fn replay_file(path: &Path, arguments: &[&str]) -> BTreeMap<u64, Value> {
    let output = Command::new(env!("CARGO_BIN_EXE_kausality"))
        .args(["replay", "-o", "json"])
        .arg(path)
        .args(arguments)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let rows = String::from_utf8(output.stdout).unwrap();
    let rows = rows.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    rows.map(|row| (row["line"].as_u64().unwrap(), row)).collect()
}

/// Lines with these labels, or with none, if `labels` is empty.
fn labelled(all: &Labels, names: &[&str]) -> Lines {
    names.iter().filter_map(|name| all.get(*name)).flatten().copied().collect()
}

fn drifts(rows: &BTreeMap<u64, Value>) -> Lines {
    rows.iter().filter(|(_, row)| row["cause"] == "Drift").map(|(line, _)| *line).collect()
}

/// Says of each line what was decided.
fn told(rows: &BTreeMap<u64, Value>, lines: impl IntoIterator<Item = u64>) -> String {
    let tell = |line: u64| match rows.get(&line) {
        Some(row) => format!(
            "{line}: {} {} {} by {}: {} {} ({})\n",
            row["operation"],
            row["kind"],
            row["name"],
            row["user"],
            row["cause"],
            row["actor"],
            row["message"]
        ),
        None => format!("{line}: nothing\n"),
    };
    lines.into_iter().map(tell).collect()
}

/// A recording of an operator, with the field that names its ConfigMap called otherwise: nobody can tell what it names.
pub(super) fn unspelt(recording: &str) -> tempfile::NamedTempFile {
    let path = folder().join(format!("{recording}.gz"));
    let output = Command::new("gzip").args(["-dc"]).arg(path).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("configRef"));
    let file = tempfile::Builder::new().suffix(".jsonl").tempfile().unwrap();
    std::fs::write(file.path(), text.replace("configRef", "source")).unwrap();
    file
}

#[track_caller]
fn check(recording: &str, arguments: &[&str], input_is_declared: bool) {
    check_rows(recording, &replay(recording, arguments), input_is_declared);
}

#[track_caller]
fn check_rows(recording: &str, rows: &BTreeMap<u64, Value>, input_is_declared: bool) {
    let labels = labels(recording);
    let found = drifts(rows);
    let mut must = labelled(&labels, &["drift"]);
    let may = labelled(&labels, &["housekeeping"]);
    if !input_is_declared {
        must.extend(labelled(&labels, &["otherInput"]));
    }
    let missed = must.difference(&found).copied();
    let missed = told(rows, missed);
    let others: Lines =
        found.iter().filter(|line| !must.contains(line) && !may.contains(line)).copied().collect();
    let others = told(rows, others);
    assert!(missed.is_empty() && others.is_empty(), "{recording}: missed\n{missed}\nwrongly found\n{others}");
}

/// The policies that come with Kausality.
fn curated() -> String {
    folder().join("../../policies").display().to_string()
}

/// How the operators in the recordings work, as their users would declare it; with their inputs, or without.
fn operators(inputs: bool) -> tempfile::NamedTempFile {
    let text = std::fs::read_to_string(folder().join("operators.yaml")).unwrap();
    let text = if inputs { &text } else { text.split("  inputs:").next().unwrap() };
    let file = tempfile::Builder::new().suffix(".yaml").tempfile().unwrap();
    std::fs::write(file.path(), text).unwrap();
    file
}

#[test]
fn crossplane() {
    check("crossplane.jsonl", &[], true);
    let rows = replay("crossplane.jsonl", &[]);
    for line in labelled(&labels("crossplane.jsonl"), &["selfWrite"]) {
        assert_eq!(rows[&line]["cause"], "Expected", "{}", told(&rows, [line]));
    }
    let caused = rows.values().filter(|row| row["cause"] == "Expected" || row["cause"] == "Initialization");
    for row in caused.filter(|row| row["trace"][0]["drift"] != true) {
        assert_eq!(row["trace"][0]["user"], "alice@example.com", "{row}");
    }
}

#[test]
fn argo_rollouts() {
    check("argo-rollouts.audit.jsonl", &["--policy", &curated()], true);
}

#[test]
fn operators_with_and_without_inputs() {
    for recording in ["operator-eager.audit.jsonl", "operator-phase.audit.jsonl"] {
        let (unspelt, declared) = (unspelt(recording), operators(true));
        check_rows(recording, &replay_file(unspelt.path(), &[]), false);
        let with_policy = replay_file(unspelt.path(), &["--policy", declared.path().to_str().unwrap()]);
        // A ConfigMap that a custom resource names is an input, whatever policies say.
        for rows in [with_policy, replay(recording, &[])] {
            check_rows(recording, &rows, true);
            // All that is done for an input begins with who changed it, and not with who changed the parent before.
            for line in labelled(&labels(recording), &["otherInput"]) {
                let first = &rows[&line]["trace"][0];
                assert_eq!(
                    (&first["user"], &first["name"]),
                    (&"alice@example.com".into(), &"input".into()),
                    "{}",
                    rows[&line]
                );
            }
        }
    }
}

/// A policy says how a kind shows that it is settled, and replaces what is known of other kinds by it.
#[test]
fn a_policy_says_how_a_status_is_read() {
    let recording = "operator-phase.audit.jsonl";
    let policy = |settled: &str| {
        let text = format!(
            "apiVersion: kausality.io/v1alpha1\nkind: Kausality\nmetadata: {{name: p}}\nspec:\n  mode: log\n  \
            resources: [{{apiGroups: [truth.example.com], resources: [phaseapps]}}]\n  status: {{settled: {settled}}}\n"
        );
        let file = tempfile::Builder::new().suffix(".yaml").tempfile().unwrap();
        std::fs::write(file.path(), text).unwrap();
        file
    };
    let same = policy("{cel: object.status.phase == 'Running'}");
    check(recording, &["--policy", same.path().to_str().unwrap()], true);
    let other = policy("{phases: [Settled]}");
    let found = drifts(&replay(recording, &["--policy", other.path().to_str().unwrap()]));
    assert!(found.is_empty(), "{found:?}");
}

/// What a drift names as a hint: what somebody changed shortly before, unless it is declared as an input.
#[test]
fn drifts_hint_at_what_changed_before() {
    let recording = unspelt("operator-eager.audit.jsonl");
    let rows = replay_file(recording.path(), &[]);
    let hints = |line: u64| -> Vec<String> {
        let warnings = rows[&line]["warnings"].as_array().unwrap().iter();
        let warnings = warnings.map(|warning| warning.as_str().unwrap().to_owned());
        warnings.filter(|warning| warning.contains("shortly before")).collect()
    };
    for (line, when) in [(142, "created"), (184, "changed")] {
        let [hint] = &*hints(line) else { panic!("{:?}", rows[&line]) };
        let input = format!("ConfigMap rec-op-eagerapp/input {when} by alice@example.com 0.");
        assert!(hint.contains(&input) && hint.ends_with("s earlier (not declared as an input)"), "{hint}");
    }
    // A hand edit of a child is the drift itself, and nothing else changed in the last 30 seconds.
    assert_eq!(hints(281), Vec::<String>::new());
    let declared = operators(true);
    let rows = replay_file(recording.path(), &["--policy", declared.path().to_str().unwrap()]);
    let declared = rows.values().filter(|row| row["warnings"].to_string().contains("shortly before"));
    assert_eq!(declared.count(), 0);
}

/// An operator without any status cannot be judged, unless a policy says that quiet is enough.
#[test]
fn an_operator_without_status_takes_a_policy() {
    let recording = "operator-plain.audit.jsonl";
    assert!(drifts(&replay(recording, &[])).is_empty());
    let unjudged = "Cannot be judged without settle: quiet (or status.settled) in a policy: PlainApp (truth.example.com).";
    assert!(summary(recording, &[]).contains(unjudged));
    for inputs in [false, true] {
        let declared = operators(inputs);
        let arguments = ["--policy", declared.path().to_str().unwrap()];
        check(recording, &arguments, true);
        check_rows(recording, &replay_file(unspelt(recording).path(), &arguments), inputs);
        let told = summary(recording, &arguments);
        assert!(!told.contains("Cannot be judged"), "{told}");
    }
}

/// Kinds whose status tells when they are done are not among those that cannot be judged.
#[test]
fn kinds_that_tell_are_judged() {
    for recording in ["cert-manager.audit.jsonl", "operator-eager.audit.jsonl", "operator-phase.audit.jsonl"]
    {
        let told = summary(recording, &[]);
        assert!(!told.contains("Cannot be judged"), "{recording}: {told}");
    }
}

/// An AnalysisRun has a phase, and no status subresource: writes of its status cannot be told from others.
#[test]
fn a_kind_without_the_status_subresource_is_named() {
    let told = summary("argo-rollouts.audit.jsonl", &[]);
    let named = "Cannot be judged without settle: quiet (or status.settled) in a policy: AnalysisRun (argoproj.io).\n";
    assert!(told.contains(named), "{told}");
}

#[test]
fn cert_manager() {
    check("cert-manager.audit.jsonl", &[], true);
}

/// One user runs most of its controllers. A cluster is scaled, rolled out, repaired and edited by hand; another is made from a
/// class, which is edited, too.
#[test]
fn cluster_api() {
    let recording = "cluster-api.audit.jsonl";
    check(recording, &["--policy", &curated()], true);
    let rows = replay(recording, &[]);
    let labels = labels(recording);
    let found = drifts(&rows);
    let repaired = labelled(&labels, &["housekeeping"]);
    assert!(repaired.is_subset(&found), "{}", told(&rows, repaired.difference(&found).copied()));
    for line in labelled(&labels, &["selfWrite"]) {
        assert_eq!(rows[&line]["cause"], "Expected", "{}", told(&rows, [line]));
    }
    let caused = rows.values().filter(|row| row["cause"] == "Expected" || row["cause"] == "Initialization");
    let (mut by_people, mut by_drift) = (0, 0);
    // An adoption leaves the trace as it is.
    for row in caused.filter(|row| row["class"] != "adopt") {
        let first = &row["trace"][0];
        by_drift += usize::from(first["drift"] == true);
        by_people += usize::from(first["user"].as_str().unwrap().ends_with("@example.com"));
        assert!(first["drift"] == true || first["user"].as_str().unwrap().ends_with("@example.com"), "{row}");
    }
    assert_eq!((by_people, by_drift), (258, 57));
}

/// What is housekeeping is let pass by the policies that come with Kausality, where it is not expected anyway; and no drift is.
#[test]
fn curated_policies_let_housekeeping_pass_and_no_drift() {
    let policies = curated();
    let mut found = 0;
    for recording in ["argo-rollouts.audit.jsonl", "cert-manager.audit.jsonl"] {
        let labels = labels(recording);
        // Later, without the quiet time, housekeeping is drift, and policies are all that lets it pass.
        for arguments in
            [vec!["--policy", policies.as_str()], vec!["--policy", policies.as_str(), "--quiet-time", "0s"]]
        {
            let rows = replay(recording, &arguments);
            let drifts = drifts(&rows);
            let passed = |line: &u64| rows[line]["resolution"] == "policy";
            let housekeeping = labelled(&labels, &["housekeeping"]);
            let stopped = housekeeping.iter().filter(|line| drifts.contains(line) && !passed(line)).copied();
            let stopped = told(&rows, stopped);
            let excused = labelled(&labels, &["drift"]).into_iter().filter(|line| passed(line));
            let excused = told(&rows, excused);
            assert!(
                stopped.is_empty() && excused.is_empty(),
                "{recording} {arguments:?}: housekeeping that does not pass\n{stopped}\ndrift that does\n{excused}"
            );
            found += housekeeping.iter().filter(|line| passed(line)).count();
        }
    }
    assert!(found > 2, "policies were asked about {found} changes only");
}

/// What its operator makes of a person's monitor, rule or Secret begins with that person, also of two in short order.
#[test]
fn prometheus_operator() {
    let recording = "prometheus-operator.audit.jsonl";
    check(recording, &[], true);
    let (rows, labels) = (replay(recording, &[]), labels(recording));
    let origins = |label: &str| {
        let lines = labels[label].iter();
        let mut origins: Vec<_> = lines
            .map(|line| {
                let origin = &rows[line]["trace"][0];
                format!("{} {}", origin["user"].as_str().unwrap(), origin["kind"].as_str().unwrap())
            })
            .collect();
        origins.dedup();
        origins
    };
    assert_eq!(
        origins("notDrift"),
        ["alice Prometheus", "alice Alertmanager", "bob Prometheus", "bob Alertmanager"]
    );
    assert_eq!(
        origins("otherInput"),
        [
            "carol ServiceMonitor",
            "dave ServiceMonitor",
            "carol ServiceMonitor",
            "dave ServiceMonitor",
            "carol PrometheusRule",
            "dave PrometheusRule",
            "erin Secret",
            "frank ServiceMonitor",
            "frank PrometheusRule",
            "carol ServiceMonitor",
            "erin Secret",
        ]
    );
}

/// Without times, the quiet time has passed; with none asked for, what was found within it is found.
#[test]
fn the_quiet_time_is_what_keeps_eager_operators_from_being_caught() {
    let found = drifts(&replay("operator-eager.audit.jsonl", &["--quiet-time", "0s"]));
    let labels = labels("operator-eager.audit.jsonl");
    assert!(labels["notDrift"].iter().filter(|line| found.contains(line)).count() > 5, "{found:?}");
}
