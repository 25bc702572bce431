//! Kinds and resources, by discovery: plural names and scopes are never guessed.

use std::{
    collections::HashMap,
    sync::{Arc, PoisonError, RwLock},
    time::{Duration, Instant},
};

use kausality_core::summary::group;
use kube::{Client, core::ApiResource};

/// A kind that the API server serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kind {
    /// How it is reached.
    pub resource: ApiResource,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
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

/// The kinds that have been asked for.
pub struct Kinds {
    client: Client,
    versions: RwLock<HashMap<String, Arc<Version>>>,
}

/// One version of an API group, as it was served at a time.
struct Version {
    kinds: Vec<Kind>,
    read: Instant,
}

/// A kind that was not served is asked for again after this time: a CRD may have come since.
const RETRY: Duration = Duration::from_secs(5);

/// How long the API server may take to tell. The client tries again and again while a group's server is down, and a
/// request waits twice: for a decision, and for its confirmation.
const DEADLINE: Duration = Duration::from_secs(2);

impl Kinds {
    /// Kinds of the cluster behind `client`.
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self { client, versions: RwLock::default() }
    }

    /// The kind of this name.
    ///
    /// # Errors
    /// If it is not served, or cannot be asked for.
    pub async fn of_kind(&self, api_version: &str, kind: &str) -> Result<Kind, UnknownKind> {
        self.find(api_version, |known| known.resource.kind == kind, kind).await
    }

    /// The kind of this resource.
    ///
    /// # Errors
    /// If it is not served, or cannot be asked for.
    pub async fn of_resource(&self, api_version: &str, plural: &str) -> Result<Kind, UnknownKind> {
        self.find(api_version, |known| known.resource.plural == plural, plural).await
    }

    /// The kind of this resource, in the version that its group prefers.
    ///
    /// # Errors
    /// If it is not served, or cannot be asked for.
    pub async fn of_group_resource(&self, group: &str, plural: &str) -> Result<Kind, UnknownKind> {
        if group.is_empty() {
            return self.of_resource("v1", plural).await;
        }
        let groups = self.client.list_api_groups().await;
        let groups = groups.map_err(|error| UnknownKind::Failed(group.to_owned(), error.to_string()))?.groups;
        let served = groups.into_iter().find(|served| served.name == group);
        let preferred =
            served.and_then(|served| served.preferred_version.or_else(|| served.versions.into_iter().next()));
        match preferred {
            Some(version) => self.of_resource(&version.group_version, plural).await,
            None => Err(UnknownKind::NotServed(format!("{plural}.{group}"))),
        }
    }

    async fn find(
        &self,
        api_version: &str,
        is_it: impl Fn(&Kind) -> bool,
        name: &str,
    ) -> Result<Kind, UnknownKind> {
        let known = self.versions.read().unwrap_or_else(PoisonError::into_inner).get(api_version).cloned();
        if let Some(version) = known {
            if let Some(kind) = version.kinds.iter().find(|kind| is_it(kind)) {
                return Ok(kind.clone());
            }
            if version.read.elapsed() < RETRY {
                return Err(UnknownKind::NotServed(format!("{api_version} {name}")));
            }
        }
        let version = Arc::new(self.discover(api_version).await?);
        let found = version.kinds.iter().find(|kind| is_it(kind)).cloned();
        let mut versions = self.versions.write().unwrap_or_else(PoisonError::into_inner);
        versions.insert(api_version.to_owned(), version);
        found.ok_or_else(|| UnknownKind::NotServed(format!("{api_version} {name}")))
    }

    async fn discover(&self, api_version: &str) -> Result<Version, UnknownKind> {
        let ask = async {
            match group(api_version) {
                "" => self.client.list_core_api_resources(api_version).await,
                _ => self.client.list_api_group_resources(api_version).await,
            }
        };
        let served = tokio::time::timeout(DEADLINE, ask).await.map_err(|_| {
            let why = format!("no answer within {} s", DEADLINE.as_secs());
            UnknownKind::Failed(api_version.to_owned(), why)
        })?;
        let resources = match served {
            Ok(list) => list.resources,
            Err(kube::Error::Api(status)) if status.code == 404 => Vec::new(),
            Err(error) => return Err(UnknownKind::Failed(api_version.to_owned(), error.to_string())),
        };
        let kinds = resources.into_iter().filter(|resource| !resource.name.contains('/'));
        let kinds = kinds.map(|served| Kind {
            resource: ApiResource {
                group: group(api_version).to_owned(),
                version: api_version.rsplit('/').next().unwrap_or_default().to_owned(),
                api_version: api_version.to_owned(),
                kind: served.kind,
                plural: served.name,
            },
            namespaced: served.namespaced,
        });
        Ok(Version { kinds: kinds.collect(), read: Instant::now() })
    }
}
