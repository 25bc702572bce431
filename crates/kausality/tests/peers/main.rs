//! Kausality beside real third-party programs, a module for each. `make test-peers` runs those whose program is built.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

#[path = "../it/real/agreement.rs"]
mod agreement;
mod argo_rollouts;
mod check;
mod cluster_api;
mod crossplane;
mod log;
mod node;
mod prometheus_operator;
mod stage;
