//! One rule, compiled; and all that may be wrong with a policy, each with its place.

use std::{cell::Cell, collections::BTreeSet, fmt, sync::Arc};

use jiff::Timestamp;
use kausality_api::{
    approval::ApprovalMode,
    exception::{
        Action, ApprovalPolicy, MAX_RULES, MAX_SOURCE, Matching, PolicyKind, PolicyRule, RuleCause,
        RuleOperation, Subject, SubjectKind,
    },
};
use kausality_cel::{Environment, Expression, WholeText};
use kausality_fields::{Path, Step};
use serde::Deserialize;
use serde_json::Value;

use super::{Compiled, Ruled, pattern::Pattern, subjects::Subjects, user};

/// What is wrong with a policy, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyFault {
    /// The field, as `spec.rules[0].match.cel`.
    pub field: String,
    /// What is wrong with it; several lines, where a place in it is shown.
    pub message: String,
}

impl fmt::Display for PolicyFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.message)
    }
}

impl std::error::Error for PolicyFault {}

/// All that is wrong with a policy, a line each.
#[must_use]
pub fn told(faults: &[PolicyFault]) -> String {
    faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

/// The most memory that the expressions and patterns of a policy may take, compiled.
pub const MAX_SIZE: usize = 8 << 20;

/// A rule, ready to be held against changes.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    policy: String,
    place: usize,
    mark: String,
    pub action: Action,
    pub causes: Vec<RuleCause>,
    pub api_version: Pattern,
    pub kind: Pattern,
    pub namespace: Pattern,
    pub name: Pattern,
    pub subjects: Subjects,
    pub operations: Vec<RuleOperation>,
    pub prereqs: Option<Arc<Expression>>,
    pub matches: Option<Arc<Expression>>,
    pub regexp: Option<Arc<WholeText>>,
    /// Whether there is no memory for its expressions and patterns.
    pub unfit: bool,
    pub fields: Vec<Path>,
    pub mode: ApprovalMode,
    pub expiry: Option<Timestamp>,
    reason: Option<String>,
    pub dry_run: bool,
    /// The labels that its expressions may look at.
    pub labels: BTreeSet<String>,
}

impl Rule {
    pub(super) fn ruled(&self) -> Ruled {
        Ruled {
            policy: self.policy.clone(),
            rule: self.place,
            action: self.action,
            mode: self.mode,
            reason: self.reason.clone(),
            dry_run: self.dry_run,
            mark: self.mark.clone(),
        }
    }

    pub(super) fn mark(&self) -> &str {
        &self.mark
    }

    /// The memory that its expressions and patterns take.
    pub(super) fn size(&self) -> usize {
        let expressions = [&self.prereqs, &self.matches].into_iter().flatten().map(|it| it.size());
        expressions.chain(self.regexp.iter().map(|it| it.size())).sum()
    }

    /// The same rule without them.
    pub(super) fn bare(&self) -> Self {
        let unfit = self.unfit || self.size() > 0;
        Self { prereqs: None, matches: None, regexp: None, unfit, ..self.clone() }
    }

    /// Whether it asks for more of the child than which of its fields change.
    pub(super) fn asks_for_child(&self) -> bool {
        self.regexp.is_some() || self.names("object") || self.names("oldObject")
    }

    pub(super) fn names(&self, variable: &str) -> bool {
        [&self.prereqs, &self.matches].into_iter().flatten().any(|it| it.names(variable))
    }
}

/// Reads a policy.
///
/// # Errors
/// All rules that cannot be read, and why.
pub fn read(policy: &Value) -> Result<ApprovalPolicy, Vec<PolicyFault>> {
    ApprovalPolicy::deserialize(policy).map_err(|error| {
        let fault =
            |field: String, error: serde_json::Error| PolicyFault { field, message: error.to_string() };
        let rules = policy.pointer("/spec/rules").and_then(Value::as_array);
        let rules = rules.into_iter().flatten().enumerate();
        let faults: Vec<PolicyFault> = rules
            .filter_map(|(place, rule)| Some((place, PolicyRule::deserialize(rule).err()?)))
            .map(|(place, error)| fault(format!("spec.rules[{place}]"), error))
            .collect();
        if faults.is_empty() { vec![fault("spec".to_owned(), error)] } else { faults }
    })
}

const TOO_LARGE: &str = "with the rules before it, it takes more than 8 MiB of memory, compiled";

/// Compiles a policy.
///
/// # Errors
/// All that is wrong with it: no rule of such a policy holds.
pub fn compile(policy: &ApprovalPolicy) -> Result<Compiled, Vec<PolicyFault>> {
    let mut faults = Faults::default();
    let rules = &policy.spec.rules;
    if rules.is_empty() {
        faults.add("spec.rules", "there must be at least one");
    }
    if rules.len() > MAX_RULES {
        faults.add("spec.rules", format!("{} rules are more than {MAX_RULES}", rules.len()));
    }
    let (reference, mut room) = (policy.reference(), MAX_SIZE);
    let mut compiled = Vec::new();
    for (place, rule) in rules.iter().enumerate().take(MAX_RULES) {
        let at = format!("spec.rules[{place}]");
        let contradicted = rules.iter().take(place).position(|other| {
            other.action != rule.action
                && PolicyRule { action: rule.action, reason: rule.reason.clone(), ..other.clone() } == *rule
        });
        if let Some(other) = contradicted {
            faults.add(&at, format!("contradicts spec.rules[{other}]: one allows what the other denies"));
        }
        let rule = one(policy, &reference, place, rule, &at, &mut room, &mut faults);
        if rule.unfit {
            faults.add(&at, format!("{TOO_LARGE}: simplify expressions and patterns, or remove rules"));
        }
        compiled.push(Arc::new(rule));
    }
    match faults.0.is_empty() {
        true => Ok(Compiled { reference, rules: compiled }),
        false => Err(faults.0),
    }
}

/// The rules of a policy that deny, as far as they are valid: what is wrong beside them must not lift a prohibition.
#[must_use]
pub fn prohibitions(policy: &ApprovalPolicy) -> Compiled {
    denying(policy, policy.spec.rules.iter().cloned().enumerate().take(MAX_RULES))
}

/// Those of the rules that deny and are valid.
fn denying(policy: &ApprovalPolicy, rules: impl Iterator<Item = (usize, PolicyRule)>) -> Compiled {
    let (reference, mut room) = (policy.reference(), MAX_SIZE);
    let rules = rules.filter(|(_, rule)| rule.action == Action::Deny).filter_map(|(place, rule)| {
        let mut faults = Faults::default();
        let at = format!("spec.rules[{place}]");
        let compiled = one(policy, &reference, place, &rule, &at, &mut room, &mut faults);
        faults.0.is_empty().then(|| Arc::new(compiled))
    });
    Compiled { rules: rules.collect(), reference }
}

/// The place of a rule that denies changes by this user, and that `new` would not have any more.
#[must_use]
pub fn lifted(
    old: &ApprovalPolicy,
    new: Option<&ApprovalPolicy>,
    username: &str,
    groups: &[String],
) -> Option<usize> {
    let user = user(username, groups);
    let denies = prohibitions(old);
    let mut denies = denies.rules.iter().filter(|rule| !rule.dry_run && rule.subjects.include(&user));
    denies.find(|rule| !says(new, old.spec.rules.get(rule.place))).map(|rule| rule.place)
}

/// The place of a rule that lets changes by this user pass, and that `old` did not have.
#[must_use]
pub fn permitted(
    old: Option<&ApprovalPolicy>,
    new: &ApprovalPolicy,
    username: &str,
    groups: &[String],
) -> Option<usize> {
    let user = user(username, groups);
    let compiled = compile(new).ok()?;
    let mut permits =
        compiled.rules.iter().filter(|rule| rule.action == Action::Allow && rule.subjects.include(&user));
    permits.find(|rule| !says(old, new.spec.rules.get(rule.place))).map(|rule| rule.place)
}

/// Whether a policy has a rule that says the same, for whatever reason.
fn says(policy: Option<&ApprovalPolicy>, rule: Option<&PolicyRule>) -> bool {
    let same = |rule: &PolicyRule, other: &PolicyRule| {
        PolicyRule { reason: rule.reason.clone(), ..other.clone() } == *rule
    };
    policy.zip(rule).is_some_and(|(policy, rule)| policy.spec.rules.iter().any(|other| same(rule, other)))
}

/// The rules that deny of a policy that cannot be read as a whole, as far as they can be: one misspelt field must not lift the
/// prohibitions beside it.
#[must_use]
pub fn salvaged(policy: &Value) -> Option<Compiled> {
    let mut frame = policy.clone();
    *frame.pointer_mut("/spec/rules")? = Value::Array(Vec::new());
    let frame = ApprovalPolicy::deserialize(&frame).ok()?;
    let rules = policy.pointer("/spec/rules").and_then(Value::as_array)?;
    let rules = rules.iter().enumerate().take(MAX_RULES);
    Some(denying(
        &frame,
        rules.filter_map(|(place, rule)| Some((place, PolicyRule::deserialize(rule).ok()?))),
    ))
}

#[derive(Default)]
struct Faults(Vec<PolicyFault>);

impl Faults {
    fn add(&mut self, field: impl Into<String>, message: impl Into<String>) {
        self.0.push(PolicyFault { field: field.into(), message: message.into() });
    }
}

/// Compiles a rule. `room` is the memory that is left for its expressions and patterns: nothing is compiled once that is used up.
fn one(
    policy: &ApprovalPolicy,
    reference: &str,
    place: usize,
    rule: &PolicyRule,
    at: &str,
    room: &mut usize,
    faults: &mut Faults,
) -> Rule {
    let named = [("apiVersion", &rule.api_version), ("kind", &rule.kind), ("name", &rule.name)];
    for (field, _) in named.into_iter().filter(|(_, text)| text.is_empty()) {
        faults.add(format!("{at}.{field}"), "must not be empty: \"*\" stands for anything");
    }
    if rule.causes.is_empty() {
        faults.add(format!("{at}.causes"), "must not be empty: leave it out for drifts");
    }
    if rule.action == Action::Allow && rule.causes.contains(&RuleCause::Origin) {
        faults.add(
            format!("{at}.causes"),
            "changes by others than the controller pass anyway: \"origin\" is for rules that deny",
        );
    }
    if rule.action == Action::Deny && rule.mode != ApprovalMode::Always {
        faults.add(format!("{at}.mode"), "is for rules that allow: one that denies always does");
    }
    let subjects = subjects(policy, rule, at, faults);
    let namespace = namespace(policy, rule, &subjects, at, faults);
    let nothing = Matching::default();
    let matching = rule.matching.as_ref().unwrap_or(&nothing);
    let mut fields = Vec::new();
    for (number, text) in matching.fields.iter().enumerate() {
        match field(text) {
            Ok(field) => fields.push(field),
            Err(why) => faults.add(format!("{at}.match.fields[{number}]"), why),
        }
    }
    let room = Cell::from_mut(room);
    let fits = |size: usize| {
        let left = room.get().checked_sub(size);
        room.set(left.unwrap_or_default());
        left.is_some()
    };
    let cel = |faults: &mut Faults, field: &str, source: Option<&str>| {
        let source = source.filter(|_| room.get() > 0)?;
        let compiled = Expression::compile(source, Environment::policies());
        let compiled = compiled.map_err(|fault| faults.add(format!("{at}.{field}"), fault.to_string()));
        compiled.ok().filter(|it| fits(it.size())).map(Arc::new)
    };
    let prereqs = cel(faults, "prereqs.cel", rule.prereqs.as_ref().map(|it| it.cel.as_str()));
    let matches = cel(faults, "match.cel", matching.cel.as_deref());
    let regexp = matching.regexp.as_deref().filter(|_| room.get() > 0).and_then(|source| {
        let compiled = pattern(source);
        let compiled = compiled.map_err(|why| faults.add(format!("{at}.match.regexp"), why));
        compiled.ok().filter(|it| fits(it.size())).map(Arc::new)
    });
    let expressions = rule.prereqs.iter().map(|it| &it.cel).chain(&matching.cel);
    let conditions = rule.prereqs.is_some() || matching.cel.is_some() || matching.regexp.is_some();
    let unfit = conditions && room.get() == 0;
    let home = policy.metadata.namespace.as_str();
    Rule {
        policy: reference.to_owned(),
        place,
        mark: mark(reference, rule),
        action: rule.action,
        causes: rule.causes.clone(),
        api_version: Pattern::new(&rule.api_version),
        kind: Pattern::new(&rule.kind),
        namespace: Pattern::new(&namespace),
        name: Pattern::new(&rule.name),
        subjects: Subjects::new(&subjects, &rule.except_subjects, home),
        operations: rule.operations.clone(),
        prereqs,
        matches,
        regexp,
        unfit,
        fields,
        mode: rule.mode,
        expiry: rule.expiry,
        reason: rule.reason.clone(),
        dry_run: rule.dry_run,
        labels: expressions.flat_map(|it| labels(it)).collect(),
    }
}

/// The labels that an expression which looks at labels may name: in quotes, or as a field.
fn labels(source: &str) -> impl Iterator<Item = String> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
    let quoted = source.split(['\'', '"']);
    let fields = source.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let looks = source.contains("labels");
    let words = quoted.chain(fields).filter(move |word| looks && !word.is_empty());
    words.filter(move |word| word.chars().all(is_word)).map(ToOwned::to_owned)
}

/// Whom the rule is about. By default the service account with the policy's name.
fn subjects(policy: &ApprovalPolicy, rule: &PolicyRule, at: &str, faults: &mut Faults) -> Vec<Subject> {
    let cluster = policy.kind == PolicyKind::ClusterApprovalPolicy;
    if cluster && rule.subjects.is_empty() {
        faults.add(
            format!("{at}.subjects"),
            "must be named in a ClusterApprovalPolicy: {kind: Group, name: system:authenticated} is everybody",
        );
    }
    for (list, subjects) in [("subjects", &rule.subjects), ("exceptSubjects", &rule.except_subjects)] {
        for (number, subject) in subjects.iter().enumerate() {
            let account = subject.kind == SubjectKind::ServiceAccount;
            if subject.name.is_empty() {
                faults.add(format!("{at}.{list}[{number}].name"), "must not be empty");
            }
            if cluster && account && subject.namespace.as_deref().unwrap_or_default().is_empty() {
                let field = format!("{at}.{list}[{number}].namespace");
                faults.add(field, "must say in which namespace the service account is");
            }
            if !account && subject.namespace.is_some() {
                faults.add(format!("{at}.{list}[{number}].namespace"), "is for service accounts only");
            }
            if subject.kind == SubjectKind::Group && subject.name.contains('*') {
                let message = "groups are named in full: system:authenticated is everybody";
                faults.add(format!("{at}.{list}[{number}].name"), message);
            }
        }
    }
    match rule.subjects.is_empty() {
        true => vec![Subject {
            kind: SubjectKind::ServiceAccount,
            name: policy.metadata.name.clone(),
            namespace: None,
        }],
        false => rule.subjects.clone(),
    }
}

/// The namespaces the rule is about. Whoever may write policies in one namespace must not decide about others: such a
/// policy speaks of objects in its own namespace, or of its own service accounts.
fn namespace(
    policy: &ApprovalPolicy,
    rule: &PolicyRule,
    subjects: &[Subject],
    at: &str,
    faults: &mut Faults,
) -> String {
    let home = policy.metadata.namespace.as_str();
    if policy.kind == PolicyKind::ClusterApprovalPolicy {
        return rule.namespace.clone().unwrap_or_else(|| "*".to_owned());
    }
    let namespace = rule.namespace.clone().unwrap_or_else(|| home.to_owned());
    let own = |subject: &Subject| {
        subject.kind == SubjectKind::ServiceAccount
            && subject.namespace.as_deref().is_none_or(|namespace| namespace == home)
    };
    if namespace != home && !subjects.iter().all(own) {
        faults.add(
            format!("{at}.namespace"),
            format!(
                "{namespace:?} is not the policy's own namespace: there it can only speak of service accounts of {home}; \
                for others, write a ClusterApprovalPolicy"
            ),
        );
    }
    namespace
}

/// A field that changes can be of, or why none can.
fn field(text: &str) -> Result<Path, String> {
    let field = kausality_fields::parse_path(text)?;
    let of_metadata = |part: &str| -> Path {
        ["metadata", part].map(|name| Step::Field(name.to_owned())).into_iter().collect()
    };
    let counts = match field.steps().first() {
        Some(Step::Field(first)) => match first.as_str() {
            "apiVersion" | "kind" | "status" => false,
            "metadata" => {
                ["labels", "ownerReferences"].iter().any(|part| field.may_touch(&of_metadata(part)))
            }
            _ => true,
        },
        _ => true,
    };
    match counts {
        true => Ok(field),
        false => {
            Err("is no part of the intent: of metadata, only labels and ownerReferences are judged, of status nothing"
                .to_owned())
        }
    }
}

/// A pattern for the whole of a text.
fn pattern(source: &str) -> Result<WholeText, String> {
    if source.len() > MAX_SOURCE {
        return Err(format!("{} bytes are more than {MAX_SOURCE}", source.len()));
    }
    WholeText::compile(source)
}

/// Names a rule while what it is about stays as it is: who corrects its reason does not arm it again.
fn mark(reference: &str, rule: &PolicyRule) -> String {
    format!("{reference}#{}", rule.mark())
}
