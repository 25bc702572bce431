//! Evaluation, within a budget.
//!
//! `cel` has an evaluator, and it is not this one: it counts nothing, takes 20 KiB of stack for every level of an
//! expression, copies what a loop or an optional holds, and knows no loops of two variables. Values, operators and
//! functions are `cel`'s; what is here is the order in which they are asked.
//!
//! Nothing is done before it is paid for. What is borrowed from the facts or the expression stays borrowed; copies are
//! charged for.

use std::cell::RefCell;
use std::rc::Rc;

use cel::ExecutionError;
use cel::common::types::{CelBool, CelDouble, CelList, CelMap, CelMapKey, CelOptional};
use cel::common::value::{CowVal, Val};

use crate::budget::Budget;
use crate::expression::Facts;
use crate::library::regex::Pattern;
use crate::node::{Node, Operator};
use crate::object;

mod calls;
mod loops;
mod operators;

/// What comes of a part.
type Outcome<'s> = Result<CowVal<'s, 'static>, ExecutionError>;

/// One evaluation of an expression.
pub(crate) struct Evaluation<'f> {
    facts: &'f dyn Facts,
    pub(crate) budget: Budget,
    /// The last pattern that was no constant: one that is used in a loop is made once.
    pattern: RefCell<Option<(String, Rc<Pattern>)>>,
}

/// The variables of loops, the innermost first.
#[derive(Clone, Copy)]
pub(crate) struct Scope<'s> {
    value: &'s (dyn Val + 'static),
    outer: Option<&'s Scope<'s>>,
}

/// Something that may be an optional, taken apart without copying.
enum Maybe<'s> {
    Plain(CowVal<'s, 'static>),
    Some(CowVal<'s, 'static>),
    None,
}

impl<'f> Evaluation<'f> {
    pub(crate) fn new(facts: &'f dyn Facts, cost: u64) -> Self {
        Self { facts, budget: Budget::new(cost), pattern: RefCell::default() }
    }

    /// A part that is true or false.
    pub(crate) fn condition<'s>(
        &'s self,
        node: &'s Node,
        scope: Option<&'s Scope<'s>>,
    ) -> Result<bool, ExecutionError> {
        let value = self.value(node, scope)?;
        boolean(&*value).ok_or_else(|| ExecutionError::UnexpectedType {
            got: value.get_type().name().to_owned(),
            want: "bool".to_owned(),
        })
    }

    pub(crate) fn value<'s>(&'s self, node: &'s Node, scope: Option<&'s Scope<'s>>) -> Outcome<'s> {
        self.budget.charge(1)?;
        match node {
            Node::Constant(value) => Ok(CowVal::Borrowed(&**value)),
            Node::Variable(name) => Ok(CowVal::Borrowed(self.facts.get(name).value())),
            Node::Local(out) => local(scope, *out),
            Node::Select { .. } | Node::Index { .. } => match self.maybe(node, scope)? {
                Maybe::Plain(value) => Ok(value),
                Maybe::Some(value) => Ok(CowVal::owned(CelOptional::of(self.own(value)?))),
                Maybe::None => Ok(CowVal::owned(CelOptional::none())),
            },
            Node::Has { of, field } => self.has(of, field, scope),
            Node::Not(of) => Ok(truth(!self.condition(of, scope)?)),
            Node::Negate(of) => self.negated(of, scope),
            Node::Binary(Operator::And, both) => self.both(both, false, scope),
            Node::Binary(Operator::Or, both) => self.both(both, true, scope),
            Node::Binary(operator, both) => self.binary(*operator, both, scope),
            Node::Conditional(parts) => {
                let [condition, yes, no] = &**parts;
                self.value(if self.condition(condition, scope)? { yes } else { no }, scope)
            }
            Node::List(items) => self.list(items, scope),
            Node::Map(entries) => self.map(entries, scope),
            Node::Bind(parts) => {
                let [value, body] = &**parts;
                let value = self.value(value, scope)?;
                let inner = Scope { value: &*value, outer: scope };
                Ok(CowVal::Owned(self.own(self.value(body, Some(&inner))?)?))
            }
            Node::Loop(it) => self.looped(it, scope),
            Node::Call(call) => self.call(call, scope),
        }
    }

    /// What a part is, or what the optional holds that it is.
    fn maybe<'s>(
        &'s self,
        node: &'s Node,
        scope: Option<&'s Scope<'s>>,
    ) -> Result<Maybe<'s>, ExecutionError> {
        let (of, optional) = match node {
            Node::Select { of, optional, .. } | Node::Index { of, optional, .. } => (of, *optional),
            other => return Ok(taken_apart(self.value(other, scope)?)),
        };
        self.budget.charge(1)?;
        let (of, optional) = match self.maybe(of, scope)? {
            Maybe::Plain(of) => (of, optional),
            Maybe::Some(of) => (of, true),
            Maybe::None => return Ok(Maybe::None),
        };
        let picked = match node {
            Node::Index { at, .. } => {
                let at = self.value(at, scope)?;
                self.picked(of, &*at, "_[_]", optional)?
            }
            Node::Select { field, .. } => self.picked(of, field, "_._", optional)?,
            _ => None,
        };
        Ok(match picked {
            Some(value) if optional => Maybe::Some(value),
            Some(value) => Maybe::Plain(value),
            None => Maybe::None,
        })
    }

    /// A part of something by its key; none if it may be missing and is.
    fn picked<'s>(
        &self,
        of: CowVal<'s, 'static>,
        key: &dyn Val,
        operator: &str,
        optional: bool,
    ) -> Result<Option<CowVal<'s, 'static>>, ExecutionError> {
        let is_list = of.downcast_ref::<CelList>().is_some();
        if !is_list && of.downcast_ref::<CelMap>().is_none() {
            return if optional { Ok(None) } else { Err(no_overload(operator, [&*of, key])) };
        }
        if is_container(key) {
            return Err(no_overload(operator, [&*of, key]));
        }
        let names = [of.get_type().name().to_owned(), key.get_type().name().to_owned()];
        let found = match of {
            CowVal::Borrowed(of) => of.as_indexer().map(|it| it.get(key)),
            CowVal::Owned(of) => of.into_indexer().map(|it| it.steal(key).map(CowVal::Owned)),
        };
        match found {
            Some(Ok(value)) => Ok(Some(value)),
            Some(Err(ExecutionError::NoSuchKey(_) | ExecutionError::IndexOutOfBounds(_))) if optional => {
                Ok(None)
            }
            Some(Err(error @ (ExecutionError::NoSuchKey(_) | ExecutionError::IndexOutOfBounds(_)))) => {
                Err(error)
            }
            _ => Err(ExecutionError::no_such_overload(operator, names.to_vec())),
        }
    }

    /// Whether something has a field. What has no fields at all has not this one, either.
    fn has<'s>(&'s self, of: &'s Node, field: &dyn Val, scope: Option<&'s Scope<'s>>) -> Outcome<'s> {
        let of = match self.maybe(of, scope)? {
            Maybe::Plain(of) | Maybe::Some(of) => of,
            Maybe::None => return Ok(truth(false)),
        };
        Ok(truth(self.picked(of, field, "_._", true)?.is_some()))
    }

    fn list<'s>(&'s self, items: &'s [(Node, bool)], scope: Option<&'s Scope<'s>>) -> Outcome<'s> {
        let mut list = Vec::with_capacity(items.len());
        for (item, optional) in items {
            if let Some(value) = self.part(item, *optional, scope)? {
                list.push(self.own(value)?);
            }
        }
        Ok(CowVal::owned(CelList::from(list)))
    }

    fn map<'s>(&'s self, entries: &'s [crate::node::Entry], scope: Option<&'s Scope<'s>>) -> Outcome<'s> {
        let mut map = Vec::with_capacity(entries.len());
        for entry in entries {
            let key = self.key(self.value(&entry.key, scope)?)?;
            if let Some(value) = self.part(&entry.value, entry.optional, scope)? {
                map.push((key, self.own(value)?));
            }
        }
        Ok(CowVal::owned(object::map(map)))
    }

    /// A part of a literal, unless it is an optional that holds nothing.
    fn part<'s>(
        &'s self,
        node: &'s Node,
        optional: bool,
        scope: Option<&'s Scope<'s>>,
    ) -> Result<Option<CowVal<'s, 'static>>, ExecutionError> {
        if !optional {
            return self.value(node, scope).map(Some);
        }
        Ok(match self.maybe(node, scope)? {
            Maybe::Plain(value) | Maybe::Some(value) => Some(value),
            Maybe::None => None,
        })
    }

    fn key(&self, value: CowVal<'_, 'static>) -> Result<CelMapKey<'static>, ExecutionError> {
        if is_container(&*value) {
            return Err(no_overload("{_:_}", [&*value]));
        }
        self.budget.charge_for(&*value)?;
        match value.downcast_ref::<CelDouble>().and_then(|number| whole(*number.inner())) {
            Some(number) => Ok(CelMapKey::from(number)),
            None => CelMapKey::try_from(value),
        }
    }

    /// A copy of what is borrowed, for which is paid.
    fn own(&self, value: CowVal<'_, 'static>) -> Result<Box<dyn Val>, ExecutionError> {
        if let CowVal::Borrowed(value) = &value {
            self.budget.charge_copy(*value)?;
        }
        Ok(value.into_owned())
    }
}

fn local<'s>(scope: Option<&'s Scope<'s>>, out: usize) -> Outcome<'s> {
    let found = std::iter::successors(scope, |scope| scope.outer).nth(out);
    // What was lowered is in scope.
    let missing = || ExecutionError::InternalError("a variable is missing".to_owned());
    found.map(|scope| CowVal::Borrowed(scope.value)).ok_or_else(missing)
}

fn taken_apart<'s>(value: CowVal<'s, 'static>) -> Maybe<'s> {
    match value {
        CowVal::Borrowed(value) => match value.downcast_ref::<CelOptional>() {
            None => Maybe::Plain(CowVal::Borrowed(value)),
            Some(optional) => optional.option().map_or(Maybe::None, |it| Maybe::Some(CowVal::Borrowed(it))),
        },
        CowVal::Owned(value) => {
            if value.downcast_ref::<CelOptional>().is_none() {
                return Maybe::Plain(CowVal::Owned(value));
            }
            match value.into_builtin() {
                Some(cel::common::value::Builtin::Optional(optional)) => {
                    Option::<Box<dyn Val>>::from(optional)
                        .map_or(Maybe::None, |it| Maybe::Some(CowVal::Owned(it)))
                }
                _ => Maybe::None,
            }
        }
    }
}

/// What can hold others, and so be large.
fn is_container(value: &dyn Val) -> bool {
    value.downcast_ref::<CelList>().is_some()
        || value.downcast_ref::<CelMap>().is_some()
        || value.downcast_ref::<CelOptional>().is_some()
}

/// A number as the key that it is the same as.
fn whole(number: f64) -> Option<i64> {
    const MOST: f64 = i64::MAX as f64;
    (number.fract() == 0.0 && number.abs() < MOST).then_some(number as i64)
}

fn boolean(value: &dyn Val) -> Option<bool> {
    value.downcast_ref::<CelBool>().map(|it| *it.inner())
}

fn truth<'s>(value: bool) -> CowVal<'s, 'static> {
    CowVal::owned(CelBool::from(value))
}

fn no_overload<'a>(function: &str, values: impl IntoIterator<Item = &'a dyn Val>) -> ExecutionError {
    let types = values.into_iter().map(|value| value.get_type().name().to_owned()).collect();
    ExecutionError::no_such_overload(function, types)
}
