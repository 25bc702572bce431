//! The service account controller: every namespace has the account `default`.

use serde_json::json;

use super::{
    Cache, Change, Controller, Key, NAMESPACES, Outcome, SERVICE_ACCOUNTS, Time, Watched, Write, object,
};

/// The account that Pods have if they name none.
const DEFAULT: &str = "default";

/// The controller that gives each namespace its service account.
#[derive(Debug, Default)]
pub struct ServiceAccounts {}

impl Controller for ServiceAccounts {
    fn name(&self) -> &str {
        "service-account-controller"
    }

    fn watches(&self) -> Watched {
        Watched::These(vec![NAMESPACES.clone(), SERVICE_ACCOUNTS.clone()])
    }

    fn keys(&mut self, _: &Cache, change: &Change) -> Vec<Key> {
        let name = match change.resource == NAMESPACES {
            true => object::name(change.object()),
            false => object::namespace(change.object()),
        };
        vec![NAMESPACES.key("", name)]
    }

    fn sync(&mut self, cache: &Cache, key: &Key, _: Time) -> Outcome {
        let alive = cache.at(key).is_some_and(|namespace| !object::deleting(namespace));
        if !alive || cache.at(&SERVICE_ACCOUNTS.key(&key.name, DEFAULT)).is_some() {
            return Outcome::default();
        }
        let account = json!({"apiVersion": "v1", "kind": "ServiceAccount",
            "metadata": {"name": DEFAULT, "namespace": key.name}});
        Outcome::writes(vec![Write::create(&SERVICE_ACCOUNTS, account)])
    }
}
