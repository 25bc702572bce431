//! Kausality on a real control plane, with real controllers.

mod agreement;
mod controller;
mod decisions;
mod definitions;
mod doctor;
mod ledger;
mod live_and_replay;
mod operators;
mod outages;
mod reinvocation;
mod replicas;
mod rotation;
mod stage;
mod stories;
mod versions;
mod watches;
