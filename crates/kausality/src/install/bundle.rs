//! What is installed: the definitions that follow from the code, and the plain manifests, which are made from the chart.

use anyhow::{Context, Result};
use serde_json::Value;

use crate::manifests;

/// The namespace of the plain manifests.
pub(crate) const NAMESPACE: &str = "kausality-system";

const PLAIN: [(&str, &str); 2] = [
    ("00-namespace.yaml", include_str!("../../../../deploy/manifests/00-namespace.yaml")),
    ("kausality.yaml", include_str!("../../../../deploy/manifests/kausality.yaml")),
];

/// All objects, in the order in which they can be made.
#[derive(Debug)]
pub(crate) struct Bundle {
    pub(crate) definitions: Vec<Value>,
    /// The namespace, and all that lives in it or beside it.
    pub(crate) objects: Vec<Value>,
}

impl Bundle {
    /// As this version of Kausality ships it.
    pub(crate) fn shipped() -> Result<Self> {
        let mut objects = Vec::new();
        for (file, text) in PLAIN {
            objects.extend(manifests::documents(file, text).context("this build of kausality is broken")?);
        }
        let definitions = kausality_api::crd::all().into_iter().map(|(_, definition)| definition).collect();
        Ok(Self { definitions, objects })
    }

    /// Moves everything into a namespace.
    pub(crate) fn move_to(&mut self, namespace: &str) {
        for object in &mut self.objects {
            if object["kind"] == "Namespace" {
                object["metadata"]["name"] = namespace.into();
            }
            let places = object.pointer_mut("/metadata/namespace").into_iter();
            places.for_each(|place| *place = namespace.into());
            for subject in items(object, "/subjects") {
                subject["namespace"] = namespace.into();
            }
            // Who the controller is, by the name of its service account.
            for condition in items(object, "/spec/matchConditions") {
                let (old, new) = (account(NAMESPACE), account(namespace));
                if let Some(expression) = condition["expression"].as_str() {
                    condition["expression"] = expression.replace(&old, &new).into();
                }
            }
        }
    }

    /// Has every container run this image.
    pub(crate) fn run(&mut self, image: &str) {
        for object in &mut self.objects {
            for container in items(object, "/spec/template/spec/containers") {
                container["image"] = image.into();
            }
        }
    }

    /// All objects, definitions first.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Value> {
        self.definitions.iter().chain(&self.objects)
    }
}

fn account(namespace: &str) -> String {
    format!("system:serviceaccount:{namespace}:")
}

/// The items of a list in an object; none if it has no such list.
fn items<'a>(object: &'a mut Value, pointer: &str) -> impl Iterator<Item = &'a mut Value> {
    object.pointer_mut(pointer).and_then(Value::as_array_mut).into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_stays_behind_when_it_moves() {
        let mut bundle = Bundle::shipped().unwrap();
        let before = serde_json::to_string(&bundle.objects).unwrap();
        bundle.move_to("elsewhere");
        let after = serde_json::to_string(&bundle.objects).unwrap();
        assert!(!after.contains(NAMESPACE), "{after}");
        assert_eq!(after.replace("elsewhere", NAMESPACE), before);
    }

    #[test]
    fn every_container_runs_the_image() {
        let mut bundle = Bundle::shipped().unwrap();
        bundle.run("registry.example.com/kausality@sha256:00");
        let text = serde_json::to_string(&bundle.objects).unwrap();
        let images = text.matches(r#""image":""#).count();
        assert!(images >= 2, "{images}");
        assert_eq!(text.matches(r#""image":"registry.example.com/kausality@sha256:00""#).count(), images);
    }
}
