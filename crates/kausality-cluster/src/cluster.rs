//! A cluster, as decisions know it.

use std::{
    collections::HashMap,
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use arc_swap::ArcSwap;
use jiff::Timestamp;
use kausality_core::{
    Known, KnownParent, Questions, ScaledObject, Settings, Summary, policy::Policies, questions,
    review::Request, summary::Owner,
};
use kube::{
    Api, Client,
    api::PostParams,
    core::{ApiResource, DynamicObject},
};
use serde_json::json;

use crate::{
    events::Events,
    feed::{feed, summarise},
    index::{Health, Index, Sight},
    kinds::{Kind, Kinds, UnknownKind},
    namespaces::Namespaces,
    pending::Pending,
    spent::Spent,
};

/// How long a parent that has not shown up in its watch is waited for before it is read live.
const PATIENCE: Duration = Duration::from_millis(100);

/// How long a live read may take.
const READ_DEADLINE: Duration = Duration::from_millis(1500);

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
    /// The kinds that the cluster serves.
    pub kinds: Kinds,
    pub(crate) pending: Pending,
    pub(crate) events: Events,
    pub(crate) spent: Spent,
    /// Whether the policies have been read, or there are certainly none.
    pub(crate) policies_known: AtomicBool,
    settings: ArcSwap<Settings>,
    indexes: RwLock<HashMap<(String, String), Arc<Index>>>,
    /// Those that must be filled before decisions are made.
    required: RwLock<Vec<Arc<Index>>>,
    namespaces: Arc<Namespaces>,
}

/// How the index of one kind is doing, for metrics.
#[derive(Clone, Debug)]
pub struct IndexHealth {
    /// The API group.
    pub group: String,
    /// The kind.
    pub kind: String,
    /// How it is doing.
    pub health: Health,
}

impl Cluster {
    /// The cluster behind `client`. Writes of `settings.own_users` are taken for Kausality's own.
    #[must_use]
    pub fn new(client: Client, settings: Settings) -> Arc<Self> {
        let namespaces = Arc::new(Namespaces::default());
        tokio::spawn(crate::namespaces::feed(client.clone(), namespaces.clone()));
        Arc::new(Self {
            kinds: Kinds::new(client.clone()),
            events: Events::new(client.clone()),
            client,
            pending: Pending::default(),
            spent: Spent::default(),
            policies_known: AtomicBool::new(false),
            settings: ArcSwap::from_pointee(settings),
            indexes: RwLock::default(),
            required: RwLock::default(),
            namespaces,
        })
    }

    /// What holds for every decision now.
    #[must_use]
    pub fn settings(&self) -> Arc<Settings> {
        self.settings.load_full()
    }

    /// Lets other policies hold from now on.
    pub(crate) fn set_policies(&self, policies: Policies) {
        let settings = Settings { policies, ..Settings::clone(&self.settings()) };
        self.settings.store(Arc::new(settings));
    }

    /// What makes digests of Secret values differ between clusters, but not between replicas: the uid of the
    /// namespace that every cluster has.
    ///
    /// # Errors
    /// If the API server does not tell.
    pub async fn salt(client: &Client) -> Result<Vec<u8>, kube::Error> {
        let api: Api<DynamicObject> = Api::all_with(client.clone(), &crate::namespaces::resource());
        let namespace = api.get("kube-system").await?;
        Ok(namespace.metadata.uid.unwrap_or_default().into_bytes())
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

    /// Keeps an index of this kind from now on.
    pub fn watch(&self, kind: &Kind) -> Arc<Index> {
        let key = (kind.resource.group.clone(), kind.resource.kind.clone());
        if let Some(index) = self.indexes.read().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return index.clone();
        }
        let mut indexes = self.indexes.write().unwrap_or_else(PoisonError::into_inner);
        let index = indexes.entry(key).or_insert_with(|| {
            let index = Arc::new(Index::new(kind.clone()));
            tokio::spawn(feed(self.client.clone(), index.clone()));
            index
        });
        index.clone()
    }

    /// Keeps an index of this kind, and is not synced before it is filled. Kinds that turn out to be needed later
    /// do not count: until they are filled, or where they may not be watched, their objects are read live.
    pub fn require(&self, kind: &Kind) {
        let index = self.watch(kind);
        self.required.write().unwrap_or_else(PoisonError::into_inner).push(index);
    }

    /// Whether everything that is required has been read once.
    #[must_use]
    pub fn is_synced(&self) -> bool {
        let required = self.required.read().unwrap_or_else(PoisonError::into_inner);
        self.policies_known.load(Ordering::Relaxed)
            && self.namespaces.is_synced()
            && required.iter().all(|index| index.health().synced)
    }

    /// How the indexes are doing.
    #[must_use]
    pub fn health(&self) -> Vec<IndexHealth> {
        let indexes = self.indexes.read().unwrap_or_else(PoisonError::into_inner);
        let health = indexes.iter().map(|((group, kind), index)| IndexHealth {
            group: group.clone(),
            kind: kind.clone(),
            health: index.health(),
        });
        health.collect()
    }

    /// Finds out what a request's decision must know.
    pub async fn know(&self, request: &Request<'_>, freshness: Freshness) -> Known {
        let Questions { parent, scaled, namespace } = questions(request, &self.settings());
        let scaled = match scaled {
            Some(target) => Some(self.scaled(&target, freshness).await),
            None => None,
        };
        let owner = match &scaled {
            Some(Ok(summary)) => summary.owner.clone(),
            Some(Err(_)) => None,
            None => parent,
        };
        let parent = match owner {
            Some(owner) => self.parent(&owner, &request.namespace, freshness).await,
            None => KnownParent::None,
        };
        Known {
            now: Timestamp::now(),
            parent,
            scaled,
            namespace: namespace.and_then(|name| self.namespaces.get(&name)),
            exception: None,
        }
    }

    async fn scaled(&self, target: &ScaledObject, freshness: Freshness) -> Result<Arc<Summary>, String> {
        let api_version = match target.group.as_str() {
            "" => target.version.clone(),
            group => format!("{group}/{}", target.version),
        };
        let kind = self.kinds.of_resource(&api_version, &target.resource).await;
        let kind = kind.map_err(|error| error.to_string())?;
        match self.find(&kind, &target.namespace, &target.name, "", freshness).await {
            Ok(Some(summary)) => Ok(summary),
            Ok(None) => Err(format!("{} {} does not exist", target.resource, target.name)),
            Err(why) => Err(why),
        }
    }

    async fn parent(&self, owner: &Owner, namespace: &str, freshness: Freshness) -> KnownParent {
        let kind = match self.kinds.of_kind(&owner.api_version, &owner.kind).await {
            Ok(kind) => kind,
            // No object can be of a kind that is not served.
            Err(UnknownKind::NotServed(_)) => return KnownParent::Gone,
            Err(error) => return KnownParent::Unreadable(error.to_string()),
        };
        let namespace = if kind.namespaced { namespace } else { "" };
        match self.find(&kind, namespace, &owner.name, &owner.uid, freshness).await {
            Ok(Some(summary)) => {
                KnownParent::Found { summary, resource: kind.resource.plural.as_str().into() }
            }
            Ok(None) => KnownParent::Gone,
            Err(why) => KnownParent::Unreadable(why),
        }
    }

    /// Finds an object: in its index if that will do, else live. An empty uid means whichever has the name.
    async fn find(
        &self,
        kind: &Kind,
        namespace: &str,
        name: &str,
        uid: &str,
        freshness: Freshness,
    ) -> Result<Option<Arc<Summary>>, String> {
        let index = self.watch(kind);
        if freshness == Freshness::Cached {
            let deadline = Instant::now() + PATIENCE;
            loop {
                match index.look(namespace, name, uid) {
                    Sight::Here(summary) => return Ok(Some(self.pending.over(summary))),
                    Sight::Departed => return Ok(None),
                    Sight::Blind => break,
                    Sight::Unseen => {
                        let Some(left) = deadline.checked_duration_since(Instant::now()) else { break };
                        index.changed(left).await;
                    }
                }
            }
        }
        let live = self.read(kind, namespace, name).await?;
        Ok(live
            .filter(|summary| uid.is_empty() || summary.uid == uid)
            .map(|summary| self.pending.over(Arc::new(summary))))
    }

    /// Reads an object from the API server.
    pub(crate) async fn read(
        &self,
        kind: &Kind,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Summary>, String> {
        let api = self.api(kind, namespace);
        let mut answer = tokio::time::timeout(READ_DEADLINE, api.get_opt(name)).await;
        if answer.is_err() {
            // The connection may have died without a word; the next one is another.
            answer = tokio::time::timeout(READ_DEADLINE, api.get_opt(name)).await;
        }
        let object = answer
            .map_err(|_| format!("the API server did not answer twice within {READ_DEADLINE:?}"))?
            .map_err(|error| error.to_string())?;
        object.map(|object| summarise(&object, &kind.resource).map_err(|error| error.to_string())).transpose()
    }

    pub(crate) fn api(&self, kind: &Kind, namespace: &str) -> Api<DynamicObject> {
        match namespace {
            "" => Api::all_with(self.client.clone(), &kind.resource),
            _ => Api::namespaced_with(self.client.clone(), namespace, &kind.resource),
        }
    }
}
