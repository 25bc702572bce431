//! Custom resources: keys, sets, lists as a whole; kinds and namespaces that the plan makes, or that nobody makes.

use crate::plan::stage::*;

const DEFINITION: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gardens.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Garden, plural: gardens, singular: garden, listKind: GardenList}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              beds:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [row, column]
                items:
                  type: object
                  required: [row]
                  properties:
                    row: {type: integer}
                    column: {type: integer, default: 1}
                    plant: {type: string}
                    water: {type: integer, default: 3}
              tags: {type: array, x-kubernetes-list-type: set, items: {type: string}}
              path: {type: array, items: {type: string}}
              size: {x-kubernetes-int-or-string: true}
              soil:
                type: string
                maxLength: 5
                x-kubernetes-validations: [{rule: self == oldSelf, message: soil is immutable}]
              extra: {type: object, x-kubernetes-preserve-unknown-fields: true}
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
";

const GARDEN: &str = "
apiVersion: example.com/v1
kind: Garden
metadata: {name: g}
spec:
  beds: [{row: 1, plant: rose}, {row: 1, column: 2, plant: mint}]
  tags: [b, a]
  path: [p, q]
  size: 10%
  soil: sand
  extra: {a: {b: [1, 2]}, empty: {}}
";

fn define(stage: &Stage) {
    stage.apply("ci", DEFINITION);
    stage.must(&["wait", "--for=condition=Established", "crd/gardens.example.com", "--timeout=30s"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn items_are_named_by_key_and_what_is_applied_plans_empty() {
    let Some(stage) = alone().await else { return };
    define(&stage);
    stage.apply("ci", GARDEN);
    // At once: what the API server publishes of custom resources comes later.
    let changed = GARDEN
        .replace("{row: 1, plant: rose}, {row: 1, column: 2, plant: mint}", "{row: 2}, {row: 1, plant: oak}")
        .replace("[b, a]", "[a, c]")
        .replace("[p, q]", "[q, p]")
        .replace("10%", "12")
        .replace("empty: {}", "more: null");
    let output = stage.plan(&changed, &[]);
    assert_eq!(output.code, 1);
    insta::assert_snapshot!("change-garden", output.stdout);
    stage.plans_nothing(&format!("{DEFINITION}---{GARDEN}"));
    stage.apply("ci", &changed);
    stage.plans_nothing(&changed);

    // Status has owners of its own.
    let status = r#"{"status":{"wet":true}}"#;
    stage.must(&["patch", "gardens", "g", "--subresource=status", "--type=merge", "-p", status]);
    stage.plans_nothing(&changed);
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_of_custom_resources_are_explained() {
    let Some(stage) = alone().await else { return };
    define(&stage);
    stage.apply("ci", GARDEN);
    let output = stage.plan(&GARDEN.replace("soil: sand", "soil: clay"), &[]);
    assert_eq!(output.code, 2);
    insta::assert_snapshot!("immutable-soil", output.stdout);
    let output = stage.plan(&GARDEN.replace("soil: sand", "soil: concrete"), &["-o", "json"]);
    assert_eq!(output.code, 2);
    let error = only(&output.json())["errors"][0].clone();
    assert_eq!((&error["reason"], &error["field"]), (&"Invalid".into(), &"spec.soil".into()));
    let output = stage.plan(&GARDEN.replace("plant: mint", "plnt: mint"), &["-o", "json"]);
    let error = only(&output.json())["errors"][0].clone();
    assert_eq!(error["field"], "spec.beds[column=2,row=1].plnt", "{error:#}");

    // What is refused by today's definition may be fine under the one in the plan.
    let better = DEFINITION
        .replace("plant: {type: string}", "plant: {type: string}\n                    plnt: {type: string}");
    let output =
        stage.plan(&format!("{better}---{}", GARDEN.replace("plant: mint", "plnt: mint")), &["-o", "json"]);
    let document = output.json();
    assert_eq!(document["objects"][0]["action"], "change");
    let notes = document["objects"][1]["notes"].to_string();
    assert!(notes.contains("gardens.example.com is changed by this plan"), "{notes}");
}

#[tokio::test(flavor = "multi_thread")]
async fn kinds_and_namespaces_may_come_with_the_plan() {
    let Some(stage) = alone().await else { return };
    let output = stage.plan(GARDEN, &["-o", "json"]);
    assert_eq!(output.code, 2);
    let error = only(&output.json())["errors"][0].clone();
    assert_eq!(error["reason"], "NotServed");
    assert!(error["message"].as_str().unwrap().contains("CustomResourceDefinition missing"), "{error:#}");

    let output = stage.plan(&format!("{GARDEN}---{DEFINITION}"), &[]);
    assert_eq!(output.code, 1, "{output:#?}");
    insta::assert_snapshot!("garden-with-its-definition", output.stdout);
    let other = GARDEN.replace("example.com/v1", "example.com/v2");
    let output = stage.plan(&format!("{other}---{DEFINITION}"), &["-o", "json"]).json();
    assert_eq!(output["objects"][0]["errors"][0]["reason"], "NotServed", "{output:#}");

    let garden = GARDEN.replace("name: g}", "name: g, namespace: park}");
    let map = "{apiVersion: v1, kind: ConfigMap, metadata: {name: m, namespace: park}, data: {a: b}}";
    for manifests in [format!("{garden}---{DEFINITION}"), map.to_owned()] {
        let output = stage.plan(&manifests, &["-o", "json"]);
        assert_eq!(output.code, 2);
        let error = output.json()["objects"][0]["errors"][0].clone();
        assert_eq!(error["reason"], "NamespaceNotFound", "{error:#}");
    }
    let namespace = "{apiVersion: v1, kind: Namespace, metadata: {name: park}}";
    let output = stage.plan(&format!("{map}\n---{garden}---{DEFINITION}---\n{namespace}"), &["-o", "json"]);
    assert_eq!(output.code, 1, "{output:#?}");
    let document = output.json();
    let actions: Vec<&str> = document["objects"]
        .as_array()
        .unwrap()
        .iter()
        .map(|object| object["action"].as_str().unwrap())
        .collect();
    assert_eq!(actions, ["create"; 4]);
    let notes = document["objects"][0]["notes"].to_string();
    assert!(notes.contains("its namespace park is created by this plan"), "{notes}");
    let notes = document["objects"][1]["notes"].to_string();
    assert!(notes.contains("its CRD is created by this plan"), "{notes}");

    // A namespace may also be given from outside.
    let bare = "{apiVersion: v1, kind: ConfigMap, metadata: {name: m}}";
    let document = stage.plan(bare, &["-n", "kube-public", "-o", "json"]).json();
    assert_eq!(
        (&only(&document)["action"], &only(&document)["namespace"]),
        (&"create".into(), &"kube-public".into())
    );
    let old = "{apiVersion: apps/v1beta1, kind: Deployment, metadata: {name: d}}";
    let document = stage.plan(old, &["-o", "json"]).json();
    let error = only(&document)["errors"][0]["message"].as_str().unwrap().to_owned();
    assert_eq!(error, "the API server serves Deployment in apps/v1, and not in apps/v1beta1");
}
