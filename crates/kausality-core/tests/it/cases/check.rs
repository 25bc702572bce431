//! Decides a case, and compares what comes with what was expected.

use std::fmt::Debug;

use kausality_core::{
    Decision, Review, decide,
    decision::{Effect, Verdict},
    explain::Rule,
    questions,
    settle::Settled,
};
use serde_json::{Value, json};

use crate::cases::{
    build::Built,
    case::{Case, Expect},
    entry,
    object::{Bases, key, stored_key, text},
};

/// What is wrong, and the explanation of the decision if anything is.
pub(crate) fn run(case: &Case, bases: &Bases) -> Vec<String> {
    let built = Built::new(case, bases);
    let text = built.review(None, case.request.dry_run);
    let (decision, asked) = judge(case, &built, &text);

    let mut check = Check { problems: Vec::new() };
    check.decision(&case.expect, &decision);
    if let Some(expected) = &case.expect.asks {
        check.same("asks", expected, &asked);
    }
    let object = patched(&built, &decision);
    check.annotations(&case.expect, &built, object.as_ref());
    check.trace(&case.expect, &decision, object.as_ref());
    check.effects(&case.expect, &built, &decision);
    check.invariants(&decision);
    check.problems.extend(entry::problems(&case.expect, &decision));
    check.secrets(&built, &decision);
    check.reinvocation(case, &built, &decision, object.as_ref());
    check.dry_run(case, &built, &decision);
    if !check.problems.is_empty() {
        check.problems.push("  explanation:".to_owned());
        check.problems.extend(steps(&decision).into_iter().map(|step| format!("    {step}")));
    }
    check.problems
}

fn judge(case: &Case, built: &Built, text: &str) -> (Decision, Vec<String>) {
    let review = Review::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{}: {error}", case.name));
    let asked = questions(&review.request, built.settings());
    let words = [
        ("parent", asked.parent.is_some()),
        ("scaled", asked.scaled.is_some()),
        ("namespace", asked.namespace.is_some()),
        ("authority", asked.authority),
    ];
    let words = words.into_iter().filter(|(_, asks)| *asks).map(|(word, _)| word.to_owned()).collect();
    (decide(&review, &built.facts(case, &asked)), words)
}

/// The object with the decision's patch; `None` if there is no object to patch.
fn patched(built: &Built, decision: &Decision) -> Option<Value> {
    let mut object = built.object.clone()?;
    let operations = serde_json::to_value(decision.patch.operations()).unwrap();
    let patch: json_patch::Patch = serde_json::from_value(operations).unwrap();
    json_patch::patch(&mut object, &patch)
        .unwrap_or_else(|error| panic!("the patch does not apply: {error}"));
    Some(object)
}

fn steps(decision: &Decision) -> Vec<String> {
    (decision.explanation.steps().iter())
        .map(|step| {
            let mark = if step.decided { "*" } else { " " };
            let evidence = step.evidence.iter().map(|piece| format!(" [{piece}]")).collect::<String>();
            format!("{mark}{}: {}{evidence}", step.rule, step.finding)
        })
        .collect()
}

struct Check {
    problems: Vec<String>,
}

impl Check {
    fn same<T: PartialEq + Debug + ?Sized>(&mut self, what: &str, expected: &T, actual: &T) {
        if expected != actual {
            self.problems.push(format!("  {what}: expected {expected:?}, came {actual:?}"));
        }
    }

    fn word(&mut self, what: &str, expected: Option<&String>, actual: Option<&str>) {
        if let Some(expected) = expected {
            self.same(what, expected.as_str(), actual.unwrap_or("none"));
        }
    }

    fn contains(&mut self, what: &str, expected: &str, actual: &str) {
        if !actual.contains(expected) {
            self.problems.push(format!("  {what}: expected it to contain {expected:?}, came {actual:?}"));
        }
    }

    fn decision(&mut self, expect: &Expect, decision: &Decision) {
        self.word("class", expect.class.as_ref(), Some(decision.class.as_str()));
        self.word("actor", expect.actor.as_ref(), decision.actor.map(|it| it.as_str()));
        self.word("phase", expect.phase.as_ref(), decision.phase.map(|it| it.as_str()));
        self.settled(expect.settled.as_deref(), decision.settled.as_ref());
        if let Some(expected) = expect.unjudged {
            self.same("unjudged", expected.to_string().as_str(), decision.unjudged.to_string().as_str());
        }
        self.word("cause", expect.cause.as_ref(), decision.cause.map(|it| it.as_str()));
        self.word("mode", expect.mode.as_ref(), decision.mode.map(|it| it.as_str()));
        self.word("resolution", expect.resolution.as_ref(), Some(decision.resolution.as_str()));
        self.word("verdict", expect.verdict.as_ref(), Some(decision.verdict.as_str()));
        self.word("rule", expect.rule.as_ref(), decision.explanation.deciding().map(|it| it.as_str()));
        self.denial(expect, decision);
        self.warnings(expect, decision);
        for (key, expected) in &expect.audit {
            let actual = decision.audit.get(key.as_str()).map_or("absent", String::as_str);
            self.same(&format!("audit {key}"), expected.as_str(), actual);
        }
        let steps = steps(decision).join("\n");
        for expected in &expect.explanation {
            self.contains("explanation", expected, &steps);
        }
    }

    fn settled(&mut self, expected: Option<&str>, actual: Option<&Settled>) {
        let Some(expected) = expected else { return };
        let actual = match actual {
            None => "none".to_owned(),
            Some(Settled::Marked) => "marked".to_owned(),
            Some(Settled::Steady) => "steady".to_owned(),
            Some(Settled::Observed) => "observed".to_owned(),
            Some(Settled::Quiet) => "quiet".to_owned(),
            Some(Settled::Unknown) => "unknown".to_owned(),
            Some(Settled::No(why) | Settled::Restless(why)) => format!("no: {why}"),
        };
        if expected.starts_with("no:") {
            self.contains("settled", expected, &actual);
        } else {
            self.same("settled", expected, &actual);
        }
    }

    fn denial(&mut self, expect: &Expect, decision: &Decision) {
        let denial = match &decision.verdict {
            Verdict::Deny(denial) => Some(denial),
            Verdict::Allow | Verdict::Warn => None,
        };
        if expect.code.is_some() {
            self.same("code", &expect.code, &denial.map(|denial| denial.code));
        }
        self.word("reason", expect.reason.as_ref(), denial.map(|denial| denial.reason));
        for expected in &expect.message {
            self.contains("message", expected, denial.map_or("", |denial| &denial.message));
        }
    }

    fn warnings(&mut self, expect: &Expect, decision: &Decision) {
        let Some(expected) = &expect.warnings else { return };
        if expected.len() != decision.warnings.len() {
            self.same("warnings", expected, &decision.warnings);
            return;
        }
        for (expected, actual) in expected.iter().zip(&decision.warnings) {
            self.contains("warning", expected, actual);
        }
    }

    fn annotations(&mut self, expect: &Expect, built: &Built, object: Option<&Value>) {
        let none = json!({});
        let object = object.unwrap_or(&none);
        for (name, expected) in &expect.annotations {
            let key = stored_key(name, object);
            let actual = object["metadata"]["annotations"].get(&key);
            let what = format!("annotation {key}");
            match expected.as_str() {
                Some("absent") => self.same(&what, &None, &actual),
                Some("present") if actual.is_some() => {}
                _ => {
                    let stored = built.old_object.as_ref().unwrap_or(&none);
                    let expected = text(name, expected, stored, &built.meaning);
                    self.same(
                        &what,
                        &Some(&expected),
                        &actual.map(|actual| timeless(&expected, actual)).as_ref(),
                    );
                }
            }
        }
    }

    fn trace(&mut self, expect: &Expect, decision: &Decision, object: Option<&Value>) {
        let trace = json!(decision.trace);
        let hops = trace.as_array().cloned().unwrap_or_default();
        if let Some(expected) = &expect.trace {
            if expected.len() != hops.len() {
                self.same("trace", &json!(expected), &json!(hops));
                return;
            }
            for (expected, hop) in expected.iter().zip(&hops) {
                let expected = match expected {
                    Value::String(user) => json!({"user": user}),
                    other => other.clone(),
                };
                self.part("hop", &expected, hop);
            }
        }
        // What the decision says is what the object carries.
        let written =
            object.and_then(|object| object["metadata"]["annotations"][stored_key("trace", object)].as_str());
        if let (true, Some(written)) = (decision.trace.is_some() && !decision.patch.is_empty(), written) {
            let written: Value = serde_json::from_str(written).unwrap();
            self.same("the trace on the object", &trace, &written);
        }
    }

    /// Compares as far as `expected` goes; `absent` stands for a missing field.
    fn part(&mut self, what: &str, expected: &Value, actual: &Value) {
        match expected {
            Value::Object(fields) => {
                for (key, expected) in fields {
                    let what = format!("{what}.{key}");
                    match actual.get(key) {
                        None if expected == "absent" => {}
                        None => self.problems.push(format!("  {what}: expected {expected}, came nothing")),
                        Some(actual) => self.part(&what, expected, actual),
                    }
                }
            }
            _ => self.same(what, expected, &timeless(expected, actual)),
        }
    }

    fn effects(&mut self, expect: &Expect, built: &Built, decision: &Decision) {
        if let Some(patches) = &expect.patches {
            let actual: Vec<String> = decision.patch.annotations.keys().cloned().collect();
            let expected: Vec<String> = patches.iter().map(|name| key(name)).collect();
            self.same("patches", &expected, &actual);
        }
        let Some(expected) = &expect.effects else { return };
        let actual: Vec<Value> = decision.effects.iter().map(shown).collect();
        if expected.len() != actual.len() {
            self.same("effects", &json!(expected), &json!(actual));
            return;
        }
        for (expected, actual) in expected.iter().zip(&actual) {
            let expected = match expected {
                Value::String(word) => json!({word.as_str(): {}}),
                other => meant(other, built),
            };
            self.part("effect", &expected, actual);
        }
    }

    fn invariants(&mut self, decision: &Decision) {
        for key in decision.audit.keys() {
            if key.contains('/') {
                self.problems.push(format!("  audit key {key:?} contains a slash"));
            }
        }
        let class = decision.class.as_str();
        let gated =
            ["create", "update", "release", "adopt", "relabel", "delete", "evict", "scale"].contains(&class);
        // Who decides without the right to, or takes away what is frozen itself.
        let forbidden = matches!(decision.explanation.deciding(), Some(Rule::Authorization | Rule::Freeze));
        if !gated && !forbidden && !decision.verdict.is_allowed() {
            self.problems.push(format!("  a request of class {class} is denied"));
        }
        if !decision.verdict.is_allowed() && !decision.patch.is_empty() {
            self.problems.push("  a denial has a patch".to_owned());
        }
        let deciding = decision.explanation.steps().iter().filter(|step| step.decided).count();
        self.same("the number of rules that decided", &1, &deciding);
    }

    /// Whatever a decision holds may be shown, stored and sent.
    fn secrets(&mut self, built: &Built, decision: &Decision) {
        let shown = format!("{decision:?}");
        for object in [&built.old_object, &built.object].into_iter().flatten() {
            if object["kind"] != "Secret" {
                continue;
            }
            for value in object["data"].as_object().unwrap().values().filter_map(Value::as_str) {
                self.same(&format!("whether {value} shows"), &false, &shown.contains(value));
            }
        }
    }

    /// Other webhooks may change the object and make the API server ask again.
    fn reinvocation(&mut self, case: &Case, built: &Built, first: &Decision, object: Option<&Value>) {
        let Some(object) = object else {
            self.same("the patch of a request without object", &true, &first.patch.is_empty());
            return;
        };
        let text = built.review(Some(object), case.request.dry_run);
        let (again, _) = judge(case, built, &text);
        let patch = &again.patch.annotations;
        self.same("the patch on reinvocation", &Default::default(), patch);
        self.same("the cause on reinvocation", &first.cause, &again.cause);
        self.same("the resolution on reinvocation", &first.resolution, &again.resolution);
        self.same("the trace on reinvocation", &first.trace, &again.trace);
        // What the first decision took away cannot be warned of again.
        let lasting = |warning: &&String| {
            !warning.contains("a controller cannot change") && !warning.contains("on the new object")
        };
        let warnings = |decision: &Decision| -> Vec<String> {
            decision.warnings.iter().filter(lasting).cloned().collect()
        };
        self.same("the warnings on reinvocation", &warnings(first), &warnings(&again));
        if warnings(first) == first.warnings {
            self.same("the verdict on reinvocation", &first.verdict, &again.verdict);
        } else {
            let allowed = (first.verdict.is_allowed(), again.verdict.is_allowed());
            self.same("the verdict on reinvocation", &allowed.0, &allowed.1);
        }
    }

    fn dry_run(&mut self, case: &Case, built: &Built, wet: &Decision) {
        let (dry, _) = judge(case, built, &built.review(None, true));
        self.same("the verdict of a dry run", &wet.verdict, &dry.verdict);
        self.same("the patch of a dry run", &wet.patch, &dry.patch);
        self.same("the warnings of a dry run", &wet.warnings, &dry.warnings);
        self.same("the number of effects of a dry run", &0, &dry.effects.len());
    }
}

/// A mark without its time, where none is expected.
fn timeless(expected: &Value, actual: &Value) -> Value {
    match (expected.as_str(), actual.as_str().and_then(|actual| actual.split_once('@'))) {
        (Some(expected), Some((hash, _))) if expected == hash => hash.into(),
        _ => actual.clone(),
    }
}

/// An expected effect, with the annotations that its short forms stand for; `removed` is a removal.
fn meant(effect: &Value, built: &Built) -> Value {
    let mut effect = effect.clone();
    for details in effect.as_object_mut().unwrap().values_mut() {
        let Some(annotations) = details["annotations"].as_object() else { continue };
        let stored = built.old_object.clone().unwrap_or_default();
        let meant: serde_json::Map<String, Value> = (annotations.iter())
            .map(|(name, value)| match value.as_str() {
                Some("removed") => (key(name), Value::Null),
                _ => (key(name), text(name, value, &stored, &built.meaning)),
            })
            .collect();
        details["annotations"] = Value::Object(meant);
    }
    effect
}

/// An effect, as cases describe it.
fn shown(effect: &Effect) -> Value {
    let id = |id: &kausality_core::summary::ObjectId| id.to_string();
    match effect {
        Effect::ConsumeOnce { parent, uid, resource_version, approval, annotations, .. } => {
            json!({"consumeOnce": {
            "parent": id(parent), "uid": uid, "resourceVersion": resource_version, "approval": approval,
            "annotations": annotations}})
        }
        Effect::Report(drift) => json!({"report": {
            "id": drift.id(), "snoozed": drift.snoozed, "diff": drift.diff.to_string(),
            "spec": drift.report.spec}}),
        Effect::RecordStatus { object, uid, annotations, .. } => {
            json!({"recordStatus": {"object": id(object), "uid": uid, "annotations": annotations}})
        }
        Effect::RecordScale { object, uid, annotations, .. } => {
            json!({"recordScale": {"object": id(object), "uid": uid, "annotations": annotations}})
        }
    }
}
