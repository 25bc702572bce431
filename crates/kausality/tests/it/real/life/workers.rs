//! Who lives: people with Deployments, people who meddle, an operator, and those who write policies.

use std::{sync::Arc, time::Duration};

use kausality_testbed::{ControlPlane, MASTERS};
use kube::{
    Api, Client,
    api::{DeleteParams, ListParams, Patch, PatchParams},
    core::{ApiResource, DynamicObject, GroupVersionKind},
};
use serde_json::{Value, json};

use super::{DRIFTING, World, world::is_rolled_out};

/// How many people have Deployments that nobody meddles with.
const PEOPLE: usize = 2;

const OPERATOR: &str = "system:serviceaccount:default:operator";

/// How long a controller leaves a parent alone before what it does is drift, and a little more.
const QUIET: Duration = Duration::from_secs(4);

/// What denials say.
const DRIFT: (&str, &str) = ("drift", "although nobody changed");
const FROZEN: (&str, &str) = ("frozen", "is frozen");

/// All namespaces in which anything lives.
pub(super) fn namespaces() -> Vec<String> {
    let people = (0..PEOPLE).map(|nth| format!("team-{nth}"));
    people.chain([DRIFTING.to_owned(), "policies".to_owned()]).collect()
}

/// Has all of them live until the world stops. What they made is gone when they end.
pub(super) fn live(plane: &ControlPlane, world: &Arc<World>) -> impl Future<Output = ()> + use<> {
    let somebody = |user: &str, namespace: &str| Somebody {
        world: world.clone(),
        client: plane.client(user, &[MASTERS]).unwrap(),
        namespace: namespace.to_owned(),
    };
    let people: Vec<Somebody> = (0..PEOPLE).map(|nth| somebody("alice", &format!("team-{nth}"))).collect();
    let (owner, meddler) = (somebody("alice", DRIFTING), somebody("carol", DRIFTING));
    let operator = somebody(OPERATOR, DRIFTING);
    let author = somebody("erin", "policies");
    async move {
        let deploying = futures::future::join_all(people.iter().map(Somebody::deploy));
        let drifting = futures::future::join(meddle(&owner, &meddler), operate(&owner, &operator));
        futures::future::join3(deploying, drifting, author.write_policies()).await;
    }
}

/// A user, in a namespace.
struct Somebody {
    world: Arc<World>,
    client: Client,
    namespace: String,
}

impl Somebody {
    fn api(&self, of: &Value) -> Api<DynamicObject> {
        let (version, kind) = (of["apiVersion"].as_str().unwrap(), of["kind"].as_str().unwrap());
        let (group, version) = version.split_once('/').unwrap_or(("", version));
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        match kind {
            "Kausality" => Api::all_with(self.client.clone(), &resource),
            _ => Api::namespaced_with(self.client.clone(), &self.namespace, &resource),
        }
    }

    /// Has an object be like this. It may be tried twice, and comes to the same.
    async fn apply(&self, object: &Value) {
        let (api, name) = (self.api(object), object["metadata"]["name"].as_str().unwrap());
        let parameters = PatchParams::apply("life").force();
        let write = async || api.patch(name, &parameters, &Patch::Apply(object)).await;
        self.world.write(&format!("apply {name}"), None, write).await;
    }

    /// Changes an object. Whether that was done.
    async fn merge(&self, object: &Value, patch: &Value, expected: Option<(&str, &str)>) -> bool {
        let (api, name) = (self.api(object), object["metadata"]["name"].as_str().unwrap());
        let write = async || api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await;
        self.world.write(&format!("change {name} {patch}"), expected, write).await.is_some()
    }

    async fn report(&self, object: &Value, status: &Value) {
        let (api, name) = (self.api(object), object["metadata"]["name"].as_str().unwrap());
        let patch = json!({"status": status});
        let write = async || api.patch_status(name, &PatchParams::default(), &Patch::Merge(&patch)).await;
        self.world.write(&format!("report on {name}"), None, write).await;
    }

    /// Deletes an object, and waits until it is gone, and those of a kind that it owns.
    async fn delete(&self, object: &Value, children: &Value) {
        let (api, name) = (self.api(object), object["metadata"]["name"].as_str().unwrap());
        let write = async || match api.delete(name, &DeleteParams::background()).await {
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            other => other.map(drop),
        };
        self.world.write(&format!("delete {name}"), None, write).await;
        let gone = async || {
            let left = self.list(children).await?;
            let of_it = |child: &&Value| child["metadata"]["ownerReferences"][0]["name"] == name;
            let left = left.iter().filter(of_it).count() + usize::from(self.get(object).await?.is_some());
            if left == 0 { Ok(()) } else { Err(format!("{left} objects are left")) }
        };
        self.world.wait(&format!("the end of {name}"), gone).await;
    }

    async fn get(&self, object: &Value) -> Result<Option<Value>, String> {
        let found = self.api(object).get_opt(object["metadata"]["name"].as_str().unwrap()).await;
        Ok(found.map_err(|error| error.to_string())?.map(|found| serde_json::to_value(found).unwrap()))
    }

    async fn list(&self, of: &Value) -> Result<Vec<Value>, String> {
        let found = self.api(of).list(&ListParams::default()).await.map_err(|error| error.to_string())?;
        Ok(found.items.into_iter().map(|item| serde_json::to_value(item).unwrap()).collect())
    }

    async fn rolled_out(&self, deployment: &Value) {
        let look = async || {
            let found = self.get(deployment).await?.unwrap_or_default();
            if is_rolled_out(&found) { Ok(()) } else { Err(format!("{:#}", found["status"])) }
        };
        self.world.wait("the roll-out", look).await;
    }

    /// The open drifts below a parent.
    async fn drifts(&self, parent: &str) -> Result<Vec<String>, String> {
        let of = json!({"apiVersion": "kausality.io/v1alpha1", "kind": "Drift"});
        let found = self.list(&of).await?.into_iter().filter(|entry| {
            entry["spec"]["parent"]["name"] == parent && entry["status"]["state"] != "Resolved"
        });
        Ok(found.map(|entry| entry["metadata"]["name"].as_str().unwrap().to_owned()).collect())
    }

    /// Deployments come, are changed and scaled, and go.
    async fn deploy(&self) {
        for cycle in 0.. {
            if self.world.is_over() {
                return;
            }
            let deployment = deployment(&format!("web-{cycle}"));
            self.apply(&deployment).await;
            self.rolled_out(&deployment).await;
            for change in [template(2), json!({"spec": {"replicas": 3}}), template(3)] {
                self.merge(&deployment, &change, None).await;
                self.rolled_out(&deployment).await;
            }
            self.delete(&deployment, &replica_set("")).await;
            self.world.note("Deployments");
        }
    }

    /// Policies come, are changed, and go, and so do rules.
    async fn write_policies(&self) {
        let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "extra"},
            "spec": {"ports": [{"port": 80}]}});
        for cycle in 0.. {
            if self.world.is_over() {
                return;
            }
            let resources = json!([{"apiGroups": [""], "resources": ["services"]}]);
            let policy = |mode: &str| {
                json!({"apiVersion": "kausality.io/v1alpha1", "kind": "Kausality",
                    "metadata": {"name": format!("extra-{cycle}")},
                    "spec": {"resources": resources, "namespaces": {"names": ["policies"]}, "mode": mode}})
            };
            let rules = json!([{"apiVersion": "v1", "kind": "Service", "name": "*",
                "subjects": [{"kind": "User", "name": "nobody"}]}]);
            let rule = json!({"apiVersion": "kausality.io/v1alpha1", "kind": "ApprovalPolicy",
                "metadata": {"name": "extra"}, "spec": {"rules": rules}});
            self.apply(&rule).await;
            for mode in ["log", "enforce"] {
                self.apply(&policy(mode)).await;
                let look = async || {
                    let found = self.get(&policy(mode)).await?.unwrap_or_default();
                    let generation = &found["metadata"]["generation"];
                    let conditions = found["status"]["conditions"].as_array().cloned().unwrap_or_default();
                    let is_ready = |one: &Value| {
                        one["type"] == "Ready"
                            && one["status"] == "True"
                            && one["observedGeneration"] == *generation
                    };
                    if conditions.iter().any(is_ready) { Ok(()) } else { Err(format!("{found:#}")) }
                };
                self.world.wait("a policy in force", look).await;
                self.apply(&service).await;
                self.delete(&service, &service).await;
            }
            self.delete(&policy("enforce"), &service).await;
            self.delete(&rule, &service).await;
            self.world.note("policies");
        }
    }
}

/// Somebody scales a ReplicaSet by hand: its controller wants to take that back, which is drift, and people decide in each of the
/// ways that there are.
async fn meddle(owner: &Somebody, meddler: &Somebody) {
    let world = &owner.world;
    for cycle in 0_u32.. {
        // An approval and a rejection at least.
        if world.is_over() && cycle > 1 {
            return;
        }
        let name = format!("shop-{cycle}");
        let deployment = deployment(&name);
        owner.apply(&deployment).await;
        owner.rolled_out(&deployment).await;
        let mut replicas = 5;
        let mut tries = tokio::time::interval(QUIET);
        tries.tick().await;
        let drifts = world
            .wait("a drift of a ReplicaSet", async || {
                tries.tick().await;
                let sets = owner.list(&replica_set("")).await?;
                let set =
                    sets.iter().find(|set| set["metadata"]["ownerReferences"][0]["name"] == name.as_str());
                let set = replica_set(set.and_then(|set| set["metadata"]["name"].as_str()).ok_or("none")?);
                replicas += 1;
                meddler.merge(&set, &json!({"spec": {"replicas": replicas}}), None).await;
                tries.tick().await;
                let drifts = owner.drifts(&name).await?;
                if drifts.is_empty() { Err("it was let pass".to_owned()) } else { Ok(drifts) }
            })
            .await;
        let Some(drift) = drifts.and_then(|drifts| drifts.into_iter().next()) else { return };
        world.note("drift");
        let of_it = ["-n", DRIFTING];
        let needless = async || owner.drifts(&name).await.is_ok_and(|open| !open.contains(&drift));
        let place = format!("deployment/{name}");
        match cycle % 3 {
            0 => {
                world.command(&[&["approve", &drift], &of_it[..]].concat(), needless).await;
                world.note("approved");
                owner.rolled_out(&deployment).await;
            }
            1 => {
                world.command(&[&["reject", &drift, "--reason", "no"], &of_it[..]].concat(), needless).await;
                world.note("rejected");
                // With what a person wants of the parent, a rejection is over.
                owner.merge(&deployment, &template(2), None).await;
                owner.rolled_out(&deployment).await;
            }
            _ => {
                let never = async || false;
                world.command(&[&["freeze", &place, "--reason", "why"], &of_it[..]].concat(), never).await;
                world.command(&[&["unfreeze", &place], &of_it[..]].concat(), never).await;
                owner.merge(&deployment, &template(2), None).await;
                owner.rolled_out(&deployment).await;
            }
        }
        owner.delete(&deployment, &replica_set("")).await;
    }
}

/// An operator follows what a person wants, drifts, is frozen and let go.
async fn operate(owner: &Somebody, operator: &Somebody) {
    let world = &owner.world;
    for cycle in 0_u32.. {
        if world.is_over() && cycle > 0 {
            return;
        }
        let name = format!("stack-{cycle}");
        let stack = json!({"apiVersion": "example.com/v1", "kind": "Stack", "metadata": {"name": name},
            "spec": {"color": "red"}});
        owner.apply(&stack).await;
        let Ok(Some(found)) = owner.get(&stack).await else { continue };
        let child = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name,
            "ownerReferences": [{"apiVersion": "example.com/v1", "kind": "Stack", "name": name,
                "uid": found["metadata"]["uid"], "controller": true}]}, "data": {"color": "red"}});
        operator.apply(&child).await;
        settle(operator, &stack).await;
        let mut tries = tokio::time::interval(QUIET);
        tries.tick().await;
        let mut attempt = 0;
        world
            .wait("a drift of an operator", async || {
                tries.tick().await;
                attempt += 1;
                let patch = json!({"data": {"drift": attempt.to_string()}});
                let done = operator.merge(&child, &patch, Some(DRIFT)).await;
                if done { Err("it was let pass".to_owned()) } else { Ok(()) }
            })
            .await;
        // A person wants something else: that is followed, but not while it is frozen.
        let (place, never) = (format!("stack/{name}"), async || false);
        owner.merge(&stack, &json!({"spec": {"color": "blue"}}), None).await;
        operator.merge(&child, &json!({"data": {"color": "blue"}}), None).await;
        world.command(&["freeze", &place, "--reason", "why", "-n", DRIFTING], never).await;
        operator.merge(&child, &json!({"data": {"size": cycle.to_string()}}), Some(FROZEN)).await;
        world.command(&["unfreeze", &place, "-n", DRIFTING], never).await;
        operator.merge(&child, &json!({"data": {"size": cycle.to_string()}}), None).await;
        settle(operator, &stack).await;
        owner.delete(&stack, &child).await;
        world.note("Stacks");
    }
}

/// The operator says that it is done.
async fn settle(operator: &Somebody, stack: &Value) {
    let look = async || operator.get(stack).await?.ok_or("it is gone".to_owned());
    let Some(found) = operator.world.wait("the parent", look).await else { return };
    let status = json!({"observedGeneration": found["metadata"]["generation"],
        "conditions": [{"type": "Ready", "status": "True"}]});
    operator.report(stack, &status).await;
}

fn deployment(name: &str) -> Value {
    let labels = json!({"app": name});
    let pod =
        json!({"metadata": {"labels": labels}, "spec": {"containers": [{"name": "app", "image": "app:1"}]}});
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {"replicas": 2, "selector": {"matchLabels": labels}, "template": pod}})
}

fn template(version: u32) -> Value {
    json!({"spec": {"template": {"metadata": {"annotations": {"version": version.to_string()}}}}})
}

fn replica_set(name: &str) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": name}})
}
