//! A change that rules are held against, and what expressions get to know of it.

use std::{
    borrow::Cow,
    cell::{Cell, OnceCell},
};

use jiff::Timestamp;
use kausality_api::{
    exception::{Action, RuleCause},
    text::shorten,
};
use kausality_cel::{Expression, Facts as Variables, Object, WholeText};
use serde_json::{Map, Value, json};

use super::{Exceptions, record, rule::Rule};
use crate::{
    cause::Cause,
    change::Change,
    facts::Namespace,
    review::{Operation, Request},
    summary::{ObjectId, Summary},
};

/// How much of what an expression complains of is told.
const MAX_FAILURE: usize = 200;

/// Why what is behind a Scale cannot be asked for.
const UNREAD: &str = "the object that is scaled has not been read in full";

/// What all expressions may do together, for one change: as much as five at their own limits.
const MAX_COST: u64 = 1_000_000;

/// A change that rules are held against.
pub(crate) struct Asked<'a> {
    pub cause: Cause,
    pub child: &'a ObjectId,
    pub parent: &'a Summary,
    pub namespace: Option<&'a Namespace>,
    pub request: &'a Request<'a>,
    pub change: &'a Change<'a>,
    pub behind: Behind<'a>,
    pub now: Timestamp,
    /// What expressions see, converted once, when the first one asks.
    pub known: Known,
}

/// The object that a request is about, where that is another than the one that it sends.
#[derive(Clone, Copy)]
pub(crate) enum Behind<'a> {
    /// It sends it.
    Nothing,
    /// It sends a Scale of this.
    Scale(&'a Value),
    /// It sends a Scale, and what is behind it has not been read in full.
    Unknown,
}

/// What expressions see, and how much they may still do to see it.
pub(crate) struct Known {
    left: Cell<u64>,
    /// The same for rules that are only tried, which must not be felt.
    left_for_trials: Cell<u64>,
    object: OnceCell<Object>,
    old_object: OnceCell<Object>,
    request: OnceCell<Object>,
    parent: OnceCell<Object>,
    user: OnceCell<Object>,
    namespace: OnceCell<Object>,
    nothing: OnceCell<Object>,
}

impl Default for Known {
    fn default() -> Self {
        Self {
            left: Cell::new(MAX_COST),
            left_for_trials: Cell::new(MAX_COST),
            object: OnceCell::new(),
            old_object: OnceCell::new(),
            request: OnceCell::new(),
            parent: OnceCell::new(),
            user: OnceCell::new(),
            namespace: OnceCell::new(),
            nothing: OnceCell::new(),
        }
    }
}

/// Why a rule speaks of other changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Beside {
    Cause,
    Operation,
    ApiVersion,
    Kind,
    Namespace,
    Name,
    Subjects,
}

/// Whether a condition holds, as far as that can be told.
enum Answer {
    Yes,
    No,
    /// Why it cannot.
    Unclear(String),
}

impl Asked<'_> {
    /// What rules call the cause of this change, if any is about it.
    pub(super) fn cause(&self) -> Option<RuleCause> {
        match self.cause {
            Cause::Drift => Some(RuleCause::Drift),
            // What a controller cleans up of its own accord below a parent that lives.
            Cause::Cleanup if !self.parent.deleting => Some(RuleCause::Drift),
            Cause::Origin => Some(RuleCause::Origin),
            _ => None,
        }
    }

    /// Holds a rule, which is one of `all`, against the change. `None`: it speaks of others. Else whether it matches, with what there is to say
    /// about that, or why it does not.
    pub(super) fn hold(&self, rule: &Rule, all: &Exceptions) -> Option<Result<Option<String>, String>> {
        self.beside(rule).is_none().then(|| self.conditions(rule, all))
    }

    /// In what the change is another than those that the rule speaks of, if it is.
    pub(super) fn beside(&self, rule: &Rule) -> Option<Beside> {
        let operation = self.request.operation.as_str();
        if !self.cause().is_some_and(|cause| rule.causes.contains(&cause)) {
            Some(Beside::Cause)
        } else if !rule.operations.is_empty() && !rule.operations.iter().any(|it| it.as_str() == operation) {
            Some(Beside::Operation)
        } else if !rule.api_version.matches(&self.child.api_version) {
            Some(Beside::ApiVersion)
        } else if !rule.kind.matches(&self.child.kind) {
            Some(Beside::Kind)
        } else if !rule.namespace.matches(&self.child.namespace) {
            Some(Beside::Namespace)
        } else if !rule.name.matches(&self.child.name) {
            Some(Beside::Name)
        } else if !rule.subjects.include(&self.request.user_info) {
            Some(Beside::Subjects)
        } else {
            None
        }
    }

    fn conditions(&self, rule: &Rule, all: &Exceptions) -> Result<Option<String>, String> {
        if let Some(expiry) = rule.expiry.filter(|expiry| self.now >= *expiry) {
            return Err(format!("expired at {expiry}"));
        }
        // What permits is for changes of these fields and no others; what restrains, for any that touches one of them.
        let named = || rule.fields.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        match rule.action {
            _ if rule.fields.is_empty() => {}
            Action::Allow if rule.operations.is_empty() && self.request.operation != Operation::Update => {
                return Err(format!("names fields and no operations, so it is for updates of {}", named()));
            }
            Action::Allow if !self.change.lies_within(&rule.fields) => {
                let lists: Vec<String> = self.change.orders().iter().map(ToString::to_string).collect();
                let orders = match lists.is_empty() {
                    true => String::new(),
                    false => format!("; this one is also of the order of {}", lists.join(", ")),
                };
                return Err(format!("is for changes of {} only{orders}", named()));
            }
            Action::Deny if !self.change.touches(&rule.fields) => {
                return Err(format!("is for changes of {}", named()));
            }
            Action::Allow | Action::Deny => {}
        }
        let left = if rule.dry_run { &self.known.left_for_trials } else { &self.known.left };
        let mut unclear =
            rule.unfit.then(|| "its conditions do not fit into memory, and it denies therefore".to_owned());
        let search = || Some(self.search(rule.regexp.as_ref()?, left));
        let before = || {
            let absent = self.stored().is_none();
            Some(self.evaluate(rule.prereqs.as_ref()?, &Before(self), left, absent))
        };
        let after = || {
            let absent = self.change.values().object.is_none();
            Some(self.evaluate(rule.matches.as_ref()?, self, left, absent))
        };
        let conditions: [(&str, &dyn Fn() -> Option<Answer>); 3] =
            [("match.regexp", &search), ("prereqs.cel", &before), ("match.cel", &after)];
        for (name, answer) in conditions {
            let Some(answer) = answer() else { continue };
            match answer {
                Answer::Yes => {}
                Answer::No => return Err(format!("{name} does not hold")),
                // What restrains does so where it cannot be told; what permits does not.
                Answer::Unclear(why) if rule.action == Action::Deny => {
                    unclear = Some(format!("{name} cannot be told ({why}), and denies therefore"));
                }
                Answer::Unclear(why) => return Err(format!("{name} cannot be told: {why}")),
            }
        }
        if let Some(why) = record::over(rule, all, self.child, self.parent) {
            return Err(why);
        }
        Ok(unclear)
    }

    /// Whether an expression holds. Where what it calls its object is `absent`, or it asks for what was before and there was
    /// nothing, and it cannot do without, it does not.
    fn evaluate(
        &self,
        expression: &Expression,
        variables: &dyn Variables,
        left: &Cell<u64>,
        absent: bool,
    ) -> Answer {
        if expression.names("parent") && self.parent.whole.is_none() {
            return Answer::Unclear("the parent has not been read in full".to_owned());
        }
        let asks = expression.names("object") || expression.names("oldObject");
        if asks && matches!(self.behind, Behind::Unknown) {
            return Answer::Unclear(UNREAD.to_owned());
        }
        match expression.holds_within(variables, left) {
            Ok(true) => Answer::Yes,
            Ok(false) => Answer::No,
            Err(_) if absent && expression.names("object") => Answer::No,
            Err(_) if expression.names("oldObject") && self.stored().is_none() => Answer::No,
            // What an expression complains of may be a value.
            Err(_) if self.is_of_secrets() => Answer::Unclear("it cannot be evaluated".to_owned()),
            Err(failure) => Answer::Unclear(shorten(&failure.to_string(), MAX_FAILURE)),
        }
    }

    /// Whether a pattern matches what is wanted of the object, as JSON without blanks and with sorted keys.
    fn search(&self, pattern: &WholeText, left: &Cell<u64>) -> Answer {
        if matches!(self.behind, Behind::Unknown) {
            return Answer::Unclear(UNREAD.to_owned());
        }
        let wanted = self.wanted();
        let Some(object) = wanted.as_deref().and_then(Value::as_object) else { return Answer::No };
        let wanted: Map<_, _> = (object.iter())
            .filter(|(key, _)| !["apiVersion", "kind", "metadata", "status"].contains(&key.as_str()))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        let wanted = Value::Object(wanted).to_string();
        let Some(less) = left.get().checked_sub(pattern.cost(&wanted)) else {
            left.set(0);
            return Answer::Unclear("it would take too long".to_owned());
        };
        left.set(less);
        match pattern.is_match(&wanted) {
            Ok(true) => Answer::Yes,
            Ok(false) => Answer::No,
            Err(why) => Answer::Unclear(why),
        }
    }

    /// The object as it is stored.
    fn stored(&self) -> Option<&Value> {
        match self.behind {
            Behind::Scale(whole) => Some(whole),
            Behind::Nothing | Behind::Unknown => self.change.values().old_object.as_ref(),
        }
    }

    /// The object as it is to be; nothing, if it is to go.
    fn wanted(&self) -> Option<Cow<'_, Value>> {
        let sent = self.change.values().object.as_ref();
        let Behind::Scale(whole) = self.behind else { return sent.map(Cow::Borrowed) };
        let mut whole = whole.clone();
        let replicas = sent.and_then(|scale| scale.pointer("/spec/replicas"));
        if let (Some(replicas), Some(spec)) = (replicas, whole.get_mut("spec").and_then(Value::as_object_mut))
        {
            spec.insert("replicas".to_owned(), replicas.clone());
        }
        Some(Cow::Owned(whole))
    }

    /// Whether expressions see values of a Secret.
    fn is_of_secrets(&self) -> bool {
        [&self.child.kind, &self.parent.id.kind].into_iter().any(|kind| kind == "Secret")
    }

    fn of(&self, name: &str) -> &Object {
        let known = &self.known;
        let of = |value: Option<&Value>| value.map_or_else(Object::null, Object::of);
        match name {
            "object" => known.object.get_or_init(|| of(self.wanted().as_deref())),
            "oldObject" => known.old_object.get_or_init(|| of(self.stored())),
            "request" => known.request.get_or_init(|| Object::of(&self.change.request())),
            "user" => known.user.get_or_init(|| of(self.change.request().get("userInfo"))),
            "parent" => known.parent.get_or_init(|| of(self.parent.whole.as_deref())),
            "namespaceObject" => known.namespace.get_or_init(|| match self.namespace {
                Some(namespace) => {
                    let name = &self.child.namespace;
                    Object::of(&json!({
                        "apiVersion": "v1", "kind": "Namespace",
                        "metadata": {"name": name, "labels": &namespace.labels},
                    }))
                }
                None => Object::null(),
            }),
            _ => known.nothing.get_or_init(Object::null),
        }
    }
}

impl Variables for Asked<'_> {
    fn get(&self, name: &str) -> &Object {
        self.of(name)
    }
}

/// The same before the change: what is stored is the object.
struct Before<'a>(&'a Asked<'a>);

impl Variables for Before<'_> {
    fn get(&self, name: &str) -> &Object {
        self.0.of(if name == "object" { "oldObject" } else { name })
    }
}
