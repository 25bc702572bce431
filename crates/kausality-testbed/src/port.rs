//! Ports on loopback.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context as _, Result};

/// What this process has given out. Two control planes of one test then never get the same port.
static GIVEN: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());

/// A port on loopback that nobody listens on at this moment, and that this process never got before.
///
/// Another process may take it before the caller does. Who listens within this process should bind port 0 instead, and
/// ask the listener for its address.
pub fn free_port() -> Result<u16> {
    // Ports that were given before are held until a new one comes, or the kernel could offer the same one for ever.
    let mut held = Vec::new();
    loop {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("binding a port of 127.0.0.1")?;
        let port = listener.local_addr().context("reading the port that was bound")?.port();
        if GIVEN.lock().unwrap_or_else(PoisonError::into_inner).insert(port) {
            return Ok(port);
        }
        held.push(listener);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_port_is_given_twice() {
        let ports: BTreeSet<_> = (0..200).map(|_| free_port().unwrap()).collect();
        assert_eq!(ports.len(), 200);
    }

    #[test]
    fn a_port_can_be_bound() {
        assert!(TcpListener::bind((Ipv4Addr::LOCALHOST, free_port().unwrap())).is_ok());
    }
}
