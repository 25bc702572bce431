//! Random contents of objects: whole ones, and parts to apply or to patch with.

use serde_json::{Value, json};

use crate::ownership::{kinds::Kind, random::Random};

/// Quantities, and how the API server writes them.
pub(crate) const QUANTITIES: [(&str, &str); 5] =
    [("1000m", "1"), ("1", "1"), ("0.5", "500m"), ("1024Mi", "1Gi"), ("2", "2")];

/// A label in every position that dots and slashes can take.
const LABELS: [&str; 5] = ["app.kubernetes.io/name", "team", "a.b/c", "x.y.z", "long_one-2"];

/// How much of an object is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// All that it needs to exist.
    Whole,
    /// Anything.
    Part,
}

/// An object with this name, without status.
pub(crate) fn object(kind: Kind, name: &str, extent: Extent, random: &mut Random) -> Value {
    let mut object =
        json!({"apiVersion": kind.api_version(), "kind": kind.name(), "metadata": metadata(random)});
    object["metadata"]["name"] = json!(name);
    let parts = match kind {
        Kind::Deployment => json!({"spec": deployment(extent, random)}),
        Kind::Service => json!({"spec": service(extent, random)}),
        Kind::ConfigMap => config_map(random),
        Kind::Widget => json!({"spec": widget(random)}),
        Kind::Fleet => fleet(random),
    };
    put_all(&mut object, parts);
    object
}

/// A status for the kind.
pub(crate) fn status(kind: Kind, random: &mut Random) -> Value {
    let conditions = |random: &mut Random, extra: &Value| {
        let condition = |kind: &str, random: &mut Random| {
            let mut condition = json!({"type": kind, "status": *random.pick(&["True", "False"])});
            put_all(&mut condition, extra.clone());
            condition
        };
        let chosen = random.some(60, &["Available", "Progressing"]);
        chosen.into_iter().map(|kind| condition(kind, random)).collect::<Vec<_>>()
    };
    match kind {
        Kind::Deployment => maybe(
            random,
            &mut |random| json!({"observedGeneration": random.below(3), "conditions": conditions(random, &json!({"reason": "R"}))}),
        ),
        Kind::Service => maybe(random, &mut |random| {
            let fixed = json!({"reason": "R", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"});
            json!({"conditions": conditions(random, &fixed)})
        }),
        _ => maybe(random, &mut |random| {
            let mut status = json!({"phase": *random.pick(&["Up", "Down"]), "count": random.below(3)});
            if kind == Kind::Widget {
                status["conditions"] = json!(conditions(random, &json!({})));
            }
            status
        }),
    }
}

/// Some fields of what is generated.
fn maybe(random: &mut Random, make: &mut dyn FnMut(&mut Random) -> Value) -> Value {
    let mut value = make(random);
    if let Some(fields) = value.as_object_mut() {
        fields.retain(|_, _| random.chance(70));
    }
    value
}

fn metadata(random: &mut Random) -> Value {
    let mut metadata = json!({});
    if random.chance(50) {
        metadata["labels"] = label_strings(random);
    }
    if random.chance(30) {
        metadata["annotations"] = strings(random, &LABELS);
    }
    if random.chance(8) {
        metadata["finalizers"] = json!(random.some(60, &["example.com/a", "example.com/b"]));
    }
    if random.chance(8) {
        let owner = |uid| json!({"apiVersion": "v1", "kind": "Node", "name": "n", "uid": uid});
        metadata["ownerReferences"] =
            json!(random.some(60, &["u1", "u2"]).into_iter().map(owner).collect::<Vec<_>>());
    }
    if random.chance(5) {
        metadata[*random.pick(&["labels", "annotations"])] = random.pick(&[json!({}), Value::Null]).clone();
    }
    metadata
}

fn strings(random: &mut Random, names: &[&str]) -> Value {
    let names = random.some(45, names);
    names.into_iter().map(|name| (name.to_owned(), json!(*random.pick(&["1", "2", "x<y>&z"])))).collect()
}

fn label_strings(random: &mut Random) -> Value {
    let names = random.some(40, &LABELS);
    names.into_iter().map(|name| (name.to_owned(), json!(*random.pick(&["1", "2"])))).collect()
}

fn deployment(extent: Extent, random: &mut Random) -> Value {
    let mut spec = json!({});
    let template = pod_template(extent, random);
    if template.as_object().is_some_and(|template| !template.is_empty()) {
        spec["template"] = template;
    }
    if extent == Extent::Whole {
        spec["selector"] = json!({"matchLabels": {"app": "web"}});
    }
    if random.chance(50) {
        spec["replicas"] = json!(random.below(4));
    }
    if random.chance(20) {
        spec["minReadySeconds"] = json!(random.below(3));
    }
    if random.chance(15) {
        spec["paused"] = json!(random.chance(50));
    }
    if random.chance(20) {
        let surge = random.pick(&[json!("25%"), json!(1), json!("1%")]).clone();
        spec["strategy"] = json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge}});
    }
    if random.chance(10) {
        spec["strategy"] = json!({});
    }
    spec
}

fn pod_template(extent: Extent, random: &mut Random) -> Value {
    let mut template = json!({});
    let mut pod = json!({});
    if extent == Extent::Whole || random.chance(30) {
        template["metadata"] = json!({"labels": label_strings(random)});
        if extent == Extent::Whole {
            template["metadata"]["labels"]["app"] = json!("web");
        }
    }
    let mut names = random.some(45, &["side", "proxy"]);
    if extent == Extent::Whole || random.chance(50) {
        names.insert(random.below(names.len() + 1), "app");
    }
    if !names.is_empty() {
        pod["containers"] = names.into_iter().map(|name| container(name, extent, random)).collect();
        let mounts = |container: &Value| container.get("volumeMounts").is_some();
        if pod["containers"].as_array().is_some_and(|containers| containers.iter().any(mounts)) {
            pod["volumes"] = json!([{"name": "v1", "emptyDir": {}}, {"name": "v2", "emptyDir": {}}]);
        }
    }
    if random.chance(15) {
        pod["nodeSelector"] = label_strings(random);
    }
    if random.chance(15) {
        let toleration = |key| json!({"key": key, "operator": "Exists"});
        pod["tolerations"] = random.some(60, &["a", "b"]).into_iter().map(toleration).collect();
    }
    if random.chance(15) {
        let secret = |name| json!({"name": name});
        pod["imagePullSecrets"] = random.some(60, &["s1", "s2"]).into_iter().map(secret).collect();
    }
    if random.chance(10) {
        pod["securityContext"] = random.pick(&[json!({}), json!({"runAsUser": 1000})]).clone();
    }
    if random.chance(10) {
        pod["terminationGracePeriodSeconds"] = json!(random.below(60));
    }
    if pod.as_object().is_some_and(|pod| !pod.is_empty()) {
        template["spec"] = pod;
    }
    template
}

fn container(name: &str, extent: Extent, random: &mut Random) -> Value {
    let mut container = json!({"name": name});
    if extent == Extent::Whole || random.chance(80) {
        container["image"] = json!(format!("{name}:{}", random.below(3)));
    }
    if random.chance(40) {
        let ports = [
            json!({"containerPort": 53, "protocol": "UDP"}),
            json!({"containerPort": 53}),
            json!({"containerPort": 80, "name": "web"}),
            json!({"containerPort": 9, "protocol": "TCP"}),
        ];
        container["ports"] = json!(random.some(45, &ports));
    }
    if random.chance(40) {
        let value = json!({"name": "B", "value": format!("{}", random.below(3))});
        let reference = json!({"name": "C", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}});
        let env = [json!({"name": "A", "value": "<&>"}), value, reference, json!({"name": "D"})];
        container["env"] = json!(random.some(50, &env));
    }
    if random.chance(25) {
        let mount = |path| json!({"mountPath": path, "name": if path == "/c" { "v2" } else { "v1" }});
        container["volumeMounts"] = random.some(50, &["/a", "/b", "/c"]).into_iter().map(mount).collect();
    }
    if random.chance(30) {
        let mut amounts = |percent| -> Value {
            let names = random.some(percent, &["cpu", "memory"]);
            names.into_iter().map(|name| (name.to_owned(), json!(random.pick(&QUANTITIES).0))).collect()
        };
        container["resources"] = json!({"limits": amounts(70)});
    }
    if random.chance(8) {
        container["resources"] = json!({});
    }
    if random.chance(25) {
        container["args"] = json!(random.some(60, &["-a", "-b", "-c"]));
    }
    container
}

fn service(extent: Extent, random: &mut Random) -> Value {
    let mut spec = json!({});
    if extent == Extent::Whole || random.chance(60) {
        let mut ports = random.some(40, &[
            json!({"name": "dns", "port": 53, "protocol": "UDP"}),
            json!({"name": "dns-tcp", "port": 53}),
            json!({"name": "web", "port": 80, "targetPort": "http"}),
            json!({"name": "alt", "port": 81, "protocol": "TCP", "targetPort": 8081, "appProtocol": "http"}),
        ]);
        if ports.is_empty() && extent == Extent::Whole {
            ports.push(json!({"name": "web", "port": 80}));
        }
        spec["ports"] = json!(ports);
    }
    // Addresses are few: most programs do without.
    if extent == Extent::Whole && random.chance(70) {
        spec["clusterIP"] = json!("None");
    }
    if extent == Extent::Whole || random.chance(30) {
        spec["selector"] = label_strings(random);
        // Without a selector, a Service without address asks for both families, which the cluster has not.
        spec["selector"]["app"] = json!("web");
    }
    if random.chance(20) {
        spec["sessionAffinity"] = json!(*random.pick(&["None", "ClientIP"]));
    }
    if random.chance(20) {
        spec["publishNotReadyAddresses"] = json!(random.chance(60));
    }
    spec
}

fn config_map(random: &mut Random) -> Value {
    let mut map = json!({});
    if random.chance(80) {
        map["data"] = strings(random, &["a", "b.c", "file.yaml", "k-1", "_"]);
    }
    if random.chance(20) {
        map["binaryData"] = json!({*random.pick(&["bin", "bin.2"]): *random.pick(&["AAE=", "/w=="])});
    }
    map
}

fn widget(random: &mut Random) -> Value {
    let all = json!({
        "size": random.below(4),
        "mode": *random.pick(&["auto", "manual"]),
        "ratio": random.pick(&[json!(0.5), json!(1), json!(1.0), json!(2.25)]),
        "note": random.pick(&[Value::Null, json!("n"), json!("m")]),
        "amount": random.pick(&[json!(1), json!("1"), json!("25%")]),
        "ports": random.some(45, &[json!({"port": 53}), json!({"port": 53, "protocol": "UDP"}),
            json!({"port": 80, "name": "web"}), json!({"port": 9, "protocol": "TCP", "options": {"a": "1"}}),
            json!({"port": 10, "options": {}})]),
        "tags": random.some(45, &["a", "b", "c.d", "e<f"]),
        "numbers": random.some(45, &[1, 2, 9, 10, 30]),
        "args": random.some(60, &["-a", "-b", "-c"]),
        "labels": strings(random, &LABELS),
        "frozen": strings(random, &["p", "q"]),
        "sub": random.pick(&[json!({}), json!({"a": "1"}), json!({"a": "2", "b": 2}), json!({"b": 1})]),
        "extra": random.pick(&[json!({}), json!({"any": {"thing": [1, {"x": 2}], "n": null}}),
            json!({"any": {"other": true}, "list": ["a"]}), json!({"any": 3}), json!({"any": "text"}),
            json!({"any": []})]),
    });
    thinned(all, random)
}

fn fleet(random: &mut Random) -> Value {
    let member = |id: usize, random: &mut Random| {
        thinned_but(
            "id",
            json!({"id": id, "host": *random.pick(&["h1", "h2"]),
            "roles": random.some(50, &["leader", "voter", "x.y"])}),
            random,
        )
    };
    let group = |name: &str, random: &mut Random| {
        let members: Vec<Value> =
            random.some(50, &[1, 2, 10]).into_iter().map(|id| member(id, random)).collect();
        thinned_but("name", json!({"name": name, "weight": random.below(3), "members": members}), random)
    };
    let mut spec = json!({});
    if random.chance(75) {
        let groups: Vec<Value> =
            random.some(50, &["east", "west", "north"]).into_iter().map(|name| group(name, random)).collect();
        spec["groups"] = json!(groups);
    }
    if random.chance(50) {
        let mut template = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "inner"}});
        if random.chance(50) {
            template["metadata"]["labels"] = label_strings(random);
        }
        if random.chance(50) {
            template["spec"] =
                random.pick(&[json!({"any": [1, 2]}), json!({"any": {"x": "y"}}), json!({})]).clone();
        }
        spec["template"] = template;
    }
    let mut fleet = json!({"spec": spec});
    if random.chance(30) {
        fleet["status"] = status(Kind::Fleet, random);
    }
    fleet
}

fn thinned(value: Value, random: &mut Random) -> Value {
    thinned_but("", value, random)
}

fn thinned_but(kept: &str, mut value: Value, random: &mut Random) -> Value {
    if let Some(fields) = value.as_object_mut() {
        fields.retain(|name, _| name == kept || random.chance(40));
    }
    value
}

pub(crate) fn put_all(object: &mut Value, fields: Value) {
    if let (Some(object), Value::Object(fields)) = (object.as_object_mut(), fields) {
        object.extend(fields);
    }
}
