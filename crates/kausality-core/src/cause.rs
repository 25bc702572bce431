//! The cause of a change.

use std::fmt;

use kausality_api::phase::Phase;

use crate::actor::Actor;

/// What caused a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Somebody asked for it here.
    Origin,
    /// A controller builds the children of a parent that has never been ready.
    Initialization,
    /// A controller carries out a change of the parent's intent.
    Expected,
    /// A controller changes a child although nobody changed the parent.
    Drift,
    /// The parent or the child is on its way out.
    Cleanup,
}

impl Cause {
    /// The cause of a change that an actor makes to a child of a living parent.
    #[must_use]
    pub fn of(actor: Actor, phase: Phase, settled: bool) -> Self {
        match (actor, phase) {
            (_, Phase::Deleting) => Self::Cleanup,
            (Actor::Other, _) => Self::Origin,
            (Actor::Controller, Phase::Initializing) => Self::Initialization,
            (Actor::Controller, _) if settled => Self::Drift,
            (Actor::Unknown, _) if settled => Self::Origin,
            (Actor::Controller | Actor::Unknown, _) => Self::Expected,
        }
    }

    /// The word for it in outputs.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Origin => "Origin",
            Self::Initialization => "Initialization",
            Self::Expected => "Expected",
            Self::Drift => "Drift",
            Self::Cleanup => "Cleanup",
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
