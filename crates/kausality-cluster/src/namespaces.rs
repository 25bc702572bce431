//! Namespaces: their labels, and the mode they set.

use std::{
    collections::HashMap,
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicBool, Ordering},
    },
};

use futures::StreamExt;
use kausality_api::annotation::MODE;
use kausality_core::Namespace;
use kube::{
    Api, Client,
    core::{ApiResource, DynamicObject},
    runtime::{
        WatchStreamExt,
        watcher::{self, Event, watcher},
    },
};

/// All namespaces.
#[derive(Debug, Default)]
pub(crate) struct Namespaces {
    known: RwLock<HashMap<String, Arc<Namespace>>>,
    synced: AtomicBool,
}

impl Namespaces {
    pub(crate) fn get(&self, name: &str) -> Option<Arc<Namespace>> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    pub(crate) fn is_synced(&self) -> bool {
        self.synced.load(Ordering::Relaxed)
    }

    fn update(&self, change: impl FnOnce(&mut HashMap<String, Arc<Namespace>>)) {
        change(&mut self.known.write().unwrap_or_else(PoisonError::into_inner));
    }
}

fn read(object: DynamicObject) -> (String, Arc<Namespace>) {
    let metadata = object.metadata;
    let mode = metadata.annotations.and_then(|mut annotations| annotations.remove(MODE));
    let namespace = Namespace { labels: metadata.labels.unwrap_or_default(), mode };
    (metadata.name.unwrap_or_default(), Arc::new(namespace))
}

/// How namespaces are reached.
pub(crate) fn resource() -> ApiResource {
    ApiResource {
        group: String::new(),
        version: "v1".to_owned(),
        api_version: "v1".to_owned(),
        kind: "Namespace".to_owned(),
        plural: "namespaces".to_owned(),
    }
}

/// Keeps the namespaces up to date, for ever.
pub(crate) async fn feed(client: Client, namespaces: Arc<Namespaces>) {
    let api: Api<DynamicObject> = Api::all_with(client, &resource());
    let mut events = watcher(api, watcher::Config::default()).default_backoff().boxed();
    let mut arriving = HashMap::new();
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::Init) => arriving.clear(),
            Ok(Event::InitApply(object)) => {
                arriving.extend([read(object)]);
            }
            Ok(Event::InitDone) => {
                namespaces.update(|known| *known = std::mem::take(&mut arriving));
                namespaces.synced.store(true, Ordering::Relaxed);
            }
            Ok(Event::Apply(object)) => namespaces.update(|known| known.extend([read(object)])),
            Ok(Event::Delete(object)) => namespaces.update(|known| {
                known.remove(&read(object).0);
            }),
            Err(error) => tracing::warn!(%error, "watch of namespaces failed"),
        }
    }
}
