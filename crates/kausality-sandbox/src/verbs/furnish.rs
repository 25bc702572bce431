//! What is in a cluster before anybody comes, and what follows from what is stored.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::aggregation;
use crate::kinds::{Definition, custom};
use crate::rbac::aggregate;
use crate::sandbox::{Sandbox, State};

/// The namespaces that every cluster has.
const NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

impl Sandbox {
    /// Creates what every cluster has.
    pub(crate) fn furnish(&self) {
        let now = self.now().rfc3339();
        let mut state = self.state();
        for name in NAMESPACES {
            let uid = state.generator.uid();
            let namespace = json!({
                "kind": "Namespace", "apiVersion": "v1",
                "metadata": {"name": name, "uid": uid, "creationTimestamp": now,
                    "labels": {"kubernetes.io/metadata.name": name}},
                "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"},
            });
            state.store.put("/namespaces", (String::new(), name.to_owned()), namespace);
        }
        let uid = state.generator.uid();
        let mut service = json!({
            "kind": "Service", "apiVersion": "v1",
            "metadata": {"name": "kubernetes", "namespace": "default", "uid": uid, "creationTimestamp": now,
                "labels": {"component": "apiserver", "provider": "kubernetes"}},
            "spec": {"type": "ClusterIP", "sessionAffinity": "None", "internalTrafficPolicy": "Cluster",
                "ports": [{"name": "https", "protocol": "TCP", "port": 443, "targetPort": 6443}]},
            "status": {"loadBalancer": {}},
        });
        super::create::addresses(&mut state, &mut service);
        state.store.put("/services", ("default".to_owned(), "kubernetes".to_owned()), service);
        if self.inner.authorizer.is_some() {
            for (collection, mut object) in crate::rbac::defaults::objects() {
                let uid = state.generator.uid();
                let metadata = crate::metadata::of(&mut object);
                metadata.insert("uid".to_owned(), uid.into());
                metadata.insert("creationTimestamp".to_owned(), now.clone().into());
                let name = crate::metadata::name(&object).to_owned();
                state.store.put(collection, (String::new(), name), object);
            }
            aggregate::settle(&mut state.store);
        }
    }
}

impl State {
    /// What is served follows from the CustomResourceDefinitions and APIServices that are stored, and some roles from
    /// others.
    pub(crate) fn take_note(&mut self, definition: &Definition, stored: &Arc<Value>) {
        if definition.is("rbac.authorization.k8s.io", "clusterroles") {
            aggregate::settle(&mut self.store);
        }
        if definition.kind == "CustomResourceDefinition" && !definition.is_custom() {
            let (group, plural) = names(stored);
            let registry = Arc::make_mut(&mut self.registry);
            registry.remove(&group, &plural);
            custom::definitions(stored).into_iter().for_each(|definition| registry.add(definition));
        }
        self.leave(definition, stored, true);
    }

    /// With a CustomResourceDefinition, all that it defined goes.
    pub(crate) fn take_note_of_removal(&mut self, definition: &Definition, last: &Arc<Value>) {
        if definition.is("rbac.authorization.k8s.io", "clusterroles") {
            aggregate::settle(&mut self.store);
        }
        if definition.kind == "CustomResourceDefinition" && !definition.is_custom() {
            let (group, plural) = names(last);
            let collection = format!("{group}/{plural}");
            for place in self.store.names_of(&collection) {
                self.store.remove(&collection, &place, None);
            }
            Arc::make_mut(&mut self.registry).remove(&group, &plural);
        }
        self.leave(definition, last, false);
    }

    /// An APIService leaves its group and version to another server for as long as it is there.
    fn leave(&mut self, definition: &Definition, service: &Value, is_there: bool) {
        if definition.is("apiregistration.k8s.io", "apiservices")
            && let Some(api) = aggregation::elsewhere(service)
        {
            Arc::make_mut(&mut self.registry).leave(api, is_there);
        }
    }
}

fn names(definition: &Value) -> (String, String) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    (text(&definition["spec"]["group"]), text(&definition["spec"]["names"]["plural"]))
}
