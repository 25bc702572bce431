//! A scheduler: each Pod goes to a node.

use serde_json::{Value, json};

use super::{
    Action, Cache, Change, Controller, Key, NODES, Outcome, PODS, Time, Watched, Write, daemonset, object,
    pod,
};

/// The scheduler of the sandbox. A Pod goes to the node that it asks for by name, or else to the first there is.
#[derive(Debug, Default)]
pub struct Scheduler {}

impl Controller for Scheduler {
    fn name(&self) -> &str {
        "kube-scheduler"
    }

    fn user(&self) -> String {
        "system:kube-scheduler".to_owned()
    }

    fn watches(&self) -> Watched {
        Watched::These(vec![PODS.clone(), NODES.clone()])
    }

    fn keys(&mut self, cache: &Cache, change: &Change) -> Vec<Key> {
        let waiting = |pod: &&std::sync::Arc<Value>| waits(pod);
        if change.resource == PODS {
            return change.after.iter().filter(waiting).map(|pod| PODS.key_of(pod)).collect();
        }
        if change.before.is_none() {
            cache.list(&PODS).filter(waiting).map(|pod| PODS.key_of(pod)).collect()
        } else {
            Vec::new()
        }
    }

    fn sync(&mut self, cache: &Cache, key: &Key, _: Time) -> Outcome {
        let Some(pod) = cache.at(key).filter(|pod| waits(pod)) else { return Outcome::default() };
        let asked = daemonset::node_of(pod);
        let node =
            cache.list(&NODES).map(|node| object::name(node)).find(|node| asked.is_empty() || *node == asked);
        let Some(node) = node else { return Outcome::default() };
        let binding = json!({
            "apiVersion": "v1", "kind": "Binding",
            "metadata": { "name": key.name, "namespace": key.namespace, "uid": object::uid(pod) },
            "target": { "apiVersion": "v1", "kind": "Node", "name": node },
        });
        Outcome::writes(vec![Write { key: key.clone(), action: Action::Bind(binding) }])
    }
}

fn waits(pod: &Value) -> bool {
    object::text(&pod["spec"]["nodeName"]).is_empty() && pod::active(pod)
}
