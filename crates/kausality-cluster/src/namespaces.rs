//! Namespaces: their labels, and the mode they set.

use std::{
    collections::HashMap,
    ops::ControlFlow,
    sync::{Arc, Mutex, PoisonError, RwLock},
};

use kausality_api::annotation::MODE;
use kausality_core::Namespace;
use kube::core::{ApiResource, DynamicObject};

use crate::{
    feed::Mirror,
    pulse::{Health, Pulse},
};

type Known = HashMap<String, Arc<Namespace>>;

/// All namespaces.
#[derive(Debug, Default)]
pub(crate) struct Namespaces {
    pub(crate) pulse: Pulse,
    known: RwLock<Known>,
    arriving: Mutex<Known>,
}

impl Namespaces {
    pub(crate) fn get(&self, name: &str) -> Option<Arc<Namespace>> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    pub(crate) fn health(&self) -> Health {
        self.pulse.health(self.known.read().unwrap_or_else(PoisonError::into_inner).len())
    }

    fn update(&self, change: impl FnOnce(&mut Known)) {
        change(&mut self.known.write().unwrap_or_else(PoisonError::into_inner));
    }

    fn arriving(&self) -> std::sync::MutexGuard<'_, Known> {
        self.arriving.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Mirror for Namespaces {
    fn begin(&self) {
        self.arriving().clear();
    }

    fn arrive(&self, object: DynamicObject) -> ControlFlow<()> {
        self.arriving().extend([read(object)]);
        ControlFlow::Continue(())
    }

    fn complete(&self) {
        let arrived = std::mem::take(&mut *self.arriving());
        self.update(|known| *known = arrived);
    }

    fn apply(&self, object: DynamicObject) -> ControlFlow<()> {
        self.update(|known| known.extend([read(object)]));
        ControlFlow::Continue(())
    }

    fn remove(&self, object: DynamicObject) {
        self.update(|known| {
            known.remove(&read(object).0);
        });
    }
}

pub(crate) fn read(object: DynamicObject) -> (String, Arc<Namespace>) {
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
