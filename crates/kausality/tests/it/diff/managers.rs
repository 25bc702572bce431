//! Other managers: those who take a field, those who may, those who share it, and those who fight for it.

use kausality_testbed::{AuditEvent, eventually};

use crate::plan::stage::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_scaled_deployment_is_taken_over_or_delegated() {
    let Some(stage) = stage().await else { return };
    stage.apply("ci", DEPLOYMENT);
    stage.must(&["scale", "deployment", "web", "--replicas=5"]);
    let taken = "takeover! spec.replicas 3 5 kubectl";
    let left = "delegated spec.replicas 3 5 kubectl";
    for (delegation, expected) in [
        (None, taken),
        (Some("spec.replicas=kubectl"), left),
        (Some("spec.replicas=*"), left),
        (Some("spec.replicas=kubectl:1..10"), left),
        (Some("spec.replicas=kubectl:5..5"), left),
        (Some("spec.replicas=kubectl:1..4"), taken),
        (Some("spec.replicas=hpa"), taken),
        (Some("spec.template=kubectl"), taken),
    ] {
        let arguments: Vec<&str> = delegation.into_iter().flat_map(|text| ["--delegate", text]).collect();
        assert_eq!(stage.verdicts("ci", DEPLOYMENT, &arguments), [expected], "{delegation:?}");
    }
    // Without --all, what is no drift is not shown.
    let output = stage.diff(DEPLOYMENT, &["--delegate", "spec.replicas=kubectl"]);
    assert_eq!((output.code, output.stdout.as_str()), (0, "1 object: 1 as declared\n"));

    // Who applies it again has it back; a status of others is nobody's matter.
    stage.apply("ci", DEPLOYMENT);
    let status = r#"{"status":{"observedGeneration":9,"replicas":7}}"#;
    stage.must(&["patch", "deployment", "web", "--subresource=status", "--type=merge", "-p", status]);
    stage.must(&[
        "patch",
        "deployment",
        "web",
        "--subresource=status",
        "--type=merge",
        "-p",
        status,
        "--field-manager=ci",
    ]);
    assert_eq!(stage.verdicts("ci", DEPLOYMENT, &[]), Vec::<String>::new());
    let declared = format!("{DEPLOYMENT}status: {{replicas: 3}}\n");
    assert_eq!(stage.verdicts("ci", &declared, &[]), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn three_managers_and_their_labels_with_dots() {
    let Some(stage) = stage().await else { return };
    let map = |label: &str, data: &str| {
        format!(
            "{{apiVersion: v1, kind: ConfigMap, metadata: {{name: m, labels: {{app.kubernetes.io/name: {label}}}}}, data: {{{data}}}}}"
        )
    };
    let (a, b, c) = (map("x", "k: '1', a: '1'"), map("x", "k: '1'"), map("x", "k: '1', c: '1'"));
    stage.apply("a", &a);
    stage.apply("b", &b);
    stage.apply("c", &c);
    let label = r#"metadata.labels["app.kubernetes.io/name"]"#;
    for (manager, manifest) in [("a", &a), ("b", &b), ("c", &c)] {
        let shared =
            [r#"co-owned data.k "1" "1" a+b+c"#.to_owned(), format!(r#"co-owned {label} "x" "x" a+b+c"#)];
        assert_eq!(stage.verdicts(manager, manifest, &[]), shared, "{manager}");
    }
    // One takes it from the others, who still see their own.
    stage.apply("c", &map("z", "k: '1'"));
    assert_eq!(
        stage.verdicts("a", &a, &[]),
        [r#"co-owned data.k "1" "1" a+b+c"#.to_owned(), format!(r#"takeover! {label} "x" "z" c"#)]
    );
    // Not declared any more: others keep what is theirs, too, and what is its own goes.
    assert_eq!(
        stage.verdicts("a", &map("z", "new: '1'"), &[]),
        [
            r#"release! data.a - "1" a"#.to_owned(),
            r#"release data.k - "1" a+b+c"#.to_owned(),
            r#"own-drift! data.new "1" -"#.to_owned(),
            format!(r#"takeover! {label} "z" "z" c"#),
        ]
    );
}

/// `kubectl apply` as it was, then server-side.
#[tokio::test(flavor = "multi_thread")]
async fn objects_of_client_side_apply_are_compared() {
    let Some(stage) = stage().await else { return };
    // As the API server writes them: other spellings are conflicts to it.
    let deployment = &DEPLOYMENT.replace("1000m", "'1'").replace("1024Mi", "1Gi").replace("0.5", "500m");
    stage.kubectl_with(&["apply", "-f", "-"], deployment);
    let verdicts = stage.verdicts("kubectl-client-side-apply", deployment, &[]);
    assert!(verdicts.iter().all(|line| line.starts_with("release ")), "{verdicts:#?}");
    // To kubectl, which would apply server-side, all of it is somebody else's still.
    let verdicts = stage.verdicts("kubectl", deployment, &[]);
    assert!(
        verdicts.iter().any(|line| line == "takeover! spec.replicas 3 3 kubectl-client-side-apply"),
        "{verdicts:#?}"
    );
    let migrated = stage.kubectl_with(&["apply", "--server-side", "-f", "-"], deployment);
    assert!(migrated.contains("serverside-applied"), "{migrated}");
    let verdicts = stage.verdicts("kubectl", deployment, &[]);
    assert!(verdicts.iter().all(|line| !line.contains('!')), "{verdicts:#?}");
    let scaled = deployment.replace("replicas: 3", "replicas: 4");
    let verdicts = stage.verdicts("kubectl", &scaled, &[]);
    assert_eq!(verdicts, ["own-drift! spec.replicas 4 3 kubectl"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn managed_fields_that_were_cleared_tell_nothing_but_values() {
    let Some(stage) = stage().await else { return };
    stage.apply("ci", DEPLOYMENT);
    stage.must(&[
        "patch",
        "deployment",
        "web",
        "--type=merge",
        "-p",
        r#"{"metadata":{"managedFields":[{}]}}"#,
    ]);
    let verdicts = stage.verdicts("ci", DEPLOYMENT, &[]);
    assert!(
        !verdicts.is_empty() && verdicts.iter().all(|line| line.starts_with("unknown ")),
        "{verdicts:#?}"
    );
    let verdicts = stage.verdicts("ci", &DEPLOYMENT.replace("replicas: 3", "replicas: 4"), &[]);
    let drift: Vec<&String> = verdicts.iter().filter(|line| line.contains('!')).collect();
    assert_eq!(drift, ["unknown! spec.replicas 4 3"]);
    let output = stage.diff(DEPLOYMENT, &[]);
    assert!(output.stdout.contains("there is no telling: the object has no managedFields"), "{output:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn managers_that_alternate_while_it_watches_fight() {
    let Some(stage) = stage().await else { return };
    let map = |value: usize| {
        format!(
            "{{apiVersion: v1, kind: ConfigMap, metadata: {{name: m}}, data: {{k: 'v{value}', calm: x}}}}"
        )
    };
    stage.apply("ci", &map(0));
    stage.apply("other", &map(1));
    let child = stage.diff_begun("ci", &map(0), &["--watch", "20", "-o", "json", "--all"]);
    // It must be watching before they begin.
    eventually(PATIENCE, "the watch", async || {
        let events = stage.audit().unwrap();
        let is_watch = |event: &AuditEvent| {
            event.verb == "watch"
                && event.user_agent.starts_with("kausality-diff/")
                && event.resource == "configmaps"
        };
        if events.iter().any(is_watch) { Ok(()) } else { Err("not yet") }
    })
    .await
    .unwrap();
    for nth in 0..3 {
        stage.apply("ci", &map(2 * nth));
        stage.apply("other", &map(2 * nth + 1));
    }
    let output = stage.finish(child);
    let document = output.json();
    let fields = &only(&document)["fields"];
    assert_eq!(output.code, 1, "{document:#}");
    let fight = fields.as_array().unwrap().iter().find(|field| field["path"] == "data.k").unwrap();
    assert_eq!(fight["verdict"], "fight", "{document:#}");
    assert_eq!(fight["managers"], serde_json::json!(["ci", "other"]), "{document:#}");
    assert!(fight["switches"].as_u64().unwrap() >= 3, "{document:#}");
    let calm = fields.as_array().unwrap().iter().find(|field| field["path"] == "data.calm").unwrap();
    assert_eq!(calm["verdict"], "co-owned", "{document:#}");
}
