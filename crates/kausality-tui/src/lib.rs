//! The drifts of a cluster on a terminal.
//!
//! ```text
//!  keys, drifts, what became of a deed ──▶ App::take ──▶ Command (a deed to do, or the end)
//!                                             │
//!                                             ▼
//!                                           view ──▶ terminal
//! ```
//!
//! [`App`] is all there is to know, and changes by what comes in alone: no clock, no cluster, no terminal. What reads a
//! cluster and acts on it is handed in by whoever [runs](run::run) it.

mod app;
mod keys;
mod rows;
pub mod run;
mod text;
mod view;

pub use app::{Action, App, Command, Deed, Input, Link};
pub use view::draw;
