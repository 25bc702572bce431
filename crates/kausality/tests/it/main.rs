//! The program as people and API servers meet it: commands, replays, scenarios and stories on both control planes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

mod backend;
mod cli;
mod controllers;
mod diff;
mod docs;
mod doctor;
mod histories;
mod inputs;
mod install;
mod own;
mod ownership;
mod plan;
mod policy;
mod real;
mod replay;
mod scenarios;
mod start;
mod up;
mod world;
