//! What has been got wrong about drift elsewhere, each as a test.

use crate::verdict_world::{World, applied, check, containers, deployment, service, shown};
use kausality_fields::fight::Fights;
use kausality_fields::verdict::{Class, Status, Subject, Verdict};
use kausality_fields::{FieldSet, Redaction};
use serde_json::json;

#[test]
fn what_the_api_server_allocates_is_never_drift() {
    let declared = service(json!([{"port": 80, "targetPort": 8080}]));
    let mut world = applied(&declared);
    for node_port in [32769, 32156] {
        world.server(|live| {
            live["spec"]["clusterIP"] = json!("10.0.0.7");
            live["spec"]["ports"][0]["nodePort"] = json!(node_port);
            live["spec"]["ports"][0]["protocol"] = json!("TCP");
        });
        check(&world, &declared, "");
        assert_eq!(
            world.report("helm", &declared, &[]).unowned.to_string(),
            "spec.clusterIP\nspec.ports[port=80,protocol=TCP].nodePort\nspec.ports[port=80,protocol=TCP].protocol"
        );
    }
}

#[test]
fn one_port_number_of_two_protocols() {
    let declared =
        service(json!([{"port": 53, "name": "dns-tcp"}, {"port": 53, "protocol": "UDP", "name": "dns"}]));
    let mut world = applied(&declared);
    world.server(|live| live["spec"]["ports"][0]["protocol"] = json!("TCP"));
    check(&world, &declared, "");

    world.update("kubectl-edit", "", |live| live["spec"]["ports"][1]["name"] = json!("other"));
    check(&world, &declared, r#"takeover spec.ports[port=53,protocol=UDP].name "dns" "other" kubectl-edit"#);
    let declared = service(json!([{"port": 53, "protocol": "UDP", "name": "other"}]));
    check(
        &world,
        &declared,
        "release spec.ports[port=53,protocol=TCP].name - \"dns-tcp\" helm\n\
         release spec.ports[port=53,protocol=TCP].port - 53 helm\n\
         takeover spec.ports[port=53,protocol=UDP].name \"other\" \"other\" kubectl-edit",
    );
}

#[test]
fn a_foreign_container_put_first_shifts_nothing() {
    let declared = containers(json!([{"name": "app", "image": "shop:1", "args": ["a", "b"]}]));
    let mut world = applied(&declared);
    world.update("istio", "", |live| {
        let list = live["spec"]["template"]["spec"]["containers"].as_array_mut().unwrap();
        list.insert(0, json!({"name": "proxy", "image": "envoy"}));
    });
    check(&world, &declared, "");
    assert_eq!(world.report("helm", &declared, &[]).foreign.len(), 2);
}

#[test]
fn volume_mounts_go_by_their_path() {
    let declared = containers(json!([{"name": "app", "volumeMounts": [
        {"mountPath": "/a", "name": "data"}, {"mountPath": "/b", "name": "data"}]}]));
    let mut world = applied(&declared);
    world.update("kubectl-edit", "", |live| {
        let mounts = &mut live["spec"]["template"]["spec"]["containers"][0]["volumeMounts"];
        *mounts = json!([{"mountPath": "/b", "name": "other"}, {"mountPath": "/a", "name": "data"}]);
    });
    check(
        &world,
        &declared,
        "takeover spec.template.spec.containers[name=app].volumeMounts[mountPath=/b].name \"data\" \"other\" kubectl-edit",
    );
}

#[test]
fn an_item_is_removed_from_a_set() {
    let declared = json!({"apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "web", "finalizers": ["a.example/x", "b.example/y"]}});
    let mut world = applied(&declared);
    world
        .update("janitor", "", |live| live["metadata"]["finalizers"] = json!(["b.example/y", "c.example/z"]));
    check(&world, &declared, r#"own-drift metadata.finalizers["a.example/x"] "a.example/x" - "#);

    let declared = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}});
    check(&world, &declared, r#"release metadata.finalizers["b.example/y"] - "b.example/y" helm"#);
}

#[test]
fn null_and_empty_are_declared() {
    let declared =
        deployment(json!({"replicas": null, "strategy": {"rollingUpdate": {}}, "template": {"spec": {
        "volumes": [{"name": "tmp", "emptyDir": {}}], "containers": [{"name": "app", "resources": {},
        "env": [{"name": "EMPTY", "value": ""}]}]}}}));
    let mut world = applied(&declared);
    check(&world, &declared, "");
    // As the API server stores it: without nulls, and without the empty value of a variable.
    world.server(|live| {
        live["spec"].as_object_mut().unwrap().remove("replicas");
        live["spec"]["strategy"]["rollingUpdate"]["maxSurge"] = json!(1);
        live["spec"]["template"]["spec"]["containers"][0]["env"] = json!([{"name": "EMPTY"}]);
    });
    check(&world, &declared, "");
    world.update("kubectl-edit", "", |live| {
        live["spec"]["template"]["spec"]["volumes"][0].as_object_mut().unwrap().remove("emptyDir");
    });
    check(&world, &declared, "own-drift spec.template.spec.volumes[name=tmp].emptyDir {} - ");
}

#[test]
fn two_items_with_one_key_are_refused() {
    let world = applied(&containers(json!([{"name": "app"}])));
    let declared = containers(json!([{"name": "app", "image": "a"}, {"name": "app", "image": "b"}]));
    let error = world.judge("helm", &declared, &world.claims(), &[]).unwrap_err();
    assert_eq!(error.to_string(), "spec.template.spec.containers: more than one item is [name=app]");
}

#[test]
fn keys_of_labels_have_dots() {
    let labels = |value: &str| {
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web",
        "labels": {"app.kubernetes.io/name": value, "app": "x"}}})
    };
    let declared = labels("shop");
    let mut world = applied(&declared);
    world.update("kubectl-label", "", |live| *live = labels("other"));
    let expected = r#"takeover metadata.labels["app.kubernetes.io/name"] "shop" "other" kubectl-label"#;
    check(&world, &declared, expected);
    let report =
        world.report("helm", &declared, &[r#"metadata.labels["app.kubernetes.io/name"]=kubectl-label"#]);
    assert_eq!(report.findings[0].verdict, Verdict::Delegated);
    assert_eq!(report.class(), Class::Clean);
}

#[test]
fn amounts_compare_by_meaning_and_only_they() {
    let declared = containers(json!([{"name": "app", "image": "1000m",
        "resources": {"limits": {"cpu": "1000m", "memory": "1Gi"}}}]));
    let mut world = applied(&declared);
    world.server(|live| {
        let container = &mut live["spec"]["template"]["spec"]["containers"][0];
        container["resources"]["limits"] = json!({"cpu": "1", "memory": 1_073_741_824});
    });
    check(&world, &declared, "");
    world.server(|live| live["spec"]["template"]["spec"]["containers"][0]["image"] = json!("1"));
    check(&world, &declared, r#"own-drift spec.template.spec.containers[name=app].image "1000m" "1" helm"#);
}

#[test]
fn numbers_and_names_of_ports_differ() {
    let declared = service(json!([{"port": 80, "targetPort": 80}]));
    let mut world = applied(&declared);
    world.server(|live| live["spec"]["ports"][0]["targetPort"] = json!("80"));
    check(&world, &declared, r#"own-drift spec.ports[port=80,protocol=TCP].targetPort 80 "80" helm"#);
}

#[test]
fn what_is_left_to_another_may_be_owned_together() {
    let mut world = applied(&deployment(json!({"replicas": 3})));
    world.apply("hpa", &deployment(json!({"replicas": 3})));
    let declared = deployment(json!({"replicas": 4}));
    let verdict = |delegations: &[&str]| {
        let report = world.report("helm", &declared, delegations);
        (report.findings[0].verdict.to_string(), report.is_drift())
    };
    assert_eq!(verdict(&["spec.replicas=hpa:1..10"]), ("delegated".to_owned(), false));
    assert_eq!(verdict(&["spec.replicas=hpa:5..10"]), ("own-drift".to_owned(), true));
    assert_eq!(verdict(&[]), ("own-drift".to_owned(), true));
}

#[test]
fn three_managers() {
    let declared = deployment(json!({"replicas": 3, "paused": false, "strategy": {"type": "Recreate"}}));
    let mut world = applied(&declared);
    world.apply("argo", &deployment(json!({"paused": false, "selector": {"matchLabels": {"a": "b"}}})));
    world.update("hpa", "scale", |live| live["spec"]["replicas"] = json!(7));
    check(&world, &declared, "co-owned spec.paused false false argo+helm\ntakeover spec.replicas 3 7 hpa");
    let verdict = |delegation| {
        let report = world.report("helm", &declared, &[delegation]);
        (report.findings[1].verdict.to_string(), report.is_drift())
    };
    assert_eq!(verdict("spec.replicas=hpa:1..10"), ("delegated".to_owned(), false));
    assert_eq!(verdict("spec.replicas=hpa:1..5"), ("takeover".to_owned(), true));
    assert_eq!(verdict("spec.replicas=vpa"), ("takeover".to_owned(), true));
    let argo = world.report("argo", &deployment(json!({"paused": false})), &[]);
    assert_eq!(
        shown(&argo),
        "co-owned spec.paused false false argo+helm\nrelease spec.selector - {\"matchLabels\":{\"a\":\"b\"}} argo"
    );
    assert_eq!(argo.findings[1].verdict, Verdict::Release { removed: true });
    // The others hold on to what helm lets go.
    let nothing = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}});
    let helm = world.report("helm", &nothing, &[]);
    let verdicts: Vec<_> = helm.findings.iter().map(|finding| finding.verdict.clone()).collect();
    assert_eq!(verdicts, [Verdict::Release { removed: false }, Verdict::Release { removed: true }]);
}

#[test]
fn what_was_taken_and_given_back_is_clean() {
    let declared = deployment(json!({"replicas": 3}));
    let mut world = applied(&declared);
    world.update("kubectl-scale", "", |live| live["spec"]["replicas"] = json!(5));
    check(&world, &declared, "takeover spec.replicas 3 5 kubectl-scale");
    // Given back by hand, the value is right and its owner is not.
    world.update("kubectl-scale", "", |live| live["spec"]["replicas"] = json!(3));
    check(&world, &declared, "takeover spec.replicas 3 3 kubectl-scale");
    assert_eq!(world.report("helm", &declared, &[]).findings[0].verdict, Verdict::Takeover { equal: true });
    world.apply("helm", &declared);
    check(&world, &declared, "co-owned spec.replicas 3 3 helm+kubectl-scale");
    world.update("kubectl-scale", "", |live| live["spec"]["replicas"] = json!(4));
    world.apply("helm", &declared);
    check(&world, &declared, "");
}

/// A manager that writes without apply owns defaults too. Its next apply does not remove them.
#[test]
fn what_was_written_without_apply_is_not_removed() {
    let declared = deployment(json!({"replicas": 3}));
    let mut world = World::new("apps/v1", "Deployment");
    world.update("kubectl-create", "", |live| *live = deployment(json!({"replicas": 3, "paused": false})));
    let report = world.report("kubectl-create", &declared, &[]);
    assert_eq!(shown(&report), "release spec.paused - false kubectl-create");
    assert_eq!(report.findings[0].verdict, Verdict::Release { removed: false });
}

/// Found by random histories: the labels of others hold the map in place.
#[test]
fn an_empty_map_that_others_have_filled_is_not_removed() {
    let mut declared = deployment(json!({"replicas": 3}));
    declared["metadata"]["labels"] = json!({});
    let mut world = applied(&declared);
    world.update("kubectl-label", "", |live| live["metadata"]["labels"] = json!({"a": "b"}));
    check(&world, &declared, "");
    let report = world.report("helm", &deployment(json!({"replicas": 3})), &[]);
    assert_eq!(shown(&report), r#"release metadata.labels - {"a":"b"} helm"#);
    assert_eq!(report.findings[0].verdict, Verdict::Release { removed: false });
}

/// Whoever applied an item of a list alone takes it away with all that others own in it.
#[test]
fn an_item_goes_with_the_fields_of_others_in_it() {
    let side = |image: &str| json!({"name": "side", "image": image});
    let app = json!({"name": "app", "image": "shop:1"});
    let mut world = applied(&containers(json!([app, side("proxy:1")])));
    world.update("updater", "", |live| {
        live["spec"]["template"]["spec"]["containers"][1]["image"] = json!("proxy:2");
    });
    world.apply("helm", &containers(json!([app, side("proxy:2")])));
    let declared = containers(json!([app]));
    let report = world.report("helm", &declared, &[]);
    let image = report.findings.iter().find(|finding| finding.owners.len() == 2).unwrap();
    assert_eq!(image.verdict, Verdict::Release { removed: true });
    world.apply("helm", &declared);
    assert_eq!(world.live["spec"]["template"]["spec"]["containers"], json!([app]));
}

#[test]
fn a_declared_status_is_nobodys_business() {
    let mut declared = deployment(json!({"replicas": 3}));
    let mut world = applied(&declared);
    world.update("controller", "status", |live| live["status"] = json!({"readyReplicas": 1}));
    declared["status"] = json!({"readyReplicas": 3});
    check(&world, &declared, "");
}

/// Not every kind has a status of its own: without, it is a field like any other.
#[test]
fn a_status_that_is_written_with_the_rest_is_judged_with_the_rest() {
    let mut declared = deployment(json!({"replicas": 3}));
    let world = applied(&declared);
    declared["status"] = json!({"readyReplicas": 3});
    let (fights, redaction, claims) = (Fights::default(), Redaction::new("salt"), world.claims());
    let subject = Subject {
        manager: "helm",
        declared: &declared,
        live: &world.live,
        claims: &claims,
        of: Some(world.of()),
        status: Status::WithTheRest,
        delegations: &[],
        fights: &fights,
        redaction: &redaction,
    };
    assert_eq!(shown(&subject.judge().unwrap()), "own-drift status.readyReplicas 3 - ");
}

/// As charts declare them: then kube-controller-manager puts in its own.
#[test]
fn nothing_is_taken_of_what_is_declared_as_empty() {
    let mut declared = deployment(json!({"replicas": 3}));
    declared["metadata"]["annotations"] = json!({});
    let mut world = applied(&declared);
    world.server(|live| drop(live["metadata"].as_object_mut().unwrap().remove("annotations")));
    world.update("controller", "", |live| live["metadata"]["annotations"] = json!({"revision": "1"}));
    check(&world, &declared, "");
}

/// `labels: null` takes nothing from anybody.
#[test]
fn null_declares_nothing_of_what_is_in_a_map() {
    let mut declared = deployment(json!({"replicas": 3}));
    declared["metadata"]["labels"] = json!(null);
    let mut world = applied(&declared);
    world.update("other", "", |live| live["metadata"]["labels"] = json!({"a": "b"}));
    assert!(
        !world.report("helm", &declared, &[]).is_drift(),
        "{}",
        shown(&world.report("helm", &declared, &[]))
    );
}

#[test]
fn a_fight_is_told_from_a_takeover() {
    let declared = deployment(json!({"replicas": 3}));
    let mut world = applied(&declared);
    world.update("hpa", "", |live| live["spec"]["replicas"] = json!(5));
    let replicas =
        FieldSet::from_fields_v1(r#"{"f:spec":{"f:replicas":{}}}"#).unwrap().iter().next().unwrap();
    let mut fights = Fights::default();
    let judge = |fights: &Fights, manager: &str| {
        let subject = Subject {
            manager,
            declared: &declared,
            live: &world.live,
            claims: &world.claims(),
            of: Some(world.of()),
            status: Status::Apart,
            delegations: &[],
            fights,
            redaction: &Redaction::new("salt"),
        };
        subject.judge().unwrap().findings[0].verdict.to_string()
    };
    for manager in ["helm", "hpa", "helm"] {
        fights.take(&replicas, manager);
        assert_eq!(judge(&fights, "helm"), "takeover");
    }
    fights.take(&replicas, "hpa");
    assert_eq!(judge(&fights, "helm"), "fight");
    // Who looks on is in no fight.
    assert_eq!(judge(&fights, "argo"), "takeover");
}

#[test]
fn a_report_is_plain_json() {
    let declared = deployment(json!({"replicas": 3}));
    let mut world = applied(&declared);
    world.update("hpa", "scale", |live| live["spec"]["replicas"] = json!(7));
    assert_eq!(
        serde_json::to_value(world.report("helm", &declared, &[])).unwrap(),
        json!({"findings": [{"path": "spec.replicas", "verdict": "takeover", "equal": false, "declared": 3, "live": 7,
            "owners": [{"manager": "hpa", "operation": "Update", "subresource": "scale", "apiVersion": "apps/v1",
            "time": "2026-01-01T00:00:00Z"}]}]})
    );
}
