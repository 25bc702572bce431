//! `cargo xtask`, as tests call it.

use std::path::Path;
use std::process::Command;

/// A command that runs `cargo xtask` with the arguments that are added to it. cargo may have to build it first.
pub(crate) fn xtask() -> Command {
    // Below cargo, `CARGO` is the cargo that runs this test.
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.toml");
    let mut command = Command::new(cargo);
    command.args(["run", "--quiet", "--locked", "--bin", "xtask", "--manifest-path"]).arg(manifest).arg("--");
    command
}
