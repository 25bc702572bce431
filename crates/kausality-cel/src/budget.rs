//! What an evaluation may still do.

use std::cell::Cell;

use cel::ExecutionError;
use cel::common::types::{CelBytes, CelList, CelMap, CelOptional, CelString};
use cel::common::value::Val;

/// Every part that is evaluated, every byte that is read or copied is paid for from it, before it is done.
///
/// Once it is gone nothing can be paid for. So an evaluation ends, also where errors are forgiven: the other side of an
/// `||` is not to be had either.
#[derive(Debug)]
pub(crate) struct Budget(Cell<u64>);

/// How many bytes of text cost as much as one part.
const BYTES: usize = 16;
/// How many steps of a search, of a byte of the text and a state of the pattern each, cost as much as one part.
pub(crate) const STEPS: u64 = 32;
/// How much dearer it is to copy something than to look at it.
const COPY: u64 = 3;

impl Budget {
    pub(crate) fn new(most: u64) -> Self {
        Self(Cell::new(most))
    }

    pub(crate) fn left(&self) -> u64 {
        self.0.get()
    }

    /// Whether something could not be paid for.
    pub(crate) fn is_gone(&self) -> bool {
        self.0.get() == 0
    }

    pub(crate) fn charge(&self, cost: u64) -> Result<(), ExecutionError> {
        match self.0.get().checked_sub(cost) {
            Some(left) if left > 0 => {
                self.0.set(left);
                Ok(())
            }
            _ => {
                self.0.set(0);
                Err(ExecutionError::InternalError("the budget is gone".to_owned()))
            }
        }
    }

    /// Charges for a copy of a value: each part of it takes memory of its own, and is given back at the end.
    pub(crate) fn charge_copy(&self, value: &dyn Val) -> Result<(), ExecutionError> {
        self.charge(self.weigh(value).saturating_mul(COPY))
    }

    /// Charges for all that a value is made of.
    pub(crate) fn charge_for(&self, value: &dyn Val) -> Result<(), ExecutionError> {
        self.charge(self.weigh(value))
    }

    /// How much a value is: one for each part of it and for some bytes of text. Not more than what is left is counted.
    pub(crate) fn weigh(&self, value: &dyn Val) -> u64 {
        let mut counted = 0;
        weigh(value, self.0.get(), &mut counted);
        counted
    }
}

/// For as many bytes.
pub(crate) fn text(bytes: usize) -> u64 {
    (bytes / BYTES) as u64 + 1
}

/// Values are not deeper than what they were made of: an object that was parsed, or an expression.
fn weigh(value: &dyn Val, most: u64, counted: &mut u64) {
    if *counted >= most {
        return;
    }
    *counted += 1;
    if let Some(it) = value.downcast_ref::<CelString>() {
        *counted += text(it.inner().len()) - 1;
    } else if let Some(list) = value.downcast_ref::<CelList>() {
        for item in list.inner() {
            weigh(&**item, most, counted);
        }
    } else if let Some(map) = value.downcast_ref::<CelMap>() {
        for (key, value) in map.inner() {
            weigh(key.inner(), most, counted);
            weigh(&**value, most, counted);
        }
    } else if let Some(it) = value.downcast_ref::<CelBytes>() {
        *counted += text(it.inner().len()) - 1;
    } else if let Some(it) = value.downcast_ref::<CelOptional>()
        && let Some(inner) = it.option()
    {
        weigh(inner, most, counted);
    }
}
