//! What holds of every decision, whatever the request and the facts.

mod noise;
mod objects;
mod sample;
mod texts;
mod world;

use std::collections::{BTreeMap, BTreeSet};

use kausality_api::{
    annotation::{
        APPROVALS, CONTROLLERS, FREEZE, Owner, REJECTIONS, SYSTEM, TRACE, UPDATERS, WRITERS, owner,
    },
    identity::{Hashes, UserHash},
    mode::Mode,
    trace::{MAX_BYTES, MAX_HOPS, Trace},
};
use kausality_core::{
    Decision, cause::Cause, class::Class, decision::Verdict, explain::Rule, gate::Resolution,
};
use noise::{any_json, mutation, recorded, replace};
use proptest::{collection::vec, prelude::*, sample::Index, strategy::ValueTree, test_runner::TestRunner};
use sample::{Kin, Sample, ours};
use serde_json::{Value, json};
use world::sample;

/// The longest answer in bytes.
const MAX_MESSAGE: usize = 8 * 1024;

fn config() -> ProptestConfig {
    ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() }
}

/// Without this, the properties could hold for want of anything that they speak of.
#[test]
fn samples_are_about_what_matters() {
    let mut runner = TestRunner::deterministic();
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut note = |what: String| *seen.entry(what).or_default() += 1;
    let samples = sample();
    for _ in 0..4000 {
        let sample = samples.new_tree(&mut runner).unwrap().current();
        let decision = sample.decide();
        note(format!("class {}", decision.class));
        note(format!("verdict {}", decision.verdict.as_str()));
        note(format!("resolution {}", decision.resolution));
        decision.cause.into_iter().for_each(|cause| note(format!("cause {cause}")));
        if let (Some(Cause::Drift), Some(mode)) = (decision.cause, decision.mode) {
            note("drift".to_owned());
            note(format!("drift in mode {mode}"));
        }
        if is_controller(&sample) {
            note(format!("controller {}", decision.class));
        }
        if let Verdict::Deny(denial) = &decision.verdict {
            note(format!("code {}", denial.code));
        }
        decision.effects.iter().for_each(|effect| note(effect_name(effect).to_owned()));
    }
    let wanted = [
        ("class own", 10),
        ("class ignored", 10),
        ("class status", 50),
        ("class metadata", 100),
        ("class create", 100),
        ("class update", 200),
        ("class delete", 50),
        ("class scale", 20),
        ("verdict allow", 200),
        ("verdict warn", 100),
        ("verdict deny", 200),
        ("cause Origin", 50),
        ("cause Initialization", 20),
        ("cause Expected", 20),
        ("cause Drift", 200),
        ("cause Cleanup", 20),
        ("resolution passed", 200),
        ("resolution frozen", 20),
        ("resolution rejected", 20),
        ("resolution approved", 20),
        ("resolution policy", 5),
        ("resolution denied", 5),
        ("resolution upgrade", 5),
        ("resolution logged", 20),
        ("resolution blocked", 50),
        ("resolution parent-gone", 5),
        ("resolution parent-unreadable", 5),
        ("drift", 200),
        ("drift in mode log", 50),
        ("drift in mode enforce", 50),
        ("controller create", 50),
        ("controller update", 100),
        ("controller metadata", 50),
        ("code 403", 50),
        ("code 422", 3),
        ("code 500", 3),
        ("consume", 5),
        ("report", 50),
        ("record status", 20),
        ("record scale", 5),
    ];
    for (what, least) in wanted {
        let count = seen.get(what).copied().unwrap_or_default();
        assert!(count >= least, "{what}: {count} of at least {least}; seen: {seen:#?}");
    }
}

fn effect_name(effect: &kausality_core::decision::Effect) -> &'static str {
    use kausality_core::decision::Effect;
    match effect {
        Effect::ConsumeOnce { .. } => "consume",
        Effect::Report(_) => "report",
        Effect::RecordStatus { .. } => "record status",
        Effect::RecordScale { .. } => "record scale",
    }
}

fn denied(decision: &Decision) -> bool {
    !decision.verdict.is_allowed()
}

/// Whether the request comes from the controller that is recorded on the parent, judged from the samples alone.
fn is_controller(sample: &Sample) -> bool {
    let stored = &sample.request["oldObject"];
    let shown = if stored.is_object() { stored } else { &sample.request["object"] };
    let owners = shown["metadata"]["ownerReferences"].as_array();
    let owned = owners.is_some_and(|owners| owners.iter().any(|owner| owner["controller"] == true));
    let controllers = sample.on_parent(CONTROLLERS).map(Hashes::decode).unwrap_or_default();
    let updaters = ours(stored).get(UPDATERS).map(|text| Hashes::decode(text)).unwrap_or_default();
    let both = controllers.intersection(&updaters);
    owned && (if both.is_empty() { &controllers } else { &both }).contains(user(sample))
}

fn user(sample: &Sample) -> UserHash {
    let of = |field: &str| sample.request["userInfo"][field].as_str().unwrap();
    UserHash::of(of("username"), of("uid"))
}

proptest! {
    #![proptest_config(config())]

    /// The API server may call the webhook again with what it has patched.
    #[test]
    fn a_patch_applied_twice_equals_once(sample in sample()) {
        let first = sample.decide();
        if !first.patch.is_empty() {
            let mut again = sample.clone();
            again.request["object"] = sample.patched(&first);
            let second = again.decide();
            prop_assert!(second.patch.is_empty(), "{:?} after {:?}", second.patch, first.patch);
            prop_assert_eq!(second.verdict.is_allowed(), first.verdict.is_allowed());
            prop_assert_eq!(second.cause, first.cause);
            prop_assert_eq!(&second.trace, &first.trace);
            let told: BTreeSet<_> = first.warnings.iter().collect();
            prop_assert!(second.warnings.iter().all(|it| told.contains(it)), "{:?} / {told:?}", second.warnings);
        }
    }

    /// Denials change nothing, and what changes annotations changes nothing else.
    #[test]
    fn patches_touch_our_annotations_only(sample in sample()) {
        let decision = sample.decide();
        if denied(&decision) || !sample.request["object"].is_object() {
            prop_assert!(decision.patch.is_empty());
        } else {
            let (mut before, mut after) = (sample.request["object"].clone(), sample.patched(&decision));
            for object in [&mut before, &mut after] {
                let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { continue };
                let annotations = metadata.remove("annotations").unwrap_or_default();
                metadata.insert("annotations".to_owned(), others(&annotations));
            }
            prop_assert_eq!(before, after);
        }
    }

    #[test]
    fn no_bytes_panic(sample in sample(), bytes in vec(any::<u8>(), 0..200)) {
        let _ = sample.decide_text(&bytes);
    }

    #[test]
    fn no_json_panics(mut sample in sample(), value in any_json(), edits in vec((any::<Index>(), any_json()), 0..4)) {
        let _ = sample.decide_text(value.to_string().as_bytes());
        edits.iter().for_each(|(place, value)| replace(&mut sample.request, place, value));
        for (place, value) in &edits {
            if let Kin::Found { object, .. } = &mut sample.parent {
                replace(object, place, value);
            }
            if let Some(Ok(object)) = &mut sample.scaled {
                replace(object, place, value);
            }
        }
        let decision = sample.decide_text(&sample.text());
        let _ = format!("{decision:?}");
    }

    #[test]
    fn no_recorded_review_panics(
        mut sample in sample(), line in any::<Index>(), other in any::<Index>(), mutations in vec(mutation(), 1..4),
    ) {
        let lines = recorded();
        let mut text = lines[line.index(lines.len())].as_bytes().to_vec();
        let above: Value = serde_json::from_str(&lines[other.index(lines.len())]).unwrap();
        let mut above = above["request"]["object"].clone();
        for mutation in &mutations {
            mutation.apply(&mut text);
            let mut object = above.to_string().into_bytes();
            mutation.apply(&mut object);
            above = serde_json::from_slice(&object).unwrap_or(above);
        }
        sample.scaled = sample.scaled.map(|_| Ok(above.clone()));
        if let Kin::Found { object, .. } = &mut sample.parent {
            *object = above;
        }
        if let Some(decision) = sample.decide_text(&text) {
            let _ = format!("{:?} {decision:?}", decision.patch.operations());
        }
    }

    #[test]
    fn a_matching_rejection_is_never_beaten(
        mut sample in sample(), bound in any::<bool>(), approvals in texts::approvals(), sure in any::<bool>(),
    ) {
        let mut rejection = json!({"apiVersion": "*", "kind": "*", "name": "*", "reason": "no"});
        if let (true, Kin::Found { object, .. }) = (bound, &sample.parent) {
            rejection["generation"] = object["metadata"]["generation"].clone();
        }
        sample.set_on_parent(REJECTIONS, Some(&json!([rejection]).to_string()));
        let approvals = if sure {
            json!([{"apiVersion": "*", "kind": "*", "name": "*", "mode": "always"}]).to_string()
        } else {
            approvals
        };
        sample.set_on_parent(APPROVALS, Some(&approvals));
        let decision = sample.decide();
        if decision.cause == Some(Cause::Drift) {
            prop_assert!(is_order(&decision));
            prop_assert!(denied(&decision));
            prop_assert!(decision.patch.is_empty() && decision.trace.is_none());
        }
    }

    #[test]
    fn log_mode_never_denies_but_by_order(sample in sample()) {
        let decision = sample.decide();
        if decision.mode == Some(Mode::Log) {
            prop_assert!(!denied(&decision) || is_order(&decision), "{:?}", decision.verdict);
        }
        let sample = sample.without_enforcement();
        let decision = sample.decide();
        prop_assert_ne!(decision.mode, Some(Mode::Enforce));
        let by_rule = matches!(decision.resolution, Resolution::Denied(_));
        let of_itself = &sample.request["oldObject"]["metadata"]["annotations"];
        let is_ordered = |key: &&str| of_itself[*key].is_string() || sample.on_parent(key).is_some();
        let ordered = by_rule || [FREEZE, REJECTIONS].iter().any(is_ordered);
        prop_assert!(!denied(&decision) || ordered && is_order(&decision), "{:?}", decision.verdict);
    }

    #[test]
    fn system_annotations_in_a_request_change_nothing(
        sample in sample(), removed in any::<bool>(), annotations in vec(texts::system(), 0..5),
    ) {
        let mut forged = sample.clone();
        if removed {
            for key in kausality_api::annotation::SYSTEM {
                forged.set(key, None);
            }
        }
        for (key, value) in &annotations {
            forged.set(key, Some(value));
        }
        let (honest, other) = (sample.decide(), forged.decide());
        if matches!(honest.class, Class::Own | Class::Ignored) || !sample.request["subResource"].eq("") {
            // Not an object that Kausality keeps annotations on.
            prop_assert_eq!(honest.verdict.as_str(), other.verdict.as_str());
            prop_assert_eq!(honest.cause, other.cause);
        } else if honest.class == Class::Metadata {
            // What a controller takes off stays off, but nothing else comes in its place.
            prop_assert_eq!(honest.verdict.as_str(), other.verdict.as_str());
            let (before, after) = (sample.ours("oldObject"), ours(&forged.patched(&other)));
            for key in SYSTEM.into_iter().filter(|key| *key != WRITERS) {
                prop_assert!(after.get(key).is_none_or(|value| before.get(key) == Some(value)), "{key}");
            }
        } else {
            prop_assert_eq!(sample.outcome(&honest), forged.outcome(&other));
        }
        if honest.class == Class::Status {
            prop_assert_eq!(ours(&sample.patched(&honest)), ours(&forged.patched(&other)));
        }
        prop_assert_eq!(honest.trace, other.trace);
    }

    /// What a controller writes in the place of people means nothing, as soon as field managers tell that it did.
    #[test]
    fn a_controller_grants_itself_nothing(
        sample in sample(), wiped in any::<bool>(), annotations in vec(texts::user(), 0..5),
    ) {
        let mut greedy = sample.clone();
        for key in ours(&sample.request["object"]).keys().filter(|key| wiped && owner(key) == Owner::User) {
            greedy.set(key, None);
        }
        for (key, value) in &annotations {
            greedy.set(key, Some(value));
        }
        let own = sample.ours("oldObject").get(CONTROLLERS).map(|text| Hashes::decode(text));
        let bound = is_controller(&sample) || own.is_some_and(|controllers| controllers.contains(user(&sample)));
        let decision = greedy.decide();
        if bound
            && matches!(decision.class, Class::Create | Class::Update | Class::Metadata)
            && !denied(&decision)
            && sample.request["subResource"] == ""
        {
            grants_nothing(&greedy, &decision)?;
        }
    }

    #[test]
    fn traces_stay_bounded_and_keep_their_origin(
        mut sample in sample(), trace in texts::trace(), labels in vec(texts::trace_label(), 0..8),
        odd in proptest::option::of(texts::hostile()),
    ) {
        sample.set_on_parent(kausality_api::annotation::TRACE, Some(&trace));
        for (key, value) in &labels {
            sample.set(key, Some(value));
        }
        if let Some(odd) = odd.filter(|odd| !odd.is_empty()) {
            sample.request["uid"] = json!(odd);
            sample.request["userInfo"]["username"] = json!(odd);
            for field in ["apiVersion", "kind"] {
                sample.request["object"][field] = json!(odd);
            }
            for object in ["object", "oldObject"] {
                sample.request[object]["metadata"]["name"] = json!(odd);
            }
        }
        let decision = sample.decide();
        let Some(left) = &decision.trace else { return Ok(()) };
        let by_reconciler = decision.explanation.steps().iter().any(|step| step.rule == Rule::Reconciler);
        if decision.class == Class::Update && by_reconciler {
            // The object's own controller asks for nothing: the trace stays as it is.
            let stored = sample.ours("oldObject").get(TRACE).and_then(|text| Trace::decode(text).ok());
            prop_assert_eq!(Some(left), stored.as_ref());
            return Ok(());
        }
        prop_assert!(left.encode().len() <= MAX_BYTES, "{} bytes", left.encode().len());
        prop_assert!((1..=MAX_HOPS).contains(&left.hops().len()));
        prop_assert_eq!(Trace::decode(&left.encode()), Ok(left.clone()));
        let last = left.hops().last().unwrap();
        prop_assert!(sample.request["uid"].as_str().unwrap().starts_with(
            last.request_uid.as_deref().unwrap().trim_end_matches('…')
        ));
        prop_assert_eq!(last.drift, decision.resolution == Resolution::Logged);
        let above = Trace::decode(&trace).ok().filter(|above| !above.hops().is_empty());
        match (decision.cause, decision.phase, above) {
            (Some(Cause::Origin) | None, ..) => prop_assert_eq!(left.hops().len(), 1),
            (Some(_), Some(_), Some(above)) if decision.resolution != Resolution::Logged => {
                prop_assert!(left.hops().len() >= 2);
                let (kept, origin) = (&left.hops()[0], &above.hops()[0]);
                prop_assert_eq!(kept.timestamp, origin.timestamp);
                prop_assert_eq!(kept.generation, origin.generation);
                prop_assert!(origin.name.starts_with(kept.name.trim_end_matches('…')));
            }
            _ => {}
        }
    }

    #[test]
    fn missing_facts_never_deny_in_log_mode(sample in sample(), gone in any::<bool>(), why in texts::hostile()) {
        let sample = sample.without_enforcement();
        let unread = |parent, scaled| Sample { parent, scaled, namespace: None, ..sample.clone() };
        let parent = if gone { Kin::Gone } else { Kin::Unreadable(why.clone()) };
        for sample in [
            unread(parent, sample.scaled.clone()),
            unread(Kin::None, None),
            unread(Kin::None, Some(Err(why))),
        ] {
            let decision = sample.decide();
            let ordered = matches!(decision.resolution, Resolution::Frozen | Resolution::Rejected);
            prop_assert!(!denied(&decision) || ordered, "{:?}", decision.verdict);
        }
        let decision = unread(sample.parent.clone(), sample.scaled.clone()).decide();
        prop_assert!(!denied(&decision) || is_order(&decision));
    }

    #[test]
    fn a_dry_run_gets_the_same_answer_and_no_effect(mut sample in sample()) {
        sample.request["dryRun"] = json!(false);
        let real = sample.decide();
        sample.request["dryRun"] = json!(true);
        let trial = sample.decide();
        prop_assert!(trial.effects.is_empty());
        prop_assert_eq!(&trial.verdict, &real.verdict);
        prop_assert_eq!(trial.cause, real.cause);
        prop_assert_eq!(&trial.resolution, &real.resolution);
        prop_assert_eq!(&trial.patch, &real.patch);
        prop_assert_eq!(&trial.warnings, &real.warnings);
        prop_assert_eq!(&trial.audit, &real.audit);
        prop_assert_eq!(&trial.trace, &real.trace);
    }

    #[test]
    fn what_is_bound_to_conflict_has_no_effect(mut sample in sample()) {
        if sample.request["object"].is_object() && sample.request["oldObject"].is_object() {
            sample.request["dryRun"] = json!(false);
            sample.request["object"]["metadata"]["resourceVersion"] = json!("50");
            let before = sample.decide();
            sample.request["object"]["metadata"]["resourceVersion"] = json!("49");
            let decision = sample.decide();
            prop_assert!(decision.effects.is_empty());
            prop_assert_eq!(decision.verdict, before.verdict);
            prop_assert_eq!(decision.patch, before.patch);
        }
    }

    #[test]
    fn malformed_orders_never_weaken(
        sample in sample(), approvals in texts::bad_approvals(), rejections in texts::bad_rejections(),
        freeze in texts::hostile(),
    ) {
        let replaced = |key: &str, value: Option<&str>| {
            let mut sample = sample.clone();
            sample.set_on_parent(key, value);
            sample.decide()
        };
        let (absent, bad) = (replaced(APPROVALS, None), replaced(APPROVALS, Some(&approvals)));
        prop_assert_eq!(&bad.resolution, &absent.resolution);
        prop_assert_eq!(denied(&bad), denied(&absent));
        prop_assert!(!matches!(bad.resolution, Resolution::Approved(_)));

        let (absent, bad) = (replaced(REJECTIONS, None), replaced(REJECTIONS, Some(&rejections)));
        prop_assert!(!denied(&absent) || denied(&bad));
        let empty = serde_json::from_str::<Vec<Value>>(&rejections).is_ok_and(|entries| entries.is_empty());
        let forbidden = matches!(bad.resolution, Resolution::Frozen | Resolution::Denied(_));
        if bad.cause == Some(Cause::Drift) && !forbidden && !empty {
            prop_assert_eq!(&bad.resolution, &Resolution::Rejected);
            prop_assert!(denied(&bad) && !bad.warnings.is_empty());
        }

        let (absent, bad) = (replaced(FREEZE, None), replaced(FREEZE, Some(&freeze)));
        prop_assert!(!denied(&absent) || denied(&bad));
        if bad.phase.is_some() && bad.cause != Some(Cause::Cleanup) {
            prop_assert_eq!(&bad.resolution, &Resolution::Frozen);
        }
    }

    #[test]
    fn secrets_appear_nowhere(mut sample in sample(), data in "(data|stringData)") {
        let mut held = false;
        for object in ["object", "oldObject"] {
            let object = &mut sample.request[object];
            if object["kind"] == "Secret" {
                held = true;
                let values = object["data"].take();
                object.as_object_mut().unwrap().remove("data");
                object[data.as_str()] = values;
            }
        }
        if held {
            let decision = sample.decide();
            let shown = format!("{decision:#?}");
            prop_assert!(!shown.contains(objects::SECRET), "{}", shown);
            let patch = format!("{:?}", decision.patch.operations());
            prop_assert!(!patch.contains(objects::SECRET), "{}", patch);
        }
    }

    #[test]
    fn deciding_twice_gives_the_same(sample in sample()) {
        prop_assert_eq!(format!("{:#?}", sample.decide()), format!("{:#?}", sample.decide()));
    }

    #[test]
    fn every_decision_explains_itself(mut sample in sample(), why in proptest::option::of(texts::hostile())) {
        if let (Some(why), Kin::Unreadable(text)) = (why, &mut sample.parent) {
            *text = why;
        }
        let decision = sample.decide();
        let deciding: Vec<_> = decision.explanation.steps().iter().filter(|step| step.decided).collect();
        prop_assert_eq!(deciding.len(), 1, "{:#?}", decision.explanation);
        prop_assert_eq!(decision.explanation.deciding(), Some(deciding[0].rule));
        prop_assert_eq!(decision.audit.get("rule").map(String::as_str), Some(deciding[0].rule.as_str()));
        prop_assert_eq!(decision.audit.get("decision").map(String::as_str), Some(decision.verdict.as_str()));
        prop_assert!(decision.audit.keys().all(|key| !key.is_empty() && !key.contains('/')));
        prop_assert!(decision.audit.values().all(|value| value.len() <= MAX_BYTES));
        prop_assert!(decision.explanation.steps().iter().all(|step| !step.finding.is_empty()));
        if let Verdict::Deny(denial) = &decision.verdict {
            let known = [(403, "Forbidden"), (422, "Invalid"), (500, "InternalError")];
            prop_assert!(known.contains(&(denial.code, denial.reason)));
            prop_assert!(!denial.message.trim().is_empty());
            prop_assert!(denial.message.len() < MAX_MESSAGE, "{} bytes: {}", denial.message.len(), denial.message);
        }
        prop_assert!(decision.verdict != Verdict::Allow || decision.warnings.is_empty());
        prop_assert!(decision.verdict != Verdict::Warn || !decision.warnings.is_empty());
        let said: usize = decision.warnings.iter().map(String::len).sum();
        prop_assert!(said < 2 * MAX_MESSAGE, "{said} bytes of warnings");
    }
}

/// The worst that a hop can be: every text too long, and six bytes to a character.
#[test]
fn two_hostile_hops_fit_a_trace() {
    let odd = "\u{1}".repeat(1000);
    let labels: BTreeMap<_, _> = (10..30).map(|nth| (nth.to_string(), &odd)).collect();
    let hop = json!({
        "apiVersion": odd, "kind": odd, "name": odd, "uid": odd, "generation": i64::MIN, "user": odd,
        "timestamp": "2026-01-01T00:00:00Z", "requestUID": odd, "labels": labels,
        "approval": {"mode": "generation", "policy": odd, "by": odd, "reason": odd}, "drift": true,
    });
    let above = Trace::decode(&json!([hop, hop, hop]).to_string()).unwrap();
    let trace = above.clone().extended(above.hops()[0].clone());
    assert!(trace.encode().len() <= MAX_BYTES, "{} bytes", trace.encode().len());
    assert!(trace.hops().len() >= 2 && trace.hops().iter().all(|hop| !hop.labels.is_empty()));
}

fn is_order(decision: &Decision) -> bool {
    matches!(decision.resolution, Resolution::Frozen | Resolution::Rejected | Resolution::Denied(_))
}

/// Looks at the object that a controller's request leaves, with the managed fields that an API server would give it.
fn grants_nothing(sample: &Sample, decision: &Decision) -> Result<(), TestCaseError> {
    let (before, mut object) = (sample.ours("oldObject"), sample.patched(decision));
    let after = ours(&object);
    let fields = |new: bool| -> Value {
        let keys = after.iter().filter(|(key, value)| (before.get(*key) != Some(value)) == new);
        let keys: serde_json::Map<_, _> = keys.map(|(key, _)| (format!("f:{key}"), json!({}))).collect();
        json!({"f:annotations": keys})
    };
    object["metadata"]["managedFields"] = json!([
        {"manager": "kubectl-annotate", "operation": "Update", "fieldsV1": {"f:metadata": fields(false)}},
        {"manager": "operator", "operation": "Update", "fieldsV1": {"f:metadata": fields(true)}},
        {"manager": "operator", "operation": "Update", "subresource": "status",
            "fieldsV1": {"f:status": {"f:conditions": {}}}},
    ]);
    let seen = sample::summary(&object).unwrap();
    // An API server takes no other names.
    let possible = |key: &str| key.chars().all(|it| it.is_ascii_graphic() && it != '"' && it != '\\');
    for (key, value) in after.iter().filter(|(key, _)| owner(key) == Owner::User && possible(key)) {
        let counts = before.get(key) == Some(value);
        prop_assert_eq!(seen.annotation(key), counts.then_some(value.as_str()), "{}", key);
    }
    Ok(())
}

/// The annotations that are not ours, and whether there is such a map is no matter.
fn others(annotations: &Value) -> Value {
    let all = annotations.as_object().into_iter().flatten();
    all.filter(|(key, _)| owner(key) == Owner::Foreign)
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}
