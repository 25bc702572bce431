//! What people see and do: the commands about drifts, run as a person would, on a control plane in memory and on a real
//! one.

mod accounts;
mod conflicts;
mod decisions;
mod documentation;
mod effect;
mod exceptions;
mod explained;
mod line;
mod lists;
mod pages;
mod parents;
mod pictures;
mod refusals;
mod rights;
mod screens;
mod secrets;
mod shells;
mod stage;
mod story;
mod svg;
mod terminal;
mod unenforced;
