//! Who asked for what, and so what Kausality must and must not do.
//!
//! The oracle sees every write as it is stored, and every decision. It knows less than Kausality about why something is
//! right, and more about what is true: it has seen the whole past, and no cache is between it and the store. Where both
//! readings of the past are possible it says nothing.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use kausality_api::{
    annotation::{APPROVALS, FREEZE, MODE, REJECTIONS, SETTLED, SNOOZE, SYSTEM, TRACE},
    approval::{Approval, ApprovalMode},
};
use kausality_core::{
    Decision, Exception, Review,
    class::Class,
    decision::{Effect, Verdict},
    gate::Resolution,
    review::Operation,
};
use kausality_sandbox::{Observer, Stored};
use serde_json::Value;

use crate::{OPERATOR, SELF, clock::Clock, weather::Weather};

mod version;

use version::intent;
pub(crate) use version::{Moment, Steady, Version, system};

/// The oracle of one simulation.
pub(crate) struct Oracle {
    clock: Clock,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// How many writes were stored.
    writes: u64,
    objects: BTreeMap<String, Object>,
    decided: BTreeMap<String, Decided>,
    /// How often each `once` approval, known by its reason, has let something be stored.
    used: BTreeMap<String, u32>,
    counts: BTreeMap<&'static str, u64>,
    violations: Vec<String>,
    log: Vec<String>,
    /// Nothing keeps anybody from reading anything.
    calm: bool,
    /// How long a parent must have been quiet to count as settled.
    quiet_time: Duration,
    /// When each parent's controller last wrote to one of its children, by the uid of the parent.
    written_below: BTreeMap<String, Duration>,
    /// Replicas crash: what they were to do afterwards is not done.
    crashes: bool,
    /// Changes that were let pass and told of as drift, though they are none.
    mistaken: Vec<Mistaken>,
}

/// A change that was told of as drift, and is none.
struct Mistaken {
    /// The uid of the request.
    request: String,
    /// The uid of its object.
    object: String,
    /// When that was.
    at: Duration,
    /// Why it is none.
    why: String,
}

/// All versions of an object.
#[derive(Default)]
struct Object {
    versions: Vec<Version>,
    gone: Option<u64>,
}

/// A decision, until what it allowed is stored.
struct Decided {
    system: BTreeMap<String, String>,
    /// It let a drift pass that nobody approved, and had all it takes to know that.
    unasked: Option<String>,
    approval: Option<Approval>,
}

/// A request that is being decided.
pub(crate) struct Question {
    /// How many writes were stored when it was asked.
    at: u64,
    uid: String,
    user: String,
    operation: Operation,
    object: String,
    /// The uid of the object, if it has one yet.
    subject: Option<String>,
    /// The child, as approvals name it.
    child: [String; 3],
    parent: Option<String>,
    deleting: bool,
    /// Whether it is about an object that is frozen itself.
    frozen: bool,
    /// Whether it changes what is wanted: nothing less is gated.
    intended: bool,
    dry_run: bool,
    /// The annotations of ours that were sent.
    sent: BTreeMap<String, String>,
    /// Whether the replica that is asked knows the parent as it is.
    fresh: bool,
}

impl Question {
    /// The parent, as a replica would look for it: apiVersion, kind, namespace, name and uid.
    pub(crate) fn parent_of(review: &[u8]) -> Option<[String; 5]> {
        let review = Review::parse(review).ok()?;
        let request = &review.request;
        let object = request.old_object.as_ref().or(request.object.as_ref())?;
        let owner = object.metadata.owner.as_ref()?;
        Some([
            owner.api_version.to_string(),
            owner.kind.to_string(),
            request.namespace.to_string(),
            owner.name.to_string(),
            owner.uid.to_string(),
        ])
    }
}

impl Oracle {
    pub(crate) fn new(clock: Clock, weather: Weather, quiet_time: Duration) -> Self {
        let crashes = weather.crashes.is_some();
        let state = State { calm: weather.is_calm(), quiet_time, crashes, ..State::default() };
        Self { clock, state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes down what happens.
    pub(crate) fn note(&self, line: impl std::fmt::Display) {
        self.state().note(self.clock, &line.to_string());
    }

    /// Counts what happens.
    pub(crate) fn count(&self, what: &'static str) {
        *self.state().counts.entry(what).or_default() += 1;
    }

    /// Something is as it must not be.
    pub(crate) fn violation(&self, what: impl std::fmt::Display) {
        self.state().violation(self.clock, what.to_string());
    }

    /// Nothing goes wrong by itself any more.
    pub(crate) fn calm(&self) {
        self.state().calm = true;
    }

    pub(crate) fn is_violated(&self) -> bool {
        !self.state().violations.is_empty()
    }

    /// How many writes were stored.
    pub(crate) fn writes(&self) -> u64 {
        self.state().writes
    }

    /// What came of it: violations, log, counts.
    pub(crate) fn result(&self) -> (Vec<String>, Vec<String>, BTreeMap<&'static str, u64>) {
        let mut state = self.state();
        let taken = std::mem::take(&mut *state);
        (taken.violations, taken.log, taken.counts)
    }

    /// The object of a uid as it is, if it still is.
    pub(crate) fn current(&self, uid: &str) -> Option<Version> {
        let state = self.state();
        let object = state.objects.get(uid).filter(|object| object.gone.is_none())?;
        object.versions.last().cloned()
    }

    /// A request is about to be decided by a replica that knows its parent at this version.
    pub(crate) fn ask(&self, review: &[u8], known: Option<&str>) -> Option<Question> {
        let plain: Value = serde_json::from_slice(review).ok()?;
        let [before, after] = ["oldObject", "object"].map(|which| intent(&plain["request"][which]));
        let review = Review::parse(review).ok()?;
        let request = &review.request;
        let object = request.object.as_ref().or(request.old_object.as_ref())?;
        let old = request.old_object.as_ref();
        let owner = old.unwrap_or(object).metadata.owner.as_ref();
        let state = self.state();
        // A scale does not say whose it is.
        let scaled = state.objects.get(&*object.metadata.uid).and_then(|scaled| scaled.versions.last());
        let scaled =
            scaled.filter(|_| request.sub_resource == "scale").and_then(|scaled| scaled.owner.clone());
        let parent = owner.map(|owner| owner.uid.to_string()).or(scaled);
        let current = parent.as_ref().and_then(|parent| state.objects.get(parent)?.versions.last());
        let fresh = current.is_some_and(|current| known == Some(current.resource_version.as_str()));
        let sent = object.metadata.annotations.ours().filter(|(key, _)| SYSTEM.contains(key));
        Some(Question {
            at: state.writes,
            uid: request.uid.to_string(),
            user: request.user_info.username.to_string(),
            operation: request.operation,
            object: format!(
                "{} {}/{}{}",
                request.kind.kind,
                request.namespace,
                object.metadata.any_name(),
                if request.sub_resource.is_empty() {
                    String::new()
                } else {
                    format!("/{}", request.sub_resource)
                },
            ),
            subject: old.map(|old| old.metadata.uid.to_string()),
            child: [&object.api_version, &object.kind, &object.metadata.name].map(ToString::to_string),
            parent,
            deleting: old.is_some_and(|old| old.metadata.is_deleting()),
            frozen: old.is_some_and(|old| old.metadata.annotations.get(FREEZE).is_some()),
            intended: request.sub_resource.is_empty() && before != after,
            dry_run: request.is_dry_run(),
            sent: sent.map(|(key, value)| (key.to_owned(), value.to_owned())).collect(),
            fresh,
        })
    }

    /// It has been decided.
    pub(crate) fn decide(&self, question: &Question, decision: &Decision) {
        let mut state = self.state();
        state.decide(self.clock, question, decision);
    }
}

impl Observer for Oracle {
    fn stored(&self, write: &Stored<'_>) {
        self.state().store(self.clock, write);
    }
}

/// Times of field managers have no fractions, and a mark may be written somewhat later than what it tells of.
const MARGIN: Duration = Duration::from_secs(5);

/// How long it takes at most to put right what is known of an object: it may never be quiet, and connections may hang.
const MENDED: Duration = Duration::from_secs(40);

/// As much as never happens in a seed.
const MAX_LINES: usize = 100_000;

impl State {
    fn note(&mut self, clock: Clock, line: &str) {
        self.log.push(format!("{:>10.3} {line}", clock.elapsed().as_secs_f64()));
        if self.log.len() == MAX_LINES {
            self.violations
                .push(format!("more than {MAX_LINES} things happened: somebody turns in a circle"));
        }
    }

    fn violation(&mut self, clock: Clock, what: String) {
        self.note(clock, &format!("VIOLATION {what}"));
        self.violations.push(what);
    }

    fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    /// What the parent was at any time between a question and now; `None` if it is not known, or was gone.
    fn meanwhile(&self, question: &Question) -> Option<Vec<&Version>> {
        let parent = self.objects.get(question.parent.as_ref()?)?;
        if parent.gone.is_some() {
            return None;
        }
        let first = parent.versions.partition_point(|version| version.at <= question.at).checked_sub(1)?;
        Some(parent.versions.iter().skip(first).collect())
    }

    fn decide(&mut self, clock: Clock, question: &Question, decision: &Decision) {
        let Question { user, operation, object, .. } = question;
        let cause = decision.cause.map_or("-", |cause| cause.as_str());
        let verdict = match &decision.verdict {
            Verdict::Deny(denial) => format!("{} {}", denial.code, decision.resolution.as_str()),
            allowed => format!("{} {}", allowed.as_str(), decision.resolution.as_str()),
        };
        self.note(clock, &format!("{operation:?} {object} by {user}: {cause}, {verdict}"));
        self.count(match (&decision.verdict, &decision.resolution) {
            (Verdict::Deny(_), Resolution::Blocked) => "drifts denied",
            (Verdict::Deny(_), Resolution::Frozen) => "frozen",
            (Verdict::Deny(_), Resolution::Rejected) => "rejected",
            (Verdict::Deny(_), _) => "denied otherwise",
            (_, Resolution::Approved(_)) => "drifts approved",
            (_, Resolution::Excepted(_)) => "approved again",
            (_, Resolution::Logged) => "drifts let pass",
            _ => match cause {
                "-" => "without a cause",
                _ => "allowed",
            },
        });
        if let Verdict::Deny(denial) = &decision.verdict {
            let wrong = self.wrongly_denied(clock.elapsed(), question, decision, denial.code);
            if let Some(wrong) = wrong {
                self.violation(
                    clock,
                    format!("{operation:?} {object} by {user} was denied ({}): {wrong}", denial.message),
                );
            }
            return;
        }
        if decision.resolution == Resolution::Logged
            && !question.dry_run
            && let Some(why) = self.wrongly_denied(clock.elapsed(), question, decision, 403)
        {
            self.mistake(clock, question, why);
        }
        let mut system = question.sent.clone();
        for (key, value) in &decision.patch.annotations {
            match value.as_ref().filter(|_| SYSTEM.contains(&key.as_str())) {
                Some(value) => system.insert(key.clone(), value.clone()),
                None => system.remove(key),
            };
        }
        let decided = Decided {
            system,
            unasked: self.unasked(clock.elapsed(), question, decision),
            approval: approval(decision),
        };
        if !question.dry_run {
            self.decided.insert(question.uid.clone(), decided);
        } else if !decision.effects.is_empty() {
            self.violation(clock, format!("{operation:?} {object} by {user}: a dry run has effects"));
        }
    }

    /// A change was told of as drift that is none. What is known of its object must be put right before long.
    fn mistake(&mut self, clock: Clock, question: &Question, why: String) {
        self.count("drifts that turned out to be none");
        let Some(object) = question.subject.clone() else {
            let what = &question.object;
            return self.violation(clock, format!("the creation of {what} was told of as drift: {why}"));
        };
        let (request, at) = (question.uid.clone(), clock.elapsed());
        self.mistaken.push(Mistaken { request, object, at, why });
    }

    /// Looks for objects that still carry the trace of a drift that was none.
    fn look_for_mistakes(&mut self, clock: Clock) {
        let now = clock.elapsed();
        let (old, new) =
            std::mem::take(&mut self.mistaken).into_iter().partition(|it| now.saturating_sub(it.at) > MENDED);
        self.mistaken = new;
        for Mistaken { request, object, why, .. } in old {
            let object = self.objects.get(&object).filter(|object| object.gone.is_none());
            let trace = object.and_then(|object| object.versions.last()?.system.get(TRACE));
            if !self.crashes && trace.is_some_and(|trace| trace.contains(&request)) {
                self.violation(clock, format!("request {request} is still told of as drift: {why}"));
            }
        }
    }

    /// Why a request should not have been denied.
    fn wrongly_denied(
        &self,
        now: Duration,
        question: &Question,
        decision: &Decision,
        code: u16,
    ) -> Option<String> {
        if matches!(decision.class, Class::Status | Class::Metadata | Class::Own | Class::Ignored) {
            return Some("such a request is never gated".to_owned());
        }
        if code == 500 {
            return self.calm.then(|| "everything can be read".to_owned());
        }
        let lifts_freeze = question.operation == Operation::Delete && question.frozen && !question.deleting;
        if decision.resolution == Resolution::Frozen && lifts_freeze {
            return None;
        }
        if question.parent.is_none() {
            return Some("it has no parent".to_owned());
        }
        let parent = question.parent.as_ref().and_then(|parent| self.objects.get(parent))?;
        if let Some(gone) = parent.gone {
            let long_ago = gone <= question.at && question.operation != Operation::Create;
            return long_ago.then(|| "its parent was gone".to_owned());
        }
        if code == 422 {
            return Some("its parent is there".to_owned());
        }
        let versions = self.meanwhile(question)?;
        let all = |holds: &dyn Fn(&Version) -> bool| versions.iter().all(|version| holds(version));
        if decision.resolution == Resolution::Frozen {
            return all(&|parent| !parent.frozen).then(|| "its parent was not frozen".to_owned());
        }
        if all(&|parent| parent.deleting) || question.deleting {
            return Some("it is clean-up".to_owned());
        }
        let [api_version, kind, name] = &question.child;
        let rejects = |parent: &Version| parent.rejects(api_version, kind, name);
        if decision.resolution == Resolution::Rejected {
            return all(&|parent| !rejects(parent)).then(|| "nobody rejected it".to_owned());
        }
        if all(&|parent| controller(&parent.kind) != question.user) {
            return Some("whoever did it is not the controller of its parent".to_owned());
        }
        if all(&|parent| !parent.arrived && !parent.returned) {
            return Some("its parent has never been done since its intent was written".to_owned());
        }
        if all(&|parent| !rejects(parent) && parent.approves(api_version, kind, name)) {
            return Some("it was approved".to_owned());
        }
        if all(&|parent| !parent.returned && now.saturating_sub(parent.asked_at) < self.quiet_time) {
            return Some("its parent was changed within the quiet time".to_owned());
        }
        None
    }

    /// Whether the owner of an object was asked for something after the object was, and may still be about it.
    fn is_asked_above(&self, now: Duration, version: &Version) -> bool {
        let Some((uid, owner)) = version.owner.as_ref().and_then(|uid| Some((uid, self.objects.get(uid)?)))
        else {
            return false;
        };
        let below = self.written_below.get(uid).copied().unwrap_or_default();
        let is_busy = |owner: &Version| {
            let last = owner.settled_at.max(below);
            !owner.arrived || now.saturating_sub(last) <= self.quiet_time + MARGIN
        };
        owner.versions.last().is_some_and(|owner| owner.asked_at > version.asked_at && is_busy(owner))
    }

    /// Why a request is a drift that should have been denied.
    fn unasked(&self, now: Duration, question: &Question, decision: &Decision) -> Option<String> {
        if !question.intended || question.deleting || !question.fresh || question.dry_run {
            return None;
        }
        // Log mode blocks nothing for want of an answer.
        if decision.resolution == Resolution::ParentUnreadable && !self.calm {
            return None;
        }
        let versions = self.meanwhile(question)?;
        if versions.iter().all(|parent| parent.frozen && !parent.deleting) {
            return Some("its parent was frozen".to_owned());
        }
        if let Some(approval) = approval(decision) {
            let [api_version, kind, name] = &question.child;
            if versions.iter().all(|parent| parent.rejects(api_version, kind, name)) {
                return Some("it was rejected".to_owned());
            }
            let gives = |parent: &&Version| parent.gives(&approval, kind, name);
            // One that was used up lets the same request pass when it comes again.
            let used = matches!(decision.resolution, Resolution::Excepted(_));
            let parent = self.objects.get(question.parent.as_ref()?)?;
            let given = if used {
                parent.versions.iter().any(|parent| gives(&parent))
            } else {
                versions.iter().any(|parent| gives(parent) && parent.stands(&approval))
            };
            return (!given).then(|| format!("nobody approved it: {approval:?}"));
        }
        if decision.resolution == Resolution::Logged {
            return None;
        }
        let below = question.parent.as_ref().and_then(|parent| self.written_below.get(parent));
        let is_quiet = |parent: &Version| {
            let last = parent.settled_at.max(below.copied().unwrap_or_default());
            self.quiet_time.is_zero() || now.saturating_sub(last) > self.quiet_time + MARGIN
        };
        let drifts = |parent: &&Version| {
            !parent.deleting
                && parent.is_settled()
                && is_quiet(parent)
                && !self.is_asked_above(now, parent)
                && parent.is_controlled_by(&question.user)
        };
        versions.iter().all(drifts).then(|| {
            let cause = decision.cause.map_or("-", |cause| cause.as_str());
            format!("its parent was done, nobody changed it, and all that was known ({cause})")
        })
    }

    fn store(&mut self, clock: Clock, write: &Stored<'_>) {
        self.writes += 1;
        let at = self.writes;
        self.look_for_mistakes(clock);
        let Some(object) = write.after.or(write.before) else { return };
        let metadata = &object["metadata"];
        let what = format!(
            "{} {}/{} by {}",
            object["kind"].as_str().unwrap_or_default(),
            metadata["namespace"].as_str().unwrap_or_default(),
            metadata["name"].as_str().unwrap_or_default(),
            write.user,
        );
        let uid = metadata["uid"].as_str().unwrap_or_default().to_owned();
        if is_gated(write.group, write.resource) {
            let generation = metadata["generation"].as_i64().unwrap_or_default();
            let done = if write.after.is_none() { "is gone" } else { "stored" };
            self.note(clock, &format!("  {done}: {what} {} at generation {generation}", write.subresource));
            if let Some(wrong) = self.wrongly_stored(write) {
                self.violation(clock, format!("{what} was stored: {wrong}"));
            }
        }
        let owner = metadata["ownerReferences"][0]["uid"].as_str();
        if let Some(owner) = owner.filter(|_| is_controller(write.user)) {
            self.written_below.insert(owner.to_owned(), clock.elapsed());
        }
        let tracked = self.objects.entry(uid).or_default();
        let Some(after) = write.after else {
            tracked.gone = Some(at);
            return;
        };
        let moment = Moment { at, time: clock.elapsed(), by_controller: is_controller(write.user) };
        let version = Version::of(moment, after, write.subresource, tracked.versions.last());
        // A scale that leads back to an earlier intent cannot take the mark off: that is written a moment later.
        let mark = |version: &Version| version.system.get(SETTLED).cloned();
        let new = tracked.versions.last().and_then(mark) != mark(&version);
        let early = new && version.is_marked() && !version.arrived;
        let forged = version.system.values().any(|value| value.contains("forge"));
        tracked.versions.push(version);
        if early {
            self.violation(clock, format!("{what} is marked as settled at an intent at which it never was"));
        }
        if forged {
            self.violation(clock, format!("{what} carries what was forged"));
        }
        if is_gated(write.group, write.resource) && begins_with_its_operator(after) {
            self.violation(clock, format!("{what}: its operator is the origin of its intent"));
        }
    }

    /// Why a write should not have been stored.
    fn wrongly_stored(&mut self, write: &Stored<'_>) -> Option<String> {
        if write.user == SELF {
            return match (write.before, write.after) {
                (Some(before), Some(after)) => beyond_annotations(before, after),
                _ => Some("Kausality creates and deletes nothing here".to_owned()),
            };
        }
        let mut reviews = write.reviews.iter().rev();
        let Some(decided) = reviews.find_map(|review| self.decided.remove(review)) else {
            return Some("nobody decided on it".to_owned());
        };
        if let Some(approval) = &decided.approval {
            let id = approval.reason.clone().unwrap_or_default();
            let used = self.used.entry(id.clone()).or_default();
            *used += 1;
            if approval.mode == ApprovalMode::Once && *used > 1 {
                return Some(format!("the approval {id:?} for once has been used {used} times"));
            }
        }
        if let Some(unasked) = decided.unasked {
            return Some(unasked);
        }
        let (Some(after), before) = (write.after, write.before) else { return None };
        let (now, then) = (system(after), before.map(system).unwrap_or_default());
        let kept =
            write.subresource != "scale" && (write.subresource.is_empty() || write.group != "example.com");
        let wanted = if kept { &decided.system } else { &then };
        // An object that is on its way out is marked by its deletion, which carries no annotations.
        let deleted = before.is_some_and(|before| {
            before["metadata"]["deletionTimestamp"] != after["metadata"]["deletionTimestamp"]
        });
        (now != *wanted && !(deleted && now == then))
            .then(|| format!("Kausality's annotations are {now:?}, not {wanted:?}"))
    }
}

/// What Kausality's own write changed that is not its to change.
fn beyond_annotations(before: &Value, after: &Value) -> Option<String> {
    let plain = |object: &Value| {
        let mut object = object.clone();
        if let Some(metadata) = object["metadata"].as_object_mut() {
            for field in ["resourceVersion", "managedFields", "generation"] {
                metadata.remove(field);
            }
            if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
                annotations.retain(|key, _| !key.starts_with("kausality.io/"));
            }
            let empty = metadata
                .get("annotations")
                .is_some_and(|all| all.as_object().is_none_or(|all| all.is_empty()));
            if empty {
                metadata.remove("annotations");
            }
        }
        object
    };
    if plain(before) != plain(after) {
        return Some("Kausality changed more than its annotations".to_owned());
    }
    let of =
        |object: &Value, key: &str| object["metadata"]["annotations"][key].as_str().map(ToOwned::to_owned);
    let order = [FREEZE, SNOOZE, MODE].into_iter().find(|key| of(before, key) != of(after, key));
    if let Some(key) = order {
        return Some(format!("Kausality changed {key}"));
    }
    // An approval may be used up, and get another generation; nothing else.
    let entries = |object: &Value, key: &str| -> Vec<Value> {
        of(object, key).and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
    };
    let reasons = |object: &Value, key: &str| -> Vec<String> {
        entries(object, key).iter().map(|entry| entry["reason"].to_string()).collect()
    };
    let new = reasons(after, APPROVALS).into_iter().find(|it| !reasons(before, APPROVALS).contains(it));
    if let Some(reason) = new {
        return Some(format!("Kausality approved {reason}"));
    }
    (reasons(before, REJECTIONS) != reasons(after, REJECTIONS))
        .then(|| "Kausality changed who rejects what".to_owned())
}

/// What approved a drift.
fn approval(decision: &Decision) -> Option<Approval> {
    let consumed = decision.effects.iter().find_map(|effect| match effect {
        Effect::ConsumeOnce { approval, .. } => Some(Approval::clone(approval)),
        _ => None,
    });
    consumed.or_else(|| match &decision.resolution {
        Resolution::Approved(used) => Some(used.approval.clone()),
        Resolution::Excepted(Exception::Used(approval)) => Some(Approval::clone(approval)),
        _ => None,
    })
}

/// Whether the trace of a Stack begins with its operator, which only completes what people have asked for.
fn begins_with_its_operator(object: &Value) -> bool {
    let trace = system(object).remove(TRACE).and_then(|text| serde_json::from_str::<Value>(&text).ok());
    object["kind"] == "Stack" && trace.is_some_and(|hops| hops[0]["user"] == OPERATOR)
}

fn is_controller(user: &str) -> bool {
    user == OPERATOR || user.starts_with("system:serviceaccount:kube-system:")
}

/// Who reconciles the objects of a kind.
fn controller(kind: &str) -> &'static str {
    match kind {
        "Deployment" => "system:serviceaccount:kube-system:deployment-controller",
        "ReplicaSet" => "system:serviceaccount:kube-system:replicaset-controller",
        _ => OPERATOR,
    }
}

/// Whether Kausality is asked about writes of a resource.
pub(crate) fn is_gated(group: &str, resource: &str) -> bool {
    matches!(
        (group, resource),
        ("apps", "deployments" | "replicasets") | ("", "configmaps") | ("example.com", "stacks")
    )
}
