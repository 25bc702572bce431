//! Live = replay: what Kausality noted about each request in the audit log is what `kausality replay` says of that log.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::Command;

use kausality_testbed::ControlPlane;
use serde_json::{Value, json};

/// Where the API server puts what Kausality notes.
const PREFIXES: [&str; 3] = ["drift.kausality.io/", "drift-plain.kausality.io/", "status.kausality.io/"];

/// Replays the audit log of a control plane, and fails unless each request that was reviewed has the same decision there.
/// `arguments` are those of the replay: what the webhook was started with.
#[track_caller]
pub(crate) fn check(plane: &ControlPlane, arguments: &[&str]) {
    let log = plane.folder().join("audit.log");
    let log = std::fs::read_to_string(log).unwrap();
    // The last line may be half written.
    let log = &log[..log.rfind('\n').map_or(0, |end| end + 1)];
    let file = plane.folder().join("replayed.audit.jsonl");
    std::fs::write(&file, log).unwrap();
    let rows = replay(file.to_str().unwrap(), arguments);

    let (mut compared, mut differing) = (0, String::new());
    for (line, text) in (1..).zip(log.lines()) {
        let event: Value = serde_json::from_str(text).unwrap();
        let Some(live) = Said::live(&event) else { continue };
        let replayed = rows.get(&line).map(Said::replayed);
        compared += 1;
        // Events stand in the order of answers. A write that changes no intent (a status, or nothing at all) may be answered
        // after a later one of the object, or after its deletion: then the log does not tell what it was compared with.
        let is_late = live.is_no_change() && replayed.as_ref().is_some_and(|it| it.decision == "unjudged");
        if !is_late && replayed.as_ref() != Some(&live) {
            let target = &event["objectRef"];
            writeln!(
                differing,
                "line {line}, {}: {} {} {}/{} {} by {}:\n    live   {live:?}\n    replay {replayed:?}\n    {}",
                event["requestReceivedTimestamp"],
                event["verb"],
                target["resource"],
                target["namespace"],
                target["name"],
                target["subresource"],
                event["impersonatedUser"].get("username").unwrap_or(&event["user"]["username"]),
                rows.get(&line).map_or(&Value::Null, |row| &row["message"]),
            )
            .unwrap();
        }
    }
    assert!(differing.is_empty(), "{compared} requests compared; these differ:\n{differing}");
    assert!(compared > 0, "nothing was reviewed");
}

/// The rows of a replay, by line.
fn replay(file: &str, arguments: &[&str]) -> BTreeMap<u64, Value> {
    let mut kausality = Command::new(env!("CARGO_BIN_EXE_kausality"));
    let output = kausality.args(["replay", "-o", "json", file]).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let rows = String::from_utf8(output.stdout).unwrap();
    let rows = rows.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    rows.map(|row| (row["line"].as_u64().unwrap(), row)).collect()
}

/// What was decided about a request.
#[derive(Debug, PartialEq)]
struct Said {
    /// The verdict.
    decision: Value,
    cause: Value,
    resolution: Value,
    mode: Value,
    phase: Value,
    trace: Vec<Value>,
}

impl Said {
    /// What the audit log tells. Nothing, if Kausality was not asked, or if nothing can be compared.
    fn live(event: &Value) -> Option<Self> {
        let noted = |key: &str| {
            let of = |prefix: &&str| event["annotations"].get(format!("{prefix}{key}")).cloned();
            PREFIXES.iter().find_map(of)
        };
        let decision = noted("decision")?;
        // Refused after Kausality was asked, mostly for a conflict: the log shows neither the object as it was sent nor what
        // it was compared with. The same holds for what Kausality denied.
        if event["responseStatus"]["code"].as_u64().is_none_or(|code| code >= 400) {
            return None;
        }
        let trace = noted("trace").and_then(|text| serde_json::from_str(text.as_str()?).ok());
        Some(Self {
            decision,
            cause: noted("cause").unwrap_or_default(),
            resolution: noted("resolution").unwrap_or_default(),
            mode: noted("mode").unwrap_or_default(),
            phase: noted("phase").unwrap_or_default(),
            trace: hops(&trace.unwrap_or_default()),
        })
    }

    /// Whether no intent was changed: there is no cause, and no trace.
    fn is_no_change(&self) -> bool {
        self.decision == "allow" && self.cause.is_null() && self.trace.is_empty()
    }

    fn replayed(row: &Value) -> Self {
        Self {
            decision: row["verdict"].clone(),
            cause: row["cause"].clone(),
            resolution: row["resolution"].clone(),
            mode: row["mode"].clone(),
            phase: row["phase"].clone(),
            trace: hops(&row["trace"]),
        }
    }
}

/// What hops say, except for what a log cannot tell: when Kausality was asked, under which uid, and the name of an object that
/// is being created, which may not have been made up yet.
fn hops(trace: &Value) -> Vec<Value> {
    let hops = trace.as_array().cloned().unwrap_or_default();
    let told = |hop: Value| {
        json!({
            "kind": hop["kind"], "user": hop["user"], "generation": hop["generation"], "drift": hop["drift"],
        })
    };
    hops.into_iter().map(told).collect()
}
