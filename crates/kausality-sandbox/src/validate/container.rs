//! Faults of containers: their ports, and what is mounted into them.

use serde_json::{Value, json};

use super::names;
use crate::status::Cause;

const RANGE: &str = "must be between 1 and 65535, inclusive";

/// Faults of ports.
pub(super) fn ports(container: &Value, at: &str, causes: &mut Vec<Cause>) {
    let mut seen: Vec<&str> = Vec::new();
    for (nth, port) in container["ports"].as_array().into_iter().flatten().enumerate() {
        let at = format!("{at}.ports[{nth}]");
        for key in ["containerPort", "hostPort"] {
            // None at all is told of as missing, or is meant.
            let number = port[key].as_i64().filter(|number| *number != 0);
            if number.is_some_and(|number| !(1..=65_535).contains(&number)) {
                causes.push(Cause::invalid(format!("{at}.{key}"), &port[key], RANGE));
            }
        }
        let protocols = ["SCTP", "TCP", "UDP"];
        let protocol = port["protocol"].as_str().unwrap_or("TCP");
        if !protocols.contains(&protocol) {
            let known = protocols.map(str::to_owned);
            causes.push(Cause::unsupported(format!("{at}.protocol"), &port["protocol"], &known));
        }
        let name = port["name"].as_str().unwrap_or_default();
        if name.is_empty() {
            continue;
        }
        if !names::is_port(name) {
            let why =
                "must be at most 15 lower case alphanumeric characters or '-', with at least one letter";
            causes.push(Cause::invalid(format!("{at}.name"), &port["name"], why));
        } else if seen.contains(&name) {
            causes.push(Cause::duplicate(format!("{at}.name"), &port["name"]));
        }
        seen.push(name);
    }
}

/// Faults of mounts: they are of volumes that there are, each in a place of its own.
pub(super) fn mounts(container: &Value, volumes: &[&str], at: &str, causes: &mut Vec<Cause>) {
    let mut places: Vec<&str> = Vec::new();
    for (nth, mount) in container["volumeMounts"].as_array().into_iter().flatten().enumerate() {
        let at = format!("{at}.volumeMounts[{nth}]");
        let name = mount["name"].as_str().unwrap_or_default();
        if !volumes.contains(&name) {
            causes.push(Cause::not_found(format!("{at}.name"), &json!(name)));
        }
        let place = mount["mountPath"].as_str().unwrap_or_default();
        if place.is_empty() {
            causes.push(Cause::required(format!("{at}.mountPath"), ""));
        } else if places.contains(&place) {
            causes.push(Cause::invalid(format!("{at}.mountPath"), &mount["mountPath"], "must be unique"));
        }
        places.push(place);
    }
}

/// A word that must be one of some, where a default has been filled in.
pub(super) fn word(value: &Value, at: String, known: &[&str], causes: &mut Vec<Cause>) {
    if value.as_str().is_some_and(|word| !known.contains(&word)) {
        let known: Vec<_> = known.iter().map(|&word| word.to_owned()).collect();
        causes.push(Cause::unsupported(at, value, &known));
    }
}
