//! The `kausality` command.
fn main() {}
