//! Deployments and their ReplicaSets.

use std::collections::BTreeMap;

use serde_json::json;

use super::{
    super::{
        Action, DEPLOYMENTS, Deployments, Key, PODS, Propagation, REPLICA_SETS, Refusal, ReplicaSets,
        conditions, object,
    },
    World,
    api::{Api, Tried},
    deployment, for_seeds, image,
    world::{active, available},
};

fn web() -> Key {
    DEPLOYMENTS.key("default", "web")
}

/// A Deployment that has rolled out.
fn deploy(world: &mut World, replicas: i64) {
    world.create(&DEPLOYMENTS, deployment(replicas));
    world.settle();
    assert_complete(world, replicas);
}

#[track_caller]
fn assert_complete(world: &World, replicas: i64) {
    let deployment = world.get(&DEPLOYMENTS, "web");
    let status = &deployment["status"];
    for counter in ["replicas", "updatedReplicas", "readyReplicas", "availableReplicas"] {
        assert_eq!(object::int(&status[counter]), replicas, "{counter} in {status}");
    }
    assert_eq!(status["unavailableReplicas"], json!(null));
    assert_eq!(status["observedGeneration"], deployment["metadata"]["generation"]);
    assert_eq!(conditions::reason(status, "Progressing"), "NewReplicaSetAvailable");
    assert_eq!(conditions::reason(status, "Available"), "MinimumReplicasAvailable");
    assert_eq!(world.names(&PODS).len(), usize::try_from(replicas).unwrap());
    assert_eq!(available(&world.api), usize::try_from(replicas).unwrap());
}

/// At no step are there more Pods than asked for, nor fewer available than allowed.
fn limits(most: i64, fewest: usize) -> impl FnMut(&Api) {
    let mut peaks = BTreeMap::<String, i64>::new();
    move |api| {
        let mut wanted = 0;
        for set in api.list(&REPLICA_SETS) {
            let replicas = object::int(&set["spec"]["replicas"]);
            wanted += replicas;
            let peak = peaks.entry(object::uid(set).to_owned()).or_default();
            *peak = replicas.max(*peak);
        }
        assert!(wanted <= most, "{wanted} Pods are asked for, {most} are allowed");
        let mut pods = BTreeMap::<&str, i64>::new();
        for pod in api.list(&PODS).filter(|pod| super::super::pod::active(pod)) {
            *pods.entry(object::controller(pod).unwrap().uid()).or_default() += 1;
        }
        for (set, pods) in pods {
            assert!(pods <= peaks[set], "a ReplicaSet of {} has {pods} Pods", peaks[set]);
        }
        let available = available(api);
        assert!(available >= fewest, "{available} Pods are available, {fewest} must be");
    }
}

#[test]
fn deployments_roll_out_and_update_within_their_limits_with_any_cache() {
    for_seeds(1000, |world| {
        world.watch(limits(4, 0));
        deploy(world, 4);
        world.watch(limits(5, 3));
        world.patch(&web(), image("web:2"));
        world.settle();
        assert_complete(world, 4);
        assert_eq!(world.sizes(), [0, 4]);
    });
}

#[test]
fn an_update_without_surge_takes_before_it_adds() {
    for_seeds(100, |world| {
        let rolling = json!({ "rollingUpdate": { "maxSurge": 0, "maxUnavailable": "50%" } });
        deploy(world, 4);
        world.patch(&web(), json!({ "spec": { "strategy": rolling } }));
        world.watch(limits(4, 2));
        world.patch(&web(), image("web:2"));
        world.settle();
        assert_complete(world, 4);
    });
}

#[test]
fn recreation_ends_all_old_pods_first() {
    for_seeds(100, |world| {
        deploy(world, 3);
        let strategy = json!({ "spec": { "strategy": { "type": "Recreate" } } });
        world.patch(&web(), strategy);
        let old: Vec<_> = world.names(&PODS).into_iter().map(str::to_owned).collect();
        world.watch(move |api| {
            let (left, fresh): (Vec<_>, Vec<_>) =
                api.list(&PODS).partition(|pod| old.iter().any(|name| name == object::name(pod)));
            assert!(left.is_empty() || fresh.is_empty(), "old and new Pods at once");
        });
        world.patch(&web(), image("web:2"));
        world.settle();
        assert_complete(world, 3);
    });
}

#[test]
fn deployments_are_scaled_up_and_down() {
    for_seeds(100, |world| {
        deploy(world, 4);
        for replicas in [7, 2, 0, 3] {
            world.patch(&web(), json!({ "spec": { "replicas": replicas } }));
            world.settle();
            let set = world.names(&REPLICA_SETS)[0].to_owned();
            let set = world.get(&REPLICA_SETS, &set);
            let desired = object::annotation(&set, "deployment.kubernetes.io/desired-replicas");
            assert_eq!(world.sizes(), [replicas]);
            assert!(replicas == 0 || desired == Some(&replicas.to_string()));
            assert_eq!(active(&world.api), usize::try_from(replicas).unwrap());
        }
    });
}

#[test]
fn a_deployment_that_is_scaled_on_its_way_arrives() {
    for_seeds(200, |world| {
        deploy(world, 4);
        world.patch(&web(), image("web:2"));
        (0..40).for_each(|_| {
            world.step();
        });
        world.patch(&web(), json!({ "spec": { "replicas": 8 } }));
        world.settle();
        assert_complete(world, 8);
        assert_eq!(world.sizes(), [0, 8]);
    });
}

#[test]
fn a_template_that_was_there_before_is_found_again() {
    for_seeds(50, |world| {
        deploy(world, 2);
        let first = world.names(&REPLICA_SETS)[0].to_owned();
        world.patch(&web(), image("web:2"));
        world.settle();
        world.patch(&web(), image("web:1"));
        world.settle();
        assert_complete(world, 2);
        let set = world.get(&REPLICA_SETS, &first);
        assert_eq!((set["spec"]["replicas"].as_i64(), world.names(&REPLICA_SETS).len()), (Some(2), 2));
        assert_eq!(object::annotation(&set, "deployment.kubernetes.io/revision"), Some("3"));
        assert_eq!(object::annotation(&set, "deployment.kubernetes.io/revision-history"), Some("1"));
        let revision = "deployment.kubernetes.io/revision";
        assert_eq!(object::annotation(&world.get(&DEPLOYMENTS, "web"), revision), Some("3"));
    });
}

#[test]
fn old_replica_sets_are_cleaned_up() {
    for_seeds(50, |world| {
        let mut web = deployment(2);
        web["spec"]["revisionHistoryLimit"] = json!(1);
        world.create(&DEPLOYMENTS, web);
        for version in 2..=5 {
            world.settle();
            world.patch(&self::web(), image(&format!("web:{version}")));
        }
        world.settle();
        assert_eq!(world.sizes(), [0, 2]);
        let deleted: Vec<_> =
            world.api.log.iter().filter(|it| it.verb == "DELETE" && it.resource == REPLICA_SETS).collect();
        assert_eq!(deleted.len(), 3);
        for it in deleted {
            assert_eq!(it.user, "deployment-controller");
            assert_eq!(it.before.as_ref().unwrap()["spec"]["replicas"], 0);
        }
    });
}

#[test]
fn annotations_are_copied_to_the_new_replica_set_as_metadata() {
    for_seeds(50, |world| {
        deploy(world, 2);
        let start = world.api.log.len();
        let last_applied = "kubectl.kubernetes.io/last-applied-configuration";
        world.patch(&web(), json!({ "metadata": { "annotations": { "team": "a", last_applied: "{}" } } }));
        world.settle();
        let name = world.names(&REPLICA_SETS)[0].to_owned();
        let set = world.get(&REPLICA_SETS, &name);
        assert_eq!(object::annotation(&set, "team"), Some("a"));
        assert_eq!(object::annotation(&set, last_applied), None);
        assert_eq!(object::generation(&set), 1, "the spec stays as it was");
        let tried: Vec<_> = world.api.log[start..]
            .iter()
            .filter(|it| it.verb == "UPDATE" && it.resource == REPLICA_SETS)
            .map(|it| it.refusal.is_some())
            .collect();
        // Like the real controller, it tries twice in one pass, and the second attempt conflicts.
        assert_eq!(tried[..2], [false, true]);
        assert_complete(world, 2);
    });
}

#[test]
fn a_hand_edited_replica_set_is_reverted() {
    for_seeds(100, |world| {
        deploy(world, 2);
        let set = REPLICA_SETS.key("default", world.names(&REPLICA_SETS)[0]);
        world.patch(&set, json!({ "spec": { "replicas": 5 } }));
        world.settle();
        assert_complete(world, 2);
        let reverted =
            world.api.log.iter().rev().find(|it| it.verb == "UPDATE" && it.resource == REPLICA_SETS);
        assert_eq!(reverted.unwrap().user, "deployment-controller");
    });
}

#[test]
fn a_revert_that_is_denied_is_tried_again_and_again() {
    let mut world = World::new(1);
    deploy(&mut world, 2);
    let set = REPLICA_SETS.key("default", world.names(&REPLICA_SETS)[0]);
    world.api.guard = Some(Box::new(|user, write| {
        let denied = user.ends_with("deployment-controller") && write.key.resource == REPLICA_SETS;
        denied.then(|| "drift".to_owned())
    }));
    world.patch(&set, json!({ "spec": { "replicas": 3 } }));
    world.settle_within(30);
    let denied = world.api.log.iter().filter(|it| matches!(it.refusal, Some(Refusal::Denied(_)))).count();
    assert!((10..=20).contains(&denied), "{denied} attempts in 30 s, with a wait that doubles");
    assert_eq!(active(&world.api), 3);
}

#[test]
fn pods_that_cannot_be_made_show_in_the_status() {
    for_seeds(20, |world| {
        world.api.guard = Some(Box::new(|user, write| {
            let denied = user.ends_with("replicaset-controller") && write.key.resource == PODS;
            denied.then(|| "no Pods today".to_owned())
        }));
        world.create(&DEPLOYMENTS, deployment(2));
        world.settle_within(10);
        let status = world.get(&DEPLOYMENTS, "web")["status"].clone();
        let failure = conditions::find(&status, "ReplicaFailure").unwrap();
        assert_eq!(
            (&failure["reason"], &failure["message"]),
            (&json!("FailedCreate"), &json!("no Pods today"))
        );
        world.api.guard = None;
        world.settle_within(60);
        assert_complete(world, 2);
        assert!(conditions::find(&world.get(&DEPLOYMENTS, "web")["status"], "ReplicaFailure").is_none());
    });
}

#[test]
fn a_replica_set_that_cannot_be_made_shows_in_the_status() {
    for_seeds(20, |world| {
        deploy(world, 2);
        world.api.guard = Some(Box::new(|_, write| {
            let denied = write.key.resource == REPLICA_SETS && matches!(write.action, Action::Create(_));
            denied.then(|| "frozen".to_owned())
        }));
        world.patch(&web(), image("web:2"));
        world.settle_within(10);
        let status = world.get(&DEPLOYMENTS, "web")["status"].clone();
        let progress = conditions::find(&status, "Progressing").unwrap();
        assert_eq!(
            (&progress["reason"], &progress["message"]),
            (&json!("ReplicaSetCreateError"), &json!("frozen"))
        );
        assert_eq!(available(&world.api), 2);
        world.api.guard = None;
        world.settle_within(60);
        assert_complete(world, 2);
    });
}

#[test]
fn deleted_pods_are_replaced() {
    for_seeds(100, |world| {
        deploy(world, 3);
        let pod = PODS.key("default", world.names(&PODS)[1]);
        world.delete(&pod, Propagation::Background);
        world.settle();
        assert_complete(world, 3);
        assert!(world.api.get(&pod).is_none());
    });
}

#[test]
fn a_paused_deployment_keeps_its_template_and_follows_its_size() {
    for_seeds(50, |world| {
        deploy(world, 2);
        world.patch(&web(), json!({ "spec": { "paused": true } }));
        world.patch(&web(), image("web:2"));
        world.patch(&web(), json!({ "spec": { "replicas": 3 } }));
        world.settle();
        assert_eq!(world.sizes(), [3]);
        let status = world.get(&DEPLOYMENTS, "web")["status"].clone();
        assert_eq!(conditions::reason(&status, "Progressing"), "DeploymentPaused");
        world.patch(&web(), json!({ "spec": { "paused": null } }));
        world.settle();
        assert_complete(world, 3);
        assert_eq!(world.sizes(), [0, 3]);
    });
}

#[test]
fn a_rollout_that_is_stuck_is_late_after_its_deadline() {
    let mut world = World::new(7);
    deploy(&mut world, 2);
    let mut stuck = image("web:2");
    stuck["spec"]["progressDeadlineSeconds"] = json!(30);
    stuck["spec"]["template"]["metadata"] =
        json!({ "annotations": { "sandbox.kausality.io/outcome": "unready" } });
    world.patch(&web(), stuck);
    world.settle_within(120);
    let status = world.get(&DEPLOYMENTS, "web")["status"].clone();
    assert_eq!(conditions::reason(&status, "Progressing"), "ProgressDeadlineExceeded");
    assert!(available(&world.api) >= 2);
}

#[test]
fn min_ready_seconds_make_a_rollout_wait() {
    for_seeds(20, |world| {
        let mut web = deployment(2);
        web["spec"]["minReadySeconds"] = json!(20);
        world.create(&DEPLOYMENTS, web);
        world.settle_within(5);
        assert_eq!(world.get(&DEPLOYMENTS, "web")["status"]["readyReplicas"], 2);
        assert_eq!(world.get(&DEPLOYMENTS, "web")["status"]["availableReplicas"], json!(null));
        world.settle_within(60);
        assert_complete(world, 2);
    });
}

#[test]
fn controllers_that_restart_carry_on() {
    for_seeds(200, |world| {
        deploy(world, 4);
        world.patch(&web(), image("web:2"));
        (0..60).for_each(|_| {
            world.step();
        });
        world.restart(Box::new(Deployments::default()));
        world.restart(Box::new(ReplicaSets::default()));
        world.settle_within(400);
        assert_complete(world, 4);
    });
}

#[test]
fn a_thousand_replicas_roll_out_and_update() {
    let mut world = World::new(3);
    world.lag = false;
    world.create(&DEPLOYMENTS, deployment(1000));
    world.settle();
    world.patch(&web(), image("web:2"));
    world.settle();
    assert_complete(&world, 1000);
}

#[test]
fn the_same_seed_tells_the_same_story() {
    let tell = |seed| {
        let mut world = World::new(seed);
        deploy(&mut world, 3);
        world.patch(&web(), image("web:2"));
        world.settle();
        let line = |it: Tried| format!("{} {} {:?} {:?}", it.user, it.verb, it.after, it.refusal);
        world.api.log.into_iter().map(line).collect::<Vec<_>>()
    };
    assert_eq!(tell(5), tell(5));
    assert_ne!(tell(5), tell(6));
}
