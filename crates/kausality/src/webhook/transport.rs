//! How API servers reach the webhook, and what it takes from others.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use kausality_webhook::{Clients, Config};

use super::host_of;

/// File descriptors that are not for connections of clients: watches, files, and calls of the API.
const OWN_DESCRIPTORS: u64 = 256;

/// The fewest connections, however few file descriptors there are.
const FEWEST_CONNECTIONS: usize = 16;

#[derive(Debug, Args)]
pub(super) struct Transport {
    /// CAs of the client certificates of API servers, PEM; read again when it changes. Reviews of anybody else are refused
    #[arg(long, value_name = "FILE")]
    client_ca: Option<PathBuf>,

    /// The names that a client certificate must have, one of them, as its common name or a DNS name
    #[arg(long, value_name = "NAME", value_delimiter = ',', requires = "client_ca")]
    client_names: Vec<String>,

    /// The bearer token of API servers; read again when it changes. With --client-ca, either is enough
    #[arg(long, value_name = "FILE")]
    client_token_file: Option<PathBuf>,

    /// The names that API servers call the webhook by; a certificate for none of them is logged as an error [default: the host of
    /// --url]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    serving_name: Vec<String>,

    /// Bytes of all reviews under way; one beyond that is answered with 503, and sent again by the API server
    #[arg(long, value_name = "BYTES", default_value_t = 64 << 20, value_parser = clap::value_parser!(u32).range(1 << 20..))]
    max_inflight_bytes: u32,

    /// Open connections; beyond that, idle ones are closed to make room
    #[arg(long, value_name = "COUNT", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    max_connections: u32,
}

impl Transport {
    /// Settles who may post reviews, and how many.
    pub(super) fn apply(&self, url: Option<&str>, config: &mut Config) -> Result<()> {
        let mut clients = Clients::default();
        if let Some(file) = &self.client_ca {
            clients = clients.with_authority(file, &self.client_names)?;
        }
        if let Some(file) = &self.client_token_file {
            clients = clients.with_token(file)?;
        }
        if clients.are_anybody() {
            tracing::warn!(
                "reviews are taken from anybody who reaches the port: give --client-ca or --client-token-file, and \
                configure API servers for it"
            );
        }
        config.clients = clients;
        config.serving_names.clone_from(&self.serving_name);
        if config.serving_names.is_empty() {
            config.serving_names.extend(url.map(|url| host_of(url).to_owned()));
        }
        config.body_budget = usize::try_from(self.max_inflight_bytes).unwrap_or(usize::MAX);
        let wanted = usize::try_from(self.max_connections).unwrap_or(usize::MAX);
        config.max_connections = fitting(wanted, descriptors());
        if config.max_connections < wanted {
            tracing::warn!(
                connections = config.max_connections,
                wanted,
                "there are too few file descriptors (ulimit -n) for --max-connections"
            );
        }
        Ok(())
    }
}

/// How many connections there are file descriptors for, none of them meaning any number.
fn fitting(wanted: usize, descriptors: Option<u64>) -> usize {
    let Some(descriptors) = descriptors else { return wanted };
    let room = usize::try_from(descriptors.saturating_sub(OWN_DESCRIPTORS)).unwrap_or(usize::MAX);
    wanted.min(room.max(FEWEST_CONNECTIONS))
}

/// Asks for as many file descriptors as this process may have, and gives their number.
#[cfg(unix)]
fn descriptors() -> Option<u64> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let most = Rlimit { current: limit.maximum, ..limit };
    if setrlimit(Resource::Nofile, most).is_ok() { limit.maximum } else { limit.current }
}

#[cfg(not(unix))]
fn descriptors() -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_file_descriptors_for_others() {
        for (descriptors, expected) in
            [(None, 1000), (Some(1 << 20), 1000), (Some(1024), 768), (Some(64), FEWEST_CONNECTIONS)]
        {
            assert_eq!(fitting(1000, descriptors), expected, "{descriptors:?}");
        }
    }
}
