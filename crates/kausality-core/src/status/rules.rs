//! How a kind shows how far its controller has got, as policies say, ready to be held against a status.

use std::{
    cell::OnceCell,
    sync::{Arc, LazyLock},
};

use kausality_api::policy::{Evidence, StatusRules};
use kausality_cel::{Environment, Expression, Facts, Object as CelObject, Type};
use serde_json::{Map, Value, value::RawValue};

use super::{Common, Condition};
use crate::review::Object;

/// What expressions may name.
static VARIABLES: LazyLock<Environment> = LazyLock::new(|| Environment::new(&[("object", Type::Dyn)]));

/// The rules for one kind. Without any, its status is read as usual.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rules {
    /// What shows that an object has been set up for the first time.
    pub initialized: Option<Arc<Rule>>,
    /// What shows that its controller has finished with its present intent.
    pub settled: Option<Arc<Rule>>,
}

impl Rules {
    /// The rules of one policy. One that is not valid is never evidence, nor is one whose expression takes more memory than there is
    /// room for.
    #[must_use]
    pub fn new(rules: &StatusRules, room: &mut usize) -> Self {
        let mut compile =
            |evidence: &Option<Evidence>| evidence.as_ref().map(|it| Arc::new(Rule::new(it, room)));
        Self { initialized: compile(&rules.initialized), settled: compile(&rules.settled) }
    }

    /// Whether there is no rule.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.initialized.is_none() && self.settled.is_none()
    }
}

/// What is wrong with the expressions of rules, and where.
#[must_use]
pub fn fault(rules: &StatusRules) -> Option<String> {
    rules.each().find_map(|(place, evidence)| {
        let fault = Expression::compile(evidence.cel.as_deref()?, &VARIABLES).err()?;
        Some(format!("{place}.cel: {fault}"))
    })
}

/// A rule, compiled.
#[derive(Debug)]
pub struct Rule {
    evidence: Evidence,
    /// Nothing, if the source is not valid.
    expression: Option<Option<Expression>>,
}

/// Two rules that say the same are one.
impl PartialEq for Rule {
    fn eq(&self, other: &Self) -> bool {
        self.evidence == other.evidence
    }
}

/// Whether a status shows what a rule asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Yes,
    No,
    /// The rule cannot be evaluated.
    Unclear,
}

impl Rule {
    fn new(evidence: &Evidence, room: &mut usize) -> Self {
        let compile = |source: &String| {
            let compiled = Some(source).filter(|_| *room > 0);
            let compiled = Expression::compile(compiled?, &VARIABLES).ok()?;
            let left = room.checked_sub(compiled.size());
            *room = left.unwrap_or_default();
            left.map(|_| compiled)
        };
        Self { evidence: evidence.clone(), expression: evidence.cel.as_ref().map(compile) }
    }

    /// Whether it asks for conditions.
    pub(super) fn has_conditions(&self) -> bool {
        !self.evidence.conditions.is_empty()
    }

    /// Whether a condition is one that it asks for.
    pub(super) fn names(&self, condition: &Condition) -> bool {
        self.evidence.conditions.iter().any(|wanted| wanted.kind == condition.name)
    }

    pub(super) fn holds(&self, seen: &Shown<'_>) -> Answer {
        let Common { conditions, phase, state, .. } = seen.common;
        let has_conditions = self.evidence.conditions.iter().all(|wanted| {
            conditions.get(&wanted.kind).is_some_and(|condition| {
                condition.status == wanted.status.as_str()
                    && wanted.reason.as_ref().is_none_or(|reason| *reason == condition.reason)
            })
        });
        let word = if phase.is_empty() { state } else { phase };
        let phases = &self.evidence.phases;
        let in_phase = phases.is_empty() || phases.iter().any(|phase| phase.eq_ignore_ascii_case(word));
        if !has_conditions || !in_phase {
            return Answer::No;
        }
        match &self.expression {
            None => Answer::Yes,
            Some(None) => Answer::Unclear,
            Some(Some(expression)) => match expression.holds(seen) {
                Ok(true) => Answer::Yes,
                Ok(false) => Answer::No,
                Err(_) => Answer::Unclear,
            },
        }
    }
}

/// An object with a status, as rules see it.
pub(super) struct Shown<'a> {
    object: &'a Object<'a>,
    status: Option<&'a RawValue>,
    common: &'a Common,
    whole: OnceCell<CelObject>,
}

impl<'a> Shown<'a> {
    pub(super) fn new(object: &'a Object<'a>, status: Option<&'a RawValue>, common: &'a Common) -> Self {
        Self { object, status, common, whole: OnceCell::new() }
    }

    /// The object as expressions see it: without managed fields and Kausality's own annotations.
    fn whole(&self) -> Value {
        fn read(raw: &RawValue) -> Value {
            serde_json::from_str(raw.get()).unwrap_or_default()
        }
        let metadata = &self.object.metadata;
        let texts = [
            ("name", &*metadata.name),
            ("namespace", &*metadata.namespace),
            ("uid", &*metadata.uid),
            ("creationTimestamp", metadata.creation_timestamp.as_deref().unwrap_or_default()),
            ("deletionTimestamp", metadata.deletion_timestamp.as_deref().unwrap_or_default()),
        ];
        let texts = texts.into_iter().filter(|(_, text)| !text.is_empty());
        let mut shown: Map<String, Value> = texts.map(|(key, text)| (key.to_owned(), text.into())).collect();
        shown.extend(metadata.generation.map(|generation| ("generation".to_owned(), generation.into())));
        shown.extend(metadata.labels.map(|labels| ("labels".to_owned(), read(labels))));
        let annotations: Map<String, Value> =
            metadata.annotations.others().map(|(key, value)| (key.to_owned(), read(value))).collect();
        if !annotations.is_empty() {
            shown.insert("annotations".to_owned(), annotations.into());
        }
        let intent = self.object.intent.iter().map(|(key, value)| (key.to_string(), read(value)));
        let mut whole: Map<String, Value> = intent.collect();
        whole.insert("apiVersion".to_owned(), (*self.object.api_version).into());
        whole.insert("kind".to_owned(), (*self.object.kind).into());
        whole.insert("metadata".to_owned(), shown.into());
        whole.extend(self.status.map(|status| ("status".to_owned(), read(status))));
        whole.into()
    }
}

impl Facts for Shown<'_> {
    fn get(&self, _: &str) -> &CelObject {
        self.whole.get_or_init(|| CelObject::of(&self.whole()))
    }
}
