//! The mode, as an argument.

use clap::ValueEnum;
use kausality_api::mode::Mode;

/// Log or enforce.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ModeArgument {
    /// Allow drift, with a warning
    Log,
    /// Deny drift
    Enforce,
}

impl From<ModeArgument> for Mode {
    fn from(argument: ModeArgument) -> Self {
        match argument {
            ModeArgument::Log => Self::Log,
            ModeArgument::Enforce => Self::Enforce,
        }
    }
}
