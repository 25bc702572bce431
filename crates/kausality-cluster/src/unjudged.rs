//! Kinds of parents that cannot be judged: their controllers change children, and nothing in their status shows when these
//! are done. They are named in the `status.unjudged` of the policy that covers the children.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use jiff::Timestamp;
use kausality_api::status::UnjudgedKind;
use kausality_core::{Decision, Known, KnownParent, Settings, is_bound_to_conflict, review::Request};
use serde_json::json;
use tokio::time::Instant;

use crate::{
    cluster::Cluster,
    grants::{apply_status, policy_of},
};

/// How soon the same kind is told of again, so that who reads it knows that it is still so.
const AGAIN: Duration = Duration::from_secs(3600);

/// How much is remembered.
const MAX_REMEMBERED: usize = 256;

/// What was told of when: the policy, the group and the resource.
#[derive(Debug, Default)]
pub(crate) struct Unjudged(Mutex<HashMap<(String, String, String), Instant>>);

impl Unjudged {
    /// Whether it is time to tell of a kind on behalf of a policy.
    fn is_due(&self, policy: &str, group: &str, resource: &str, now: Instant) -> bool {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        told.retain(|_, at| now.duration_since(*at) < AGAIN);
        let key = (policy.to_owned(), group.to_owned(), resource.to_owned());
        if told.contains_key(&key) || told.len() >= MAX_REMEMBERED {
            return false;
        }
        told.insert(key, now);
        true
    }
}

impl Cluster {
    /// Tells of the kind of a parent that a decision could not judge. Not where others of its kind show how far their
    /// controller has got: it will, too.
    pub(crate) async fn tell_unjudged(
        self: &Arc<Self>,
        request: &Request<'_>,
        known: &Known,
        decision: &Decision,
        settings: &Settings,
    ) {
        let KnownParent::Found { summary, resource } = &known.parent else { return };
        if !decision.unjudged || request.is_dry_run() || is_bound_to_conflict(request) {
            return;
        }
        let Some(policy) = policy_of(settings, request, known.namespace.as_deref()) else { return };
        let Ok(kind) = self.kinds.of_kind(&summary.id.api_version, &summary.id.kind).await else { return };
        if self.watched(&kind).is_some_and(|index| index.has_evidence()) {
            return;
        }
        let (policy, group) = (policy.metadata.name.clone(), summary.id.group().to_owned());
        if !self.unjudged.is_due(&policy, &group, resource, Instant::now()) {
            return;
        }
        let told = UnjudgedKind {
            kind: summary.id.kind.clone(),
            resource: resource.to_string(),
            // Stored to the second.
            last_seen: Timestamp::from_second(known.now.as_second()).unwrap_or(known.now),
            api_group: group,
        };
        let manager = format!("kausality-webhook/unjudged/{}.{}", told.resource, told.api_group);
        let status = json!({"unjudged": [told]});
        tokio::spawn(apply_status(self.fresh.clone(), policy, manager, status));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_kind_is_told_of_once_an_hour() {
        let (unjudged, now) = (Unjudged::default(), Instant::now());
        assert!(unjudged.is_due("p", "example.com", "apps", now));
        assert!(!unjudged.is_due("p", "example.com", "apps", now + AGAIN / 2));
        assert!(unjudged.is_due("p", "example.com", "others", now));
        assert!(unjudged.is_due("q", "example.com", "apps", now));
        assert!(unjudged.is_due("p", "example.com", "apps", now + AGAIN));
        let told = (0..2 * MAX_REMEMBERED).filter(|n| unjudged.is_due(&n.to_string(), "", "apps", now));
        assert!(told.count() < MAX_REMEMBERED);
    }
}
