//! The types of a Deployment, a Service and a custom resource, from small documents in the form in which an API server
//! serves them.

use kausality_fields::schema::{
    Format, GroupVersionKind, Kinds, Relationship, Resolved, TypeRef, openapi, structural,
};
use serde_json::{Value, json};

fn reference(name: &str) -> Value {
    json!({"allOf": [{"$ref": format!("#/components/schemas/{name}")}], "default": {}})
}

fn object(properties: Value) -> Value {
    json!({"type": "object", "properties": properties})
}

fn list_by(keys: &[&str], items: Value) -> Value {
    json!({"type": "array", "items": items, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys})
}

fn kind(api_version: &str, kind: &str) -> GroupVersionKind {
    GroupVersionKind::new(api_version, kind)
}

/// An object type with the fields that all have.
fn kind_of(group: &str, name: &str, mut properties: Value) -> Value {
    properties["apiVersion"] = json!({"type": "string"});
    properties["kind"] = json!({"type": "string"});
    properties["metadata"] = reference("meta.v1.ObjectMeta");
    let mut schema = object(properties);
    schema["x-kubernetes-group-version-kind"] = json!([{"group": group, "version": "v1", "kind": name}]);
    schema
}

fn built_in() -> Kinds {
    let string = || json!({"type": "string"});
    let number = || json!({"type": "integer", "format": "int32"});
    let quantity = "io.k8s.apimachinery.pkg.api.resource.Quantity";
    openapi::document(&json!({"openapi": "3.0.0", "components": {"schemas": {
        "apps.v1.Deployment": kind_of("apps", "Deployment", json!({"spec": reference("apps.v1.DeploymentSpec")})),
        "apps.v1.DeploymentSpec": object(json!({
            "replicas": number(), "selector": reference("meta.v1.LabelSelector"),
            "template": reference("core.v1.PodTemplateSpec")})),
        "core.v1.PodTemplateSpec": object(json!({
            "metadata": reference("meta.v1.ObjectMeta"), "spec": reference("core.v1.PodSpec")})),
        "core.v1.PodSpec": object(json!({
            "containers": list_by(&["name"], reference("core.v1.Container")),
            "tolerations": {"type": "array", "items": object(json!({"key": string()})),
                            "x-kubernetes-list-type": "atomic"},
            "nodeSelector": {"type": "object", "additionalProperties": string(), "x-kubernetes-map-type": "atomic"}})),
        "core.v1.Container": object(json!({
            "name": {"type": "string", "default": ""}, "image": string(),
            "args": {"type": "array", "items": string()},
            "ports": list_by(&["containerPort", "protocol"], object(json!({
                "containerPort": number(), "protocol": {"type": "string", "default": "TCP"}}))),
            "env": {"type": "array", "items": object(json!({"name": string()})),
                    "x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": "name"},
            "volumeMounts": list_by(&["mountPath"], object(json!({"mountPath": string()}))),
            "limits": {"type": "object", "additionalProperties": reference(quantity)}})),
        "core.v1.Service": kind_of("", "Service", json!({"spec": object(json!({
            "ports": list_by(&["port", "protocol"], object(json!({
                "port": number(), "protocol": {"type": "string", "default": "TCP"},
                "targetPort": reference("util.IntOrString")})))}))})),
        "meta.v1.LabelSelector": {"type": "object", "x-kubernetes-map-type": "atomic",
            "properties": {"matchLabels": {"type": "object", "additionalProperties": string()}}},
        "meta.v1.ObjectMeta": object(json!({
            "name": string(), "creationTimestamp": reference("meta.v1.Time"),
            "labels": {"type": "object", "additionalProperties": {"type": "string", "default": ""}},
            "finalizers": {"type": "array", "items": {"type": "string", "default": ""},
                           "x-kubernetes-list-type": "set", "x-kubernetes-patch-strategy": "merge"}})),
        "meta.v1.Time": {"type": "string", "format": "date-time"},
        "util.IntOrString": {"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]},
        quantity: {"oneOf": [{"type": "string"}, {"type": "number"}]},
    }}}))
    .unwrap()
}

/// The type at the end of a path of fields, where `[]` is an item.
fn at<'s>(kinds: &'s Kinds, kind: &GroupVersionKind, path: &str) -> Resolved<'s> {
    path.split('.').fold(kinds.resolve(kind).unwrap(), |at, step| {
        let of: &TypeRef = match step {
            "[]" => at.list.unwrap().element,
            name => at.map.unwrap().field(name).unwrap(),
        };
        kinds.schema.resolve(of).unwrap()
    })
}

#[test]
fn lists_are_owned_by_key_as_members_or_as_a_whole() {
    let kinds = built_in();
    let check = |kind: &GroupVersionKind, path: &str, relationship, keys: &[&str]| {
        let list = at(&kinds, kind, path).list.unwrap();
        assert_eq!(list.relationship, relationship, "{path}");
        assert_eq!(list.keys, keys, "{path}");
    };
    use Relationship::{Atomic, Separable};
    let (deployment, service) = (kind("apps/v1", "Deployment"), kind("v1", "Service"));
    check(&deployment, "spec.template.spec.containers", Separable, &["name"]);
    check(&deployment, "spec.template.spec.tolerations", Atomic, &[]);
    check(&deployment, "spec.template.spec.containers.[].ports", Separable, &["containerPort", "protocol"]);
    check(&deployment, "spec.template.spec.containers.[].env", Separable, &["name"]);
    check(&deployment, "spec.template.spec.containers.[].volumeMounts", Separable, &["mountPath"]);
    check(&deployment, "spec.template.spec.containers.[].args", Atomic, &[]);
    check(&deployment, "metadata.finalizers", Separable, &[]);
    check(&deployment, "spec.template.metadata.finalizers", Separable, &[]);
    check(&service, "spec.ports", Separable, &["port", "protocol"]);
}

#[test]
fn maps_are_owned_by_key_or_as_a_whole() {
    let kinds = built_in();
    let relationship =
        |path: &str| at(&kinds, &kind("apps/v1", "Deployment"), path).map.unwrap().relationship;
    assert_eq!(relationship("metadata.labels"), Relationship::Separable);
    assert_eq!(relationship("spec.selector"), Relationship::Atomic);
    assert_eq!(relationship("spec.template.spec.nodeSelector"), Relationship::Atomic);
}

#[test]
fn formats_are_known() {
    let kinds = built_in();
    let format = |kind: GroupVersionKind, path: &str| at(&kinds, &kind, path).scalar.unwrap().format;
    let deployment = || kind("apps/v1", "Deployment");
    assert_eq!(format(deployment(), "metadata.creationTimestamp"), Some(Format::DateTime));
    assert_eq!(format(deployment(), "spec.template.spec.containers.[].limits.cpu"), Some(Format::Quantity));
    assert_eq!(format(kind("v1", "Service"), "spec.ports.[].targetPort"), Some(Format::IntOrString));
    assert_eq!(format(deployment(), "spec.replicas"), None);
}

#[test]
fn a_port_without_protocol_has_a_default_for_its_key() {
    let kinds = built_in();
    let port = at(&kinds, &kind("v1", "Service"), "spec.ports.[]").map.unwrap();
    assert_eq!(port.fields["protocol"].default, Some(json!("TCP")));
    assert_eq!(port.fields["port"].default, None);
}

/// The same custom resource as its author declares it, and as the API server serves it.
#[test]
fn a_custom_resource_has_one_type_wherever_it_comes_from() {
    let string = || json!({"type": "string"});
    let part = || {
        json!({
            "beds": list_by(&["name", "side"], object(json!({
                "name": string(), "side": {"type": "string", "default": "north"},
                "size": {"x-kubernetes-int-or-string": true}}))),
            "colour": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"red": string()}},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true,
                     "properties": {"known": object(json!({"inner": string()}))}},
            "until": {"type": "string", "format": "date-time", "nullable": true}})
    };
    let meta = || {
        json!({"allOf": [{"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}],
               "description": "What every object has."})
    };
    let mut declared = part();
    declared["template"] = json!({"type": "object", "x-kubernetes-embedded-resource": true,
        "x-kubernetes-preserve-unknown-fields": true});
    let mut served = part();
    served["template"] = json!({"type": "object", "x-kubernetes-embedded-resource": true,
        "x-kubernetes-preserve-unknown-fields": true, "required": ["kind", "apiVersion"],
        "properties": {"apiVersion": string(), "kind": string(), "metadata": meta()}});

    let declared = structural::custom_resource(&json!({"spec": {"group": "shop.example.com",
        "names": {"kind": "Garden"}, "versions": [{"name": "v1",
        "schema": {"openAPIV3Schema": object(json!({"spec": object(declared)}))}}]}}));
    let mut root = object(json!({
        "apiVersion": string(), "kind": string(), "metadata": meta(), "spec": object(served)}));
    root["x-kubernetes-group-version-kind"] =
        json!([{"group": "shop.example.com", "version": "v1", "kind": "Garden"}]);
    let served = openapi::document(&json!({"components": {"schemas": {
        "com.example.shop.v1.Garden": root,
        "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta": {"type": "object"},
    }}}));

    let (declared, served) = (declared.unwrap(), served.unwrap());
    assert_eq!(declared.types, served.types);
    let name = "com.example.shop.v1.Garden";
    assert_eq!(declared.schema.definition(name), served.schema.definition(name));
}
