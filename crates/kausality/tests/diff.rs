//! `kausality diff` on a real API server.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

#[path = "plan/stage.rs"]
#[allow(dead_code, reason = "not all of it is needed here")]
mod stage;

#[path = "diff/run.rs"]
mod run;

#[path = "diff/custom.rs"]
mod custom;
#[path = "diff/managers.rs"]
mod managers;
#[path = "diff/outputs.rs"]
mod outputs;
#[path = "diff/secrets.rs"]
mod secrets;
#[path = "diff/values.rs"]
mod values;
