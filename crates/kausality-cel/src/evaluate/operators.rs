//! Operators.

use std::cmp::Ordering;

use cel::ExecutionError;
use cel::common::types::{CelList, CelString};
use cel::common::value::{CowVal, Val};

use super::{Evaluation, Outcome, Scope, is_container, no_overload, truth};
use crate::node::{Node, Operator};

impl Evaluation<'_> {
    /// `&&` and `||`: `decides` is the value that settles it, also if the other side cannot be told.
    pub(super) fn both<'s>(
        &'s self,
        both: &'s [Node; 2],
        decides: bool,
        scope: Option<&'s Scope<'s>>,
    ) -> Outcome<'s> {
        let [left, right] = both;
        let left = self.condition(left, scope);
        if left == Ok(decides) {
            return Ok(truth(decides));
        }
        match (left, self.condition(right, scope)?) {
            (Err(error), right) if right != decides => Err(error),
            (_, right) => Ok(truth(right)),
        }
    }

    pub(super) fn negated<'s>(&'s self, of: &'s Node, scope: Option<&'s Scope<'s>>) -> Outcome<'s> {
        let value = self.value(of, scope)?;
        match value.as_negator() {
            Some(negator) => Ok(CowVal::Owned(negator.negate()?)),
            None => Err(no_overload("-_", [&*value])),
        }
    }

    pub(super) fn binary<'s>(
        &'s self,
        operator: Operator,
        both: &'s [Node; 2],
        scope: Option<&'s Scope<'s>>,
    ) -> Outcome<'s> {
        let [one, two] = both;
        let (one, two) = (self.value(one, scope)?, self.value(two, scope)?);
        let (one, two) = (&*one, &*two);
        match operator {
            Operator::Equal => Ok(truth(self.equal(one, two)?)),
            Operator::NotEqual => Ok(truth(!self.equal(one, two)?)),
            Operator::Less => Ok(truth(self.ordering("_<_", one, two)? == Some(Ordering::Less))),
            Operator::LessOrEqual => {
                Ok(truth(matches!(self.ordering("_<=_", one, two)?, Some(Ordering::Less | Ordering::Equal))))
            }
            Operator::Greater => Ok(truth(self.ordering("_>_", one, two)? == Some(Ordering::Greater))),
            Operator::GreaterOrEqual => Ok(truth(matches!(
                self.ordering("_>=_", one, two)?,
                Some(Ordering::Greater | Ordering::Equal)
            ))),
            Operator::In => Ok(truth(self.contained(one, two)?)),
            Operator::And | Operator::Or => Err(no_overload("_&&_", [one, two])),
            Operator::Add
            | Operator::Subtract
            | Operator::Multiply
            | Operator::Divide
            | Operator::Remainder => self.arithmetic(operator, one, two),
        }
    }

    /// Compares no more than the smaller of both.
    pub(super) fn equal(&self, one: &dyn Val, two: &dyn Val) -> Result<bool, ExecutionError> {
        let mut cost = self.budget.weigh(one);
        if cost > 1 {
            cost = cost.min(self.budget.weigh(two));
        }
        self.budget.charge(cost)?;
        Ok(one.equals(two))
    }

    /// None if one of them is not a number, and they should be.
    fn ordering(
        &self,
        operator: &str,
        one: &dyn Val,
        two: &dyn Val,
    ) -> Result<Option<Ordering>, ExecutionError> {
        if is_container(one) || is_container(two) {
            return Err(no_overload(operator, [one, two]));
        }
        self.budget.charge(self.budget.weigh(one).min(self.budget.weigh(two)))?;
        let not_a_number = |value: &dyn Val| {
            value.downcast_ref::<cel::common::types::CelDouble>().is_some_and(|it| it.inner().is_nan())
        };
        let comparer = one.as_comparer().ok_or_else(|| no_overload(operator, [one, two]))?;
        if (not_a_number(one) && two.as_subtractor().is_some())
            || (not_a_number(two) && one.as_subtractor().is_some())
        {
            return Ok(None);
        }
        comparer.compare(two).map(Some).map_err(|_| no_overload(operator, [one, two]))
    }

    fn contained(&self, item: &dyn Val, within: &dyn Val) -> Result<bool, ExecutionError> {
        if let Some(list) = within.downcast_ref::<CelList>() {
            for other in list.inner() {
                self.budget.charge(1)?;
                if self.equal(item, &**other)? {
                    return Ok(true);
                }
            }
            return Ok(false);
        }
        match within.as_container() {
            Some(container) if !is_container(item) => {
                container.contains(item).map_err(|_| no_overload("@in", [item, within]))
            }
            _ => Err(no_overload("@in", [item, within])),
        }
    }

    fn arithmetic<'s>(
        &self,
        operator: Operator,
        one: &(dyn Val + 'static),
        two: &(dyn Val + 'static),
    ) -> Outcome<'s> {
        let name = match operator {
            Operator::Add => "_+_",
            Operator::Subtract => "_-_",
            Operator::Multiply => "_*_",
            Operator::Divide => "_/_",
            _ => "_%_",
        };
        let none = || no_overload(name, [one, two]);
        // What is added is copied; and an error may hold both.
        self.budget.charge_copy(one)?;
        self.budget.charge_copy(two)?;
        let is_text = |value: &dyn Val| value.downcast_ref::<CelString>().is_some();
        if operator == Operator::Add
            && one.downcast_ref::<CelList>().is_some() != two.downcast_ref::<CelList>().is_some()
            || is_text(one) != is_text(two)
        {
            return Err(none());
        }
        let result = match operator {
            Operator::Add => one.as_adder().map(|it| it.add(two)),
            Operator::Subtract => one.as_subtractor().map(|it| it.sub(two)),
            Operator::Multiply => one.as_multiplier().map(|it| it.mul(two)),
            Operator::Divide => one.as_divider().map(|it| it.div(two)),
            _ => one.as_modder().map(|it| it.modulo(two)),
        };
        result.ok_or_else(none)?.map(|value| CowVal::Owned(value.into_owned()))
    }
}
