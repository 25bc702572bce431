//! Random objects of the kinds that programs are about: all but kind and metadata.

use serde_json::{Map, Value, json};

use crate::differential::random::Random;

/// An object of some of these fields.
pub(crate) fn some(fields: Vec<(&str, Value)>, random: &mut Random, percent: usize) -> Value {
    let mut chosen = Map::new();
    for (key, value) in fields {
        if random.chance(percent) {
            chosen.insert(key.to_owned(), value);
        }
    }
    Value::Object(chosen)
}

pub(crate) fn config_map(random: &mut Random) -> Value {
    let value = *random.pick(&["1", "2", "", "lines\nof text"]);
    let data = some(vec![("a", value.into()), ("b.txt", "c".into()), ("c", "d".into())], random, 50);
    let immutable = random.chance(10);
    some(
        vec![("data", data), ("binaryData", json!({"bin": "AAEC"})), ("immutable", immutable.into())],
        random,
        70,
    )
}

pub(crate) fn secret(random: &mut Random) -> Value {
    let kind = *random.pick(&["Opaque", "example.com/kind", "kubernetes.io/basic-auth"]);
    let mut secret = some(vec![("data", json!({"a": "YQ==", "username": "Yg=="}))], random, 60);
    if random.chance(40) {
        secret["stringData"] = json!({"text": random.pick(&["plain", ""]), "password": "x"});
    }
    if random.chance(30) {
        secret["type"] = kind.into();
    }
    secret
}

pub(crate) fn service_account(random: &mut Random) -> Value {
    some(
        vec![
            ("automountServiceAccountToken", false.into()),
            ("imagePullSecrets", json!([{"name": "pull"}])),
            ("secrets", json!([{"name": "s"}, {"name": "t"}])),
        ],
        random,
        40,
    )
}

pub(crate) fn service(random: &mut Random) -> Value {
    let kind = *random.pick(&["ClusterIP", "ClusterIP", "NodePort", "LoadBalancer", "ExternalName"]);
    let mut ports = vec![json!({"port": 80})];
    if random.chance(40) {
        ports[0]["name"] = "http".into();
        ports.push(json!({"name": "dns", "port": 53, "protocol": random.pick(&["UDP", "TCP"]),
            "targetPort": random.pick(&[json!("dns"), json!(5353)])}));
    }
    let mut spec = json!({"ports": ports, "selector": {"app": "a"}});
    if random.chance(50) {
        spec["type"] = kind.into();
        if kind == "ExternalName" {
            spec["externalName"] = "example.com".into();
        }
    }
    if random.chance(15) {
        spec["clusterIP"] = "None".into();
    }
    if random.chance(20) {
        spec["sessionAffinity"] = (*random.pick(&["ClientIP", "None"])).into();
    }
    if random.chance(15) {
        spec["publishNotReadyAddresses"] = true.into();
    }
    json!({"spec": spec})
}

fn quantity(random: &mut Random) -> Value {
    let texts =
        ["100m", "0.1", "1", "1000m", "1.5", "1e3", "1k", "0.5Gi", "1024Mi", "64Mi", "1500000000n", "0"];
    if random.chance(10) { json!(2) } else { (*random.pick(&texts)).into() }
}

fn container(random: &mut Random, name: &str) -> Value {
    let image = *random.pick(&["nginx", "nginx:1.27", "host:5000/app@sha256:0123456789abcdef"]);
    let mut container = json!({"name": name, "image": image});
    let fields = vec![
        ("ports", json!([{"containerPort": 80, "name": "http"}, {"containerPort": 53, "protocol": "UDP"}])),
        (
            "env",
            json!([{"name": "A", "value": random.pick(&["1", ""])},
            {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]),
        ),
        ("command", json!(["sh", "-c", "true"])),
        ("readinessProbe", json!({"httpGet": {"port": random.pick(&[json!(80), json!("http")])}})),
        ("livenessProbe", json!({"exec": {"command": ["true"]}, "periodSeconds": 5})),
        ("imagePullPolicy", (*random.pick(&["Always", "Never", "IfNotPresent"])).into()),
        ("securityContext", json!({"runAsNonRoot": true, "capabilities": {"drop": ["ALL"]}})),
        ("workingDir", "/srv".into()),
        ("lifecycle", json!({"preStop": {"exec": {"command": ["true"]}}})),
    ];
    if let Value::Object(fields) = some(fields, random, 15) {
        container.as_object_mut().unwrap().extend(fields);
    }
    if random.chance(35) {
        let (limit, request) = (quantity(random), quantity(random));
        container["resources"] = if random.chance(50) {
            json!({"limits": {"cpu": limit}})
        } else {
            json!({"requests": {"memory": request, "cpu": "1m"}})
        };
    }
    container
}

fn pod_spec(random: &mut Random) -> Value {
    let mut containers = vec![container(random, "c")];
    if random.chance(25) {
        containers.push(container(random, "d"));
    }
    let mut spec = json!({"containers": containers});
    let fields = vec![
        ("initContainers", json!([container(random, "i")])),
        ("nodeSelector", json!({"disk": "ssd"})),
        ("tolerations", json!([{"key": "k", "operator": "Exists"}])),
        ("terminationGracePeriodSeconds", random.below(40).into()),
        ("hostNetwork", true.into()),
        ("dnsPolicy", "Default".into()),
        ("imagePullSecrets", json!([{"name": "pull"}])),
        (
            "volumes",
            json!([{"name": "v", "emptyDir": {}}, {"name": "m", "configMap": {"name": "x"}},
            {"name": "s", "secret": {"secretName": "y"}}]),
        ),
        ("securityContext", json!({"fsGroup": 1000})),
        ("serviceAccountName", "default".into()),
        ("hostAliases", json!([{"ip": "1.2.3.4", "hostnames": ["a"]}])),
        (
            "topologySpreadConstraints",
            json!([{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}]),
        ),
        (
            "affinity",
            json!({"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1,
            "podAffinityTerm": {"topologyKey": "h"}}]}}),
        ),
    ];
    if let Value::Object(fields) = some(fields, random, 8) {
        spec.as_object_mut().unwrap().extend(fields);
    }
    spec
}

fn template(random: &mut Random) -> Value {
    let mut metadata = json!({"labels": {"app": "a"}});
    if random.chance(15) {
        metadata["annotations"] = json!({"restarted": random.pick(&["1", "2"])});
    }
    json!({"metadata": metadata, "spec": pod_spec(random)})
}

fn workload(fields: Vec<(&str, Value)>, random: &mut Random) -> Value {
    let mut spec = json!({"selector": {"matchLabels": {"app": "a"}}, "template": template(random)});
    if let Value::Object(fields) = some(fields, random, 25) {
        spec.as_object_mut().unwrap().extend(fields);
    }
    json!({"spec": spec})
}

pub(crate) fn deployment(random: &mut Random) -> Value {
    let strategy = random
        .pick(&[
            json!({"type": "Recreate"}),
            json!({"rollingUpdate": {"maxSurge": 1}}),
            json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "50%", "maxSurge": 0}}),
        ])
        .clone();
    let replicas = random.below(4).into();
    workload(
        vec![
            ("replicas", replicas),
            ("strategy", strategy),
            ("paused", true.into()),
            ("minReadySeconds", 5.into()),
            ("revisionHistoryLimit", 2.into()),
        ],
        random,
    )
}

pub(crate) fn replica_set(random: &mut Random) -> Value {
    let replicas = random.below(4).into();
    workload(vec![("replicas", replicas), ("minReadySeconds", 5.into())], random)
}

pub(crate) fn stateful_set(random: &mut Random) -> Value {
    let replicas = random.below(4).into();
    let claim = json!({"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": quantity(random)}}}});
    workload(
        vec![
            ("replicas", replicas),
            ("serviceName", "web".into()),
            ("podManagementPolicy", "Parallel".into()),
            ("updateStrategy", json!({"type": "OnDelete"})),
            ("volumeClaimTemplates", json!([claim])),
        ],
        random,
    )
}

pub(crate) fn daemon_set(random: &mut Random) -> Value {
    let strategy = random
        .pick(&[json!({"type": "OnDelete"}), json!({"rollingUpdate": {"maxUnavailable": "10%"}})])
        .clone();
    workload(vec![("updateStrategy", strategy), ("minReadySeconds", 3.into())], random)
}

fn job_spec(random: &mut Random) -> Value {
    let mut template = template(random);
    template["spec"]["restartPolicy"] = (*random.pick(&["Never", "OnFailure"])).into();
    let mut spec = json!({"template": template});
    let fields = vec![
        ("parallelism", random.below(4).into()),
        ("completions", (1 + random.below(3)).into()),
        ("backoffLimit", 2.into()),
        ("suspend", random.chance(50).into()),
        ("ttlSecondsAfterFinished", 100.into()),
        ("activeDeadlineSeconds", 60.into()),
    ];
    if let Value::Object(fields) = some(fields, random, 20) {
        spec.as_object_mut().unwrap().extend(fields);
    }
    spec
}

pub(crate) fn job(random: &mut Random) -> Value {
    json!({"spec": job_spec(random)})
}

pub(crate) fn cron_job(random: &mut Random) -> Value {
    let mut spec = json!({"schedule": random.pick(&["*/5 * * * *", "@hourly", "0 0 1 1 *"]),
        "jobTemplate": {"spec": job_spec(random)}});
    let fields = vec![
        ("suspend", true.into()),
        ("concurrencyPolicy", (*random.pick(&["Forbid", "Replace"])).into()),
        ("startingDeadlineSeconds", 10.into()),
        ("timeZone", "Etc/UTC".into()),
    ];
    if let Value::Object(fields) = some(fields, random, 20) {
        spec.as_object_mut().unwrap().extend(fields);
    }
    json!({"spec": spec})
}

pub(crate) fn pod(random: &mut Random) -> Value {
    let mut spec = pod_spec(random);
    if random.chance(15) {
        spec["nodeName"] = "node".into();
    }
    if random.chance(20) {
        spec["restartPolicy"] = (*random.pick(&["Never", "OnFailure"])).into();
    }
    json!({"spec": spec})
}

pub(crate) fn namespace(random: &mut Random) -> Value {
    some(vec![("spec", json!({"finalizers": ["kubernetes"]}))], random, 20)
}

pub(crate) fn pdb(random: &mut Random) -> Value {
    let mut spec = json!({"selector": {"matchLabels": {"app": random.pick(&["a", "b"])}}});
    match random.below(3) {
        0 => spec["minAvailable"] = random.pick(&[json!(1), json!("50%")]).clone(),
        1 => spec["maxUnavailable"] = random.pick(&[json!(1), json!("10%")]).clone(),
        _ => {}
    }
    if random.chance(20) {
        spec["unhealthyPodEvictionPolicy"] = "AlwaysAllow".into();
    }
    json!({"spec": spec})
}

pub(crate) fn role(random: &mut Random) -> Value {
    let verbs = random.some(50, &["get", "list", "watch"]);
    let rule = json!({"apiGroups": [random.pick(&["", "apps"])], "resources": ["pods"],
        "verbs": if verbs.is_empty() { vec!["*"] } else { verbs }});
    some(vec![("rules", json!([rule]))], random, 80)
}

pub(crate) fn lease(random: &mut Random) -> Value {
    let spec = some(
        vec![
            ("holderIdentity", "me".into()),
            ("leaseDurationSeconds", 15.into()),
            ("renewTime", (*random.pick(&["2026-01-02T03:04:05.678901Z", "2026-01-02T03:04:05Z"])).into()),
            ("leaseTransitions", random.below(3).into()),
        ],
        random,
        60,
    );
    json!({"spec": spec})
}

pub(crate) fn widget(random: &mut Random) -> Value {
    let fields = vec![
        ("replicas", random.below(4).into()),
        ("ratio", random.pick(&[json!(1.5), json!(2.5), json!(0.25)]).clone()),
        ("colour", (*random.pick(&["red", "green", "blue", "pink"])).into()),
        ("title", (*random.pick(&["abc", "a", "ABC", "abcdefghi", "ab1"])).into()),
        (
            "when",
            (*random.pick(&["2026-01-02T03:04:05Z", "yesterday", "2026-01-02T03:04:05.5+02:00"])).into(),
        ),
        ("day", (*random.pick(&["2026-01-02", "2026-13-02"])).into()),
        ("host", (*random.pick(&["1.2.3.4", "1.2.3", "::1"])).into()),
        ("link", (*random.pick(&["https://a.example/b", "no link"])).into()),
        ("limit", random.pick(&[json!(1), json!("10%"), json!(1.5)]).clone()),
        ("on", random.chance(50).into()),
        ("free", json!({"any": {"thing": [1, "two", null]}})),
        ("map", random.pick(&[json!({"a": 1}), json!({"a": 1, "b": 2, "c": 3, "d": 4}), json!({})]).clone()),
        (
            "ports",
            random
                .pick(&[
                    json!([{"number": 80}]),
                    json!([{"number": 80}, {"number": 80, "protocol": "UDP", "note": null}]),
                    json!([{"number": 80}, {"number": 80}]),
                    json!([]),
                ])
                .clone(),
        ),
        ("tags", random.pick(&[json!(["a", "b"]), json!(["a", "a"]), json!([])]).clone()),
        ("words", random.pick(&[json!(["one"]), json!([]), json!(["too long"]), json!(["a", "b"])]).clone()),
        ("choice", random.pick(&[json!({"a": "1"}), json!({"a": "1", "b": "2"}), json!({})]).clone()),
        ("some", random.pick(&[json!(1), json!(5), json!(20)]).clone()),
        ("no", (*random.pick(&["ever", "never"])).into()),
        ("all", random.pick(&[json!(3), json!(0), json!(6)]).clone()),
        ("nested", random.pick(&[json!({"depth": 1}), json!({"maybe": null}), json!({})]).clone()),
        ("atom", random.pick(&[json!({"x": 1}), json!({"x": 1, "y": 2})]).clone()),
        ("unknown", json!({"a": 1})),
    ];
    let mut spec = some(fields, random, 14);
    if random.chance(96) {
        spec["size"] = random.pick(&[json!(0), json!(1), json!(7), json!(99), json!(100), json!(-1)]).clone();
    }
    json!({"spec": spec})
}

pub(crate) fn free(random: &mut Random) -> Value {
    let known = random.pick(&[json!({"a": "1"}), json!({"a": "1", "b": 2}), json!({})]).clone();
    let spec = some(vec![("known", known), ("any", json!([1, {"b": null}])), ("n", json!(1.5))], random, 50);
    some(vec![("spec", spec), ("status", json!({"phase": "x"})), ("more", json!("text"))], random, 80)
}

pub(crate) fn service_status(random: &mut Random) -> Value {
    some(vec![("loadBalancer", json!({"ingress": [{"ip": "5.6.7.8"}]}))], random, 80)
}

pub(crate) fn pod_status(random: &mut Random) -> Value {
    let ready = json!({"type": "Ready", "status": random.pick(&["True", "False"])});
    some(
        vec![
            ("phase", (*random.pick(&["Running", "Succeeded", "Failed"])).into()),
            ("podIP", "10.1.2.3".into()),
            ("conditions", json!([ready])),
            ("message", "text".into()),
        ],
        random,
        50,
    )
}

pub(crate) fn phase(_: &mut Random) -> Value {
    json!({"phase": "Active"})
}

pub(crate) fn workload_status(random: &mut Random) -> Value {
    some(
        vec![("replicas", random.below(3).into()), ("observedGeneration", random.below(3).into())],
        random,
        60,
    )
}

pub(crate) fn daemon_status(random: &mut Random) -> Value {
    some(vec![("currentNumberScheduled", random.below(3).into()), ("numberReady", 1.into())], random, 60)
}

pub(crate) fn job_status(random: &mut Random) -> Value {
    some(vec![("active", random.below(3).into())], random, 60)
}

pub(crate) fn cron_status(random: &mut Random) -> Value {
    some(vec![("active", json!([{"kind": "Job", "name": "j"}]))], random, 60)
}

pub(crate) fn pdb_status(random: &mut Random) -> Value {
    some(vec![("currentHealthy", 1.into()), ("disruptionsAllowed", random.below(3).into())], random, 60)
}

pub(crate) fn widget_status(random: &mut Random) -> Value {
    some(
        vec![
            ("replicas", random.below(4).into()),
            ("phase", (*random.pick(&["Good", "Bad", "Ugly"])).into()),
            ("selector", "app=a".into()),
            ("unknown", 1.into()),
        ],
        random,
        50,
    )
}
