//! A plan in one line, and as an exit code.

use std::fmt;

use super::planned::{Action, Planned};

/// How many objects there are of each action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Summary(Vec<Action>);

impl Summary {
    pub(super) fn of(planned: &[Planned]) -> Self {
        Self(planned.iter().map(|planned| planned.action).collect())
    }

    pub(super) fn count(&self, action: Action) -> usize {
        self.0.iter().filter(|other| **other == action).count()
    }

    /// As `kubectl diff` has it: 0 if there is nothing to do, 1 if there is, 2 if something cannot be.
    pub(super) fn exit_code(&self) -> u8 {
        if self.count(Action::Error) > 0 { 2 } else { u8::from(self.count(Action::Nothing) < self.0.len()) }
    }
}

/// `3 to create, 1 to change, 1 conflict, 12 unchanged`.
impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = [
            (Action::Create, "to create", "to create"),
            (Action::Change, "to change", "to change"),
            (Action::Conflict, "conflict", "conflicts"),
            (Action::Error, "error", "errors"),
            (Action::Nothing, "unchanged", "unchanged"),
        ];
        let parts = words.into_iter().filter_map(|(action, one, many)| match self.count(action) {
            0 => None,
            1 => Some(format!("1 {one}")),
            count => Some(format!("{count} {many}")),
        });
        f.write_str(&parts.collect::<Vec<String>>().join(", "))
    }
}
