//! The recorded reviews, and the objects that they are about.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fs,
};

use anyhow::{Context, Result};
use jiff::Timestamp;
use kausality_core::{Facts, Review, Settings, decide};
use kausality_webhook::Bytes;
use serde_json::{Map, Value, json};

use crate::{api::Shelf, deployments::CONTROLLER};

const RECORDINGS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/admission-reviews");

/// After every version in the recordings: whatever they change shows already.
const VERSION: &str = "1000000000";

/// After every generation in the recordings: no status in them is about it.
const GENERATION: u64 = 1_000_000;

/// Recorded reviews.
pub(crate) struct Recorded {
    reviews: Vec<(Value, Bytes)>,
}

impl Recorded {
    /// Reads all recordings. Without what waits for something that an API in memory never shows: the deletion of
    /// somebody's owner, and `scale`.
    pub(crate) fn read() -> Result<Self> {
        let files = fs::read_dir(RECORDINGS).with_context(|| format!("cannot read {RECORDINGS}"))?;
        let mut files = files.map(|file| Ok(file?.path())).collect::<Result<Vec<_>>>()?;
        files.retain(|file| file.extension().is_some_and(|ending| ending == "jsonl"));
        files.sort();
        let mut reviews = Vec::new();
        for file in files {
            let text =
                fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
            for line in text.lines().filter(|line| !line.is_empty()) {
                let review: Value = serde_json::from_str(line)?;
                reviews.push((review, Bytes::from(line.to_owned())));
            }
        }
        let owners: BTreeSet<String> =
            reviews.iter().flat_map(|(review, _)| owners(review)).map(uid).collect();
        reviews.retain(|(review, _)| {
            let request = &review["request"];
            let departs =
                request["operation"] == "DELETE" && owners.contains(&uid(&request["oldObject"]["metadata"]));
            !departs && request["subResource"] != "scale"
        });
        let mut recorded = Self { reviews };
        recorded.annotate()?;
        Ok(recorded)
    }

    /// Gives every object the annotations that Kausality had given it by then: the recordings were made without, and
    /// would have all that is known of an object learned with each of its requests.
    fn annotate(&mut self) -> Result<()> {
        let settings = Settings::default();
        let mut known: HashMap<String, Map<String, Value>> = HashMap::new();
        for (review, body) in &mut self.reviews {
            let request = &mut review["request"];
            let uid = uid(&request["object"]["metadata"]);
            let ours = known.entry(uid).or_default();
            let sides: &[&str] =
                if request["operation"] == "CREATE" { &[] } else { &["object", "oldObject"] };
            for side in sides.iter().filter(|_| !ours.is_empty()) {
                let metadata = request[*side]["metadata"].as_object_mut();
                let annotations = metadata.map(|it| it.entry("annotations").or_insert_with(|| json!({})));
                if let Some(annotations) = annotations.and_then(Value::as_object_mut) {
                    annotations.extend(ours.clone());
                }
            }
            *body = Bytes::from(review.to_string());
            let decision = decide(&Review::parse(body)?, &Facts::new(Timestamp::UNIX_EPOCH, &settings));
            for (key, value) in decision.patch.annotations {
                match value {
                    Some(value) => _ = ours.insert(key, value.into()),
                    None => _ = ours.remove(&key),
                }
            }
        }
        Ok(())
    }

    /// The reviews as the API server sends them.
    pub(crate) fn bodies(&self) -> Vec<Bytes> {
        self.reviews.iter().map(|(_, body)| body.clone()).collect()
    }

    /// Every owner that a review names, as it was first seen, but without a status, and of a later generation: it has not
    /// settled, so nothing is drift.
    pub(crate) fn owners(&self) -> Result<Vec<Shelf>> {
        let mut plurals = BTreeMap::new();
        let mut seen = BTreeMap::new();
        for (review, _) in &self.reviews {
            let request = &review["request"];
            if request["subResource"].as_str().is_none_or(str::is_empty) {
                let kind = (text(&request["kind"]["group"]), text(&request["kind"]["kind"]));
                plurals.insert(kind, text(&request["resource"]["resource"]));
            }
            for object in [&request["oldObject"], &request["object"]] {
                seen.entry(uid(&object["metadata"])).or_insert_with(|| object.clone());
            }
        }
        let mut by_kind: BTreeMap<(String, String), BTreeMap<String, String>> = BTreeMap::new();
        for (review, _) in &self.reviews {
            let namespace = &review["request"]["namespace"];
            for owner in owners(review) {
                let mut object = seen.get(&uid(owner)).cloned().unwrap_or_else(|| {
                    json!({"metadata": {"name": owner["name"], "namespace": namespace, "uid": owner["uid"]}})
                });
                if let Some(object) = object.as_object_mut() {
                    object.remove("status");
                }
                object["metadata"]["resourceVersion"] = VERSION.into();
                object["metadata"]["generation"] = GENERATION.into();
                let kind = (text(&owner["apiVersion"]), text(&owner["kind"]));
                by_kind.entry(kind).or_default().insert(uid(owner), object.to_string());
            }
        }
        let shelf = |((api_version, kind), objects): ((String, String), BTreeMap<String, String>)| {
            let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
            let plural = plurals.get(&(group.to_owned(), kind.clone()));
            let plural =
                plural.with_context(|| format!("nobody says what more than one {kind} is called"))?;
            Ok(Shelf::new(group, version, plural, &kind).holding(objects.into_values().collect()))
        };
        by_kind.into_iter().map(shelf).collect()
    }

    /// A change of a ReplicaSet by its Deployment's controller.
    pub(crate) fn change_of_child(&self) -> Result<&Value> {
        let is_it = |review: &&Value| {
            let request = &review["request"];
            request["operation"] == "UPDATE"
                && request["kind"]["kind"] == "ReplicaSet"
                && request["subResource"].is_null()
                && request["userInfo"]["username"] == CONTROLLER
                && request["object"]["spec"] != request["oldObject"]["spec"]
        };
        self.reviews.iter().map(|(review, _)| review).find(is_it).context("no such change was recorded")
    }
}

/// The owners that a review names.
fn owners(review: &Value) -> impl Iterator<Item = &Value> {
    let objects = ["object", "oldObject"].into_iter().map(|side| &review["request"][side]["metadata"]);
    objects.filter_map(|metadata| metadata["ownerReferences"].as_array()).flatten()
}

fn uid(of: &Value) -> String {
    text(&of["uid"])
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
