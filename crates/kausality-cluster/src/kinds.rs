//! Kinds and resources, by discovery: plural names, scopes and versions are never guessed.
//!
//! A kind is known by its group and its name. Which of its versions an object was named in does not matter: it is
//! reached, and reviewed, in the version that its group prefers, so that one object has one intent.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use arc_swap::ArcSwapOption;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::APIResource;
use kausality_core::summary::group;
use kube::{
    Client,
    core::{
        ApiResource,
        discovery::v2::{APIGroupDiscovery, APIResourceDiscovery},
    },
};
use tokio::time::Instant;

/// A kind that the API server serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kind {
    /// How it is reached.
    pub resource: ApiResource,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
    /// What else people call it: `deployment`, `deploy`.
    pub names: Vec<String>,
}

/// Why a kind is not known.
#[derive(Debug, thiserror::Error)]
pub enum UnknownKind {
    /// The API server does not serve it.
    #[error("the API server serves no {0}")]
    NotServed(String),
    /// The API server could not be asked.
    #[error("discovery of {0} failed: {1}")]
    Failed(String, String),
}

/// The kinds that the API server serves.
pub struct Kinds {
    client: Client,
    served: ArcSwapOption<Served>,
    /// Held while the API server is asked: one question answers everybody who waits.
    asking: tokio::sync::Mutex<()>,
    /// Kinds that certainly were not served a moment ago.
    absent: Mutex<HashMap<(String, String), Instant>>,
}

/// All kinds that are served.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    /// Each in the version that its group prefers.
    pub kinds: Vec<Arc<Kind>>,
    /// Groups whose own servers did not answer: they may serve more than is listed.
    pub uncertain: BTreeSet<String>,
}

/// What was served at a time.
struct Served {
    kinds: Vec<Arc<Kind>>,
    uncertain: BTreeSet<String>,
    by_kind: HashMap<String, Vec<Arc<Kind>>>,
    asked: Instant,
}

/// A kind that was not served is asked for again after this time: a CRD may have come since.
const RETRY: Duration = Duration::from_secs(5);

/// How many kinds that are not served are remembered. Anybody can name one in an owner reference.
const MAX_ABSENT: usize = 256;

/// How long the API server may take to tell.
const DEADLINE: Duration = Duration::from_secs(2);

impl Kinds {
    /// Kinds of the cluster behind `client`.
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self {
            client,
            served: ArcSwapOption::empty(),
            asking: tokio::sync::Mutex::default(),
            absent: Mutex::default(),
        }
    }

    /// The kind that an owner reference names.
    ///
    /// # Errors
    /// If it is certainly not served, or cannot be asked for.
    pub async fn of_kind(&self, api_version: &str, kind: &str) -> Result<Arc<Kind>, UnknownKind> {
        let group = group(api_version);
        let name = full_name(group, kind);
        match self.find(&name, |served| served.of_kind(group, kind)).await {
            // What is not listed may still be on its way into the list, or its own server may be down.
            Err(UnknownKind::NotServed(_)) if !self.is_absent(api_version, kind) => {
                let found = self.ask_for(api_version, kind, &name).await;
                if let Err(UnknownKind::NotServed(_)) = found {
                    self.note_absent(api_version, kind);
                }
                found
            }
            found => found,
        }
    }

    /// The kind that an owner reference names, if it has been listed.
    pub(crate) fn seen(&self, api_version: &str, kind: &str) -> Option<Arc<Kind>> {
        self.served.load().as_ref()?.of_kind(group(api_version), kind)
    }

    /// Some kind like this, where `*` stands for anything in either: of a group that is named, in any version; any of the
    /// group, if the kind is a pattern too.
    ///
    /// # Errors
    /// If there is certainly none, or it cannot be asked for.
    pub(crate) async fn like(&self, api_version: &str, kind: &str) -> Result<Arc<Kind>, UnknownKind> {
        let group = match api_version.split_once('/') {
            Some((group, _)) => group,
            None if api_version.contains('*') => "*",
            None => "",
        };
        let name = full_name(group, kind);
        let found = self.find(&name, |served| served.like(group, kind)).await;
        let is_uncertain = || {
            let served = self.served.load();
            served.as_deref().is_some_and(|it| it.uncertain.iter().any(|it| is_like(group, it)))
        };
        match found {
            Err(UnknownKind::NotServed(_)) if is_uncertain() => {
                Err(UnknownKind::Failed(name, "the server of its group does not answer".to_owned()))
            }
            found => found,
        }
    }

    fn is_absent(&self, api_version: &str, kind: &str) -> bool {
        let absent = self.absent.lock().unwrap_or_else(PoisonError::into_inner);
        absent.get(&(api_version.to_owned(), kind.to_owned())).is_some_and(|at| at.elapsed() < RETRY)
    }

    fn note_absent(&self, api_version: &str, kind: &str) {
        let mut absent = self.absent.lock().unwrap_or_else(PoisonError::into_inner);
        absent.retain(|_, at| at.elapsed() < RETRY);
        if absent.len() < MAX_ABSENT {
            absent.insert((api_version.to_owned(), kind.to_owned()), Instant::now());
        }
    }

    /// Whether a kind is certainly not served in this version, by the last list.
    pub(crate) fn has_lost(&self, kind: &Kind) -> bool {
        let (group, plural) = (&kind.resource.group, &kind.resource.plural);
        self.served.load().as_deref().is_some_and(|served| served.of_resource(group, plural).is_none())
    }

    /// The kind of this resource.
    ///
    /// # Errors
    /// If it is not served, or cannot be asked for.
    pub async fn of_resource(&self, group: &str, plural: &str) -> Result<Arc<Kind>, UnknownKind> {
        self.find(&full_name(group, plural), |served| served.of_resource(group, plural)).await
    }

    /// The kind that somebody means: by its plural, singular or short name, or its kind, with or without a group, as
    /// `kubectl get` takes it.
    ///
    /// # Errors
    /// If none is served under that name, or the API server cannot be asked.
    pub async fn named(&self, name: &str) -> Result<Arc<Kind>, UnknownKind> {
        let (short, group) = match name.split_once('.') {
            Some((short, group)) => (short, Some(group)),
            None => (name, None),
        };
        self.find(name, |served| served.named(short, group)).await
    }

    /// Everything that is served now.
    ///
    /// # Errors
    /// If the API server cannot be asked.
    pub async fn all(&self) -> Result<Listing, UnknownKind> {
        let served = self.discover().await;
        let served = Arc::new(served.map_err(|why| UnknownKind::Failed("all kinds".to_owned(), why))?);
        self.served.store(Some(served.clone()));
        Ok(Listing { kinds: served.kinds.clone(), uncertain: served.uncertain.clone() })
    }

    /// Forgets what is served: something was not where it should be.
    pub(crate) fn expire(&self) {
        self.served.store(None);
    }

    /// Learns again what is served: groups come to prefer other versions.
    pub(crate) async fn refresh(&self) {
        match self.discover().await {
            Ok(served) => self.served.store(Some(Arc::new(served))),
            Err(error) => tracing::warn!(%error, "discovery failed"),
        }
    }

    async fn find(
        &self,
        name: &str,
        look: impl Fn(&Served) -> Option<Arc<Kind>>,
    ) -> Result<Arc<Kind>, UnknownKind> {
        let mut served = self.served.load_full();
        if let Some(found) = served.as_deref().and_then(&look) {
            return Ok(found);
        }
        let fresh = |served: &Served| served.asked.elapsed() < RETRY;
        if !served.as_deref().is_some_and(fresh) {
            let _turn = self.asking.lock().await;
            served = self.served.load_full();
            if !served.as_deref().is_some_and(fresh) {
                let latest = self.discover().await;
                let latest = latest.map_err(|why| UnknownKind::Failed(name.to_owned(), why))?;
                served = Some(Arc::new(latest));
                self.served.store(served.clone());
            }
        }
        served.as_deref().and_then(look).ok_or_else(|| UnknownKind::NotServed(name.to_owned()))
    }

    /// Asks for one kind in one version.
    async fn ask_for(&self, api_version: &str, kind: &str, name: &str) -> Result<Arc<Kind>, UnknownKind> {
        let not_served = || UnknownKind::NotServed(name.to_owned());
        // Whoever wrote the reference wrote this; it must not lead anywhere else.
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-');
        let parts: Vec<&str> = api_version.split('/').collect();
        let valid = |part: &&str| !part.is_empty() && !part.starts_with('.') && part.chars().all(is_plain);
        if parts.len() > 2 || !parts.iter().all(valid) {
            return Err(not_served());
        }
        let ask = async {
            match group(api_version) {
                "" => self.client.list_core_api_resources(api_version).await,
                _ => self.client.list_api_group_resources(api_version).await,
            }
        };
        match tokio::time::timeout(DEADLINE, ask).await {
            Ok(Ok(list)) => {
                let is_it = |served: &&APIResource| served.kind == kind && !served.name.contains('/');
                let served = list.resources.iter().find(is_it).ok_or_else(not_served)?;
                Ok(Arc::new(Kind::new(api_version, &served.kind, &served.name, served.namespaced)))
            }
            Ok(Err(kube::Error::Api(status))) if status.code == 404 => Err(not_served()),
            Ok(Err(error)) => Err(UnknownKind::Failed(name.to_owned(), error.to_string())),
            Err(_) => Err(UnknownKind::Failed(name.to_owned(), late())),
        }
    }

    async fn discover(&self) -> Result<Served, String> {
        let asked = Instant::now();
        let ask = async {
            let core = self.client.list_core_api_versions_aggregated().await?;
            let groups = self.client.list_api_groups_aggregated().await?;
            Ok::<_, kube::Error>(core.items.into_iter().chain(groups.items))
        };
        match tokio::time::timeout(DEADLINE, ask).await {
            Ok(Ok(groups)) => Ok(Served::new(groups, asked)),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err(late()),
        }
    }
}

fn late() -> String {
    format!("no answer within {} s", DEADLINE.as_secs())
}

fn full_name(group: &str, name: &str) -> String {
    if group.is_empty() { name.to_owned() } else { format!("{name}.{group}") }
}

impl Served {
    fn new(groups: impl Iterator<Item = APIGroupDiscovery>, asked: Instant) -> Self {
        let mut served =
            Self { kinds: Vec::new(), uncertain: BTreeSet::new(), by_kind: HashMap::new(), asked };
        for group in groups {
            let name = group.metadata.and_then(|metadata| metadata.name).unwrap_or_default();
            // The versions come in the order of preference.
            for version in group.versions {
                let version_name = version.version.unwrap_or_default();
                if version.freshness.as_deref() == Some("Stale") {
                    served.uncertain.insert(name.clone());
                }
                let api_version =
                    if name.is_empty() { version_name } else { format!("{name}/{version_name}") };
                let kinds = version.resources.into_iter();
                for kind in kinds.filter_map(|resource| Kind::served(&api_version, resource)) {
                    served.add(kind);
                }
            }
        }
        served
    }

    fn add(&mut self, kind: Kind) {
        if self.of_resource(&kind.resource.group, &kind.resource.plural).is_none() {
            let kind = Arc::new(kind);
            self.by_kind.entry(kind.resource.kind.clone()).or_default().push(kind.clone());
            self.kinds.push(kind);
        }
    }

    fn of_kind(&self, group: &str, kind: &str) -> Option<Arc<Kind>> {
        self.by_kind.get(kind)?.iter().find(|known| known.resource.group == group).cloned()
    }

    fn like(&self, group: &str, kind: &str) -> Option<Arc<Kind>> {
        let is_kind = |it: &str| kind.contains('*') || it == kind;
        let fits = |it: &&Arc<Kind>| is_like(group, &it.resource.group) && is_kind(&it.resource.kind);
        self.kinds.iter().find(fits).cloned()
    }

    /// The first group that has such a kind is meant, unless one is named.
    fn named(&self, name: &str, group: Option<&str>) -> Option<Arc<Kind>> {
        let is_it = |kind: &&Arc<Kind>| {
            group.is_none_or(|group| kind.resource.group == group)
                && (kind.resource.plural == name
                    || kind.resource.kind.eq_ignore_ascii_case(name)
                    || kind.names.iter().any(|known| known == name))
        };
        self.kinds.iter().find(is_it).cloned()
    }

    fn of_resource(&self, group: &str, plural: &str) -> Option<Arc<Kind>> {
        let is_it = |kind: &&Arc<Kind>| kind.resource.plural == plural && kind.resource.group == group;
        self.kinds.iter().find(is_it).cloned()
    }
}

/// Whether a name may be one that a pattern means: its ends are what the pattern's ends say.
fn is_like(pattern: &str, name: &str) -> bool {
    match (pattern.split_once('*'), pattern.rsplit_once('*')) {
        (Some((head, _)), Some((_, tail))) => name.starts_with(head) && name.ends_with(tail),
        _ => name == pattern,
    }
}

impl Kind {
    fn new(api_version: &str, kind: &str, plural: &str, namespaced: bool) -> Self {
        let resource = ApiResource {
            group: group(api_version).to_owned(),
            version: api_version.rsplit('/').next().unwrap_or_default().to_owned(),
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            plural: plural.to_owned(),
        };
        Self { resource, namespaced, names: Vec::new() }
    }

    /// A resource as it is served. What cannot be read one by one, such as a review, is no kind of object.
    fn served(api_version: &str, resource: APIResourceDiscovery) -> Option<Self> {
        let readable = resource.verbs.iter().any(|verb| verb == "get");
        let namespaced = resource.scope.as_deref() == Some("Namespaced");
        let (kind, plural) = (resource.response_kind?.kind?, resource.resource?);
        let names = resource.short_names.into_iter().chain(resource.singular_resource).collect();
        readable.then(|| Self { names, ..Self::new(api_version, &kind, &plural, namespaced) })
    }
}

#[cfg(test)]
mod tests;
