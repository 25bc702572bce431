//! What we expect of the API server.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use kausality_cluster::Schemas;
use kausality_fields::{
    FieldSet, Path, Scalar, Step,
    managed::{Entry, Identity, Operation, Request, Served, Server, ServerError, decode_value},
    ownership::{Filter, Force, OwnershipError, Rules},
    schema::{GroupVersionKind, Kinds, TypeRef},
    typed::Type,
};
use serde_json::{Value, json};

use crate::ownership::{
    call::{Call, Meaning},
    kinds::{KINDS, Kind},
    scale,
};

/// The types of all kinds.
pub(crate) struct Model {
    types: Vec<(Arc<Kinds>, TypeRef)>,
    scale: TypeRef,
}

/// What we expect of one request.
#[derive(Debug)]
pub(crate) enum Expected {
    Stored(Served),
    /// The conflicts as the API server words them.
    Conflicts(BTreeSet<(String, String)>),
    Refused(String),
}

/// What the API server made of a request.
pub(crate) struct Stored<'a> {
    pub(crate) before: Option<&'a Value>,
    /// None if it was refused.
    pub(crate) after: Option<&'a Value>,
}

impl Model {
    pub(crate) async fn load(schemas: &Schemas) -> anyhow::Result<Self> {
        let mut types = Vec::new();
        let mut scale = None;
        for kind in KINDS {
            let known = schemas.of(kind.api_version()).await?;
            let of = known.type_of(&GroupVersionKind::new(kind.api_version(), kind.name()));
            if kind == Kind::Deployment {
                scale = known.type_of(&GroupVersionKind::new("autoscaling/v1", "Scale"));
            }
            types.push((known, of.ok_or_else(|| anyhow::anyhow!("no type of {}", kind.name()))?));
        }
        Ok(Self { types, scale: scale.ok_or_else(|| anyhow::anyhow!("no type of Scale"))? })
    }

    /// What we expect of a request that was answered at this time.
    pub(crate) fn expect(
        &self,
        kind: Kind,
        call: &Call,
        manager: &str,
        stored: &Stored<'_>,
        time: &str,
    ) -> Expected {
        let (kinds, of) = &self.types[KINDS.iter().position(|other| *other == kind).unwrap()];
        let mut rules = Rules::new();
        let ignored =
            kind.ignored(call.subresource).iter().map(|path| self::path(path)).collect::<FieldSet>();
        if !ignored.is_empty() {
            rules.ignored.insert(kind.api_version().to_owned(), Filter::Except(ignored));
        }
        let server = Server { of: Type::new(&kinds.schema, of), rules, empty: kind.empty() };
        let request =
            Request { manager, api_version: kind.api_version(), subresource: call.subresource, time };
        let served = match (&call.meaning, stored.after) {
            (Meaning::Apply { force }, _) => {
                let force = if *force { Force::Yes } else { Force::No };
                server.apply(stored.before, &call.body, &request, &force)
            }
            (Meaning::Update(written), Some(after)) => {
                let mut new = after.clone();
                if kind == Kind::Widget && call.subresource == "status" {
                    // It counts as written, although only the status is stored.
                    new["metadata"] = written.metadata.clone();
                }
                new["metadata"]["managedFields"] = written.metadata["managedFields"].clone();
                for field in &written.silent {
                    new["spec"].as_object_mut().map(|spec| spec.remove(*field));
                }
                // A write whose owners cannot be worked out is stored without any.
                let unowned = |_| Served { object: without_entries(after), entries: Vec::new() };
                Ok(server.update(stored.before, &new, &request).unwrap_or_else(unowned))
            }
            (Meaning::Scale, Some(after)) => {
                let of_scale = Type::new(&kinds.schema, &self.scale);
                let entries = scale::update(of_scale, stored.before.unwrap(), after, &request);
                Ok(Served { object: without_entries(after), entries })
            }
            (_, None) => return Expected::Refused("only applies are refused by their owners".to_owned()),
        };
        match served {
            Ok(served) => Expected::Stored(unless_nothing_changed(served, stored)),
            Err(ServerError::Ownership(OwnershipError::Conflicts(conflicts))) => {
                Expected::Conflicts(conflicts.iter().map(|(id, path)| worded(id, &path)).collect())
            }
            Err(error) => Expected::Refused(error.to_string()),
        }
    }
}

pub(crate) fn path(names: &[&str]) -> Path {
    names.iter().map(|name| Step::Field((*name).to_owned())).collect()
}

pub(crate) fn entries(object: &Value) -> Option<Vec<Entry>> {
    decode_value(object.pointer("/metadata/managedFields")?).ok()
}

pub(crate) fn without_entries(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("managedFields");
    }
    object
}

/// The API server compares what it would store, which is not always what was written: `1000m` is stored as `1`. If
/// nothing but times is different, it stores nothing. Where what was written is all the same, we have to know that.
fn unless_nothing_changed(mut served: Served, stored: &Stored<'_>) -> Served {
    let (Some(before), Some(after)) = (stored.before, stored.after) else { return served };
    let plain = |object: &Value| {
        let mut object = without_entries(object);
        object["metadata"]["resourceVersion"] = json!("");
        object
    };
    let timeless = |entries: &[Entry]| -> Vec<Entry> {
        entries.iter().map(|entry| Entry { time: None, ..entry.clone() }).collect()
    };
    if let Some(old) = entries(before)
        && served.object != without_entries(before)
        && plain(before) == plain(after)
        && timeless(&old) == timeless(&served.entries)
    {
        served.entries = old;
    }
    served
}

/// A conflict in the words of the API server: who, and where.
fn worded(id: &Identity, path: &Path) -> (String, String) {
    let mut who = format!("conflict with {:?}", id.manager);
    if !id.subresource.is_empty() {
        who += &format!(" with subresource {:?}", id.subresource);
    }
    if id.operation == Operation::Update {
        who += &format!(" using {}", id.api_version.as_deref().unwrap_or_default());
    }
    let place = path.steps().iter().map(step).collect();
    (who, place)
}

fn step(step: &Step) -> String {
    match step {
        Step::Field(name) => format!(".{name}"),
        Step::Key(parts) => {
            let parts: Vec<_> =
                parts.iter().map(|(name, value)| format!("{name}={}", scalar(value))).collect();
            format!("[{}]", parts.join(","))
        }
        Step::Value(value) => format!("[={}]", scalar(value)),
        Step::Index(index) => format!("[{index}]"),
    }
}

fn scalar(value: &Scalar) -> String {
    match value {
        Scalar::Text(text) => format!("{text:?}"),
        other => other.to_string(),
    }
}

/// Gives entries that are as old as this request the time that the API server wrote for them, if it lies within the
/// time that the request took.
pub(crate) fn with_times_of(
    mut expected: Vec<Entry>,
    actual: &[Entry],
    time: &str,
    began: &str,
) -> Vec<Entry> {
    let written = |entry: &Entry| Some((entry.identity(), entry.time.clone()?));
    let within = |(_, written): &(Identity, String)| (began..=time).contains(&written.as_str());
    let times: BTreeMap<Identity, String> = actual.iter().filter_map(written).filter(within).collect();
    for entry in expected.iter_mut().filter(|entry| entry.time.as_deref() == Some(time)) {
        if let Some(written) = times.get(&entry.identity()) {
            entry.time = Some(written.clone());
        }
    }
    kausality_fields::managed::sort(&mut expected);
    expected
}
