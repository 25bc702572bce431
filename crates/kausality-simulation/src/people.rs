//! People, who change what they want, edit what they should not, approve, reject and freeze; and one who forges.

use std::{fmt, sync::Arc, time::Duration};

use http::{Method, Request};
use http_body_util::BodyExt as _;
use hyper::body::Bytes;
use kausality_api::annotation::{
    APPROVALS, CONTROLLERS, FREEZE, OBSERVED_GENERATION, PHASE, REJECTIONS, SETTLED, Suffix, TRACE,
};
use kausality_sandbox::{Road as _, Sandbox, User};
use serde_json::{Value, json};

use crate::{dice::Dice, line::Line, oracle::Oracle, weather::Sky};

/// The namespace in which all happens.
pub(crate) const NAMESPACE: &str = "play";

/// Something that people made: a Stack, or a Deployment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Root {
    pub(crate) kind: Kind,
    number: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Stack,
    Deployment,
}

impl fmt::Display for Root {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", if self.kind == Kind::Stack { "stack" } else { "app" }, self.number)
    }
}

impl Root {
    pub(crate) fn url(self) -> String {
        match self.kind {
            Kind::Stack => url("stacks", &self.to_string()),
            Kind::Deployment => url("deployments", &self.to_string()),
        }
    }

    /// The kinds of its children.
    fn children(self) -> &'static [&'static str] {
        match self.kind {
            Kind::Stack => &["ConfigMap", "Deployment"],
            Kind::Deployment => &["ReplicaSet"],
        }
    }
}

/// Where a resource is, or an object of it.
pub(crate) fn url(resource: &str, name: &str) -> String {
    let api = match resource {
        "configmaps" => "/api/v1",
        "stacks" => "/apis/example.com/v1",
        _ => "/apis/apps/v1",
    };
    let name = if name.is_empty() { String::new() } else { format!("/{name}") };
    format!("{api}/namespaces/{NAMESPACE}/{resource}{name}")
}

/// An object as it is.
fn name_of(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

/// The people of a simulation.
#[derive(Clone)]
pub(crate) struct People {
    line: Line,
    oracle: Arc<Oracle>,
    dice: Dice,
    pub(crate) roots: Vec<Root>,
}

impl People {
    pub(crate) fn new(seed: u64, sandbox: &Sandbox, sky: &Arc<Sky>, oracle: &Arc<Oracle>) -> Self {
        let dice = Dice::new(seed, "people");
        let kinds = [Kind::Stack, Kind::Stack, Kind::Deployment];
        let roots = (0..2 + dice.below(2))
            .map(|number| Root { kind: dice.pick(&kinds).copied().unwrap_or(Kind::Stack), number })
            .collect();
        let line = Line::new(sandbox, User::admin("reader"), sky, Dice::new(seed, "line of people"));
        Self { line, oracle: oracle.clone(), dice, roots }
    }

    /// Sends a request as somebody.
    pub(crate) async fn send(&self, who: &str, method: Method, url: &str, body: &Value) -> (u16, Value) {
        let content =
            if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
        let bytes = if body.is_null() { Bytes::new() } else { Bytes::from(body.to_string()) };
        let request = Request::builder()
            .method(method.clone())
            .uri(url)
            .header("content-type", content)
            .header("user-agent", who)
            .extension(User::admin(who))
            .body(bytes);
        let Ok(request) = request else { return (0, Value::Null) };
        let answer = match self.line.call(request).await {
            Ok(answer) => answer,
            Err(lost) => {
                self.oracle.note(format_args!("{who}: {method} {url}: {lost}"));
                return (0, Value::Null);
            }
        };
        let code = answer.status().as_u16();
        let body = answer.into_body().collect().await.map(|body| body.to_bytes()).unwrap_or_default();
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        if method != Method::GET {
            let why = if code < 300 { "" } else { body["message"].as_str().unwrap_or_default() };
            self.oracle.note(format_args!("{who}: {method} {url}: {code} {why}"));
        }
        (code, body)
    }

    async fn patch(&self, who: &str, url: &str, body: &Value) -> u16 {
        self.send(who, Method::PATCH, url, body).await.0
    }

    async fn get(&self, url: &str) -> Option<Value> {
        let (code, body) = self.send("reader", Method::GET, url, &Value::Null).await;
        (code == 200).then_some(body)
    }

    pub(crate) async fn list(&self, resource: &str) -> Vec<Value> {
        let list = self.get(&url(resource, "")).await.unwrap_or_default();
        let mut items = list["items"].as_array().cloned().unwrap_or_default();
        let kind = list["kind"].as_str().unwrap_or_default().trim_end_matches("List").to_owned();
        for item in &mut items {
            item["kind"] = kind.as_str().into();
        }
        items
    }

    pub(crate) async fn create(&self, root: Root) -> u16 {
        let size = 1 + self.dice.below(2);
        let metadata = json!({"name": root.to_string(), "namespace": NAMESPACE});
        let labels = json!({"app": root.to_string()});
        let (resource, body) = match root.kind {
            Kind::Stack => (
                "stacks",
                json!({"apiVersion": "example.com/v1", "kind": "Stack", "metadata": metadata,
                    "spec": {"size": size, "color": "red"}}),
            ),
            Kind::Deployment => (
                "deployments",
                json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata,
                    "spec": {"replicas": size, "selector": {"matchLabels": labels}, "template": {
                        "metadata": {"labels": labels, "annotations": {"color": "red"}},
                        "spec": {"containers": [{"name": "app", "image": "app:1"}]}}}}),
            ),
        };
        self.send("alice", Method::POST, &url(resource, ""), &body).await.0
    }

    /// Changes what an object is for.
    pub(crate) async fn change(&self, who: &str, kind: Kind, at: &str, color: &str, size: u64) -> u16 {
        let spec = match kind {
            Kind::Stack => json!({"color": color, "size": size}),
            Kind::Deployment => {
                json!({"replicas": size, "template": {"metadata": {"annotations": {"color": color}}}})
            }
        };
        self.patch(who, at, &json!({ "spec": spec })).await
    }

    /// Whoever only looks what would happen must change nothing by it.
    fn perhaps_dry(&self, at: &str) -> String {
        let dry = if self.dice.chance(100) { "?dryRun=All" } else { "" };
        format!("{at}{dry}")
    }

    /// Takes back all orders that hold something up.
    pub(crate) async fn release(&self, root: Root) {
        let none = json!({"metadata": {"annotations": {FREEZE: null, REJECTIONS: null}}});
        self.patch("alice", &root.url(), &none).await;
    }

    /// A child of somebody, if there is one.
    async fn child(&self, resource: &str) -> Option<Value> {
        let all = self.list(resource).await;
        let owned: Vec<_> =
            all.into_iter().filter(|object| object["metadata"]["ownerReferences"].is_array()).collect();
        self.dice.pick(&owned).cloned()
    }

    /// Does so many things.
    pub(crate) async fn act(&self, times: u64) {
        for nth in 0..times {
            let pauses = [20, 200, 2_000, 15_000, 45_000];
            let pause = self.dice.pick(&pauses).copied().unwrap_or_default();
            tokio::time::sleep(self.dice.time(Duration::from_millis(pause))).await;
            if let Some(root) = self.dice.pick(&self.roots).copied() {
                self.do_something(root, nth).await;
            }
        }
    }

    async fn do_something(&self, root: Root, nth: u64) {
        let who = if self.dice.chance(500) { "alice" } else { "bob" };
        match self.dice.below(100) {
            0..25 => {
                let colors = ["red", "green", "blue"];
                let color = self.dice.pick(&colors).copied().unwrap_or_default();
                let (at, size) = (self.perhaps_dry(&root.url()), 1 + self.dice.below(2));
                self.change(who, root.kind, &at, color, size).await;
            }
            25..33 => {
                let scale = json!({"spec": {"replicas": 1 + self.dice.below(3)}});
                let deployment = self.child("deployments").await.map(|child| name_of(&child).to_owned());
                let name = if root.kind == Kind::Deployment { Some(root.to_string()) } else { deployment };
                if let Some(name) = name {
                    let at = self.perhaps_dry(&format!("{}/scale", url("deployments", &name)));
                    self.patch(who, &at, &scale).await;
                }
            }
            33..38 => {
                let note = json!({"metadata": {"annotations": {"note": format!("{nth}")}}});
                self.patch(who, &root.url(), &note).await;
            }
            38..60 => self.edit_child(who, nth).await,
            60..65 => self.delete_child(who).await,
            65..85 => self.decide(who, root).await,
            85..90 => self.forge(root).await,
            90..94 => {
                let policies = ["Background", "Foreground", "Orphan"];
                let policy = self.dice.pick(&policies).copied().unwrap_or_default();
                self.send(who, Method::DELETE, &root.url(), &json!({"propagationPolicy": policy})).await;
            }
            _ => {
                self.create(root).await;
            }
        }
    }

    async fn edit_child(&self, who: &str, nth: u64) {
        let resources = ["configmaps", "configmaps", "replicasets", "deployments"];
        let resource = self.dice.pick(&resources).copied().unwrap_or_default();
        let Some(child) = self.child(resource).await else { return };
        let edit = match resource {
            "configmaps" => json!({"data": {"color": format!("odd {nth}")}}),
            _ => json!({"spec": {"replicas": self.dice.below(4)}}),
        };
        self.patch(who, &url(resource, name_of(&child)), &edit).await;
    }

    async fn delete_child(&self, who: &str) {
        let resources = ["configmaps", "replicasets"];
        let resource = self.dice.pick(&resources).copied().unwrap_or_default();
        let Some(child) = self.child(resource).await else { return };
        let options = json!({"propagationPolicy": "Background"});
        self.send(who, Method::DELETE, &url(resource, name_of(&child)), &options).await;
    }

    /// Approves, rejects, freezes, or takes that back.
    async fn decide(&self, who: &str, root: Root) {
        let parents = self.list("deployments").await;
        let nested = self.dice.pick(&parents).filter(|_| self.dice.chance(300));
        let (at, children) = match nested {
            Some(deployment) => (url("deployments", name_of(deployment)), &["ReplicaSet"][..]),
            None => (root.url(), root.children()),
        };
        let Some(parent) = self.get(&at).await else { return };
        let kind = self.dice.pick(children).copied().unwrap_or_default();
        let key_and_value = match self.dice.below(10) {
            0..6 => {
                let modes = ["once", "once", "once", "generation", "always"];
                let mode = self.dice.pick(&modes).copied().unwrap_or_default();
                let stored = &parent["metadata"]["annotations"][APPROVALS];
                let mut all: Vec<Value> =
                    stored.as_str().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
                all.push(json!({"apiVersion": "*", "kind": kind, "name": "*", "mode": mode, "by": who,
                    "generation": parent["metadata"]["generation"],
                    "reason": format!("{mode} {:016x}", self.dice.below(u64::MAX))}));
                (APPROVALS, json!(json!(all).to_string()))
            }
            6 => {
                let all = json!([{"apiVersion": "*", "kind": kind, "name": "*", "reason": "not today"}]);
                (REJECTIONS, json!(all.to_string()))
            }
            7 => (FREEZE, json!(json!({"user": who, "message": "stop"}).to_string())),
            8 => (FREEZE, Value::Null),
            _ => (if self.dice.chance(500) { REJECTIONS } else { APPROVALS }, Value::Null),
        };
        // As people do it: on what they have seen.
        let seen = &parent["metadata"]["resourceVersion"];
        let annotations = json!({key_and_value.0: key_and_value.1});
        self.patch(who, &at, &json!({"metadata": {"resourceVersion": seen, "annotations": annotations}}))
            .await;
    }

    /// Writes what only Kausality may write.
    async fn forge(&self, root: Root) {
        let child = if self.dice.chance(500) { self.child("configmaps").await } else { None };
        let at = child.map_or_else(|| root.url(), |child| url("configmaps", name_of(&child)));
        let Some(object) = self.get(&at).await else { return };
        let own = |fact: &str| Suffix::of_object(&object).key(fact);
        let forged = json!({"metadata": {"annotations": {
            own(SETTLED): "forged", own(TRACE): "forged", own(CONTROLLERS): "forge", own(PHASE): "Initialized",
            own(OBSERVED_GENERATION): "99",
        }}});
        self.patch("mallory", &at, &forged).await;
    }
}
