//! An endpoint whose manners can be changed at any time, and that remembers what it was told.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{
    Router,
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::post,
};
use kausality_api::report::{DriftReport, DriftReportResponse, ReportPhase};
use kausality_report::{
    endpoint::{Entry, check},
    sender::Sender,
};
use kausality_testbed::eventually;
use tokio::{net::TcpListener, sync::watch, task::JoinHandle};

/// How an endpoint answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manners {
    /// It takes over what it is told.
    Polite,
    /// It takes the report, and never answers.
    Hangs,
    /// It answers something else.
    Babbles,
    /// It has a fault.
    Fails,
    /// It takes the report over, and answers when it is told to.
    Slow,
}

#[derive(Debug)]
struct Inner {
    heard: Mutex<Vec<(String, ReportPhase)>>,
    manners: watch::Sender<Manners>,
    /// How many requests are under way, and were at most.
    under_way: Mutex<(usize, usize)>,
}

/// An endpoint on this machine.
pub(crate) struct Receiver {
    name: &'static str,
    address: SocketAddr,
    inner: Arc<Inner>,
    task: Option<JoinHandle<()>>,
}

impl Receiver {
    pub(crate) async fn new(name: &'static str, manners: Manners) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let inner = Inner {
            heard: Mutex::default(),
            manners: watch::channel(manners).0,
            under_way: Mutex::default(),
        };
        let mut receiver = Self { name, address, inner: Arc::new(inner), task: None };
        receiver.listen(listener);
        receiver
    }

    fn listen(&mut self, listener: TcpListener) {
        let router = Router::new().route("/hook", post(take)).with_state(Arc::clone(&self.inner));
        self.task = Some(tokio::spawn(async move {
            axum::serve(listener, router).await.unwrap();
        }));
    }

    /// Goes away: nobody listens any more.
    pub(crate) async fn go_down(&mut self) {
        let task = self.task.take().unwrap();
        task.abort();
        assert!(task.await.unwrap_err().is_cancelled());
    }

    /// Comes back, at the same address.
    pub(crate) async fn come_back(&mut self) {
        let bound = eventually(Duration::from_secs(20), "the port is free", async || {
            TcpListener::bind(self.address).await
        });
        let listener = bound.await.unwrap();
        self.listen(listener);
    }

    pub(crate) fn behave(&self, manners: Manners) {
        self.inner.manners.send_replace(manners);
    }

    /// A sender to it.
    pub(crate) fn sender(&self) -> Sender {
        let url = format!("http://{}/hook", self.address);
        let timeout = Some("1s".to_owned());
        let entry = Entry { name: self.name.to_owned(), url, timeout, ..Entry::default() };
        Sender::new(check(vec![entry]).unwrap().remove(0)).unwrap()
    }

    /// All it was told, in order.
    pub(crate) fn heard(&self) -> Vec<(String, ReportPhase)> {
        self.inner.heard.lock().unwrap().clone()
    }

    /// What it was told of one drift, in order.
    pub(crate) fn heard_of(&self, id: &str) -> Vec<ReportPhase> {
        self.heard().into_iter().filter(|(heard, _)| heard == id).map(|(_, phase)| phase).collect()
    }

    /// How many requests were under way at once, at most.
    pub(crate) fn most_at_once(&self) -> usize {
        self.inner.under_way.lock().unwrap().1
    }
}

/// Counts a request while it lives, even if the client goes away.
struct UnderWay<'a>(&'a Inner);

impl<'a> UnderWay<'a> {
    fn new(inner: &'a Inner) -> Self {
        let mut count = inner.under_way.lock().unwrap();
        count.0 += 1;
        count.1 = count.1.max(count.0);
        Self(inner)
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.under_way.lock().unwrap().0 -= 1;
    }
}

async fn take(State(inner): State<Arc<Inner>>, body: String) -> Response {
    let _under_way = UnderWay::new(&inner);
    let report: DriftReport = serde_json::from_str(&body).unwrap();
    let acknowledged =
        || serde_json::to_string(&DriftReportResponse::acknowledged()).unwrap().into_response();
    inner.heard.lock().unwrap().push((report.spec.id, report.spec.phase));
    let manners = *inner.manners.borrow();
    match manners {
        Manners::Polite => acknowledged(),
        Manners::Babbles => "<html>hello</html>".into_response(),
        Manners::Fails => (StatusCode::INTERNAL_SERVER_ERROR, "oh dear").into_response(),
        Manners::Hangs => std::future::pending().await,
        Manners::Slow => {
            let mut changes = inner.manners.subscribe();
            changes.wait_for(|manners| *manners != Manners::Slow).await.unwrap();
            acknowledged()
        }
    }
}
