//! The HTTPS server of Kausality: admission reviews in, answers out.
//!
//! ```text
//!                 Certificates            Admission                        Metrics
//!                 files, re-read,         decides; here it is              what is counted, as
//!                 handed over, made up    only a trait                     OpenMetrics text
//!                      │                       ▲                               ▲
//!                      │                 bytes │ Reply                         │
//!  API server ──TLS──▶ connection ──▶ admit ───┴──▶ response ──▶ AdmissionReview { response }
//!                      HTTP/1.1       body limit, deadline,
//!                      or HTTP/2      panics, logs
//!
//!  decisions ───────▶ /decisions  where nothing else is asked about
//!  inputs ──────────▶ /inputs     only observed
//!  policies ────────▶ /validate
//!  probes ──────────▶ /healthz  /readyz  /metrics
//! ```
//!
//! This crate knows HTTP and the wire format, and nothing of clusters: whatever implements [`Admission`] can
//! be served. What goes wrong on the way to a decision (a body that is too large, a deadline that passes, a
//! panic) becomes an HTTP error, never an `allowed: false`: the API server then applies the `failurePolicy` of
//! the webhook, which is where an administrator chose between safety and availability.
//!
//! **Shutdown loses no request.** On the signal `/readyz` fails at once while requests are served on, so that
//! load balancers look elsewhere; then the listener closes, connections are told to end (GOAWAY on HTTP/2,
//! `Connection: close` on HTTP/1.1), and requests under way are waited for.
//!
//! ```no_run
//! use kausality_webhook::{Admission, BadReview, Bytes, Certificates, Config, Metrics, Reply, Server};
//!
//! async fn serve(admission: impl Admission) -> Result<(), Box<dyn std::error::Error>> {
//!     let certificates = Certificates::from_files("/tls/tls.crt", "/tls/tls.key")?;
//!     let config = Config::new(([0, 0, 0, 0], 9443).into(), certificates);
//!     let shutdown = async { _ = tokio::signal::ctrl_c().await };
//!     Server::new(config, admission, Metrics::default()).run(shutdown).await?;
//!     Ok(())
//! }
//! ```

mod admission;
mod admit;
mod body;
mod certificates;
mod clients;
mod connection;
mod deadline;
mod metrics;
mod probes;
mod processors;
mod reread;
pub mod response;
mod routes;
mod seldom;
mod server;
mod site;
mod validate;

pub use admission::{Admission, Reply, Subject};
pub use axum::body::Bytes;
pub use certificates::{CertificateError, Certificates, Fault};
pub use clients::Clients;
pub use kausality_core::review::BadReview;
pub use metrics::Metrics;
pub use probes::Probes;
pub use server::{Config, Listening, Server, ServerError};
pub use site::Site;
