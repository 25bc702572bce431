//! Whether the kinds of Kausality are installed, and are those that this version knows.

use kausality_api::crd;
use serde_json::Value;

use super::{
    finding::{Findings, Verdict},
    server::{Seen, list, text},
};

/// What to do about all of it.
const APPLY: &str =
    "kubectl apply --server-side -f deploy/crds (Helm leaves definitions alone in an upgrade)";

/// The names of the definitions that there should be.
pub(super) fn names() -> Vec<String> {
    crd::all().iter().map(|(_, wanted)| text(wanted, "/metadata/name").to_owned()).collect()
}

/// Judges the definitions that were found, in the order of [`names`].
pub(super) fn judge(seen: &[Seen]) -> Verdict {
    let mut findings = Findings::default();
    let mut served = Vec::new();
    for ((_, wanted), seen) in crd::all().iter().zip(seen) {
        let name = text(wanted, "/metadata/name");
        match seen {
            Seen::Found(found) => {
                compare(name, wanted, found, &mut findings);
                served.push(format!("{name}/{}", text(wanted, "/spec/versions/0/name")));
            }
            Seen::Absent => findings.fail(format!("{name} is not installed"), APPLY),
            Seen::Hidden(why) => return Verdict::Skipped(format!("{name} cannot be read: {why}")),
        }
    }
    findings.or_fine(format!("{} is served", served.join(", ")))
}

fn compare(name: &str, wanted: &Value, found: &Value, findings: &mut Findings) {
    for condition in list(found, "/status/conditions") {
        let is = |kind: &str, status: &str| condition["type"] == kind && condition["status"] == status;
        if is("Established", "False") || is("NamesAccepted", "False") {
            let (kind, message) = (text(condition, "/type"), text(condition, "/message"));
            findings.fail(
                format!("{name} is not served: it is not {kind} ({message})"),
                "delete what has the same names, or wait if it has just been installed",
            );
        }
    }
    for wanted in list(wanted, "/spec/versions") {
        let version = text(wanted, "/name");
        let versions = list(found, "/spec/versions");
        match versions.iter().find(|found| text(found, "/name") == version) {
            None => findings.fail(format!("{name} has no version {version}"), APPLY),
            Some(found) if found["served"] != true => {
                findings.fail(format!("version {version} of {name} is not served"), APPLY);
            }
            Some(found) if !same(&found["schema"], &wanted["schema"]) => findings.warn(
                format!("{name} is not the definition that this version of Kausality comes with"),
                format!("{APPLY}; or use a `kausality` of the version that is installed"),
            ),
            Some(_) => {}
        }
    }
}

/// Whether two documents say the same. Who reads and writes numbers may make 0.0 of 0.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one == other || one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(key, value)| other.get(key).is_some_and(|other| same(value, other)))
        }
        _ => one == other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::doctor::finding::Outcome;

    fn check(change: impl Fn(&mut Value), outcome: Outcome, said: &str) {
        let seen = crd::all().into_iter().map(|(_, mut definition)| {
            change(&mut definition);
            Seen::Found(definition)
        });
        let verdict = judge(&seen.collect::<Vec<_>>());
        assert_eq!(verdict.outcome(), outcome, "{verdict:?}");
        // What is said of one is said of all.
        assert!(format!("{verdict:?}").contains(said), "{said}: {verdict:?}");
    }

    #[test]
    fn definitions_are_there_and_served_and_ours() {
        check(|_| {}, Outcome::Ok, "kausalities.kausality.io/v1alpha1 is served");
        check(|crd| crd["spec"]["versions"][0]["name"] = json!("v1"), Outcome::Failed, "no version v1alpha1");
        check(|crd| crd["spec"]["versions"][0]["served"] = json!(false), Outcome::Failed, "is not served");
        check(
            |crd| crd["spec"]["versions"][0]["schema"] = json!({}),
            Outcome::Warning,
            "is not the definition",
        );
        let refused = json!([{"type": "NamesAccepted", "status": "False", "message": "taken"}]);
        check(|crd| crd["status"]["conditions"] = refused.clone(), Outcome::Failed, "taken");
        let accepted = json!([{"type": "Established", "status": "True"}]);
        check(|crd| crd["status"]["conditions"] = accepted.clone(), Outcome::Ok, "is served");
        let absent: Vec<Seen> = names().iter().map(|_| Seen::Absent).collect();
        assert_eq!(judge(&absent).outcome(), Outcome::Failed);
        let hidden: Vec<Seen> = names().iter().map(|_| Seen::Hidden("forbidden".to_owned())).collect();
        assert_eq!(judge(&hidden).outcome(), Outcome::Skipped);
    }

    #[test]
    fn numbers_are_compared_by_what_they_are() {
        let of = |minimum: Value| json!({"properties": {"a": {"minimum": minimum, "enum": ["x"]}}});
        assert!(same(&of(json!(0)), &of(json!(0.0))));
        assert!(!same(&of(json!(0)), &of(json!(1))));
        assert!(!same(&of(json!(0)), &json!({"properties": {}})));
    }
}
