//! Connections: who may come in, how each is served, and how they end without losing a request.

use std::{convert::Infallible, io, pin::pin, sync::Arc, time::Duration};

use axum::{
    Router,
    http::{HeaderValue, Version, header},
};
use futures::future;
use hyper::{Request, body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    sync::{SetOnce, watch},
    task::{Id, JoinSet},
    time::{sleep, timeout},
};
use tokio_rustls::TlsAcceptor;
use tower::Service;

use crate::clients::Peer;

pub(crate) mod capacity;

use capacity::{Capacity, Open, Usage};

/// The time for a TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// The time that a connection may stay open without ever being used.
const UNUSED: Duration = Duration::from_secs(60);
/// The time that a client has for its first request if the server closes just after it has connected.
const FIRST_REQUEST: Duration = Duration::from_secs(1);
/// The time that an HTTP/1.1 connection may be idle: longer than the 90 s after which clients written in Go
/// drop one, for whoever drops it first never meets a request on its way.
const IDLE: Duration = Duration::from_secs(120);
/// How often an HTTP/2 client is asked whether it is still there.
const PING: Duration = Duration::from_secs(30);

/// How far the server is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// It serves.
    Serving,
    /// It serves, and tells whoever asks to go elsewhere.
    Leaving,
    /// It serves what is under way, on connections that are open.
    Closing,
}

/// Connections of one listener.
pub(crate) struct Doorway {
    listener: TcpListener,
    open: Connections,
}

/// Connections that are open.
pub(crate) struct Connections {
    host: Arc<Host>,
    tasks: JoinSet<()>,
    open: Open,
}

/// What connections share.
struct Host {
    tls: Option<TlsAcceptor>,
    http: auto::Builder<TokioExecutor>,
    router: Router,
    stage: watch::Receiver<Stage>,
}

impl Doorway {
    pub(crate) fn new(
        listener: TcpListener,
        tls: Option<TlsAcceptor>,
        router: Router,
        stage: watch::Receiver<Stage>,
        capacity: Capacity,
    ) -> Self {
        let mut http = auto::Builder::new(TokioExecutor::new());
        http.http1().timer(TokioTimer::new()).header_read_timeout(IDLE);
        http.http2().timer(TokioTimer::new()).keep_alive_interval(PING);
        let host = Arc::new(Host { tls, http, router, stage });
        Self { listener, open: Connections { host, tasks: JoinSet::new(), open: Open::new(capacity) } }
    }

    /// Accepts connections until `end`.
    pub(crate) async fn accept_until(&mut self, end: impl Future<Output = ()>) {
        let mut end = pin!(end);
        loop {
            tokio::select! {
                biased;
                () = &mut end => return,
                Some(ended) = self.open.tasks.join_next_with_id() => {
                    self.open.forget(ended.map_or_else(|error| error.id(), |(id, ())| id));
                }
                accepted = self.listener.accept() => match accepted {
                    Ok((stream, _)) => self.open.add(stream),
                    Err(error) => {
                        // Out of file descriptors, most likely: some come free when connections end.
                        tracing::warn!(%error, "cannot accept a connection");
                        sleep(Duration::from_millis(50)).await;
                    }
                }
            }
        }
    }

    /// Stops listening. Clients that the kernel has connected already are let in: for them, this server is
    /// there.
    pub(crate) fn close(self) -> Connections {
        let Self { listener, mut open } = self;
        if let Err(error) = accept_waiting(listener, &mut open) {
            tracing::warn!(%error, "cannot accept the last connections");
        }
        open
    }
}

fn accept_waiting(listener: TcpListener, open: &mut Connections) -> io::Result<()> {
    let listener = listener.into_std()?;
    loop {
        match listener.accept() {
            Ok((stream, _)) => {
                stream.set_nonblocking(true)?;
                open.add(TcpStream::from_std(stream)?);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}

impl Connections {
    /// Serves a connection. Where all that there may be are in use, it is closed at once.
    fn add(&mut self, stream: TcpStream) {
        let Some(usage) = self.open.admit() else { return };
        let (host, used) = (Arc::clone(&self.host), Arc::clone(&usage));
        let task = self.tasks.spawn(async move { host.receive(stream, &used).await });
        self.open.add(task, usage);
    }

    /// Forgets a connection that has ended.
    fn forget(&mut self, id: Id) {
        self.open.remove(id);
    }

    /// Waits until all have ended, which they do in [`Stage::Closing`]. The number of those that did not.
    pub(crate) async fn finish(mut self, patience: Duration) -> usize {
        let all = async { while self.tasks.join_next().await.is_some() {} };
        match timeout(patience, all).await {
            Ok(()) => 0,
            Err(_) => self.tasks.len(),
        }
    }
}

impl Host {
    async fn receive(self: Arc<Self>, stream: TcpStream, usage: &Arc<Usage>) {
        // Answers are small and complete: nothing is won by waiting for more.
        _ = stream.set_nodelay(true);
        let Some(tls) = &self.tls else { return self.serve(stream, Peer::default(), usage).await };
        match timeout(HANDSHAKE, tls.accept(stream)).await {
            Ok(Ok(stream)) => {
                let peer = Peer::new(stream.get_ref().1.peer_certificates().unwrap_or_default());
                self.serve(stream, peer, usage).await;
            }
            Ok(Err(error)) => tracing::debug!(%error, "TLS handshake failed"),
            Err(_) => tracing::debug!("TLS handshake took too long"),
        }
    }

    async fn serve<I>(self: &Arc<Self>, stream: I, peer: Peer, usage: &Arc<Usage>)
    where
        I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let begun = Arc::new(SetOnce::new());
        let service = service_fn({
            let (host, begun) = (Arc::clone(self), Arc::clone(&begun));
            let (peer, usage) = (Arc::new(peer), Arc::clone(usage));
            move |mut request: Request<Incoming>| {
                _ = begun.set(());
                let under_way = usage.begin();
                request.extensions_mut().insert(Arc::clone(&peer));
                request.extensions_mut().insert(Arc::clone(&usage));
                let response = Arc::clone(&host).respond(request);
                async move {
                    let response = response.await;
                    drop(under_way);
                    response
                }
            }
        });
        let mut connection = pin!(self.http.serve_connection(TokioIo::new(stream), service));
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            () = self.time_to_end(&begun) => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "a connection broke");
        }
    }

    /// Answers one request. While the server is leaving, HTTP/1.1 clients are told with each answer that the
    /// connection ends: only so do they not send the next request just when it is closed. HTTP/2 clients get
    /// a GOAWAY in the end, which has no such gap.
    async fn respond(
        self: Arc<Self>,
        request: Request<Incoming>,
    ) -> Result<axum::response::Response, Infallible> {
        let version = request.version();
        let mut response = self.router.clone().call(request).await?;
        if version < Version::HTTP_2 && *self.stage.borrow() != Stage::Serving {
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        Ok(response)
    }

    /// Waits until a connection is to end: when the server closes, or if nobody uses it.
    async fn time_to_end(&self, begun: &SetOnce<()>) {
        let mut stage = self.stage.clone();
        let closing = async {
            _ = stage.wait_for(|stage| *stage == Stage::Closing).await;
            // Who has connected has a request on its way.
            _ = timeout(FIRST_REQUEST, begun.wait()).await;
        };
        let unused = async {
            if timeout(UNUSED, begun.wait()).await.is_ok() {
                future::pending().await
            }
        };
        tokio::select! {
            () = closing => {}
            () = unused => {}
        }
    }
}
