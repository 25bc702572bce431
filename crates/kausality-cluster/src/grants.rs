//! Kinds of parents that policies do not name, and the question for them.
//!
//! A policy names the kinds that it is about, and not those of their parents. Where the API server forbids to read a
//! parent, or nobody need be asked who decides about drifts on it, its kind is written into the `status.parents` of the
//! policy that covers the child; whoever grants rights to the webhook, and registers it, finds it there.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use kausality_api::{API_VERSION, GROUP, policy::Kausality, status::ParentKind};
use kausality_core::{
    Namespace, Settings,
    policy::{self, Target},
    review::Request,
    summary::{Owner, group},
};
use kube::{
    Api, Client,
    api::{Patch, PatchParams},
    core::DynamicObject,
};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::{
    cluster::{Cluster, WatchHealth},
    kinds::Kind,
};

/// How soon the same is asked for again: nobody may have been there to answer.
const AGAIN: Duration = Duration::from_secs(60);

/// How much is remembered. Anybody can name a kind in an owner reference.
const MAX_REMEMBERED: usize = 256;

/// How long a question may take.
const DEADLINE: Duration = Duration::from_secs(10);

/// The longest name of a field manager.
const MAX_MANAGER: usize = 128;

/// What may not be read, and what was asked for when.
#[derive(Debug, Default)]
pub(crate) struct Grants {
    refused: Mutex<HashMap<(String, String), Arc<Kind>>>,
    asked: Mutex<HashMap<(String, ParentKind), Instant>>,
}

impl Grants {
    /// Notes whether a kind may be read.
    pub(crate) fn note(&self, kind: &Kind, forbidden: bool) {
        let key = (kind.resource.group.clone(), kind.resource.kind.clone());
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        if !forbidden {
            refused.remove(&key);
        } else if refused.len() < MAX_REMEMBERED {
            refused.insert(key, Arc::new(kind.clone()));
        }
    }

    /// Whether a watch does not work since its kind may not be read.
    pub(crate) fn explain(&self, watch: &WatchHealth) -> bool {
        let works = watch.health.synced && watch.health.outage.is_none();
        let refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        !works && refused.contains_key(&(watch.group.clone(), watch.kind.clone()))
    }

    /// The kind that an owner reference names, if it may not be read.
    fn refused(&self, owner: &Owner) -> Option<Arc<Kind>> {
        let key = (group(&owner.api_version).to_owned(), owner.kind.clone());
        self.refused.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned()
    }

    /// Whether it is time to ask for a kind on behalf of a policy.
    fn is_due(&self, policy: &str, parent: &ParentKind, now: Instant) -> bool {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.retain(|_, at| now.duration_since(*at) < AGAIN);
        let key = (policy.to_owned(), parent.clone());
        if asked.contains_key(&key) || asked.len() >= MAX_REMEMBERED {
            return false;
        }
        asked.insert(key, now);
        true
    }
}

/// What is missing where a kind may not be read. Secrets are granted to a policy that names them, and to no other.
pub(crate) fn missing_rule(kind: &Kind) -> String {
    let resource = &kind.resource;
    if is_secret(kind) {
        return "kausality may not read Secrets, unless a policy names them".to_owned();
    }
    let group = if resource.group.is_empty() { String::new() } else { format!(".{}", resource.group) };
    format!("kausality lacks the right to get, list, watch and patch {}{group}", resource.plural)
}

/// What to do where a parent is a Secret.
fn advice(policy: &str) -> String {
    format!(
        "name secrets (apiGroups [\"\"]) in spec.resources of policy {policy} if it may read all of them, or exclude the child"
    )
}

fn is_secret(kind: &Kind) -> bool {
    kind.resource.group.is_empty() && kind.resource.plural == "secrets"
}

impl Cluster {
    /// Asks for the right to read the kind of a parent, where that is what is missing, in the policy that covers the
    /// request. What people have to do themselves.
    pub(crate) fn ask_for(
        &self,
        owner: &Owner,
        request: &Request<'_>,
        namespace: Option<&Namespace>,
    ) -> Option<String> {
        let kind = self.grants.refused(owner)?;
        let settings = self.settings();
        let policy = &policy_of(&settings, request, namespace)?.metadata.name;
        let parent = parent_kind(&kind);
        if !request.is_dry_run() && self.grants.is_due(policy, &parent, Instant::now()) {
            tracing::warn!(
                policy,
                resource = parent.resource,
                group = parent.api_group,
                "{}",
                missing_rule(&kind)
            );
            self.ask(policy.to_owned(), parent);
        }
        is_secret(&kind).then(|| advice(policy))
    }

    /// Tells of the kind of a parent, if the policy that covers a request does not have it reviewed. Secrets are read where
    /// a policy names them, and sent to nobody else.
    pub(crate) fn tell_of(&self, owner: &Owner, request: &Request<'_>, namespace: Option<&Namespace>) {
        let settings = self.settings();
        if settings.policies.is_empty() || request.is_dry_run() {
            return;
        }
        let Some(kind) = self.kinds.seen(&owner.api_version, &owner.kind) else { return };
        let Some(policy) = policy_of(&settings, request, namespace) else { return };
        let (group, plural) = (&*kind.resource.group, &*kind.resource.plural);
        let withheld = is_secret(&kind) && !policy::names(&policy.spec, group, plural);
        if withheld || policy::covers_parents(&policy.spec, group, plural, kind.namespaced) {
            return;
        }
        let (name, parent) = (&policy.metadata.name, parent_kind(&kind));
        if self.grants.is_due(name, &parent, Instant::now()) {
            self.ask(name.clone(), parent);
        }
    }

    /// Each kind has a field manager of its own: replicas that know different kinds must not take away each other's.
    fn ask(&self, policy: String, parent: ParentKind) {
        let manager = format!("kausality-webhook/{}.{}", parent.resource, parent.api_group);
        let status = json!({"parents": [parent]});
        tokio::spawn(apply_status(self.fresh.clone(), policy, manager, status));
    }
}

/// The policy that covers a request.
pub(crate) fn policy_of<'a>(
    settings: &'a Settings,
    request: &Request<'_>,
    namespace: Option<&Namespace>,
) -> Option<&'a Kausality> {
    let object = request.old_object.as_ref().or(request.object.as_ref());
    let labels = object.map(|object| object.metadata.labels()).unwrap_or_default();
    settings.policies.policy(&Target {
        group: &request.resource.group,
        resource: &request.resource.resource,
        namespace: &request.namespace,
        namespace_labels: namespace.map(|namespace| &namespace.labels),
        labels: &labels,
    })
}

fn parent_kind(kind: &Kind) -> ParentKind {
    ParentKind {
        api_group: kind.resource.group.clone(),
        kind: kind.resource.kind.clone(),
        resource: kind.resource.plural.clone(),
    }
}

/// Writes into the status of a policy what a field manager knows.
pub(crate) async fn apply_status(client: Client, policy: String, mut manager: String, status: Value) {
    let resource = kube::core::ApiResource {
        group: GROUP.to_owned(),
        version: API_VERSION.rsplit('/').next().unwrap_or_default().to_owned(),
        api_version: API_VERSION.to_owned(),
        kind: "Kausality".to_owned(),
        plural: "kausalities".to_owned(),
    };
    manager.truncate(MAX_MANAGER);
    let api: Api<DynamicObject> = Api::all_with(client, &resource);
    let patch = json!({"apiVersion": API_VERSION, "kind": "Kausality", "metadata": {"name": policy},
        "status": status});
    let (parameters, patch) = (PatchParams::apply(&manager).force(), Patch::Apply(patch));
    match tokio::time::timeout(DEADLINE, api.patch_status(&policy, &parameters, &patch)).await {
        Ok(Ok(_)) => {}
        // It has gone, or is one of a file, by which nobody is registered.
        Ok(Err(kube::Error::Api(status))) if status.code == 404 => {}
        Ok(Err(error)) => tracing::warn!(policy, %error, "cannot tell of the kind of a parent"),
        Err(_) => tracing::warn!(policy, "cannot tell of the kind of a parent: no answer"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(group: &str, plural: &str) -> Kind {
        let resource = kube::core::ApiResource {
            group: group.to_owned(),
            version: "v1".to_owned(),
            api_version: "v1".to_owned(),
            kind: "K".to_owned(),
            plural: plural.to_owned(),
        };
        Kind { resource, namespaced: true, names: Vec::new() }
    }

    /// What is forbidden is nothing that an operator could mend at the watch, and no reason to be woken at night.
    #[test]
    fn a_watch_that_is_forbidden_is_not_ill() {
        let grants = Grants::default();
        let watch = |kind: &str, synced: bool, outage: Option<Duration>| WatchHealth {
            group: String::new(),
            kind: kind.to_owned(),
            health: crate::Health { synced, outage, ..crate::Health::default() },
        };
        let broken = || watch("K", false, Some(AGAIN));
        assert!(!grants.explain(&broken()), "nobody has been refused");
        grants.note(&kind("", "secrets"), true);
        assert!(grants.explain(&broken()));
        assert!(grants.explain(&watch("K", true, Some(AGAIN))), "a right that was taken back");
        assert!(!grants.explain(&watch("K", true, None)), "a right that was given");
        assert!(!grants.explain(&watch("Other", false, None)));
        grants.note(&kind("", "secrets"), false);
        assert!(!grants.explain(&broken()));
    }

    /// Rights to Secrets do not come by themselves: whoever is told that they are missing is told what to do.
    #[test]
    fn what_is_missing_says_what_to_do() {
        let secrets = missing_rule(&kind("", "secrets"));
        assert_eq!(secrets, "kausality may not read Secrets, unless a policy names them");
        assert!(advice("p").contains("in spec.resources of policy p"), "{}", advice("p"));
        let others = missing_rule(&kind("example.com", "secrets"));
        assert_eq!(others, "kausality lacks the right to get, list, watch and patch secrets.example.com");
    }

    #[test]
    fn the_same_is_not_asked_for_all_the_time() {
        let (grants, now) = (Grants::default(), Instant::now());
        let parent = |kind: &str| ParentKind {
            api_group: "example.com".to_owned(),
            kind: kind.to_owned(),
            resource: kind.to_lowercase(),
        };
        assert!(grants.is_due("p", &parent("A"), now));
        assert!(!grants.is_due("p", &parent("A"), now + AGAIN / 2));
        assert!(grants.is_due("p", &parent("B"), now));
        assert!(grants.is_due("q", &parent("A"), now));
        assert!(grants.is_due("p", &parent("A"), now + AGAIN));
        let asked = (0..2 * MAX_REMEMBERED).filter(|n| grants.is_due(&n.to_string(), &parent("A"), now));
        assert!(asked.count() < MAX_REMEMBERED);
    }
}
