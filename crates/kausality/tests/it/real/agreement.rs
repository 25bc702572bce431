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

    let events: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (mut compared, mut differing) = (0, String::new());
    for (line, event) in (1..).zip(&events) {
        let Some(live) = Said::live(event) else { continue };
        let replayed = rows.get(&line).map(Said::replayed);
        compared += 1;
        if replayed.as_ref() == Some(&live)
            || replayed
                .as_ref()
                .is_some_and(|it| it.may_be(&live) || it.is_of_another_moment(&live, event, &events))
        {
            continue;
        }
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
    assert!(differing.is_empty(), "{compared} requests compared; these differ:\n{differing}");
    assert!(compared > 0, "nothing was reviewed");
}

/// Whether an event tells of two decisions: another webhook has changed the object, and the API server has asked again. Of entries
/// with the same key it keeps the first.
fn is_asked_again(event: &Value) -> bool {
    let rounds = event["annotations"].as_object().into_iter().flatten();
    let mut again = rounds.filter(|(key, _)| key.starts_with("mutation.webhook.admission.k8s.io/round_1_"));
    again.any(|(_, what)| what.as_str().is_some_and(|what| what.contains(r#""configuration":"kausality""#)))
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
#[derive(Clone, Debug, PartialEq)]
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
        let decision = noted("decision").filter(|_| !is_asked_again(event))?;
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

    /// Whether it can be what was said live. Events stand in the order of answers. A write that changes no intent (a status, or
    /// nothing at all) may be answered after a later one of the object, or after its deletion: then the log does not tell
    /// what it was compared with. Nor does it tell how far the owner of something was gone that is cleaned up.
    fn may_be(&self, live: &Self) -> bool {
        let is_late = live.is_no_change() && self.decision == "unjudged";
        let is_clean_up =
            live.cause == "Cleanup" && self.cause == "Cleanup" && self.decision == live.decision;
        is_late || is_clean_up
    }

    /// Whether it differs in the trace alone, since what that begins with was being written at the same time.
    fn is_of_another_moment(&self, live: &Self, event: &Value, events: &[Value]) -> bool {
        let untraced = |said: &Self| Self { trace: Vec::new(), ..said.clone() };
        if untraced(self) != untraced(live) {
            return false;
        }
        let window = |event: &Value| {
            let at = |key: &str| event[key].as_str().unwrap_or_default().to_owned();
            (at("requestReceivedTimestamp"), at("stageTimestamp"))
        };
        let (begun, ended) = window(event);
        let kinds: Vec<String> = (live.trace.iter().chain(&self.trace))
            .filter_map(|hop| Some(hop["kind"].as_str()?.to_lowercase()))
            .collect();
        events.iter().any(|other| {
            let resource = other["objectRef"]["resource"].as_str().unwrap_or_default();
            let (other_begun, other_ended) = window(other);
            let is_write = matches!(other["verb"].as_str(), Some("create" | "update" | "patch" | "delete"));
            let is_other = other["objectRef"] != event["objectRef"] && is_write;
            is_other
                && kinds.iter().any(|kind| resource.starts_with(kind))
                && other_begun <= ended
                && begun <= other_ended
        })
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
