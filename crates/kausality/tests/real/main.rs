//! Kausality on a real control plane, with real controllers.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

mod controller;
mod decisions;
mod definitions;
mod doctor;
mod ledger;
mod operators;
mod outages;
mod reinvocation;
mod replicas;
mod rotation;
mod stage;
mod stories;
mod versions;
mod watches;
