//! Probes and metrics of a process that serves nothing else.

use std::{fmt, net::SocketAddr, sync::Arc};

use axum::{
    Router,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
    routing::get,
};
use futures::future;
use prometheus_client::registry::Registry;
use tokio::sync::watch;

use crate::{
    connection::{Doorway, Stage, capacity::Capacity},
    metrics,
    server::{ServerError, bind},
};

/// `/healthz`, `/readyz` and `/metrics`, without TLS.
pub struct Probes {
    registry: Registry,
    ready: Box<dyn Fn() -> Result<(), String> + Send + Sync>,
}

impl Probes {
    /// Probes that show these metrics and ask this function whether the process is ready, or why not.
    #[must_use]
    pub fn new(registry: Registry, ready: impl Fn() -> Result<(), String> + Send + Sync + 'static) -> Self {
        Self { registry, ready: Box::new(ready) }
    }

    /// Serves, for ever.
    ///
    /// # Errors
    /// If it cannot listen there.
    pub async fn serve(self, address: SocketAddr) -> Result<(), ServerError> {
        let (listener, address) = bind(address).await?;
        tracing::info!(%address, "serving probes and metrics without TLS");
        let (metrics, ready) = (Arc::new(self), watch::channel(Stage::Serving).1);
        let probes = metrics.clone();
        let router = Router::new()
            .route("/healthz", get(async || "ok\n"))
            .route("/readyz", get(async move || probes.readiness()))
            .route("/metrics", get(async move || metrics.text()));
        let mut doorway = Doorway::new(listener, None, router, ready, Capacity::default());
        doorway.accept_until(future::pending()).await;
        Ok(())
    }

    fn readiness(&self) -> (StatusCode, String) {
        match (self.ready)() {
            Ok(()) => (StatusCode::OK, "ok\n".to_owned()),
            Err(why) => (StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")),
        }
    }

    fn text(&self) -> Response {
        let mut text = String::new();
        match prometheus_client::encoding::text::encode(&mut text, &self.registry) {
            Ok(()) => ([(header::CONTENT_TYPE, metrics::CONTENT_TYPE)], text).into_response(),
            Err(_) => (StatusCode::INTERNAL_SERVER_ERROR, "a metric cannot be written\n").into_response(),
        }
    }
}

impl fmt::Debug for Probes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Probes")
    }
}
