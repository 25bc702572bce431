//! Kausality in a program that keeps its own objects: no webhook, no cluster.
//!
//! ```text
//! cargo run -p kausality-core --example library
//! ```
//!
//! [`Garden::write`] is all there is to it: describe the write as an admission review, find what it asks for, decide, and
//! do what the decision says.

#![allow(clippy::print_stdout, reason = "the example talks")]

use std::{collections::BTreeMap, time::Duration};

use kausality_api::{annotation::Suffix, mode::Mode};
use kausality_core::{
    Facts, Parent, Review, Settings, Summary, decide,
    decision::{Effect, Verdict},
    questions,
    review::Object,
};
use serde_json::{Value, json};

type Error = Box<dyn std::error::Error>;

fn main() -> Result<(), Error> {
    for line in story()? {
        println!("{line}");
    }
    Ok(())
}

/// A Garden wants beds. Its gardener makes them, and keeps them as the Garden wants them.
pub fn story() -> Result<Vec<String>, Error> {
    let mut garden = Garden::default();
    let bed = |flower: &str| {
        json!({"apiVersion": "example.org/v1", "kind": "Bed", "metadata": {"name": "bed", "generation": 1,
            "ownerReferences": [{"apiVersion": "example.org/v1", "kind": "Garden", "name": "home", "uid": "Garden/home",
                "controller": true}]}, "spec": {"flower": flower}})
    };
    let home = |flower: &str, generation: i64| {
        json!({"apiVersion": "example.org/v1", "kind": "Garden", "metadata": {"name": "home", "generation": generation},
            "spec": {"flower": flower}})
    };
    let done = |generation: i64| {
        json!({"observedGeneration": generation,
            "conditions": [{"type": "Ready", "status": "True", "observedGeneration": generation}]})
    };
    let mut told = Vec::new();
    let mut tell =
        |what: &str, said: String| told.extend(format!("{what:<42} {said}").lines().map(str::to_owned));
    tell("alice wants roses", garden.write("alice", home("rose", 1))?);
    tell("the gardener plants them", garden.write("gardener", bed("rose"))?);
    tell("the gardener says so", garden.write_status("gardener", "Garden/home", done(1))?);
    tell("the gardener plants tulips for no reason", garden.write("gardener", bed("tulip"))?);
    tell("alice lets that happen, once", garden.approve("alice", "Garden/home", "Bed", "bed")?);
    tell("the gardener plants tulips", garden.write("gardener", bed("tulip"))?);
    tell("the gardener plants lilies for no reason", garden.write("gardener", bed("lily"))?);
    tell("alice wants lilies", garden.write("alice", home("lily", 2))?);
    tell("the gardener plants lilies", garden.write("gardener", bed("lily"))?);
    Ok(told)
}

/// The objects of the program, by kind and name.
struct Garden {
    objects: BTreeMap<String, Value>,
    settings: Settings,
}

impl Default for Garden {
    fn default() -> Self {
        // No time passes in this story.
        let settings =
            Settings { default_mode: Mode::Enforce, quiet_time: Duration::ZERO, ..Settings::default() };
        Self { objects: BTreeMap::new(), settings }
    }
}

impl Garden {
    /// Creates or updates an object, if that may be.
    fn write(&mut self, user: &str, mut object: Value) -> Result<String, Error> {
        let key = key(&object);
        object["metadata"]["uid"] = key.as_str().into();
        // What was recorded goes along, as on an API server.
        if let Some(stored) = self.objects.get(&key) {
            object["metadata"]["annotations"] = stored["metadata"]["annotations"].clone();
        }
        self.admit(user, &key, object, "")
    }

    /// Writes the status of an object: who does so is its controller.
    fn write_status(&mut self, user: &str, key: &str, status: Value) -> Result<String, Error> {
        let mut object = self.objects[key].clone();
        object["status"] = status;
        self.admit(user, key, object, "status")
    }

    /// Lets a drift of a child happen, once.
    fn approve(&mut self, user: &str, key: &str, kind: &str, child: &str) -> Result<String, Error> {
        let mut object = self.objects[key].clone();
        let approval = json!([{"apiVersion": "example.org/v1", "kind": kind, "name": child,
            "generation": object["metadata"]["generation"], "mode": "once"}]);
        object["metadata"]["annotations"]["kausality.io/approvals"] = approval.to_string().into();
        self.admit(user, key, object, "")
    }

    fn admit(&mut self, user: &str, key: &str, object: Value, part: &str) -> Result<String, Error> {
        // 1. The write, as an API server would describe it.
        let old = self.objects.get(key);
        let operation = if old.is_some() { "UPDATE" } else { "CREATE" };
        let kind = &object["kind"];
        let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
            "uid": "1", "operation": operation, "subResource": part, "userInfo": {"username": user},
            "kind": {"group": "example.org", "version": "v1", "kind": kind},
            "resource": {"group": "example.org", "version": "v1", "resource": format!("{kind}s").to_lowercase()},
            "name": object["metadata"]["name"], "object": object, "oldObject": old}})
        .to_string();
        let review = Review::parse(review.as_bytes())?;

        // 2. What must be known: here, the parent. It is looked up where the program keeps its objects.
        let asked = questions(&review.request, &self.settings);
        let found = match &asked.parent {
            Some(owner) => {
                self.objects.get(&format!("{}/{}", owner.kind, owner.name)).map(summary).transpose()?
            }
            None => None,
        };
        let now = "2026-01-24T10:30:00Z".parse::<jiff::Timestamp>().map_err(|error| error.to_string())?;
        let mut facts = Facts::new(now, &self.settings);
        facts.parent = match (&asked.parent, &found) {
            (None, _) => Parent::None,
            (Some(_), None) => Parent::Gone,
            (Some(_), Some(summary)) => Parent::Found { summary, resource: "gardens" },
        };

        // 3. The decision, and what follows from it.
        let decision = decide(&review, &facts);
        let why = decision.cause.map(|cause| format!(" ({})", cause.as_str())).unwrap_or_default();
        if let Verdict::Deny(denial) = &decision.verdict {
            let said = denial.message.split(" To let it happen").next().unwrap_or_default();
            return Ok(format!("{}{why}\n  {said}", decision.verdict.as_str()));
        }
        let mut object = object;
        annotate(&mut object, &decision.patch.annotations);
        self.objects.insert(key.to_owned(), object);
        for effect in &decision.effects {
            // Nobody else writes here: what was decided on is still what is stored.
            let (of, annotations) = match effect {
                Effect::ConsumeOnce { parent, annotations, .. } => (parent, annotations),
                Effect::RecordStatus { object, annotations, .. } => (object, annotations),
                Effect::RecordScale { object, annotations, .. } => (object, annotations),
                Effect::Report(_) => continue,
            };
            if let Some(object) = self.objects.get_mut(&format!("{}/{}", of.kind, of.name)) {
                annotate(object, annotations);
            }
        }
        Ok(format!("{}{why}", decision.verdict.as_str()))
    }
}

fn key(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    format!("{}/{}", text(&object["kind"]), text(&object["metadata"]["name"]))
}

fn summary(object: &Value) -> Result<Summary, Error> {
    let text = object.to_string();
    let object: Object<'_> = serde_json::from_str(&text)?;
    Ok(Summary::of(&object))
}

fn annotate(object: &mut Value, annotations: &BTreeMap<String, Option<String>>) {
    // An object's own facts carry a suffix, so that a copy of them on another object is told apart.
    let suffix = Suffix::of_object(object);
    for (name, value) in annotations {
        let key = suffix.key(name);
        match value {
            Some(value) => object["metadata"]["annotations"][key] = value.as_str().into(),
            None => {
                if let Some(map) = object["metadata"]["annotations"].as_object_mut() {
                    map.remove(&key);
                }
            }
        }
    }
}
