//! Expressions in CEL as Kubernetes evaluates them.

// The engine, which uses it, is not here yet.
#[allow(dead_code)]
mod library;
