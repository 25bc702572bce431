//! Which drifts are meant, by what they are like.

use anyhow::{Result, anyhow};
use clap::{Args, ValueEnum};
use jiff::{SignedDuration, Timestamp};
use kausality_api::{
    drift::{Drift, DriftState, short_user},
    selector::{LabelSelector, Labels},
};
use kausality_cluster::Kinds;
use serde_json::Value;

use super::reference::{NamedObject, ObjectName};
use crate::span;

/// Which drifts are meant.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Filter {
    /// Only drifts of children with these labels, as kubectl selects them: app=web,tier!=db; labels of drifts count, too
    #[arg(short = 'l', long, value_name = "SELECTOR")]
    pub(crate) selector: Option<String>,

    /// Only drifts in this state; several with commas
    #[arg(long, value_enum, value_delimiter = ',', ignore_case = true)]
    pub(crate) state: Vec<StateArgument>,

    /// Only drifts of children of this parent
    #[arg(long, value_name = "KIND/NAME", value_parser = ObjectName::parse)]
    pub(crate) parent: Option<ObjectName>,

    /// Only drifts of this child
    #[arg(long, value_name = "KIND/NAME", value_parser = ObjectName::parse)]
    pub(crate) child: Option<ObjectName>,

    /// Only drifts by this user; a service account may be named in short: kube-system:deployment-controller
    #[arg(long, value_name = "USER")]
    pub(crate) actor: Option<String>,

    /// Only drifts that were seen in this time: 90m, 2h, 7d
    #[arg(long, value_name = "TIME", value_parser = span::duration)]
    pub(crate) since: Option<SignedDuration>,
}

/// A state of a drift.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum StateArgument {
    /// Denied, for want of an approval
    Blocked,
    /// Denied, since somebody rejected it
    Rejected,
    /// Not a drift: denied by a policy, for want of an approval
    Denied,
    /// Let pass with a warning
    Passed,
    /// Over
    Resolved,
}

impl From<StateArgument> for DriftState {
    fn from(state: StateArgument) -> Self {
        match state {
            StateArgument::Blocked => Self::Blocked,
            StateArgument::Rejected => Self::Rejected,
            StateArgument::Denied => Self::Denied,
            StateArgument::Passed => Self::Passed,
            StateArgument::Resolved => Self::Resolved,
        }
    }
}

impl Filter {
    /// Whether anything is said.
    pub(crate) fn is_any(&self) -> bool {
        let Self { selector, state, parent, child, actor, since } = self;
        let objects = parent.is_some() || child.is_some();
        objects || selector.is_some() || !state.is_empty() || actor.is_some() || since.is_some()
    }

    /// The same with the kinds that are meant. `resolved`: drifts that are over are meant, too.
    ///
    /// # Errors
    /// If the selector makes no sense, or the cluster cannot be asked for its kinds.
    pub(crate) async fn resolve(&self, kinds: &Kinds, resolved: bool, now: Timestamp) -> Result<Selection> {
        let object = async |name: &Option<ObjectName>| match name {
            Some(name) => name.clone().resolve(kinds).await.map(Some),
            None => Ok(None),
        };
        let states: Vec<DriftState> = self.state.iter().copied().map(Into::into).collect();
        let labels = self.selector.as_deref().map(LabelSelector::parse).transpose();
        Ok(Selection {
            labels: labels.map_err(|why| anyhow!("this is no selector of labels: {why}"))?,
            resolved: resolved || states.contains(&DriftState::Resolved),
            states,
            parent: object(&self.parent).await?,
            child: object(&self.child).await?,
            actor: self.actor.clone(),
            since: self.since.and_then(|since| now.checked_sub(since).ok()),
        })
    }
}

/// Which drifts are meant, once it is clear.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selection {
    /// What is asked of the labels of children and drifts.
    pub(crate) labels: Option<LabelSelector>,
    /// Whether those that are over are meant, too.
    pub(crate) resolved: bool,
    pub(crate) states: Vec<DriftState>,
    pub(crate) parent: Option<NamedObject>,
    pub(crate) child: Option<NamedObject>,
    pub(crate) actor: Option<String>,
    pub(crate) since: Option<Timestamp>,
}

impl Selection {
    /// Whether a drift is meant.
    pub(crate) fn has(&self, drift: &Drift) -> bool {
        (self.resolved || drift.status.state.is_open()) && self.would_have(drift)
    }

    /// Whether a drift is meant, be it over or not.
    pub(crate) fn would_have(&self, drift: &Drift) -> bool {
        (self.states.is_empty() || self.states.contains(&drift.status.state))
            && self.parent.as_ref().is_none_or(|parent| parent.is_parent(drift))
            && self.child.as_ref().is_none_or(|child| child.is_child(drift))
            && self.actor.as_deref().is_none_or(|actor| is_actor(actor, &drift.spec.request.user))
            && self.since.is_none_or(|since| drift.status.last_seen >= since)
            && self.labels.as_ref().is_none_or(|wanted| wanted.matches(&labels(drift)))
    }
}

/// The labels of a drift, and of its child as it was last seen. Those of a Secret are digests, and match nothing.
fn labels(drift: &Drift) -> Labels {
    let child = drift.spec.new_object.as_ref().or(drift.spec.old_object.as_ref());
    let of_child = child.and_then(|child| child.pointer("/metadata/labels")).and_then(Value::as_object);
    let text = |(key, value): (&String, &Value)| Some((key.clone(), value.as_str()?.to_owned()));
    let mut labels: Labels = of_child.into_iter().flatten().filter_map(text).collect();
    labels.extend(drift.metadata.labels.clone());
    labels
}

/// Whether a user is meant: by the whole name, as tables show it, or by the name of a service account alone.
fn is_actor(wanted: &str, user: &str) -> bool {
    let short = short_user(user);
    user == wanted
        || short == wanted
        || (user.starts_with("system:serviceaccount:")
            && short.split_once(':').is_some_and(|(_, name)| name == wanted))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::ledger::fixture::drift;

    #[test]
    fn a_service_account_is_known_by_each_of_its_names() {
        let user = "system:serviceaccount:infra:eks";
        for (wanted, expected) in
            [(user, true), ("infra:eks", true), ("eks", true), ("infra", false), ("ks", false)]
        {
            assert_eq!(is_actor(wanted, user), expected, "{wanted}");
        }
        assert!(is_actor("alice", "alice"));
        assert!(!is_actor("b", "a:b"), "only service accounts have namespaces");
    }

    #[test]
    fn labels_of_the_child_count_as_those_of_the_drift_do() {
        let child = |labels: Value| json!({"metadata": {"labels": labels}});
        let updated = json!({"metadata": {"labels": {"kausality.io/parent-uid": "u"}}, "spec": {
            "oldObject": child(json!({"app": "old"})), "newObject": child(json!({"app": "web", "tier": "front"}))}});
        let before = json!({"spec": {"oldObject": child(json!({"app": "web"}))}});
        for (changes, selector, expected) in [
            (&updated, "app=web,tier!=db", true),
            (&updated, "app=web,kausality.io/parent-uid=u", true),
            (&updated, "app=old", false),
            (&updated, "tier=db", false),
            (&before, "app=web", true),
            (&json!({}), "app", false),
        ] {
            let labels = Some(LabelSelector::parse(selector).unwrap());
            let selection = Selection { labels, ..Selection::default() };
            assert_eq!(selection.has(&drift(changes).drift), expected, "{selector}");
        }
    }
}
