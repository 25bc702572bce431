//! The sandbox, held against a real API server and the clients that people use.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

mod api;
mod complaints;
mod conditions;
mod controllers;
mod differential;
mod kubectl;
mod rbac;
