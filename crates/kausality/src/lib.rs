//! The commands of `kausality`, as a library so that tests and benchmarks can reach them.

mod act;
pub mod approve;
mod cli;
pub mod completions;
pub mod connect;
pub mod controller;
pub mod demo;
pub mod diff;
pub mod doctor;
pub mod drifts;
pub mod embedded;
pub mod freeze;
pub mod install;
mod ledger;
mod live;
pub mod manifests;
mod mode;
mod output;
pub mod own;
pub mod plan;
pub mod policies;
mod reach;
pub mod reject;
pub mod replay;
pub mod show;
pub mod snooze;
mod span;
pub mod target;
pub mod trace;
pub mod unapprove;
pub mod uninstall;
pub mod up;
pub mod webhook;
pub mod why;

pub use cli::Cli;
