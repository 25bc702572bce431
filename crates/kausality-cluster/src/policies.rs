//! `Kausality` policies, from a watch.

use std::{
    collections::BTreeMap,
    ops::ControlFlow,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use kausality_api::{GROUP, policy::Kausality};
use kausality_core::policy::Policies;
use kube::{Api, core::DynamicObject};

use crate::{
    cluster::Cluster,
    feed::{Mirror, feed},
    kinds::{Kind, UnknownKind},
    pulse::{Health, Pulse},
};

/// How often it is looked whether policies are served, while they are not.
const LOOK: Duration = Duration::from_secs(30);

/// How soon it is tried again after the API server did not answer.
const RETRY: Duration = Duration::from_secs(1);

/// Where policies come from.
#[derive(Debug, Default)]
pub(crate) struct Source {
    pulse: Pulse,
    count: Mutex<usize>,
    /// There are certainly none, since the kind is not served.
    absent: AtomicBool,
}

impl Source {
    /// Whether the policies have been read, or there are certainly none.
    pub(crate) fn is_synced(&self) -> bool {
        self.absent.load(Ordering::Relaxed) || self.pulse.is_synced()
    }

    pub(crate) fn health(&self) -> Health {
        self.pulse.health(*self.count.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Keeps the cluster's policies up to date, for ever. Where the kind is not served there are none; policies from
/// elsewhere (`fixed`) always hold.
pub async fn follow(cluster: Arc<Cluster>, fixed: Vec<Kausality>) {
    let kind = served(&cluster, "kausalities", &cluster.policies.absent).await;
    let api: Api<DynamicObject> = Api::all_with(cluster.fresh.clone(), &kind.resource);
    let book = Book { cluster: &cluster, fixed, pages: Mutex::default() };
    feed(api, "policies", &cluster.policies.pulse, &book).await;
}

/// One of our kinds, once it is served; until then `absent` says that there are certainly no objects of it.
pub(crate) async fn served(cluster: &Cluster, plural: &str, absent: &AtomicBool) -> Arc<Kind> {
    loop {
        match cluster.kinds.of_resource(GROUP, plural).await {
            Ok(kind) => return kind,
            Err(UnknownKind::NotServed(_)) => {
                absent.store(true, Ordering::Relaxed);
                tokio::time::sleep(LOOK).await;
            }
            Err(error) => {
                tracing::warn!(%error, plural, "policies cannot be looked for");
                tokio::time::sleep(RETRY).await;
            }
        }
    }
}

/// All policies, written into the cluster's settings whenever one changes.
struct Book<'a> {
    cluster: &'a Cluster,
    fixed: Vec<Kausality>,
    pages: Mutex<Pages>,
}

#[derive(Default)]
struct Pages {
    known: BTreeMap<String, Kausality>,
    arriving: BTreeMap<String, Kausality>,
}

impl Book<'_> {
    fn pages(&self) -> MutexGuard<'_, Pages> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn publish(&self, change: impl FnOnce(&mut Pages)) {
        let mut pages = self.pages();
        change(&mut pages);
        *self.cluster.policies.count.lock().unwrap_or_else(PoisonError::into_inner) = pages.known.len();
        let all = self.fixed.iter().chain(pages.known.values()).cloned().collect();
        self.cluster.set_policies(Policies::new(all));
    }
}

impl Mirror for Book<'_> {
    fn begin(&self) {
        self.pages().arriving.clear();
    }

    fn arrive(&self, object: DynamicObject) -> ControlFlow<()> {
        let mut pages = self.pages();
        let policy = read(&object, &pages.known);
        pages.arriving.extend(policy);
        ControlFlow::Continue(())
    }

    fn complete(&self) {
        self.publish(|pages| pages.known = std::mem::take(&mut pages.arriving));
    }

    fn apply(&self, object: DynamicObject) -> ControlFlow<()> {
        self.publish(|pages| {
            let policy = read(&object, &pages.known);
            pages.known.extend(policy);
        });
        ControlFlow::Continue(())
    }

    fn remove(&self, object: DynamicObject) {
        self.publish(|pages| {
            pages.known.remove(object.metadata.name.as_deref().unwrap_or_default());
        });
    }
}

/// Reads a policy. One that cannot be understood holds as it last could be: an edit must not lift protection by
/// mistake.
fn read(object: &DynamicObject, known: &BTreeMap<String, Kausality>) -> Option<(String, Kausality)> {
    let name = object.metadata.name.clone().unwrap_or_default();
    match serde_json::to_value(object).and_then(serde_json::from_value::<Kausality>) {
        Ok(policy) => Some((name, policy)),
        Err(error) => {
            tracing::warn!(policy = name, %error, "a policy cannot be understood");
            known.get(&name).map(|policy| (name, policy.clone()))
        }
    }
}
