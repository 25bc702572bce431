//! A Cluster with a pool of Machines: what people do with it, and what becomes of it.

use kausality_testbed::eventually;
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::ApiResource;
use serde_json::{Value, json};

use super::kinds::{clusters, machine_deployments, machine_sets, machine_template, machines};
use super::world::World;
use crate::stage::PATIENCE;

/// The pool of a Cluster.
pub(super) struct Pool<'a> {
    pub(super) world: &'a World,
    cluster: &'static str,
    /// Of the MachineDeployment.
    pub(super) name: String,
    replicas: i64,
}

impl<'a> Pool<'a> {
    /// A person creates a Cluster and all that belongs to it. Its pool has the same name, or is the one that its class makes.
    pub(super) async fn create(
        world: &'a World,
        user: &str,
        cluster: &'static str,
        objects: Vec<Value>,
        replicas: i64,
    ) -> Self {
        create(world, user, objects).await;
        let pool = eventually(PATIENCE, "a pool", async || {
            let pools = of(world, &machine_deployments(), cluster).await;
            pools.first().and_then(|pool| pool["metadata"]["name"].as_str().map(str::to_owned))
        });
        let name = pool.await.unwrap();
        Self { world, cluster, name, replicas }
    }

    /// A person changes the MachineDeployment.
    pub(super) async fn patch(&self, user: &str, patch: Value) {
        change(self.world, user, &machine_deployments(), &self.name, patch).await;
    }

    pub(super) async fn scale(&mut self, user: &str, replicas: i64) {
        self.patch(user, json!({ "spec": { "replicas": replicas } })).await;
        self.replicas = replicas;
    }

    /// A person wants Machines of another template.
    pub(super) async fn roll_out(&self, user: &str, template: &str, size: i64) {
        create(self.world, user, vec![machine_template(template, size)]).await;
        let infrastructure = json!({ "infrastructureRef": { "name": template } });
        self.patch(user, json!({ "spec": { "template": { "spec": infrastructure } } })).await;
    }

    /// A person changes what the class makes the pool from.
    pub(super) async fn patch_topology(&self, user: &str, path: &str, value: Value) {
        let patch = json!([{ "op": "replace", "path": format!("/spec/topology/{path}"), "value": value }]);
        let patch: json_patch::Patch = serde_json::from_value(patch).unwrap();
        let api = self.world.api(user, &clusters());
        let patch = Patch::<Value>::Json(patch);
        api.patch(self.cluster, &PatchParams::default(), &patch).await.unwrap();
    }

    pub(super) async fn scale_topology(&mut self, user: &str, replicas: i64) {
        self.patch_topology(user, "workers/machineDeployments/0/replicas", json!(replicas)).await;
        self.replicas = replicas;
    }

    /// Waits until all Machines are as the MachineDeployment wants them, and it looks like this.
    pub(super) async fn is_done(&self, looks: impl Fn(&Value) -> bool) {
        let what = format_args!("{} with {} Machines", self.name, self.replicas);
        eventually(PATIENCE, what, async || self.look(&looks).await).await.unwrap();
    }

    async fn look(&self, looks: &impl Fn(&Value) -> bool) -> Result<(), String> {
        let own = self.object().await;
        let status = &own["status"];
        let counted = ["replicas", "upToDateReplicas", "availableReplicas"];
        let wanted = own["spec"]["replicas"] == self.replicas
            && counted.iter().all(|field| status[field] == self.replicas)
            && status["observedGeneration"] == own["metadata"]["generation"];
        let there = self.machines().await.len();
        // Right after a change its status says that all is done.
        let sets = of(self.world, &machine_sets(), self.cluster).await;
        let rolled_out = sets.len() == 1 && template(&sets[0]) == template(&own);
        if wanted && rolled_out && looks(&own) && there as i64 == self.replicas {
            return Ok(());
        }
        Err(format!("{there} Machines of {} MachineSets, status {status}", sets.len()))
    }

    /// The MachineDeployment.
    pub(super) async fn object(&self) -> Value {
        json!(self.world.api("watcher", &machine_deployments()).get(&self.name).await.unwrap())
    }

    /// All Machines, also those that are being deleted.
    pub(super) async fn machines(&self) -> Vec<Value> {
        of(self.world, &machines(), self.cluster).await
    }

    /// The MachineSet that has Machines.
    pub(super) async fn machine_set(&self) -> Value {
        let sets = of(self.world, &machine_sets(), self.cluster).await;
        sets.into_iter().find(|set| set["spec"]["replicas"] != 0).unwrap()
    }

    pub(super) async fn delete(&self, user: &str) {
        self.world.api(user, &clusters()).delete(self.cluster, &DeleteParams::default()).await.unwrap();
        eventually(PATIENCE, "the end of a Cluster", async || {
            let found = self.world.api("watcher", &clusters()).get_opt(self.cluster).await.unwrap();
            found.is_none().then_some(())
        })
        .await
        .unwrap();
    }
}

/// A person creates objects.
pub(super) async fn create(world: &World, user: &str, objects: Vec<Value>) {
    for object in objects {
        let kind = &object["kind"];
        let (group, version) = object["apiVersion"].as_str().unwrap().split_once('/').unwrap();
        let kind = kind.as_str().unwrap();
        let gvk = kube::core::GroupVersionKind::gvk(group, version, kind);
        let plural = match kind {
            "ClusterClass" => "clusterclasses".to_owned(),
            kind => format!("{}s", kind.to_lowercase()),
        };
        let api = world.api(user, &ApiResource::from_gvk_with_plural(&gvk, &plural));
        let object: DynamicObject = serde_json::from_value(object).unwrap();
        // A ClusterClass is refused as long as the cache of Cluster API lacks what it refers to.
        eventually(PATIENCE, "an object", async || api.create(&PostParams::default(), &object).await)
            .await
            .unwrap();
    }
}

/// A person changes an object.
pub(super) async fn change(world: &World, user: &str, kind: &ApiResource, name: &str, patch: Value) {
    world.api(user, kind).patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
}

/// Waits until an object looks like this.
pub(super) async fn becomes(
    world: &World,
    kind: &ApiResource,
    name: &str,
    looks: impl Fn(&Value) -> bool,
) -> Value {
    eventually(PATIENCE, format_args!("{} {name}", kind.kind), async || {
        let object = json!(world.api("watcher", kind).get(name).await.unwrap());
        if looks(&object) { Ok(object) } else { Err(object.to_string()) }
    })
    .await
    .unwrap()
}

/// What Machines are made from: infrastructure and version.
pub(super) fn template(pool: &Value) -> (&Value, &Value) {
    let spec = &pool["spec"]["template"]["spec"];
    (&spec["infrastructureRef"]["name"], &spec["version"])
}

/// The status of a condition.
pub(super) fn condition<'a>(object: &'a Value, name: &str) -> &'a str {
    let conditions = object["status"]["conditions"].as_array();
    let found = conditions.into_iter().flatten().find(|condition| condition["type"] == name);
    found.and_then(|condition| condition["status"].as_str()).unwrap_or_default()
}

/// The objects of a kind that belong to a Cluster.
async fn of(world: &World, kind: &ApiResource, cluster: &str) -> Vec<Value> {
    let ours = ListParams::default().labels(&format!("cluster.x-k8s.io/cluster-name={cluster}"));
    let found = world.api("watcher", kind).list(&ours).await.unwrap();
    found.items.into_iter().map(|object| json!(object)).collect()
}
