//! Diffs, field sets and ownership, held against structured-merge-diff's own cases and random objects.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

mod golden_sets;
mod merge_cases;
mod properties;
mod schema_robust;
mod schema_served;
mod set_properties;
mod smd;
mod verdict_properties;
mod verdict_recorded;
mod verdict_regressions;
mod verdict_secrets;
mod verdict_unknown;
mod verdict_world;
