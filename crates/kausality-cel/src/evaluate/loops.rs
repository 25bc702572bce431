//! Loops: what `all`, `exists`, `map` and the like have become.

use std::ops::ControlFlow;

use cel::ExecutionError;
use cel::common::types::{CelInt, CelList, CelMap, CelMapKey};
use cel::common::value::{CowVal, Val};

use super::{Evaluation, Outcome, Scope, no_overload, truth};
use crate::node::{Each, Loop, Node};
use crate::object;

impl Evaluation<'_> {
    pub(super) fn looped<'s>(&'s self, it: &'s Loop, scope: Option<&'s Scope<'s>>) -> Outcome<'s> {
        match &it.each {
            Each::All(each) => self.quantified(it, each, false, scope),
            Each::Exists(each) => self.quantified(it, each, true, scope),
            Each::ExistsOne(each) => {
                let mut found = 0_u64;
                self.over(it, scope, |inner, _| {
                    found += u64::from(self.condition(each, Some(inner))?);
                    Ok(ControlFlow::Continue(()))
                })?;
                Ok(truth(found == 1))
            }
            Each::Collect { when, item } => {
                let mut items = Vec::new();
                self.over(it, scope, |inner, _| {
                    if self.wanted(when.as_ref(), inner)? {
                        items.push(self.own(self.value(item, Some(inner))?)?);
                    }
                    Ok(ControlFlow::Continue(()))
                })?;
                Ok(CowVal::owned(CelList::from(items)))
            }
            Each::Insert { when, value } => {
                let mut entries: Vec<(CelMapKey<'static>, Box<dyn Val>)> = Vec::new();
                self.over(it, scope, |inner, key| {
                    if self.wanted(when.as_ref(), inner)? {
                        let key = self.key(CowVal::Borrowed(key))?;
                        entries.push((key, self.own(self.value(value, Some(inner))?)?));
                    }
                    Ok(ControlFlow::Continue(()))
                })?;
                Ok(CowVal::owned(object::map(entries)))
            }
            Each::Merge { when, entries } => self.merged(it, when.as_ref(), entries, scope),
        }
    }

    /// `all` and `exists`: the first item that decides ends it, whatever went wrong with others.
    fn quantified<'s>(
        &'s self,
        it: &'s Loop,
        each: &'s Node,
        decides: bool,
        scope: Option<&'s Scope<'s>>,
    ) -> Outcome<'s> {
        let mut error = None;
        let mut decided = false;
        self.over(it, scope, |inner, _| match self.condition(each, Some(inner)) {
            Ok(held) if held == decides => {
                decided = true;
                Ok(ControlFlow::Break(()))
            }
            Ok(_) => Ok(ControlFlow::Continue(())),
            Err(cause) => {
                error = Some(cause);
                Ok(ControlFlow::Continue(()))
            }
        })?;
        match error {
            Some(error) if !decided => Err(error),
            _ => Ok(truth(decided == decides)),
        }
    }

    fn merged<'s>(
        &'s self,
        it: &'s Loop,
        when: Option<&'s Node>,
        entries: &'s Node,
        scope: Option<&'s Scope<'s>>,
    ) -> Outcome<'s> {
        let mut merged = std::collections::BTreeMap::<CelMapKey<'static>, Box<dyn Val>>::new();
        self.over(it, scope, |inner, _| {
            if !self.wanted(when, inner)? {
                return Ok(ControlFlow::Continue(()));
            }
            let value = self.value(entries, Some(inner))?;
            let Some(map) = value.downcast_ref::<CelMap>() else {
                return Err(no_overload("_{_}", [&*value]));
            };
            self.budget.charge_copy(map)?;
            for (key, value) in map.inner() {
                let twice = twin(key).is_some_and(|twin| merged.contains_key(&twin));
                if merged.insert(key.clone(), value.clone()).is_some() || twice {
                    return Err(ExecutionError::function_error("transformMapEntry", "the same key twice"));
                }
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(CowVal::owned(object::map(merged)))
    }

    fn wanted(&self, when: Option<&Node>, scope: &Scope<'_>) -> Result<bool, ExecutionError> {
        when.map_or(Ok(true), |when| self.condition(when, Some(scope)))
    }

    /// Goes over the items of a list, or over a map in the order of its keys, so that the same input has the same result.
    fn over<'s>(
        &'s self,
        it: &'s Loop,
        scope: Option<&'s Scope<'s>>,
        mut each: impl FnMut(&Scope<'_>, &(dyn Val + 'static)) -> Result<ControlFlow<()>, ExecutionError>,
    ) -> Result<(), ExecutionError> {
        let range = self.value(&it.range, scope)?;
        let mut turn = |first: &(dyn Val + 'static), second: &(dyn Val + 'static)| {
            // An error within a turn may be forgiven; that there is nothing left to pay with may not.
            self.budget.charge(1)?;
            let outer = Scope { value: first, outer: scope };
            let inner = Scope { value: second, outer: Some(&outer) };
            let turned = each(if it.paired { &inner } else { &outer }, first)?;
            if self.budget.is_gone() { self.budget.charge(1).map(|()| turned) } else { Ok(turned) }
        };
        if let Some(list) = range.downcast_ref::<CelList>() {
            for (nth, item) in list.inner().iter().enumerate() {
                let turned = if it.paired {
                    turn(&CelInt::from(i64::try_from(nth).unwrap_or(i64::MAX)), &**item)?
                } else {
                    turn(&**item, &**item)?
                };
                if turned.is_break() {
                    break;
                }
            }
        } else if let Some(map) = range.downcast_ref::<CelMap>() {
            self.budget.charge(map.inner().len() as u64)?;
            let mut entries: Vec<_> = map.inner().iter().collect();
            entries.sort_by_key(|(key, _)| *key);
            for (key, value) in entries {
                if turn(key.inner(), &**value)?.is_break() {
                    break;
                }
            }
        } else {
            return Err(no_overload("a loop", [&*range]));
        }
        Ok(())
    }
}

/// The same number as a key of the other type: they are one key.
fn twin(key: &CelMapKey<'_>) -> Option<CelMapKey<'static>> {
    match key {
        CelMapKey::Int(key) => u64::try_from(*key.inner()).ok().map(CelMapKey::from),
        CelMapKey::UInt(key) => i64::try_from(*key.inner()).ok().map(CelMapKey::from),
        _ => None,
    }
}
