//! The server as its clients see it: over TLS, on both versions of HTTP, while certificates change and while
//! it shuts down.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

mod bodies;
mod client;
mod clients;
mod connections;
mod log;
mod processors;
mod requests;
mod rotation;
mod shutdown;
mod stub;
