//! The resources that a webhook is registered for, which may come and go.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use kausality_cluster::{Cluster, Kind, UnknownKind, registration::Registration};
use kube::Client;

use super::in_time;

/// How often it is looked whether what was not served is served by now.
const LOOK: Duration = Duration::from_secs(10);

/// How often it is looked whether other kinds have turned out to be parents.
const GLANCE: Duration = Duration::from_millis(200);

/// How soon a registration that failed is tried again.
const RETRY: Duration = Duration::from_secs(2);

pub(super) struct Resources {
    names: Vec<String>,
    cluster: Arc<Cluster>,
    /// Those that were not served when it was last looked.
    missing: Mutex<BTreeSet<String>>,
}

impl Resources {
    pub(super) fn new(names: &[String], cluster: Arc<Cluster>) -> Self {
        Self { names: names.to_vec(), cluster, missing: Mutex::default() }
    }

    /// The kinds of those that are served; an error if that cannot be told now. One that is not served, since its operator
    /// was removed, must not keep the others from being protected.
    pub(super) async fn kinds(&self) -> Result<Vec<Arc<Kind>>, UnknownKind> {
        let (mut kinds, mut missing) = (Vec::new(), BTreeSet::new());
        for name in &self.names {
            let (plural, group) = name.split_once('.').unwrap_or((name, ""));
            match self.cluster.kinds.of_resource(group, plural).await {
                Ok(kind) => kinds.push(kind),
                Err(error @ UnknownKind::Failed(..)) => return Err(error),
                Err(error @ UnknownKind::NotServed(_)) => {
                    let known = self.missing.lock().unwrap_or_else(PoisonError::into_inner).contains(name);
                    if !known {
                        tracing::error!(resource = name, %error, "not watched, until it is served");
                    }
                    missing.insert(name.clone());
                }
            }
        }
        *self.missing.lock().unwrap_or_else(PoisonError::into_inner) = missing;
        Ok(kinds)
    }

    /// Has a kind watched from the start, if its objects are likely to own others. Those of the core group are not,
    /// and there are many of them.
    pub(super) fn require(&self, kind: &Arc<Kind>) {
        if !kind.resource.group.is_empty() {
            self.cluster.require(kind);
        }
    }

    /// Registers once requests can be decided, since they would wait earlier, and again whenever other kinds are
    /// served, or turn out to own objects of those; for ever.
    pub(super) async fn keep_registered(&self, registration: &mut Registration, client: Client) {
        let mut ticks = tokio::time::interval(Duration::from_millis(50));
        while !self.cluster.is_synced() {
            ticks.tick().await;
        }
        let mut looked: Option<Instant> = None;
        loop {
            let mut next = registration.clone();
            if looked.is_none_or(|looked| looked.elapsed() >= LOOK) {
                // What cannot be told now must not take anything out of protection.
                if let Ok(kinds) = self.kinds().await
                    && !kinds.is_empty()
                {
                    kinds.iter().for_each(|kind| self.require(kind));
                    next.kinds = kinds;
                }
                looked = Some(Instant::now());
            }
            let is_new =
                |kind: &Arc<Kind>| !next.kinds.contains(kind) && !registration.parents.contains(kind);
            let parents: Vec<Arc<Kind>> = self.cluster.watched_kinds().into_iter().filter(is_new).collect();
            next.parents.extend(parents);
            next.parents.retain(|kind| !next.kinds.contains(kind));
            if next.kinds.is_empty() || next == *registration {
                tokio::time::sleep(GLANCE).await;
                continue;
            }
            match in_time(next.apply(client.clone())).await {
                Ok(()) => {
                    *registration = next;
                    tracing::info!(
                        url = registration.url,
                        kinds = registration.kinds.len(),
                        parents = registration.parents.len(),
                        "registered"
                    );
                }
                Err(error) => {
                    tracing::error!(%error, "cannot register with the API server: trying again");
                    tokio::time::sleep(RETRY).await;
                    looked = None;
                }
            }
        }
    }
}
