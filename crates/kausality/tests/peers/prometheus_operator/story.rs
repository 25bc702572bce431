//! What people do to Prometheus, Alertmanager and what these are made from, and what the operator does about it.

use serde_json::{Value, json};

use super::controller::USER;
use super::world::{NAMESPACE, World};
use crate::log::{Change, Log};

const PROMETHEUS: &str = "prometheus/main";
const ALERTMANAGER: &str = "alertmanager/main";

/// What the operator makes: the configuration of each, and the rules.
const CONFIGURATION: &str = "secret/prometheus-main";
const GENERATED: &str = "secret/alertmanager-main-generated";
const RULES: &str = "configmap/prometheus-main-rulefiles-0";
const STATEFUL_SET: &str = "statefulset/prometheus-main";

/// One thing that happened, and all that came of it.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) what: &'static str,
    /// The kinds that were changed, and by whom. None, if nobody asked for anything.
    pub(super) asked: Vec<(&'static str, &'static str)>,
    /// All changes of intent, until nothing happened for a while.
    pub(super) changes: Vec<Change>,
}

impl Step {
    /// What the operator did.
    pub(super) fn by_operator(&self) -> Vec<Change> {
        self.changes.iter().filter(|change| change.user == USER).cloned().collect()
    }
}

/// Plays a story, step by step.
pub(super) struct Story<'a> {
    pub(super) world: &'a World,
    pub(super) log: Log,
    pub(super) steps: Vec<Step>,
}

impl<'a> Story<'a> {
    pub(super) fn new(world: &'a World) -> Self {
        Self { world, log: world.log(), steps: Vec::new() }
    }

    /// One step: something is done, and it is awaited that all that follows is done, too.
    async fn step(
        &mut self,
        what: &'static str,
        asked: &[(&'static str, &'static str)],
        play: impl AsyncFnOnce(&World),
    ) {
        let begun = self.log.mark();
        play(self.world).await;
        self.log.quiet().await;
        let changes = self.log.changes(begun);
        self.steps.push(Step { what, asked: asked.to_vec(), changes });
    }

    /// Alice creates a Prometheus and an Alertmanager.
    pub(super) async fn create(&mut self) {
        self.step("created", &[("Prometheus", "alice")], async |world| {
            world.create("alice", &secret("alertmanager-main", "alertmanager.yaml", &alerting("first")));
            world.create("alice", &secret("scrape", "password", "first"));
            world.create("alice", &prometheus());
            world.is_ready(PROMETHEUS).await;
        })
        .await;
        self.step("created", &[("Alertmanager", "alice")], async |world| {
            world.create("alice", &alertmanager());
            world.is_ready(ALERTMANAGER).await;
        })
        .await;
    }

    /// Bob changes both.
    pub(super) async fn edit(&mut self) {
        self.step("scaled", &[("Prometheus", "bob")], async |world| {
            world.patch("bob", PROMETHEUS, &json!({ "spec": { "replicas": 2 } }));
            world.until(STATEFUL_SET, |set| set["status"]["readyReplicas"] == 2).await;
            world.is_ready(PROMETHEUS).await;
        })
        .await;
        self.step("upgraded", &[("Prometheus", "bob")], async |world| {
            world.patch("bob", PROMETHEUS, &json!({ "spec": { "version": "v3.5.0" } }));
            let rolled_out = |set: &Value| {
                let status = &set["status"];
                let observed = status["observedGeneration"] == set["metadata"]["generation"];
                let images = set["spec"]["template"]["spec"]["containers"].to_string();
                observed && images.contains("v3.5.0") && status["updatedReplicas"] == 2
            };
            world.until(STATEFUL_SET, rolled_out).await;
            world.is_ready(PROMETHEUS).await;
        })
        .await;
        self.step("scaled", &[("Alertmanager", "bob")], async |world| {
            world.patch("bob", ALERTMANAGER, &json!({ "spec": { "replicas": 2 } }));
            world.until("statefulset/alertmanager-main", |set| set["status"]["readyReplicas"] == 2).await;
            world.is_ready(ALERTMANAGER).await;
        })
        .await;
    }

    /// Others change what the operator makes the configuration from.
    pub(super) async fn change_inputs(&mut self) {
        self.input("ServiceMonitor", "carol", CONFIGURATION, |world| {
            world.create("carol", &service_monitor());
        })
        .await;
        self.input("ServiceMonitor", "dave", CONFIGURATION, |world| {
            world.patch("dave", "servicemonitor/web", &endpoint("7s"));
        })
        .await;
        let both = [("ServiceMonitor", "carol"), ("ServiceMonitor", "dave")];
        self.step("inputs changed in short order", &both, async |world| {
            let first = data(&world.get(CONFIGURATION));
            world.patch("carol", "servicemonitor/web", &endpoint("8s"));
            world.until(CONFIGURATION, |after| data(after) != first).await;
            let second = data(&world.get(CONFIGURATION));
            world.patch("dave", "servicemonitor/web", &endpoint("9s"));
            world.until(CONFIGURATION, |after| data(after) != second).await;
        })
        .await;
        self.input("PrometheusRule", "carol", RULES, |world| world.create("carol", &rule())).await;
        self.input("PrometheusRule", "dave", RULES, |world| {
            let rules = json!([{ "alert": "Down", "expr": "up == 0" }]);
            let patch = json!({ "spec": { "groups": [{ "name": "web", "rules": rules }] } });
            world.patch("dave", "prometheusrule/web", &patch);
        })
        .await;
        self.input("Secret", "erin", GENERATED, |world| {
            let patch = json!({ "stringData": { "alertmanager.yaml": alerting("second") } });
            world.patch("erin", "secret/alertmanager-main", &patch);
        })
        .await;
        self.input("ServiceMonitor", "frank", CONFIGURATION, |world| {
            world.by("frank", &["delete", "servicemonitor", "web"]);
        })
        .await;
        self.input("PrometheusRule", "frank", RULES, |world| {
            world.by("frank", &["delete", "prometheusrule", "web"]);
        })
        .await;
    }

    /// A ServiceMonitor names a Secret with a password, which is then changed.
    pub(super) async fn change_credentials(&mut self) {
        self.input("ServiceMonitor", "carol", CONFIGURATION, |world| {
            let mut monitor = service_monitor();
            let key = |key: &str| json!({ "name": "scrape", "key": key });
            monitor["spec"]["endpoints"][0]["basicAuth"] =
                json!({ "username": key("password"), "password": key("password") });
            world.create("carol", &monitor);
        })
        .await;
        self.input("Secret", "erin", CONFIGURATION, |world| {
            world.patch("erin", "secret/scrape", &json!({ "stringData": { "password": "second" } }));
        })
        .await;
    }

    /// A person changes an input, and a child follows.
    async fn input(
        &mut self,
        kind: &'static str,
        user: &'static str,
        child: &str,
        change: impl FnOnce(&World),
    ) {
        self.step("input changed", &[(kind, user)], async |world| {
            let before = data(&world.get(child));
            change(world);
            world.until(child, |after| data(after) != before).await;
        })
        .await;
    }

    /// Bob changes by hand what the operator made, and the operator sets it back.
    pub(super) async fn edit_children(&mut self) {
        self.step("StatefulSet edited by hand", &[], async |world| {
            let before = world.get(STATEFUL_SET)["spec"].clone();
            let patch = json!({ "spec": { "template": { "spec": { "terminationGracePeriodSeconds": 5 } } } });
            world.patch("bob", STATEFUL_SET, &patch);
            world.until(STATEFUL_SET, |set| set["spec"] == before).await;
            world.is_ready(PROMETHEUS).await;
        })
        .await;
        self.step("Secret edited and StatefulSet deleted by hand", &[], async |world| {
            let before = data(&world.get(CONFIGURATION));
            world.patch("bob", CONFIGURATION, &json!({ "stringData": { "prometheus.yaml.gz": "mine" } }));
            // Then the operator looks at all that it made, whether it has noticed the Secret or not.
            world.by("bob", &["delete", STATEFUL_SET]);
            world.until(CONFIGURATION, |secret| data(secret) == before).await;
            world.until(STATEFUL_SET, |set| set["status"]["readyReplicas"] == 2).await;
            world.is_ready(PROMETHEUS).await;
        })
        .await;
    }

    /// The operator is replaced by another version.
    pub(super) async fn upgrade_operator(&mut self) {
        self.step("operator upgraded", &[], async |world| {
            world.upgrade("v2").await;
            for set in [STATEFUL_SET, "statefulset/alertmanager-main"] {
                let upgraded = |set: &Value| {
                    set["spec"]["template"]["spec"].to_string().contains("reloader:v2")
                        && set["status"]["updateRevision"] == set["status"]["currentRevision"]
                };
                world.until(set, upgraded).await;
            }
            world.is_ready(PROMETHEUS).await;
            world.is_ready(ALERTMANAGER).await;
        })
        .await;
    }

    /// Alice deletes both.
    pub(super) async fn delete(&mut self) {
        self.step("deleted", &[("Prometheus", "alice")], async |world| {
            world.by("alice", &["delete", "prometheus,alertmanager", "--all"]);
            world.is_gone("statefulsets,pods").await;
        })
        .await;
    }
}

/// The content of a Secret or ConfigMap.
fn data(object: &Value) -> Value {
    object["data"].clone()
}

fn metadata(name: &str) -> Value {
    json!({ "name": name, "namespace": NAMESPACE })
}

fn prometheus() -> Value {
    json!({
        "apiVersion": "monitoring.coreos.com/v1", "kind": "Prometheus", "metadata": metadata("main"),
        "spec": {
            "replicas": 1, "version": "v3.4.0", "serviceMonitorSelector": {}, "ruleSelector": {},
        },
    })
}

fn alertmanager() -> Value {
    json!({
        "apiVersion": "monitoring.coreos.com/v1", "kind": "Alertmanager", "metadata": metadata("main"),
        "spec": { "replicas": 1, "version": "v0.28.1" },
    })
}

fn service_monitor() -> Value {
    json!({
        "apiVersion": "monitoring.coreos.com/v1", "kind": "ServiceMonitor", "metadata": metadata("web"),
        "spec": {
            "selector": { "matchLabels": { "app": "web" } },
            "endpoints": [{ "port": "web", "interval": "5s" }],
        },
    })
}

/// A change of what is scraped.
fn endpoint(interval: &str) -> Value {
    json!({ "spec": { "endpoints": [{ "port": "web", "interval": interval }] } })
}

fn rule() -> Value {
    json!({
        "apiVersion": "monitoring.coreos.com/v1", "kind": "PrometheusRule", "metadata": metadata("web"),
        "spec": { "groups": [{ "name": "web", "rules": [{ "alert": "Up", "expr": "up == 1" }] }] },
    })
}

fn secret(name: &str, key: &str, value: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "Secret", "metadata": metadata(name), "stringData": { key: value } })
}

fn alerting(receiver: &str) -> String {
    format!("route:\n  receiver: {receiver}\nreceivers:\n- name: {receiver}\n")
}
