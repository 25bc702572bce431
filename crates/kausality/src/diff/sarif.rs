//! Verdicts as SARIF 2.1.0, which code scanning reads.

use kausality_fields::verdict::{Class, Finding};
use serde_json::{Value, json};

use super::compare::{Compared, Outcome, matters, meaning};

const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";

/// What can be said of an object or a field, and what it means.
const RULES: [(&str, &str); 9] = [
    ("own-drift", "A field has another value than declared"),
    ("takeover", "Another manager owns a declared field"),
    ("release", "A field is owned but not declared any more"),
    ("fight", "Managers take a field from each other"),
    ("unknown", "The owner of a field cannot be told"),
    ("co-owned", "Several managers own a declared field"),
    ("unowned", "Nobody owns a declared field"),
    ("delegated", "A declared field is left to another manager"),
    ("missing", "A declared object does not exist"),
];

pub(super) fn document(compared: &[Compared]) -> Value {
    let rules = RULES.map(|(id, text)| json!({"id": id, "shortDescription": {"text": text}}));
    let results: Vec<Value> = compared.iter().flat_map(results).collect();
    let failures: Vec<Value> = compared
        .iter()
        .filter_map(|compared| match &compared.outcome {
            Outcome::Failed(why) => Some(json!({"level": "error", "locations": [location(compared)],
                "message": {"text": format!("{} cannot be compared: {why}", compared.title())}})),
            Outcome::Judged(_) | Outcome::Missing => None,
        })
        .collect();
    json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {"name": "kausality diff", "version": env!("CARGO_PKG_VERSION"), "rules": rules}},
            "invocations": [{"executionSuccessful": failures.is_empty(), "toolExecutionNotifications": failures}],
            "results": results,
        }],
    })
}

fn results(compared: &Compared) -> Vec<Value> {
    let result = |rule: &str, level: &str, text: String, path: Option<String>| {
        let mut location = location(compared);
        let name = path.map_or_else(|| compared.title(), |path| format!("{} {path}", compared.title()));
        location["logicalLocations"] = json!([{"fullyQualifiedName": name}]);
        json!({"ruleId": rule, "level": level, "message": {"text": text}, "locations": [location]})
    };
    if matches!(compared.outcome, Outcome::Missing) {
        return vec![result("missing", "error", format!("{} does not exist", compared.title()), None)];
    }
    let worth = compared.findings().iter().filter(|finding| finding.verdict.class() != Class::Clean);
    worth
        .map(|finding| {
            let level = if matters(finding) { "error" } else { "note" };
            let text = text(compared, finding);
            result(&finding.verdict.to_string(), level, text, Some(finding.path.to_string()))
        })
        .collect()
}

/// A verdict in one sentence.
pub(super) fn text(compared: &Compared, finding: &Finding) -> String {
    let value = |value: &Option<Value>| value.as_ref().map_or("nothing".to_owned(), Value::to_string);
    let owners: Vec<&str> = finding.owners.iter().map(|owner| owner.manager.as_str()).collect();
    let owners = if owners.is_empty() { "nobody".to_owned() } else { owners.join(", ") };
    format!(
        "{} {}: {}. Declared: {}; live: {}; owned by {owners}",
        compared.title(),
        finding.path,
        meaning(finding),
        value(&finding.declared),
        value(&finding.live),
    )
}

fn location(compared: &Compared) -> Value {
    json!({"physicalLocation": {"artifactLocation": {"uri": compared.file}}})
}
