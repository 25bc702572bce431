//! Deleting: at once, after a grace period, or when nothing holds the object any more.

use std::sync::Arc;

use http::Response;
use serde_json::{Value, json};

use super::read::list_object;
use crate::admission::{Attributes, Operation};
use crate::answer::{self, Body, Done, Notes};
use crate::call::Call;
use crate::metadata;
use crate::sandbox::Sandbox;
use crate::status::{Cause, Failure};

/// Namespaces that stay.
const KEPT: [&str; 3] = ["default", "kube-public", "kube-system"];
const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";

/// How an object is to be deleted.
#[derive(Clone, Debug, Default)]
struct Options {
    uid: Option<String>,
    version: Option<String>,
    policy: Option<String>,
    grace: Option<u64>,
    dry_run: bool,
    object: Value,
}

/// What comes of it.
enum Fate {
    /// It goes.
    Gone,
    /// It stays like this, until somebody lets it go.
    Marked(Value),
    /// It is on its way already.
    Same,
}

impl Sandbox {
    pub(crate) async fn delete(&self, call: &Call, notes: &mut Notes) -> Done {
        let options = Options::read(call)?;
        self.delete_object(call, &options, notes).await
    }

    async fn delete_object(&self, call: &Call, options: &Options, notes: &mut Notes) -> Done {
        for _ in 0..8 {
            let live = self.find(call)?;
            options.check(call, &live)?;
            if call.definition.is("", "namespaces") && KEPT.contains(&call.name.as_str()) {
                return Err(Failure::forbidden(&call.subject(), "this namespace may not be deleted"));
            }
            let attributes = Attributes {
                call,
                operation: Operation::Delete,
                name: call.name.clone(),
                options: options.of(call, &live),
                dry_run: options.dry_run,
            };
            self.mutate(&attributes, None, Some(&live), notes).await?;
            self.validate(&attributes, None, Some(&live), notes).await?;
            if let Some(done) = self.settle_deletion(call, options, &live) {
                return Ok(done);
            }
        }
        Err(Failure::modified(&call.subject()))
    }

    /// Does what is to be done, if the object is still as it was.
    fn settle_deletion(
        &self,
        call: &Call,
        options: &Options,
        live: &Arc<Value>,
    ) -> Option<(u16, Arc<Value>)> {
        let definition = &call.definition;
        match fate(call, options, live, self.now().0) {
            Fate::Same => Some((200, Arc::clone(live))),
            Fate::Marked(object) => {
                let stored = self.commit(call, live, object, options.dry_run)?;
                Some((200, stored))
            }
            Fate::Gone => {
                let mut state = self.state();
                let place = call.place();
                let current = state.store.get(&definition.collection, &place)?;
                if metadata::version(current) != metadata::version(live) {
                    return None;
                }
                let end = last_of(call, live, &self.now().rfc3339());
                if !options.dry_run {
                    let last = definition.store(end.clone());
                    let last = state.store.remove(&definition.collection, &place, Some(last))?;
                    self.tell(call, Some(live), None);
                    state.take_note_of_removal(definition, &last);
                }
                let returned = ["Pod", "Service", "ServiceAccount", "PersistentVolumeClaim"];
                if !definition.is_custom() && returned.contains(&definition.kind.as_str()) {
                    return Some((200, Arc::new(end)));
                }
                Some((200, Arc::new(success(call, live))))
            }
        }
    }

    /// Deletes all that a call selects.
    pub(crate) async fn delete_collection(
        &self,
        call: &Call,
        notes: &mut Notes,
    ) -> Result<Response<Body>, Failure> {
        let options = Options::read(call)?;
        let mut listed = self.list(call)?;
        let mut deleted = Vec::new();
        for object in &listed.objects {
            let (namespace, name) = (metadata::field(object, "namespace"), metadata::name(object));
            match self.delete_object(&call.of(namespace, name), &options, notes).await {
                Ok(_) => deleted.push(Arc::clone(object)),
                // Somebody else was faster.
                Err(failure) if failure.code == 404 => {}
                Err(failure) => return Err(failure),
            }
        }
        listed.objects = deleted;
        Ok(answer::json(200, &list_object(&call.definition, &listed)))
    }
}

impl Options {
    /// From the body, or the parameters where there is none.
    fn read(call: &Call) -> Result<Self, Failure> {
        let body = match call.body.is_empty() {
            true => Self::from_query(call)?,
            false => decoded(call.json()?)?,
        };
        let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
        let mut causes = Vec::new();
        let orphan = body.get("orphanDependents").and_then(Value::as_bool);
        let said = text(body.get("propagationPolicy"));
        if let Some(policy) = &said {
            if orphan.is_some() {
                let why = "orphanDependents and deletionPropagation cannot be both set";
                causes.push(Cause::invalid("propagationPolicy", &json!(policy), why));
            } else if !["Orphan", "Background", "Foreground"].contains(&policy.as_str()) {
                let known = ["Foreground", "Background", "Orphan", "nil"].map(str::to_owned);
                causes.push(Cause::unsupported("propagationPolicy", &json!(policy), &known));
            }
        }
        let dry = body.get("dryRun").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        if dry.iter().any(|word| word != "All") {
            causes.push(Cause::unsupported("dryRun", &json!(dry), &["All".to_owned()]));
        }
        if !causes.is_empty() {
            return Err(Failure::invalid(&crate::call::options_subject("DeleteOptions"), &causes));
        }
        let dry_run = !dry.is_empty();
        let policy = said.or_else(|| {
            orphan.map(|orphan| if orphan { "Orphan".to_owned() } else { "Background".to_owned() })
        });
        // A second is the shortest time that is no force.
        let grace = body.get("gracePeriodSeconds").and_then(Value::as_i64);
        let grace = grace.map(|grace| u64::try_from(grace).unwrap_or(1));
        let mut object = body.clone();
        let fields = metadata::as_map(&mut object);
        fields.insert("kind".to_owned(), "DeleteOptions".into());
        fields.insert("apiVersion".to_owned(), "meta.k8s.io/v1".into());
        if let Some(policy) = &policy {
            fields.insert("propagationPolicy".to_owned(), policy.as_str().into());
        }
        Ok(Self {
            uid: text(body.pointer("/preconditions/uid")),
            version: text(body.pointer("/preconditions/resourceVersion")),
            policy,
            grace,
            dry_run,
            object,
        })
    }

    /// The options as admission sees them: those of a Pod say how much time it gets.
    fn of(&self, call: &Call, live: &Value) -> Value {
        let mut object = self.object.clone();
        if call.definition.is("", "pods") {
            object["gracePeriodSeconds"] = pod_grace(self, live).into();
        }
        object
    }

    /// As the parameters say.
    fn from_query(call: &Call) -> Result<Value, Failure> {
        let mut options = json!({});
        for key in ["propagationPolicy", "dryRun"] {
            let said = call.query.get(key);
            if !said.is_empty() {
                options[key] = if key == "dryRun" { json!([said]) } else { said.into() };
            }
        }
        let grace = call.query.get("gracePeriodSeconds");
        if !grace.is_empty() {
            options["gracePeriodSeconds"] =
                grace.parse::<i64>().map_err(|error| Failure::bad_request(error.to_string()))?.into();
        }
        if !call.query.get("orphanDependents").is_empty() {
            options["orphanDependents"] = call.query.flag("orphanDependents").into();
        }
        Ok(options)
    }

    /// It is the object that is meant.
    fn check(&self, call: &Call, live: &Value) -> Result<(), Failure> {
        let pairs = [
            (&self.uid, "UID", "uid", "deleted and then recreated"),
            (&self.version, "ResourceVersion", "resourceVersion", "modified"),
        ];
        for (wanted, word, key, fate) in pairs {
            let is = metadata::field(live, key);
            if let Some(wanted) = wanted
                && wanted != is
            {
                let why = format!(
                    "the {word} in the precondition ({wanted}) does not match the {word} in record ({is}). The object might \
                     have been {fate}"
                );
                return Err(Failure::conflict(&call.definition.kind_subject(&call.name), &why));
            }
        }
        Ok(())
    }
}

/// Options, if they are some.
fn decoded(mut body: Value) -> Result<Value, Failure> {
    let (kind, version) = (metadata::text(&body, "/kind"), metadata::text(&body, "/apiVersion"));
    if !["", "DeleteOptions"].contains(&kind) {
        return Err(Failure::bad_request(format!(
            "no kind {kind:?} is registered for version {version:?} in scheme \"pkg/runtime/scheme.go:111\""
        )));
    }
    if body.is_null() {
        body = json!({});
    }
    const DEFINITION: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";
    let read = crate::types::decode::decode(DEFINITION, body, crate::types::decode::Fill::Nothing);
    read.map(|read| read.value).map_err(Failure::bad_request)
}

fn fate(call: &Call, options: &Options, live: &Value, now: u64) -> Fate {
    let definition = &call.definition;
    let mut finalizers = metadata::finalizers(live);
    let settled = finalizers.iter().any(|finalizer| finalizer == ORPHAN || finalizer == FOREGROUND);
    // These kinds are older than the garbage collector.
    let orphans = definition.is("batch", "jobs") || definition.is("", "replicationcontrollers");
    let default = (orphans && !settled).then(|| "Orphan".to_owned());
    if let Some(policy) = options.policy.as_ref().or(default.as_ref()) {
        finalizers.retain(|finalizer| finalizer != ORPHAN && finalizer != FOREGROUND);
        match policy.as_str() {
            "Orphan" => finalizers.push(ORPHAN.to_owned()),
            "Foreground" => finalizers.push(FOREGROUND.to_owned()),
            _ => {}
        }
    }
    let grace = if definition.is("", "pods") { pod_grace(options, live) } else { 0 };
    let held = definition.is("", "namespaces")
        && live.pointer("/spec/finalizers").and_then(Value::as_array).is_some_and(|held| !held.is_empty());
    if grace == 0 && finalizers.is_empty() && !held {
        return Fate::Gone;
    }
    let before = live.pointer("/metadata/deletionGracePeriodSeconds").and_then(Value::as_u64);
    let deleting = metadata::is_deleting(live);
    if held && deleting {
        return Fate::Same;
    }
    let mut object = live.clone();
    if !deleting || before.is_some_and(|before| before > grace) {
        let fields = metadata::of(&mut object);
        let time = crate::controllers::Time(now).after_seconds(grace);
        fields.insert("deletionTimestamp".to_owned(), time.rfc3339().into());
        if !held {
            fields.insert("deletionGracePeriodSeconds".to_owned(), grace.into());
        }
        if !deleting && metadata::generation(live) > 0 {
            fields.insert("generation".to_owned(), (metadata::generation(live) + 1).into());
        }
    }
    let list = (!finalizers.is_empty()).then(|| json!(finalizers));
    metadata::set(metadata::of(&mut object), "finalizers", list);
    if held {
        metadata::member(&mut object, "status").insert("phase".to_owned(), "Terminating".into());
    }
    if object == *live { Fate::Same } else { Fate::Marked(object) }
}

/// An object as it goes. A Pod has been given its time, which is none.
fn last_of(call: &Call, live: &Value, now: &str) -> Value {
    let mut end = live.clone();
    if call.definition.is("", "pods") {
        let fields = metadata::of(&mut end);
        fields.insert("deletionGracePeriodSeconds".to_owned(), 0.into());
        if !metadata::is_deleting(live) {
            fields.insert("deletionTimestamp".to_owned(), now.into());
            if metadata::generation(live) > 0 {
                fields.insert("generation".to_owned(), (metadata::generation(live) + 1).into());
            }
        }
    }
    end
}

/// How long a Pod may take. One that runs nowhere, or has ended, needs no time.
fn pod_grace(options: &Options, pod: &Value) -> u64 {
    let phase = metadata::text(pod, "/status/phase");
    if metadata::text(pod, "/spec/nodeName").is_empty() || phase == "Failed" || phase == "Succeeded" {
        return 0;
    }
    let own = pod.pointer("/spec/terminationGracePeriodSeconds").and_then(Value::as_u64).unwrap_or(30);
    let wanted = options.grace.unwrap_or(own);
    let before = pod.pointer("/metadata/deletionGracePeriodSeconds").and_then(Value::as_u64);
    match before {
        Some(before) if metadata::is_deleting(pod) => before.min(options.grace.unwrap_or(before)),
        _ => wanted,
    }
}

fn success(call: &Call, live: &Value) -> Value {
    let definition = &call.definition;
    let mut details =
        json!({"name": call.name, "kind": definition.plural, "uid": metadata::field(live, "uid")});
    if !definition.group.is_empty() {
        details["group"] = definition.group.as_str().into();
    }
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})
}
