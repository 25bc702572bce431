//! Which object is the parent of another: the owner that controls it, or one that a relation of their kinds tells.
//!
//! The relations are data. They are for kinds whose objects have no controlling owner although one is made for the other.

use serde::Deserialize;

use crate::{
    review::{Object, Text},
    summary::{ObjectId, Owner, Summary, group},
};

/// Owners that count as parents without `controller: true`, if they are an object's only owner: Cluster API makes templates
/// and MachineDeployments for a Cluster, and bootstrap and infrastructure objects for a MachineSet before there is a Machine.
/// A Secret stands in for a Cluster until that refers to what its topology makes for it.
const LOOSE_OWNERS: [(&str, &str, Of); 4] = [
    (CLUSTER_API, "Cluster", Of::Anything),
    (CLUSTER_API, "MachineSet", Of::Anything),
    (CLUSTER_API, "MachineDeployment", Of::Anything),
    ("", "Secret", Of::ClusterApi),
];

/// What may have such an owner.
enum Of {
    Anything,
    /// Objects of Cluster API and its providers.
    ClusterApi,
}

/// The groups of Cluster API and its providers.
const CLUSTER_API: &str = "cluster.x-k8s.io";

/// The label that Cluster API gives to what a topology makes, which may have no owner yet.
const OF_TOPOLOGY: &str = "\"topology.cluster.x-k8s.io/owned\"";

/// What a Cluster with a topology is made into: whatever names it.
const ALL: &str = "*";

/// The label that Crossplane gives to composites which are made for a claim.
const CLAIMED: &str = "\"crossplane.io/claim-name\"";

/// The parent of an object.
pub(crate) fn parent(object: &Object<'_>) -> Option<Owner> {
    let metadata = &object.metadata;
    if let Some(owner) = &metadata.owner {
        return Some(Owner::from(owner));
    }
    let loose = metadata.only_owner.as_ref().filter(|owner| {
        LOOSE_OWNERS.iter().any(|(of, kind, child)| {
            let fits = match child {
                Of::Anything => true,
                Of::ClusterApi => group(&object.api_version).ends_with(CLUSTER_API),
            };
            fits && group(&owner.api_version) == *of && *owner.kind == **kind
        })
    });
    loose.map(Owner::from).or_else(|| claim(object)).or_else(|| topology(object))
}

/// The Cluster whose topology an object is made for, before the Cluster owns it.
fn topology(object: &Object<'_>) -> Option<Owner> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Spec<'a> {
        #[serde(borrow)]
        cluster_name: Text<'a>,
    }
    object.metadata.labels.filter(|labels| labels.get().contains(OF_TOPOLOGY))?;
    let unowned = object.metadata.only_owner.is_none() && group(&object.api_version) == CLUSTER_API;
    let spec: Spec<'_> = serde_json::from_str(object.intent.field("spec").filter(|_| unowned)?.get()).ok()?;
    Some(Owner {
        api_version: object.api_version.to_string(),
        kind: "Cluster".to_owned(),
        name: spec.cluster_name.to_string(),
        uid: String::new(),
        namespace: None,
    })
}

/// The claim that a composite is made for (Crossplane). It has no uid: the claim confirms it.
fn claim(object: &Object<'_>) -> Option<Owner> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Spec<'a> {
        #[serde(borrow)]
        claim_ref: Reference<'a>,
    }
    object.metadata.labels.filter(|labels| labels.get().contains(CLAIMED))?;
    let spec: Spec<'_> = serde_json::from_str(object.intent.field("spec")?.get()).ok()?;
    let Reference { api_version, kind, namespace, name } = spec.claim_ref;
    Some(Owner {
        api_version: api_version.to_string(),
        kind: kind.to_string(),
        name: name.to_string(),
        uid: String::new(),
        namespace: Some(namespace.to_string()),
    })
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Reference<'a> {
    #[serde(borrow, default)]
    api_version: Text<'a>,
    #[serde(borrow, default)]
    kind: Text<'a>,
    #[serde(borrow, default)]
    namespace: Text<'a>,
    #[serde(borrow, default)]
    name: Text<'a>,
}

/// The object that another names as the one that is made for it, as `Kind/name` (claims of Crossplane), or `*` for all
/// that name it themselves (Clusters with a topology).
pub(crate) fn made_for(object: &Object<'_>) -> Option<Box<str>> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Spec<'a> {
        #[serde(borrow)]
        resource_ref: Reference<'a>,
    }
    let spec = object.intent.field("spec");
    if object.kind == "Cluster" && group(&object.api_version) == CLUSTER_API {
        return spec.filter(|spec| spec.get().contains("\"topology\"")).map(|_| ALL.into());
    }
    let spec = spec.filter(|spec| spec.get().contains("\"resourceRef\""))?;
    let Reference { kind, name, .. } = serde_json::from_str::<Spec<'_>>(spec.get()).ok()?.resource_ref;
    Some(format!("{}/{}", &*kind, &*name).into())
}

/// Whether an object is the parent of another, as that one says.
pub(crate) fn confirms(parent: &Summary, owner: Option<&Owner>, child: &ObjectId) -> bool {
    owner.is_none_or(|owner| !owner.uid.is_empty())
        || parent.made_for.as_deref() == Some(ALL)
        || parent.made_for.as_deref() == Some(&*format!("{}/{}", child.kind, child.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(object: &str, expected: Option<&str>) {
        let object = Object::parse(object).unwrap();
        let found = parent(&object).map(|owner| format!("{} {} {}", owner.kind, owner.name, owner.uid));
        assert_eq!(found.as_deref(), expected);
    }

    fn owned(api_version: &str, owner: &str) -> String {
        format!(
            r#"{{"apiVersion":"{api_version}","kind":"PlayedCluster","metadata":{{"ownerReferences":[{owner}]}}}}"#
        )
    }

    #[test]
    fn the_only_owner_of_what_cluster_api_makes_is_its_parent() {
        let cluster = r#"{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Cluster","name":"a","uid":"1"}"#;
        let secret = r#"{"apiVersion":"v1","kind":"Secret","name":"a-shim","uid":"2"}"#;
        let provider = "infrastructure.cluster.x-k8s.io/v1";
        check(&owned(provider, cluster), Some("Cluster a 1"));
        check(&owned(provider, secret), Some("Secret a-shim 2"));
        check(&owned(provider, &format!("{cluster},{secret}")), None);
        check(&owned("v1", secret), None);
        check(&owned("v1", cluster), Some("Cluster a 1"));
    }

    #[test]
    fn a_topology_is_the_parent_of_what_it_makes_before_it_owns_it() {
        let made = |labels: &str| {
            format!(
                r#"{{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"MachineDeployment",
                "metadata":{{"name":"a-pool","labels":{{{labels}}}}},"spec":{{"clusterName":"a"}}}}"#
            )
        };
        let text = made(r#""topology.cluster.x-k8s.io/owned":"""#);
        check(&text, Some("Cluster a "));
        check(&made(""), None);

        let child = ObjectId { kind: "MachineDeployment".to_owned(), ..ObjectId::default() };
        let owner = parent(&Object::parse(&text).unwrap());
        let confirmed = |spec: &str| {
            let text =
                format!(r#"{{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Cluster","spec":{spec}}}"#);
            confirms(&Summary::of(&Object::parse(&text).unwrap()), owner.as_ref(), &child)
        };
        assert!(confirmed(r#"{"topology":{"classRef":{"name":"b"}}}"#));
        assert!(!confirmed(r#"{"paused":true}"#), "somebody else's label");
    }
}
