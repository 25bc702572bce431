//! What managers did to an object, and what one of them would apply next.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::{
    histories::api::{Api, Force, MERGE, Run},
    ownership::{
        content::{self, Extent},
        kinds::{KINDS, Kind},
        random::Random,
    },
};

pub(crate) struct History {
    pub(crate) seed: u64,
    pub(crate) kind: Kind,
    pub(crate) name: String,
    /// Who would apply next.
    pub(crate) manager: String,
    /// What.
    pub(crate) manifest: Value,
    /// What happened, for whoever has to find out.
    pub(crate) log: Vec<String>,
    random: Random,
    /// What each manager applied last.
    applied: BTreeMap<String, Value>,
}

const MANAGERS: [&str; 4] = ["alpha", "beta", "gamma", "delta"];

impl History {
    pub(crate) async fn play(seed: u64, api: &Api) -> Self {
        let mut random = Random::new(seed);
        let kind = *random.pick(&KINDS);
        let mut history = Self {
            seed,
            kind,
            name: format!("h{seed}"),
            manager: String::new(),
            manifest: Value::Null,
            log: Vec::new(),
            random,
            applied: BTreeMap::new(),
        };
        let managers = &MANAGERS[..3 + history.random.below(2)];
        history.create(managers, api).await;
        for _ in 0..2 + history.random.below(6) {
            let manager = *history.random.pick(managers);
            history.step(manager, api).await;
        }
        history.decide(managers);
        history
    }

    async fn create(&mut self, managers: &[&str], api: &Api) {
        // Not every random object is valid.
        for _ in 0..10 {
            let manager = *self.random.pick(managers);
            let object = content::object(self.kind, &self.name, Extent::Whole, &mut self.random);
            let code = if self.random.chance(75) {
                self.apply(manager, object, Force::No, api).await
            } else {
                let path = format!("{}?fieldManager={manager}", self.kind.path());
                self.send("POST", &path, "application/json", &object, api).await
            };
            if code < 300 {
                return;
            }
        }
    }

    async fn step(&mut self, manager: &str, api: &Api) {
        let has_scale = self.kind == Kind::Deployment;
        let has_status = matches!(self.kind, Kind::Deployment | Kind::Service | Kind::Widget);
        let object = format!("{}/{}", self.kind.path(), self.name);
        match self.random.below(100) {
            0..8 if has_scale => {
                let body = json!({"spec": {"replicas": self.random.below(4)}});
                self.send("PATCH", &format!("{object}/scale?fieldManager={manager}"), MERGE, &body, api)
                    .await;
            }
            8..16 if has_status => {
                let body = json!({"status": content::status(self.kind, &mut self.random)});
                self.send("PATCH", &format!("{object}/status?fieldManager={manager}"), MERGE, &body, api)
                    .await;
            }
            16..18 => {
                let body = json!({"metadata": {"managedFields": [{}]}});
                self.send("PATCH", &format!("{object}?fieldManager={manager}"), MERGE, &body, api).await;
            }
            18..36 => {
                let part = content::object(self.kind, &self.name, Extent::Part, &mut self.random);
                self.send("PATCH", &format!("{object}?fieldManager={manager}"), MERGE, &part, api).await;
            }
            36..50 => {
                let Some(live) = api.get(self.kind, &self.name).await else { return };
                let body = self.removal(&live);
                self.send("PATCH", &format!("{object}?fieldManager={manager}"), MERGE, &body, api).await;
            }
            50..65 if self.applied.contains_key(manager) => {
                let again = self.edited(&self.applied[manager].clone());
                self.apply(manager, again, Force::Yes, api).await;
            }
            _ => {
                let extent = *self.random.pick(&[Extent::Part, Extent::Whole]);
                let manifest = content::object(self.kind, &self.name, extent, &mut self.random);
                let force = if self.random.chance(60) { Force::Yes } else { Force::No };
                self.apply(manager, manifest, force, api).await;
            }
        }
    }

    /// Who applies next, and what: mostly what it applied last, perhaps with changes.
    fn decide(&mut self, managers: &[&str]) {
        let manager = *self.random.pick(managers);
        let fresh = content::object(self.kind, &self.name, Extent::Part, &mut self.random);
        let manifest = match self.applied.get(manager).cloned() {
            Some(last) => match self.random.below(3) {
                0 => last,
                1 => self.edited(&last),
                _ => merged(self.edited(&last), fresh),
            },
            None => fresh,
        };
        (self.manager, self.manifest) = (manager.to_owned(), manifest);
    }

    async fn apply(&mut self, manager: &str, manifest: Value, force: Force, api: &Api) -> u16 {
        let (code, answer) = api.apply(self.kind, &self.name, manager, &manifest, force, Run::Real).await;
        self.log.push(format!("{manager} applies ({force:?}) {manifest} -> {code} {}", reason(&answer)));
        if code < 300 {
            self.applied.insert(manager.to_owned(), manifest);
        }
        code
    }

    async fn send(&mut self, method: &str, path: &str, kind: &str, body: &Value, api: &Api) -> u16 {
        let (code, answer) = api.send(method, path, kind, body).await;
        self.log.push(format!("{method} {path} {body} -> {code} {}", reason(&answer)));
        code
    }

    /// A patch that removes one of the fields that an object has.
    fn removal(&mut self, live: &Value) -> Value {
        let mut places: Vec<Vec<String>> = Vec::new();
        for root in ["spec", "data", "binaryData"] {
            collect(live.get(root), vec![root.to_owned()], &mut places);
        }
        for part in ["labels", "annotations"] {
            collect(live["metadata"].get(part), vec!["metadata".to_owned(), part.to_owned()], &mut places);
        }
        let Some(place) = (!places.is_empty()).then(|| self.random.pick(&places).clone()) else {
            return json!({});
        };
        place.into_iter().rev().fold(Value::Null, |inner, name| {
            let mut outer = Map::new();
            outer.insert(name, inner);
            Value::Object(outer)
        })
    }

    /// The same with some fields and items less.
    fn edited(&mut self, manifest: &Value) -> Value {
        let mut edited = manifest.clone();
        thin(&mut edited, &mut self.random);
        edited
    }
}

/// Fields that an object, or an item of a list, cannot do without.
const NEEDED: [&str; 14] = [
    "apiVersion",
    "kind",
    "metadata",
    "name",
    "port",
    "containerPort",
    "mountPath",
    "id",
    "spec",
    "selector",
    "template",
    "containers",
    "key",
    "protocol",
];

fn thin(value: &mut Value, random: &mut Random) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, _| NEEDED.contains(&name.as_str()) || !random.chance(12));
            fields.values_mut().for_each(|value| thin(value, random));
        }
        Value::Array(items) => {
            items.retain(|_| !random.chance(15));
            items.iter_mut().for_each(|item| thin(item, random));
        }
        _ => {}
    }
}

/// One over the other, as a merge patch does it.
fn merged(mut below: Value, above: Value) -> Value {
    match (below.as_object_mut(), above) {
        (Some(fields), Value::Object(above)) => {
            for (name, value) in above {
                let old = fields.remove(&name).unwrap_or_default();
                fields.insert(name, merged(old, value));
            }
            below
        }
        (_, above) => above,
    }
}

/// The places of all fields, and of all that is in them.
fn collect(value: Option<&Value>, place: Vec<String>, places: &mut Vec<Vec<String>>) {
    for (name, value) in value.and_then(Value::as_object).into_iter().flatten() {
        let mut place = place.clone();
        place.push(name.clone());
        places.push(place.clone());
        collect(Some(value), place, places);
    }
}

fn reason(answer: &Value) -> &str {
    answer["message"].as_str().or(answer.as_str()).unwrap_or_default()
}
