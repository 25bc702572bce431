//! What the API server refuses, explained.

use crate::plan::stage::*;

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_change_is_named_with_both_values() {
    let Some(stage) = stage().await else { return };
    let job = "{apiVersion: batch/v1, kind: Job, metadata: {name: once}, spec: {suspend: true, template: {spec: \
        {restartPolicy: Never, containers: [{name: a, image: 'a:1'}]}}}}";
    let service = "{apiVersion: v1, kind: Service, metadata: {name: s}, spec: {ports: [{port: 80}]}}";
    for manifest in [DEPLOYMENT, job, service] {
        stage.apply("ci", manifest);
        stage.plans_nothing(manifest);
    }
    let wanted = [
        DEPLOYMENT.replace("app: web", "app: shop"),
        job.replace("a:1", "a:2"),
        service.replace("{ports", "{clusterIP: 10.0.0.77, ports"),
    ];
    let output = stage.plan(&wanted.join("\n---\n"), &["-o", "json"]);
    assert_eq!(output.code, 2, "{output:#?}");
    let document = output.json();
    for (nth, path, field, after) in [
        (0, "spec.selector", "spec.selector", r#"{"matchLabels":{"app":"shop"}}"#),
        (1, "spec.template", "spec.template.spec.containers[name=a].image", r#""a:2""#),
        (2, "spec.clusterIPs[0]", "spec.clusterIP", r#""10.0.0.77""#),
    ] {
        let error = &document["objects"][nth]["errors"][0];
        assert_eq!((&error["reason"], &error["field"]), (&"Immutable".into(), &path.into()), "{error:#}");
        assert!(
            error["message"].as_str().unwrap().contains("must be deleted and created again"),
            "{error:#}"
        );
        let wanted = &error["wanted"][0];
        assert_eq!((&wanted["path"], wanted["after"].to_string()), (&field.into(), after.to_owned()));
        assert!(wanted["before"].is_string() || wanted["before"].is_object(), "{error:#}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_in_manifests_are_named_by_field() {
    let Some(stage) = stage().await else { return };
    let service = "{apiVersion: v1, kind: Service, metadata: {name: s}, spec: {ports: [{port: 80, name: a}, \
        {port: 80000, name: b}]}}";
    let twice = DEPLOYMENT.replace("      volumes:", "      - {name: app, image: again}\n      volumes:");
    let manifests = [
        DEPLOYMENT.replace("replicas:", "replica:"),
        DEPLOYMENT.replace("replicas: 3", "replicas: three"),
        service.to_owned(),
        twice,
    ];
    let output = stage.plan(&manifests.join("\n---\n"), &[]);
    assert_eq!(output.code, 2);
    insta::assert_snapshot!("invalid", output.stdout);
    for (manifests, fault) in
        [("a: [", "not YAML"), ("{kind: A}", "has no apiVersion"), ("", "no objects found")]
    {
        let output = stage.plan(manifests, &[]);
        assert_eq!(output.code, 2);
        assert!(output.stderr.contains(fault), "{output:#?}");
    }
    for arguments in [["--force-path", "spec..a"], ["--context", "nowhere"], ["--kubeconfig", "/nowhere"]] {
        assert_eq!(stage.plan(service, &arguments).code, 2, "{arguments:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_rights_and_policies_are_named() {
    let Some(stage) = alone().await else { return };
    let output = stage.plan(DEPLOYMENT, &["--as", "bob"]);
    assert_eq!(output.code, 2);
    assert!(output.stdout.contains("bob may not get deployments.apps in namespace default"), "{output:#?}");
    stage.must(&["create", "clusterrole", "reader", "--verb=get", "--resource=deployments.apps"]);
    stage.must(&["create", "clusterrolebinding", "reader", "--clusterrole=reader", "--user=bob"]);
    let wait = kausality_testbed::eventually(PATIENCE, "the role", async || {
        let output = stage.plan(DEPLOYMENT, &["--as", "bob"]);
        if output.stdout.contains("bob may not patch deployments.apps in namespace default") {
            Ok(())
        } else {
            Err(output.stdout)
        }
    });
    wait.await.unwrap();

    let policy = r#"
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: no-nginx}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [apps], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [deployments]}]
  validations: [{expression: "!object.spec.template.spec.containers.exists(c, c.image.startsWith('nginx'))", message: no nginx here}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: no-nginx}
spec: {policyName: no-nginx, validationActions: [Deny]}
"#;
    stage.apply("admin", policy);
    let wait = kausality_testbed::eventually(PATIENCE, "the policy", async || {
        let output = stage.plan(DEPLOYMENT, &["-o", "json"]);
        let error = only(&output.json())["errors"][0].clone();
        let denied =
            error["reason"] == "Denied" && error["message"].as_str().unwrap().contains("no nginx here");
        if denied { Ok(()) } else { Err(output.stdout) }
    });
    wait.await.unwrap();
}
