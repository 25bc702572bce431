//! A webhook that allows everything unread: what the server itself costs, as the baseline of benchmarks.
//!
//! ```sh
//! cargo run --release --package kausality-webhook --example null -- 127.0.0.1:9443 ca.crt
//! ```
//!
//! writes the CA that clients must trust to `ca.crt`, and serves until it is interrupted.

use std::{env, fs, net::SocketAddr, time::Instant};

use anyhow::Context;
use kausality_core::{Decision, class::Class};
use kausality_webhook::{Admission, BadReview, Bytes, Certificates, Config, Metrics, Reply, Server, Subject};

/// Allows everything.
struct Null;

impl Admission for Null {
    async fn decide(&self, review: Bytes, _until: Instant) -> Result<Reply, BadReview> {
        let uid = uid(&review).ok_or(BadReview::NoRequest)?.to_owned();
        Ok(Reply { subject: Subject { uid, ..Subject::default() }, decision: allowed() })
    }

    fn is_ready(&self) -> bool {
        true
    }
}

/// The uid of the request: it comes first in what API servers send, so nothing after it is looked at.
fn uid(review: &[u8]) -> Option<&str> {
    const KEY: &[u8] = b"\"uid\"";
    let start = review.windows(KEY.len()).position(|window| window == KEY)? + KEY.len();
    let uid = review.get(start..)?.split(|byte| *byte == b'"').nth(1)?;
    std::str::from_utf8(uid).ok()
}

fn allowed() -> Decision {
    Decision::allow(Class::Ignored)
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    let mut arguments = env::args().skip(1);
    let address: SocketAddr = match arguments.next() {
        Some(text) => {
            text.parse().with_context(|| format!("{text:?} is no address such as 127.0.0.1:9443"))?
        }
        None => ([127, 0, 0, 1], 9443).into(),
    };
    let certificates = Certificates::self_signed(&["localhost".to_owned()], &[address.ip()])?;
    let ca = arguments.next().unwrap_or_else(|| "ca.crt".to_owned());
    fs::write(&ca, certificates.ca_pem().unwrap_or_default())
        .with_context(|| format!("cannot write {ca}"))?;

    let server = Server::new(Config::new(address, certificates), Null, Metrics::default());
    server.run(async { _ = tokio::signal::ctrl_c().await }).await?;
    Ok(())
}
