//! Random programs: requests that follow from a seed and from nothing else.

use serde_json::{Map, Value, json};

use crate::differential::kinds::{KINDS, Kind};
use crate::differential::random::Random;
use crate::differential::spoil::{junk, odd, spoil};

/// Requests in which `$ns` stands for the namespace of the program.
pub(crate) fn generate(seed: u64) -> Vec<Value> {
    let mut random = Random::new(seed);
    // Neighbouring seeds are about different kinds.
    let first = &KINDS[(seed % KINDS.len() as u64) as usize];
    let second = random.pick(&KINDS);
    let mut steps = vec![create(&mut random, first)];
    for _ in 0..8 + random.below(10) {
        let kind = if random.chance(75) { first } else { second };
        steps.push(step(&mut random, kind));
    }
    // Services need addresses, of which there are few.
    for kind in [first, second].into_iter().filter(|kind| kind.namespaced) {
        steps.push(json!({"do": format!("DELETE {}", kind.collection())}));
    }
    steps
}

fn step(random: &mut Random, kind: &Kind) -> Value {
    let mut step = match random.below(100) {
        0..16 => create(random, kind),
        16..30 => put(random, kind),
        30..43 => merge(random, kind, "application/merge-patch+json"),
        43..53 => merge(random, kind, "application/strategic-merge-patch+json"),
        53..63 => json_patch(random, kind),
        63..78 => apply(random, kind),
        78..85 => status(random, kind),
        85..88 => scale(random, kind),
        88..95 => delete(random, kind),
        _ => odd(random, kind),
    };
    if random.chance(3) {
        step["as"] = "alice".into();
    }
    step
}

/// Mostly the same object.
fn name(random: &mut Random) -> &'static str {
    if random.chance(75) { "a" } else { "b" }
}

/// The parameters of a write.
fn parameters(random: &mut Random) -> Vec<String> {
    let mut parameters = Vec::new();
    if random.chance(20) {
        parameters.push(format!("fieldManager={}", random.pick(&["alpha", "beta", "dif"])));
    }
    if random.chance(15) {
        parameters.push(format!("fieldValidation={}", random.pick(&["Strict", "Warn", "Ignore", "Loose"])));
    }
    if random.chance(6) {
        parameters.push(format!("dryRun={}", random.pick(&["All", "All", "Some"])));
    }
    parameters
}

fn url(method: &str, path: &str, parameters: &[String]) -> String {
    let mark = if parameters.is_empty() { "" } else { "?" };
    format!("{method} {path}{mark}{}", parameters.join("&"))
}

fn create(random: &mut Random, kind: &Kind) -> Value {
    let name = name(random);
    let mut object = kind.generate(random, name);
    if random.chance(8) {
        object["metadata"]["generateName"] = kind.name("gen-").into();
        if random.chance(80) {
            object["metadata"].as_object_mut().unwrap().remove("name");
        }
    }
    if let Some(status) = kind.status.filter(|_| random.chance(10)) {
        object["status"] = status(random);
    }
    perhaps_spoil(random, &mut object);
    json!({"do": url("POST", &kind.collection(), &parameters(random)), "body": object})
}

fn perhaps_spoil(random: &mut Random, object: &mut Value) {
    if random.chance(15) {
        spoil(random, object);
    }
}

fn put(random: &mut Random, kind: &Kind) -> Value {
    let name = name(random);
    let place = url("PUT", &kind.object(name), &parameters(random));
    let mut object = kind.generate(random, name);
    if random.chance(60) {
        // As somebody who has read the object.
        let mut edit = part(random, &object);
        perhaps_spoil(random, &mut edit);
        return json!({"do": place, "edit": edit});
    }
    match random.below(6) {
        0 => object["metadata"]["resourceVersion"] = "1".into(),
        1 => object["metadata"]["resourceVersion"] = "$version".into(),
        2 => object["metadata"]["uid"] = "$uid".into(),
        3 => object["metadata"]["uid"] = "22222222-2222-2222-2222-222222222222".into(),
        _ => {}
    }
    perhaps_spoil(random, &mut object);
    json!({"do": place, "body": object})
}

/// Some fields of an object.
fn part(random: &mut Random, of: &Value) -> Value {
    let Value::Object(fields) = of else { return of.clone() };
    let mut kept = Map::new();
    for (key, value) in fields {
        match random.below(100) {
            0..45 => {
                let value = if value.is_object() { part(random, value) } else { value.clone() };
                kept.insert(key.clone(), value);
            }
            45..51 => {
                kept.insert(key.clone(), Value::Null);
            }
            _ => {}
        }
    }
    Value::Object(kept)
}

fn change(random: &mut Random, kind: &Kind, name: &str) -> Value {
    let object = kind.generate(random, name);
    let mut change = part(random, &object);
    // What an object is, is seldom changed.
    for key in ["kind", "apiVersion"] {
        if !random.chance(5) {
            change.as_object_mut().unwrap().remove(key);
        }
    }
    change
}

fn merge(random: &mut Random, kind: &Kind, content: &str) -> Value {
    let name = name(random);
    let mut change = change(random, kind, name);
    if content.contains("strategic") {
        if random.chance(20) {
            directive(random, &mut change);
        }
        // A service that becomes another in this way has a field that nobody owns.
        if let Some(Value::Object(spec)) = change.get_mut("spec").filter(|_| kind.kind == "Service") {
            spec.remove("type");
        }
    }
    if random.chance(6) {
        change["metadata"]["resourceVersion"] = (*random.pick(&["1", "$version"])).into();
    }
    perhaps_spoil(random, &mut change);
    json!({"do": url("PATCH", &kind.object(name), &parameters(random)), "type": content, "body": change})
}

/// Puts a directive of strategic merge patches into an object that is always there: what it does to one that is not is
/// known to nobody.
fn directive(random: &mut Random, change: &mut Value) {
    let places = ["", "/metadata", "/spec", "/spec/template/spec"];
    let word = *random.pick(&["replace", "delete", "merge", "what"]);
    let place = *random.pick(&places);
    if let Some(Value::Object(fields)) = change.pointer_mut(place) {
        fields.insert("$patch".to_owned(), word.into());
    }
}

fn json_patch(random: &mut Random, kind: &Kind) -> Value {
    let name = name(random);
    let object = kind.generate(random, name);
    let mut places = Vec::new();
    places_of(&object, "", &mut places);
    let mut patch = Vec::new();
    for _ in 0..1 + random.below(2) {
        let (path, value) = random.pick(&places).clone();
        patch.push(match random.below(20) {
            0..7 => json!({"op": "replace", "path": path, "value": value}),
            7..12 => json!({"op": "add", "path": path, "value": value}),
            12..14 => json!({"op": "remove", "path": path}),
            14 => json!({"op": "test", "path": path, "value": value}),
            15 => json!({"op": "copy", "from": path, "path": random.pick(&places).0}),
            16 => json!({"op": "move", "from": path, "path": random.pick(&places).0}),
            17 => json!({"op": "add", "path": "/metadata/labels/new", "value": "x"}),
            18 => {
                json!({"op": random.pick(&["replace", "what", "add"]), "path": path, "value": junk(random)})
            }
            _ => json!({"op": "add", "path": format!("{path}/nowhere/deep"), "value": 1}),
        });
    }
    json!({"do": url("PATCH", &kind.object(name), &parameters(random)), "type": "application/json-patch+json",
        "body": patch})
}

/// All that is in a value, by its pointer.
fn places_of(value: &Value, path: &str, places: &mut Vec<(String, Value)>) {
    if !path.is_empty() {
        places.push((path.to_owned(), value.clone()));
    }
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                let key = key.replace('~', "~0").replace('/', "~1");
                places_of(value, &format!("{path}/{key}"), places);
            }
        }
        Value::Array(items) => {
            for (nth, value) in items.iter().enumerate() {
                places_of(value, &format!("{path}/{nth}"), places);
            }
        }
        _ => {}
    }
}

fn apply(random: &mut Random, kind: &Kind) -> Value {
    let name = name(random);
    let object = kind.generate(random, name);
    let mut config = if random.chance(40) { object.clone() } else { part(random, &object) };
    // Nulls in what is applied mean different things to different parts of a real API server.
    without_nulls(&mut config);
    for key in ["kind", "apiVersion"] {
        if !random.chance(3) {
            config[key] = object[key].clone();
        }
    }
    if config["metadata"].is_null() {
        config["metadata"] = json!({});
    }
    if !random.chance(3) {
        config["metadata"]["name"] = object["metadata"]["name"].clone();
    }
    // Labels of a custom resource that are none have an owner until the next write.
    if config["metadata"]["labels"] == json!({}) {
        config["metadata"].as_object_mut().unwrap().remove("labels");
    }
    // What is pruned from where all else is kept has an owner nonetheless.
    if let Some(Value::Object(known)) = config.pointer_mut("/spec/known") {
        known.remove("b");
    }
    perhaps_spoil(random, &mut config);
    let mut all = parameters(random);
    all.retain(|parameter| !parameter.starts_with("fieldManager"));
    if !random.chance(2) {
        all.push(format!("fieldManager={}", random.pick(&["alpha", "beta"])));
    }
    if random.chance(35) {
        all.push("force=true".to_owned());
    }
    // The status of a service that is not there creates half of one in a real API server.
    let has_status = kind.status.is_some() && kind.kind != "Service";
    let part = if has_status && random.chance(10) { "/status" } else { "" };
    json!({"do": url("PATCH", &format!("{}{part}", kind.object(name)), &all),
        "type": "application/apply-patch+yaml", "body": config})
}

fn without_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            fields.values_mut().for_each(without_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(without_nulls),
        _ => {}
    }
}

fn status(random: &mut Random, kind: &Kind) -> Value {
    let name = name(random);
    let path = format!("{}/status", kind.object(name));
    let mut change = if random.chance(30) { change(random, kind, name) } else { json!({}) };
    change["status"] = kind.status.map_or_else(|| json!({"phase": "x"}), |status| status(random));
    perhaps_spoil(random, &mut change);
    let all = parameters(random);
    if random.chance(40) {
        return json!({"do": url("PUT", &path, &all), "edit": change});
    }
    json!({"do": url("PATCH", &path, &all), "type": "application/merge-patch+json", "body": change})
}

fn scale(random: &mut Random, kind: &Kind) -> Value {
    let name = name(random);
    let path = format!("{}/scale", kind.object(name));

    let replicas = random.pick(&[json!(1), json!(2), json!(5), json!(-1), json!("x"), json!(0)]).clone();
    let all = parameters(random);
    if random.chance(40) {
        let body = json!({"apiVersion": "autoscaling/v1", "kind": "Scale",
            "metadata": {"name": kind.name(name), "namespace": "$ns"}, "spec": {"replicas": replicas}});
        return json!({"do": url("PUT", &path, &all), "body": body});
    }
    json!({"do": url("PATCH", &path, &all), "type": "application/merge-patch+json",
        "body": {"spec": {"replicas": replicas}}})
}

fn delete(random: &mut Random, kind: &Kind) -> Value {
    if kind.namespaced && random.chance(20) {
        let parameters = match random.below(3) {
            0 => vec!["labelSelector=app%3Da".to_owned()],
            1 => vec!["dryRun=All".to_owned()],
            _ => Vec::new(),
        };
        return json!({"do": url("DELETE", &kind.collection(), &parameters)});
    }
    let mut options = json!({"kind": "DeleteOptions", "apiVersion": "v1"});
    if random.chance(50) {
        let policies = ["Foreground", "Background", "Orphan", "Sideways"];
        options["propagationPolicy"] = (*random.pick(&policies)).into();
    }
    match random.below(10) {
        0 => options["preconditions"] = json!({"uid": random.pick(&["$uid", "3"])}),
        1 => options["preconditions"] = json!({"resourceVersion": random.pick(&["$version", "1"])}),
        2 => {
            options["gracePeriodSeconds"] = random.pick(&[json!(0), json!(5), json!(-1), json!("x")]).clone()
        }
        3 => options["dryRun"] = json!([random.pick(&["All", "Some"])]),
        4 => options["orphanDependents"] = true.into(),
        _ => {}
    }
    let place = format!("DELETE {}", kind.object(name(random)));
    if random.chance(30) { json!({"do": place}) } else { json!({"do": place, "body": options}) }
}
