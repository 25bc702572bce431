//! The `kausality` command.

use std::{io, process::ExitCode};

use kausality::Cli;
use kausality_api::text::plain;

fn main() -> ExitCode {
    let cli = Cli::from_command_line();
    cli.run().unwrap_or_else(|error| {
        // Whoever reads along has seen enough: no error of ours.
        if error.chain().any(is_broken_pipe) {
            return ExitCode::SUCCESS;
        }
        anstream::eprintln!("error: {}", plain(&format!("{error:#}")));
        ExitCode::from(cli.failure())
    })
}

fn is_broken_pipe(cause: &(dyn std::error::Error + 'static)) -> bool {
    let of_json = cause.downcast_ref::<serde_json::Error>().and_then(serde_json::Error::io_error_kind);
    let kind = cause.downcast_ref::<io::Error>().map(io::Error::kind).or(of_json);
    kind == Some(io::ErrorKind::BrokenPipe)
}
