//! What can be done to resources, one module for each thing.

mod create;
mod delete;
mod furnish;
mod read;
mod reviews;
mod scale;
mod update;
mod watch;

pub(crate) use read::metadata_of;
