//! From a step to the request that it makes of the object as it is.

use serde_json::{Value, json};

use crate::ownership::{
    content::{self, Extent},
    edit::{edit, merge, oddity},
    kinds::Kind,
    program::{Action, Step},
    random::Random,
};

pub(crate) const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// One request.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) method: &'static str,
    pub(crate) path: String,
    pub(crate) content_type: &'static str,
    pub(crate) body: Value,
    pub(crate) subresource: &'static str,
    pub(crate) meaning: Meaning,
}

/// What the request does to who owns what.
#[derive(Debug, Clone)]
pub(crate) enum Meaning {
    /// It applies its body.
    Apply { force: bool },
    /// It writes an object.
    Update(Box<Written>),
    /// It writes the number of replicas.
    Scale,
}

/// What of a written object the stored one does not show.
#[derive(Debug, Clone)]
pub(crate) struct Written {
    /// Its metadata, with the entries that it brings.
    pub(crate) metadata: Value,
    /// Fields that it leaves to the API server.
    pub(crate) silent: Vec<&'static str>,
}

const APPLY: &str = "application/apply-patch+yaml";
const MERGE: &str = "application/merge-patch+json";
const JSON: &str = "application/json";

impl Call {
    /// The request that this step makes. What changes an object that is not there creates it.
    pub(crate) fn of(step: &Step, kind: Kind, name: &str, live: Option<&Value>) -> Self {
        let random = &mut Random::new(step.seed);
        let maker = Maker { step, kind, name };
        match (step.action, live) {
            (Action::Apply, _) => maker.apply(false, live, random),
            (Action::ForceApply, _) => maker.apply(true, live, random),
            (Action::ClientSideApply, None) => maker.post(maker.last_applied(random)),
            (_, None) => maker.post(content::object(kind, name, Extent::Whole, random)),
            (Action::ApplyStatus, Some(_)) => maker.apply_status(random),
            (Action::ClientSideApply, Some(live)) => {
                let kind_of_patch = if kind.is_built_in() { STRATEGIC } else { MERGE };
                maker.patch(kind_of_patch, "", maker.last_applied(random), live)
            }
            (Action::Put, Some(live)) => maker.put(live, random),
            (Action::MergePatch, Some(live)) => maker.merge_patch(live, random),
            (Action::JsonPatch, Some(live)) => maker.json_patch(live, random),
            (Action::StrategicPatch, Some(live)) => {
                maker.patch(STRATEGIC, "", strategic(kind, name, random), live)
            }
            (Action::PutStatus, Some(live)) => maker.put_status(live, random),
            (Action::PatchStatus, Some(live)) => maker.patch_status(live, random),
            (Action::PutScale, Some(live)) => maker.put_scale(live, random),
            (Action::PatchScale, Some(_)) => maker.patch_scale(random),
            (Action::Reset, Some(live)) => maker.reset(live, random),
        }
    }
}

const STRATEGIC: &str = "application/strategic-merge-patch+json";

struct Maker<'a> {
    step: &'a Step,
    kind: Kind,
    name: &'a str,
}

impl Maker<'_> {
    fn call(
        &self,
        method: &'static str,
        content_type: &'static str,
        subresource: &'static str,
        body: Value,
        meaning: Meaning,
    ) -> Call {
        let manager: String = self.step.manager.bytes().map(encoded).collect();
        let mut path = self.kind.path();
        if method != "POST" {
            path = format!("{path}/{}", self.name);
        }
        if !subresource.is_empty() {
            path = format!("{path}/{subresource}");
        }
        let force = if matches!(meaning, Meaning::Apply { force: true }) { "&force=true" } else { "" };
        let path = format!("{path}?fieldManager={manager}{force}");
        Call { method, path, content_type, body, subresource, meaning }
    }

    fn post(&self, body: Value) -> Call {
        let meaning = self.update(&body);
        self.call("POST", JSON, "", body, meaning)
    }

    /// What it means to write this object.
    fn update(&self, object: &Value) -> Meaning {
        let silent = self.kind.allocated().iter().copied();
        let is_absent = |field: &&str| {
            matches!(object["spec"].get(field), None | Some(Value::Null))
                || object["spec"][field] == json!([])
        };
        let silent = silent.filter(is_absent).collect();
        let mut metadata = object["metadata"].clone();
        if !self.kind.is_built_in()
            && let Some(fields) = metadata.as_object_mut()
        {
            // The metadata of a custom resource is read into a type and written again, which drops what is empty.
            fields.retain(|_, value| ![json!([]), json!({}), Value::Null].contains(value));
        }
        Meaning::Update(Box::new(Written { metadata, silent }))
    }

    fn apply(&self, force: bool, live: Option<&Value>, random: &mut Random) -> Call {
        let whole = live.is_none() || random.chance(40);
        let extent = if whole { Extent::Whole } else { Extent::Part };
        let mut config = content::object(self.kind, self.name, extent, random);
        if self.kind == Kind::Service
            && let Some(live) = live
            && config["spec"].get("clusterIP").is_some()
        {
            // It cannot change, so a client repeats it.
            config["spec"]["clusterIP"] = live["spec"]["clusterIP"].clone();
        }
        if random.chance(15) {
            oddity(&mut config, self.kind, random);
        }
        self.call("PATCH", APPLY, "", config, Meaning::Apply { force })
    }

    fn apply_status(&self, random: &mut Random) -> Call {
        let mut config = json!({"apiVersion": self.kind.api_version(), "kind": self.kind.name(),
            "metadata": {"name": self.name}, "status": content::status(self.kind, random)});
        if random.chance(20) {
            config["metadata"]["labels"] = json!({"ignored": "or.not"});
        }
        self.call("PATCH", APPLY, "status", config, Meaning::Apply { force: random.chance(40) })
    }

    fn last_applied(&self, random: &mut Random) -> Value {
        // The same choice as an apply of an object that is not there.
        let mut config = content::object(self.kind, self.name, Extent::Whole, random);
        if self.kind == Kind::Service
            && let Some(spec) = config["spec"].as_object_mut()
        {
            spec.remove("clusterIP");
        }
        let text = config.to_string() + "\n";
        if !config["metadata"]["annotations"].is_object() {
            config["metadata"]["annotations"] = json!({});
        }
        config["metadata"]["annotations"][LAST_APPLIED] = json!(text);
        config
    }

    fn put(&self, live: &Value, random: &mut Random) -> Call {
        let mut object = live.clone();
        for _ in 0..1 + random.below(3) {
            edit(self.kind, self.name, &mut object, random);
        }
        self.written("", object, random)
    }

    fn written(&self, subresource: &'static str, mut object: Value, random: &mut Random) -> Call {
        if random.chance(30)
            && let Some(metadata) = object["metadata"].as_object_mut()
        {
            metadata.remove("managedFields");
        }
        // A client may correct entries. What only this one owned belongs to nobody from then on.
        if random.chance(15)
            && let Some(entries @ [_, _, ..]) =
                object["metadata"]["managedFields"].as_array().map(Vec::as_slice)
        {
            let mut fewer = entries.to_vec();
            fewer.remove(random.below(fewer.len()));
            object["metadata"]["managedFields"] = json!(fewer);
        }
        let meaning = self.update(&object);
        self.call("PUT", JSON, subresource, object, meaning)
    }

    fn patch(
        &self,
        content_type: &'static str,
        subresource: &'static str,
        body: Value,
        live: &Value,
    ) -> Call {
        let mut object = live.clone();
        merge(&mut object, &body);
        let meaning = self.update(&object);
        self.call("PATCH", content_type, subresource, body, meaning)
    }

    fn merge_patch(&self, live: &Value, random: &mut Random) -> Call {
        let mut patch = content::object(self.kind, self.name, Extent::Part, random);
        let body = self.kind.body();
        if let Some(fields) = live[body].as_object()
            && let names @ [_, ..] = fields.keys().collect::<Vec<_>>().as_slice()
            && random.chance(40)
        {
            patch[body][*random.pick(names)] = Value::Null;
        }
        self.patch(MERGE, "", patch, live)
    }

    fn json_patch(&self, live: &Value, random: &mut Random) -> Call {
        let mut object = live.clone();
        edit(self.kind, self.name, &mut object, random);
        let body = self.kind.body();
        let mut patch = vec![
            json!({"op": "test", "path": "/metadata/name", "value": self.name}),
            json!({"op": "add", "path": format!("/{body}"), "value": object[body]}),
        ];
        if object["metadata"].get("labels").is_some() {
            patch.push(
                json!({"op": "add", "path": "/metadata/labels", "value": object["metadata"]["labels"]}),
            );
        }
        let meaning = self.update(&object);
        self.call("PATCH", "application/json-patch+json", "", json!(patch), meaning)
    }

    fn put_status(&self, live: &Value, random: &mut Random) -> Call {
        let mut object = live.clone();
        if random.chance(25) {
            edit(self.kind, self.name, &mut object, random);
        }
        let status = content::status(self.kind, random);
        if random.chance(50) {
            object["status"] = status;
        } else {
            content::put_all(&mut object["status"], status);
        }
        self.written("status", object, random)
    }

    fn patch_status(&self, live: &Value, random: &mut Random) -> Call {
        let mut patch = json!({"status": content::status(self.kind, random)});
        if random.chance(30) {
            patch["metadata"] = json!({"labels": {"from.status": "1"}});
        }
        if random.chance(20) {
            patch["status"] = Value::Null;
        }
        self.patch(MERGE, "status", patch, live)
    }

    fn put_scale(&self, live: &Value, random: &mut Random) -> Call {
        let mut scale = json!({"apiVersion": "autoscaling/v1", "kind": "Scale",
            "metadata": {"name": self.name, "namespace": "default"}, "spec": {"replicas": random.below(5)}});
        if random.chance(20) {
            scale["spec"]["replicas"] = live["spec"]["replicas"].clone();
        }
        self.call("PUT", JSON, "scale", scale, Meaning::Scale)
    }

    fn patch_scale(&self, random: &mut Random) -> Call {
        self.call("PATCH", MERGE, "scale", json!({"spec": {"replicas": random.below(5)}}), Meaning::Scale)
    }

    fn reset(&self, live: &Value, random: &mut Random) -> Call {
        let none = random.pick(&[json!([{}]), json!([])]).clone();
        if random.chance(50) {
            return self.patch(MERGE, "", json!({"metadata": {"managedFields": none}}), live);
        }
        let mut object = live.clone();
        edit(self.kind, self.name, &mut object, random);
        object["metadata"]["managedFields"] = none;
        let meaning = self.update(&object);
        self.call("PUT", JSON, "", object, meaning)
    }
}

fn encoded(byte: u8) -> String {
    if byte.is_ascii_alphanumeric() || byte == b'-' {
        char::from(byte).to_string()
    } else {
        format!("%{byte:02X}")
    }
}

fn strategic(kind: Kind, name: &str, random: &mut Random) -> Value {
    let mut patch = content::object(kind, name, Extent::Part, random);
    if kind == Kind::Deployment && random.chance(40) {
        let gone = json!({"name": *random.pick(&["side", "proxy"]), "$patch": "delete"});
        match patch["spec"]["template"]["spec"]["containers"].as_array_mut() {
            Some(containers) => {
                containers.retain(|container| container["name"] != gone["name"]);
                containers.push(gone);
            }
            None => patch["spec"]["template"]["spec"]["containers"] = json!([gone]),
        }
    }
    patch
}
