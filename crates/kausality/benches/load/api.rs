//! An API server in memory that only lists and watches, and counts who asks. Nothing on it ever changes.

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use futures::{FutureExt, StreamExt, future::BoxFuture, stream};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::body::Frame;
use kausality_webhook::Bytes;
use serde_json::{Value, json};
use tower::Service;

/// The version of all lists.
const VERSION: &str = "1000000000";

/// Objects of one kind.
pub(crate) struct Shelf {
    group: String,
    version: String,
    plural: String,
    kind: String,
    namespaced: bool,
    count: usize,
    object: Box<dyn Fn(usize) -> String + Send + Sync>,
}

impl Shelf {
    /// An empty one.
    pub(crate) fn new(group: &str, version: &str, plural: &str, kind: &str) -> Self {
        Self {
            group: group.to_owned(),
            version: version.to_owned(),
            plural: plural.to_owned(),
            kind: kind.to_owned(),
            namespaced: true,
            count: 0,
            object: Box::new(|_| String::new()),
        }
    }

    /// One of objects without namespaces.
    pub(crate) fn cluster_scoped(self) -> Self {
        Self { namespaced: false, ..self }
    }

    /// One with these objects, each as JSON.
    pub(crate) fn holding(self, objects: Vec<String>) -> Self {
        self.making(objects.len(), move |nth| objects.get(nth).cloned().unwrap_or_default())
    }

    /// One with so many objects, which are made whenever somebody asks: they take no memory here.
    pub(crate) fn making(
        self,
        count: usize,
        object: impl Fn(usize) -> String + Send + Sync + 'static,
    ) -> Self {
        Self { count, object: Box::new(object), ..self }
    }

    fn prefix(&self) -> String {
        match self.group.as_str() {
            "" => format!("/api/{}", self.version),
            group => format!("/apis/{group}/{}", self.version),
        }
    }

    /// A page of the list.
    fn list(&self, from: usize, limit: usize) -> String {
        let to = self.count.min(from.saturating_add(limit));
        let items: Vec<String> = (from..to).map(&self.object).collect();
        let next = if to < self.count { to.to_string() } else { String::new() };
        let api_version = self.prefix().trim_start_matches("/apis/").trim_start_matches("/api/").to_owned();
        format!(
            r#"{{"apiVersion":"{api_version}","kind":"{}List","metadata":{{"resourceVersion":"{VERSION}","continue":"{next}"}},"items":[{}]}}"#,
            self.kind,
            items.join(",")
        )
    }

    /// One object. Slow: nothing should read one.
    fn read(&self, name: &str) -> Option<String> {
        let named = format!(r#""name":"{name}""#);
        (0..self.count).map(&self.object).find(|object| object.contains(&named))
    }
}

/// How often who was asked for what.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    discovery: AtomicU64,
    lists: AtomicU64,
    watches: AtomicU64,
    /// Of one object.
    reads: AtomicU64,
    writes: AtomicU64,
}

impl Calls {
    pub(crate) fn json(&self) -> Value {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        json!({"discovery": of(&self.discovery), "lists": of(&self.lists), "watches": of(&self.watches),
            "reads": of(&self.reads), "writes": of(&self.writes)})
    }
}

/// The API server.
#[derive(Clone)]
pub(crate) struct CannedApi(Arc<State>);

struct State {
    shelves: Vec<Shelf>,
    calls: Calls,
}

type Body = UnsyncBoxBody<Bytes, Infallible>;

impl CannedApi {
    pub(crate) fn new(shelves: Vec<Shelf>) -> Self {
        Self(Arc::new(State { shelves, calls: Calls::default() }))
    }

    pub(crate) fn client(&self) -> kube::Client {
        kube::Client::new(self.clone(), "default")
    }

    /// The API groups and plural names of all that is served.
    pub(crate) fn resources(&self) -> Vec<(String, String)> {
        self.0.shelves.iter().map(|shelf| (shelf.group.clone(), shelf.plural.clone())).collect()
    }

    pub(crate) fn calls(&self) -> &Calls {
        &self.0.calls
    }
}

impl Service<Request<kube::client::Body>> for CannedApi {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<kube::client::Body>) -> Self::Future {
        let state = self.0.clone();
        async move { Ok(state.answer(request.method(), request.uri().path(), request.uri().query())) }.boxed()
    }
}

impl State {
    fn answer(&self, method: &Method, path: &str, query: Option<&str>) -> Response<Body> {
        let count = |counter: &AtomicU64| _ = counter.fetch_add(1, Ordering::Relaxed);
        if method != Method::GET {
            count(&self.calls.writes);
            return answer(StatusCode::FORBIDDEN, status(403, "nothing is written here"));
        }
        if path == "/api" || path == "/apis" {
            count(&self.calls.discovery);
            return answer(StatusCode::OK, self.discovery(path == "/api").to_string());
        }
        let Some((shelf, name)) = self.find(path) else {
            count(&self.calls.discovery);
            return answer(StatusCode::NOT_FOUND, status(404, "there is no such thing"));
        };
        let query = Query(query.unwrap_or_default());
        if let Some(name) = name {
            count(&self.calls.reads);
            return match shelf.read(name) {
                Some(object) => answer(StatusCode::OK, object),
                None => answer(StatusCode::NOT_FOUND, status(404, "there is no such object")),
            };
        }
        if query.get("watch").is_some() {
            count(&self.calls.watches);
            return silence(query.number("timeoutSeconds").unwrap_or(300));
        }
        count(&self.calls.lists);
        let from = query.number("continue").unwrap_or(0);
        let limit = query.number("limit").unwrap_or(u32::MAX.into());
        answer(StatusCode::OK, shelf.list(place(from), place(limit)))
    }

    /// The shelf that a path means, and the name of an object on it.
    fn find<'a>(&self, path: &'a str) -> Option<(&Shelf, Option<&'a str>)> {
        self.shelves.iter().find_map(|shelf| {
            let mut rest = path.strip_prefix(&shelf.prefix())?.strip_prefix('/')?;
            if shelf.namespaced
                && let Some(within) = rest.strip_prefix("namespaces/")
            {
                rest = within.split_once('/')?.1;
            }
            match rest.strip_prefix(shelf.plural.as_str())? {
                "" => Some((shelf, None)),
                name => Some((shelf, Some(name.strip_prefix('/')?))),
            }
        })
    }

    /// What is served, in the form that lists everything at once.
    fn discovery(&self, core: bool) -> Value {
        let shelves = self.shelves.iter().filter(|shelf| shelf.group.is_empty() == core);
        let groups = shelves.map(|shelf| {
            let Shelf { group, version, plural, kind, namespaced, .. } = shelf;
            let scope = if *namespaced { "Namespaced" } else { "Cluster" };
            json!({"metadata": {"name": group}, "versions": [{"version": version, "freshness": "Current", "resources": [
                {"resource": plural, "responseKind": {"group": group, "version": version, "kind": kind}, "scope": scope,
                    "singularResource": kind.to_lowercase(), "verbs": ["get", "list", "watch", "patch"]}]}]})
        });
        json!({"apiVersion": "apidiscovery.k8s.io/v2", "kind": "APIGroupDiscoveryList", "metadata": {},
            "items": groups.collect::<Vec<Value>>()})
    }
}

struct Query<'a>(&'a str);

impl Query<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        let pairs = self.0.split('&').filter_map(|pair| pair.split_once('='));
        pairs.into_iter().find(|(name, _)| *name == key).map(|(_, value)| value)
    }

    fn number(&self, key: &str) -> Option<u64> {
        self.get(key)?.parse().ok()
    }
}

fn place(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

fn status(code: u16, message: &str) -> String {
    json!({"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": code, "message": message})
        .to_string()
}

fn answer(status: StatusCode, text: String) -> Response<Body> {
    let mut response = Response::new(Full::new(Bytes::from(text)).boxed_unsync());
    *response.status_mut() = status;
    response
}

/// A watch on which nothing happens.
fn silence(seconds: u64) -> Response<Body> {
    let end = tokio::time::sleep(Duration::from_secs(seconds));
    let nothing =
        stream::once(end).filter_map(|()| futures::future::ready(None::<Result<Frame<Bytes>, Infallible>>));
    Response::new(StreamBody::new(nothing).boxed_unsync())
}
