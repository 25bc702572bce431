//! Managers that take a field from each other, again and again.
//!
//! ```
//! use kausality_fields::fight::Fights;
//! use kausality_fields::{Path, Step};
//!
//! let replicas: Path = ["spec", "replicas"].map(|name| Step::Field(name.to_owned())).into_iter().collect();
//! let mut fights = Fights::default();
//! for manager in ["helm", "hpa", "helm", "hpa"] {
//!     fights.take(&replicas, manager);
//! }
//! assert_eq!(fights.at(&replicas).unwrap().to_string(), "helm and hpa took it from each other 3 times");
//! ```

use crate::attribution::Attribution;
use crate::path::Path;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;

/// Changes of hands from which on it is a fight, if managers come back.
const SWITCHES: usize = 3;

/// Fields that are remembered. Beyond, the one is forgotten whose owner has not changed for longest.
const MAX_FIELDS: usize = 4096;

/// Managers that are remembered of one field.
const MAX_MANAGERS: usize = 8;

/// Who took which field of one object, in the order in which it happened. Its memory is bounded.
#[derive(Debug, Clone, Default)]
pub struct Fights {
    fields: BTreeMap<Path, Holders>,
    /// The fields by when they were taken last.
    by_age: BTreeMap<u64, Path>,
    clock: u64,
}

/// A field that managers take from each other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fight {
    /// The managers that took it more than once, by name.
    pub managers: Vec<String>,
    /// How often it changed hands.
    pub switches: usize,
}

#[derive(Debug, Clone, Default)]
struct Holders {
    last: String,
    switches: usize,
    /// How often each manager took it.
    taken: BTreeMap<String, usize>,
    age: u64,
}

impl Fights {
    /// Takes in what the next request did. Requests must come in the order in which they were made.
    ///
    /// What cannot be read is passed over.
    pub fn feed(&mut self, attribution: &Attribution<'_>) {
        for moved in attribution.reduced.iter().chain(&attribution.written) {
            for path in moved.moves().iter().flat_map(|moves| moves.lost.iter()) {
                // Who loses a field of which nothing is known had it.
                if !self.fields.contains_key(&path) {
                    self.take(&path, &moved.owner.manager);
                }
            }
        }
        for moved in &attribution.written {
            for path in moved.moves().iter().flat_map(|moves| moves.gained.iter()) {
                self.take(&path, &moved.owner.manager);
            }
        }
    }

    /// Notes that a manager has come to own a field.
    pub fn take(&mut self, path: &Path, manager: &str) {
        self.clock += 1;
        let holders = self.fields.entry(path.clone()).or_default();
        self.by_age.remove(&holders.age);
        holders.age = self.clock;
        self.by_age.insert(self.clock, path.clone());
        holders.take(manager);
        if self.fields.len() > MAX_FIELDS
            && let Some((_, oldest)) = self.by_age.pop_first()
        {
            self.fields.remove(&oldest);
        }
    }

    /// The fight over a field, if there is one.
    pub fn at(&self, path: &Path) -> Option<Fight> {
        self.fields.get(path).and_then(Holders::fight)
    }

    /// All fights, in the order of paths.
    pub fn iter(&self) -> impl Iterator<Item = (&Path, Fight)> {
        self.fields.iter().filter_map(|(path, holders)| Some((path, holders.fight()?)))
    }
}

impl Holders {
    fn take(&mut self, manager: &str) {
        if self.last == manager && !self.taken.is_empty() {
            return;
        }
        self.switches += usize::from(!self.taken.is_empty());
        manager.clone_into(&mut self.last);
        if let Some(count) = self.taken.get_mut(manager) {
            *count += 1;
        } else if self.taken.len() < MAX_MANAGERS {
            self.taken.insert(manager.to_owned(), 1);
        }
    }

    /// A field that goes from one to the next and never back is handed on, and not fought over.
    fn fight(&self) -> Option<Fight> {
        let again = self.taken.iter().filter(|(_, count)| **count > 1);
        let managers: Vec<String> = again.map(|(manager, _)| manager.clone()).collect();
        (managers.len() > 1 && self.switches >= SWITCHES)
            .then_some(Fight { managers, switches: self.switches })
    }
}

impl fmt::Display for Fight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (nth, manager) in self.managers.iter().enumerate() {
            let joint = match nth {
                0 => "",
                nth if nth + 1 == self.managers.len() => " and ",
                _ => ", ",
            };
            write!(f, "{joint}{manager}")?;
        }
        write!(f, " took it from each other {} times", self.switches)
    }
}

#[cfg(test)]
mod tests;
