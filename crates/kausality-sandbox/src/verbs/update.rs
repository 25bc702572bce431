//! Changing objects: replacing and patching them, and their status.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::admission::{Attributes, Operation};
use crate::answer::{Done, Notes};
use crate::call::Call;
use crate::kinds::Definition;
use crate::managed::{self, Writer};
use crate::metadata;
use crate::patch::Change;
use crate::sandbox::Sandbox;
use crate::status::{Cause, Failure};
use crate::types::decode::Fill;
use crate::{prepare, validate};

/// How often a change that names no version is tried on an object that others change at the same time. A real API server
/// never gives up.
pub(super) const ATTEMPTS: usize = 100;

impl Sandbox {
    /// Puts the object in the body in the place of the stored one.
    pub(crate) async fn replace(&self, call: &Call, notes: &mut Notes) -> Done {
        call.check_options("UpdateOptions")?;
        if call.subresource == "scale" {
            return self.write_scale(call, &Change::Replace(call.json()?), notes).await;
        }
        let mut object = call.object(notes)?;
        let name = metadata::name(&object);
        if name.is_empty() {
            let failure = "the name of the object (<empty>) does not match the name on the URL";
            return Err(Failure::bad_request(format!("{failure} ({})", call.name)));
        }
        if name != call.name {
            return Err(Failure::bad_request(format!(
                "the name of the object ({name}) does not match the name on the URL ({})",
                call.name
            )));
        }
        self.settle_namespace(call, &mut object)?;
        self.change(call, &Change::Replace(object), notes).await
    }

    /// Changes the stored object as the body says.
    pub(crate) async fn patch(&self, call: &Call, notes: &mut Notes) -> Done {
        Change::check_type(call)?;
        call.check_options("PatchOptions")?;
        let change = match Change::read(call) {
            // A patch is read when there is something to be patched.
            Err(failure) if !call.content_type.starts_with("application/apply-patch") => {
                self.find(call)?;
                return Err(failure);
            }
            change => change?,
        };
        if call.subresource == "scale" {
            return self.write_scale(call, &change, notes).await;
        }
        self.change(call, &change, notes).await
    }

    async fn change(&self, call: &Call, change: &Change, notes: &mut Notes) -> Done {
        for _ in 0..ATTEMPTS {
            if let Some(done) = self.attempt(call, change, notes).await? {
                return Ok(done);
            }
        }
        Err(Failure::modified(&call.subject()))
    }

    /// Changes the object as it is now; `None` if somebody else changed it meanwhile.
    async fn attempt(
        &self,
        call: &Call,
        change: &Change,
        notes: &mut Notes,
    ) -> Result<Option<(u16, Arc<Value>)>, Failure> {
        let definition = &call.definition;
        let dry_run = call.is_dry_run();
        let manager = call.manager();
        let time = self.now().rfc3339();
        let writer = Writer { manager: &manager, subresource: &call.subresource, time: &time };
        let live = match self.find(call) {
            Ok(live) => live,
            // The status of a service creates one, too.
            Err(_)
                if matches!(change, Change::Apply(_))
                    && (call.subresource.is_empty() || definition.is("", "services")) =>
            {
                return self.create_by_apply(call, change, writer, notes).await.map(Some);
            }
            Err(failure) if definition.created_by_update && call.subresource.is_empty() => {
                let Change::Replace(object) = change else { return Err(failure) };
                return self.create_by_update(call, object.clone(), writer, notes).await.map(Some);
            }
            Err(failure) => return Err(failure),
        };
        let mut new = match change {
            Change::Apply(config) => {
                let config = self.config(call, config)?;
                let merged =
                    managed::applied(definition, Some(&live), &config, writer, call.query.flag("force"))?;
                let merged = call.known(merged, Fill::Zero, notes).map_err(inconvertible)?;
                check_name(call, &merged)?;
                merged
            }
            change => {
                let mut new = change.apply(&live, definition)?;
                let blame = |change: &Change, failure| {
                    change.blame(failure, || change.apply(&live, definition).unwrap_or_default())
                };
                match change {
                    // Go reads these as what they are to be, whatever they say.
                    Change::Strategic(_) => {
                        metadata::set(metadata::as_map(&mut new), "kind", live.get("kind").cloned());
                        metadata::set(
                            metadata::as_map(&mut new),
                            "apiVersion",
                            live.get("apiVersion").cloned(),
                        );
                    }
                    Change::Replace(_) => {}
                    change => crate::call::check_patched(metadata::as_map(&mut new), definition)
                        .map_err(|failure| blame(change, failure))?,
                }
                let new = if matches!(change, Change::Replace(_)) {
                    new
                } else {
                    call.known(new, Fill::Zero, notes).map_err(|failure| blame(change, failure))?
                };
                self.check_identity(call, change, &live, &new)?;
                managed::updated(definition, Some(&live), new, writer)
            }
        };
        self.settle_namespace(call, &mut new)?;
        keep_allocated(definition, &live, &mut new);
        if definition.is("", "pods") && call.subresource.is_empty() {
            crate::defaults::tolerate(&mut new);
        }
        let attributes = Attributes {
            call,
            operation: Operation::Update,
            name: call.name.clone(),
            // Also of a patch.
            options: call.options("UpdateOptions"),
            dry_run,
        };
        let new = self.mutate(&attributes, Some(new), Some(&live), notes).await?;
        let mut new = new.unwrap_or_default();

        let unconditional = metadata::version(&new).is_empty();
        if unconditional && !definition.unconditional {
            let cause =
                Cause::invalid("metadata.resourceVersion", &json!(0), "must be specified for an update");
            return Err(Failure::invalid(&definition.subject(&call.name), &[cause]));
        }
        if !unconditional && metadata::version(&new) != metadata::version(&live) {
            return Err(Failure::modified(&call.subject()));
        }
        metadata::take(&mut new, &live, "resourceVersion");
        prepare::update(definition, &call.subresource, &live, &mut new, &time);
        if definition.is("", "services") {
            super::create::addresses(&mut self.state(), &mut new);
        }
        validate::update(definition, &call.subresource, &live, &new)?;
        self.validate(&attributes, Some(&new), Some(&live), notes).await?;

        let explicit = matches!(change, Change::Replace(_)) && !unconditional;
        match self.commit(call, &live, new, dry_run) {
            None if explicit => Err(Failure::modified(&call.subject())),
            committed => Ok(committed.map(|object| (200, object))),
        }
    }

    /// Stores what takes the place of the live object; `None` if that is not what is stored any more. An object that is
    /// to be deleted and that nothing holds any more goes.
    pub(crate) fn commit(
        &self,
        call: &Call,
        live: &Arc<Value>,
        new: Value,
        dry_run: bool,
    ) -> Option<Arc<Value>> {
        let definition = &call.definition;
        let place = call.place();
        let mut state = self.state();
        let current = state.store.get(&definition.collection, &place)?;
        if metadata::version(current) != metadata::version(live) {
            return None;
        }
        if new == **live {
            return Some(Arc::clone(live));
        }
        if dry_run {
            return Some(Arc::new(new));
        }
        let done = is_done(call, &new);
        let new = definition.store(new);
        if done {
            let answer = Arc::new(new.clone());
            let last = state.store.remove(&definition.collection, &place, Some(new))?;
            self.tell(call, Some(live), None);
            state.take_note_of_removal(definition, &last);
            return Some(definition.serve(&answer));
        }
        let stored = state.store.put(&definition.collection, place, new);
        self.tell(call, Some(live), Some(&stored));
        state.take_note(definition, &stored);
        Some(definition.serve(&stored))
    }

    async fn create_by_update(
        &self,
        call: &Call,
        mut object: Value,
        writer: Writer<'_>,
        notes: &mut Notes,
    ) -> Done {
        let uid = metadata::field(&object, "uid");
        if !uid.is_empty() {
            let why = format!("Precondition failed: UID in precondition: {uid}, UID in object meta: ");
            return Err(Failure::conflict(&call.subject(), &why));
        }
        for key in ["managedFields", "resourceVersion"] {
            metadata::of(&mut object).remove(key);
        }
        let object = managed::updated(&call.definition, None, object, writer);
        self.create_object(call, object, notes).await
    }

    async fn create_by_apply(
        &self,
        call: &Call,
        change: &Change,
        writer: Writer<'_>,
        notes: &mut Notes,
    ) -> Done {
        let Change::Apply(config) = change else { return Err(Failure::not_found(&call.subject())) };
        let config = self.config(call, config)?;
        if !metadata::field(&config, "uid").is_empty() {
            let why = format!(
                "uid mismatch: the provided object specified uid {}, and no existing object was found",
                metadata::field(&config, "uid")
            );
            return Err(Failure::conflict(&call.subject(), &why));
        }
        let object = managed::applied(&call.definition, None, &config, writer, call.query.flag("force"))?;
        let mut object = call.known(object, Fill::Zero, notes).map_err(inconvertible)?;
        self.settle_namespace(call, &mut object)?;
        check_name(call, &object)?;
        self.create_object(call, object, notes).await
    }

    /// What is applied, if it is all known.
    fn config(&self, call: &Call, config: &Value) -> Result<Value, Failure> {
        let Definition { kind, .. } = &*call.definition;
        let expected = call.definition.api_version();
        let said = |key: &str| config.get(key).and_then(Value::as_str).unwrap_or_default();
        if said("apiVersion") != expected {
            return Err(Failure::bad_request(format!(
                "Incorrect version specified in apply patch. Specified patch version: {}, expected: {expected}",
                said("apiVersion")
            )));
        }
        if said("kind") != *kind {
            return Err(Failure::bad_request(format!(
                "invalid object type: {expected}, Kind={}",
                said("kind")
            )));
        }
        // What a schema does not know of a custom resource is found out when fields get owners.
        if call.definition.is_custom() {
            return Ok(config.clone());
        }
        let untyped = |why: &str| {
            let Definition { group, version, .. } = &*call.definition;
            let place = format!("{}/{}; {group}/{version}, Kind={kind}", call.namespace, call.name);
            Failure::new(500, "", format!("failed to create typed patch object ({place}): {why}"))
        };
        let (config, unknown) = crate::call::known(&call.definition, config.clone(), Fill::Nothing)
            .map_err(|failure| untyped(&failure.message))?;
        if let Some(field) = unknown.first() {
            return Err(untyped(&format!(".{field}: field not declared in schema")));
        }
        Ok(config)
    }

    /// What is sent must be the object that is there, not one that had its name.
    fn check_identity(&self, call: &Call, change: &Change, live: &Value, new: &Value) -> Result<(), Failure> {
        let (said, is) = (metadata::field(new, "uid"), metadata::field(live, "uid"));
        if !said.is_empty() && said != is {
            if !matches!(change, Change::Replace(_)) {
                let cause = Cause::invalid("metadata.uid", &json!(said), "field is immutable");
                return Err(Failure::invalid(&call.definition.kind_subject(&call.name), &[cause]));
            }
            let why = format!("Precondition failed: UID in precondition: {said}, UID in object meta: {is}");
            return Err(Failure::conflict(&call.subject(), &why));
        }
        check_name(call, new)
    }
}

/// The object is the one that is asked for.
fn check_name(call: &Call, object: &Value) -> Result<(), Failure> {
    let (said, name) = (metadata::name(object), &call.name);
    if said.is_empty() {
        return Err(Failure::bad_request(format!(
            "the name of the object ({name} based on URL) was undeterminable: name must be provided"
        )));
    }
    if said != name {
        return Err(Failure::bad_request(format!(
            "the name of the object ({said}) does not match the name on the URL ({name})"
        )));
    }
    Ok(())
}

/// An object that comes of an apply, and that Go cannot read.
fn inconvertible(failure: Failure) -> Failure {
    Failure::new(500, "", format!("failed to convert new object to proper version: {}", failure.message))
}

/// Whether an object is deleted, and nothing holds it.
fn is_done(call: &Call, object: &Value) -> bool {
    let graceful =
        object.pointer("/metadata/deletionGracePeriodSeconds").and_then(Value::as_u64).unwrap_or(0) > 0;
    let held = call.definition.is("", "namespaces")
        && object.pointer("/spec/finalizers").and_then(Value::as_array).is_some_and(|held| !held.is_empty());
    metadata::is_deleting(object) && metadata::finalizers(object).is_empty() && !graceful && !held
}

/// A service keeps its addresses and ports if nobody says otherwise.
fn keep_allocated(definition: &Definition, live: &Value, new: &mut Value) {
    if !definition.is("", "services") || new["spec"]["type"] == "ExternalName" {
        return;
    }
    let spec = metadata::member(new, "spec");
    for key in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
        if spec.get(key).is_none_or(|value| value == "")
            && let Some(value) = live["spec"].get(key)
        {
            spec.insert(key.to_owned(), value.clone());
        }
    }
    // Who changes the one address changes the list of all.
    if spec.get("clusterIP") != live["spec"].get("clusterIP")
        && spec.get("clusterIPs") == live["spec"].get("clusterIPs")
        && let Some(address) = spec.get("clusterIP").cloned()
    {
        spec.insert("clusterIPs".to_owned(), json!([address]));
    }
    if spec.get("type").is_some_and(|kind| kind == "ClusterIP") {
        return;
    }
    for port in spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
        let before = live["spec"]["ports"].as_array().into_iter().flatten();
        let before =
            before.into_iter().find(|old| old["port"] == port["port"] && old["protocol"] == port["protocol"]);
        if let (None, Some(number)) = (port.get("nodePort"), before.and_then(|old| old.get("nodePort"))) {
            port["nodePort"] = number.clone();
        }
    }
}
