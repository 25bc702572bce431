//! The ledger as it changes.
//!
//! ```text
//!  Ledger::known ──▶ Known ──▶ follow ──▶ News: an entry is there, is gone; the connection is lost, is back
//! ```

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::ControlFlow,
    sync::{Mutex, MutexGuard, PoisonError},
};

use futures::future::join_all;
use kausality_api::drift::cause::DriftKey;
use kausality_cluster::{Mirror, Which};
use kube::core::{ApiResource, DynamicObject};
use tokio::sync::mpsc;

use super::{Entry, Ledger, Scope};

/// What was read of the ledger.
pub(crate) struct Known {
    /// The drifts that are there.
    pub(crate) entries: Vec<Entry>,
    /// Where they were read: what may not be read is not followed.
    pub(super) scopes: Vec<Scope>,
    /// The labels that they have.
    pub(super) labels: Option<String>,
}

/// What is told of the ledger.
#[derive(Debug)]
pub(crate) enum News {
    /// A drift is as it was last told, or otherwise.
    Is(Box<Entry>),
    /// A drift is gone; as it was last seen.
    Gone(Box<Entry>),
    /// A drift cannot be read, for this reason.
    Unreadable(String),
    /// The connection is lost, for this reason: what was told may be old.
    Lost(String),
    /// The connection is there: all has been told.
    Back,
}

/// Tells what changes from what is known, for ever; also what changed while the connection was lost.
pub(crate) async fn follow(ledger: &Ledger, known: Known, news: mpsc::UnboundedSender<News>) {
    let Known { entries, scopes, labels } = known;
    let which = labels.as_deref().map(Which::labelled).unwrap_or_default();
    let links = Links::new(scopes.len(), &news);
    let watches = scopes.iter().enumerate().map(|(place, scope)| {
        let (api, resource) = ledger.api(scope);
        let of_kind = |entry: &&Entry| entry.drift.plural() == resource.plural;
        let known = entries.iter().filter(of_kind).map(|entry| (DriftKey::of(&entry.drift), entry.clone()));
        let state = Mutex::new(State { known: known.collect(), ..State::default() });
        let side = Side { state, resource, place, links: &links };
        let which = &which;
        async move { kausality_cluster::follow(api, which, &side.resource.plural, &side).await }
    });
    join_all(watches).await;
}

/// The connections of all watches: the ledger is as it was told only while each of them works.
struct Links<'a> {
    lost: Mutex<Vec<bool>>,
    news: &'a mpsc::UnboundedSender<News>,
}

impl<'a> Links<'a> {
    /// None has been made yet.
    fn new(number: usize, news: &'a mpsc::UnboundedSender<News>) -> Self {
        Self { lost: Mutex::new(vec![true; number]), news }
    }

    fn lose(&self, place: usize, why: &str) {
        set(&mut lock(&self.lost), place, true);
        self.tell(News::Lost(why.to_owned()));
    }

    fn resume(&self, place: usize) {
        let mut lost = lock(&self.lost);
        let before = lost.contains(&true);
        set(&mut lost, place, false);
        if before && !lost.contains(&true) {
            self.tell(News::Back);
        }
    }

    /// Where nobody listens, nobody need be told.
    fn tell(&self, news: News) {
        let _ = self.news.send(news);
    }
}

fn set(all: &mut [bool], place: usize, value: bool) {
    if let Some(one) = all.get_mut(place) {
        *one = value;
    }
}

/// The drifts of one kind.
struct Side<'a> {
    state: Mutex<State>,
    resource: ApiResource,
    /// Which of the watches tells of them.
    place: usize,
    links: &'a Links<'a>,
}

#[derive(Default)]
struct State {
    /// As they were last told.
    known: BTreeMap<DriftKey, Entry>,
    /// Those that the list under way has named.
    listed: BTreeSet<DriftKey>,
}

impl Side<'_> {
    fn entry(&self, object: DynamicObject) -> Option<Entry> {
        let name = object.metadata.name.clone().unwrap_or_default();
        let resource = &self.resource;
        let entry = serde_json::to_value(object).map_err(Into::into).and_then(|it| Entry::of(it, resource));
        if let Err(error) = &entry {
            self.links.tell(News::Unreadable(format!("{} {name} cannot be read: {error:#}", resource.kind)));
        }
        entry.ok()
    }

    fn is(&self, entry: Entry) {
        let before = lock(&self.state).known.insert(DriftKey::of(&entry.drift), entry.clone());
        // A list tells of everything again.
        let version = |entry: &Entry| entry.drift.metadata.resource_version.clone();
        if before.is_none_or(|before| version(&before) != version(&entry)) {
            self.links.tell(News::Is(Box::new(entry)));
        }
    }
}

impl Mirror for Side<'_> {
    fn begin(&self) {
        lock(&self.state).listed.clear();
    }

    fn arrive(&self, object: DynamicObject) -> ControlFlow<()> {
        if let Some(entry) = self.entry(object) {
            lock(&self.state).listed.insert(DriftKey::of(&entry.drift));
            self.is(entry);
        }
        ControlFlow::Continue(())
    }

    fn complete(&self) {
        let gone: Vec<Entry> = {
            let mut state = lock(&self.state);
            let listed = std::mem::take(&mut state.listed);
            state.known.extract_if(.., |key, _| !listed.contains(key)).map(|(_, entry)| entry).collect()
        };
        gone.into_iter().for_each(|entry| self.links.tell(News::Gone(Box::new(entry))));
    }

    fn apply(&self, object: DynamicObject) -> ControlFlow<()> {
        if let Some(entry) = self.entry(object) {
            self.is(entry);
        }
        ControlFlow::Continue(())
    }

    fn remove(&self, object: DynamicObject) {
        if let Some(entry) = self.entry(object) {
            lock(&self.state).known.remove(&DriftKey::of(&entry.drift));
            self.links.tell(News::Gone(Box::new(entry)));
        }
    }

    fn lose(&self, why: &str) {
        self.links.lose(self.place, why);
    }

    fn resume(&self) {
        self.links.resume(self.place);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::ledger::fixture::drift;

    fn named(name: &str, version: &str) -> Entry {
        drift(&json!({"metadata": {"name": name, "resourceVersion": version}}))
    }

    fn object(entry: &Entry) -> DynamicObject {
        serde_json::from_value(entry.object.clone()).unwrap()
    }

    fn side<'a>(known: &[Entry], links: &'a Links<'a>) -> Side<'a> {
        let known = known.iter().map(|entry| (DriftKey::of(&entry.drift), entry.clone())).collect();
        let resource = ApiResource {
            group: "kausality.io".into(),
            version: "v1alpha1".into(),
            api_version: "kausality.io/v1alpha1".into(),
            kind: "Drift".into(),
            plural: "drifts".into(),
        };
        Side { state: Mutex::new(State { known, ..State::default() }), resource, place: 0, links }
    }

    fn told(received: &mut mpsc::UnboundedReceiver<News>) -> Vec<String> {
        let mut all = Vec::new();
        while let Ok(news) = received.try_recv() {
            all.push(match news {
                News::Is(entry) => format!("{} is", entry.drift.metadata.name),
                News::Gone(entry) => format!("{} gone", entry.drift.metadata.name),
                News::Unreadable(why) => why,
                News::Lost(why) => format!("lost: {why}"),
                News::Back => "back".to_owned(),
            });
        }
        all
    }

    #[test]
    fn what_a_list_does_not_name_is_gone_and_what_it_names_unchanged_is_no_news() {
        let (news, mut received) = mpsc::unbounded_channel();
        let links = Links::new(1, &news);
        let side = side(&[named("a1", "1"), named("a2", "1"), named("a3", "1")], &links);
        side.begin();
        for entry in [named("a1", "1"), named("a3", "2"), named("a4", "1")] {
            assert!(side.arrive(object(&entry)).is_continue());
        }
        assert_eq!(told(&mut received), ["a3 is", "a4 is"]);
        // A list that breaks off has not said what is gone.
        side.begin();
        assert!(side.arrive(object(&named("a1", "1"))).is_continue());
        side.begin();
        for entry in [named("a1", "1"), named("a3", "2")] {
            assert!(side.arrive(object(&entry)).is_continue());
        }
        side.complete();
        assert_eq!(told(&mut received), ["a2 gone", "a4 gone"]);
        side.remove(object(&named("a1", "3")));
        assert!(side.apply(object(&named("a3", "2"))).is_continue());
        assert_eq!(told(&mut received), ["a1 gone"]);
    }

    #[test]
    fn the_connection_is_back_when_every_watch_is() {
        let (news, mut received) = mpsc::unbounded_channel();
        let links = Links::new(2, &news);
        links.resume(0);
        assert_eq!(told(&mut received), [""; 0]);
        links.resume(1);
        links.resume(1);
        assert_eq!(told(&mut received), ["back"]);
        links.lose(0, "cut");
        links.lose(1, "cut");
        links.resume(0);
        assert_eq!(told(&mut received), ["lost: cut", "lost: cut"]);
        links.resume(1);
        assert_eq!(told(&mut received), ["back"]);
    }
}
