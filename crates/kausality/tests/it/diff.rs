//! `kausality diff` on a real API server.

mod run;

mod custom;
mod managers;
mod outputs;
mod secrets;
mod values;
