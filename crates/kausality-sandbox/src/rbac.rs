//! Who may do what: roles and their bindings, as Kubernetes' RBAC reads them.
//!
//! [`Index`] is made of the stored objects and answers without looking at them again: what is bound to a user or a group
//! is found by its name, however many bindings there are. Nobody is kept from giving away more than they may do
//! themselves: there are no escalation checks.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex};

use serde_json::Value;

use crate::identity::{MASTERS, User};
use crate::metadata;
use crate::sandbox::lock;
use crate::store::Store;

pub(crate) mod access;
pub(crate) mod aggregate;
pub(crate) mod defaults;
mod rules;

pub(crate) use access::Access;
use rules::Rule;

const ROLES: &str = "rbac.authorization.k8s.io/roles";
const CLUSTER_ROLES: &str = "rbac.authorization.k8s.io/clusterroles";
const BINDINGS: &str = "rbac.authorization.k8s.io/rolebindings";
const CLUSTER_BINDINGS: &str = "rbac.authorization.k8s.io/clusterrolebindings";
const COLLECTIONS: [&str; 4] = [ROLES, CLUSTER_ROLES, BINDINGS, CLUSTER_BINDINGS];

/// Whether something may be done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) allowed: bool,
    /// By what, or why it cannot be told.
    pub(crate) reason: String,
}

/// The index of what is stored, made again when a role or a binding has changed.
#[derive(Default)]
pub(crate) struct Authorizer(Mutex<Option<([u64; 4], Arc<Index>)>>);

impl Authorizer {
    pub(crate) fn index(&self, store: &Store) -> Arc<Index> {
        let revisions = COLLECTIONS.map(|collection| store.revision_of(collection));
        let mut known = lock(&self.0);
        if let Some((at, index)) = &*known
            && *at == revisions
        {
            return Arc::clone(index);
        }
        let index = Arc::new(Index::of(&COLLECTIONS.map(|collection| store.list(collection, None))));
        *known = Some((revisions, Arc::clone(&index)));
        index
    }
}

type Listed = Vec<((String, String), Arc<Value>)>;

/// Who is bound to what.
#[derive(Debug, Default)]
pub(crate) struct Index {
    everywhere: HashMap<Subject, Vec<Grant>>,
    /// By namespace.
    within: HashMap<String, HashMap<Subject, Vec<Grant>>>,
}

/// Whom a binding names.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Subject {
    User(String),
    Group(String),
}

/// What a binding gives to one subject.
#[derive(Debug)]
struct Grant {
    /// The rules of the role; or what is missing.
    rules: Result<Arc<Vec<Rule>>, String>,
    /// `ClusterRoleBinding "a" of ClusterRole "b" to User "c"`.
    by: String,
}

impl Index {
    fn of([roles, cluster_roles, bindings, cluster_bindings]: &[Listed; 4]) -> Self {
        let all = roles.iter().chain(cluster_roles);
        let roles: BTreeMap<_, _> =
            all.map(|(place, role)| (place.clone(), Arc::new(rules::of(role)))).collect();
        let rules_of = |namespace: &str, binding: &Value| {
            let (kind, name) =
                (metadata::text(binding, "/roleRef/kind"), metadata::text(binding, "/roleRef/name"));
            let namespace = if kind == "ClusterRole" { "" } else { namespace };
            let found = roles.get(&(namespace.to_owned(), name.to_owned()));
            let missing = || format!("{}.rbac.authorization.k8s.io {name:?} not found", kind.to_lowercase());
            found.cloned().ok_or_else(missing)
        };
        let mut index = Self::default();
        for ((namespace, name), binding) in cluster_bindings.iter().chain(bindings) {
            let rules = rules_of(namespace, binding);
            let into = match namespace.as_str() {
                "" => &mut index.everywhere,
                namespace => index.within.entry(namespace.to_owned()).or_default(),
            };
            let binding_name = match namespace.as_str() {
                "" => format!("ClusterRoleBinding {name:?}"),
                namespace => format!("RoleBinding {:?}", format!("{name}/{namespace}")),
            };
            let role = format!(
                "{} {:?}",
                metadata::text(binding, "/roleRef/kind"),
                metadata::text(binding, "/roleRef/name")
            );
            for (subject, called) in subjects(binding, namespace) {
                let by = format!("{binding_name} of {role} to {called}");
                into.entry(subject).or_default().push(Grant { rules: rules.clone(), by });
            }
        }
        index
    }

    /// Whether a user may do something.
    pub(crate) fn allows(&self, user: &User, access: &Access<'_>) -> Answer {
        if user.groups.iter().any(|group| group == MASTERS) {
            return Answer { allowed: true, reason: String::new() };
        }
        let mut missing = BTreeSet::new();
        for grant in self.grants(user, access.namespace()) {
            match &grant.rules {
                Ok(rules) if rules.iter().any(|rule| rule.allows(access)) => {
                    return Answer { allowed: true, reason: format!("RBAC: allowed by {}", grant.by) };
                }
                Ok(_) => {}
                Err(error) => _ = missing.insert(error.as_str()),
            }
        }
        let missing: Vec<_> = missing.into_iter().collect();
        let reason = match missing.as_slice() {
            [] => String::new(),
            [one] => format!("RBAC: {one}"),
            several => format!("RBAC: [{}]", several.join(", ")),
        };
        Answer { allowed: false, reason }
    }

    /// All rules that hold for a user in a namespace.
    fn rules<'a>(&'a self, user: &'a User, namespace: &str) -> Vec<&'a Rule> {
        let grants = self.grants(user, namespace).filter_map(|grant| grant.rules.as_ref().ok());
        grants.flat_map(|rules| rules.iter()).collect()
    }

    /// What is bound to a user, everywhere and in a namespace.
    fn grants<'a>(&'a self, user: &'a User, namespace: &str) -> impl Iterator<Item = &'a Grant> {
        let scopes = [Some(&self.everywhere), self.within.get(namespace)];
        let subjects = move || {
            let groups = user.groups.iter().cloned().map(Subject::Group);
            std::iter::once(Subject::User(user.name.clone())).chain(groups)
        };
        scopes.into_iter().flatten().flat_map(move |scope| {
            subjects().flat_map(move |subject| scope.get(&subject).into_iter().flatten())
        })
    }
}

/// Whom a binding names, with what messages call them.
fn subjects(binding: &Value, namespace: &str) -> Vec<(Subject, String)> {
    let text = |value: &Value, key: &str| value[key].as_str().unwrap_or_default().to_owned();
    let subjects = binding["subjects"].as_array().into_iter().flatten();
    subjects
        .filter_map(|subject| {
            let name = text(subject, "name");
            let found = match subject["kind"].as_str()? {
                "User" => (Subject::User(name.clone()), format!("User {name:?}")),
                "Group" => (Subject::Group(name.clone()), format!("Group {name:?}")),
                "ServiceAccount" => {
                    let said = text(subject, "namespace");
                    let namespace = if said.is_empty() { namespace } else { &said };
                    let called = format!("ServiceAccount {:?}", format!("{name}/{namespace}"));
                    (Subject::User(format!("system:serviceaccount:{namespace}:{name}")), called)
                }
                _ => return None,
            };
            Some(found)
        })
        .collect()
}

#[cfg(test)]
mod tests;
