//! Faults of Ingresses and of HorizontalPodAutoscalers.

use serde_json::Value;

use crate::status::Cause;

/// Faults of the spec of an Ingress.
pub(super) fn ingress(spec: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let rules = spec["rules"].as_array().map(Vec::as_slice).unwrap_or_default();
    if rules.is_empty() && spec.get("defaultBackend").is_none() {
        causes.push(Cause::invalid("spec", spec, "either `defaultBackend` or `rules` must be specified"));
    }
    for (nth, rule) in rules.iter().enumerate() {
        let Some(http) = rule.get("http") else { continue };
        let at = format!("spec.rules[{nth}].http.paths");
        let paths = http["paths"].as_array().map(Vec::as_slice).unwrap_or_default();
        if paths.is_empty() {
            causes.push(Cause::required(&at, ""));
        }
        for (nth, path) in paths.iter().enumerate() {
            causes.extend(path_faults(path, &format!("{at}[{nth}]")));
        }
    }
    causes
}

fn path_faults(path: &Value, at: &str) -> Option<Cause> {
    let kind = path["pathType"].as_str().unwrap_or_default();
    let absolute = path["path"].as_str().unwrap_or_default().starts_with('/');
    match kind {
        "Exact" | "Prefix" if !absolute => {
            Some(Cause::invalid(format!("{at}.path"), &path["path"], "must be an absolute path"))
        }
        "Exact" | "Prefix" | "ImplementationSpecific" => None,
        "" => Some(Cause::required(format!("{at}.pathType"), "pathType must be specified")),
        _ => {
            let known = ["Exact", "ImplementationSpecific", "Prefix"].map(str::to_owned);
            Some(Cause::unsupported(format!("{at}.pathType"), &path["pathType"], &known))
        }
    }
}

/// Faults of the spec of a HorizontalPodAutoscaler.
pub(super) fn autoscaler(spec: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let (least, most) = (&spec["minReplicas"], &spec["maxReplicas"]);
    if least.as_i64().is_some_and(|least| least < 1) {
        causes.push(Cause::invalid("spec.minReplicas", least, "must be greater than or equal to 1"));
    }
    let number = most.as_i64().unwrap_or(0);
    if number < 1 {
        causes.push(Cause::invalid("spec.maxReplicas", most, "must be greater than 0"));
    }
    if least.as_i64().is_some_and(|least| number < least) {
        let why = "must be greater than or equal to `minReplicas`";
        causes.push(Cause::invalid("spec.maxReplicas", most, why));
    }
    for key in ["kind", "name"] {
        if spec["scaleTargetRef"][key].as_str().unwrap_or_default().is_empty() {
            causes.push(Cause::required(format!("spec.scaleTargetRef.{key}"), ""));
        }
    }
    causes
}
