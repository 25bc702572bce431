//! What commands that look at a live cluster share.

use std::{
    hash::{BuildHasher, Hasher, RandomState},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context, Result};
use indicatif::ProgressBar;
use jiff::Timestamp;
use tokio::{sync::Semaphore, task::JoinSet};

mod facts;
mod progress;
mod secrets;
mod server;
mod types;

pub(crate) use facts::{is_fact, without_facts};
pub(crate) use progress::Progress;
pub(crate) use secrets::{Secrets, policy_resource};
pub(crate) use server::{Failure, Force, Server};
pub(crate) use types::{KindType, Types};

/// How many objects are looked at at once.
const AT_ONCE: usize = 8;

/// Does all of it, some at once, and shows how far it has got. The answers come in the order of the tasks.
pub(crate) async fn in_order<T, F>(tasks: Vec<F>) -> Result<Vec<T>>
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let mut progress = Progress::new(tasks.len());
    let mut answers: Vec<Option<T>> = tasks.iter().map(|_| None).collect();
    let slots = Arc::new(Semaphore::new(AT_ONCE));
    let mut under_way = JoinSet::new();
    for (nth, task) in tasks.into_iter().enumerate() {
        let slots = slots.clone();
        under_way.spawn(async move {
            let _slot = slots.acquire().await;
            (nth, task.await)
        });
    }
    let mut done = 0;
    while !under_way.is_empty() {
        let next = match progress.silence() {
            Some(silence) => tokio::time::timeout(silence, under_way.join_next()).await.ok().flatten(),
            None => under_way.join_next().await,
        };
        if let Some(next) = next {
            let (nth, answer) = next.context("a task failed")?;
            if let Some(place) = answers.get_mut(nth) {
                *place = Some(answer);
            }
            done += 1;
        }
        progress.at(done);
    }
    answers.into_iter().collect::<Option<Vec<_>>>().context("an answer is missing")
}

/// Says on a terminal that something takes its time.
pub(crate) fn spinner(what: String) -> ProgressBar {
    let bar = ProgressBar::new_spinner().with_message(what);
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}

/// Different in every run: no digest that is shown can be compared with another, or with a guess.
pub(crate) fn salt() -> Vec<u8> {
    let random = || RandomState::new().build_hasher().finish().to_be_bytes();
    [random(), random()].concat()
}

/// How long ago a time of the API server was, as kubectl shows ages.
pub(crate) fn age(time: &str, now: Timestamp) -> Option<String> {
    Some(age_of(time.parse().ok()?, now))
}

/// How long ago a time was, as kubectl shows ages.
pub(crate) fn age_of(time: Timestamp, now: Timestamp) -> String {
    let seconds = now.duration_since(time).as_secs();
    match seconds {
        ..120 => format!("{}s", seconds.max(0)),
        120..7_200 => format!("{}m", seconds / 60),
        7_200..172_800 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}
