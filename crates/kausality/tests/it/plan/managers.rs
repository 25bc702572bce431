//! Owners: conflicts, force, co-owners, and what other tools have left behind.

use kausality_testbed::eventually;

use crate::plan::stage::*;

/// As an autoscaler does it.
#[tokio::test(flavor = "multi_thread")]
async fn a_scaled_deployment_is_a_conflict_until_it_is_forced() {
    let Some(stage) = stage().await else { return };
    stage.apply("ci", DEPLOYMENT);
    stage.must(&["scale", "deployment", "web", "--replicas=5"]);
    let wanted = DEPLOYMENT.replace("replicas: 3", "replicas: 4").replace("nginx:1", "nginx:2");

    let output = stage.plan(&wanted, &[]);
    assert_eq!(output.code, 1);
    insta::assert_snapshot!("conflict", output.stdout);
    let document = stage.plan(&wanted, &["-o", "json"]).json();
    let object = only(&document);
    assert_eq!(object["action"], "conflict");
    let replicas = field(object, "spec.replicas");
    assert_eq!((&replicas["before"], &replicas["after"]), (&5.into(), &4.into()));
    assert_eq!(replicas["forced"], false);
    let holder = &replicas["conflictWith"][0];
    assert_eq!((&holder["manager"], &holder["operation"]), (&"kubectl".into(), &"Update".into()));
    assert_eq!(holder["subresource"], "scale");
    assert_eq!(document["summary"]["conflict"], 1);

    for force in [&["--force-path", "spec.replicas"][..], &["--force-path", ".spec"], &["--force-conflicts"]]
    {
        let document = stage.plan(&wanted, &[force, &["-o", "json"]].concat()).json();
        let object = only(&document);
        assert_eq!(object["action"], "change", "{force:?}");
        let replicas = field(object, "spec.replicas");
        assert_eq!(names(&replicas["ownersBefore"]), ["kubectl"]);
        assert_eq!((names(&replicas["ownersAfter"]), &replicas["forced"]), (vec!["ci"], &true.into()));
    }
    let elsewhere = stage.plan(&wanted, &["--force-path", "spec.template", "-o", "json"]);
    assert_eq!(only(&elsewhere.json())["action"], "conflict");
    assert!(elsewhere.stderr.contains("--force-path spec.template: there is no conflict"), "{elsewhere:#?}");

    stage.apply("ci", &wanted);
    stage.plans_nothing(&wanted);
}

/// The items of lists and the keys of maps have dots, quotes and commas.
#[tokio::test(flavor = "multi_thread")]
async fn conflicts_are_found_and_forced_by_key() {
    let Some(stage) = stage().await else { return };
    stage.apply("helm", DEPLOYMENT);
    let wanted = DEPLOYMENT
        .replace("nginx:1", "nginx:2")
        .replace("app.kubernetes.io/name: web", "app.kubernetes.io/name: shop")
        .replace("args: [a, b]", "args: [a]");
    let label = r#"metadata.labels["app.kubernetes.io/name"]"#;
    let container = "spec.template.spec.containers[name=app]";
    let document = stage.plan(&wanted, &["-o", "json", "--force-path", label]).json();
    let object = only(&document);
    assert_eq!(object["action"], "conflict");
    for (path, forced) in
        [(label, true), (&format!("{container}.image"), false), (&format!("{container}.args"), false)]
    {
        let field = field(object, path);
        assert_eq!(
            (names(&field["conflictWith"]), &field["forced"]),
            (vec!["helm"], &forced.into()),
            "{path}"
        );
    }
    let all = ["-o", "json", "--force-path", label, "--force-path", container];
    let document = stage.plan(&wanted, &all).json();
    assert_eq!(only(&document)["action"], "change", "{document:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn three_managers_share_an_object() {
    let Some(stage) = stage().await else { return };
    let map =
        |data: &str| format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: m}}, data: {{{data}}}}}");
    stage.apply("a", &map("x: '1', v: '1'"));
    stage.apply("b", &map("x: '1', z: '1'"));
    let c = map("x: '1', v: '1', z: '1'");
    let document = stage.plan_as("c", &c, &["-o", "json"]).json();
    let object = only(&document);
    for (path, before, after) in [
        ("data.x", vec!["a", "b"], vec!["a", "b", "c"]),
        ("data.v", vec!["a"], vec!["a", "c"]),
        ("data.z", vec!["b"], vec!["b", "c"]),
    ] {
        let field = field(object, path);
        assert_eq!(field["change"], "owners", "{path}");
        assert_eq!((names(&field["ownersBefore"]), names(&field["ownersAfter"])), (before, after), "{path}");
    }
    insta::assert_snapshot!("co-owners", stage.plan_as("c", &c, &[]).stdout);

    // What others own, too, stays when one of them lets go; what nobody else owns goes.
    stage.apply("c", &map("x: '1', v: '1', z: '1', mine: '1'"));
    let output = stage.plan_as("c", &map("x: '1'"), &[]);
    insta::assert_snapshot!("released", output.stdout);
    // All of its holders are named.
    let document = stage.plan_as("d", &map("x: '2'"), &["-o", "json"]).json();
    assert_eq!(names(&field(only(&document), "data.x")["conflictWith"]), ["a", "b", "c"]);
    for (manager, data) in [("a", "x: '1', v: '1'"), ("b", "x: '1', z: '1'")] {
        let output = stage.plan_as(manager, &map(data), &[]);
        assert_eq!((output.code, output.stdout.as_str()), (0, "1 unchanged\n"));
    }
}

/// `kubectl apply` as it was, then server-side.
#[tokio::test(flavor = "multi_thread")]
async fn objects_of_client_side_apply_are_planned() {
    let Some(stage) = stage().await else { return };
    // As the API server writes them: other spellings are conflicts to it.
    let deployment = DEPLOYMENT.replace("1000m", "'1'").replace("1024Mi", "1Gi").replace("0.5", "500m");
    stage.kubectl_with(&["apply", "-f", "-"], &deployment);
    let document = stage.plan(&deployment, &["-o", "json"]).json();
    let object = only(&document);
    assert_eq!(object["action"], "change");
    let changes: Vec<&str> =
        object["fields"].as_array().unwrap().iter().map(|field| field["change"].as_str().unwrap()).collect();
    assert!(changes.iter().all(|change| *change == "owners"), "{object:#}");
    let replicas = field(object, "spec.replicas");
    assert_eq!(names(&replicas["ownersBefore"]), ["kubectl-client-side-apply"]);
    assert_eq!(names(&replicas["ownersAfter"]), ["kubectl-client-side-apply", "ci"]);

    let scaled = deployment.replace("replicas: 3", "replicas: 4");
    let document = stage.plan(&scaled, &["-o", "json"]).json();
    let replicas = field(only(&document), "spec.replicas");
    assert_eq!(names(&replicas["conflictWith"]), ["kubectl-client-side-apply"]);
    let document = stage.plan(DEPLOYMENT, &["-o", "json"]).json();
    let cpu = "spec.template.spec.containers[name=app].resources.limits.cpu";
    assert_eq!(names(&field(only(&document), cpu)["conflictWith"]), ["kubectl-client-side-apply"]);
    let notes = only(&document)["notes"].to_string();
    assert!(notes.contains("limits.cpu is held with the same value: written as \\\"1\\\""), "{notes}");

    // kubectl itself goes over without a conflict: the server knows what it applied last.
    let output = stage.plan_as("kubectl", &scaled, &["-o", "json"]);
    assert_eq!(only(&output.json())["action"], "change", "{output:#?}");
    stage.kubectl_with(&["apply", "--server-side", "-f", "-"], &deployment);
    let output = stage.plan_as("kubectl", &deployment, &[]);
    assert_eq!((output.code, output.stdout.as_str()), (0, "1 unchanged\n"));
}

fn sorted(owners: &serde_json::Value) -> Vec<&str> {
    let mut names = names(owners);
    names.sort_unstable();
    names
}

/// Step by step, three managers write; each time the plan is held against what `kausality own` shows afterwards.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_planned_is_what_happens() {
    let Some(stage) = stage().await else { return };
    let steps = [
        ("a", DEPLOYMENT.to_owned()),
        ("b", DEPLOYMENT.replace("nginx:1", "nginx:2").replace("        args: [a, b]\n", "")),
        ("a", DEPLOYMENT.replace("  replicas: 3\n", "").replace("nginx:1", "nginx:2")),
        ("c", DEPLOYMENT.replace("name: app\n", "name: side\n").replace("1024Mi", "2Gi")),
        (
            "b",
            DEPLOYMENT
                .replace("/var/tmp", "/data")
                .replace("0.5", "250m")
                .replace("replicas: 3", "replicas: 1"),
        ),
        (
            "a",
            DEPLOYMENT
                .replace("protocol: UDP", "protocol: SCTP")
                .replace("sizeLimit: 1000Mi", "medium: Memory"),
        ),
        (
            "c",
            DEPLOYMENT
                .replace("        args: [a, b]\n", "")
                .replace("name: web,", "name: web, annotations: {x.io/y: z},"),
        ),
    ];
    for (nth, (manager, manifest)) in steps.iter().enumerate() {
        let document = stage.plan_as(manager, manifest, &["-o", "json", "--force-conflicts"]).json();
        stage.apply(manager, manifest);
        let owned = stage.own("deployment/web");
        let find =
            |path: &str| owned["fields"].as_array().unwrap().iter().find(|field| field["path"] == path);
        let fields = only(&document)["fields"].as_array().unwrap();
        assert!(!fields.is_empty(), "step {nth}: {document:#}");
        for field in fields {
            let path = field["path"].as_str().unwrap();
            let found = find(path);
            if field["change"] == "remove" {
                assert!(found.is_none(), "step {nth}: {path} is still there: {found:#?}");
                continue;
            }
            // Without a schema, a list that nobody owns items of is one field.
            let Some(found) = found.filter(|_| field["change"] != "reorder") else {
                assert!(names(&field["ownersAfter"]).is_empty(), "step {nth}: no {path}");
                continue;
            };
            assert_eq!(sorted(&found["owners"]), sorted(&field["ownersAfter"]), "step {nth}: {path}");
            if let Some(after) = field.get("after") {
                assert_eq!(&found["value"], after, "step {nth}: {path}");
            }
        }
        let again = stage.plan_as(manager, manifest, &[]);
        assert_eq!((again.code, again.stdout.as_str()), (0, "1 unchanged\n"), "step {nth}");
    }
}

/// A controller writes status all the time: that is nobody's change.
#[tokio::test(flavor = "multi_thread")]
async fn status_is_not_planned() {
    let Some(stage) = stage().await else { return };
    let _kubelet = stage.play_kubelet().await.unwrap();
    stage.apply("ci", DEPLOYMENT);
    for _ in 0..5 {
        stage.plans_nothing(DEPLOYMENT);
    }
    eventually(PATIENCE, "the roll-out", async || {
        let ready = stage.must(&["get", "deployment", "web", "-o", "jsonpath={.status.readyReplicas}"]);
        if ready == "3" { Ok(()) } else { Err(ready) }
    })
    .await
    .unwrap();
    stage.plans_nothing(DEPLOYMENT);
}
