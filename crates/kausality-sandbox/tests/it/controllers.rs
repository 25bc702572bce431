//! Controllers at work on a sandbox.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use futures::future::{BoxFuture, FutureExt as _};
use http::{Method, Request, Response};
use http_body_util::{BodyExt as _, Full};
use kausality_sandbox::{
    Body, Road, Running, Sandbox, User,
    controllers::{
        Cache, Change, Controller, GarbageCollector, Key, NAMESPACES, Outcome, Time, Watched, standard,
    },
};
use kube::{
    Api,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, PropagationPolicy},
    core::{ApiResource, DynamicObject, GroupVersionKind},
};
use serde_json::{Value, json};

struct Stage {
    sandbox: Sandbox,
    _running: Running,
}

impl Stage {
    fn new() -> Self {
        let sandbox = Sandbox::default();
        let running = sandbox.run(standard());
        Self { sandbox, _running: running }
    }

    fn api(&self, group: &str, kind: &str) -> Api<DynamicObject> {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1", kind));
        Api::namespaced_with(self.sandbox.client(&User::admin("alice")), "default", &resource)
    }

    async fn create(&self, group: &str, object: Value) {
        let api = self.api(group, object["kind"].as_str().unwrap());
        api.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap();
    }

    async fn list(&self, group: &str, kind: &str) -> Vec<DynamicObject> {
        self.api(group, kind).list(&ListParams::default()).await.unwrap().items
    }

    /// Waits until it is as it should be.
    async fn until(&self, what: &str, mut is_so: impl AsyncFnMut(&Self) -> bool) {
        let deadline = Instant::now() + Duration::from_secs(30);
        let mut ticks = tokio::time::interval(Duration::from_millis(20));
        while !is_so(self).await {
            assert!(Instant::now() < deadline, "not in time: {what}");
            ticks.tick().await;
        }
    }

    async fn rolled_out(&self, name: &str, replicas: i64) {
        self.until("the roll-out", async |stage| {
            let deployment = stage.api("apps", "Deployment").get(name).await.unwrap();
            let status = &deployment.data["status"];
            status["observedGeneration"].as_i64() == deployment.metadata.generation
                && ["replicas", "updatedReplicas", "availableReplicas"]
                    .iter()
                    .all(|it| status[*it] == replicas)
                && status["conditions"].to_string().contains("NewReplicaSetAvailable")
        })
        .await;
    }
}

fn deployment(replicas: i64) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {"replicas": replicas,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "web", "image": "web:1"}]}}}})
}

#[tokio::test]
async fn a_deployment_rolls_out_is_updated_healed_and_collected() {
    let stage = Stage::new();
    stage.create("apps", deployment(3)).await;
    stage.rolled_out("web", 3).await;

    let deployments = stage.api("apps", "Deployment");
    let image = json!({"spec": {"template": {"spec": {"containers": [{"name": "web", "image": "web:2"}]}}}});
    deployments.patch("web", &PatchParams::default(), &Patch::Strategic(image)).await.unwrap();
    stage.rolled_out("web", 3).await;
    let mut sizes: Vec<i64> = stage
        .list("apps", "ReplicaSet")
        .await
        .iter()
        .map(|set| set.data["spec"]["replicas"].as_i64().unwrap())
        .collect();
    sizes.sort_unstable();
    assert_eq!(sizes, [0, 3]);

    // A Pod that is deleted is replaced; a ReplicaSet that is scaled by hand is scaled back.
    let pods = stage.list("", "Pod").await;
    let name = pods[0].metadata.name.clone().unwrap();
    stage.api("", "Pod").delete(&name, &DeleteParams::default()).await.unwrap();
    stage
        .until("another Pod", async |stage| {
            let names: Vec<_> =
                stage.list("", "Pod").await.into_iter().filter_map(|pod| pod.metadata.name).collect();
            names.len() == 3 && !names.contains(&name)
        })
        .await;
    let sets = stage.list("apps", "ReplicaSet").await;
    let current =
        sets.iter().find(|set| set.data["spec"]["replicas"] == 3).unwrap().metadata.name.clone().unwrap();
    let five = Patch::Merge(json!({"spec": {"replicas": 5}}));
    stage.api("apps", "ReplicaSet").patch(&current, &PatchParams::default(), &five).await.unwrap();
    stage
        .until("the correction", async |stage| {
            let set = stage.api("apps", "ReplicaSet").get(&current).await.unwrap();
            set.data["spec"]["replicas"] == 3 && set.data["status"]["replicas"] == 3
        })
        .await;

    let background =
        DeleteParams { propagation_policy: Some(PropagationPolicy::Background), ..DeleteParams::default() };
    deployments.delete("web", &background).await.unwrap();
    stage
        .until("the garbage collection", async |stage| {
            stage.list("apps", "ReplicaSet").await.is_empty() && stage.list("", "Pod").await.is_empty()
        })
        .await;
}

#[tokio::test]
async fn a_job_completes_and_a_stateful_set_starts_in_order() {
    let stage = Stage::new();
    let template = json!({"metadata": {"labels": {"app": "x"}},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "x", "image": "x"}]}});
    stage
        .create(
            "batch",
            json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "once"},
        "spec": {"completions": 2, "template": template}}),
        )
        .await;
    stage
        .until("the Job", async |stage| {
            let job = stage.api("batch", "Job").get("once").await.unwrap();
            job.data["status"]["succeeded"] == 2
                && job.data["status"]["conditions"].to_string().contains("Complete")
        })
        .await;
    let template =
        json!({"metadata": {"labels": {"app": "db"}}, "spec": {"containers": [{"name": "x", "image": "x"}]}});
    stage.create("apps", json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db"},
        "spec": {"replicas": 3, "serviceName": "db", "selector": {"matchLabels": {"app": "db"}}, "template": template}})).await;
    stage
        .until("the StatefulSet", async |stage| {
            stage.api("apps", "StatefulSet").get("db").await.unwrap().data["status"]["readyReplicas"] == 3
        })
        .await;
    let mut pods = stage.list("", "Pod").await;
    pods.retain(|pod| pod.metadata.name.as_deref().is_some_and(|name| name.starts_with("db-")));
    let version = |pod: &DynamicObject| pod.metadata.creation_timestamp.clone();
    assert!(pods.is_sorted_by_key(version));
    assert_eq!(pods.len(), 3);
}

/// Counts how often it is asked what it watches, and how often it looks at something.
#[derive(Clone, Default)]
struct Counting {
    asked: Arc<AtomicUsize>,
    synced: Arc<AtomicUsize>,
}

impl Controller for Counting {
    fn name(&self) -> &str {
        "counting"
    }

    fn watches(&self) -> Watched {
        self.asked.fetch_add(1, Ordering::Relaxed);
        Watched::These(vec![NAMESPACES.clone()])
    }

    fn keys(&mut self, _: &Cache, change: &Change) -> Vec<Key> {
        vec![change.key()]
    }

    fn sync(&mut self, _: &Cache, _: &Key, _: Time) -> Outcome {
        self.synced.fetch_add(1, Ordering::Relaxed);
        Outcome::default()
    }
}

/// What a look costs does not depend on how many kinds there are.
#[tokio::test]
async fn what_to_watch_is_asked_for_only_when_what_is_served_changes() {
    let (sandbox, counting) = (Sandbox::default(), Counting::default());
    let running = sandbox.run(vec![Box::new(counting.clone())]);
    let stage = Stage { sandbox, _running: running };
    let namespaces: Api<DynamicObject> = Api::all_with(
        stage.sandbox.client(&User::admin("alice")),
        &ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "Namespace")),
    );
    for nth in 0..20 {
        let namespace = json!({"metadata": {"name": format!("n{nth}")}});
        namespaces.create(&PostParams::default(), &serde_json::from_value(namespace).unwrap()).await.unwrap();
    }
    stage.until("all are seen", async |_| counting.synced.load(Ordering::Relaxed) >= 24).await;
    assert_eq!(counting.asked.load(Ordering::Relaxed), 1);
}

/// A road on which no ConfigMap is shown, and on which none can be read for a while.
struct Bad {
    sandbox: Sandbox,
    reads: AtomicUsize,
    deletions: AtomicUsize,
}

impl Bad {
    const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps/";
    /// How many reads fail.
    const FAILURES: usize = 4;
}

impl Road for Bad {
    fn call(&self, request: Request<hyper::body::Bytes>) -> BoxFuture<'_, Result<Response<Body>, String>> {
        if request.method() == Method::DELETE {
            self.deletions.fetch_add(1, Ordering::Relaxed);
        }
        if request.method() == Method::GET && request.uri().path().starts_with(Self::CONFIG_MAPS) {
            let nth = self.reads.fetch_add(1, Ordering::Relaxed);
            if nth < Self::FAILURES {
                let code = [500, 503, 403].get(nth).copied();
                let answer = code.map(|code| {
                    let body = Full::from(json!({"kind": "Status", "code": code}).to_string()).boxed_unsync();
                    Response::builder().status(code).body(body).unwrap()
                });
                return async { answer.ok_or_else(|| "connection reset by peer".to_owned()) }.boxed();
            }
        }
        self.sandbox.handle(request).map(Ok).boxed()
    }

    fn shown(&self, collection: &str, revision: u64) -> u64 {
        if collection == "/configmaps" { 0 } else { revision }
    }
}

/// An owner that cannot be read is not one that is gone.
#[tokio::test]
async fn a_failed_read_of_an_owner_deletes_nothing() {
    for is_there in [true, false] {
        let sandbox = Sandbox::default();
        let road =
            Bad { sandbox: sandbox.clone(), reads: AtomicUsize::new(0), deletions: AtomicUsize::new(0) };
        let road = Arc::new(road);
        let running = sandbox.run_over(road.clone(), Box::new(GarbageCollector::default()));
        let stage = Stage { sandbox, _running: running };
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "owner"}});
        let uid = if is_there {
            stage.create("", map).await;
            stage.api("", "ConfigMap").get("owner").await.unwrap().metadata.uid.unwrap()
        } else {
            "of-one-that-was".to_owned()
        };
        let owner = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid}]);
        let metadata = json!({"name": "owned", "ownerReferences": owner});
        stage.create("", json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata})).await;
        let count = |of: &AtomicUsize| of.load(Ordering::Relaxed);
        stage
            .until("an owner that is read", async |_| {
                count(&road.reads) > Bad::FAILURES || count(&road.deletions) > 0
            })
            .await;
        assert!(count(&road.reads) > Bad::FAILURES, "deleted after {} reads", count(&road.reads));
        if is_there {
            assert_eq!(count(&road.deletions), 0);
            stage.api("", "Secret").get("owned").await.unwrap();
        } else {
            stage.until("the collection", async |stage| stage.list("", "Secret").await.is_empty()).await;
        }
    }
}

/// A definition of a kind whose objects own others.
fn bed_definition() -> Value {
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "beds.garden.io"}, "spec": {"group": "garden.io", "scope": "Namespaced",
        "names": {"plural": "beds", "kind": "Bed"},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}]}})
}

/// Issue 19: the namespace controller asked for the objects of kinds that were gone, and took the answer for a failure.
#[tokio::test]
async fn namespaces_go_after_a_definition_has_gone() {
    let stage = Stage::new();
    let client = stage.sandbox.client(&User::admin("alice"));
    let all = |group: &str, kind: &str| -> Api<DynamicObject> {
        Api::all_with(client.clone(), &ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1", kind)))
    };
    let definitions = all("apiextensions.k8s.io", "CustomResourceDefinition");
    let namespaces = all("", "Namespace");
    // Once while its objects are there, and once more after it came back.
    for round in 0..2 {
        let definition = serde_json::from_value(bed_definition()).unwrap();
        definitions.create(&PostParams::default(), &definition).await.unwrap();
        let bed = json!({"apiVersion": "garden.io/v1", "kind": "Bed", "metadata": {"name": "bed"}});
        stage.create("garden.io", bed).await;
        let uid = stage.api("garden.io", "Bed").get("bed").await.unwrap().metadata.uid.unwrap();
        // The last is of an owner that never was: once it is gone, the garbage collector knows beds.
        for (name, uid) in [("owned", uid.as_str()), ("probe", "of-none")] {
            let owner = json!([{"apiVersion": "garden.io/v1", "kind": "Bed", "name": "bed", "uid": uid}]);
            let metadata = json!({"name": name, "ownerReferences": owner});
            stage.create("", json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata})).await;
        }
        stage.until("one that nobody owns", async |stage| stage.list("", "Secret").await.len() == 1).await;

        definitions.delete("beds.garden.io", &DeleteParams::default()).await.unwrap();
        let name = format!("n{round}");
        let namespace = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
        namespaces.create(&PostParams::default(), &namespace).await.unwrap();
        namespaces.delete(&name, &DeleteParams::default()).await.unwrap();
        stage
            .until("the namespace is gone", async |_| namespaces.get_opt(&name).await.unwrap().is_none())
            .await;
        stage
            .until("what the custom resource owned is gone", async |stage| {
                stage.list("", "Secret").await.is_empty()
            })
            .await;
    }
}
