//! What there is, and where an object lives.

use std::borrow::Cow;

use serde_json::Value;

use super::object;

/// A resource of the API, as discovery shows it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Resource {
    /// `deployments`.
    pub plural: Cow<'static, str>,
    /// `apps`; empty for the core group.
    pub group: Cow<'static, str>,
    /// `v1`.
    pub version: Cow<'static, str>,
    /// `Deployment`.
    pub kind: Cow<'static, str>,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
}

impl Resource {
    /// A resource known at compile time.
    pub const fn fixed(
        group: &'static str,
        version: &'static str,
        plural: &'static str,
        kind: &'static str,
        namespaced: bool,
    ) -> Self {
        Self {
            plural: Cow::Borrowed(plural),
            group: Cow::Borrowed(group),
            version: Cow::Borrowed(version),
            kind: Cow::Borrowed(kind),
            namespaced,
        }
    }

    /// A resource known from discovery.
    pub fn new(group: String, version: String, plural: String, kind: String, namespaced: bool) -> Self {
        Self {
            plural: plural.into(),
            group: group.into(),
            version: version.into(),
            kind: kind.into(),
            namespaced,
        }
    }

    /// `apps/v1`, or `v1` for the core group.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_string()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// Whether an `apiVersion` and `kind` mean this resource.
    pub fn is(&self, api_version: &str, kind: &str) -> bool {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        self.kind == kind && self.group == group && self.version == version
    }

    /// The key of an object in a namespace, which does not count where objects have none.
    pub fn key(&self, namespace: &str, name: &str) -> Key {
        let namespace = if self.namespaced { namespace } else { "" };
        Key { resource: self.clone(), namespace: namespace.to_owned(), name: name.to_owned() }
    }

    /// The key of an object of this resource.
    pub fn key_of(&self, object: &Value) -> Key {
        self.key(object::namespace(object), object::name(object))
    }
}

/// One object's place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The resource.
    pub resource: Resource,
    /// Empty for what lives in no namespace.
    pub namespace: String,
    /// Empty for what is created with a generated name.
    pub name: String,
}

/// Deployments.
pub static DEPLOYMENTS: Resource = Resource::fixed("apps", "v1", "deployments", "Deployment", true);
/// ReplicaSets.
pub static REPLICA_SETS: Resource = Resource::fixed("apps", "v1", "replicasets", "ReplicaSet", true);
/// StatefulSets.
pub static STATEFUL_SETS: Resource = Resource::fixed("apps", "v1", "statefulsets", "StatefulSet", true);
/// DaemonSets.
pub static DAEMON_SETS: Resource = Resource::fixed("apps", "v1", "daemonsets", "DaemonSet", true);
/// What StatefulSets and DaemonSets keep their templates in.
pub static CONTROLLER_REVISIONS: Resource =
    Resource::fixed("apps", "v1", "controllerrevisions", "ControllerRevision", true);
/// Jobs.
pub static JOBS: Resource = Resource::fixed("batch", "v1", "jobs", "Job", true);
/// CronJobs.
pub static CRON_JOBS: Resource = Resource::fixed("batch", "v1", "cronjobs", "CronJob", true);
/// Pods.
pub static PODS: Resource = Resource::fixed("", "v1", "pods", "Pod", true);
/// Nodes.
pub static NODES: Resource = Resource::fixed("", "v1", "nodes", "Node", false);
/// Service accounts.
pub static SERVICE_ACCOUNTS: Resource = Resource::fixed("", "v1", "serviceaccounts", "ServiceAccount", true);
/// Namespaces.
pub static NAMESPACES: Resource = Resource::fixed("", "v1", "namespaces", "Namespace", false);
