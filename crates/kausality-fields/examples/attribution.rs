//! What attribution costs, next to reading the review that it is about.
//!
//! `cargo run --release -p kausality-fields --example attribution READ ATTRIBUTED [take|create] [CONTAINERS]` reads a review of about
//! 100 KB so many times, and attributes it so many times, with all that entries gained and lost. The difference of two
//! runs under `valgrind --tool=callgrind` is the cost of one. In the review, one manager takes a field from another
//! that owns nearly everything; or all of it is created.

use kausality_fields::FieldSet;
use kausality_fields::attribution::attribute;
use kausality_fields::managed::{self, Entry, Operation, Wire};
use kausality_fields::schema::{GroupVersionKind, openapi};
use kausality_fields::typed::Type;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::error::Error;
use std::hint::black_box;
use std::io::{self, Write};

/// As much of a review as has to be read to find what attribution needs.
#[derive(Deserialize)]
struct Review<'a> {
    #[serde(borrow)]
    request: Request<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Request<'a> {
    #[serde(borrow)]
    object: Option<Object<'a>>,
    #[serde(borrow)]
    old_object: Option<Object<'a>>,
}

#[derive(Deserialize)]
struct Object<'a> {
    #[serde(borrow)]
    metadata: Metadata<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata<'a> {
    #[serde(borrow)]
    managed_fields: Option<&'a RawValue>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut count = || arguments.next().map_or(Ok(1), |count| count.parse::<usize>());
    let (reviews, attributions) = (count()?, count()?);
    let creates = arguments.next().as_deref() == Some("create");
    let containers = arguments.next().map_or(Ok(54), |count| count.parse())?;
    let text = review(creates, containers)?;
    for _ in 0..reviews {
        black_box(serde_json::from_str::<Review<'_>>(black_box(&text))?);
    }
    let Review { request } = serde_json::from_str(&text)?;
    let managed =
        |object: &Option<Object<'_>>| object.as_ref()?.metadata.managed_fields.map(RawValue::to_owned);
    let (before, after) = (managed(&request.old_object), managed(&request.object));
    let [before, after] = [&before, &after].map(|list| list.as_ref().map(|raw| raw.get()));
    for _ in 0..attributions {
        let attribution = attribute(black_box(before), black_box(after))?;
        // What a created object gained is all of it. To read it is to read an object, not a change.
        for moved in attribution.written.iter().filter(|_| !creates) {
            black_box(moved.moves()?);
        }
        black_box(&attribution);
    }
    let sizes = [text.len(), before.map_or(0, str::len), after.map_or(0, str::len)];
    let writer = attribute(before, after)?.manager().unwrap_or("not to be told").to_owned();
    writeln!(io::stdout(), "The review and its two lists have {sizes:?} bytes. The writer is {writer}.")?;
    Ok(())
}

/// A review of a Deployment with many containers, one of which gets another image.
fn review(creates: bool, containers: usize) -> Result<String, Box<dyn Error>> {
    let containers: Vec<Value> = (0..containers).map(container).collect();
    let mut object = json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "shop", "namespace": "shop", "labels": {"app": "shop"}},
        "spec": {"replicas": 3, "template": {"spec": {"containers": containers}}}});
    let fields = fields(&object)?;
    let image = FieldSet::from_fields_v1(
        r#"{"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"container-20\"}":{"f:image":{}}}}}}}"#,
    )?;
    let status =
        FieldSet::from_fields_v1(r#"{"f:status":{"f:observedGeneration":{},"f:readyReplicas":{}}}"#)?;
    let before = [entry("helm", &fields), entry("kube-controller-manager", &status)];
    let after = [entry("helm", &fields.difference(&image)), entry("updater", &image), before[1].clone()];

    let mut old = object.clone();
    old["metadata"]["managedFields"] = serde_json::from_str(&managed::encode(&before, Wire::BuiltIn))?;
    object["spec"]["template"]["spec"]["containers"][20]["image"] = json!("registry.example.com/shop:2");
    object["metadata"]["managedFields"] = serde_json::from_str(&managed::encode(&after, Wire::BuiltIn))?;
    let (old, operation) = if creates { (Value::Null, "CREATE") } else { (old, "UPDATE") };
    let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {"uid": "1", "operation": operation, "object": object, "oldObject": old}});
    Ok(review.to_string())
}

fn container(nth: usize) -> Value {
    let env: Vec<Value> =
        (0..4).map(|nth| json!({"name": format!("SETTING_{nth}"), "value": "of some length"})).collect();
    json!({"name": format!("container-{nth}"), "image": "registry.example.com/shop:1", "imagePullPolicy": "IfNotPresent",
        "env": env, "args": ["serve", "--verbose"], "resources": {"limits": {"cpu": "500m", "memory": "128Mi"}},
        "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"})
}

/// The fields of the object. Its lists are owned item by item, by name.
fn fields(object: &Value) -> Result<FieldSet, Box<dyn Error>> {
    let by_name = |item: Value| json!({"type": "array", "items": item, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]});
    let fields =
        |fields: Value| json!({"type": "object", "properties": fields, "additionalProperties": true});
    let container = fields(json!({"env": by_name(json!({"type": "object"}))}));
    let pod = fields(json!({"containers": by_name(container)}));
    let spec = fields(json!({"template": fields(json!({"spec": pod}))}));
    let mut deployment = fields(json!({"spec": spec}));
    deployment["x-kubernetes-group-version-kind"] =
        json!([{"group": "apps", "version": "v1", "kind": "Deployment"}]);
    let kinds = openapi::document(&json!({"components": {"schemas": {"Deployment": deployment}}}))?;
    let of = kinds
        .type_of(&GroupVersionKind::new("apps/v1", "Deployment"))
        .ok_or("the schema has no Deployment")?;
    Ok(Type::new(&kinds.schema, &of).field_set(object)?)
}

fn entry(manager: &str, fields: &FieldSet) -> Entry {
    Entry {
        manager: manager.to_owned(),
        operation: Operation::Update,
        api_version: "apps/v1".to_owned(),
        time: Some("2026-01-01T00:00:00Z".to_owned()),
        fields: fields.clone(),
        subresource: String::new(),
    }
}
