//! The decision engine, from outside: recorded cases, hostile input, properties that hold for any request.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

mod cases;
mod fuzz;
mod library;
mod properties;
