//! `kausality replay` and `kausality why`, run as a person would, on recordings of a real cluster.

use std::{
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use serde_json::Value;

fn fixture(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/admission-reviews");
    folder.join(name).canonicalize().unwrap().display().to_string()
}

fn kausality(arguments: &[&str]) -> Output {
    kausality_with(arguments, b"")
}

fn kausality_with(arguments: &[&str], input: &[u8]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_kausality"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A child that has seen enough may close its end.
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn rows(arguments: &[&str]) -> Vec<Value> {
    let output = kausality(&[&["replay", "-o", "json"], arguments].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    stdout(&output).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn drift_lines(arguments: &[&str]) -> Vec<u64> {
    let drifts = rows(arguments).into_iter().filter(|row| row["cause"] == "Drift");
    drifts.map(|row| row["line"].as_u64().unwrap()).collect()
}

fn literal_rule() -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(
        b"apiVersion: kausality.io/v1alpha1\nkind: Kausality\nmetadata: {name: literal}\nspec:\n  mode: log\n  \
          settle: observedGeneration\n  resources:\n  - {apiGroups: [apps, batch, example.com], resources: ['*']}\n",
    )
    .unwrap();
    file
}

#[test]
fn drift_is_found_where_it_is_and_nowhere_else() {
    for (name, expected) in [
        ("custom-resources.jsonl", &[7, 8, 10, 17, 19][..]),
        ("drift-after-rollout.jsonl", &[19, 79]),
        ("deployment-rollout.jsonl", &[]),
        ("deployment-lifecycle.jsonl", &[]),
    ] {
        assert_eq!(drift_lines(&[&fixture(name)]), expected, "{name}");
        assert_eq!(drift_lines(&[&fixture(name), "--mode", "enforce"]), expected, "{name}, enforced");
    }
}

#[test]
fn the_literal_rule_takes_rollouts_for_drift() {
    let policy = literal_rule();
    let policy = policy.path().to_str().unwrap();
    for (name, expected) in [
        ("deployment-rollout.jsonl", &[54, 59, 79, 85, 91][..]),
        ("custom-resources.jsonl", &[7, 8, 10, 14, 17, 19]),
    ] {
        assert_eq!(drift_lines(&[&fixture(name), "--policy", policy]), expected, "{name}");
    }
}

#[test]
fn every_row_has_every_field() {
    let fields = [
        "file",
        "line",
        "uid",
        "operation",
        "kind",
        "namespace",
        "name",
        "subresource",
        "user",
        "class",
        "actor",
        "phase",
        "settled",
        "cause",
        "verdict",
        "resolution",
        "mode",
        "message",
        "trace",
    ];
    for row in rows(&[&fixture("custom-resources.jsonl")]) {
        for field in fields {
            assert!(row.get(field).is_some(), "{field} is missing in {row}");
        }
    }
}

#[test]
fn the_trace_of_a_rollout_starts_with_the_person() {
    let rows = rows(&[&fixture("deployment-rollout.jsonl")]);
    let hops = |line: u64| -> Vec<(String, String, i64)> {
        let row = rows.iter().find(|row| row["line"] == line).unwrap();
        let trace = row["trace"].as_array().unwrap().iter();
        trace
            .map(|hop| {
                let text = |field: &str| hop[field].as_str().unwrap().to_owned();
                (text("user"), text("kind"), hop["generation"].as_i64().unwrap())
            })
            .collect()
    };
    let controller = "system:serviceaccount:kube-system:deployment-controller";
    // The ReplicaSet of the rolling update, and later steps of it.
    let hop = |user: &str, kind: &str, generation| (user.to_owned(), kind.to_owned(), generation);
    assert_eq!(hops(32), [hop("admin", "Deployment", 2), hop(controller, "ReplicaSet", 1)]);
    assert_eq!(hops(54), [hop("admin", "Deployment", 2), hop(controller, "ReplicaSet", 3)]);
    let pods = "system:serviceaccount:kube-system:replicaset-controller";
    assert_eq!(
        hops(53),
        [hop("admin", "Deployment", 2), hop(controller, "ReplicaSet", 2), hop(pods, "Pod", 1)]
    );
}

#[test]
fn the_trace_carries_the_ticket_of_its_origin() {
    let rows = rows(&[&fixture("custom-resources.jsonl")]);
    let row = rows.iter().find(|row| row["line"] == 12).unwrap();
    let origin = &row["trace"][0];
    assert_eq!(origin["user"], "alice@example.com");
    assert_eq!(origin["generation"], 2);
    assert_eq!(origin["labels"]["ticket"], "INFRA-7");
    assert_eq!(row["trace"].as_array().unwrap().len(), 2);
    assert_eq!(row["trace"][1]["labels"], Value::Null);
}

/// The generation of every hop is the one that the object had in the next review that shows it.
#[test]
fn hop_generations_are_the_ones_that_objects_got() {
    for name in ["custom-resources.jsonl", "drift-after-rollout.jsonl", "deployment-rollout.jsonl"] {
        let reviews: Vec<Value> = std::fs::read_to_string(fixture(name))
            .unwrap()
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let mut checked = 0;
        for row in rows(&[&fixture(name)]) {
            let line = row["line"].as_u64().unwrap() as usize;
            let own = &reviews[line - 1]["request"];
            let conflicts = own["object"]["metadata"]["resourceVersion"]
                != own["oldObject"]["metadata"]["resourceVersion"];
            if row["operation"] != "UPDATE" || row["trace"].is_null() || conflicts {
                continue;
            }
            let next = reviews[line..].iter().map(|review| &review["request"]).find(|next| {
                next["oldObject"]["metadata"]["uid"] == own["oldObject"]["metadata"]["uid"]
                    && next["oldObject"]["metadata"]["resourceVersion"]
                        != own["oldObject"]["metadata"]["resourceVersion"]
            });
            // A review is no proof of storage: the next one may show that nothing was written.
            let Some(next) = next.filter(|next| next["oldObject"]["spec"] == own["object"]["spec"]) else {
                continue;
            };
            let got = &next["oldObject"]["metadata"]["generation"];
            let last = row["trace"].as_array().unwrap().last().unwrap();
            assert_eq!(&last["generation"], got, "{name}:{line}");
            checked += 1;
        }
        assert!(checked >= 3, "{name}: only {checked} hops could be checked");
    }
}

#[test]
fn the_table_is_golden() {
    let output = kausality(&["replay", &fixture("custom-resources.jsonl")]);
    insta::assert_snapshot!("replay-table", stdout(&output));
    let output =
        kausality(&["replay", &fixture("drift-after-rollout.jsonl"), "--only", "drift", "--mode", "enforce"]);
    insta::assert_snapshot!("replay-only-drift", stdout(&output));
}

/// What a policy would have allowed: how often each of its rules matched, those that never did among them.
#[test]
fn matches_of_rules_are_golden() {
    let policy = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../policies/kubernetes.yaml");
    let output = kausality(&[
        "replay",
        &fixture("drift-after-rollout.jsonl"),
        "--policy",
        policy.to_str().unwrap(),
        "--mode",
        "enforce",
        "--only",
        "drift",
    ]);
    insta::assert_snapshot!("replay-rules", stdout(&output));
}

/// A folder stands for the policies in it and below; the tests beside them are passed over.
#[test]
fn policies_can_be_given_as_a_folder() {
    let policies = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../policies");
    let recording = fixture("drift-after-rollout.jsonl");
    let output =
        kausality(&["replay", &recording, "--policy", policies.to_str().unwrap(), "--mode", "enforce"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let text = stdout(&output);
    let matched = |rule: &str| {
        let line = text.lines().find(|line| line.starts_with(&format!("ClusterApprovalPolicy/{rule} ")));
        line.and_then(|line| line.split_whitespace().last()).unwrap_or("none").to_owned()
    };
    assert_eq!(matched("kausality-kubernetes rules[1]"), "1", "{text}");
    assert_eq!(matched("kausality-flux rules[0]"), "0", "{text}");
    let recordings = Path::new(&recording).parent().unwrap();
    let output = kausality(&["replay", &recording, "--policy", recordings.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("holds no policy in files ending in .yaml"), "{}", stderr(&output));
}

#[test]
fn why_is_golden() {
    for (name, line, golden) in [
        ("custom-resources.jsonl", "10", "why-drift"),
        ("drift-after-rollout.jsonl", "53", "why-expected"),
        ("drift-after-rollout.jsonl", "17", "why-status"),
        ("deployment-rollout.jsonl", "3", "why-unjudged"),
    ] {
        let output = kausality(&["why", &fixture(name), "--line", line]);
        assert!(output.status.success(), "{}", stderr(&output));
        insta::assert_snapshot!(golden, stdout(&output));
    }
    let output = kausality(&["why", &fixture("custom-resources.jsonl"), "--line", "10", "-o", "json"]);
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(json["steps"].as_array().unwrap().iter().any(|step| step["rule"] == "settled"));
    let output = kausality(&["why", &fixture("custom-resources.jsonl"), "--line", "400"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("no request starts on line 400"), "{}", stderr(&output));
}

#[test]
fn exit_codes_tell_what_was_found() {
    let custom = fixture("custom-resources.jsonl");
    let clean = fixture("deployment-lifecycle.jsonl");
    for (arguments, code) in [
        (&[custom.as_str()][..], 0),
        (&[&custom, "--fail-on", "drift"], 1),
        (&[&clean, "--fail-on", "drift"], 0),
        (&[&custom, "--fail-on", "deny"], 0),
        (&[&custom, "--fail-on", "deny", "--mode", "enforce"], 1),
        (&["/does/not/exist"], 2),
        (&["--mode", "sometimes", &custom], 2),
        (&[&custom, "--policy", &custom], 2),
        (&["-"], 2),
    ] {
        let output = kausality(&[&["replay"], arguments].concat());
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", stderr(&output));
    }
}

#[test]
fn files_continue_one_another() {
    // The Job whose Pods the second recording deletes was created in the first.
    let both = [&*fixture("deployment-lifecycle.jsonl"), &*fixture("deployment-rollout.jsonl")];
    let alone = rows(&both[1..]).into_iter().filter(|row| row["verdict"] == "unjudged").count();
    let together = rows(&both).into_iter().filter(|row| row["verdict"] == "unjudged").count();
    assert_eq!((alone, together), (1, 0));
}

#[test]
fn standard_input_and_pretty_documents_are_read() {
    let text = std::fs::read_to_string(fixture("custom-resources.jsonl")).unwrap();
    let reviews: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let pretty: String = reviews.iter().map(|it| serde_json::to_string_pretty(it).unwrap() + "\n").collect();
    let list = serde_json::json!({"apiVersion": "v1", "kind": "List", "items": reviews}).to_string();
    let array = serde_json::to_string(&reviews).unwrap();
    for input in [&text, &pretty, &list, &array] {
        let output = kausality_with(&["replay", "-", "-o", "json", "--only", "drift"], input.as_bytes());
        assert_eq!(stdout(&output).lines().count(), 5, "{}", stderr(&output));
    }
}

/// What is broken is named with its line, and costs nothing else.
#[test]
fn bad_lines_are_named_and_skipped() {
    let good = std::fs::read_to_string(fixture("custom-resources.jsonl")).unwrap();
    let first = good.lines().next().unwrap();
    let truncated = &first[..first.len() / 2];
    let deep = |levels: usize| {
        let nest = format!("{}1{}", "{\"a\":".repeat(levels), "}".repeat(levels));
        first.replace(r#""size":3"#, &format!(r#""size":{nest}"#))
    };
    let annotated = |value: &str| first.replace("INFRA-7", value);
    for (name, line, bad) in [
        ("truncated", truncated.to_owned().into_bytes(), true),
        ("100 levels", deep(100).into_bytes(), false),
        ("100,000 levels", deep(100_000).into_bytes(), false),
        ("100,000 open brackets", "[".repeat(100_000).into_bytes(), true),
        ("invalid UTF-8", [&first.as_bytes()[..300], b"\xff\xfe", &first.as_bytes()[300..]].concat(), true),
        ("another kind", br#"{"apiVersion":"v1","kind":"Pod"}"#.to_vec(), true),
        ("no request", br#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}"#.to_vec(), true),
        ("a wrong type", first.replace(r#""name":"prod""#, r#""name":7"#).into_bytes(), true),
        ("not an object", b"42".to_vec(), true),
        ("10 MB", annotated(&"x".repeat(10 << 20)).into_bytes(), false),
        ("an absurd annotation", annotated(r"\u0000\ud83d\ude00}]]").into_bytes(), false),
        ("before 1970", first.replace("2026-11-15T08:40:07Z", "1901-01-01T00:00:00Z").into_bytes(), false),
        ("no time at all", first.replace("2026-11-15T08:40:07Z", "yesterday").into_bytes(), false),
    ] {
        let mut input = line.clone();
        input.extend(b"\n");
        input.extend(good.as_bytes());
        let output = kausality_with(&["replay", "-", "-o", "json", "--only", "drift"], &input);
        assert!(output.status.success(), "{name}: {}", stderr(&output));
        assert_eq!(stdout(&output).lines().count(), 5, "{name}: {}", stderr(&output));
        assert_eq!(stderr(&output).contains("-:1: skipped: "), bad, "{name}: {}", stderr(&output));
        let alone = kausality_with(&["replay", "-"], &line);
        assert_eq!(alone.status.code(), Some(if bad { 2 } else { 0 }), "{name}: {}", stderr(&alone));
    }
}

fn write(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path
}

#[test]
fn policies_set_the_mode() {
    let folder = tempfile::tempdir().unwrap();
    let policy = write(
        folder.path(),
        "policies.yaml",
        "apiVersion: kausality.io/v1alpha1\nkind: Kausality\nmetadata: {name: pools}\nspec:\n  mode: log\n  \
         resources: [{apiGroups: [example.com], resources: ['*']}]\n  \
         overrides: [{resources: [nodepools], mode: enforce}]\n",
    );
    let denied: Vec<u64> = rows(&[&fixture("custom-resources.jsonl"), "--policy", policy.to_str().unwrap()])
        .iter()
        .filter(|row| row["verdict"] == "deny")
        .map(|row| row["line"].as_u64().unwrap())
        .collect();
    assert_eq!(denied, [7, 10, 17]);
}

/// The audit log that the API server would have written beside a recording: every write with the object that it
/// led to, which is the one that the next review shows.
fn audit_log(name: &str, level: &str) -> String {
    let text = std::fs::read_to_string(fixture(name)).unwrap();
    let requests: Vec<Value> =
        text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["request"].take()).collect();
    let mut log = String::new();
    for (place, request) in requests.iter().enumerate() {
        let same = |other: &&Value| other["kind"] == request["kind"] && other["name"] == request["name"];
        let next = requests[place + 1..].iter().find(same).map(|next| &next["oldObject"]);
        let stored = next.filter(|next| !next.is_null()).unwrap_or(&request["object"]);
        let (verb, code, response) = match request["operation"].as_str().unwrap() {
            "CREATE" => ("create", 201, stored.clone()),
            "UPDATE" => ("patch", 200, stored.clone()),
            _ => (
                "delete",
                200,
                serde_json::json!({"kind": "Status", "apiVersion": "v1", "status": "Success"}),
            ),
        };
        let resource = &request["resource"];
        let event = serde_json::json!({
            "kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": level, "auditID": request["uid"],
            "stage": "ResponseComplete", "requestURI": "/", "verb": verb, "user": request["userInfo"],
            "objectRef": {
                "resource": resource["resource"], "apiGroup": resource["group"], "apiVersion": resource["version"],
                "namespace": request["namespace"], "name": request["name"], "subresource": request["subResource"],
            },
            "responseStatus": {"code": code},
            "responseObject": if level == "RequestResponse" { response } else { Value::Null },
            "requestReceivedTimestamp": "2026-11-15T08:40:07.123456Z",
        });
        let mut event = event;
        event["objectRef"].as_object_mut().unwrap().retain(|_, value| !value.is_null());
        log.push_str(&format!("{event}\n"));
    }
    log
}

#[test]
fn an_audit_log_shows_the_same_drifts() {
    let log = audit_log("custom-resources.jsonl", "RequestResponse");
    let output = kausality_with(&["replay", "-", "-o", "json", "--quiet-time", "0s"], log.as_bytes());
    let rows: Vec<Value> = stdout(&output).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let lines = |cause: &str| -> Vec<u64> {
        rows.iter().filter(|row| row["cause"] == cause).map(|row| row["line"].as_u64().unwrap()).collect()
    };
    assert_eq!(lines("Drift"), [7, 8, 10, 17, 19], "{}", stderr(&output));
    assert_eq!(lines("Cleanup"), [21]);
    let hop = &rows[11]["trace"][1];
    assert_eq!(
        (hop["generation"].as_i64(), hop["timestamp"].as_str()),
        (Some(6), Some("2026-11-15T08:40:07Z"))
    );
}

#[test]
fn an_audit_log_without_objects_cannot_be_judged() {
    let log = audit_log("custom-resources.jsonl", "Metadata");
    let output = kausality_with(&["replay", "-", "-o", "json"], log.as_bytes());
    let rows: Vec<Value> = stdout(&output).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    // Status updates are never judged, so nothing is missing of them.
    assert_eq!(rows.len(), 16);
    for row in rows {
        assert_eq!(row["verdict"], "unjudged");
        let message = row["message"].as_str().unwrap();
        assert!(message.contains("at level RequestResponse"), "{message}");
    }
}

#[test]
fn reads_failures_and_early_stages_of_an_audit_log_tell_nothing() {
    let log = audit_log("custom-resources.jsonl", "RequestResponse");
    for (from, to) in [("ResponseComplete", "RequestReceived"), ("\"code\":20", "\"code\":40")] {
        let output = kausality_with(&["replay", "-", "-o", "json"], log.replace(from, to).as_bytes());
        assert_eq!((output.status.code(), stdout(&output)), (Some(0), String::new()));
    }
    let first = log.lines().next().unwrap().replace("\"create\"", "\"list\"");
    let output = kausality_with(&["replay", "-", "-o", "json"], first.as_bytes());
    assert_eq!((output.status.code(), stdout(&output)), (Some(0), String::new()));
}

#[test]
fn the_audit_webhooks_lists_are_read() {
    // Items of an EventList do not say what they are.
    let log = audit_log("custom-resources.jsonl", "RequestResponse");
    let items: Vec<Value> = log
        .lines()
        .map(|line| {
            let mut event: Value = serde_json::from_str(line).unwrap();
            event.as_object_mut().unwrap().retain(|key, _| key != "kind" && key != "apiVersion");
            event
        })
        .collect();
    let list = serde_json::json!({"kind": "EventList", "apiVersion": "audit.k8s.io/v1", "items": items});
    let arguments = ["replay", "-", "-o", "json", "--only", "drift", "--quiet-time", "0s"];
    let output = kausality_with(&arguments, list.to_string().as_bytes());
    assert_eq!(stdout(&output).lines().count(), 5, "{}", stderr(&output));
}

#[test]
fn nobodys_name_moves_the_cursor() {
    let text = std::fs::read_to_string(fixture("custom-resources.jsonl")).unwrap();
    let hostile = text.replace("alice@example.com", r"\u001b[2Jalice\nFAKE");
    let table = kausality_with(&["replay", "-"], hostile.as_bytes());
    assert!(!stdout(&table).contains('\u{1b}'), "{}", stdout(&table));
    assert!(!stdout(&table).lines().any(|line| line.starts_with("FAKE")));
    let why = kausality_with(&["why", "-", "--line", "12"], hostile.as_bytes());
    assert!(!stdout(&why).contains('\u{1b}'), "{}", stdout(&why));
    let json = kausality_with(&["replay", "-", "-o", "json"], hostile.as_bytes());
    let first: Value = serde_json::from_str(stdout(&json).lines().next().unwrap()).unwrap();
    assert_eq!(first["user"], "\u{1b}[2Jalice\nFAKE", "programs get it as it is");
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let file = fixture("drift-after-rollout.jsonl");
    let binary = env!("CARGO_BIN_EXE_kausality");
    let script = format!(
        "set -o pipefail; for n in $(seq 40); do cat {file}; done | {binary} replay - -o json | head -1"
    );
    let output = Command::new("bash").args(["-c", &script]).output().unwrap();
    assert_eq!(stderr(&output), "");
    assert_eq!(stdout(&output).lines().count(), 1);
}
