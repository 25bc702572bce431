//! A cluster, as decisions know it.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, PoisonError, RwLock},
    time::Duration,
};

use arc_swap::ArcSwap;
use kausality_core::{Namespace, Settings, Summary, exceptions::Exceptions, policy::Policies, status::Rules};
use kube::{
    Api, Client,
    api::PostParams,
    core::{ApiResource, DynamicObject},
};
use serde_json::json;
use tokio::{task::AbortHandle, time::Instant};

use crate::{
    afterwards::Afterwards,
    authorities::Authorities,
    below::Below,
    clock::Clock,
    events::Events,
    exceptions,
    feed::feed,
    grants::Grants,
    index::Index,
    inputs::Changes,
    kinds::{Kind, Kinds},
    lately::Lately,
    ledger::Ledger,
    namespaces::{self, Namespaces},
    pending::Pending,
    policies,
    pulse::Health,
    reads::Reads,
    spent::Spent,
    unjudged::Unjudged,
};

mod doubt;
mod know;

use doubt::Doubts;
pub(crate) use know::Unread;

/// Where facts come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freshness {
    /// From watches, where they are good enough.
    Cached,
    /// From the API server, now.
    Live,
}

/// A cluster: what is known of it, and the way into it.
pub struct Cluster {
    pub(crate) client: Client,
    /// Keeps no connection for later: none that has died without a word is used again. For what is rare, or must not
    /// fail.
    pub(crate) fresh: Client,
    pub(crate) clock: Clock,
    pub(crate) ledger: Arc<Ledger>,
    /// The kinds that the cluster serves.
    pub kinds: Kinds,
    pub(crate) pending: Arc<Pending>,
    pub(crate) events: Events,
    pub(crate) spent: Spent,
    pub(crate) lately: Lately,
    pub(crate) below: Below,
    pub(crate) changes: Changes,
    pub(crate) policies: policies::Source,
    pub(crate) exceptions: exceptions::Source,
    pub(crate) grants: Grants,
    pub(crate) unjudged: Unjudged,
    pub(crate) afterwards: Afterwards,
    doubts: Doubts,
    settings: ArcSwap<Settings>,
    indexes: RwLock<HashMap<(String, String), Watched>>,
    /// The kinds whose indexes must be filled before decisions are made.
    required: RwLock<HashSet<(String, String)>>,
    namespaces: Arc<Namespaces>,
    authorities: Authorities,
    reads: Reads<Result<Option<Arc<Summary>>, Unread>>,
    namespace_reads: Reads<Option<Arc<Namespace>>>,
}

/// An index, and the task that keeps it up to date.
struct Watched {
    index: Arc<Index>,
    feeding: AbortHandle,
    used: Mutex<Instant>,
}

impl Watched {
    /// The index, for somebody who needs it.
    fn index(&self) -> Arc<Index> {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        self.index.clone()
    }

    fn idle(&self) -> Duration {
        self.used.lock().unwrap_or_else(PoisonError::into_inner).elapsed()
    }
}

/// How many kinds are watched at most. Anybody can name one in an owner reference.
const MAX_KINDS: usize = 100;

/// A kind that nobody has asked for in this time is not watched any more.
const MAX_IDLE: Duration = Duration::from_secs(1800);

/// How often it is learned anew what is served, and what is not needed any more.
const REFRESH: Duration = Duration::from_secs(60);

/// How the watch of one kind is doing, for metrics.
#[derive(Clone, Debug)]
pub struct WatchHealth {
    /// The API group.
    pub group: String,
    /// The kind.
    pub kind: String,
    /// How it is doing.
    pub health: Health,
}

impl Cluster {
    /// The cluster behind `client`, and behind `fresh`, which must use each connection once. Writes of
    /// `settings.own_users` are taken for Kausality's own.
    #[must_use]
    pub fn new(client: Client, fresh: Client, settings: Settings, clock: Clock) -> Arc<Self> {
        let namespaces = Arc::new(Namespaces::default());
        let (api, fed) = (Api::all_with(fresh.clone(), &namespaces::resource()), namespaces.clone());
        tokio::spawn(async move { feed(api, "namespaces", &fed.pulse, &*fed).await });
        let cluster = Arc::new(Self {
            kinds: Kinds::new(fresh.clone()),
            events: Events::new(client.clone(), clock.clone()),
            ledger: Arc::new(Ledger::new(client.clone(), clock.clone())),
            client,
            fresh,
            clock,
            pending: Arc::default(),
            spent: Spent::default(),
            lately: Lately::default(),
            below: Below::default(),
            changes: Changes::default(),
            policies: policies::Source::default(),
            exceptions: exceptions::Source::default(),
            grants: Grants::default(),
            unjudged: Unjudged::default(),
            afterwards: Afterwards::default(),
            doubts: Doubts::default(),
            settings: ArcSwap::from_pointee(settings),
            indexes: RwLock::default(),
            required: RwLock::default(),
            namespaces,
            authorities: Authorities::default(),
            reads: Reads::default(),
            namespace_reads: Reads::default(),
        });
        tokio::spawn(cluster.clone().tidy());
        cluster
    }

    /// Enters drifts into the ledger from now on, for ever: unless this is called, they are only told of.
    pub fn keep_ledger(self: Arc<Self>) -> impl Future<Output = ()> + Send {
        // From here on, and not from when somebody first runs it.
        self.ledger.expect();
        async move { self.ledger.keep(&self.fresh, &self.kinds).await }
    }

    /// What holds for every decision now.
    #[must_use]
    pub fn settings(&self) -> Arc<Settings> {
        self.settings.load_full()
    }

    /// Lets other policies hold from now on.
    pub(crate) fn set_policies(&self, policies: Policies) {
        self.set(|settings| settings.policies = policies.clone());
        // What was read by other rules is read again. Until then, nothing is denied by it that is not read live.
        for watched in self.indexes.write().unwrap_or_else(PoisonError::into_inner).values_mut() {
            if watched.index.read_by(self.status_rules(&watched.index.kind)) {
                watched.feeding.abort();
                watched.feeding = self.start_feed(&watched.index);
            }
        }
    }

    fn status_rules(&self, kind: &Kind) -> Rules {
        self.settings.load().policies.status_rules(&kind.resource.group, &kind.resource.plural)
    }

    fn start_feed(&self, index: &Arc<Index>) -> AbortHandle {
        let (api, fed) = (api(&self.fresh, &index.kind, ""), index.clone());
        let feeding = async move { feed(api, &fed.kind.resource.plural, &fed.pulse, &*fed).await };
        tokio::spawn(feeding).abort_handle()
    }

    /// The memory that the expressions and patterns of an approval policy may take, beside those of all others.
    #[must_use]
    pub fn room_for(&self, policy: &str) -> usize {
        self.exceptions.room_for(policy)
    }

    /// Lets other exceptions hold from now on.
    pub(crate) fn set_exceptions(&self, exceptions: Exceptions) {
        let exceptions = Arc::new(exceptions);
        self.set(|settings| settings.exceptions = exceptions.clone());
    }

    /// Several watches change settings, each its own part.
    fn set(&self, change: impl Fn(&mut Settings)) {
        self.settings.rcu(|settings| {
            let mut settings = Settings::clone(settings);
            change(&mut settings);
            settings
        });
    }

    /// Lets digests of secrets have another salt from now on.
    pub(crate) fn set_salt(&self, salt: &[u8]) {
        self.set(|settings| settings.salt = salt.to_vec());
    }

    /// The user name under which this process writes.
    ///
    /// # Errors
    /// If the API server does not tell.
    pub async fn own_user(client: &Client) -> Result<String, kube::Error> {
        let question = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
        let resource = ApiResource {
            group: "authentication.k8s.io".to_owned(),
            version: "v1".to_owned(),
            api_version: "authentication.k8s.io/v1".to_owned(),
            kind: "SelfSubjectReview".to_owned(),
            plural: "selfsubjectreviews".to_owned(),
        };
        let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
        let question = serde_json::from_value(question).map_err(kube::Error::SerdeError)?;
        let answer = api.create(&PostParams::default(), &question).await?;
        let name = answer.data.pointer("/status/userInfo/username").and_then(serde_json::Value::as_str);
        Ok(name.unwrap_or_default().to_owned())
    }

    /// The index of this kind, which is kept from now on, for as long as it is used.
    pub fn watch(&self, kind: &Arc<Kind>) -> Arc<Index> {
        if let Some(index) = self.watched(kind) {
            return index;
        }
        let mut indexes = self.indexes.write().unwrap_or_else(PoisonError::into_inner);
        let current = |watched: &&Watched| watched.index.kind == *kind;
        if let Some(watched) = indexes.get(&key(kind)).filter(current) {
            return watched.index();
        }
        if indexes.len() >= MAX_KINDS {
            self.make_place(&mut indexes);
        }
        let index = Arc::new(Index::new(kind.clone(), self.status_rules(kind), self.pending.clone()));
        let watched = Watched {
            index: index.clone(),
            feeding: self.start_feed(&index),
            used: Mutex::new(Instant::now()),
        };
        if let Some(outdated) = indexes.insert(key(kind), watched) {
            // Its group prefers another version now.
            outdated.feeding.abort();
        }
        index
    }

    /// The index of this kind, if there is one.
    pub fn watched(&self, kind: &Arc<Kind>) -> Option<Arc<Index>> {
        let indexes = self.indexes.read().unwrap_or_else(PoisonError::into_inner);
        indexes.get(&key(kind)).filter(|watched| watched.index.kind == *kind).map(Watched::index)
    }

    /// The kinds of which there are indexes: those that objects were found to be owned by among them.
    #[must_use]
    pub fn watched_kinds(&self) -> Vec<Arc<Kind>> {
        let indexes = self.indexes.read().unwrap_or_else(PoisonError::into_inner);
        indexes.values().map(|watched| watched.index.kind.clone()).collect()
    }

    /// Keeps an index of this kind, and is not synced before it is filled. Kinds that turn out to be needed later
    /// do not count: until they are filled, or where they may not be watched, their objects are read live.
    pub fn require(&self, kind: &Arc<Kind>) {
        self.required.write().unwrap_or_else(PoisonError::into_inner).insert(key(kind));
        self.watch(kind);
    }

    /// Stops watching the kind that has not been used for longest.
    fn make_place(&self, indexes: &mut HashMap<(String, String), Watched>) {
        let required = self.required.read().unwrap_or_else(PoisonError::into_inner);
        let idle = indexes.iter().filter(|(key, _)| !required.contains(*key));
        let longest = idle.max_by_key(|(_, watched)| watched.idle()).map(|(key, _)| key.clone());
        if let Some(watched) = longest.and_then(|key| indexes.remove(&key)) {
            watched.feeding.abort();
        }
    }

    /// Learns what is served and forgets what is not needed any more, for ever.
    async fn tidy(self: Arc<Self>) {
        let mut ticks = tokio::time::interval(REFRESH);
        loop {
            ticks.tick().await;
            self.kinds.refresh().await;
            let mut indexes = self.indexes.write().unwrap_or_else(PoisonError::into_inner);
            let mut required = self.required.write().unwrap_or_else(PoisonError::into_inner);
            indexes.retain(|key, watched| {
                let lost = self.kinds.has_lost(&watched.index.kind);
                if lost {
                    required.remove(key);
                }
                let keep = !lost && (required.contains(key) || watched.idle() < MAX_IDLE);
                if !keep {
                    watched.feeding.abort();
                }
                keep
            });
        }
    }

    /// Whether everything that is required has been read once.
    #[must_use]
    pub fn is_synced(&self) -> bool {
        let required = self.required.read().unwrap_or_else(PoisonError::into_inner);
        let indexes = self.indexes.read().unwrap_or_else(PoisonError::into_inner);
        self.policies.is_synced()
            && self.exceptions.is_synced()
            && self.namespaces.pulse.is_synced()
            && required.iter().all(|key| indexes.get(key).is_none_or(|watched| watched.index.is_synced()))
    }

    /// How the watches are doing. One that is forbidden is not ill: whoever may not read a kind asks for the right to it, and
    /// the policy says what became of that.
    #[must_use]
    pub fn health(&self) -> Vec<WatchHealth> {
        let indexes = self.indexes.read().unwrap_or_else(PoisonError::into_inner);
        let of = |group: &str, kind: &str, health| WatchHealth {
            group: group.to_owned(),
            kind: kind.to_owned(),
            health,
        };
        let health = indexes.iter().map(|((group, kind), watched)| of(group, kind, watched.index.health()));
        let health = health.filter(|watch| !self.grants.explain(watch));
        let others = [
            of("", "Namespace", self.namespaces.health()),
            of(kausality_api::GROUP, "Kausality", self.policies.health()),
        ];
        let others = others.into_iter().chain(
            self.exceptions.health().into_iter().map(|(kind, health)| of(kausality_api::GROUP, kind, health)),
        );
        // Namespaces may own objects too, and then have an index beside.
        let others = others
            .into_iter()
            .filter(|other| !indexes.contains_key(&(other.group.clone(), other.kind.clone())));
        health.chain(others.collect::<Vec<_>>()).collect()
    }
}

/// What an index is known by.
fn key(kind: &Kind) -> (String, String) {
    (kind.resource.group.clone(), kind.resource.kind.clone())
}

/// Where the objects of a kind are; in all namespaces, if none is named.
pub(crate) fn api(client: &Client, kind: &Kind, namespace: &str) -> Api<DynamicObject> {
    match namespace {
        "" => Api::all_with(client.clone(), &kind.resource),
        _ => Api::namespaced_with(client.clone(), namespace, &kind.resource),
    }
}
