//! What people are told about a policy.

use jiff::Timestamp;
use kausality_api::{
    status::{Condition, KausalityStatus},
    text::shorten_middle,
};

use super::{Finding, Policy, full_name};

/// Whether a policy is in force.
pub const READY: &str = "Ready";

/// Whether the API server asks the webhook about what the policy names.
pub const CONFIGURED: &str = "WebhookConfigured";

/// Whether the statuses of all parents show when their controllers are done. Left out where nothing else was seen.
pub const JUDGEABLE: &str = "Judgeable";

/// What follows where parents are Secrets, which are never granted unless they are named.
const WITHHELD: &str = "Parents that are Secrets cannot be read: where the policy enforces, changes of their children fail with code \
    500. Name secrets of the group \"\" in spec.resources if Kausality may read all of them.";

/// How many resources a message names.
const MAX_NAMED: usize = 10;

/// Characters of a message.
const MAX_MESSAGE: usize = 1000;

/// Why the configurations were not written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Trouble {
    /// There is no certificate that API servers could trust.
    #[error("there is no certificate for the webhook: {0}")]
    NoCertificate(String),
    /// The API server refused, or did not answer.
    #[error("{0}")]
    Refused(String),
}

/// The status of a policy, after what was found out about it and what became of the configurations. What the
/// webhook has seen is left out: that is not the controller's to write.
#[must_use]
pub fn status(
    policy: &Policy,
    finding: &Finding,
    outcome: Result<(), &Trouble>,
    now: Timestamp,
) -> KausalityStatus {
    let mut configured = configured(finding, outcome);
    let ready = ready(finding, &configured);
    if finding.withheld {
        configured.message.push(' ');
        configured.message.push_str(WITHHELD);
    }
    let judgeable = judgeable(finding, now).map(|told| (JUDGEABLE, told));
    let all = [(READY, ready), (CONFIGURED, configured)].into_iter().chain(judgeable);
    let conditions = all.map(|(kind, told)| {
        let before = policy.status.conditions.iter().find(|before| before.kind == kind);
        let since =
            before.filter(|before| before.status == told.status).map(|before| before.last_transition_time);
        Condition {
            kind: kind.to_owned(),
            status: told.status.to_owned(),
            reason: told.reason.to_owned(),
            message: shorten_middle(&told.message, MAX_MESSAGE),
            // Stored to the second.
            last_transition_time: since.unwrap_or(whole(now)),
            observed_generation: Some(policy.generation),
        }
    });
    KausalityStatus {
        conditions: conditions.collect(),
        observed_generation: Some(policy.generation),
        parents: Vec::new(),
        unjudged: Vec::new(),
    }
}

struct Told {
    status: &'static str,
    reason: &'static str,
    message: String,
}

fn told(status: &'static str, reason: &'static str, message: impl Into<String>) -> Told {
    Told { status, reason, message: message.into() }
}

fn configured(finding: &Finding, outcome: Result<(), &Trouble>) -> Told {
    let missing = some(&finding.missing);
    match outcome {
        _ if finding.fault.is_some() => {
            told("Unknown", "PolicyInvalid", "The policy cannot be understood; what it said before holds on.")
        }
        _ if finding.refused.is_some() => told(
            "False",
            "ConfigurationFailed",
            format!(
                "The API server does not take what follows from the policy; what it said before holds on: {}",
                finding.refused.as_deref().unwrap_or_default()
            ),
        ),
        Err(Trouble::NoCertificate(why)) => told(
            "False",
            "NoCertificate",
            format!(
                "There is no certificate for the webhook: {why}. API servers go on trusting whom they trust; where that is nobody, \
                nothing is registered until there is one."
            ),
        ),
        Err(Trouble::Refused(why)) => {
            told("False", "ConfigurationFailed", format!("The configuration is not up to date: {why}"))
        }
        Ok(()) if finding.nowhere.is_some() => {
            let why = finding.nowhere.unwrap_or_default();
            told("False", "NoNamespaces", format!("Nothing is watched: {why}."))
        }
        Ok(()) if finding.watched.is_empty() && finding.missing.is_empty() => told(
            "False",
            "NothingMeant",
            "Nothing is watched: \"*\" means neither nodes, events and leases, nor what else a node or its network needs to start, nor \
            anything of kausality.io, nor what is excluded. Name them.",
        ),
        Ok(()) if finding.watched.is_empty() => told(
            "False",
            "NothingServed",
            format!(
                "Nothing is watched: the API server does not serve {missing}. Names are plural names, as \"deployments\" is."
            ),
        ),
        Ok(()) if !finding.missing.is_empty() => told(
            "True",
            "SomeNotServed",
            format!(
                "{} are watched. Not served, and watched as soon as they are: {missing}.",
                some(&finding.watched)
            ),
        ),
        Ok(()) => told("True", "Configured", format!("{} are watched.", some(&finding.watched))),
    }
}

fn ready(finding: &Finding, configured: &Told) -> Told {
    if let Some(fault) = &finding.fault {
        return told("False", "PolicyInvalid", format!("The policy cannot be understood: {fault}"));
    }
    match configured.status {
        "True" if finding.withheld => {
            told("True", "ParentsWithheld", format!("The policy is in force. {WITHHELD}"))
        }
        "True" => told("True", configured.reason, "The policy is in force."),
        _ => told("False", configured.reason, configured.message.clone()),
    }
}

fn judgeable(finding: &Finding, now: Timestamp) -> Option<Told> {
    let recent = || finding.unjudged.iter().filter(|kind| kind.is_recent(now));
    let kinds: Vec<String> = recent().map(ToString::to_string).collect();
    let resources: Vec<String> = recent().map(|kind| full_name(&kind.api_group, &kind.resource)).collect();
    (!kinds.is_empty()).then(|| {
        told(
            "False",
            "NoStatusEvidence",
            format!(
                "Cannot be judged without settle: quiet: {}. Nothing in their status shows when their controllers are done, so no \
                change to their children is drift. Set settle: quiet or status.settled in a policy that names {}.",
                some(&kinds),
                some(&resources)
            ),
        )
    })
}

/// Names, but not too many.
fn some(names: &[String]) -> String {
    let named = names.iter().take(MAX_NAMED).cloned().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(MAX_NAMED) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

fn whole(now: Timestamp) -> Timestamp {
    Timestamp::from_second(now.as_second()).unwrap_or(now)
}
