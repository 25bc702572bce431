//! Kausality on a real control plane, with real controllers.

mod agreement;
mod clients;
pub(crate) mod controller;
mod coverage;
mod decisions;
mod definitions;
mod doctor;
mod large;
mod ledger;
mod life;
mod live_and_replay;
mod operators;
mod outages;
mod pods;
mod reinvocation;
mod replicas;
mod rotation;
mod salt;
pub(crate) mod stage;
mod stories;
mod upgrade;
mod versions;
mod watches;
