//! The `kausality` command.
mod replay;
fn main() {
    replay::proto(&std::env::args().nth(1).unwrap());
}
