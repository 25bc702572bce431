//! Any routes, served as admission is: with certificates that rotate, and an end that loses no request.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use axum::Router;
use tokio::{net::TcpListener, sync::watch};
use tokio_rustls::TlsAcceptor;

use crate::{
    certificates::Certificates,
    connection::{Doorway, Stage, capacity::Capacity},
    server::{ServerError, bind},
};

/// How long requests that are under way are waited for at the end.
const PATIENCE: Duration = Duration::from_secs(10);

/// Routes that are listened for.
pub struct Site {
    listener: TcpListener,
    address: SocketAddr,
    tls: Option<TlsAcceptor>,
}

impl Site {
    /// Listens, with TLS if there are certificates.
    ///
    /// # Errors
    /// If it cannot.
    pub async fn listen(
        address: SocketAddr,
        certificates: Option<&Certificates>,
    ) -> Result<Self, ServerError> {
        let tls = match certificates {
            Some(certificates) => Some(TlsAcceptor::from(Arc::new(certificates.server_config(None)?))),
            None => None,
        };
        let (listener, address) = bind(address).await?;
        Ok(Self { listener, address, tls })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves these routes until `shutdown`, and then whatever is under way.
    pub async fn serve(self, router: Router, shutdown: impl Future<Output = ()>) {
        let (stage, stages) = watch::channel(Stage::Serving);
        let mut doorway = Doorway::new(self.listener, self.tls, router, stages, Capacity::default());
        doorway.accept_until(shutdown).await;
        let open = doorway.close();
        stage.send_replace(Stage::Closing);
        if let connections @ 1.. = open.finish(PATIENCE).await {
            tracing::warn!(connections, "shut down before all requests were answered");
        }
    }
}
