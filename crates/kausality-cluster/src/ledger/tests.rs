//! The ledger against an API server that keeps entries, and counts who reads them.

use std::convert::Infallible;

use http::{Method, Request, Response};
use kausality_api::drift::{MAX_OPEN, MAX_OPEN_BYTES, MAX_OPEN_OF_CHILD};
use kausality_core::{
    class::Class,
    explain::{Explanation, Rule, Step},
    gate::Resolution,
    intent::IntentHash,
};
use kube::client::Body;
use serde_json::Value;

use super::*;

/// An API server of this kind.
#[derive(Default)]
struct Fake {
    /// Entries are not served, or nobody may list them, or a list takes this long.
    is_bare: bool,
    is_forbidden: bool,
    slowness: Duration,
    /// How long a creation waits before it is stored.
    creation: Duration,
    entries: BTreeMap<String, Value>,
    version: u64,
    /// How often single entries were read.
    reads: usize,
    /// Whether watches tell anything.
    is_watched: bool,
    /// What somebody else writes before the next patch arrives.
    meanwhile: Option<Value>,
}

type Shared = Arc<Mutex<Fake>>;

const DRIFTS: &str = "/apis/kausality.io/v1alpha1/namespaces/shop/drifts";

impl Fake {
    fn answer(&mut self, method: &Method, path: &str, query: &str, body: Value) -> (u16, Value) {
        let name = path.strip_prefix(DRIFTS).map(|rest| rest.trim_start_matches('/').to_owned());
        match (method, name) {
            (&Method::GET, _) if path == "/api" || path == "/apis" => (200, self.discovery(path)),
            (&Method::POST, Some(_)) => {
                let name = body["metadata"]["name"].as_str().unwrap().to_owned();
                if self.entries.contains_key(&name) { failure(409) } else { (201, self.store(name, body)) }
            }
            (&Method::GET, Some(name)) if !name.is_empty() => {
                self.reads += 1;
                self.entries.get(&name).map_or_else(|| failure(404), |entry| (200, entry.clone()))
            }
            (&Method::PATCH, Some(name)) => {
                let mut entry = self.entries[&name].clone();
                if let Some(other) = self.meanwhile.take() {
                    self.store(name.clone(), other);
                }
                match &body {
                    Value::Array(operations) => {
                        for operation in operations {
                            let (place, field) =
                                operation["path"].as_str().unwrap().rsplit_once('/').unwrap();
                            entry.pointer_mut(place).unwrap()[field] = operation["value"].clone();
                        }
                    }
                    body => merge(&mut entry, body),
                }
                match entry["metadata"]["resourceVersion"]
                    == self.entries[&name]["metadata"]["resourceVersion"]
                {
                    true => (200, self.store(name, entry)),
                    false => failure(409),
                }
            }
            // A watch that ends at once is asked for again and again; on none of them happens anything.
            (&Method::GET, None) if query.contains("watch=true") => (200, self.news(path, query)),
            (&Method::GET, None) if self.is_forbidden => failure(403),
            (&Method::GET, None) => {
                let metadata = json!({"resourceVersion": "1"});
                (200, json!({"apiVersion": "v1", "kind": "List", "metadata": metadata, "items": []}))
            }
            asked => panic!("{asked:?} {path}"),
        }
    }

    /// What a watch tells: an entry that has changed since the version that it begins at.
    fn news(&self, path: &str, query: &str) -> Value {
        let version = |entry: &&Value| entry["metadata"]["resourceVersion"].as_str()?.parse::<u64>().ok();
        let begin = query.split('&').find_map(|part| part.strip_prefix("resourceVersion=")?.parse().ok());
        let changed = (self.entries.values())
            .filter(|entry| version(entry) > begin)
            .min_by_key(version)
            .filter(|_| self.is_watched && path.ends_with("/drifts"));
        changed.map_or(Value::Null, |entry| json!({"type": "MODIFIED", "object": entry}))
    }

    fn store(&mut self, name: String, mut entry: Value) -> Value {
        self.version += 1;
        entry["metadata"]["resourceVersion"] = self.version.to_string().into();
        self.entries.insert(name, entry.clone());
        entry
    }

    fn discovery(&self, path: &str) -> Value {
        let resource = |plural: &str, kind: &str, scope: &str| {
            json!({"resource": plural, "scope": scope, "verbs": ["get"], "singularResource": "",
                "responseKind": {"group": GROUP, "version": "v1alpha1", "kind": kind}})
        };
        let resources =
            [resource("drifts", "Drift", "Namespaced"), resource("clusterdrifts", "ClusterDrift", "Cluster")];
        let items = match path == "/api" || self.is_bare {
            true => json!([]),
            false => json!([{"metadata": {"name": GROUP}, "versions": [
                {"version": "v1alpha1", "freshness": "Current", "resources": resources}]}]),
        };
        json!({"apiVersion": "apidiscovery.k8s.io/v2", "kind": "APIGroupDiscoveryList", "metadata": {}, "items": items})
    }
}

fn merge(into: &mut Value, patch: &Value) {
    for (field, value) in patch.as_object().unwrap() {
        match value {
            Value::Null => drop(into.as_object_mut().unwrap().remove(field)),
            Value::Object(_) if into[field].is_object() => merge(&mut into[field], value),
            value => into[field] = value.clone(),
        }
    }
}

fn failure(code: u16) -> (u16, Value) {
    let reason = match code {
        404 => "NotFound",
        409 => "Conflict",
        _ => "Forbidden",
    };
    (
        code,
        json!({"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": reason}),
    )
}

fn client(fake: &Shared) -> Client {
    let fake = fake.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        let fake = fake.clone();
        async move {
            let (head, body) = request.into_parts();
            let body = serde_json::from_slice(&body.collect_bytes().await.unwrap()).unwrap_or_default();
            let (path, query) = (head.uri.path(), head.uri.query().unwrap_or_default());
            let (slowness, creation) = {
                let fake = fake.lock().unwrap();
                (fake.slowness, fake.creation)
            };
            match head.method {
                Method::GET if path.ends_with("drifts") => tokio::time::sleep(slowness).await,
                Method::POST => tokio::time::sleep(creation).await,
                _ => {}
            }
            let (code, answer) = fake.lock().unwrap().answer(&head.method, path, query, body);
            let answer = if answer.is_null() { Vec::new() } else { answer.to_string().into_bytes() };
            Ok::<_, Infallible>(Response::builder().status(code).body(Body::from(answer)).unwrap())
        }
    });
    Client::new(service, "default")
}

/// A ledger that somebody keeps, and what it is kept in.
fn kept(fake: Fake) -> (Arc<Ledger>, Shared) {
    let fake = Shared::new(Mutex::new(fake));
    (kept_in(&fake), fake)
}

/// A replica more.
fn kept_in(fake: &Shared) -> Arc<Ledger> {
    let client = client(fake);
    let begun = Instant::now();
    let clock = Clock::new(move || Timestamp::UNIX_EPOCH + begun.elapsed());
    let ledger = Arc::new(Ledger::new(client.clone(), clock));
    ledger.expect();
    let keeping = ledger.clone();
    tokio::spawn(async move { keeping.keep(&client, &Kinds::new(client.clone())).await });
    ledger
}

fn drift() -> Drift {
    let report = json!({"apiVersion": "kausality.io/v1alpha1", "kind": "DriftReport", "spec": {
        "id": "d", "phase": "Detected",
        "parent": {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "shop", "name": "web",
            "lifecyclePhase": "Initialized"},
        "child": {"apiVersion": "apps/v1", "kind": "ReplicaSet", "namespace": "shop", "name": "web-1"},
        "newObject": {}, "request": {"user": "u", "uid": "1", "operation": "UPDATE"}}});
    Drift {
        report: serde_json::from_value(report).unwrap(),
        diff: kausality_fields::Diff::default(),
        owners: Vec::new(),
        parent_intent: IntentHash::parse("0000000000000000").unwrap(),
        parent_trace: None,
        snoozed: false,
    }
}

/// A decision that rests on one rule.
fn decision(resolution: Resolution, rule: Rule, finding: &str) -> Decision {
    let step = Step { rule, finding: finding.to_owned(), evidence: Vec::new(), decided: true };
    let explanation = Explanation::from_iter([step]);
    Decision { resolution, explanation, ..Decision::allow(Class::Update) }
}

/// The same drift under another intent of its parent, which has this generation.
fn drift_under(intent: u64, generation: Option<i64>) -> Drift {
    let mut drift = drift();
    drift.parent_intent = IntentHash::parse(&format!("{intent:016x}")).unwrap();
    drift.report.spec.parent.generation = generation;
    drift
}

async fn see_it(ledger: &Arc<Ledger>, drift: &Drift) -> Entered {
    let blocked = decision(Resolution::Blocked, Rule::Mode, "enforce");
    ledger.enter(drift, &blocked, Instant::now() + Duration::from_secs(8)).await
}

async fn see(ledger: &Arc<Ledger>) -> Entered {
    see_as(ledger, &decision(Resolution::Blocked, Rule::Mode, "enforce")).await
}

async fn see_as(ledger: &Arc<Ledger>, decision: &Decision) -> Entered {
    ledger.enter(&drift(), decision, Instant::now() + Duration::from_secs(8)).await
}

/// Closes the entry, after all that has been seen of it.
fn close(fake: &Shared) {
    close_at(fake, "2100-01-01T00:00:00Z");
}

/// Closes the entry, at a time that a clock shows.
fn close_at(fake: &Shared, at: &str) {
    let mut fake = fake.lock().unwrap();
    let mut entry = fake.entries["d"].clone();
    entry["status"]["state"] = "Resolved".into();
    entry["status"]["resolution"] = json!({"reason": "ParentChanged", "at": at});
    fake.store("d".to_owned(), entry);
}

/// How often the drift was seen, and what has become of it, as the entry says.
fn told(fake: &Shared) -> (u64, String, String) {
    let status = fake.lock().unwrap().entries["d"]["status"].clone();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    (status["count"].as_u64().unwrap(), text(&status["state"]), text(&status["resolution"]["reason"]))
}

#[tokio::test(start_paused = true)]
async fn what_was_seen_of_a_drift_before_it_was_over_is_counted_and_not_read_for_ever() {
    let (ledger, fake) = kept(Fake::default());
    for _ in 0..3 {
        assert_eq!(see(&ledger).await, Entered::Yes);
    }
    close(&fake);
    let reads = async |seconds| {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        std::mem::take(&mut fake.lock().unwrap().reads)
    };
    assert_eq!(reads(25).await, 0, "it has been written a moment ago");
    assert_eq!(reads(10).await, 1, "what has been seen since is to be counted, and turns out to be over");
    assert_eq!(reads(120).await, 0);
    assert_eq!(told(&fake), (3, "Resolved".to_owned(), "ParentChanged".to_owned()));
}

/// Whoever closes an entry knows nothing of what other replicas have seen and not written yet.
#[tokio::test(start_paused = true)]
async fn an_entry_that_is_closed_before_it_is_counted_still_gets_the_counts_of_all_replicas() {
    let (one, fake) = kept(Fake { is_watched: true, ..Fake::default() });
    let other = kept_in(&fake);
    for _ in 0..4 {
        assert_eq!(see(&one).await, Entered::Yes);
        assert_eq!(see(&other).await, Entered::Yes);
    }
    assert_eq!(told(&fake).0, 1, "the rest is counted later");
    close(&fake);
    tokio::time::sleep(Duration::from_secs(5)).await;
    let closed = (8, "Resolved".to_owned(), "ParentChanged".to_owned());
    assert_eq!(told(&fake), closed, "as soon as the replicas know");
    let version = fake.lock().unwrap().version;
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert_eq!((told(&fake), fake.lock().unwrap().version), (closed, version), "nothing is counted twice");
}

/// An entry that is over is open again as soon as its drift occurs again: nobody could decide about it, and a crash would lose it.
#[tokio::test(start_paused = true)]
async fn what_occurs_after_the_last_count_of_an_entry_that_is_over_opens_it_at_once() {
    for is_watched in [true, false] {
        let (ledger, fake) = kept(Fake { is_watched, ..Fake::default() });
        for _ in 0..3 {
            assert_eq!(see(&ledger).await, Entered::Yes);
        }
        close(&fake);
        // Without a watch, the next count finds that.
        tokio::time::sleep(if is_watched { 5 * TICK } else { BETWEEN + 2 * TICK }).await;
        assert_eq!(told(&fake), (3, "Resolved".to_owned(), "ParentChanged".to_owned()));
        tokio::time::sleep(TICK).await;
        assert_eq!(see(&ledger).await, Entered::Yes);
        assert_eq!(told(&fake), (1, "Blocked".to_owned(), String::new()));
    }
}

/// Clocks differ: whether something was seen before an entry was closed, or after it, only this replica can tell.
#[tokio::test(start_paused = true)]
async fn what_came_in_before_a_closure_was_known_belongs_to_what_is_over_and_only_that() {
    for at in ["1960-01-01T00:00:00Z", "2100-01-01T00:00:00Z"] {
        for occurs_again in [false, true] {
            let (ledger, fake) = kept(Fake { is_watched: true, ..Fake::default() });
            for _ in 0..3 {
                assert_eq!(see(&ledger).await, Entered::Yes);
            }
            close_at(&fake, at);
            if occurs_again {
                let key = ("shop".to_owned(), "d".to_owned());
                while ledger.shelf.get(&key).unwrap().state.is_open() {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                assert_eq!(told(&fake).0, 1, "two are not counted yet");
                assert_eq!(see(&ledger).await, Entered::Yes);
            }
            tokio::time::sleep(5 * TICK).await;
            let expected = if occurs_again { (1, "Blocked", "") } else { (3, "Resolved", "ParentChanged") };
            let (count, state, reason) = told(&fake);
            assert_eq!((count, state.as_str(), reason.as_str()), expected, "{at}");
        }
    }
}

fn once() -> Approval {
    serde_json::from_value(
        json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-1", "mode": "once"}),
    )
    .unwrap()
}

/// A used-up approval is not there when the leader looks for it: whoever used it closes the entry, whoever counts meanwhile.
#[tokio::test(start_paused = true)]
async fn an_entry_that_is_counted_while_it_is_closed_is_closed_all_the_same() {
    let key = ("shop".to_owned(), "d".to_owned());
    let closed = async |counted: &str| {
        let (ledger, fake) = kept(Fake::default());
        assert_eq!(see(&ledger).await, Entered::Yes);
        tokio::time::sleep(TICK).await;
        let mut entry = fake.lock().unwrap().entries["d"].clone();
        entry["status"]["lastSeen"] = counted.into();
        fake.lock().unwrap().meanwhile = Some(entry);
        ledger.close(&key, &once()).await;
        told(&fake).1
    };
    assert_eq!(closed("1970-01-01T00:00:00Z").await, "Resolved");
    assert_eq!(closed("1970-01-01T00:10:00Z").await, "Blocked", "it has been seen again");
}

/// What rests on another parent, intent or child is written whole, be the entry over or not: the leader closes by these facts.
#[tokio::test(start_paused = true)]
async fn the_same_drift_on_another_ground_is_entered_anew() {
    let mut parent_recreated = drift_under(0, Some(1));
    parent_recreated.report.spec.parent.uid = Some("parent-2".to_owned());
    let mut child_recreated = drift_under(0, Some(1));
    child_recreated.report.spec.child.uid = Some("child-2".to_owned());
    for again in [drift_under(1, Some(2)), drift_under(1, None), parent_recreated, child_recreated] {
        for is_over in [true, false] {
            let (ledger, fake) = kept(Fake::default());
            let mut first = drift_under(0, Some(1));
            first.report.spec.parent.uid = Some("parent-1".to_owned());
            first.report.spec.child.uid = Some("child-1".to_owned());
            first.report.spec.new_object = json!({"spec": {"gone": true}});
            assert_eq!(see_it(&ledger, &first).await, Entered::Yes);
            fake.lock().unwrap().entries.get_mut("d").unwrap()["status"]["deliveries"] =
                json!([{"endpoint": "a", "detected": "1970-01-01T00:00:00Z"}]);
            if is_over {
                close(&fake);
            }
            tokio::time::sleep(Duration::from_secs(5)).await;

            let mut again = again.clone();
            let report = &mut again.report.spec;
            report.parent.uid.get_or_insert("parent-1".to_owned());
            report.child.uid.get_or_insert("child-1".to_owned());
            (report.request.uid, report.new_object) = ("2".to_owned(), json!({"spec": {"here": true}}));
            assert_eq!(see_it(&ledger, &again).await, Entered::Yes);
            let entry: Entry = serde_json::from_value(fake.lock().unwrap().entries["d"].clone()).unwrap();
            let blocked = decision(Resolution::Blocked, Rule::Mode, "enforce");
            let five = Timestamp::UNIX_EPOCH + SignedDuration::from_secs(5);
            let mut expected = ledger::entry(&again, &blocked, five.round(Unit::Second).unwrap());
            expected.metadata.resource_version = entry.metadata.resource_version.clone();
            for at in [
                &mut expected.status.first_seen,
                &mut expected.status.last_seen,
                &mut expected.status.counted_at,
            ] {
                *at = entry.status.first_seen;
            }
            assert!(entry.status.first_seen >= five, "{}", entry.status.first_seen);
            assert_eq!(entry, expected);

            // It is known from here on.
            let before = fake.lock().unwrap().version;
            assert_eq!(see_it(&ledger, &again).await, Entered::Yes);
            assert_eq!(fake.lock().unwrap().version, before);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_late_watch_takes_for_a_drift_does_not_bring_the_past_back() {
    let (ledger, fake) = kept(Fake::default());
    for (intent, generation) in [(0, 1), (1, 2), (0, 1)] {
        assert_eq!(see_it(&ledger, &drift_under(intent, Some(generation))).await, Entered::Yes);
    }
    tokio::time::sleep(BETWEEN + 2 * TICK).await;
    let entry = fake.lock().unwrap().entries["d"].clone();
    assert_eq!(entry["spec"]["parentIntent"], "0000000000000001");
    assert_eq!(entry["status"]["count"], 2);
}

#[tokio::test(start_paused = true)]
async fn what_occurs_anew_again_and_again_is_written_three_times_a_minute() {
    let (ledger, fake) = kept(Fake::default());
    for nth in 0..1180 {
        let entered = see_it(&ledger, &drift_under(nth, None)).await;
        assert_eq!(entered, if nth < 3 { Entered::Yes } else { Entered::Later }, "{nth}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(fake.lock().unwrap().version, 3);
    assert_eq!(fake.lock().unwrap().reads, 2);
    tokio::time::sleep(Duration::from_secs(3)).await;
    let fake = fake.lock().unwrap();
    assert_eq!((fake.version, fake.reads), (4, 3), "the last one is not lost");
    assert_eq!(fake.entries["d"]["spec"]["parentIntent"], format!("{:016x}", 1179));
}

/// The nth drift of a child.
fn drift_of(child: usize, nth: usize) -> Drift {
    let mut drift = drift();
    drift.report.spec.id = format!("{child}-{nth}");
    drift.report.spec.child.name = format!("child-{child}");
    drift
}

#[tokio::test(start_paused = true)]
async fn one_child_leaves_room_for_others_and_one_namespace_for_etcd() {
    let (ledger, fake) = kept(Fake::default());
    let children = MAX_OPEN / MAX_OPEN_OF_CHILD;
    for child in 0..children {
        for nth in 0..MAX_OPEN_OF_CHILD {
            assert_eq!(see_it(&ledger, &drift_of(child, nth)).await, Entered::Yes, "{child} {nth}");
        }
        let one_more = see_it(&ledger, &drift_of(child, MAX_OPEN_OF_CHILD)).await;
        assert_eq!(one_more, Entered::Full(Bound::Child));
    }
    assert_eq!(see_it(&ledger, &drift_of(children, 0)).await, Entered::Full(Bound::Namespace));
    assert_eq!(see_it(&ledger, &drift_of(0, 0)).await, Entered::Yes, "what is entered is counted as before");
    assert_eq!(fake.lock().unwrap().entries.len(), MAX_OPEN);
    let counts: Vec<_> = ledger.refused.counts().collect();
    assert_eq!(counts, [("child", children as u64), ("namespace", 1), ("replica", 0)]);
}

/// A child that changes again and again, as of a timestamp, must not have entries without end.
#[tokio::test(start_paused = true)]
async fn superseded_entries_of_a_child_leave_no_room_for_new_ones() {
    let (ledger, fake) = kept(Fake { is_watched: true, ..Fake::default() });
    for nth in 0..MAX_OPEN_OF_CHILD {
        assert_eq!(see_it(&ledger, &drift_of(0, nth)).await, Entered::Yes);
        let name = format!("0-{nth}");
        let mut entry = fake.lock().unwrap().entries[&name].clone();
        entry["status"]["state"] = "Resolved".into();
        entry["status"]["resolution"] = json!({"reason": "Superseded", "at": "1970-01-01T00:00:00Z"});
        fake.lock().unwrap().store(name.clone(), entry);
        let known = async || {
            while ledger.shelf.get(&("shop".to_owned(), name.clone())).is_none_or(|it| !it.is_superseded) {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), known()).await.unwrap();
    }
    assert_eq!(see_it(&ledger, &drift_of(0, MAX_OPEN_OF_CHILD)).await, Entered::Full(Bound::Child));
    assert_eq!(see_it(&ledger, &drift_of(1, 0)).await, Entered::Yes, "other children have room");
    tokio::time::sleep(Duration::from_hours(1)).await;
    assert_eq!(
        see_it(&ledger, &drift_of(0, MAX_OPEN_OF_CHILD)).await,
        Entered::Yes,
        "what it does later is told"
    );
}

#[tokio::test(start_paused = true)]
async fn open_entries_of_a_namespace_are_bounded_in_bytes() {
    let (ledger, fake) = kept(Fake::default());
    let mut large = drift();
    large.report.spec.new_object = json!({"spec": "x".repeat(25_000)});
    let mut full = None;
    for nth in 0..MAX_OPEN {
        let mut drift = large.clone();
        drift.report.spec.id = format!("{nth}");
        drift.report.spec.child.name = format!("child-{nth}");
        if see_it(&ledger, &drift).await == Entered::Full(Bound::Namespace) {
            full = Some(nth);
            break;
        }
    }
    let bytes: usize = fake.lock().unwrap().entries.values().map(|entry| entry.to_string().len()).sum();
    assert!(full.is_some_and(|full| full > 100), "{full:?}");
    assert!((MAX_OPEN_BYTES..MAX_OPEN_BYTES + 32 * 1024).contains(&bytes), "{bytes}");
}

#[tokio::test(start_paused = true)]
async fn that_the_ledger_is_full_is_not_said_each_time() {
    let refused = Refused::default();
    let mut said = 0;
    for _ in 0..600 {
        said += usize::from(refused.count("shop", Bound::Child));
        tokio::time::advance(Duration::from_millis(100)).await;
    }
    assert_eq!(said, 1);
    assert!(refused.count("shop", Bound::Child));
    assert!(refused.count("shop", Bound::Namespace));
    assert!(refused.count("bank", Bound::Child));
}

#[tokio::test(start_paused = true)]
async fn what_is_seen_again_and_again_is_written_twice_a_minute() {
    let (ledger, fake) = kept(Fake::default());
    for nth in 0..1200 {
        // Other words are no reason to write.
        let decision = decision(Resolution::Blocked, Rule::Mode, &format!("enforce {nth}"));
        assert_eq!(see_as(&ledger, &decision).await, Entered::Yes);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let fake = fake.lock().unwrap();
    assert!((2..=3).contains(&fake.version), "{} writes in a minute", fake.version);
    assert!((2..=3).contains(&(fake.reads + 1)), "{} reads in a minute", fake.reads);
}

/// Who was killed is asked before it knows anything.
#[tokio::test(start_paused = true)]
async fn a_drift_that_comes_before_the_entries_are_known_is_entered() {
    let (ledger, fake) = kept(Fake { slowness: Duration::from_millis(700), ..Fake::default() });
    assert_eq!(see(&ledger).await, Entered::Yes);
    assert_eq!(fake.lock().unwrap().entries["d"]["status"]["state"], "Blocked");
}

/// An answer does not wait longer than its time for an entry, but what it answered for counts.
#[tokio::test(start_paused = true)]
async fn a_sighting_whose_entry_comes_late_is_counted() {
    let (ledger, fake) = kept(Fake { creation: Duration::from_secs(3), ..Fake::default() });
    let begun = Instant::now();
    assert_eq!(see(&ledger).await, Entered::No);
    assert_eq!(begun.elapsed().as_secs(), PATIENCE.as_secs());
    assert_eq!(see(&ledger).await, Entered::Yes, "it waits for the write that is under way");
    ledger.flush().await;
    assert_eq!(told(&fake).0, 2);
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_for_entries_that_will_not_be_known() {
    let begun = Instant::now();
    let bare = || Fake { is_bare: true, ..Fake::default() };
    for fake in [bare(), Fake { is_forbidden: true, ..Fake::default() }] {
        let (ledger, _fake) = kept(fake);
        assert_eq!(see(&ledger).await, Entered::Off);
    }
    let unkept = Arc::new(Ledger::new(client(&Shared::default()), Clock::default()));
    assert_eq!(see(&unkept).await, Entered::Off);
    assert!(begun.elapsed() < Duration::from_millis(50), "{:?}", begun.elapsed());
    let (ledger, _fake) = kept(Fake { slowness: Duration::from_secs(20), ..Fake::default() });
    assert_eq!(see(&ledger).await, Entered::Off);
    assert_eq!(begun.elapsed().as_secs(), PATIENCE.as_secs());
}

#[tokio::test(start_paused = true)]
async fn a_state_is_explained_by_the_sighting_that_made_it() {
    let (ledger, fake) = kept(Fake::default());
    let shown = || {
        let status = fake.lock().unwrap().entries["d"]["status"].clone();
        let [step] = status["explanation"].as_array().unwrap().as_slice() else { panic!("{status}") };
        assert_eq!(step["decided"], true);
        format!("{} by {}: {}", status["state"], step["rule"], step["finding"]).replace('"', "")
    };
    for (resolution, rule, finding, expected) in [
        (Resolution::Blocked, Rule::Mode, "enforce", "Blocked by mode: enforce"),
        (Resolution::Logged, Rule::Mode, "log", "Passed by mode: log"),
        (Resolution::Rejected, Rule::Rejection, "not at night", "Rejected by rejection: not at night"),
        // The same state, which rests on something else.
        (Resolution::Rejected, Rule::Policy, "denied by a rule", "Rejected by policy: denied by a rule"),
    ] {
        let before = fake.lock().unwrap().version;
        assert_eq!(see_as(&ledger, &decision(resolution, rule, finding)).await, Entered::Yes);
        tokio::time::sleep(BETWEEN + 2 * TICK).await;
        assert_eq!(shown(), expected);
        assert_eq!(fake.lock().unwrap().version, before + 1, "one write, {expected}");
    }
}

#[test]
fn a_sighting_explains_nothing_that_became_of_it_later() {
    let at = |seconds: i64| Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds);
    let blocked = decision(Resolution::Blocked, Rule::Mode, "enforce");
    let entry = ledger::entry(&drift(), &blocked, at(10));
    let written = |seconds, found| {
        let logged = decision(Resolution::Logged, Rule::Mode, "log");
        let sighting = Sighting {
            at: at(seconds),
            state: DriftState::Passed,
            explanation: logged.explanation.recorded(),
        };
        let patch = patch::counted(&entry, 1, &sighting, at(60), found);
        (patch["status"]["state"].clone(), patch["status"]["explanation"][0]["finding"].clone())
    };
    for (seconds, found) in [(9, Found::Open), (9, Found::Over), (11, Found::Over)] {
        assert_eq!(written(seconds, found), (Value::Null, Value::Null));
    }
    for (seconds, found) in [(10, Found::Open), (11, Found::Open)] {
        assert_eq!(written(seconds, found), (json!("Passed"), json!("log")));
    }
}
