//! Watches, and what they feed.
//!
//! A watch whose connection has died without a word looks like one on which nothing happens. So each is opened for a
//! short time only: where the API server has not ended it by then, it is dead.

use std::{ops::ControlFlow, time::Duration};

use futures::{StreamExt, TryStreamExt};
use kube::{
    Api,
    api::{ListParams, WatchParams},
    core::{DynamicObject, WatchEvent},
};
use tokio::time::Instant;

use crate::{pulse::Pulse, reason};

/// How long a watch is open at most.
const TERM: Duration = Duration::from_secs(30);

/// How long after its term the end of a watch may be late.
const GRACE: Duration = Duration::from_secs(5);

/// How long the API server may take to answer with a page of a list, or with a watch.
const ANSWER: Duration = Duration::from_secs(30);

/// How many objects a page of a list holds: few, since all of a page is in memory, and what was once taken is not all given back.
const PAGE: u32 = 100;

/// How soon a watch that failed is tried again, the first time and at most.
const PAUSES: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(20));

/// What a watch keeps up to date.
pub trait Mirror {
    /// A list begins: what arrives until it is complete replaces everything.
    fn begin(&self);
    /// An object of a list. `Break`: this is too much, and the watch need not go on.
    fn arrive(&self, object: DynamicObject) -> ControlFlow<()>;
    /// The list is complete.
    fn complete(&self);
    /// An object is there, or has changed.
    fn apply(&self, object: DynamicObject) -> ControlFlow<()>;
    /// An object is gone.
    fn remove(&self, object: DynamicObject);
    /// The watch does not work, for this reason: what is known goes stale from here.
    fn lose(&self, _why: &str) {}
    /// A watch has begun, the first or from where one ended: what is known is what there is, but for moments.
    fn resume(&self) {}
}

/// Which objects are watched; all, by default.
#[derive(Clone, Debug, Default)]
pub struct Which {
    labels: Option<String>,
    fields: Option<String>,
}

impl Which {
    /// The one with this name: all that a role which names it permits to watch.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self { fields: Some(format!("metadata.name={name}")), ..Self::default() }
    }

    /// Those with this label.
    #[must_use]
    pub fn labelled(selector: &str) -> Self {
        Self { labels: Some(selector.to_owned()), ..Self::default() }
    }
}

/// Why a watch came to its end.
enum End {
    /// Everything has been told: it can be watched from there.
    Listed,
    /// It was its time.
    Term,
    /// What came after the last version is not known any more: everything must be listed again.
    Expired,
    /// It does not work, for this reason.
    Failed(String),
    /// The mirror has had enough.
    Enough,
}

/// Keeps a mirror of some objects up to date, for those who need not know how the watch is doing. As [`alarm`], it never
/// ends, unless the mirror has had enough.
///
/// [`alarm`]: crate::alarm
pub async fn follow(api: Api<DynamicObject>, which: &Which, what: &str, mirror: &impl Mirror) {
    feed_some(api, which, what, &Pulse::default(), mirror).await;
}

/// Keeps a mirror of all objects up to date, for ever; or until it has had enough. Errors are waited out, never passed on.
pub(crate) async fn feed(api: Api<DynamicObject>, what: &str, pulse: &Pulse, mirror: &impl Mirror) {
    feed_some(api, &Which::default(), what, pulse, mirror).await;
}

/// The same for some objects.
pub(crate) async fn feed_some(
    api: Api<DynamicObject>,
    which: &Which,
    what: &str,
    pulse: &Pulse,
    mirror: &impl Mirror,
) {
    let mut version = None;
    let mut pause = PAUSES.0;
    loop {
        let begun = Instant::now();
        let end = match &mut version {
            None => list(&api, which, &mut version, pulse, mirror).await,
            Some(version) => watch(&api, which, version, pulse, mirror).await,
        };
        match end {
            End::Listed => pause = PAUSES.0,
            // One that ends as soon as it begins must not be asked for without a pause.
            End::Term if begun.elapsed() < PAUSES.0 => tokio::time::sleep(PAUSES.0).await,
            End::Term => pause = PAUSES.0,
            End::Expired => version = None,
            End::Failed(error) => {
                tracing::warn!(what, %error, "watch failed");
                pulse.fail();
                mirror.lose(&error);
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(PAUSES.1);
            }
            End::Enough => return tracing::warn!(what, "there are too many to watch: they are read live"),
        }
    }
}

/// Lists everything.
async fn list(
    api: &Api<DynamicObject>,
    which: &Which,
    version: &mut Option<String>,
    pulse: &Pulse,
    mirror: &impl Mirror,
) -> End {
    mirror.begin();
    let Which { labels, fields } = which.clone();
    let mut parameters =
        ListParams { label_selector: labels, field_selector: fields, ..ListParams::default() }.limit(PAGE);
    loop {
        let page = match tokio::time::timeout(ANSWER, api.list(&parameters)).await {
            Ok(Ok(page)) => page,
            Ok(Err(error)) => return End::Failed(reason(&error)),
            Err(_) => return End::Failed(format!("no list within {ANSWER:?}")),
        };
        for object in page.items {
            if mirror.arrive(object).is_break() {
                return End::Enough;
            }
        }
        parameters.continue_token = page.metadata.continue_.filter(|token| !token.is_empty());
        if parameters.continue_token.is_none() {
            mirror.complete();
            pulse.sync();
            *version = page.metadata.resource_version;
            return End::Listed;
        }
    }
}

/// Watches from a version on, for one term; leaves the version from which to go on.
async fn watch(
    api: &Api<DynamicObject>,
    which: &Which,
    version: &mut String,
    pulse: &Pulse,
    mirror: &impl Mirror,
) -> End {
    let Which { labels, fields } = which.clone();
    let term = u32::try_from(TERM.as_secs()).unwrap_or(u32::MAX);
    let parameters = WatchParams {
        timeout: Some(term),
        label_selector: labels,
        field_selector: fields,
        ..WatchParams::default()
    };
    let mut events = match tokio::time::timeout(ANSWER, api.watch(&parameters, version)).await {
        Ok(Ok(events)) => events.into_stream().boxed(),
        Ok(Err(kube::Error::Api(status))) if status.code == 410 => return End::Expired,
        Ok(Err(error)) => return End::Failed(reason(&error)),
        Err(_) => return End::Failed(format!("no answer within {ANSWER:?}")),
    };
    pulse.beat();
    mirror.resume();
    let end = Instant::now() + TERM + GRACE;
    loop {
        let event = match tokio::time::timeout_at(end, events.next()).await {
            Err(_) => return End::Failed("the watch has died without a word".to_owned()),
            Ok(None) => return End::Term,
            Ok(Some(Err(error))) => return End::Failed(reason(&error)),
            Ok(Some(Ok(event))) => event,
        };
        pulse.beat();
        match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                *version = object.metadata.resource_version.clone().unwrap_or_default();
                if mirror.apply(object).is_break() {
                    return End::Enough;
                }
            }
            WatchEvent::Deleted(object) => {
                *version = object.metadata.resource_version.clone().unwrap_or_default();
                mirror.remove(object);
            }
            WatchEvent::Bookmark(bookmark) => *version = bookmark.metadata.resource_version,
            WatchEvent::Error(status) if status.code == 410 => return End::Expired,
            WatchEvent::Error(status) => return End::Failed(status.message.clone()),
        }
    }
}
