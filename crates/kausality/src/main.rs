//! The `kausality` command.

use std::{io, process::ExitCode};

use kausality::Cli;
use kausality_api::text::plain;

fn main() -> ExitCode {
    let cli = Cli::from_command_line();
    cli.run().unwrap_or_else(|error| {
        // Whoever reads along has seen enough: no error of ours.
        if is_unread(&error) {
            return ExitCode::SUCCESS;
        }
        // What is shown with its place has several lines.
        let lines: Vec<String> = told(&error).lines().map(|line| plain(line).into_owned()).collect();
        anstream::eprintln!("error: {}", lines.join("\n"));
        ExitCode::from(cli.failure())
    })
}

/// An error and its causes, each once: many tell their cause themselves.
fn told(error: &anyhow::Error) -> String {
    let mut told = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if told.is_empty() {
            told = cause;
        } else if !told.ends_with(&cause) {
            told = format!("{told}: {cause}");
        }
    }
    told
}

/// Whether nobody reads what is printed. A connection to a cluster may break in the same way, and is an error.
fn is_unread(error: &anyhow::Error) -> bool {
    error.chain().any(is_broken_pipe) && !error.chain().any(|cause| cause.is::<kube::Error>())
}

fn is_broken_pipe(cause: &(dyn std::error::Error + 'static)) -> bool {
    let of_json = cause.downcast_ref::<serde_json::Error>().and_then(serde_json::Error::io_error_kind);
    let kind = cause.downcast_ref::<io::Error>().map(io::Error::kind).or(of_json);
    kind == Some(io::ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_told_once() {
        #[derive(Debug, thiserror::Error)]
        #[error("cannot listen on {place}: {source}")]
        struct Listen {
            place: &'static str,
            source: io::Error,
        }
        let taken = || io::Error::other("address in use");
        let error = anyhow::Error::from(Listen { place: "[::]:80", source: taken() }).context("no webhook");
        assert_eq!(told(&error), "no webhook: cannot listen on [::]:80: address in use");
        assert_eq!(told(&anyhow::Error::from(taken()).context("no webhook")), "no webhook: address in use");
    }

    #[test]
    fn a_broken_connection_is_no_broken_pipe() {
        let broken = || io::Error::from(io::ErrorKind::BrokenPipe);
        assert!(is_unread(&anyhow::Error::from(broken()).context("cannot write")));
        assert!(!is_unread(&io::Error::from(io::ErrorKind::NotFound).into()));
        let connection = kube::Error::Service(Box::new(broken()));
        assert!(!is_unread(&anyhow::Error::from(connection).context("cannot read Garden park/south")));
    }
}
