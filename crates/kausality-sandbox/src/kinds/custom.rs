//! Kinds from CustomResourceDefinitions.

use std::collections::BTreeMap;
use std::sync::Arc;

use kausality_fields::schema::{Kinds, Schema, TypeRef, structural};
use serde_json::{Value, json};

use super::{Definition, Generation, Scale, Shape, api_version, type_of};

/// A version of a custom resource.
#[derive(Clone, Debug)]
pub(crate) struct Version {
    /// The `openAPIV3Schema`; without one, everything is kept.
    pub(crate) schema: Option<Value>,
    /// The version that objects are stored in.
    pub(crate) stored: String,
    /// How the webhook is called that converts between versions, if one does.
    pub(crate) converter: Option<Value>,
    /// The `additionalPrinterColumns`.
    pub(crate) columns: Vec<Value>,
    /// The `selectableFields`, as `spec.colour`.
    pub(crate) selectable: Vec<String>,
}

/// The versions that a CustomResourceDefinition serves.
pub(crate) fn definitions(definition: &Value) -> Vec<Definition> {
    let spec = &definition["spec"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let group = text(&spec["group"]);
    let names = &spec["names"];
    let (kind, plural) = (text(&names["kind"]), text(&names["plural"]));
    let versions = spec["versions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let stored =
        versions.iter().find(|version| version["storage"] == true).map(|version| text(&version["name"]));
    let kinds = structural::custom_resource(definition)
        .unwrap_or_else(|_| Kinds { schema: Schema::deduced(), types: BTreeMap::new() });
    let kinds = Arc::new(kinds);
    let converter = Some(&spec["conversion"]).filter(|conversion| conversion["strategy"] == "Webhook");
    let converter = converter.map(|conversion| conversion["webhook"]["clientConfig"].clone());
    let served = versions.iter().filter(|version| version["served"] == true);
    let definition = |version: &Value| {
        let name = text(&version["name"]);
        let status = version.pointer("/subresources/status").is_some();
        let of = type_of(&kinds, &group, &name, &kind).unwrap_or_else(TypeRef::deduced);
        Definition {
            empty: json!({"apiVersion": api_version(&group, &name), "kind": kind}),
            group: group.clone(),
            version: name,
            kind: kind.clone(),
            list_kind: names["listKind"].as_str().map_or_else(|| format!("{kind}List"), str::to_owned),
            plural: plural.clone(),
            singular: names["singular"].as_str().map_or_else(|| kind.to_lowercase(), str::to_owned),
            short_names: texts(&names["shortNames"]),
            categories: texts(&names["categories"]),
            namespaced: spec["scope"] == "Namespaced",
            status,
            scale: version.pointer("/subresources/scale").and_then(scale),
            generation: if status { Generation::Intent } else { Generation::AllButMetadata },
            shape: Shape::Custom(Version {
                schema: version.pointer("/schema/openAPIV3Schema").cloned(),
                stored: stored.clone().unwrap_or_default(),
                converter: converter.clone(),
                columns: version["additionalPrinterColumns"].as_array().cloned().unwrap_or_default(),
                selectable: version["selectableFields"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .map(|field| text(&field["jsonPath"]).trim_start_matches('.').to_owned())
                    .collect(),
            }),
            collection: format!("{group}/{plural}"),
            review: false,
            unconditional: false,
            created_by_update: false,
            kinds: Arc::clone(&kinds),
            of,
        }
    };
    served.map(definition).collect()
}

/// Fills in what the API server fills in: names, conditions, stored versions.
pub(crate) fn establish(definition: &mut Value, now: &str) {
    let kind = definition["spec"]["names"]["kind"].as_str().unwrap_or_default().to_owned();
    let stored = definition["spec"]["versions"].as_array().into_iter().flatten();
    let stored: Vec<_> =
        stored.filter(|version| version["storage"] == true).map(|version| version["name"].clone()).collect();
    let Some(spec) = definition.get_mut("spec").and_then(Value::as_object_mut) else { return };
    spec.entry("conversion").or_insert_with(|| json!({"strategy": "None"}));
    if let Some(names) = spec.get_mut("names").and_then(Value::as_object_mut) {
        names.entry("singular").or_insert_with(|| kind.to_lowercase().into());
        names.entry("listKind").or_insert_with(|| format!("{kind}List").into());
    }
    let names = spec.get("names").cloned().unwrap_or_default();
    let since = |kind: &str| {
        let conditions = definition.pointer("/status/conditions").and_then(Value::as_array);
        let condition = conditions.into_iter().flatten().find(|condition| condition["type"] == kind);
        condition.map_or_else(|| json!(now), |condition| condition["lastTransitionTime"].clone())
    };
    let conditions = json!([
        {"type": "NamesAccepted", "status": "True", "reason": "NoConflicts", "message": "no conflicts found",
         "lastTransitionTime": since("NamesAccepted")},
        {"type": "Established", "status": "True", "reason": "InitialNamesAccepted",
         "message": "the initial names have been accepted", "lastTransitionTime": since("Established")},
    ]);
    if let Some(definition) = definition.as_object_mut() {
        let status = json!({"acceptedNames": names, "conditions": conditions, "storedVersions": stored});
        definition.insert("status".to_owned(), status);
    }
}

fn scale(scale: &Value) -> Option<Scale> {
    let pointer = |key: &str| scale[key].as_str().map(|path| path.replace('.', "/"));
    Some(Scale {
        spec: pointer("specReplicasPath")?,
        status: pointer("statusReplicasPath")?,
        selector: pointer("labelSelectorPath"),
    })
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}
