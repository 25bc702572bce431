//! The chart, the plain manifests, `kausality install` and `kausality uninstall`, with helm and a real API server.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

mod chart;
mod documentation;
mod plain;
mod release;
mod reports;
mod rights;
mod stage;
