//! A program beside the control plane.

use anyhow::Result;

use crate::process::Process;

/// A program that [`ControlPlane::run`](crate::ControlPlane::run) started. It ends when this value is dropped, and with
/// the control plane.
#[derive(Debug)]
#[must_use = "the program ends when this is dropped"]
pub struct Program(Process);

impl Program {
    pub(crate) fn new(process: Process) -> Self {
        Self(process)
    }

    /// An error with the end of its log if it has ended.
    pub fn is_running(&mut self) -> Result<()> {
        self.0.is_running()
    }

    /// The id of its process.
    pub fn pid(&self) -> u32 {
        self.0.id()
    }
}
