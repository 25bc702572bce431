//! Rules held against a change on its own, whatever a cluster would make of it: for those who write policies.

use std::sync::Arc;

use jiff::Timestamp;
use kausality_api::{
    approval::ApprovalMode,
    exception::{Action, RuleCause},
    selector::Labels,
};
use kausality_fields::{Path, Redaction};
use serde_json::Value;

use super::{
    Exceptions, Findings, Ruled,
    asked::{Asked, Behind, Beside, Known},
    rule::Rule,
};
use crate::{
    cause::Cause,
    change::Change,
    facts::{Namespace, Settings},
    review::{Object, Review},
    summary::{ObjectId, Summary},
};

/// A change, and what is supposed to be known of it.
#[derive(Clone, Copy, Debug)]
pub struct Supposed<'a> {
    /// The change. Of a `scale`, the object behind it is not known: rules that ask for it cannot tell.
    pub review: &'a Review<'a>,
    /// The whole parent. Rules that ask for it cannot tell without.
    pub parent: Option<&'a Value>,
    /// The labels of the child's namespace. Without, expressions see no namespace.
    pub namespace: Option<&'a Labels>,
    /// What the change is taken for.
    pub cause: RuleCause,
    /// The time.
    pub now: Timestamp,
}

/// What the rules say of a change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Judgement {
    /// The rule that decides.
    pub ruled: Option<Ruled>,
    /// Rules that match, and are only tried.
    pub tried: Vec<Ruled>,
    /// Why others that are about such changes do not match.
    pub evidence: Vec<String>,
}

/// One rule, held against a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// The rule.
    pub rule: Ruled,
    /// Whether it matches.
    pub matches: Match,
    /// What it asks for beside who does what to which object: without, nothing can be told but that it is about others.
    pub needs: Vec<Need>,
}

/// Something that a rule may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Which fields change.
    Fields,
    /// What the objects say.
    Values,
    /// What the request says of itself.
    Request,
    /// The parent.
    Parent,
    /// The labels of the child's namespace.
    Namespace,
}

/// Whether a rule matches a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Match {
    /// It does, with what there is to say about that.
    Yes(Option<String>),
    /// It is about such changes, and does not match: why.
    No(String),
    /// It is about others: in which way.
    Beside(String),
}

impl Exceptions {
    /// Holds the rules against a change, in the order in which the gates ask them: those that deny, then those that allow.
    #[must_use]
    pub fn judge(&self, supposed: &Supposed<'_>) -> Judgement {
        let judged = supposed.ask(|asked| {
            let mut judgement = Judgement::from(self.look(Action::Deny, asked));
            if judgement.ruled.is_none() && supposed.cause == RuleCause::Drift {
                let allowed = self.look(Action::Allow, asked);
                judgement.ruled = allowed.ruled;
                judgement.tried.extend(allowed.tried);
                judgement.evidence.extend(allowed.evidence);
            }
            judgement
        });
        judged.unwrap_or_default()
    }

    /// Holds every rule against a change, in the order of their policies' names.
    #[must_use]
    pub fn hold_each(&self, supposed: &Supposed<'_>) -> Vec<Held> {
        let held = supposed.ask(|asked| {
            let mut held: Vec<(usize, Held)> = Vec::new();
            // In the order in which the gates ask them: what they may do together is theirs first that deny.
            for action in [Action::Deny, Action::Allow] {
                let rules = self.rules.iter().enumerate().filter(|(_, rule)| rule.action == action);
                held.extend(rules.map(|(place, rule)| {
                    let matches = self.hold(asked, rule);
                    (place, Held { rule: rule.ruled(), matches, needs: needs(rule) })
                }));
            }
            held.sort_by_key(|(place, _)| *place);
            held.into_iter().map(|(_, held)| held).collect()
        });
        held.unwrap_or_default()
    }

    fn hold(&self, asked: &Asked<'_>, rule: &Rule) -> Match {
        if let Some(beside) = asked.beside(rule) {
            return Match::Beside(told(asked, beside));
        }
        match asked.hold(rule, self) {
            Some(Ok(note)) => Match::Yes(note),
            Some(Err(why)) => Match::No(why),
            None => Match::Beside(String::new()),
        }
    }
}

/// The fields that a change is about, as `match.fields` names them.
#[must_use]
pub fn changed_fields(review: &Review<'_>, settings: &Settings) -> Vec<Path> {
    let change = Change::new(review, settings.redaction(&review.request));
    change.diff().changes.iter().map(|change| change.path.clone()).collect()
}

impl From<Findings> for Judgement {
    fn from(Findings { ruled, tried, evidence }: Findings) -> Self {
        Self { ruled, tried, evidence }
    }
}

impl Supposed<'_> {
    /// Asks something of the change; nothing can be asked of a request without an object.
    fn ask<T>(&self, ask: impl FnOnce(&Asked<'_>) -> T) -> Option<T> {
        let child = child(self.review)?;
        let text = self.parent.map(Value::to_string);
        let object = text.as_deref().and_then(|text| Object::parse(text).ok()).unwrap_or_default();
        let mut parent = Summary::of(&object);
        parent.whole = self.parent.cloned().map(Arc::new);
        let namespace = self.namespace.map(|labels| Namespace { labels: labels.clone(), mode: None });
        let change = Change::new(self.review, Redaction::new(""));
        let cause = match self.cause {
            RuleCause::Drift => Cause::Drift,
            RuleCause::Origin => Cause::Origin,
        };
        Some(ask(&Asked {
            cause,
            child: &child,
            parent: &parent,
            namespace: namespace.as_ref(),
            request: &self.review.request,
            change: &change,
            behind: match self.review.request.sub_resource.is_empty() {
                true => Behind::Nothing,
                false => Behind::Unknown,
            },
            now: self.now,
            known: Known::default(),
        }))
    }
}

fn child(review: &Review<'_>) -> Option<ObjectId> {
    crate::child::Child::of(&review.request).map(|child| child.id)
}

/// What must be known for a rule to be held against a change that it is about.
fn needs(rule: &Rule) -> Vec<Need> {
    let needs = [
        (Need::Fields, !rule.fields.is_empty()),
        (Need::Values, rule.asks_for_child()),
        (Need::Request, rule.names("request")),
        // What it has let pass is recorded there.
        (Need::Parent, rule.names("parent") || rule.mode != ApprovalMode::Always),
        (Need::Namespace, rule.names("namespaceObject")),
    ];
    needs.into_iter().filter_map(|(need, is_needed)| is_needed.then_some(need)).collect()
}

/// Why a rule is about other changes, for people.
fn told(asked: &Asked<'_>, beside: Beside) -> String {
    let ObjectId { api_version, kind, namespace, name } = asked.child;
    match beside {
        Beside::Cause => "is not about changes of this cause".to_owned(),
        Beside::Operation => format!("is not about {}", asked.request.operation.as_str()),
        Beside::ApiVersion => format!("is not about apiVersion {api_version}"),
        Beside::Kind => format!("is not about kind {kind}"),
        Beside::Namespace if namespace.is_empty() => "is about objects in namespaces".to_owned(),
        Beside::Namespace => format!("is not about namespace {namespace}"),
        Beside::Name => format!("is not about name {name}"),
        Beside::Subjects => format!("is not about user {}", asked.request.user()),
    }
}

#[cfg(test)]
mod tests;
