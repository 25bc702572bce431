//! A request with the facts about it, as plain data that properties can vary.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kausality_api::annotation::{self, Owner, Suffix};
use kausality_core::{
    Decision, Exception, Facts, Namespace, Parent, Review, Settings, Summary, decide, questions,
    review::Object,
};
use serde_json::{Map, Value, json};

/// A request with the facts about it.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    /// The `request` of the review.
    pub request: Value,
    pub parent: Kin,
    /// The object behind a `scale`.
    pub scaled: Option<Result<Value, String>>,
    pub namespace: Option<Namespace>,
    pub settings: Settings,
    pub exception: Option<Exception>,
    pub now: Timestamp,
}

/// A parent, as a whole object.
#[derive(Clone, Debug)]
pub(crate) enum Kin {
    None,
    Found { object: Value, resource: String },
    Gone,
    Unreadable(String),
}

impl Sample {
    /// The review, as the API server sends it.
    pub(crate) fn text(&self) -> Vec<u8> {
        let mut request = self.request.clone();
        for object in ["object", "oldObject"] {
            rename(&mut request[object], |suffix, key| Some(suffix.key(key)));
        }
        let review = json!({
            "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request,
        });
        serde_json::to_vec(&review).unwrap()
    }

    pub(crate) fn decide(&self) -> Decision {
        self.decide_text(&self.text()).expect("generated reviews can be read")
    }

    /// Decides about another text by the facts of this sample; `None` if it is no review.
    pub(crate) fn decide_text(&self, text: &[u8]) -> Option<Decision> {
        let review = Review::parse(text).ok()?;
        let _ = questions(&review.request, &self.settings);
        let kin = match &self.parent {
            Kin::Found { object, .. } => summary(object),
            _ => None,
        };
        let parent = match (&self.parent, &kin) {
            (Kin::None, _) => Parent::None,
            (Kin::Found { resource, .. }, Some(summary)) => Parent::Found { summary, resource },
            (Kin::Unreadable(why), _) => Parent::Unreadable(why.clone()),
            (Kin::Gone | Kin::Found { .. }, _) => Parent::Gone,
        };
        let behind = self.scaled.as_ref().map(|scaled| match scaled {
            Ok(object) => summary(object).ok_or_else(|| "not an object".to_owned()),
            Err(why) => Err(why.clone()),
        });
        let facts = Facts {
            parent,
            scaled: behind.as_ref().map(|scaled| scaled.as_ref().map_err(Clone::clone)),
            namespace: self.namespace.as_ref(),
            exception: self.exception.clone(),
            ..Facts::new(self.now, &self.settings)
        };
        Some(decide(&review, &facts))
    }

    /// Our annotations of an object of the request: `object` or `oldObject`.
    pub(crate) fn ours(&self, object: &str) -> BTreeMap<String, String> {
        ours(&self.request[object])
    }

    /// The object as it goes to storage if the decision allows it.
    pub(crate) fn patched(&self, decision: &Decision) -> Value {
        let mut object = self.request["object"].clone();
        rename(&mut object, |suffix, key| Some(suffix.key(key)));
        let operations = serde_json::to_value(decision.patch.operations()).unwrap();
        let patch: json_patch::Patch = serde_json::from_value(operations).unwrap();
        json_patch::patch(&mut object, &patch).expect("the patch fits the object");
        rename(&mut object, |suffix, key| suffix.fact(key).map(ToOwned::to_owned));
        object
    }

    /// What of the decision must not depend on what a client may write at will.
    pub(crate) fn outcome(&self, decision: &Decision) -> Outcome {
        let stores = decision.verdict.is_allowed() && self.request["object"].is_object();
        Outcome {
            verdict: decision.verdict.as_str(),
            cause: decision.cause.map(|cause| cause.as_str()),
            resolution: format!("{:?}", decision.resolution),
            annotations: stores.then(|| ours(&self.patched(decision))),
        }
    }

    /// Changes an annotation of the request's new object.
    pub(crate) fn set(&mut self, key: &str, value: Option<&str>) {
        set(&mut self.request["object"], key, value);
    }

    /// Changes an annotation of the parent, if it is found.
    pub(crate) fn set_on_parent(&mut self, key: &str, value: Option<&str>) {
        if let Kin::Found { object, .. } = &mut self.parent {
            set(object, key, value);
        }
    }

    pub(crate) fn on_parent(&self, key: &str) -> Option<&str> {
        match &self.parent {
            Kin::Found { object, .. } => object["metadata"]["annotations"][key].as_str(),
            _ => None,
        }
    }

    /// A world in which nothing asks for enforcement.
    pub(crate) fn without_enforcement(mut self) -> Self {
        self.settings = Settings { default_mode: kausality_api::mode::Mode::Log, ..self.settings };
        self.settings.policies = Default::default();
        if let Some(namespace) = &mut self.namespace {
            namespace.mode = None;
        }
        self.set_on_parent(annotation::MODE, None);
        for object in ["object", "oldObject"] {
            set(&mut self.request[object], annotation::MODE, None);
        }
        if let Some(Ok(scaled)) = &mut self.scaled {
            set(scaled, annotation::MODE, None);
        }
        self
    }
}

/// What of a decision must not depend on what a client may write at will.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    verdict: &'static str,
    cause: Option<&'static str>,
    resolution: String,
    annotations: Option<BTreeMap<String, String>>,
}

/// Gives annotations of an object other names. Samples have facts under their plain names.
fn rename(object: &mut Value, name: impl Fn(Suffix, &str) -> Option<String>) {
    let suffix = Suffix::of_object(object);
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) else { return };
    let renamed = std::mem::take(annotations).into_iter();
    *annotations = renamed.map(|(key, value)| (name(suffix, &key).unwrap_or(key), value)).collect();
}

/// An object, as its children's decisions see it.
pub(crate) fn summary(object: &Value) -> Option<Summary> {
    let mut object = object.clone();
    rename(&mut object, |suffix, key| Some(suffix.key(key)));
    let text = object.to_string();
    Some(Summary::of(&Object::parse(&text).ok()?))
}

/// The annotations of an object that have a meaning to Kausality.
pub(crate) fn ours(object: &Value) -> BTreeMap<String, String> {
    let annotations = object["metadata"]["annotations"].as_object();
    (annotations.into_iter().flatten())
        .filter(|(key, _)| annotation::owner(key) != Owner::Foreign)
        .map(|(key, value)| (key.clone(), value.as_str().unwrap().to_owned()))
        .collect()
}

/// Changes an annotation of an object, if there is one.
pub(crate) fn set(object: &mut Value, key: &str, value: Option<&str>) {
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    let annotations = metadata.entry("annotations").or_insert_with(|| Map::new().into());
    if annotations.is_null() {
        *annotations = json!({});
    }
    let Some(annotations) = annotations.as_object_mut() else { return };
    match value {
        Some(value) => annotations.insert(key.to_owned(), value.into()),
        None => annotations.remove(key),
    };
}
