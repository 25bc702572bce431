//! `kausality plan` on a real API server.

pub(crate) mod stage;

mod custom;
mod managers;
mod refusals;
mod secrets;
mod values;
