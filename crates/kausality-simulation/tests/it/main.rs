//! Seeds of the simulation, and the bugs that they found.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

mod found;
mod seeds;
