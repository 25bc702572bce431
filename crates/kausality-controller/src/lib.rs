//! Keeps the webhook registered for what policies name, and gives it what it needs for that.
//!
//! ```text
//!  policies, served kinds ──▶ desired ──▶ webhook configurations, roles, conditions ──▶ applied by run
//!  Secret ──▶ certificates::step ──▶ CA and certificate, rotated
//!  Lease ──▶ lease::step ──▶ election: one of all replicas runs
//! ```
//!
//! What decides is pure: [`desired`], [`certificates::step`] and [`lease::step`] take what there is and say what there
//! should be. [`run`] and [`election`] only read, ask and write.

pub mod certificates;
pub mod desired;
pub mod election;
pub mod lease;
mod metrics;
pub mod run;

pub use metrics::Metrics;
