//! The commands of `kausality`, as a library so that tests and benchmarks can reach them.

mod cli;
pub mod connect;
pub mod demo;
pub mod diff;
pub mod doctor;
pub mod embedded;
mod live;
pub mod manifests;
mod mode;
pub mod own;
pub mod plan;
pub mod replay;
pub mod target;
pub mod up;
pub mod webhook;
pub mod why;

pub use cli::Cli;
