//! Which rules of approval policies are about a drift, and what they say of it now.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};
use jiff::Timestamp;
use kausality_api::{
    API_VERSION, GROUP,
    drift::{Drift, DriftSpec, DriftStep},
    exception::{Action, ApprovalPolicy, PolicyKind, RuleCause},
    selector::Labels,
};
use kausality_core::{
    Review,
    exceptions::{self, Compiled, Exceptions, Held, Match, Ruled, Supposed},
    explain::Rule,
};
use kube::{
    Api, Client,
    api::ListParams,
    core::{ApiResource, DynamicObject},
};
use serde::Deserialize;
use serde_json::Value;

use super::{
    Ledger,
    reasons::step as found,
    refused,
    request::{objects, review},
    within,
};

/// How many rules are told of.
const SHOWN: usize = 20;

/// How policies of a kind are reached.
pub(crate) fn resource(kind: PolicyKind) -> ApiResource {
    ApiResource {
        group: GROUP.to_owned(),
        version: API_VERSION.rsplit('/').next().unwrap_or_default().to_owned(),
        api_version: API_VERSION.to_owned(),
        kind: kind.as_str().to_owned(),
        plural: kind.plural().to_owned(),
    }
}

/// What rules say of a drift now.
pub(super) async fn step(
    ledger: &Ledger,
    drift: &Drift,
    parent: Option<&Value>,
    now: Timestamp,
) -> DriftStep {
    let namespace = &drift.spec.child.namespace;
    let mut rules = Rules::read(&ledger.client, namespace).await;
    rules.learn_labels(&ledger.client, namespace).await;
    rules.hold(drift, parent, now)
}

/// The labels of a namespace.
///
/// # Errors
/// If it cannot be read, or there is none.
pub(crate) async fn labels(client: &Client, namespace: &str) -> Result<Labels> {
    let resource = ApiResource {
        group: String::new(),
        version: "v1".to_owned(),
        api_version: "v1".to_owned(),
        kind: "Namespace".to_owned(),
        plural: "namespaces".to_owned(),
    };
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    let found = within("the namespace cannot be read", api.get_opt(namespace)).await?;
    Ok(found.context("the namespace is gone")?.metadata.labels.unwrap_or_default())
}

/// The rules that there are, as far as they can be read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rules {
    compiled: Vec<Compiled>,
    /// The labels of namespaces, where they can be read.
    labels: BTreeMap<String, Labels>,
    /// What may not be listed.
    forbidden: Vec<String>,
    /// Why there may be more, otherwise.
    unread: Vec<String>,
    /// What is wrong with policies.
    faults: Vec<String>,
}

impl Rules {
    async fn read(client: &Client, namespace: &str) -> Self {
        let mut rules = Self::default();
        for kind in [PolicyKind::ApprovalPolicy, PolicyKind::ClusterApprovalPolicy] {
            match list(client, kind, namespace).await {
                Ok((objects, forbidden)) => {
                    rules.forbidden.extend(forbidden);
                    objects.into_iter().for_each(|object| rules.take(kind, object));
                }
                Err(error) => rules.unread.push(format!("{error:#}")),
            }
        }
        rules
    }

    /// The rules that may be about drifts of these namespaces.
    pub(crate) async fn of(client: &Client, namespaces: &BTreeSet<&str>) -> Self {
        let beside = namespaces.first().copied().unwrap_or_default();
        let mut rules = Self::read(client, beside).await;
        for namespace in namespaces {
            rules.learn_labels(client, namespace).await;
        }
        rules
    }

    async fn learn_labels(&mut self, client: &Client, namespace: &str) {
        if let Ok(labels) = labels(client, namespace).await {
            self.labels.insert(namespace.to_owned(), labels);
        }
    }

    /// The rule that denies a drift now, if one does. `None`: that cannot be told.
    pub(crate) fn denial(
        &self,
        drift: &DriftSpec,
        parent: Option<&Value>,
        now: Timestamp,
    ) -> Option<Option<Ruled>> {
        if !self.unseen().is_empty() || objects(drift).is_none() {
            return None;
        }
        let text = review(drift).to_string();
        let review = Review::parse(text.as_bytes()).ok()?;
        let ruled = Exceptions::new(&self.compiled).judge(&self.supposed(&review, drift, parent, now)).ruled;
        Some(ruled.filter(|ruled| ruled.action == Action::Deny))
    }

    fn supposed<'a>(
        &'a self,
        review: &'a Review<'a>,
        drift: &DriftSpec,
        parent: Option<&'a Value>,
        now: Timestamp,
    ) -> Supposed<'a> {
        let namespace = self.labels.get(&drift.child.namespace);
        Supposed { review, parent, namespace, cause: cause(drift), now }
    }

    /// Why there may be rules that are not seen, a line each.
    fn unseen(&self) -> Vec<String> {
        let mut lines = self.unread.clone();
        if !self.forbidden.is_empty() {
            let what = self.forbidden.join(" and ");
            lines.push(format!("you may not list {what}: ask for the verb \"list\" on them, of {GROUP}"));
        }
        lines
    }

    fn take(&mut self, kind: PolicyKind, object: DynamicObject) {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let name = kind.reference(&text(&object.metadata.namespace), &text(&object.metadata.name));
        let mut policy = serde_json::to_value(object).unwrap_or_default();
        // Items of lists need not say what they are.
        policy["apiVersion"] = API_VERSION.into();
        policy["kind"] = kind.as_str().into();
        let Ok(policy) = ApprovalPolicy::deserialize(&policy) else {
            self.faults.push(format!(
                "{name} cannot be understood: only those of its rules hold that deny and can be"
            ));
            self.compiled.extend(exceptions::salvaged(&policy));
            return;
        };
        self.compiled.push(exceptions::compile(&policy).unwrap_or_else(|_| {
            self.faults.push(format!("{name} is not valid: only those of its rules hold that deny"));
            exceptions::prohibitions(&policy)
        }));
    }

    /// Holds them against a drift.
    fn hold(&self, drift: &Drift, parent: Option<&Value>, now: Timestamp) -> DriftStep {
        let rules = Exceptions::new(&self.compiled);
        let unseen = self.unseen();
        if rules.is_empty() {
            let none = match unseen.as_slice() {
                [] => "there are no rules".to_owned(),
                why => format!("cannot be told: {}", why.join("; ")),
            };
            return found(Rule::Policy, none, self.faults.clone());
        }
        let notes = || unseen.iter().chain(&self.faults).cloned();
        let text = objects(&drift.spec).map(|_| review(&drift.spec).to_string());
        let Some(review) = text.as_ref().and_then(|text| Review::parse(text.as_bytes()).ok()) else {
            let finding = "cannot be told: the ledger does not hold the objects of this drift";
            return found(Rule::Policy, finding, notes());
        };
        let supposed = self.supposed(&review, &drift.spec, parent, now);
        let about: Vec<Held> = (rules.hold_each(&supposed).into_iter())
            .filter(|held| !matches!(held.matches, Match::Beside(_)))
            .collect();
        let finding = match rules.judge(&supposed).ruled {
            Some(ruled) if ruled.action == Action::Deny => format!("{ruled} denies it"),
            Some(ruled) => format!("{ruled} lets it pass"),
            None if about.is_empty() => "no rule is about such a change".to_owned(),
            None => "no rule decides".to_owned(),
        };
        let mut lines: Vec<String> = about.iter().take(SHOWN).map(told).collect();
        if about.len() > SHOWN {
            lines.push(format!("… and {} more rules", about.len() - SHOWN));
        }
        if drift.spec.child.kind == "Secret" && !about.is_empty() {
            lines.push("the ledger has digests for values: what rules say of values may be wrong".to_owned());
        }
        found(Rule::Policy, finding, lines.into_iter().chain(notes()))
    }
}

/// What rules call the cause of an entry's change.
pub(crate) fn cause(drift: &DriftSpec) -> RuleCause {
    match drift.denied_by {
        Some(_) => RuleCause::Origin,
        None => RuleCause::Drift,
    }
}

/// What one rule says.
fn told(Held { rule, matches, .. }: &Held) -> String {
    let deed = match (rule.action, rule.dry_run) {
        (Action::Deny, false) => "denies it",
        (Action::Deny, true) => "would deny it (dryRun)",
        (Action::Allow, false) => "lets it pass",
        (Action::Allow, true) => "would let it pass (dryRun)",
    };
    match matches {
        Match::Yes(None) => format!("{rule} matches, and {deed}"),
        Match::Yes(Some(note)) => format!("{rule} matches, and {deed}: {note}"),
        Match::No(why) | Match::Beside(why) => format!("{rule} does not match: {why}"),
    }
}

/// The policies of a kind, and what of them may not be listed. Who may not see all is shown those beside the child.
async fn list(
    client: &Client,
    kind: PolicyKind,
    namespace: &str,
) -> Result<(Vec<DynamicObject>, Option<String>)> {
    let (resource, plural) = (resource(kind), kind.plural());
    let what = format!("cannot list {plural}");
    let all = async |api: Api<DynamicObject>| within(&what, api.list(&ListParams::default())).await;
    match all(Api::all_with(client.clone(), &resource)).await {
        Ok(list) => Ok((list.items, None)),
        Err(error) => match refused(&error) {
            Some(404) => Ok((Vec::new(), None)),
            Some(403) if kind == PolicyKind::ApprovalPolicy && !namespace.is_empty() => {
                let beside = all(Api::namespaced_with(client.clone(), namespace, &resource)).await;
                Ok(match beside {
                    Ok(list) => (list.items, Some(format!("{plural} of other namespaces"))),
                    Err(_) => (Vec::new(), Some(plural.to_owned())),
                })
            }
            Some(403) => Ok((Vec::new(), Some(plural.to_owned()))),
            _ => Err(error),
        },
    }
}

#[cfg(test)]
mod tests;
