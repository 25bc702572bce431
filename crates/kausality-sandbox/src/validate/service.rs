//! Faults of services.

use serde_json::{Value, json};

use super::names;
use crate::status::Cause;

/// Faults of the spec of a service.
pub(super) fn faults(spec: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let kind = spec["type"].as_str().unwrap_or_default();
    let headless = spec["clusterIP"] == "None";
    let ports = spec["ports"].as_array().map(Vec::as_slice).unwrap_or_default();
    if ports.is_empty() && kind != "ExternalName" && !headless {
        causes.push(Cause::required("spec.ports", ""));
    }
    let kinds = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
    if !kinds.contains(&kind) {
        causes.push(Cause::unsupported("spec.type", &spec["type"], &kinds.map(str::to_owned)));
    }
    if headless && ["LoadBalancer", "NodePort"].contains(&kind) {
        let why = format!("may not be set to 'None' for {kind} services");
        causes.push(Cause::invalid("spec.clusterIPs[0]", &json!("None"), &why));
    }
    if kind == "ExternalName" {
        let name = spec["externalName"].as_str().unwrap_or_default();
        if name.is_empty() {
            causes.push(Cause::required("spec.externalName", ""));
        }
        if spec["clusterIP"].as_str().is_some_and(|address| !address.is_empty()) {
            causes.push(Cause::forbidden("spec.clusterIPs", "may not be set for ExternalName services"));
        }
    }
    let affinities = ["ClientIP", "None"];
    if !affinities.iter().any(|affinity| spec["sessionAffinity"] == *affinity) {
        let known = affinities.map(str::to_owned);
        causes.push(Cause::unsupported("spec.sessionAffinity", &spec["sessionAffinity"], &known));
    }
    causes.extend(names::labels(&spec["selector"], "spec.selector"));
    for (nth, port) in ports.iter().enumerate() {
        self::port(port, ports, nth, &mut causes);
    }
    causes
}

fn port(port: &Value, all: &[Value], nth: usize, causes: &mut Vec<Cause>) {
    let at = format!("spec.ports[{nth}]");
    let before = all.get(..nth).unwrap_or_default();
    let name = port["name"].as_str().unwrap_or_default();
    if name.is_empty() {
        if all.len() > 1 {
            causes.push(Cause::required(format!("{at}.name"), ""));
        }
    } else if !names::is_label(name) {
        causes.push(Cause::invalid(format!("{at}.name"), &port["name"], names::LABEL));
    } else if before.iter().any(|other| other["name"] == name) {
        causes.push(Cause::duplicate(format!("{at}.name"), &port["name"]));
    }
    let in_range = |number: i64| (1..=65_535).contains(&number);
    let range = "must be between 1 and 65535, inclusive";
    if !port["port"].as_i64().is_some_and(in_range) {
        causes.push(Cause::invalid(format!("{at}.port"), &port["port"], range));
    }
    if port["targetPort"].as_i64().is_some_and(|number| !in_range(number)) {
        causes.push(Cause::invalid(format!("{at}.targetPort"), &port["targetPort"], range));
    }
    let protocols = ["SCTP", "TCP", "UDP"];
    if !protocols.iter().any(|protocol| port["protocol"] == *protocol) {
        let known = protocols.map(str::to_owned);
        causes.push(Cause::unsupported(format!("{at}.protocol"), &port["protocol"], &known));
    }
    if before.iter().any(|other| other["port"] == port["port"] && other["protocol"] == port["protocol"]) {
        let id = json!({"protocol": port["protocol"], "port": port["port"]});
        causes.push(Cause::duplicate(at, &id));
    }
}
