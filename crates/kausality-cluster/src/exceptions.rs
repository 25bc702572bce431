//! Approval policies, from two watches; and what there is to say about them, in their status.

use std::{
    collections::BTreeMap,
    ops::ControlFlow,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use kausality_api::{
    GROUP,
    exception::{ApprovalPolicy, PolicyKind, PolicyRule},
    status::ApprovalPolicyStatus,
};
use kausality_core::{
    Decision,
    exceptions::{self, Compiled, Exceptions},
};
use kube::{
    Api,
    api::{Patch, PatchParams},
    core::DynamicObject,
};
use serde_json::json;
use tokio::{sync::Notify, time::Instant};

use crate::{
    cluster::{Cluster, api},
    feed::{Mirror, feed},
    kinds::{Kind, Kinds, UnknownKind},
    policies::served,
    pulse::{Health, Pulse},
};

mod memory;
mod status;

use memory::{Fit, MAX_SIZE, Rules, share};
use status::Sightings;

/// How often counts are written at most.
const WRITE: Duration = Duration::from_secs(30);

/// How soon after a change its conditions are written: others come along meanwhile.
const SOON: Duration = Duration::from_millis(500);

/// How long a write may take.
const DEADLINE: Duration = Duration::from_secs(5);

const KINDS: [PolicyKind; 2] = [PolicyKind::ApprovalPolicy, PolicyKind::ClusterApprovalPolicy];

/// Where approval policies come from.
#[derive(Default)]
pub(crate) struct Source {
    followed: AtomicBool,
    namespaced: Shelf,
    clusterwide: Shelf,
    /// Matches that have not been written.
    sightings: Mutex<BTreeMap<String, Sightings>>,
    changed: Notify,
    /// The memory that rules of policies take.
    taken: Arc<AtomicUsize>,
    /// The memory that others take of what there is for them.
    beside: AtomicUsize,
}

/// The policies of one kind.
#[derive(Default)]
struct Shelf {
    pulse: Pulse,
    /// There are certainly none, since the kind is not served.
    absent: AtomicBool,
    pages: Mutex<Pages>,
}

#[derive(Default)]
struct Pages {
    known: BTreeMap<String, Arc<Held>>,
    arriving: BTreeMap<String, Arc<Held>>,
}

/// A policy, as it is stored.
#[derive(Clone)]
pub(crate) struct Held {
    kind: PolicyKind,
    namespace: String,
    name: String,
    uid: String,
    resource_version: String,
    generation: Option<i64>,
    created: Option<String>,
    rules: Arc<Rules>,
    /// The policy, where it can be read at all.
    policy: Option<ApprovalPolicy>,
    /// What names each of its rules while it stays as it is.
    marks: Vec<String>,
    status: ApprovalPolicyStatus,
}

impl Source {
    fn shelf(&self, kind: PolicyKind) -> &Shelf {
        match kind {
            PolicyKind::ApprovalPolicy => &self.namespaced,
            PolicyKind::ClusterApprovalPolicy => &self.clusterwide,
        }
    }

    /// Whether the policies have been read, there are certainly none, or nobody wants to know.
    pub(crate) fn is_synced(&self) -> bool {
        let synced = |shelf: &Shelf| shelf.absent.load(Ordering::Relaxed) || shelf.pulse.is_synced();
        !self.followed.load(Ordering::Relaxed) || KINDS.iter().all(|kind| synced(self.shelf(*kind)))
    }

    pub(crate) fn health(&self) -> Vec<(&'static str, Health)> {
        let health = |kind: &PolicyKind| {
            let shelf = self.shelf(*kind);
            let objects = shelf.pages().known.len();
            (kind.as_str(), shelf.pulse.health(objects))
        };
        match self.followed.load(Ordering::Relaxed) {
            true => KINDS.iter().map(health).collect(),
            false => Vec::new(),
        }
    }

    /// Counts the rules that matched.
    pub(crate) fn note(&self, decision: &Decision, now: jiff::Timestamp) {
        for ruled in decision.matched() {
            let Some(held) = self.named(&ruled.policy) else { continue };
            let Some(mark) = held.marks.get(ruled.rule) else { continue };
            let mut sightings = self.sightings.lock().unwrap_or_else(PoisonError::into_inner);
            sightings.entry(ruled.policy.clone()).or_default().add(mark, now);
        }
    }

    /// The policy of a reference: `Kind/name` or `Kind/namespace/name`.
    fn named(&self, reference: &str) -> Option<Arc<Held>> {
        let (kind, name) = reference.split_once('/')?;
        let kind = KINDS.into_iter().find(|it| it.as_str() == kind)?;
        let key = if name.contains('/') { name.to_owned() } else { format!("/{name}") };
        self.shelf(kind).pages().known.get(&key).cloned()
    }

    /// Holds no more of each policy than fits; or, if it `grows`, as much as does. Whether anything is left to grow.
    fn fit(&self, grows: bool) -> bool {
        let mut held = self.held();
        // Whoever may write policies in one namespace does not push out those of the cluster.
        held.sort_by_key(|held| (!held.is_clusterwide(), held.created.clone(), held.reference()));
        let fits = share(held.iter().map(|held| held.rules.size), self.room());
        let mut is_left = false;
        for (held, fit) in held.into_iter().zip(fits) {
            let rules = match (&held.policy, held.rules.fit) {
                (_, now) if now > fit => held.rules.cut(fit, &self.taken),
                // One that cannot be read has to be written again.
                (Some(policy), now) if now < fit => {
                    is_left = true;
                    if !grows {
                        continue;
                    }
                    let rules = Rules::of(policy, &self.taken);
                    if fit == Fit::Whole { rules } else { rules.cut(fit, &self.taken) }
                }
                _ => continue,
            };
            let key = format!("{}/{}", held.namespace, held.name);
            let held = Held { rules: Arc::new(rules), ..Held::clone(&held) };
            self.shelf(held.kind).pages().known.insert(key, Arc::new(held));
        }
        is_left
    }

    fn room(&self) -> usize {
        MAX_SIZE.saturating_sub(self.beside.load(Ordering::Relaxed))
    }

    /// The memory that a policy may take, beside all others.
    pub(crate) fn room_for(&self, reference: &str) -> usize {
        let held = self.held();
        let comes_first = |held: &&Arc<Held>| {
            held.is_clusterwide() || !reference.starts_with(PolicyKind::ClusterApprovalPolicy.as_str())
        };
        let before = held.iter().filter(comes_first);
        let (own, others): (Vec<_>, Vec<_>) = before.partition(|held| held.reference() == reference);
        let size = |held: Vec<&Arc<Held>>| held.iter().map(|held| held.rules.size.whole).sum::<usize>();
        // One that is made smaller may be written in any case.
        self.room().saturating_sub(size(others)).max(size(own))
    }

    fn held(&self) -> Vec<Arc<Held>> {
        KINDS
            .iter()
            .flat_map(|kind| self.shelf(*kind).pages().known.values().cloned().collect::<Vec<_>>())
            .collect()
    }
}

impl Shelf {
    fn pages(&self) -> MutexGuard<'_, Pages> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps the rules of approval policies up to date, and their status, for ever. Policies from elsewhere (`fixed`) always
/// hold.
pub async fn follow(cluster: Arc<Cluster>, fixed: Vec<Compiled>) {
    cluster.exceptions.followed.store(true, Ordering::Relaxed);
    let watch = |kind: PolicyKind| {
        let (cluster, fixed) = (&cluster, &fixed);
        async move {
            let shelf = cluster.exceptions.shelf(kind);
            let served = served(cluster, kind.plural(), &shelf.absent).await;
            let api: Api<DynamicObject> = Api::all_with(cluster.fresh.clone(), &served.resource);
            feed(api, kind.plural(), &shelf.pulse, &Book { cluster, kind, fixed }).await;
        }
    };
    let [one, two] = KINDS;
    tokio::join!(watch(one), watch(two), tell(&cluster));
}

/// The policies of one kind, written into the cluster's settings whenever one changes.
struct Book<'a> {
    cluster: &'a Cluster,
    kind: PolicyKind,
    fixed: &'a [Compiled],
}

impl Book<'_> {
    fn shelf(&self) -> &Shelf {
        self.cluster.exceptions.shelf(self.kind)
    }

    /// Reads a policy. One that is known is not compiled again for a change of its status.
    fn read(&self, object: &DynamicObject, known: Option<&Arc<Held>>) -> Arc<Held> {
        let metadata = &object.metadata;
        let known = known.filter(|known| {
            metadata.generation.is_some()
                && known.generation == metadata.generation
                && Some(known.uid.as_str()) == metadata.uid.as_deref()
        });
        let (policy, rules) = match known {
            Some(known) => (known.policy.clone(), known.rules.clone()),
            None => {
                let value = serde_json::to_value(object).unwrap_or_default();
                let taken = &self.cluster.exceptions.taken;
                let (policy, rules) = match exceptions::read(&value) {
                    Ok(policy) => {
                        let rules = Rules::of(&policy, taken);
                        (Some(policy), rules)
                    }
                    Err(faults) => (None, Rules::salvaged(&value, faults, taken)),
                };
                // Until it is known what there is beside it.
                let fits = taken.load(Ordering::Relaxed) <= MAX_SIZE;
                (policy, Arc::new(if fits { rules } else { rules.cut(Fit::Bare, taken) }))
            }
        };
        let status = object.data.get("status").cloned().unwrap_or_default();
        let marks = policy.iter().flat_map(|policy| &policy.spec.rules).map(PolicyRule::mark);
        Arc::new(Held {
            marks: marks.collect(),
            kind: self.kind,
            namespace: metadata.namespace.clone().unwrap_or_default(),
            name: metadata.name.clone().unwrap_or_default(),
            uid: metadata.uid.clone().unwrap_or_default(),
            resource_version: metadata.resource_version.clone().unwrap_or_default(),
            generation: metadata.generation,
            created: metadata.creation_timestamp.as_ref().map(|time| time.0.to_string()),
            rules,
            policy,
            status: serde_json::from_value(status).unwrap_or_default(),
        })
    }

    fn publish(&self) {
        let source = &self.cluster.exceptions;
        let others = self.cluster.settings().policies.size();
        let fixed: usize = self.fixed.iter().map(Compiled::size).sum();
        source.beside.store(others + fixed, Ordering::Relaxed);
        // What is let go of must be gone before anything takes its place.
        if source.fit(false) {
            self.show();
            source.fit(true);
        }
        self.show();
        source.changed.notify_one();
    }

    fn show(&self) {
        let held = self.cluster.exceptions.held();
        let in_force = held.iter().filter_map(|held| held.rules.in_force());
        self.cluster.set_exceptions(Exceptions::new(self.fixed.iter().chain(in_force)));
    }
}

fn key(object: &DynamicObject) -> String {
    let metadata = &object.metadata;
    let text = |it: &Option<String>| it.clone().unwrap_or_default();
    format!("{}/{}", text(&metadata.namespace), text(&metadata.name))
}

impl Mirror for Book<'_> {
    fn begin(&self) {
        self.shelf().pages().arriving.clear();
    }

    fn arrive(&self, object: DynamicObject) -> ControlFlow<()> {
        let key = key(&object);
        let known = self.shelf().pages().known.get(&key).cloned();
        let held = self.read(&object, known.as_ref());
        self.shelf().pages().arriving.insert(key, held);
        ControlFlow::Continue(())
    }

    fn complete(&self) {
        let mut pages = self.shelf().pages();
        pages.known = std::mem::take(&mut pages.arriving);
        drop(pages);
        self.publish();
    }

    fn apply(&self, object: DynamicObject) -> ControlFlow<()> {
        let key = key(&object);
        let known = self.shelf().pages().known.get(&key).cloned();
        let held = self.read(&object, known.as_ref());
        let same = known.is_some_and(|known| known.generation == held.generation && known.uid == held.uid);
        self.shelf().pages().known.insert(key, held);
        if !same {
            self.publish();
        }
        ControlFlow::Continue(())
    }

    fn remove(&self, object: DynamicObject) {
        self.shelf().pages().known.remove(&key(&object));
        self.publish();
    }
}

/// Writes into the status of each policy what there is to say about it, for ever.
async fn tell(cluster: &Cluster) {
    let source = &cluster.exceptions;
    let mut counted = Instant::now();
    loop {
        let changed = tokio::time::timeout_at(counted + WRITE, source.changed.notified()).await.is_ok();
        if changed {
            tokio::time::sleep(SOON).await;
        }
        let counting = Instant::now() >= counted + WRITE;
        if counting {
            counted = Instant::now();
        }
        for held in source.held() {
            let reference = held.reference();
            let seen = {
                let sightings = source.sightings.lock().unwrap_or_else(PoisonError::into_inner);
                sightings.get(&reference).filter(|_| counting).cloned().unwrap_or_default()
            };
            let unserved = unserved(&cluster.kinds, held.policy.as_ref()).await;
            let Some(status) = status::next(&held, &seen, &unserved, cluster.clock.now()) else { continue };
            status::announce(&cluster.events, &held, &status);
            if write(cluster, &held, &status).await {
                let mut sightings = source.sightings.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(left) = sightings.get_mut(&reference) {
                    left.forget(&seen);
                }
            }
        }
        let mut sightings = source.sightings.lock().unwrap_or_else(PoisonError::into_inner);
        sightings.retain(|_, left| !left.is_empty());
    }
}

/// The kinds that rules name, and the cluster does not serve.
async fn unserved(kinds: &Kinds, policy: Option<&ApprovalPolicy>) -> Vec<String> {
    let mut missing = Vec::new();
    for (place, rule) in policy.iter().flat_map(|policy| &policy.spec.rules).enumerate() {
        let (api_version, kind) = (rule.api_version.as_str(), rule.kind.as_str());
        let found = match api_version.contains('*') || kind.contains('*') {
            true => kinds.like(api_version, kind).await,
            false => kinds.of_kind(api_version, kind).await,
        };
        if let Err(UnknownKind::NotServed(_)) = found {
            missing.push(format!("spec.rules[{place}]: {api_version} {kind} is not served here"));
        }
    }
    missing
}

/// Whether the status was written: if nobody else did meanwhile.
async fn write(cluster: &Cluster, held: &Held, status: &ApprovalPolicyStatus) -> bool {
    let Ok(kind) = cluster.kinds.of_resource(GROUP, held.kind.plural()).await else { return false };
    let kind: &Kind = &kind;
    let patch = json!({"metadata": {"resourceVersion": held.resource_version}, "status": status});
    let api = api(&cluster.fresh, kind, &held.namespace);
    let (parameters, patch) = (PatchParams::default(), Patch::Merge(patch));
    match tokio::time::timeout(DEADLINE, api.patch_status(&held.name, &parameters, &patch)).await {
        Ok(Ok(_)) => true,
        Ok(Err(kube::Error::Api(status))) if [404, 409].contains(&status.code) => false,
        Ok(Err(error)) => {
            tracing::warn!(policy = held.reference(), %error, "the status of a policy cannot be written");
            false
        }
        Err(_) => {
            tracing::warn!(policy = held.reference(), "the status of a policy cannot be written: no answer");
            false
        }
    }
}

#[cfg(test)]
mod tests;
