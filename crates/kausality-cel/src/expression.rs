//! Expressions that are compiled once and evaluated many times.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use cel::IdedExpr;
use cel::common::ast::SourceInfo;

use crate::environment::{self, Environment};
use crate::evaluate::Evaluation;
use crate::fault::{Failure, Fault};
use crate::node::Node;
use crate::object::Object;
use crate::{check, lower, scan};

/// What an expression may ask for.
pub trait Facts {
    /// The value of a variable of the environment; [`Object::null`] if there is none.
    ///
    /// It is asked each time that the expression names the variable, and only then: whoever makes the object should do so
    /// once, when it is first asked for.
    fn get(&self, name: &str) -> &Object;
}

/// What a source should be.
#[derive(Clone, Copy)]
enum Wanted {
    Condition,
    #[cfg(test)]
    Anything,
    #[cfg(test)]
    Unchecked,
}

/// An expression that can be evaluated, any number of times and at once.
#[derive(Debug)]
pub struct Expression {
    pub(crate) node: Node,
    /// What it asks for.
    variables: BTreeSet<&'static str>,
    size: usize,
    cost: u64,
}

impl Expression {
    /// Reads and checks a source.
    ///
    /// # Errors
    /// If there is anything wrong with it: what, and where.
    pub fn compile(source: &str, environment: &Environment) -> Result<Self, Fault> {
        Self::read(source, environment, Wanted::Condition)
    }

    fn read(source: &str, environment: &Environment, wanted: Wanted) -> Result<Self, Fault> {
        scan::check(source, environment.limits())?;
        let (parsed, places) = parse(source)?;
        let placed = |wrong: check::Wrong| {
            let offset = places.offset_for(wrong.part).map_or(0, |(start, _)| start as usize);
            Fault::at(source, offset, wrong.message)
        };
        let checked = match wanted {
            Wanted::Condition => check::check(&parsed, environment),
            #[cfg(test)]
            Wanted::Anything => check::of(&parsed, environment).map(|_| ()),
            #[cfg(test)]
            Wanted::Unchecked => Ok(()),
        };
        checked.map_err(placed)?;
        let lowered = lower::lower(&parsed, environment).map_err(placed)?;
        let size = lowered.size + source.len();
        Ok(Self { node: lowered.node, variables: lowered.variables, size, cost: environment.limits().cost })
    }

    /// The memory that it takes, at most.
    #[must_use]
    pub fn size(&self) -> usize {
        self.size
    }

    /// An expression that need not be a condition.
    #[cfg(test)]
    pub(crate) fn of_any(source: &str, environment: &Environment, checked: bool) -> Result<Self, Fault> {
        Self::read(source, environment, if checked { Wanted::Anything } else { Wanted::Unchecked })
    }

    /// Whether it holds.
    ///
    /// # Errors
    /// If that cannot be told: something is missing or of another type, or it would take too much to tell.
    pub fn holds(&self, facts: &dyn Facts) -> Result<bool, Failure> {
        self.holds_within(facts, &Cell::new(self.cost))
    }

    /// Whether it holds, where several expressions share what they may do: what this one does is taken from `left`.
    ///
    /// # Errors
    /// If that cannot be told: something is missing or of another type, or it would take too much to tell.
    pub fn holds_within(&self, facts: &dyn Facts, left: &Cell<u64>) -> Result<bool, Failure> {
        let most = self.cost.min(left.get());
        let evaluation = Evaluation::new(facts, most);
        // A function of a library that panics is a mistake of ours, and no reason to answer nobody any more.
        let held = catch_unwind(AssertUnwindSafe(|| evaluation.condition(&self.node, None)));
        left.set(left.get() - (most - evaluation.budget.left()));
        if evaluation.budget.is_gone() {
            return Err(Failure::too_expensive());
        }
        held.map_err(|_| Failure::new("it cannot be evaluated"))?.map_err(Failure::from)
    }

    /// Whether it asks for a variable.
    #[must_use]
    pub fn names(&self, variable: &str) -> bool {
        self.variables.contains(variable)
    }
}

fn parse(source: &str) -> Result<(IdedExpr, SourceInfo), Fault> {
    let parser = environment::functions().parser();
    // The parser is generated code of another crate that reads what anybody may write.
    let parsed = catch_unwind(AssertUnwindSafe(|| parser.parse_with_source_info(source)));
    match parsed {
        Err(_) => Err(Fault::at(source, 0, "it cannot be parsed".to_owned())),
        Ok(Ok(parsed)) => Ok(parsed),
        Ok(Err(errors)) => {
            let first = errors.errors.into_iter().next();
            let ((line, column), message) =
                first.map_or_else(|| ((1, 1), String::new()), |error| (error.pos, error.msg));
            let place = |at: isize| usize::try_from(at - 1).unwrap_or_default();
            let message = message.split_whitespace().collect::<Vec<_>>().join(" ");
            Err(Fault::on(source, place(line), place(column), message))
        }
    }
}
