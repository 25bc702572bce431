//! Creating objects.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::admission::{Attributes, Operation};
use crate::answer::{Done, Notes};
use crate::call::Call;
use crate::managed::{self, Writer};
use crate::metadata;
use crate::sandbox::{Sandbox, State};
use crate::status::{Cause, Failure};
use crate::{defaults, prepare, validate};

impl Sandbox {
    /// Creates the object in the body.
    pub(crate) async fn create(&self, call: &Call, notes: &mut Notes) -> Done {
        if !call.subresource.is_empty() {
            return Err(Failure::method_not_allowed());
        }
        call.check_options("CreateOptions")?;
        let mut object = call.object(notes)?;
        self.settle_namespace(call, &mut object)?;
        let manager = call.manager();
        let time = self.now().rfc3339();
        let writer = Writer { manager: &manager, subresource: "", time: &time };
        metadata::of(&mut object).remove("managedFields");
        let object = managed::updated(&call.definition, None, object, writer);
        self.create_object(call, object, notes).await
    }

    /// Creates an object that has its managed fields.
    pub(crate) async fn create_object(&self, call: &Call, mut object: Value, notes: &mut Notes) -> Done {
        let definition = &call.definition;
        let dry_run = call.is_dry_run();
        let versioned = !metadata::version(&object).is_empty();
        self.check_namespace(call, metadata::name(&object))?;
        if definition.is("", "pods") {
            defaults::pod_at_create(&mut object);
        }
        let shared = definition.is("batch", "jobs") && shares_labels(call);
        let attributes = Attributes {
            call,
            operation: Operation::Create,
            name: metadata::name(&object).to_owned(),
            options: call.options("CreateOptions"),
            dry_run,
        };
        let object = self.mutate(&attributes, Some(object), None, notes).await?;
        let mut object = object.unwrap_or_default();
        if shared && object.pointer("/metadata/labels") == object.pointer("/spec/template/metadata/labels") {
            metadata::of(&mut object).remove("labels");
        }

        {
            let mut state = self.state();
            name(&mut state, call, &mut object);
            let uid = state.generator.uid();
            metadata::of(&mut object).insert("uid".to_owned(), uid.into());
            prepare::create(definition, &mut object, &self.now().rfc3339());
            if definition.is("", "services") {
                addresses(&mut state, &mut object);
            }
        }
        if definition.is("", "services") && metadata::name(&object).is_empty() {
            let why = "failed to allocate an address: the service has no name";
            let cause = Cause::invalid("spec.clusterIPs", &Value::Null, why);
            return Err(Failure::invalid(&definition.kind_subject(""), &[cause]));
        }
        validate::create(definition, &object)?;
        self.validate(&attributes, Some(&object), None, notes).await?;

        if versioned && !dry_run {
            return Err(Failure::new(500, "", "resourceVersion should not be set on objects to be created"));
        }
        let name = metadata::name(&object).to_owned();
        notes.name = Some(name.clone());
        let place = (call.namespace.clone(), name.clone());
        let mut state = self.state();
        if let Some(existing) = state.store.get(&definition.collection, &place) {
            let mut failure = Failure::already_exists(&definition.subject(&name));
            if metadata::is_deleting(existing) {
                failure.message = format!("object is being deleted: {}", failure.message);
            }
            return Err(failure);
        }
        if dry_run {
            return Ok((201, Arc::new(object)));
        }
        let stored = state.store.put(&definition.collection, place, definition.store(object));
        self.tell(call, None, Some(&stored));
        state.take_note(definition, &stored);
        Ok((201, definition.serve(&stored)))
    }

    /// The namespace of the object is that of the request.
    pub(crate) fn settle_namespace(&self, call: &Call, object: &mut Value) -> Result<(), Failure> {
        let said = metadata::field(object, "namespace").to_owned();
        if !said.is_empty() && !call.namespace.is_empty() && said != call.namespace {
            return Err(Failure::bad_request(
                "the namespace of the provided object does not match the namespace sent on the request",
            ));
        }
        let namespace = (!call.namespace.is_empty()).then(|| json!(call.namespace));
        metadata::set(metadata::of(object), "namespace", namespace);
        Ok(())
    }

    /// Objects are only created in namespaces that are there to stay.
    fn check_namespace(&self, call: &Call, name: &str) -> Result<(), Failure> {
        if call.namespace.is_empty() {
            return Ok(());
        }
        let place = (String::new(), call.namespace.clone());
        let state = self.state();
        let Some(namespace) = state.store.get("/namespaces", &place) else {
            let subject = crate::status::Subject {
                kind: "namespaces".to_owned(),
                name: call.namespace.clone(),
                ..Default::default()
            };
            return Err(Failure::not_found(&subject));
        };
        if namespace["status"]["phase"] != "Terminating" {
            return Ok(());
        }
        let why = format!(
            "unable to create new content in namespace {} because it is being terminated",
            call.namespace
        );
        let mut failure = Failure::forbidden(&call.definition.subject(name), &why);
        if let Some(details) = &mut failure.details {
            details["causes"] = json!([{"reason": "NamespaceTerminating",
                "message": format!("namespace {} is being terminated", call.namespace), "field": "metadata.namespace"}]);
        }
        Err(failure)
    }
}

/// Whether the labels of a Job are those of its template, and get what these get.
fn shares_labels(call: &Call) -> bool {
    let sent = crate::call::parse_yaml(&call.body).unwrap_or_default();
    let labels = sent.pointer("/metadata/labels").and_then(Value::as_object);
    // One whose name is made up is copied, lest the name is taken.
    metadata::field(&sent, "generateName").is_empty() && labels.is_none_or(serde_json::Map::is_empty)
}

/// Gives a name to an object that leaves it to us.
fn name(state: &mut State, call: &Call, object: &mut Value) {
    let prefix = metadata::field(object, "generateName").to_owned();
    if !metadata::name(object).is_empty() || prefix.is_empty() {
        return;
    }
    // Room for five letters: 63 - 5.
    let prefix: String = prefix.chars().take(58).collect();
    let mut name = String::new();
    for _ in 0..8 {
        name = format!("{prefix}{}", state.generator.suffix());
        let place = (call.namespace.clone(), name.clone());
        if state.store.get(&call.definition.collection, &place).is_none() {
            break;
        }
    }
    metadata::of(object).insert("name".to_owned(), name.into());
}

/// Gives addresses and ports to a service.
pub(crate) fn addresses(state: &mut State, object: &mut Value) {
    let kind = metadata::text(object, "/spec/type").to_owned();
    let spec = metadata::member(object, "spec");
    if kind == "ExternalName" {
        return;
    }
    if spec.get("clusterIP").is_none_or(|address| address == "") {
        state.addresses += 1;
        let nth = state.addresses;
        let address = format!("10.{}.{}.{}", 96 + (nth >> 16) % 16, (nth >> 8) & 0xFF, nth & 0xFF);
        spec.insert("clusterIP".to_owned(), address.into());
    }
    let address = spec.get("clusterIP").cloned().unwrap_or_default();
    spec.entry("clusterIPs").or_insert_with(|| json!([&address]));
    // Somebody else says where it is: nobody knows which addresses these will be.
    let anywhere = address == "None" && spec.get("selector").is_none();
    let families = if anywhere { json!(["IPv4", "IPv6"]) } else { json!(["IPv4"]) };
    let policy = if anywhere { "RequireDualStack" } else { "SingleStack" };
    spec.entry("ipFamilies").or_insert(families);
    spec.entry("ipFamilyPolicy").or_insert_with(|| policy.into());
    if kind == "NodePort" || kind == "LoadBalancer" {
        for port in spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
            if port.get("nodePort").is_none_or(|number| number == 0) {
                state.ports += 1;
                port["nodePort"] = (30_000 + state.ports % 2768).into();
            }
        }
    }
}
