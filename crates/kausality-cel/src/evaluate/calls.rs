//! Functions.

use std::rc::Rc;
use std::sync::Arc;

use cel::common::types::{CelBytes, CelInt, CelList, CelMap, CelOptional, CelString};
use cel::common::value::{CowVal, Val};
use cel::{Context, ExecutionError, IdedExpr, Value};

use super::{Evaluation, Maybe, Outcome, Scope, no_overload, truth};
use crate::budget;
use crate::environment;
use crate::library;
use crate::library::regex::{self, Pattern, Refused};
use crate::library::standard;
use crate::node::{self, Call, How, Node, Own};

/// What it costs to make a pattern, and more for each byte of it.
const MAKING: u64 = 1_000;
const MAKING_BYTE: u64 = 50;
/// How many bytes of what is made cost as much as one part.
const MADE: u64 = 3;

impl Evaluation<'_> {
    pub(super) fn call<'s>(&'s self, call: &'s Call, scope: Option<&'s Scope<'s>>) -> Outcome<'s> {
        if let How::Own(own) = &call.how {
            return self.own_call(*own, call, scope);
        }
        let mut arguments = Vec::with_capacity(call.arguments.len());
        for argument in &call.arguments {
            arguments.push(self.value(argument, scope)?);
        }
        self.budget.charge(self.price(&call.name, &arguments))?;
        let result = match &call.how {
            How::Member(stub) => self.member(stub, standard::zoned(&call.name, arguments)),
            _ => match standard::function(&call.name, &arguments) {
                Some(function) => function(arguments),
                None => Err(no_overload(&call.name, arguments.iter().map(|it| &**it as &dyn Val))),
            },
        };
        let result = result.map_err(discreet)?;
        // What was made is there, and is paid for before anything is made of it.
        if result.is_owned() {
            self.budget.charge_for(&*result)?;
        }
        Ok(result)
    }

    /// `cel` finds overloads of members only for variables, which it owns.
    fn member<'s>(&self, stub: &IdedExpr, arguments: Vec<CowVal<'_, 'static>>) -> Outcome<'s> {
        let mut context = Context::with_env(Arc::clone(environment::functions()));
        for (nth, argument) in arguments.into_iter().enumerate() {
            let name = node::argument(nth).unwrap_or_default();
            context.add_variable_as_val(name, self.own(argument)?);
        }
        Ok(CowVal::Owned(Value::resolve_val(stub, &context)?.into_owned()))
    }

    /// What a function may do and make, before it does.
    fn price(&self, name: &str, arguments: &[CowVal<'_, 'static>]) -> u64 {
        let weight = |nth: usize| arguments.get(nth).map_or(0, |it| self.budget.weigh(&**it));
        let bytes =
            |nth: usize| arguments.get(nth).map_or(0, |it| text(&**it).map_or(0, |it| it.len() as u64));
        let length = |nth: usize| {
            arguments
                .get(nth)
                .and_then(|it| it.downcast_ref::<CelList>())
                .map_or(0, |it| it.inner().len() as u64)
        };
        let all = (0..arguments.len()).map(weight).fold(0, u64::saturating_add);
        let made = |bytes: u64| budget::text(usize::try_from(bytes).unwrap_or(usize::MAX));
        match name {
            // Whatever the size of what they are about.
            "type" | "dyn" | "optional.none" => 1,
            // A copy.
            "optional.of" | "optional.ofNonZeroValue" => all.saturating_mul(3),
            // Everything with everything.
            "sets.contains" | "sets.equivalent" | "sets.intersects" => {
                all + weight(0).saturating_mul(length(1)).saturating_mul(2)
            }
            "distinct" => all + weight(0).saturating_mul(length(0)),
            "sort" | "sortBy" | "isSorted" | "min" | "max" | "sum" => all.saturating_mul(4),
            "indexOf" | "lastIndexOf" => {
                let window = bytes(0).saturating_mul(bytes(1)) / 16;
                all + window + length(0).saturating_mul(weight(1))
            }
            // An item for each letter, or nearly so.
            "split" | "charAt" | "substring" => all + bytes(0),
            "replace" => {
                let times = bytes(0) / bytes(1).max(1) + 1;
                all + made(bytes(0) + times.saturating_mul(bytes(2)))
            }
            "join" => all + made(length(0).saturating_mul(bytes(1))),
            // Numbers of up to a hundred digits, and text as it is.
            "format" => all.saturating_mul(8),
            "lists.range" => {
                let count =
                    arguments.first().and_then(|it| it.downcast_ref::<CelInt>()).map_or(0, |it| *it.inner());
                all + u64::try_from(count).unwrap_or_default().saturating_mul(2)
            }
            _ => all,
        }
    }

    fn own_call<'s>(&'s self, own: Own, call: &'s Call, scope: Option<&'s Scope<'s>>) -> Outcome<'s> {
        match (own, call.arguments.as_slice()) {
            (Own::Size, [of]) => {
                let of = self.value(of, scope)?;
                let size = if let Some(list) = of.downcast_ref::<CelList>() {
                    list.inner().len()
                } else if let Some(map) = of.downcast_ref::<CelMap>() {
                    map.inner().len()
                } else if let Some(text) = text(&*of) {
                    self.budget.charge(budget::text(text.len()))?;
                    text.chars().count()
                } else if let Some(bytes) = of.downcast_ref::<CelBytes>() {
                    bytes.inner().len()
                } else {
                    return Err(no_overload("size", [&*of]));
                };
                Ok(CowVal::owned(CelInt::from(i64::try_from(size).unwrap_or(i64::MAX))))
            }
            (Own::StartsWith, [of, with]) => {
                self.texts(call, [of, with], scope, |of, with| Ok(of.starts_with(with)))
            }
            (Own::EndsWith, [of, with]) => {
                self.texts(call, [of, with], scope, |of, with| Ok(of.ends_with(with)))
            }
            (Own::Contains, [of, with]) => {
                self.texts(call, [of, with], scope, |of, with| Ok(of.contains(with)))
            }
            (Own::Matches | Own::Find | Own::FindAll, arguments) => {
                self.searched(own, call, arguments, scope)
            }
            (Own::HasValue, [of]) => Ok(truth(self.held(call, of, scope)?.is_some())),
            (Own::Value, [of]) => self
                .held(call, of, scope)?
                .ok_or_else(|| ExecutionError::function_error("value", "optional.none() dereference")),
            (Own::OrValue, [of, other]) => match self.held(call, of, scope)? {
                Some(value) => Ok(value),
                None => self.value(other, scope),
            },
            (Own::Or, [of, other]) => match self.held(call, of, scope)? {
                Some(value) => Ok(CowVal::owned(CelOptional::of(self.own(value)?))),
                None => self.value(other, scope),
            },
            _ => Err(no_overload(&call.name, [])),
        }
    }

    /// What an optional holds.
    fn held<'s>(
        &'s self,
        call: &Call,
        of: &'s Node,
        scope: Option<&'s Scope<'s>>,
    ) -> Result<Option<CowVal<'s, 'static>>, ExecutionError> {
        match self.maybe(of, scope)? {
            Maybe::Some(value) => Ok(Some(value)),
            Maybe::None => Ok(None),
            Maybe::Plain(value) => Err(no_overload(&call.name, [&*value])),
        }
    }

    /// Something about two texts.
    fn texts<'s>(
        &'s self,
        call: &Call,
        both: [&'s Node; 2],
        scope: Option<&'s Scope<'s>>,
        ask: impl FnOnce(&str, &str) -> Result<bool, ExecutionError>,
    ) -> Outcome<'s> {
        let [of, with] = both;
        let (of, with) = (self.value(of, scope)?, self.value(with, scope)?);
        match (text(&*of), text(&*with)) {
            (Some(of), Some(with)) => {
                self.budget.charge(budget::text(of.len()) + budget::text(with.len()))?;
                Ok(truth(ask(of, with)?))
            }
            _ => Err(no_overload(&call.name, [&*of, &*with])),
        }
    }

    /// A pattern that is no constant.
    fn made(&self, name: &str, pattern: &str) -> Result<Rc<Pattern>, ExecutionError> {
        if let Some((known, made)) = &*self.pattern.borrow()
            && known == pattern
        {
            return Ok(Rc::clone(made));
        }
        self.budget.charge(MAKING + pattern.len() as u64 * MAKING_BYTE)?;
        // What it stands for may be far more than what it says: no more is made than can be paid for.
        let most = usize::try_from(self.budget.left().saturating_mul(MADE)).unwrap_or(usize::MAX);
        let most = most.min(regex::MAX_SIZE);
        let made = Pattern::compile(pattern, most);
        let took = match &made {
            Ok(made) => made.size(),
            Err(Refused::TooLarge) => most,
            Err(Refused::Illegal(_)) => 0,
        };
        self.budget.charge(took as u64 / MADE)?;
        let failed = |refused: Refused| ExecutionError::function_error(name, refused);
        let made = made.map_err(|refused| discreet(failed(refused)))?;
        let made = Rc::new(made);
        *self.pattern.borrow_mut() = Some((pattern.to_owned(), Rc::clone(&made)));
        Ok(made)
    }

    /// What is found of a pattern in a text.
    fn searched<'s>(
        &'s self,
        own: Own,
        call: &'s Call,
        arguments: &'s [Node],
        scope: Option<&'s Scope<'s>>,
    ) -> Outcome<'s> {
        let none = || no_overload(&call.name, []);
        let [of, with, rest @ ..] = arguments else { return Err(none()) };
        let (of, with) = (self.value(of, scope)?, self.value(with, scope)?);
        let (Some(of), Some(with)) = (text(&*of), text(&*with)) else {
            return Err(no_overload(&call.name, [&*of, &*with]));
        };
        let failed = |_| discreet(ExecutionError::function_error(&call.name, ""));
        let made;
        let pattern = match &call.pattern {
            Some(pattern) => pattern,
            None => {
                made = self.made(&call.name, with)?;
                &*made
            }
        };
        self.budget.charge(pattern.steps(of) / budget::STEPS + budget::text(of.len()))?;
        match (own, rest) {
            (Own::Matches, []) => Ok(truth(pattern.is_match(of).map_err(failed)?)),
            (Own::Find, []) => {
                let found = pattern.find(of).map_err(failed)?;
                self.budget.charge(budget::text(found.len()))?;
                Ok(CowVal::owned(CelString::from(found)))
            }
            (Own::FindAll, limit) => {
                let limit = match limit {
                    [limit] => {
                        let limit = self.value(limit, scope)?;
                        usize::try_from(*limit.downcast_ref::<CelInt>().ok_or_else(none)?.inner()).ok()
                    }
                    _ => None,
                };
                // As many as there are letters.
                self.budget.charge(of.len() as u64)?;
                let found = pattern.find_all(of, limit.unwrap_or(usize::MAX)).map_err(failed)?;
                Ok(CowVal::owned(library::strings(found)))
            }
            _ => Err(none()),
        }
    }
}

/// Functions like to quote what they cannot read, which nobody may be meant to see.
fn discreet(error: ExecutionError) -> ExecutionError {
    match error {
        ExecutionError::FunctionError { function, .. } => {
            ExecutionError::FunctionError { function, message: "its argument is not valid".to_owned() }
        }
        other => other,
    }
}

fn text(value: &dyn Val) -> Option<&str> {
    value.downcast_ref::<CelString>().map(CelString::inner)
}
