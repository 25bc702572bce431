//! The commands of `kausality`, as a library so that tests and benchmarks can reach them.

mod cli;
pub mod replay;
pub mod why;

pub use cli::Cli;
