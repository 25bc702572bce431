//! StatefulSets, DaemonSets, Jobs, CronJobs, and what a composite controller makes.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{
    super::{
        CRON_JOBS, Child, Composite, DAEMON_SETS, JOBS, NODES, PODS, Propagation, STATEFUL_SETS, Time,
        conditions, object, pod,
    },
    api::{CLUSTERS, CONFIG_MAPS, POOLS, Tried, intent},
    for_seeds, image,
};

fn stateful_set(replicas: i64, policy: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet",
        "metadata": { "name": "db", "namespace": "default" },
        "spec": {
            "replicas": replicas, "serviceName": "db", "podManagementPolicy": policy,
            "updateStrategy": { "type": "RollingUpdate", "rollingUpdate": { "partition": 0 } },
            "selector": { "matchLabels": { "app": "db" } },
            "template": {
                "metadata": { "labels": { "app": "db" } },
                "spec": { "containers": [{ "name": "main", "image": "db:1" }] }
            }
        }
    })
}

/// What was done to Pods by a controller, in order: verb and name.
fn moves<'a>(log: &'a [Tried], user: &'a str) -> Vec<(&'static str, &'a str)> {
    let done = log.iter().filter(|it| it.user == user && it.resource == PODS && it.refusal.is_none());
    let mut moves: Vec<_> = done.map(|it| (it.verb, object::name(it.after.as_ref().unwrap()))).collect();
    // Whoever does not see yet that a Pod is going deletes it again.
    moves.dedup();
    moves
}

#[test]
fn a_stateful_set_starts_in_order_and_updates_in_reverse() {
    for_seeds(200, |world| {
        world.create(&STATEFUL_SETS, stateful_set(3, "OrderedReady"));
        world.watch(|api| {
            let unready = api.list(&PODS).filter(|it| !pod::running_and_ready(it)).count();
            assert!(unready <= 1, "one Pod at a time");
        });
        world.settle();
        let created = moves(&world.api.log, "statefulset-controller");
        assert_eq!(created, [("CREATE", "db-0"), ("CREATE", "db-1"), ("CREATE", "db-2")]);
        let first = world.get(&STATEFUL_SETS, "db")["status"]["updateRevision"].clone();

        let start = world.api.log.len();
        world.patch(&STATEFUL_SETS.key("default", "db"), image("db:2"));
        world.settle();
        let replaced = moves(&world.api.log[start..], "statefulset-controller");
        let order: Vec<_> =
            ["db-2", "db-1", "db-0"].into_iter().flat_map(|it| [("DELETE", it), ("CREATE", it)]).collect();
        assert_eq!(replaced, order);
        let set = world.get(&STATEFUL_SETS, "db");
        let status = &set["status"];
        assert_ne!(status["updateRevision"], first);
        assert_eq!(status["currentRevision"], status["updateRevision"]);
        for counter in
            ["replicas", "readyReplicas", "availableReplicas", "updatedReplicas", "currentReplicas"]
        {
            assert_eq!(status[counter], 3, "{counter}");
        }
        assert_eq!(status["observedGeneration"], 2);
        assert!(world.api.list(&PODS).all(|pod| pod["spec"]["containers"][0]["image"] == "db:2"));
    });
}

#[test]
fn a_stateful_set_is_scaled_from_its_end() {
    for_seeds(100, |world| {
        world.create(&STATEFUL_SETS, stateful_set(4, "OrderedReady"));
        world.settle();
        let start = world.api.log.len();
        world.patch(&STATEFUL_SETS.key("default", "db"), json!({ "spec": { "replicas": 2 } }));
        world.settle();
        assert_eq!(
            moves(&world.api.log[start..], "statefulset-controller"),
            [("DELETE", "db-3"), ("DELETE", "db-2")]
        );
        assert_eq!(world.get(&STATEFUL_SETS, "db")["status"]["replicas"], 2);
    });
}

#[test]
fn a_partition_keeps_the_first_pods_as_they_are() {
    for_seeds(100, |world| {
        world.create(&STATEFUL_SETS, stateful_set(3, "Parallel"));
        world.settle();
        let mut update = image("db:2");
        update["spec"]["updateStrategy"] = json!({ "rollingUpdate": { "partition": 2 } });
        world.patch(&STATEFUL_SETS.key("default", "db"), update);
        world.settle();
        world.delete(&PODS.key("default", "db-0"), Propagation::Background);
        world.settle();
        let images: Vec<_> =
            world.api.list(&PODS).map(|pod| pod["spec"]["containers"][0]["image"].clone()).collect();
        assert_eq!(images, ["db:1", "db:1", "db:2"], "a Pod below the partition comes back as it was");
        let set = world.get(&STATEFUL_SETS, "db");
        assert_eq!(
            (&set["status"]["currentReplicas"], &set["status"]["updatedReplicas"]),
            (&json!(2), &json!(1))
        );
        assert_ne!(set["status"]["currentRevision"], set["status"]["updateRevision"]);
    });
}

#[test]
fn a_daemon_set_has_a_pod_on_each_node() {
    for_seeds(100, |world| {
        world.create(&NODES, json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": "other" } }));
        let mut set = stateful_set(0, "");
        set["kind"] = json!("DaemonSet");
        set["spec"]["updateStrategy"] =
            json!({ "type": "RollingUpdate", "rollingUpdate": { "maxUnavailable": 1 } });
        world.create(&DAEMON_SETS, set);
        world.settle();
        assert_eq!(world.get(&DAEMON_SETS, "db")["status"]["numberAvailable"], 2);
        world.watch(|api| {
            let available = api.list(&PODS).filter(|pod| pod::active(pod) && pod::ready(pod)).count();
            assert!(available >= 1);
        });
        world.patch(&DAEMON_SETS.key("default", "db"), image("db:2"));
        world.settle();
        let status = world.get(&DAEMON_SETS, "db")["status"].clone();
        for counter in
            ["desiredNumberScheduled", "updatedNumberScheduled", "numberAvailable", "observedGeneration"]
        {
            assert_eq!(status[counter], 2, "{counter}");
        }
        assert!(world.api.list(&PODS).all(|pod| pod["spec"]["containers"][0]["image"] == "db:2"));
        assert_eq!(world.names(&PODS).len(), 2);
    });
}

fn job(spec: Value) -> Value {
    let template =
        json!({ "spec": { "restartPolicy": "Never", "containers": [{ "name": "main", "image": "x" }] } });
    let mut job = json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": { "name": "once", "namespace": "default" }, "spec": spec
    });
    if job["spec"]["template"].is_null() {
        job["spec"]["template"] = template;
    }
    job
}

#[test]
fn a_job_runs_to_its_end_and_counts_each_pod_once() {
    for_seeds(300, |world| {
        world.create(&JOBS, job(json!({ "completions": 5, "parallelism": 2 })));
        world.watch(|api| {
            let active = api.list(&PODS).filter(|it| pod::active(it)).count();
            assert!(active <= 2, "{active} Pods at once");
        });
        world.settle();
        let job = world.get(&JOBS, "once");
        let status = &job["status"];
        assert!(conditions::holds(status, "Complete") && conditions::holds(status, "SuccessCriteriaMet"));
        assert_eq!(
            (&status["succeeded"], &status["active"], &status["failed"]),
            (&json!(5), &json!(null), &json!(null))
        );
        assert_eq!(world.names(&PODS).len(), 5, "no more Pods than needed");
        assert!(world.api.list(&PODS).all(|pod| object::finalizers(pod).next().is_none()));
    });
}

#[test]
fn a_job_gives_up_after_its_failures() {
    for_seeds(100, |world| {
        let annotations = json!({ "sandbox.kausality.io/outcome": "failed" });
        let spec = json!({ "restartPolicy": "Never", "containers": [{ "name": "main", "image": "x" }] });
        let template = json!({ "metadata": { "annotations": annotations }, "spec": spec });
        world.create(&JOBS, job(json!({ "backoffLimit": 2, "template": template })));
        world.settle();
        let status = world.get(&JOBS, "once")["status"].clone();
        assert_eq!(conditions::reason(&status, "Failed"), "BackoffLimitExceeded");
        assert_eq!((&status["failed"], &status["succeeded"]), (&json!(3), &json!(null)));
    });
}

#[test]
fn a_suspended_job_waits() {
    for_seeds(100, |world| {
        world.create(&JOBS, job(json!({ "suspend": true })));
        world.settle();
        assert!(world.names(&PODS).is_empty());
        assert!(conditions::holds(&world.get(&JOBS, "once")["status"], "Suspended"));
        world.patch(&JOBS.key("default", "once"), json!({ "spec": { "suspend": false } }));
        world.settle();
        let status = world.get(&JOBS, "once")["status"].clone();
        assert!(conditions::holds(&status, "Complete") && !conditions::holds(&status, "Suspended"));
    });
}

#[test]
fn a_job_that_has_ended_goes_after_its_time_with_its_pods() {
    for_seeds(50, |world| {
        world.create(&JOBS, job(json!({ "ttlSecondsAfterFinished": 30 })));
        world.settle_within(10);
        assert_eq!((world.names(&JOBS).len(), world.names(&PODS).len()), (1, 1));
        world.settle_within(60);
        assert!(world.names(&JOBS).is_empty() && world.names(&PODS).is_empty());
        let deleted = world.api.log.iter().find(|it| it.verb == "DELETE" && it.resource == JOBS);
        assert_eq!(deleted.unwrap().user, "ttl-after-finished-controller");
    });
}

#[test]
fn a_deleted_job_leaves_no_pods() {
    for_seeds(100, |world| {
        let spec = json!({ "containers": [{ "name": "main", "image": "x" }] });
        world.create(&JOBS, job(json!({ "template": { "spec": spec } })));
        world.settle();
        assert_eq!(world.names(&PODS).len(), 1, "a Pod that does not end by itself");
        world.delete(&JOBS.key("default", "once"), Propagation::Background);
        let again = world.create(&JOBS, job(json!({ "suspend": true })));
        world.settle();
        assert!(world.names(&PODS).is_empty(), "the Pods of a Job go although another has its name");
        assert!(conditions::holds(&world.get(&JOBS, object::name(&again))["status"], "Suspended"));
    });
}

#[test]
fn a_cron_job_makes_up_for_the_last_time_and_follows_its_schedule() {
    for_seeds(20, |world| {
        let spec = job(json!({}))["spec"].clone();
        let cron = json!({
            "apiVersion": "batch/v1", "kind": "CronJob", "metadata": { "name": "nightly", "namespace": "default" },
            "spec": { "schedule": "0 * * * *", "jobTemplate": { "spec": spec } },
            "status": { "lastScheduleTime": "2026-11-01T00:00:00Z" }
        });
        world.create(&CRON_JOBS, cron);
        world.settle();
        assert_eq!(world.names(&JOBS), ["nightly-29912160"], "of all the hours it missed, the last");
        world.settle_within(6 * 3600);
        assert_eq!(world.names(&JOBS).len(), 3, "the oldest go");
        let status = world.get(&CRON_JOBS, "nightly")["status"].clone();
        assert_eq!(status["active"], json!(null));
        let last = object::moment(&status["lastScheduleTime"]).unwrap();
        assert!(last > Time::parse("2026-11-15T13:00:00Z").unwrap(), "{status}");
    });
}

fn operator(version: u64) -> Composite {
    let pool = json!({
        "metadata": { "name": "$(metadata.name)-pool", "labels": { "tier": "workers" } },
        "spec": { "nodes": "$(spec.size)", "image": "ami-$(version)-$(spec.version)" }
    });
    let config =
        json!({ "metadata": { "name": "cluster-config" }, "data": { "version": "$(spec.version)" } });
    let children = vec![
        Child { resource: POOLS.clone(), template: pool },
        Child { resource: CONFIG_MAPS.clone(), template: config },
    ];
    let mut operator = Composite::new("eks-controller", "eks-controller", CLUSTERS.clone(), children);
    operator.set_version(version);
    operator
}

#[test]
fn a_composite_controller_makes_children_and_a_status() {
    for_seeds(100, |world| {
        world.add(Box::new(operator(1)));
        let metadata = json!({ "name": "prod", "namespace": "default" });
        let spec = json!({ "size": 3, "version": "1.33" });
        world.create(
            &CLUSTERS,
            json!({ "apiVersion": "example.com/v1", "kind": "EKSCluster", "metadata": metadata, "spec": spec }),
        );
        world.settle();
        let pool = world.get(&POOLS, "prod-pool");
        assert_eq!(pool["spec"], json!({ "nodes": 3, "image": "ami-1-1.33" }));
        assert_eq!(object::controller(&pool).unwrap().name(), "prod");

        world.patch(&CLUSTERS.key("default", "prod"), json!({ "spec": { "size": 5 } }));
        world.settle();
        assert_eq!(world.get(&POOLS, "prod-pool")["spec"]["nodes"], 5);
        let parent = world.get(&CLUSTERS, "prod");
        assert_eq!(parent["status"]["observedGeneration"], 2);
        assert!(conditions::holds(&parent["status"], "Ready"));

        world.patch(&POOLS.key("default", "prod-pool"), json!({ "spec": { "nodes": 9, "zone": "a" } }));
        world.settle();
        let reverted = json!({ "nodes": 5, "zone": "a", "image": "ami-1-1.33" });
        assert_eq!(
            world.get(&POOLS, "prod-pool")["spec"],
            reverted,
            "its own field is reverted, another's stays"
        );

        world.restart(Box::new(operator(2)));
        world.settle();
        assert_eq!(
            world.get(&POOLS, "prod-pool")["spec"]["image"],
            "ami-2-1.33",
            "an upgrade rewrites children"
        );
        assert_eq!(intent(&world.get(&CLUSTERS, "prod")), intent(&parent), "of a parent that nobody changed");
        assert!(Arc::ptr_eq(&parent, &world.get(&CLUSTERS, "prod")), "and that does not tell");
    });
}
