//! `kausality plan` on a real API server.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

#[path = "plan/stage.rs"]
mod stage;

#[path = "plan/custom.rs"]
mod custom;
#[path = "plan/managers.rs"]
mod managers;
#[path = "plan/refusals.rs"]
mod refusals;
#[path = "plan/secrets.rs"]
mod secrets;
#[path = "plan/values.rs"]
mod values;
