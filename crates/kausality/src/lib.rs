//! The commands of `kausality`, as a library so that tests and benchmarks can reach them.

pub mod backend;
mod cli;
pub mod connect;
pub mod controller;
pub mod demo;
pub mod diff;
pub mod doctor;
pub mod embedded;
pub mod install;
mod live;
pub mod manifests;
mod mode;
pub mod own;
pub mod plan;
pub mod replay;
pub mod target;
pub mod uninstall;
pub mod up;
pub mod webhook;
pub mod why;

pub use cli::Cli;
