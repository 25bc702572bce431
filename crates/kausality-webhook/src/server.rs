//! The server: its settings, its start and its end.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use futures::future;
use tokio::{net::TcpListener, sync::watch, task::JoinSet, time::sleep};
use tokio_rustls::TlsAcceptor;

use crate::{
    admission::Admission,
    admit::Desk,
    body::Intake,
    certificates::Certificates,
    clients::Clients,
    connection::{
        Doorway, Stage,
        capacity::{CONNECTIONS, Capacity},
    },
    metrics::Metrics,
    routes,
};

/// The settings of a server.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where it listens for HTTPS. Port 0 takes any that is free: see [`Listening::address`].
    pub address: SocketAddr,
    /// Where it serves probes and metrics without TLS, too.
    pub health_address: Option<SocketAddr>,
    /// What it shows in handshakes.
    pub certificates: Certificates,
    /// The names that API servers call it by. A certificate for none of them is logged as an error.
    pub serving_names: Vec<String>,
    /// Who may post reviews.
    pub clients: Clients,
    /// The time for a request, unless the API server says that it waits for less.
    pub deadline: Duration,
    /// The bytes of the largest review.
    pub body_limit: usize,
    /// The bytes of all reviews that are in memory at one time, from their first byte until they are answered. A review
    /// beyond it is put off with a 503. Deciding takes about three times as much memory as the review itself.
    pub body_budget: usize,
    /// The most connections at one time. Beyond it, idle ones are closed to make room; where none is idle, the one that comes.
    pub max_connections: usize,
    /// How long it serves on after the shutdown signal while `/readyz` says to go elsewhere: the time that
    /// endpoints take to change in all of a cluster.
    pub drain_delay: Duration,
    /// How long it then waits for requests that are under way. Should be more than `deadline`; together with
    /// `drain_delay` it must be less than the pod's `terminationGracePeriodSeconds`.
    pub drain_deadline: Duration,
}

impl Config {
    /// The defaults.
    #[must_use]
    pub fn new(address: SocketAddr, certificates: Certificates) -> Self {
        Self {
            address,
            health_address: None,
            certificates,
            serving_names: Vec::new(),
            clients: Clients::default(),
            deadline: Duration::from_secs(8),
            body_limit: 8 << 20,
            body_budget: 64 << 20,
            max_connections: CONNECTIONS,
            drain_delay: Duration::from_secs(5),
            drain_deadline: Duration::from_secs(15),
        }
    }
}

/// Why a server does not start.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// It cannot listen.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// Why.
        source: std::io::Error,
    },
    /// TLS cannot be set up.
    #[error("cannot set up TLS: {0}")]
    Tls(#[from] rustls::Error),
}

/// A server that is set up, and does not listen yet.
#[derive(Debug)]
pub struct Server<A> {
    config: Config,
    desk: Desk<A>,
}

impl<A: Admission> Server<A> {
    /// Sets up a server.
    #[must_use]
    pub fn new(config: Config, admission: A, metrics: Metrics) -> Self {
        let intake = Intake::new(config.body_limit, config.body_budget);
        let (deadline, clients) = (config.deadline, config.clients.clone());
        Self { config, desk: Desk::new(admission, metrics, intake, clients, deadline) }
    }

    /// Listens, and serves until `shutdown`.
    ///
    /// # Errors
    /// If it cannot start.
    pub async fn run(self, shutdown: impl Future<Output = ()>) -> Result<(), ServerError> {
        self.listen().await?.run(shutdown).await;
        Ok(())
    }

    /// Listens: from here on clients can connect, and are served by [`Listening::run`].
    ///
    /// # Errors
    /// If it cannot.
    pub async fn listen(self) -> Result<Listening<A>, ServerError> {
        let Self { config, desk } = self;
        let tls = TlsAcceptor::from(Arc::new(config.certificates.server_config(config.clients.verifier())?));
        let (listener, address) = bind(config.address).await?;
        let health = match config.health_address {
            Some(address) => Some(bind(address).await?),
            None => None,
        };
        Ok(Listening { config, desk: Arc::new(desk), tls, listener, address, health })
    }
}

pub(crate) async fn bind(address: SocketAddr) -> Result<(TcpListener, SocketAddr), ServerError> {
    let bound = async {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        Ok((listener, address))
    };
    bound.await.map_err(|source| ServerError::Listen { address, source })
}

/// A server that listens.
pub struct Listening<A> {
    config: Config,
    desk: Arc<Desk<A>>,
    tls: TlsAcceptor,
    listener: TcpListener,
    address: SocketAddr,
    health: Option<(TcpListener, SocketAddr)>,
}

impl<A: Admission> Listening<A> {
    /// Where it listens for HTTPS.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where it serves probes and metrics without TLS.
    #[must_use]
    pub fn health_address(&self) -> Option<SocketAddr> {
        self.health.as_ref().map(|(_, address)| *address)
    }

    /// Serves until `shutdown`, and then as long as [`Config`] says to.
    pub async fn run(self, shutdown: impl Future<Output = ()>) {
        let Self { config, desk, tls, listener, address, health } = self;
        let (stage, stages) = watch::channel(Stage::Serving);

        // These go on to the very end: the tasks end when this is dropped.
        let mut aside = JoinSet::new();
        aside.spawn(config.certificates.clone().watch(config.serving_names.clone()));
        let served = routes::Served { certificates: config.certificates, names: config.serving_names.into() };
        if let Some((listener, address)) = health {
            tracing::info!(%address, "serving probes and metrics without TLS");
            let mut probes = Doorway::new(
                listener,
                None,
                routes::probes(&desk, &served, &stages),
                stages.clone(),
                Capacity::default(),
            );
            aside.spawn(async move { probes.accept_until(future::pending()).await });
        }

        let router = routes::all(&desk, &served, &stages);
        let capacity =
            Capacity { limit: config.max_connections.max(1), closed: desk.metrics.connections_closed() };
        let mut doorway = Doorway::new(listener, Some(tls), router, stages, capacity);
        tracing::info!(%address, "serving admission");
        doorway.accept_until(shutdown).await;

        tracing::info!(delay = ?config.drain_delay, "shutting down: not ready any more");
        stage.send_replace(Stage::Leaving);
        doorway.accept_until(sleep(config.drain_delay)).await;

        let open = doorway.close();
        stage.send_replace(Stage::Closing);
        match open.finish(config.drain_deadline).await {
            0 => tracing::info!("shut down"),
            connections => tracing::warn!(connections, "shut down before all requests were answered"),
        }
    }
}
