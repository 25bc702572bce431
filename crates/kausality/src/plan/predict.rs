//! What an apply would do to one object.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kausality_cluster::{Kind, Kinds, UnknownKind};
use kausality_fields::{
    FieldSet, Leaf, Path, Redaction,
    managed::Operation,
    places::{self, Place, Places},
    redact,
    schema::GroupVersionKind,
    typed::{Duplicates, Type},
};
use serde_json::Value;

use super::{
    changes::{self, Found},
    conflict,
    force::Taking,
    made::{Definition, Made},
    mask::Mask,
    owner::{Owner, Ownership},
    planned::{Change, Conflict, Field, Future, Name, Owners, Planned, Problem, Why},
    refusal::{self, Refused},
};
use crate::{
    live::{Failure, Force, KindType, Secrets, Server, Types, is_fact, without_facts},
    manifests::Manifest,
    target,
};

/// How often an object that changes in between is read again.
const ATTEMPTS: usize = 6;

/// What all objects of a plan are predicted with.
pub(super) struct Oracle {
    pub(super) server: Server,
    pub(super) kinds: Kinds,
    pub(super) types: Types,
    pub(super) made: Made,
    /// The namespace of objects that name none.
    pub(super) namespace: String,
    pub(super) force: Taking,
    pub(super) secrets: Secrets,
}

/// How an object is reached, and what it should be.
struct Aim<'a> {
    url: String,
    name: &'a str,
    manifest: Value,
    found: Option<KindType>,
    redaction: Redaction,
}

impl Aim<'_> {
    fn of(&self) -> Option<Type<'_>> {
        self.found.as_ref().map(KindType::get)
    }

    /// Whether the object changed while it was looked at. Who asks for one version of it alone is told so instead.
    fn is_late(&self, status: &kube::core::Status) -> bool {
        let has_causes = status.details.as_ref().is_some_and(|details| !details.causes.is_empty());
        status.code == 409 && !has_causes && resource_version(&self.manifest).is_empty()
    }
}

/// One look at an object.
enum Look {
    /// It changed in between.
    Blurred,
    Clear(Planned),
}

impl Oracle {
    pub(super) async fn predict(&self, manifest: &Manifest) -> Planned {
        let gvk = GroupVersionKind::new(manifest.text("/apiVersion"), manifest.text("/kind"));
        let mut object = Name {
            file: manifest.file.clone(),
            api_version: manifest.text("/apiVersion").to_owned(),
            kind: manifest.text("/kind").to_owned(),
            namespace: String::new(),
            name: manifest.text("/metadata/name").to_owned(),
        };
        let kind = match self.kinds.of_kind(&object.api_version, &object.kind).await {
            Ok(kind) => kind,
            Err(UnknownKind::NotServed(name)) => {
                return match self.made.kind(&gvk) {
                    Some(definition) => self.of_new_kind(object, manifest, &gvk, definition).await,
                    None => {
                        Planned::refused(object, vec![not_served(&name, self.made.definition(&gvk), &gvk)])
                    }
                };
            }
            Err(error @ UnknownKind::Failed(..)) => {
                return Planned::refused(object, vec![Problem::new(Why::Failed, error.to_string())]);
            }
        };
        object.namespace = self.place(manifest, kind.namespaced);
        let aim = self.aim(&object, manifest, &kind, &gvk).await;
        for _ in 0..ATTEMPTS {
            if let Look::Clear(planned) = self.look(&object, &aim, &kind).await {
                return planned;
            }
        }
        let message = "it changes faster than it can be compared: something writes to it all the time";
        Planned::refused(object, vec![Problem::new(Why::Failed, message)])
    }

    /// The namespace that an object is in.
    fn place(&self, manifest: &Manifest, namespaced: bool) -> String {
        match manifest.text("/metadata/namespace") {
            _ if !namespaced => String::new(),
            "" => self.namespace.clone(),
            namespace => namespace.to_owned(),
        }
    }

    async fn aim<'a>(
        &self,
        object: &'a Name,
        manifest: &Manifest,
        kind: &Kind,
        gvk: &GroupVersionKind,
    ) -> Aim<'a> {
        let mut kind = kind.clone();
        kind.resource.api_version.clone_from(&object.api_version);
        kind.resource.version.clone_from(&gvk.version);
        let url = target::api(&self.server.client, &kind, &object.namespace).resource_url().to_owned();
        let found = self.types.of(&self.server, &kind, gvk).await;
        let redaction = self.secrets.redaction(&kind.resource);
        let manifest = placed(&manifest.object, &object.namespace);
        Aim { url, name: &object.name, manifest, found, redaction }
    }

    /// Compares what is with what would be.
    async fn look(&self, object: &Name, aim: &Aim<'_>, kind: &Kind) -> Look {
        let live = match self.server.get(&aim.url, aim.name).await {
            Ok(live) => Some(live),
            Err(Failure::Status(status)) if status.code == 404 => {
                let about_object = status.details.as_ref().is_some_and(|details| !details.name.is_empty());
                if !about_object {
                    let served = &kind.resource.api_version;
                    let message = format!(
                        "the API server serves {} in {served}, and not in {}",
                        object.kind, object.api_version
                    );
                    let problem = Problem::new(Why::NotServed, message);
                    return Look::Clear(Planned::refused(object.clone(), vec![problem]));
                }
                None
            }
            Err(failure) => return Look::Clear(self.refuse(object, aim, None, failure)),
        };
        let failure = match self.server.dry_run(&aim.url, aim.name, &aim.manifest, Force::No).await {
            Ok(first) => return self.compare(object, aim, live, first, Force::No, &BTreeMap::new()).await,
            Err(failure) => failure,
        };
        let Failure::Status(status) = &failure else {
            return Look::Clear(self.refuse(object, aim, live.as_ref(), failure));
        };
        if let Some(holders) = holders(aim, live.as_ref(), status) {
            return self.contested(object, aim, live, &holders).await;
        }
        if aim.is_late(status) {
            return Look::Blurred;
        }
        if self.is_namespace_made(object, status) {
            return Look::Clear(self.in_new_namespace(object, aim));
        }
        Look::Clear(self.refuse(object, aim, live.as_ref(), failure))
    }

    /// What would happen if all were taken from others, with what they hold.
    async fn contested(
        &self,
        object: &Name,
        aim: &Aim<'_>,
        live: Option<Value>,
        holders: &BTreeMap<Path, Vec<Owner>>,
    ) -> Look {
        match self.server.dry_run(&aim.url, aim.name, &aim.manifest, Force::Yes).await {
            Ok(first) => self.compare(object, aim, live, first, Force::Yes, holders).await,
            Err(Failure::Status(status)) if aim.is_late(&status) => Look::Blurred,
            Err(failure) => {
                let mut planned = self.refuse(object, aim, live.as_ref(), failure);
                self.contest(&mut planned.fields, holders, aim, live.as_ref().unwrap_or(&Value::Null));
                Look::Clear(planned)
            }
        }
    }

    async fn compare(
        &self,
        object: &Name,
        aim: &Aim<'_>,
        live: Option<Value>,
        first: Value,
        force: Force,
        holders: &BTreeMap<Path, Vec<Owner>>,
    ) -> Look {
        let version = live.as_ref().map_or("", resource_version).to_owned();
        let mut answers = vec![first];
        loop {
            if answers.last().map_or("", resource_version) != version {
                return Look::Blurred;
            }
            let found = self.changes(aim, live.as_ref(), &answers);
            let found = match found {
                Ok(found) => found,
                Err(problem) => return Look::Clear(Planned::refused(object.clone(), vec![problem])),
            };
            // What does not change now will not change at the second answer either.
            if answers.len() == 2 || live.is_some() && found.fields.is_empty() {
                let mut fields = found.fields;
                self.contest(&mut fields, holders, aim, live.as_ref().unwrap_or(&Value::Null));
                let mut planned = Planned::foreseen(object.clone(), live.is_some(), fields);
                planned.notes.extend(notes(live.as_ref(), found.guessed && !planned.fields.is_empty()));
                planned.notes.extend(planned.fields.iter().filter_map(spelling).collect::<Vec<String>>());
                return Look::Clear(planned);
            }
            match self.server.dry_run(&aim.url, aim.name, &aim.manifest, force).await {
                Ok(next) => answers.push(next),
                Err(Failure::Status(status)) if status.code == 409 => return Look::Blurred,
                Err(failure) => return Look::Clear(self.refuse(object, aim, live.as_ref(), failure)),
            }
        }
    }

    fn changes(&self, aim: &Aim<'_>, live: Option<&Value>, answers: &[Value]) -> Result<Found, Problem> {
        let safe = |object: &Value| without_facts(self.safe(aim, object), &aim.manifest);
        let live = live.map(safe);
        let answers: Vec<Value> = answers.iter().map(safe).collect();
        let [first, others @ ..] = answers.as_slice() else {
            return Err(Problem::new(Why::Failed, "the API server did not answer"));
        };
        let found = changes::between(aim.of(), live.as_ref(), first, others, Timestamp::now());
        let mut found = found.map_err(|error| Problem::new(Why::Failed, error.to_string()))?;
        found.fields.retain(|field| !is_fact(&field.path, &aim.manifest));
        Ok(found)
    }

    /// An object without secrets.
    fn safe(&self, aim: &Aim<'_>, object: &Value) -> Value {
        redact(object, &aim.redaction.with_passwords(aim.of(), [object]))
    }

    /// Marks what others hold.
    fn contest(
        &self,
        fields: &mut Vec<Field>,
        holders: &BTreeMap<Path, Vec<Owner>>,
        aim: &Aim<'_>,
        live: &Value,
    ) {
        let (live, wanted) = (self.safe(aim, live), self.safe(aim, &aim.manifest));
        let at = |object| aim.of().and_then(|of| places::of(of, object).ok()).unwrap_or_default();
        let (live, wanted) = (at(&live), at(&wanted));
        let known: BTreeMap<Path, usize> =
            fields.iter().enumerate().map(|(nth, field)| (field.path.clone(), nth)).collect();
        for (path, with) in holders {
            let conflict = Conflict { with: with.clone(), forced: self.force.covers(path) };
            match known.get(path).and_then(|nth| fields.get_mut(*nth)) {
                Some(field) => field.conflict = Some(conflict),
                None => {
                    let value = |of: &Places<'_, '_>| of.get(path).map(Place::alone);
                    let change = match (value(&live), value(&wanted)) {
                        (Some(old), Some(new)) => Change::Changed(old, Future::Known(new)),
                        _ => Change::Kept(None),
                    };
                    let owners = Owners { before: with.clone(), after: with.clone() };
                    fields.push(Field { path: path.clone(), change, owners, conflict: Some(conflict) });
                }
            }
        }
        fields.sort_by(|a, b| a.path.cmp(&b.path));
    }

    /// An object that cannot be applied, with nothing secret in the reasons.
    fn refuse(&self, object: &Name, aim: &Aim<'_>, live: Option<&Value>, failure: Failure) -> Planned {
        let status = match failure {
            Failure::Status(status) => *status,
            Failure::Silent(why) => {
                return Planned::refused(object.clone(), vec![Problem::new(Why::Failed, why)]);
            }
        };
        let versions: Vec<&Value> = live.into_iter().chain([&aim.manifest]).collect();
        let status = match Mask::of(&versions) {
            Some(mask) => mask.status(status),
            None => status,
        };
        let live = live.map(|live| self.safe(aim, live));
        let manifest = self.safe(aim, &aim.manifest);
        let manager = &self.server.manager;
        let refused = Refused { live: live.as_ref(), manifest: &manifest, of: aim.of(), manager };
        Planned::refused(object.clone(), refusal::explain(&status, refused))
    }

    fn is_namespace_made(&self, object: &Name, status: &kube::core::Status) -> bool {
        let details = status.details.as_ref();
        status.code == 404
            && details.is_some_and(|details| details.kind == "namespaces")
            && self.made.has_namespace(&object.namespace)
    }

    fn in_new_namespace(&self, object: &Name, aim: &Aim<'_>) -> Planned {
        let manifest = self.safe(aim, &aim.manifest);
        let mut planned = self.declared(object.clone(), aim.of(), &manifest);
        planned.notes.push(format!(
            "its namespace {} is created by this plan: what the server adds is known after apply",
            object.namespace
        ));
        planned
    }

    /// An object whose kind comes with the plan.
    async fn of_new_kind(
        &self,
        mut object: Name,
        manifest: &Manifest,
        gvk: &GroupVersionKind,
        definition: &Definition,
    ) -> Planned {
        object.namespace = self.place(manifest, definition.namespaced);
        let of = definition.types.as_ref().and_then(|types| Some((types, types.type_of(gvk)?)));
        let of = of.as_ref().map(|(types, of)| Type::new(&types.schema, of));
        let manifest = placed(&manifest.object, &object.namespace);
        if definition.namespaced && !self.made.has_namespace(&object.namespace) {
            let found = self.server.get("/api/v1/namespaces", &object.namespace).await;
            if matches!(&found, Err(Failure::Status(status)) if status.code == 404) {
                let message =
                    format!("namespaces {:?} not found, and the plan does not create it", object.namespace);
                return Planned::refused(object, vec![Problem::new(Why::NoNamespace, message)]);
            }
        }
        let mut planned = self.declared(object, of, &manifest);
        planned.notes.push(
            "its CRD is created by this plan: what the server adds, or refuses, is known after apply"
                .to_owned(),
        );
        planned
    }

    fn declared(&self, object: Name, of: Option<Type<'_>>, manifest: &Value) -> Planned {
        let manager = self.server.manager.clone();
        let owner = Owner { manager, operation: Operation::Apply, subresource: String::new() };
        // The API server begins with the same question.
        if let Some(Err(fault)) = of.map(|of| of.validate(manifest, Duplicates::Refused)) {
            let problem = Problem::new(Why::Invalid, fault.problem.to_string());
            return Planned::refused(object, vec![Problem { field: Some(fault.path), ..problem }]);
        }
        Planned::foreseen(object, false, changes::declared(of, manifest, owner))
    }
}

fn notes(live: Option<&Value>, guessed: bool) -> impl Iterator<Item = String> {
    let is_going =
        live.is_some_and(|live| live.pointer("/metadata/deletionTimestamp").is_some_and(Value::is_string));
    let going = is_going.then(|| "it is being deleted".to_owned());
    let guess = "the API server does not describe this type: items of lists are named as they usually are";
    going.into_iter().chain(guessed.then(|| guess.to_owned()))
}

/// A conflict about nothing: the API server compares what is applied as it is written, and `1000m` is not `1`.
fn spelling(field: &Field) -> Option<String> {
    match &field.change {
        Change::Kept(Some(value)) if field.is_held() => {
            let (path, value) = (&field.path, Leaf::Value(value.clone()));
            Some(format!("{path} is held with the same value: written as {value} it is no conflict"))
        }
        _ => None,
    }
}

fn not_served(name: &str, definition: Option<&str>, gvk: &GroupVersionKind) -> Problem {
    let help = match definition {
        Some(definition) => format!("{definition} among the manifests does not serve {}", gvk.version),
        None => "is its CustomResourceDefinition missing?".to_owned(),
    };
    Problem::new(Why::NotServed, format!("the API server serves no {name}: {help}"))
}

/// The manifest in the namespace that it is applied to.
fn placed(manifest: &Value, namespace: &str) -> Value {
    let mut manifest = manifest.clone();
    if let Some(metadata) = manifest.get_mut("metadata").and_then(Value::as_object_mut)
        && !namespace.is_empty()
    {
        metadata.insert("namespace".to_owned(), namespace.into());
    }
    manifest
}

fn resource_version(object: &Value) -> &str {
    object.pointer("/metadata/resourceVersion").and_then(Value::as_str).unwrap_or_default()
}

/// Who holds what is applied with another value; `None` if that is not why the API server refused.
fn holders(
    aim: &Aim<'_>,
    live: Option<&Value>,
    status: &kube::core::Status,
) -> Option<BTreeMap<Path, Vec<Owner>>> {
    let owned = Ownership::of(live).map_or(FieldSet::new(), |ownership| ownership.fields());
    let applied = aim.of().and_then(|of| of.field_set(&aim.manifest).ok()).unwrap_or_default();
    conflict::holders(status, &owned.union(&applied))
}
