//! Controllers at work on a sandbox, in real time: the driver that [`controllers`](crate::controllers) describes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt as _, select_all};
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::BodyExt as _;
use hyper::body::Bytes;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::answer::Body;
use crate::controllers::{
    Action, Cache, Change, Controller, Delete, Event, Key, Read, Refusal, Resource, Retry, Time, Watched,
    Write,
};
use crate::identity::User;
use crate::kinds::{Definition, Registry};
use crate::sandbox::Sandbox;
use crate::store::After;
use crate::store::signal::Changes;

/// How long a controller sleeps when nothing happens: kinds may be served by then that were not.
const NAP: Duration = Duration::from_millis(500);

/// The way between a controller and the API.
pub trait Road: Send + Sync + 'static {
    /// Takes a request there, and its answer back; or says what went wrong on the way.
    fn call(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<Response<Body>, String>>;

    /// How far a watch has come of a collection that is at this revision.
    fn shown(&self, collection: &str, revision: u64) -> u64 {
        let _ = collection;
        revision
    }
}

/// No way at all: nothing gets lost, and nothing takes time.
impl Road for Sandbox {
    fn call(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<Response<Body>, String>> {
        self.handle(request).map(Ok).boxed()
    }
}

/// Controllers at work. They stop when this is dropped.
#[derive(Debug)]
pub struct Running(Vec<JoinHandle<()>>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.iter().for_each(JoinHandle::abort);
    }
}

impl Sandbox {
    /// Sets controllers to work, each on its own.
    pub fn run(&self, controllers: Vec<Box<dyn Controller + Send>>) -> Running {
        let tasks = controllers.into_iter().map(|controller| {
            let road = Arc::new(self.clone());
            tokio::spawn(Worker::new(self, road, controller).work())
        });
        Running(tasks.collect())
    }

    /// Sets a controller to work at the other end of a road.
    pub fn run_over(&self, road: Arc<dyn Road>, controller: Box<dyn Controller + Send>) -> Running {
        Running(vec![tokio::spawn(Worker::new(self, road, controller).work())])
    }
}

/// One controller, its cache and its queue.
struct Worker {
    sandbox: Sandbox,
    controller: Box<dyn Controller + Send>,
    caller: Caller,
    cache: Cache,
    /// What was served when it last looked for what to watch.
    served: Option<Arc<Registry>>,
    watched: Vec<Watching>,
    /// Of one that watches everything: it need not ask for the changes of each kind.
    changed: Option<Changes>,
    queue: BTreeSet<Key>,
    later: BTreeSet<(Time, Key)>,
    retry: Retry<Key>,
}

/// A resource that is watched, and how far.
struct Watching {
    resource: Resource,
    definition: Arc<Definition>,
    revision: u64,
    changed: Changes,
}

impl Worker {
    fn new(sandbox: &Sandbox, road: Arc<dyn Road>, controller: Box<dyn Controller + Send>) -> Self {
        let user = controller.user();
        // Real controllers call themselves by the program that they are part of.
        let agent =
            if user.starts_with("system:node:") { "kubelet/v1" } else { "kube-controller-manager/v1" };
        Self {
            sandbox: sandbox.clone(),
            caller: Caller { road, user: User::admin(&user), agent },
            controller,
            cache: Cache::default(),
            served: None,
            watched: Vec::new(),
            changed: None,
            queue: BTreeSet::new(),
            later: BTreeSet::new(),
            retry: Retry::default(),
        }
    }

    async fn work(mut self) {
        loop {
            self.enlist();
            self.listen();
            match self.due() {
                Some(key) => self.sync(key).await,
                None => self.rest().await,
            }
        }
    }

    /// Begins to watch what is served by now.
    fn enlist(&mut self) {
        let registry = Arc::clone(&self.sandbox.state().registry);
        if self.served.as_ref().is_some_and(|served| Arc::ptr_eq(served, &registry)) {
            return;
        }
        self.served = Some(Arc::clone(&registry));
        let watches = self.controller.watches();
        if self.changed.is_none() && matches!(watches, Watched::Everything) {
            self.changed = Some(self.sandbox.state().store.subscribe_to_all());
        }
        for (resource, definition) in wanted(&watches, &registry) {
            if self.watched.iter().any(|watching| watching.definition.collection == definition.collection) {
                continue;
            }
            self.cache.register(&resource);
            let mut state = self.sandbox.state();
            let changed = state.store.subscribe(&definition.collection);
            let revision = state.store.revision();
            drop(state);
            let watching = Watching { resource, definition, revision, changed };
            let changes = self.relist(&watching);
            self.take_in(changes);
            self.watched.push(watching);
        }
        let served = |watching: &Watching| {
            let Definition { group, version, plural, .. } = &*watching.definition;
            registry.get(group, version, plural).is_some()
        };
        self.watched.retain(served);
    }

    /// Takes in what has happened since the last time.
    fn listen(&mut self) {
        if let Some(changed) = &mut self.changed {
            changed.latest();
        }
        for at in 0..self.watched.len() {
            let Some(watching) = self.watched.get_mut(at) else { continue };
            // What is shown may lag behind, so that it is not enough to look whether something has changed just now.
            let latest = watching.changed.latest();
            if latest <= watching.revision {
                continue;
            }
            let state = self.sandbox.state();
            let collection = &watching.definition.collection;
            let shown = self.caller.road.shown(collection, state.store.revision());
            let events = state.store.since(collection, watching.revision);
            drop(state);
            let shown = shown.max(watching.revision);
            watching.revision = shown;
            let mut changes = Vec::new();
            match events {
                Ok(events) => {
                    for event in events.iter().filter(|event| event.revision <= shown) {
                        let event = match &event.after {
                            After::Stored(object) => Event::Applied(watching.definition.serve(object)),
                            After::Gone(last) => Event::Deleted(watching.definition.serve(last)),
                        };
                        changes.extend(self.cache.apply(&watching.resource, event));
                    }
                }
                Err(_) => {
                    let Some(watching) = self.watched.get(at) else { continue };
                    let (resource, objects) = (watching.resource.clone(), self.objects(&watching.definition));
                    changes.extend(self.cache.replace(&resource, objects));
                }
            }
            self.take_in(changes);
        }
    }

    fn relist(&mut self, watching: &Watching) -> Vec<Change> {
        let objects = self.objects(&watching.definition);
        self.cache.replace(&watching.resource, objects)
    }

    fn objects(&self, definition: &Definition) -> Vec<Arc<Value>> {
        let objects = self.sandbox.state().store.list(&definition.collection, None);
        objects.into_iter().map(|(_, object)| definition.serve(&object)).collect()
    }

    fn take_in(&mut self, changes: Vec<Change>) {
        for change in changes {
            self.queue.extend(self.controller.keys(&self.cache, &change));
        }
    }

    /// A key whose time has come.
    fn due(&mut self) -> Option<Key> {
        let now = self.sandbox.now();
        while let Some((_, key)) = self.later.first().filter(|(at, _)| *at <= now).cloned() {
            self.queue.insert(key);
            self.later.pop_first();
        }
        self.queue.pop_first()
    }

    /// Waits until something happens, or it is time for something.
    async fn rest(&mut self) {
        let now = self.sandbox.now();
        let next =
            self.later.first().map_or(NAP, |(at, _)| Duration::from_millis(at.0.saturating_sub(now.0)));
        if let Some(changed) = &mut self.changed {
            let _ = tokio::time::timeout(next.min(NAP), changed.next()).await;
            return;
        }
        let changes = self.watched.iter_mut().map(|watching| Box::pin(watching.changed.next()));
        let changes: Vec<_> = changes.collect();
        if changes.is_empty() {
            return tokio::time::sleep(next.min(NAP)).await;
        }
        let _ = tokio::time::timeout(next.min(NAP), select_all(changes)).await;
    }

    async fn sync(&mut self, key: Key) {
        let mut outcome = self.controller.sync(&self.cache, &key, self.sandbox.now());
        if !outcome.reads.is_empty() {
            let mut seen = Vec::new();
            for read in std::mem::take(&mut outcome.reads) {
                match self.caller.read(&read).await {
                    Ok(found) => seen.push((read, found)),
                    // Nobody knows what is there, so nothing follows; half of an answer would not be asked for again.
                    Err(refusal) => {
                        let controller = self.controller.name();
                        tracing::debug!(controller, ?key, ?read, %refusal, "a live read failed");
                        self.later.insert((self.retry.failed(&key, self.sandbox.now()), key));
                        return;
                    }
                }
            }
            for (read, found) in seen {
                self.controller.seen(&key, &read, &found);
            }
            outcome = self.controller.sync(&self.cache, &key, self.sandbox.now());
        }
        for (nth, write) in outcome.writes.iter().enumerate() {
            let Err(refusal) = self.caller.write(write).await else { continue };
            tracing::debug!(controller = self.controller.name(), ?key, %refusal, "a write was refused");
            if refusal.stops(write) {
                let undone = outcome.writes.get(nth..).unwrap_or_default();
                self.controller.refused(&key, undone, &refusal);
                self.later.insert((self.retry.failed(&key, self.sandbox.now()), key));
                return;
            }
            self.controller.refused(&key, std::slice::from_ref(write), &refusal);
        }
        self.retry.forget(&key);
        if let Some(again) = outcome.again {
            self.later.insert((again, key));
        }
    }
}

/// Somebody who calls the API.
struct Caller {
    road: Arc<dyn Road>,
    user: User,
    agent: &'static str,
}

impl Caller {
    /// What is there. Only what the API says is not found is not; all else says nothing about it.
    async fn read(&self, read: &Read) -> Result<Vec<Arc<Value>>, Refusal> {
        let url = match read {
            Read::Object(key) => object_url(key),
            Read::Collection { resource, namespace } => collection_url(resource, namespace),
        };
        let body = match self.call(Method::GET, &url, "application/json", &Value::Null).await {
            Err(Refusal::NotFound) => return Ok(Vec::new()),
            answer => answer?,
        };
        let mut found = parse(&body)?;
        let Read::Collection { resource, .. } = read else { return Ok(vec![Arc::new(found)]) };
        let Some(Value::Array(items)) = found.get_mut("items").map(Value::take) else {
            return Err(Refusal::Unknown(format!("{url} is no list")));
        };
        let named = |mut item: Value| {
            item["apiVersion"] = resource.api_version().into();
            item["kind"] = resource.kind.as_ref().into();
            Arc::new(item)
        };
        Ok(items.into_iter().map(named).collect())
    }

    async fn write(&self, write: &Write) -> Result<(), Refusal> {
        let (key, json, merge) = (&write.key, "application/json", "application/merge-patch+json");
        let part = |name: &str| format!("{}/{name}", object_url(key));
        let options;
        let (method, url, content, body) = match &write.action {
            Action::Create(object) => {
                (Method::POST, collection_url(&key.resource, &key.namespace), json, object)
            }
            Action::Update(object) => (Method::PUT, object_url(key), json, object),
            Action::UpdateStatus(object) => (Method::PUT, part("status"), json, object),
            Action::Finalize(object) => (Method::PUT, part("finalize"), json, object),
            Action::Bind(binding) => (Method::POST, part("binding"), json, binding),
            Action::Patch(patch) => (Method::PATCH, object_url(key), merge, patch),
            Action::PatchStatus(patch) => (Method::PATCH, part("status"), merge, patch),
            Action::Delete(delete) => {
                options = delete_options(delete);
                (Method::DELETE, object_url(key), json, &options)
            }
        };
        self.call(method, &url, content, body).await.map(|_| ())
    }

    async fn call(&self, method: Method, url: &str, content: &str, body: &Value) -> Result<Bytes, Refusal> {
        let body = if body.is_null() { Bytes::new() } else { Bytes::from(body.to_string()) };
        let request = Request::builder()
            .method(method)
            .uri(url)
            .header(header::CONTENT_TYPE, content)
            .header(header::USER_AGENT, self.agent)
            .extension(self.user.clone())
            .body(body)
            .map_err(|error| unknown(&error))?;
        let answer = self.road.call(request).await.map_err(|error| unknown(&error))?;
        let status = answer.status();
        let body = answer.into_body().collect().await.map_err(|error| unknown(&error))?.to_bytes();
        if status.is_success() {
            return Ok(body);
        }
        let answer = parse(&body)?;
        let says = |field: &str| answer.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
        Err(match status {
            StatusCode::NOT_FOUND => Refusal::NotFound,
            StatusCode::CONFLICT if says("reason") == "AlreadyExists" => Refusal::AlreadyExists,
            StatusCode::CONFLICT => Refusal::Conflict,
            status if status.is_client_error() => Refusal::Denied(says("message")),
            _ => Refusal::Unknown(says("message")),
        })
    }
}

fn unknown(error: &dyn std::fmt::Display) -> Refusal {
    Refusal::Unknown(error.to_string())
}

fn parse(body: &[u8]) -> Result<Value, Refusal> {
    serde_json::from_slice(body).map_err(|error| unknown(&error))
}

/// What a controller watches, as far as it is served; of what is served in several versions or groups, one.
fn wanted(watches: &Watched, registry: &Registry) -> Vec<(Resource, Arc<Definition>)> {
    let resource = |definition: &Arc<Definition>| {
        let Definition { group, version, plural, kind, namespaced, .. } = &**definition;
        Resource::new(group.clone(), version.clone(), plural.clone(), kind.clone(), *namespaced)
    };
    match watches {
        Watched::These(these) => {
            let served = |wanted: &Resource| {
                let definition = registry.get(&wanted.group, &wanted.version, &wanted.plural)?;
                Some((wanted.clone(), Arc::clone(definition)))
            };
            these.iter().filter_map(served).collect()
        }
        Watched::Everything => {
            let mut by_collection = BTreeMap::new();
            for definition in registry.all().filter(|definition| !definition.review) {
                by_collection.entry(definition.collection.clone()).or_insert_with(|| Arc::clone(definition));
            }
            by_collection.into_values().map(|definition| (resource(&definition), definition)).collect()
        }
    }
}

fn collection_url(resource: &Resource, namespace: &str) -> String {
    let root = if resource.group.is_empty() { "/api" } else { "/apis" };
    let within = match namespace {
        "" => String::new(),
        namespace => format!("/namespaces/{namespace}"),
    };
    format!("{root}/{}{within}/{}", resource.api_version(), resource.plural)
}

fn object_url(key: &Key) -> String {
    format!("{}/{}", collection_url(&key.resource, &key.namespace), key.name)
}

fn delete_options(delete: &Delete) -> Value {
    let mut options = json!({"apiVersion": "v1", "kind": "DeleteOptions"});
    if let Some(propagation) = delete.propagation {
        options["propagationPolicy"] = propagation.as_str().into();
    }
    if let Some(seconds) = delete.grace_period_seconds {
        options["gracePeriodSeconds"] = seconds.into();
    }
    for (name, value) in [("uid", &delete.uid), ("resourceVersion", &delete.resource_version)] {
        if let Some(value) = value {
            options["preconditions"][name] = value.as_str().into();
        }
    }
    options
}
