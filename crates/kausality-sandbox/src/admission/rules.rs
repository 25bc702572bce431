//! Which webhook is asked about which write.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use serde_json::Value;

use super::conditions::Conditions;
use super::review::{Attributes, Operation};
use crate::kinds::Definition;
use crate::sandbox::lock;
use crate::store::Place;
use crate::store::selector::Selector;

/// A webhook of a configuration.
#[derive(Debug)]
pub(crate) struct Configured {
    pub(crate) name: String,
    pub(crate) client: Value,
    pub(crate) conditions: Conditions,
    /// Whether writes happen if it fails.
    pub(crate) ignored: bool,
    pub(crate) reinvoked: bool,
    pub(crate) timeout_seconds: u64,
    rules: Vec<Value>,
    /// Whether it is also asked about other versions of what its rules name.
    equivalent: bool,
    namespaces: Selector,
    objects: Selector,
}

/// The webhooks of configurations by collection, made once for each version of one.
#[derive(Default)]
pub(crate) struct Known(Mutex<BTreeMap<&'static str, Vec<Made>>>);

/// A configuration, and the webhooks in it.
type Made = (Arc<Value>, Vec<Arc<Configured>>);

impl Known {
    /// The webhooks of all configurations of a collection, in their order.
    pub(super) fn of(
        &self,
        collection: &'static str,
        configurations: &[(Place, Arc<Value>)],
    ) -> Vec<Arc<Configured>> {
        let mut known = lock(&self.0);
        let made = known.entry(collection).or_default();
        let wanted = || configurations.iter().map(|(_, configuration)| configuration);
        if made.len() != configurations.len()
            || !made.iter().zip(wanted()).all(|((of, _), it)| Arc::ptr_eq(of, it))
        {
            let mut before = std::mem::take(made);
            let kept = |it: &Arc<Value>| match before.iter().position(|(of, _)| Arc::ptr_eq(of, it)) {
                Some(at) => before.swap_remove(at),
                None => (Arc::clone(it), of(it)),
            };
            *made = wanted().map(kept).collect();
        }
        made.iter().flat_map(|(_, webhooks)| webhooks.iter().cloned()).collect()
    }
}

/// The webhooks of a configuration.
fn of(configuration: &Value) -> Vec<Arc<Configured>> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    list(&configuration["webhooks"])
        .iter()
        .map(|webhook| {
            Arc::new(Configured {
                name: webhook["name"].as_str().unwrap_or_default().to_owned(),
                client: webhook["clientConfig"].clone(),
                conditions: Conditions::of(&webhook["matchConditions"]),
                ignored: webhook["failurePolicy"] == "Ignore",
                reinvoked: webhook["reinvocationPolicy"] == "IfNeeded",
                timeout_seconds: webhook["timeoutSeconds"].as_u64().unwrap_or(10),
                rules: list(&webhook["rules"]),
                equivalent: webhook["matchPolicy"] != "Exact",
                namespaces: Selector::of_object(&webhook["namespaceSelector"]),
                objects: Selector::of_object(&webhook["objectSelector"]),
            })
        })
        .collect()
}

impl Configured {
    /// Whether it is asked, and in which version.
    pub(super) fn asks(
        &self,
        attributes: &Attributes<'_>,
        object: Option<&Value>,
        old: Option<&Value>,
        namespace: Option<&Value>,
    ) -> Option<Arc<Definition>> {
        if namespace.is_some_and(|labels| !self.namespaces.matches_labels(Some(labels))) {
            return None;
        }
        let labels =
            |object: Option<&Value>| object.and_then(|object| object.pointer("/metadata/labels").cloned());
        let of_interest = [object, old]
            .into_iter()
            .flatten()
            .any(|it| self.objects.matches_labels(labels(Some(it)).as_ref()));
        if !of_interest {
            return None;
        }
        let own = &attributes.call.definition;
        if self.names(attributes, own) {
            return Some(Arc::clone(own));
        }
        if !self.equivalent {
            return None;
        }
        let others = attributes.call.registry.all().filter(|other| other.collection == own.collection);
        others.into_iter().find(|other| self.names(attributes, other)).cloned()
    }

    fn names(&self, attributes: &Attributes<'_>, definition: &Definition) -> bool {
        let has = |list: &Value, wanted: &str| {
            list.as_array().is_some_and(|list| list.iter().any(|it| it == "*" || it == wanted))
        };
        let subresource = &attributes.call.subresource;
        let resource = |list: &Value| {
            list.as_array().into_iter().flatten().filter_map(Value::as_str).any(|rule| {
                let (plural, part) = rule.split_once('/').unwrap_or((rule, ""));
                (plural == "*" || plural == definition.plural)
                    && (part == *subresource || part == "*" || (rule == "*/*"))
            })
        };
        let operation = match attributes.operation {
            Operation::Create => "CREATE",
            Operation::Update => "UPDATE",
            Operation::Delete => "DELETE",
        };
        self.rules.iter().any(|rule| {
            let scope = match rule["scope"].as_str() {
                Some("Namespaced") => definition.namespaced,
                Some("Cluster") => !definition.namespaced,
                _ => true,
            };
            scope
                && has(&rule["operations"], operation)
                && has(&rule["apiGroups"], &definition.group)
                && has(&rule["apiVersions"], &definition.version)
                && resource(&rule["resources"])
        })
    }
}
