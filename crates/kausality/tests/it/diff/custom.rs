//! Custom resources: items by key, members of sets, lists as a whole, and a status like any other field.

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
                x-kubernetes-list-map-keys: [row]
                items: {type: object, required: [row], properties: {row: {type: integer}, plant: {type: string}, water: {type: integer, default: 3}}}
              tags: {type: array, x-kubernetes-list-type: set, items: {type: string}}
              path: {type: array, items: {type: object, properties: {to: {type: string}, wide: {type: boolean, default: true}}}}
          status: {type: object, properties: {wet: {type: boolean}}}
";

const GARDEN: &str = "
apiVersion: example.com/v1
kind: Garden
metadata: {name: g}
spec:
  beds: [{row: 1, plant: rose}, {row: 2, plant: mint}]
  tags: [a, b]
  path: [{to: pond}, {to: gate}]
status: {wet: true}
";

#[tokio::test(flavor = "multi_thread")]
async fn keys_sets_whole_lists_and_a_status_that_is_written_with_the_rest() {
    let Some(stage) = alone().await else { return };
    stage.apply("ci", DEFINITION);
    stage.must(&["wait", "--for=condition=Established", "crd/gardens.example.com", "--timeout=30s"]);
    stage.apply("ci", GARDEN);
    // The server has filled in parts of what is owned as a whole.
    assert_eq!(stage.verdicts("ci", GARDEN, &[]), Vec::<String>::new());

    // A foreign bed put first, and a member of the set taken out.
    let patch = r#"[{"op": "add", "path": "/spec/beds/0", "value": {"row": 0, "plant": "weed"}},
        {"op": "remove", "path": "/spec/tags/0"}, {"op": "add", "path": "/spec/tags/0", "value": "z"}]"#;
    stage.must(&["patch", "gardens", "g", "--type=json", "--field-manager=deer", "-p", patch]);
    assert_eq!(stage.verdicts("ci", GARDEN, &[]), [r#"own-drift! spec.tags["a"] "a" -"#]);
    stage.apply("ci", GARDEN);

    let patch = r#"[{"op": "replace", "path": "/spec/path/1/to", "value": "shed"},
        {"op": "replace", "path": "/spec/beds/2/plant", "value": "oak"},
        {"op": "replace", "path": "/status/wet", "value": false}]"#;
    stage.must(&["patch", "gardens", "g", "--type=json", "--field-manager=deer", "-p", patch]);
    assert_eq!(
        stage.verdicts("ci", GARDEN, &[]),
        [
            r#"takeover! spec.beds[row=2].plant "mint" "oak" deer"#,
            r#"takeover! spec.path [{"to":"pond"},{"to":"gate"}] [{"to":"pond","wide":true},{"to":"shed","wide":true}] deer"#,
            "takeover! status.wet true false deer",
        ]
    );
}
