//! A driver: controllers with caches of their own, which act in an order that a seed decides.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

use serde_json::{Value, json};

use super::{
    super::{
        Action, Cache, Controller, Delete, Key, NAMESPACES, PODS, Propagation, REPLICA_SETS, Resource, Retry,
        Time, Watched, Write, object, pod, standard,
    },
    api::{Api, resources},
};

/// More steps than any story needs.
const PATIENCE: usize = 400_000;

/// Looks at the world, and panics if it does not like what it sees.
type Watcher = Box<dyn FnMut(&Api)>;

pub(super) struct World {
    pub(super) api: Api,
    members: Vec<Member>,
    random: Random,
    /// Whether caches fall behind.
    pub(super) lag: bool,
    /// Whoever looks at the world after each write.
    watcher: Option<Watcher>,
}

struct Member {
    controller: Box<dyn Controller>,
    cache: Cache,
    watched: Vec<Resource>,
    /// How many events of each resource it has seen.
    seen: BTreeMap<Resource, usize>,
    /// After how many writes it had last seen all of them.
    caught_up: usize,
    queue: BTreeSet<Key>,
    later: BTreeSet<(Time, Key)>,
    retry: Retry<Key>,
    /// The writes of a sync that is under way.
    open: Option<(Key, VecDeque<Write>, Option<Time>)>,
}

struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from((self.0 >> 11) % limit as u64).unwrap()
    }
}

impl World {
    pub(super) fn new(seed: u64) -> Self {
        let now = Time::parse("2026-11-15T08:00:00Z").unwrap();
        let mut api = Api::default();
        api.now = now;
        let random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let mut world = Self { api, members: Vec::new(), random, lag: true, watcher: None };
        for controller in standard() {
            world.add(controller);
        }
        let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "default" } });
        world.create(&NAMESPACES, namespace);
        world
    }

    pub(super) fn add(&mut self, controller: Box<dyn Controller>) {
        let watched = match controller.watches() {
            Watched::These(these) => these,
            Watched::Everything => resources().into_iter().cloned().collect(),
        };
        let mut cache = Cache::default();
        watched.iter().for_each(|resource| cache.register(resource));
        let seen = watched.iter().map(|resource| (resource.clone(), 0)).collect();
        let (queue, later, retry) = (BTreeSet::new(), BTreeSet::new(), Retry::default());
        self.members.push(Member {
            controller,
            cache,
            watched,
            seen,
            caught_up: 0,
            queue,
            later,
            retry,
            open: None,
        });
    }

    /// Replaces a controller by another, which starts with an empty cache.
    pub(super) fn restart(&mut self, controller: Box<dyn Controller>) {
        self.members.retain(|member| member.controller.name() != controller.name());
        self.add(controller);
    }

    pub(super) fn watch(&mut self, watcher: impl FnMut(&Api) + 'static) {
        self.watcher = Some(Box::new(watcher));
    }

    pub(super) fn create(&mut self, resource: &Resource, object: Value) -> Arc<Value> {
        self.api.write("alice", &Write::create(resource, object)).unwrap()
    }

    pub(super) fn patch(&mut self, key: &Key, patch: Value) -> Arc<Value> {
        self.api.write("alice", &Write { key: key.clone(), action: Action::Patch(patch) }).unwrap()
    }

    pub(super) fn delete(&mut self, key: &Key, propagation: Propagation) {
        let delete = Delete { propagation: Some(propagation), ..Delete::default() };
        self.api.write("alice", &Write { key: key.clone(), action: Action::Delete(delete) }).unwrap();
    }

    /// Runs until nobody has anything to do but wait for longer than this many seconds.
    pub(super) fn settle_within(&mut self, seconds: u64) {
        let until = self.api.now.after_seconds(seconds);
        let mut looked = 0;
        for _ in 0..PATIENCE {
            if let Some(watcher) = self.watcher.as_mut().filter(|_| looked < self.api.log.len()) {
                watcher(&self.api);
                looked = self.api.log.len();
            }
            if !self.step() {
                let next = self.members.iter().filter_map(|it| it.later.first()).map(|it| it.0).min();
                match next.filter(|next| *next <= until) {
                    Some(next) => self.api.now = self.api.now.max(next),
                    None => return,
                }
            }
        }
        panic!("the controllers do not come to rest");
    }

    pub(super) fn settle(&mut self) {
        self.settle_within(60);
    }

    pub(super) fn step(&mut self) -> bool {
        let first = self.random.below(self.members.len());
        for at in (first..self.members.len()).chain(0..first) {
            if self.members[at].act(&mut self.api, &mut self.random, self.lag) {
                self.api.now = self.api.now.after(3);
                return true;
            }
        }
        false
    }

    pub(super) fn get(&self, resource: &Resource, name: &str) -> Arc<Value> {
        Arc::clone(self.api.get(&resource.key("default", name)).unwrap_or_else(|| panic!("no {name}")))
    }

    /// The names of all objects of a resource.
    pub(super) fn names(&self, resource: &Resource) -> Vec<&str> {
        self.api.list(resource).map(|it| object::name(it)).collect()
    }

    /// The ReplicaSets: how many Pods each wants, by revision.
    pub(super) fn sizes(&self) -> Vec<i64> {
        let revision = |it: &&Arc<Value>| {
            let revision = object::annotation(it, "deployment.kubernetes.io/revision");
            revision.and_then(|revision| revision.parse::<i64>().ok())
        };
        let mut sets: Vec<_> = self.api.list(&REPLICA_SETS).collect();
        sets.sort_by_key(revision);
        sets.into_iter().map(|it| object::int(&it["spec"]["replicas"])).collect()
    }
}

/// Pods that run and are not to end.
pub(super) fn available(api: &Api) -> usize {
    api.list(&PODS).filter(|it| pod::active(it) && pod::ready(it)).count()
}

/// Pods that have not ended and are not to end.
pub(super) fn active(api: &Api) -> usize {
    api.list(&PODS).filter(|it| pod::active(it)).count()
}

impl Member {
    /// Does one thing, if there is any.
    fn act(&mut self, api: &mut Api, random: &mut Random, lag: bool) -> bool {
        if self.open.is_some() {
            self.write(api);
            return true;
        }
        let behind = self.behind(api);
        if behind && (!lag || self.ready(api.now).is_none() || random.below(2) == 0) {
            self.listen(api, random, lag);
            if lag {
                return true;
            }
        }
        let Some(first) = self.ready(api.now) else { return behind };
        // One of the first few will do; to walk through a long queue takes its time.
        let key = self.queue.iter().nth(random.below(self.queue.len().min(8))).cloned().unwrap_or(first);
        self.queue.remove(&key);
        self.sync(key, api);
        true
    }

    /// A key that is due.
    fn ready(&mut self, now: Time) -> Option<Key> {
        while let Some((_, key)) = self.later.first().filter(|(at, _)| *at <= now).cloned() {
            self.queue.insert(key);
            self.later.pop_first();
        }
        self.queue.first().cloned()
    }

    fn behind(&mut self, api: &Api) -> bool {
        if self.caught_up == api.log.len() {
            return false;
        }
        let behind = self.watched.iter().any(|it| api.events.get(it).map_or(0, Vec::len) > self.seen[it]);
        if !behind {
            self.caught_up = api.log.len();
        }
        behind
    }

    /// Takes in events: all, or some of one resource.
    fn listen(&mut self, api: &Api, random: &mut Random, lag: bool) {
        let start = random.below(self.watched.len());
        for at in (start..self.watched.len()).chain(0..start) {
            let resource = &self.watched[at];
            let events = api.events.get(resource).map_or(&[][..], Vec::as_slice);
            let from = self.seen[resource];
            if from == events.len() {
                continue;
            }
            let to = if lag { from + 1 + random.below(events.len() - from) } else { events.len() };
            for event in &events[from..to] {
                for change in self.cache.apply(resource, event.clone()) {
                    self.queue.extend(self.controller.keys(&self.cache, &change));
                }
            }
            self.seen.insert(resource.clone(), to);
            if lag {
                return;
            }
        }
    }

    fn sync(&mut self, key: Key, api: &Api) {
        let mut outcome = self.controller.sync(&self.cache, &key, api.now);
        if !outcome.reads.is_empty() {
            assert!(outcome.writes.is_empty(), "reads come before writes");
            for read in &outcome.reads {
                self.controller.seen(&key, read, &api.read(read));
            }
            outcome = self.controller.sync(&self.cache, &key, api.now);
            assert!(outcome.reads.is_empty(), "what was read is known");
        }
        if outcome.writes.is_empty() {
            self.close(key, outcome.again);
        } else {
            self.open = Some((key, outcome.writes.into(), outcome.again));
        }
    }

    fn write(&mut self, api: &mut Api) {
        let Some((key, mut writes, again)) = self.open.take() else { return };
        let Some(write) = writes.pop_front() else { return };
        if let Err(refusal) = api.write(&self.controller.user(), &write) {
            if refusal.stops(&write) {
                let undone: Vec<_> = [write].into_iter().chain(writes).collect();
                self.controller.refused(&key, &undone, &refusal);
                self.later.insert((self.retry.failed(&key, api.now), key));
                return;
            }
            self.controller.refused(&key, &[write], &refusal);
        }
        if writes.is_empty() {
            self.close(key, again);
        } else {
            self.open = Some((key, writes, again));
        }
    }

    fn close(&mut self, key: Key, again: Option<Time>) {
        self.retry.forget(&key);
        if let Some(again) = again {
            self.later.insert((again, key));
        }
    }
}
