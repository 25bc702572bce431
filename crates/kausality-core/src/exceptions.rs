//! Exceptions as policy: the rules of `ApprovalPolicy` and `ClusterApprovalPolicy`, compiled once and indexed so that a
//! change meets only those that may be about it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use kausality_api::{
    approval::{Approval, ApprovalMode},
    exception::{Action, RuleCause},
};

mod asked;
mod judge;
mod pattern;
mod record;
mod rule;
mod subjects;

pub(crate) use asked::{Asked, Behind, Known};
pub use judge::{Held, Judgement, Match, Need, Supposed, changed_fields};
pub(crate) use record::{restamp, used};
use rule::Rule;
pub use rule::{MAX_SIZE, PolicyFault, compile, lifted, permitted, prohibitions, read, salvaged, told};
use subjects::Key;

use crate::review::{Text, UserInfo};

/// A policy that has been compiled.
#[derive(Clone, Debug)]
pub struct Compiled {
    reference: String,
    rules: Vec<std::sync::Arc<Rule>>,
}

impl Compiled {
    /// Names the policy, as [`ApprovalPolicy::reference`](kausality_api::exception::ApprovalPolicy::reference) does.
    #[must_use]
    pub fn reference(&self) -> &str {
        &self.reference
    }

    /// The memory that its expressions and patterns take.
    #[must_use]
    pub fn size(&self) -> usize {
        self.rules.iter().map(|rule| rule.size()).sum()
    }

    /// Its rules that deny.
    #[must_use]
    pub fn denying(&self) -> Self {
        let rules = self.rules.iter().filter(|rule| rule.action == Action::Deny).cloned();
        Self { reference: self.reference.clone(), rules: rules.collect() }
    }

    /// Its rules that deny, where there is no memory for expressions and patterns: what cannot be told does not lift a
    /// prohibition, and so they deny whatever they are about.
    #[must_use]
    pub fn bare(&self) -> Self {
        let Self { reference, rules } = self.denying();
        Self { reference, rules: rules.iter().map(|rule| rule.bare().into()).collect() }
    }
}

fn user<'a>(username: &'a str, groups: &'a [String]) -> UserInfo<'a> {
    UserInfo {
        username: Text::from(username),
        groups: Some(groups.iter().map(|group| Text::from(group.as_str())).collect()),
        ..UserInfo::default()
    }
}

/// A rule that matched a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ruled {
    /// The policy, as `Kind/name` or `Kind/namespace/name`.
    pub policy: String,
    /// The rule's place in it.
    pub rule: usize,
    /// What it does.
    pub action: Action,
    /// For how long it does so.
    pub mode: ApprovalMode,
    /// Why, in the words of whoever wrote it.
    pub reason: Option<String>,
    /// Whether it is only told what it would do.
    pub dry_run: bool,
    /// What names it in the record on the parent, while it stays as it is.
    pub(crate) mark: String,
}

impl Ruled {
    /// The approval that the rule stands for.
    #[must_use]
    pub fn approval(&self) -> Approval {
        Approval {
            api_version: ANY.to_owned(),
            kind: ANY.to_owned(),
            namespace: None,
            name: ANY.to_owned(),
            generation: None,
            mode: self.mode,
            diff: None,
            fields: Vec::new(),
            expires: None,
            by: Some(format!("{} rules[{}]", self.policy, self.rule)),
            reason: self.reason.clone(),
        }
    }
}

impl fmt::Display for Ruled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} rules[{}]", self.policy, self.rule)?;
        match &self.reason {
            Some(reason) => write!(f, " ({reason})"),
            None => Ok(()),
        }
    }
}

/// The rules of all policies.
#[derive(Clone, Debug, Default)]
pub struct Exceptions {
    rules: Vec<std::sync::Arc<Rule>>,
    /// By kind, subject and namespace.
    places: BTreeMap<String, BTreeMap<Key, BTreeMap<String, Vec<usize>>>>,
    /// What names the rules in records on parents, of those that do not let pass for ever.
    marks: BTreeSet<String>,
    asks_for_parent: bool,
    asks_for_child: bool,
    /// Whether any rule is about changes that are not drift.
    about_origins: bool,
    /// The labels that rules look at, with the kinds whose they are.
    labels: BTreeMap<String, BTreeSet<String>>,
}

/// Where those are that do not name one kind, or one namespace.
const ANY: &str = "*";

/// Reasons for which rules did not match that are told.
const SHOWN: usize = 5;

impl Exceptions {
    /// Indexes policies.
    #[must_use]
    pub fn new<'a>(policies: impl IntoIterator<Item = &'a Compiled>) -> Self {
        let mut policies: Vec<&Compiled> = policies.into_iter().collect();
        policies.sort_by(|a, b| a.reference.cmp(&b.reference));
        let mut all = Self::default();
        for rule in policies.into_iter().flat_map(|policy| &policy.rules) {
            let place = all.rules.len();
            let of_kind = all.places.entry(rule.kind.exact().unwrap_or(ANY).to_owned()).or_default();
            let namespace = rule.namespace.exact().unwrap_or(ANY);
            for key in rule.subjects.keys() {
                of_kind.entry(key).or_default().entry(namespace.to_owned()).or_default().push(place);
            }
            all.asks_for_parent |= rule.names("parent");
            all.asks_for_child |= rule.asks_for_child();
            all.marks.extend((rule.mode != ApprovalMode::Always).then(|| rule.mark().to_owned()));
            all.about_origins |= rule.causes.contains(&RuleCause::Origin);
            // What is only tried decides nothing, and nothing can be gained by other labels.
            for label in rule.labels.iter().filter(|_| !rule.dry_run) {
                let kind = rule.kind.exact().filter(|_| !rule.names("parent")).unwrap_or(ANY);
                all.labels.entry(label.clone()).or_default().insert(kind.to_owned());
            }
            all.rules.push(rule.clone());
        }
        all
    }

    /// Whether some rule asks for more of a parent than a summary knows.
    #[must_use]
    pub fn asks_for_parent(&self) -> bool {
        self.asks_for_parent
    }

    /// Whether some rule asks for more of a child than a request to scale it tells.
    #[must_use]
    pub fn asks_for_child(&self) -> bool {
        self.asks_for_child
    }

    /// Whether some rule looks at one of these labels of objects of a kind.
    pub(crate) fn select_by(&self, kind: &str, labels: &BTreeSet<String>) -> bool {
        let kinds = labels.iter().filter_map(|label| self.labels.get(label));
        kinds.into_iter().any(|kinds| kinds.contains(kind) || kinds.contains(ANY))
    }

    /// All rules, in the order of their policies' names.
    pub fn rules(&self) -> impl Iterator<Item = Ruled> {
        self.rules.iter().map(|rule| rule.ruled())
    }

    /// How many rules there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rules.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// The rules that may be about this change, in the order of their policies' names.
    fn candidates(&self, asked: &Asked<'_>) -> Vec<&Rule> {
        let user = &asked.request.user_info;
        let groups = user.groups.iter().flatten().map(|group| Key::Group(group.to_string()));
        let keys: Vec<Key> =
            [Key::Anybody, Key::User(user.username.to_string())].into_iter().chain(groups).collect();
        let mut found: Vec<&usize> = Vec::new();
        for of_kind in [asked.child.kind.as_str(), ANY].iter().filter_map(|kind| self.places.get(*kind)) {
            for of_subject in keys.iter().filter_map(|key| of_kind.get(key)) {
                let namespaces = [asked.child.namespace.as_str(), ANY];
                found.extend(namespaces.iter().filter_map(|name| of_subject.get(*name)).flatten());
            }
        }
        found.sort_unstable();
        found.dedup();
        found.into_iter().filter_map(|place| self.rules.get(*place)).map(AsRef::as_ref).collect()
    }

    /// Looks for a rule with this action that matches.
    pub(crate) fn look(&self, action: Action, asked: &Asked<'_>) -> Findings {
        let mut findings = Findings::default();
        if self.rules.is_empty() || !self.about_origins && asked.cause() == Some(RuleCause::Origin) {
            return findings;
        }
        for rule in self.candidates(asked).into_iter().filter(|rule| rule.action == action) {
            match asked.hold(rule, self) {
                None => {}
                Some(Err(why)) if findings.evidence.len() < SHOWN => {
                    findings.evidence.push(format!("{}: {why}", rule.ruled()));
                }
                Some(Err(_)) => {}
                Some(Ok(note)) => findings.add(rule.ruled(), note),
            }
        }
        findings
    }
}

/// What was found when rules were looked at.
#[derive(Default)]
pub(crate) struct Findings {
    /// The rule to go by.
    pub ruled: Option<Ruled>,
    /// Rules that are only tried.
    pub tried: Vec<Ruled>,
    /// What there is to say about the others.
    pub evidence: Vec<String>,
}

impl Findings {
    /// Any rule will do; one that lasts is taken before one that is used up.
    fn add(&mut self, ruled: Ruled, note: Option<String>) {
        let lasting = |ruled: &Ruled| match ruled.mode {
            ApprovalMode::Always => 2,
            ApprovalMode::Generation => 1,
            ApprovalMode::Once => 0,
        };
        self.evidence.extend(note.map(|note| format!("{ruled}: {note}")));
        if ruled.dry_run {
            self.evidence.push(format!("{ruled} matches, and is only tried (dryRun)"));
            self.tried.push(ruled);
        } else if self.ruled.as_ref().is_none_or(|best| lasting(&ruled) > lasting(best)) {
            self.ruled = Some(ruled);
        }
    }
}

#[cfg(test)]
mod tests;
