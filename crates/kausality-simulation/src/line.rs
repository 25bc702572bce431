//! The line between somebody and the API server, and what happens to whatever goes over it.

use std::{
    collections::{BTreeMap, VecDeque},
    pin::pin,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use futures::{
    future::{BoxFuture, Either, FutureExt as _, pending, select},
    stream,
};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, StreamBody, combinators::UnsyncBoxBody};
use hyper::body::{Bytes, Frame};
use kausality_sandbox::{Body, Road, Sandbox, User};
use tokio::time::Instant;
use tower::Service;

use crate::{
    dice::Dice,
    weather::{Sky, Weather},
};

/// When controllers find out that their connection has died without a word. In a cluster it takes them 30 s and more; but one
/// that creates and another that collects can turn in a circle for as long.
const DEAD: Duration = Duration::from_secs(10);

/// What everything takes at least. Where nothing took any time, two that undo each other's work would do so for ever, at one
/// moment.
const LEAST: Duration = Duration::from_millis(1);

/// How long controllers wait before they begin anew where a watch has broken.
const BROKEN: Duration = Duration::from_secs(1);

/// A line. Clones are the same line.
#[derive(Clone)]
pub(crate) struct Line {
    sandbox: Sandbox,
    user: User,
    sky: Arc<Sky>,
    dice: Dice,
    dead: Arc<AtomicBool>,
    shown: Arc<Mutex<BTreeMap<String, Shown>>>,
}

/// How far a controller's watch of a collection has come.
#[derive(Default)]
struct Shown {
    revision: u64,
    newest: u64,
    coming: VecDeque<(Instant, u64)>,
}

/// What went over a line and did not arrive.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lost(&'static str);

impl std::fmt::Display for Lost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for Lost {}

/// What becomes of an event of a watch.
enum Fate {
    Arrives,
    ArrivesTwice,
    IsCut,
    NeverArrives,
}

impl Line {
    pub(crate) fn new(sandbox: &Sandbox, user: User, sky: &Arc<Sky>, dice: Dice) -> Self {
        Self {
            sandbox: sandbox.clone(),
            user,
            sky: sky.clone(),
            dice,
            dead: Arc::default(),
            shown: Arc::default(),
        }
    }

    /// As a client.
    pub(crate) fn client(&self) -> kube::Client {
        kube::Client::new(self.clone(), "default")
    }

    /// Whoever is at this end is dead: nothing goes in any more, and nothing comes out.
    pub(crate) fn die(&self) {
        self.dead.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.dead.load(Ordering::Relaxed)
    }

    /// Takes as long as it takes; for ever, to the dead.
    async fn travel(&self) {
        tokio::time::sleep(self.sky.delay(&self.dice).max(LEAST)).await;
        if self.is_dead() {
            pending::<()>().await;
        }
    }

    async fn send(&self, mut request: Request<Bytes>) -> Result<Response<Body>, Lost> {
        if request.extensions().get::<User>().is_none() {
            request.extensions_mut().insert(self.user.clone());
        }
        self.travel().await;
        if self.sky.strikes(&self.dice, "calls refused", |weather| weather.refused) {
            return Err(Lost("connection refused"));
        }
        // Whatever has arrived goes on although nobody may wait for it any more; unless the API server dies over it.
        let sandbox = self.sandbox.clone();
        let crash = pin!(self.sky.crash());
        let answer = match select(tokio::spawn(async move { sandbox.handle(request).await }), crash).await {
            Either::Left((answer, _)) => answer,
            Either::Right(((), handling)) => {
                if self.dice.chance(500) {
                    handling.abort();
                }
                return Err(Lost("the API server is gone"));
            }
        };
        self.travel().await;
        if self.sky.strikes(&self.dice, "answers lost", |weather| weather.lost) {
            if self.dice.chance(500) {
                self.sky.count("answers that never come");
                pending::<()>().await;
            }
            return Err(Lost("connection reset by peer"));
        }
        let answer = answer.map_err(|_| Lost("the API server is gone"))?;
        if answer.status() == StatusCode::CONFLICT {
            self.sky.count("conflicts");
        }
        Ok(answer)
    }

    fn fate(&self) -> Fate {
        let strikes = |fault, often: fn(&Weather) -> u64| self.sky.strikes(&self.dice, fault, often);
        if strikes("watches cut", |weather| weather.cut) {
            Fate::IsCut
        } else if strikes("watches stalled", |weather| weather.stalled) {
            Fate::NeverArrives
        } else if strikes("events twice", |weather| weather.twice) {
            Fate::ArrivesTwice
        } else {
            Fate::Arrives
        }
    }

    /// A watch, as it arrives.
    fn watched(&self, body: Body) -> UnsyncBoxBody<Bytes, Lost> {
        struct Watch {
            body: Body,
            line: Line,
            again: Option<Bytes>,
            cut: bool,
            crash: BoxFuture<'static, ()>,
        }
        let crash = self.sky.crash().boxed();
        let watch = Watch { body, line: self.clone(), again: None, cut: false, crash };
        let frames = stream::unfold(watch, async |mut watch| {
            if let Some(again) = watch.again.take() {
                return Some((Ok(Frame::data(again)), watch));
            }
            if watch.cut {
                return None;
            }
            let event = select(watch.body.frame(), &mut watch.crash).await;
            let Either::Left((event, _)) = event else {
                watch.cut = true;
                return Some((Err(Lost("the API server is gone")), watch));
            };
            let event = event?.ok()?.into_data().ok()?;
            watch.line.travel().await;
            match watch.line.fate() {
                Fate::Arrives => {}
                Fate::ArrivesTwice => watch.again = Some(event.clone()),
                Fate::IsCut => {
                    watch.cut = true;
                    return Some((Err(Lost("connection reset by peer")), watch));
                }
                Fate::NeverArrives => pending::<()>().await,
            }
            Some((Ok(Frame::data(event)), watch))
        });
        StreamBody::new(frames).boxed_unsync()
    }
}

impl Service<Request<kube::client::Body>> for Line {
    type Response = Response<UnsyncBoxBody<Bytes, Lost>>;
    type Error = Lost;
    type Future = BoxFuture<'static, Result<Self::Response, Lost>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Lost>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<kube::client::Body>) -> Self::Future {
        let line = self.clone();
        async move {
            let is_watch = request.uri().query().is_some_and(|query| query.contains("watch="));
            let (parts, body) = request.into_parts();
            let body = body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
            let answer = line.send(Request::from_parts(parts, body)).await?;
            let is_watch = is_watch && answer.status().is_success();
            Ok(answer.map(|body| {
                if is_watch {
                    line.watched(body)
                } else {
                    body.map_err(|never| match never {}).boxed_unsync()
                }
            }))
        }
        .boxed()
    }
}

impl Road for Line {
    fn call(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<Response<Body>, String>> {
        async {
            let answer = tokio::time::timeout(DEAD, self.send(request)).await;
            answer.unwrap_or(Err(Lost("the connection is dead"))).map_err(|lost| lost.to_string())
        }
        .boxed()
    }

    fn shown(&self, collection: &str, revision: u64) -> u64 {
        let mut all = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        let shown = all.entry(collection.to_owned()).or_default();
        let now = Instant::now();
        if revision > shown.newest {
            let earliest = shown.coming.back().map_or(now, |(at, _)| *at);
            // A watch that breaks is followed by a list: nobody sees what was between.
            let strikes = |fault, often: fn(&Weather) -> u64| self.sky.strikes(&self.dice, fault, often);
            let broken = if strikes("watches of controllers stalled", |weather| weather.stalled) {
                DEAD
            } else if strikes("watches of controllers cut", |weather| weather.cut) {
                BROKEN
            } else {
                Duration::ZERO
            };
            shown.newest = revision;
            shown.coming.push_back((earliest.max(now + self.sky.delay(&self.dice) + broken), revision));
        }
        while let Some((_, revision)) = shown.coming.front().copied().filter(|(at, _)| *at <= now) {
            shown.revision = revision;
            shown.coming.pop_front();
        }
        shown.revision
    }
}
