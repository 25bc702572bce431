//! `Kausality` policies, from a watch.

use std::{
    collections::BTreeMap,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use futures::StreamExt;
use kausality_api::{API_VERSION, policy::Kausality};
use kausality_core::policy::Policies;
use kube::{
    Api,
    core::DynamicObject,
    runtime::{
        WatchStreamExt,
        watcher::{self, Event, watcher},
    },
};

use crate::{cluster::Cluster, kinds::UnknownKind};

/// How often it is looked whether policies are served, while they are not.
const LOOK: Duration = Duration::from_secs(30);

/// How soon it is tried again after the API server did not answer.
const RETRY: Duration = Duration::from_secs(1);

/// Keeps the cluster's policies up to date, for ever. Where the kind is not served there are none; policies from
/// elsewhere (`fixed`) always hold.
pub async fn follow(cluster: Arc<Cluster>, fixed: Vec<Kausality>) {
    let kind = loop {
        match cluster.kinds.of_resource(API_VERSION, "kausalities").await {
            Ok(kind) => break kind,
            Err(UnknownKind::NotServed(_)) => {
                cluster.policies_known.store(true, Ordering::Relaxed);
                tokio::time::sleep(LOOK).await;
            }
            Err(error) => {
                tracing::warn!(%error, "policies cannot be looked for");
                tokio::time::sleep(RETRY).await;
            }
        }
    };
    let api: Api<DynamicObject> = Api::all_with(cluster.client.clone(), &kind.resource);
    let mut events = watcher(api, watcher::Config::default()).default_backoff().boxed();
    let mut known: BTreeMap<String, Kausality> = BTreeMap::new();
    let mut arriving = BTreeMap::new();
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::Init) => {
                arriving.clear();
                continue;
            }
            Ok(Event::InitApply(object)) => {
                arriving.extend(read(&object, &known));
                continue;
            }
            Ok(Event::Apply(object)) => {
                let policy = read(&object, &known);
                known.extend(policy);
            }
            Ok(Event::Delete(object)) => {
                known.remove(object.metadata.name.as_deref().unwrap_or_default());
            }
            Ok(Event::InitDone) => known = std::mem::take(&mut arriving),
            Err(error) => {
                tracing::warn!(%error, "watch of policies failed");
                continue;
            }
        }
        let all = fixed.iter().cloned().chain(known.values().cloned()).collect();
        cluster.set_policies(Policies::new(all));
        cluster.policies_known.store(true, Ordering::Relaxed);
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
