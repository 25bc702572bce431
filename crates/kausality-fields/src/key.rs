//! What identifies the items of a list, without a schema.
//!
//! The choice is made for all given lists together, so that one item cannot be known by its name on one side and by
//! its port on the other.

use crate::path::Step;
use crate::scalar::Scalar;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The items of one list by their identity, each with its place.
pub(crate) type Items<'a> = BTreeMap<Step, (usize, &'a Value)>;

/// A way to tell items apart.
#[derive(Clone, Copy)]
enum Identity {
    /// Items are objects, identified by these fields together.
    Key(&'static [&'static str]),
    /// Items are strings, identified by themselves.
    Member,
}

const GENERIC: &[Identity] = &[
    Identity::Key(&["name"]),
    Identity::Key(&["key"]),
    Identity::Key(&["id"]),
    Identity::Key(&["type"]),
    Identity::Key(&["uid"]),
];

/// What Kubernetes' own types say of a list with this name. Lists keyed by `name` (containers, env, volumes) are
/// found by the generic keys.
///
/// Sets are named only where no other use of the field name is in order: a list wrongly taken for a set would hide
/// a change. `resources` is left out for that reason.
fn specific(field: &str) -> &'static [Identity] {
    match field {
        "ports" => &[
            Identity::Key(&["containerPort", "protocol"]),
            Identity::Key(&["port", "protocol"]),
            Identity::Key(&["name"]),
        ],
        "ownerReferences" => &[Identity::Key(&["uid"])],
        "conditions" => &[Identity::Key(&["type"])],
        "volumeMounts" => &[Identity::Key(&["mountPath"])],
        "volumeDevices" => &[Identity::Key(&["devicePath"])],
        "hostAliases" | "hostIPs" | "podIPs" => &[Identity::Key(&["ip"])],
        "topologySpreadConstraints" => &[Identity::Key(&["topologyKey", "whenUnsatisfiable"])],
        "taints" => &[Identity::Key(&["key", "effect"])],
        "finalizers"
        | "accessModes"
        | "verbs"
        | "apiGroups"
        | "resourceNames"
        | "nonResourceURLs"
        | "policyTypes"
        | "usages"
        | "externalIPs"
        | "loadBalancerSourceRanges" => &[Identity::Member],
        _ => &[],
    }
}

/// The items of all lists by the first identity that every item has, uniquely in its list; `None` if the lists are
/// ordered. `field` is the name of the field that holds the lists.
pub(crate) fn items<'a, const N: usize>(
    field: Option<&str>,
    lists: [&'a [Value]; N],
) -> Option<[Items<'a>; N]> {
    let candidates = field.map(specific).unwrap_or_default().iter().chain(GENERIC);
    candidates.copied().find_map(|identity| {
        let mut indexed = [const { Items::new() }; N];
        for (items, list) in indexed.iter_mut().zip(lists) {
            for item in list.iter().enumerate() {
                if items.insert(identity.step(item.1)?, item).is_some() {
                    return None;
                }
            }
        }
        Some(indexed)
    })
}

impl Identity {
    fn step(self, item: &Value) -> Option<Step> {
        match self {
            Self::Member => item.as_str().map(|text| Step::Value(Scalar::Text(text.to_owned()))),
            Self::Key(parts) => {
                let item = item.as_object()?;
                let keyed = |name: &&'static str| {
                    let value = match item.get(*name) {
                        Some(value) => Scalar::of(value),
                        None => default(name),
                    };
                    Some((Cow::Borrowed(*name), value?))
                };
                parts.iter().map(keyed).collect::<Option<_>>().map(Step::Key)
            }
        }
    }
}

/// What the absence of a field of a key means. The API server sets the protocol of a port, so a manifest without it
/// names the same port.
fn default(name: &str) -> Option<Scalar> {
    (name == "protocol").then(|| Scalar::Text("TCP".to_owned()))
}

#[cfg(test)]
mod tests;
