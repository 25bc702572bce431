//! Controllers at work on a sandbox, in real time: the driver that [`controllers`](crate::controllers) describes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt as _, select_all};
use http::{Request, Response};
use hyper::body::Bytes;
use serde_json::Value;
use tokio::task::JoinHandle;

use crate::answer::Body;
use crate::controllers::{Cache, Change, Controller, Event, Key, Resource, Retry, Time, Watched};
use crate::identity::User;
use crate::kinds::{Definition, Registry};
use crate::sandbox::Sandbox;
use crate::store::After;
use crate::store::signal::Changes;

mod caller;

use caller::Caller;

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

    /// Begins to watch what is served by now, and forgets what is not served any more.
    fn enlist(&mut self) {
        let registry = Arc::clone(&self.sandbox.state().registry);
        if self.served.as_ref().is_some_and(|served| Arc::ptr_eq(served, &registry)) {
            return;
        }
        self.served = Some(Arc::clone(&registry));
        self.drop_unserved(&registry);
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
    }

    /// Ends the watches of what is not served as it was. The deletions that came before are taken in: dependents go by
    /// them. Of what is left nobody knows whether it is there, so it is forgotten, and not reported as deleted.
    fn drop_unserved(&mut self, registry: &Registry) {
        for mut watching in std::mem::take(&mut self.watched) {
            let Resource { group, version, plural, kind, namespaced } = &watching.resource;
            let served = registry.get(group, version, plural);
            match served.filter(|served| served.kind == *kind && served.namespaced == *namespaced) {
                Some(served) => {
                    watching.definition = Arc::clone(served);
                    self.watched.push(watching);
                }
                None => {
                    let revision = self.sandbox.state().store.revision();
                    let changes = self.catch_up(&mut watching, revision);
                    self.take_in(changes);
                    self.cache.forget(&watching.resource);
                }
            }
        }
    }

    /// Takes in what has happened since the last time.
    fn listen(&mut self) {
        if let Some(changed) = &mut self.changed {
            changed.latest();
        }
        let mut watched = std::mem::take(&mut self.watched);
        for watching in &mut watched {
            // What is shown may lag behind, so that it is not enough to look whether something has changed just now.
            let latest = watching.changed.latest();
            if latest <= watching.revision {
                continue;
            }
            let revision = self.sandbox.state().store.revision();
            let shown = self.caller.road.shown(&watching.definition.collection, revision);
            let changes = self.catch_up(watching, shown);
            self.take_in(changes);
        }
        self.watched = watched;
    }

    /// Takes the events of one resource up to a revision into the cache.
    fn catch_up(&mut self, watching: &mut Watching, revision: u64) -> Vec<Change> {
        let events = self.sandbox.state().store.since(&watching.definition.collection, watching.revision);
        watching.revision = revision.max(watching.revision);
        let Ok(events) = events else { return self.relist(watching) };
        let mut changes = Vec::new();
        for event in events.iter().filter(|event| event.revision <= watching.revision) {
            let event = match &event.after {
                After::Stored(object) => Event::Applied(watching.definition.serve(object)),
                After::Gone(last) => Event::Deleted(watching.definition.serve(last)),
            };
            changes.extend(self.cache.apply(&watching.resource, event));
        }
        changes
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
