//! The OpenAPI documents that kubectl asks for, made of the types that the sandbox itself works with.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use serde_json::{Map, Value, json};

use crate::discovery::VERSION;
use crate::kinds::{Definition, Registry, Shape};
use crate::types::built_in;

mod older;

const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
const SCHEMAS: &str = "#/components/schemas/";

/// Where the documents are.
pub(crate) fn index(registry: &Registry) -> Value {
    let mut paths = Map::new();
    for (group, versions) in registry.groups() {
        for version in versions {
            let path =
                if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") };
            let mut hasher = DefaultHasher::new();
            for definition in registry.of_version(group, version) {
                definition.plural.hash(&mut hasher);
                if let Shape::Custom(custom) = &definition.shape {
                    custom.schema.as_ref().map(Value::to_string).hash(&mut hasher);
                }
            }
            let url = format!("/openapi/v3/{path}?hash={:016X}", hasher.finish());
            paths.insert(path, json!({"serverRelativeURL": url}));
        }
    }
    json!({"paths": paths})
}

/// The document of a group and version.
pub(crate) fn v3(registry: &Registry, group: &str, version: &str) -> Option<Value> {
    let definitions: Vec<_> = registry.of_version(group, version).collect();
    if definitions.is_empty() {
        return None;
    }
    let mut paths = Map::new();
    let mut schemas = BTreeMap::new();
    for definition in definitions {
        describe(definition, &mut schemas);
        operations(definition, &mut paths);
    }
    Some(json!({
        "openapi": "3.0.0", "info": {"title": "Kubernetes", "version": VERSION},
        "paths": paths, "components": {"schemas": schemas},
    }))
}

/// Everything in one document, in the older form.
pub(crate) fn v2(registry: &Registry) -> Value {
    let mut schemas = BTreeMap::new();
    registry.all().for_each(|definition| describe(definition, &mut schemas));
    let definitions: Map<_, _> =
        schemas.iter().map(|(name, schema)| (name.clone(), older::schema(schema))).collect();
    json!({"swagger": "2.0", "info": {"title": "Kubernetes", "version": VERSION}, "paths": {}, "definitions": definitions})
}

/// The same, as protobuf.
pub(crate) fn v2_protobuf(registry: &Registry) -> Vec<u8> {
    older::protobuf(&v2(registry))
}

/// The name of the schema of a kind.
fn schema_name(definition: &Definition) -> String {
    match &definition.shape {
        Shape::BuiltIn(name) => name.clone(),
        Shape::Custom(_) => {
            let mut parts: Vec<_> = definition.group.rsplit('.').collect();
            parts.extend([definition.version.as_str(), definition.kind.as_str()]);
            parts.join(".")
        }
    }
}

/// Adds the schema of a kind, and those that it refers to.
fn describe(definition: &Definition, schemas: &mut BTreeMap<String, Value>) {
    match &definition.shape {
        Shape::BuiltIn(name) => add(name, schemas),
        Shape::Custom(custom) => {
            add(OBJECT_META, schemas);
            let mut schema = custom
                .schema
                .clone()
                .unwrap_or_else(|| json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}));
            let properties = crate::metadata::member(&mut schema, "properties");
            properties.insert("apiVersion".to_owned(), json!({"type": "string"}));
            properties.insert("kind".to_owned(), json!({"type": "string"}));
            properties.insert(
                "metadata".to_owned(),
                json!({"allOf": [{"$ref": format!("{SCHEMAS}{OBJECT_META}")}]}),
            );
            schema["x-kubernetes-group-version-kind"] = json!([kind(definition)]);
            schemas.insert(schema_name(definition), schema);
        }
    }
}

fn add(name: &str, schemas: &mut BTreeMap<String, Value>) {
    let Some(schema) = built_in().schemas.get(name) else { return };
    if schemas.insert(name.to_owned(), schema.clone()).is_none() {
        references(schema, &mut |name| add(name, schemas));
    }
}

fn references(value: &Value, found: &mut impl FnMut(&str)) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                match value.as_str() {
                    Some(text) if key == "$ref" => found(text.trim_start_matches(SCHEMAS)),
                    _ => references(value, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        _ => {}
    }
}

fn kind(definition: &Definition) -> Value {
    json!({"group": definition.group, "version": definition.version, "kind": definition.kind})
}

/// The operations of a kind, as far as clients look at them: which parameters a write has.
fn operations(definition: &Definition, paths: &mut Map<String, Value>) {
    let start =
        if definition.group.is_empty() { "/api".to_owned() } else { format!("/apis/{}", definition.group) };
    let within = if definition.namespaced { "/namespaces/{namespace}" } else { "" };
    let collection = format!("{start}/{}{within}/{}", definition.version, definition.plural);
    let body = json!({"$ref": format!("{SCHEMAS}{}", schema_name(definition))});
    let operation = |action: &str, parameters: &[&str]| {
        let parameters: Vec<_> = parameters
            .iter()
            .map(|name| json!({"name": name, "in": "query", "schema": {"type": "string"}}))
            .collect();
        json!({
            "parameters": parameters, "x-kubernetes-action": action, "x-kubernetes-group-version-kind": kind(definition),
            "responses": {"200": {"description": "OK", "content": {"application/json": {"schema": body}}}},
        })
    };
    let write = ["dryRun", "fieldManager", "fieldValidation"];
    paths.insert(
        collection.clone(),
        json!({"get": operation("list", &["limit", "continue"]), "post": operation("post", &write)}),
    );
    if !definition.review {
        let patch = ["dryRun", "fieldManager", "fieldValidation", "force"];
        paths.insert(
            format!("{collection}/{{name}}"),
            json!({"get": operation("get", &[]), "put": operation("put", &write),
                "patch": operation("patch", &patch), "delete": operation("delete", &["dryRun"])}),
        );
    }
}
