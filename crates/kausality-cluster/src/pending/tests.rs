use kausality_api::annotation::{OBSERVED_GENERATION, PHASE, Suffix, TRACE};
use kausality_core::{review::Object, settle::Mark};

use super::*;

const HOUR: Duration = Duration::from_secs(3600);

fn id() -> ObjectId {
    let [api_version, kind, namespace, name] = ["v1", "A", "n", "a"].map(ToOwned::to_owned);
    ObjectId { api_version, kind, namespace, name }
}

fn annotations<const N: usize>(pairs: [(&str, Option<&str>); N]) -> Annotations {
    pairs.map(|(key, value)| (key.to_owned(), value.map(ToOwned::to_owned))).into()
}

/// Notes one annotation for the object "u", at a generation.
fn note(pending: &Pending, generation: i64, key: &str, value: Option<&str>) -> bool {
    let proof = Some(Proof::Status(reading(generation)));
    pending.note(&id(), "u", Some(generation), &annotations([(key, value)]), Until::Quiet, proof)
}

/// A status that has seen this generation.
fn reading(observed: i64) -> Reading {
    with_status(&format!(r#"{{"observedGeneration":{observed}}}"#)).status.clone()
}

#[track_caller]
fn check_waiting<const N: usize>(pending: &Pending, expected: [(&str, Option<&str>); N]) {
    let waiting = pending.get("u", Until::Quiet).map(|waiting| waiting.annotations.clone());
    assert_eq!(waiting.unwrap_or_default(), annotations(expected));
}

/// The name under which a fact is stored on an object that does not say what it is.
fn stored(fact: &str) -> String {
    Suffix::of("", "", "", "").key(fact)
}

fn text(generation: i64) -> String {
    let (settled, trace) = (stored(SETTLED), stored(TRACE));
    format!(
        r#"{{"metadata":{{"uid":"u","generation":{generation},"annotations":{{"{settled}":"stored","{trace}":"stored"}}}},"status":{{"observedGeneration":{generation}}}}}"#
    )
}

/// What the object "u" seems to carry at a generation: as known, and as reviewed.
#[track_caller]
fn check_seen(pending: &Pending, generation: i64, settled: Option<&str>, trace: Option<&str>) {
    let text = text(generation);
    let mut object = Object::parse(&text).unwrap();
    let summary = pending.over(Arc::new(Summary::of(&object)));
    assert_eq!((summary.annotation(SETTLED), summary.annotation(TRACE)), (settled, trace), "over");
    pending.dress(&mut object, true);
    let seen = &object.metadata.annotations;
    assert_eq!((seen.get(SETTLED), seen.get(TRACE)), (settled, trace), "dress");
}

/// Changes the one that waits for "u".
fn change(pending: &Pending, change: impl FnOnce(&mut Waiting)) {
    change(pending.lock().quiet("u").unwrap());
}

/// Lets it have waited for longer.
fn age(pending: &Pending, by: Duration) {
    let earlier = |instant: Instant| instant.checked_sub(by).unwrap();
    change(pending, |entry| (entry.first, entry.since) = (earlier(entry.first), earlier(entry.since)));
}

fn is_ripe(pending: &Pending, quiet: Duration, at_most: Duration) -> bool {
    pending.ripe(quiet, at_most).iter().any(|(uid, _)| uid == "u")
}

#[test]
fn only_the_first_note_of_a_sort_is_the_first() {
    let pending = Pending::default();
    let scaled =
        |uid: &str| pending.note(&id(), uid, Some(1), &annotations([(TRACE, None)]), Until::Scaled, None);
    assert!(note(&pending, 1, TRACE, Some("a")));
    assert!(!note(&pending, 1, TRACE, Some("b")));
    assert!(scaled("u"), "another sort");
    assert!(!scaled("u"));
    assert!(scaled("v"), "another object");
}

#[test]
fn a_later_value_replaces_an_earlier_one() {
    let pending = Pending::default();
    note(&pending, 1, TRACE, Some("a"));
    note(&pending, 1, TRACE, Some("b"));
    check_waiting(&pending, [(TRACE, Some("b"))]);
    note(&pending, 1, TRACE, None);
    check_waiting(&pending, [(TRACE, None)]);
}

/// That a manager wrote the status of an object, at this second.
fn write(manager: &str, second: u8) -> StatusWrite {
    let at = format!("2026-01-01T00:00:{second:02}Z").parse().unwrap();
    StatusWrite { manager: manager.to_owned(), at }
}

/// Somebody sends a status of the object "u", and is said to be its controller for that.
fn report(pending: &Pending, user: &str, manager: &str, second: u8) {
    pending.note(&id(), "u", Some(1), &annotations([]), Until::Quiet, Some(Proof::Status(reading(1))));
    let fact = Fact::Controller(UserHash::parse(user).unwrap());
    pending.claim("u", Claim { fact, shown_by: Evidence::Write(write(manager, second)) });
}

/// The controllers that seem to be recorded on the object "u", whose status these have written.
fn controllers(pending: &Pending, writes: &[StatusWrite]) -> String {
    let stored = stored(CONTROLLERS);
    let text = format!(r#"{{"metadata":{{"uid":"u","annotations":{{"{stored}":"zzzzz"}}}}}}"#);
    let mut summary = Summary::of(&Object::parse(&text).unwrap());
    summary.status_writes = writes.to_vec();
    pending.over(Arc::new(summary)).annotation(CONTROLLERS).unwrap().to_owned()
}

#[test]
fn who_is_said_to_have_written_a_status_counts_once_that_shows() {
    let pending = Pending::default();
    report(&pending, "aaaaa", "m", 5);
    report(&pending, "bbbbb", "n", 5);
    assert_eq!(controllers(&pending, &[]), "zzzzz");
    assert_eq!(controllers(&pending, &[write("m", 4), write("o", 9)]), "zzzzz", "before, and others");
    assert_eq!(controllers(&pending, &[write("m", 5)]), "zzzzz,aaaaa");
    report(&pending, "ccccc", "m", 59);
    report(&pending, "ccccc", "m", 7);
    assert_eq!(controllers(&pending, &[write("m", 7)]), "zzzzz,aaaaa,ccccc", "whatever was said before");
    pending.lock().quiet("u").unwrap().claims.pop();
    report(&pending, "aaaaa", "m", 8);
    assert_eq!(
        controllers(&pending, &[write("m", 6), write("n", 7)]),
        "zzzzz,aaaaa,bbbbb",
        "later is enough"
    );

    let waiting = pending.get("u", Until::Quiet).unwrap();
    let mut shown = Summary::of(&Object::parse("{}").unwrap());
    shown.status_writes = vec![write("m", 5)];
    pending.done("u", Until::Quiet, &waiting.holding(&shown, false), waiting.since);
    let left = pending.get("u", Until::Quiet).unwrap();
    assert_eq!(left.claims.len(), 1, "what does not show yet still waits");
    pending.done("u", Until::Quiet, &left.everything(), left.since);
    assert!(pending.get("u", Until::Quiet).is_none());
}

/// The trace that the object "u" seems to carry, which carries this one.
fn traced(pending: &Pending, trace: &str) -> String {
    let text = format!(r#"{{"metadata":{{"uid":"u","annotations":{{"{}":"{trace}"}}}}}}"#, stored(TRACE));
    pending.over(Arc::new(Summary::of(&Object::parse(&text).unwrap()))).annotation(TRACE).unwrap().to_owned()
}

#[test]
fn a_wrong_trace_is_mended_while_the_object_carries_it() {
    let pending = Pending::default();
    pending.mend(&id(), "u", "wrong".to_owned(), "right".to_owned());
    assert_eq!(traced(&pending, "wrong"), "right");
    assert_eq!(traced(&pending, "another"), "another", "somebody has changed the object since");
    report(&pending, "aaaaa", "m", 5);
    pending.mend(&id(), "u", "wrong too".to_owned(), "right too".to_owned());
    assert_eq!(traced(&pending, "wrong too"), "right too");
    assert_eq!(traced(&pending, "wrong"), "right", "whatever else waits");
    pending.mend(&id(), "u", "wrong".to_owned(), "right after all".to_owned());
    assert_eq!(traced(&pending, "wrong"), "right", "what it was given once is mended once");
}

#[test]
fn forged_claims_push_out_nobody() {
    let pending = Pending::default();
    for user in 0..2 * MAX_CLAIMS {
        report(&pending, &format!("{user:05}"), "invented", 5);
    }
    assert_eq!(pending.get("u", Until::Quiet).unwrap().claims.len(), MAX_CLAIMS);
    report(&pending, "aaaaa", "m", 5);
    assert_eq!(controllers(&pending, &[write("m", 5)]), "zzzzz,aaaaa");
}

/// A review's copy of an object proves nothing to others where anybody may have sent it.
#[test]
fn a_review_that_is_not_believed_proves_nothing_to_others() {
    for (believed, expected) in [(false, None), (true, Some("mark"))] {
        let pending = Pending::default();
        note(&pending, 1, SETTLED, Some("mark"));
        let text = r#"{"metadata":{"uid":"u","generation":1},"status":{"observedGeneration":1}}"#;
        let mut object = Object::parse(text).unwrap();
        pending.dress(&mut object, believed);
        assert_eq!(object.metadata.annotations.get(SETTLED), Some("mark"), "in itself it does");
        let others = pending.over(with_status(r#"{"observedGeneration":0}"#));
        assert_eq!(others.annotation(SETTLED), expected);
    }
}

#[test]
fn a_mark_waits_for_its_generation_only() {
    let pending = Pending::default();
    note(&pending, 1, SETTLED, Some("one"));
    note(&pending, 1, TRACE, Some("a"));
    check_waiting(&pending, [(SETTLED, Some("one")), (TRACE, Some("a"))]);
    note(&pending, 2, TRACE, Some("b"));
    check_waiting(&pending, [(TRACE, Some("b"))]);
    note(&pending, 2, SETTLED, Some("two"));
    check_waiting(&pending, [(SETTLED, Some("two")), (TRACE, Some("b"))]);
    note(&pending, 2, TRACE, Some("c"));
    check_waiting(&pending, [(SETTLED, Some("two")), (TRACE, Some("c"))]);
    check_seen(&pending, 2, Some("two"), Some("c"));
}

#[test]
fn a_full_house_takes_nobody_new_but_more_of_those_inside() {
    let pending = Pending::default();
    let one = annotations([(TRACE, Some("a"))]);
    note(&pending, 1, TRACE, Some("a"));
    for number in 1..MAX_WAITING {
        assert!(pending.note(&id(), &number.to_string(), None, &one, Until::Quiet, None));
    }
    assert!(!pending.note(&id(), "late", None, &one, Until::Quiet, None));
    assert!(pending.get("late", Until::Quiet).is_none());
    note(&pending, 1, TRACE, Some("b"));
    check_waiting(&pending, [(TRACE, Some("b"))]);
}

#[test]
fn objects_are_seen_as_they_will_be() {
    let pending = Pending::default();
    check_seen(&pending, 1, Some("stored"), Some("stored"));
    note(&pending, 1, SETTLED, Some("mark"));
    check_seen(&pending, 1, Some("mark"), Some("stored"));
    note(&pending, 1, TRACE, None);
    check_seen(&pending, 1, Some("mark"), None);
    pending.note(&id(), "v", Some(1), &annotations([(SETTLED, None)]), Until::Quiet, None);
    check_seen(&pending, 1, Some("mark"), None);
}

/// The object "u", scaled to so many, with a trace.
fn sized(generation: i64, replicas: u64, trace: &str) -> Arc<Summary> {
    let (settled, traced) = (stored(SETTLED), stored(TRACE));
    let text = format!(
        r#"{{"metadata":{{"uid":"u","generation":{generation},"annotations":{{"{settled}":"mark","{traced}":"{trace}"}}}},
            "spec":{{"replicas":{replicas}}}}}"#
    );
    Arc::new(Summary::of(&Object::parse(&text).unwrap()))
}

/// Notes a scale of the object as it is, which leaves a trace.
fn scale(pending: &Pending, before: &Arc<Summary>, trace: &str) {
    let annotations = annotations([(SETTLED, None), (TRACE, Some(trace))]);
    let before = pending.over(before.clone());
    let proof = Some(Proof::of_scale(&before));
    pending.note(&id(), "u", before.generation, &annotations, Until::Scaled, proof);
}

#[track_caller]
fn check_scaled(pending: &Pending, seen: Arc<Summary>, settled: Option<&str>, trace: &str) {
    let over = pending.over(seen);
    assert_eq!((over.annotation(SETTLED), over.annotation(TRACE)), (settled, Some(trace)));
}

#[test]
fn a_scale_that_never_comes_to_be_leaves_the_mark() {
    let pending = Pending::default();
    scale(&pending, &sized(1, 1, "alice"), "bob");
    check_scaled(&pending, sized(1, 1, "alice"), Some("mark"), "alice");
    check_scaled(&pending, sized(2, 1, "alice"), Some("mark"), "alice"); // An annotation has bumped the generation.
    check_scaled(&pending, sized(2, 3, "carol"), Some("mark"), "carol"); // Somebody else has changed it.
    check_scaled(&pending, sized(2, 3, "alice"), None, "bob");
}

#[test]
fn a_scale_leaves_the_mark_of_an_object_that_has_arrived_since() {
    let pending = Pending::default();
    scale(&pending, &sized(1, 1, "alice"), "bob");
    let mut seen = Summary::clone(&sized(2, 3, "alice"));
    assert_eq!(pending.over(Arc::new(seen.clone())).annotation(SETTLED), None);
    seen.status = reading(2);
    assert_eq!(pending.over(Arc::new(seen)).annotation(SETTLED), Some("mark"));
}

#[test]
fn a_scale_on_top_of_another_that_is_not_recorded_yet_is_seen() {
    let pending = Pending::default();
    scale(&pending, &sized(1, 1, "alice"), "bob");
    scale(&pending, &sized(2, 3, "alice"), "carol");
    check_scaled(&pending, sized(3, 1, "alice"), None, "carol"); // The first was never recorded,
    check_scaled(&pending, sized(3, 1, "bob"), None, "carol"); // or was.
}

/// Notes a scale of the object as it is by its own controller, which takes the mark along.
fn scale_of_its_own(pending: &Pending, before: &Arc<Summary>) {
    let mark = Mark::new(before.intent, "2026-01-01T00:00:00Z".parse().unwrap()).to_string();
    let annotations = annotations([(SETTLED, Some(mark.as_str()))]);
    let proof = Some(Proof::of_scale(before));
    pending.note(&id(), "u", before.generation, &annotations, Until::Scaled, proof);
}

#[test]
fn the_mark_of_an_object_that_its_own_controller_scales_goes_along_with_the_intent() {
    let pending = Pending::default();
    scale_of_its_own(&pending, &sized(1, 1, "alice"));
    check_scaled(&pending, sized(1, 1, "alice"), Some("mark"), "alice");
    let scaled = sized(2, 3, "alice");
    let over = pending.over(scaled.clone());
    let mark = over.annotation(SETTLED).and_then(Mark::parse).unwrap();
    assert_eq!((mark.intent, mark.since), (scaled.intent, "2026-01-01T00:00:00Z".parse().ok()));
    assert_eq!(over.annotation(TRACE), Some("alice"));
}

#[test]
fn a_controller_does_not_take_along_the_mark_that_somebody_takes_off() {
    let pending = Pending::default();
    scale(&pending, &sized(1, 1, "alice"), "bob");
    scale_of_its_own(&pending, &sized(1, 1, "alice"));
    check_scaled(&pending, sized(2, 3, "alice"), None, "bob");
}

#[test]
fn nothing_is_laid_over_an_object_that_nothing_waits_for() {
    let pending = Pending::default();
    let text = text(1);
    let summary = Arc::new(Summary::of(&Object::parse(&text).unwrap()));
    assert!(Arc::ptr_eq(&summary, &pending.over(summary.clone())), "not even a copy is made");
}

#[test]
fn a_mark_is_seen_at_its_generation() {
    let pending = Pending::default();
    note(&pending, 1, SETTLED, Some("mark"));
    note(&pending, 1, TRACE, Some("waiting"));
    check_seen(&pending, 1, Some("mark"), Some("waiting"));
    check_seen(&pending, 2, Some("stored"), Some("waiting"));
}

#[test]
fn what_is_quiet_is_ripe_and_so_is_what_never_will_be() {
    let pending = Pending::default();
    assert!(!is_ripe(&pending, Duration::ZERO, Duration::ZERO));
    note(&pending, 1, TRACE, Some("a"));
    assert!(!is_ripe(&pending, HOUR, 2 * HOUR));
    age(&pending, HOUR);
    assert!(is_ripe(&pending, HOUR, 2 * HOUR), "quiet for an hour");
    note(&pending, 1, TRACE, Some("b"));
    assert!(!is_ripe(&pending, HOUR, 2 * HOUR), "not quiet any more");
    age(&pending, HOUR / 2);
    assert!(!is_ripe(&pending, HOUR, 2 * HOUR));
    assert!(is_ripe(&pending, HOUR, HOUR), "it has waited for an hour and a half");
}

#[test]
fn a_scale_is_never_ripe() {
    let pending = Pending::default();
    pending.note(&id(), "u", Some(1), &annotations([(TRACE, None)]), Until::Scaled, None);
    assert!(!is_ripe(&pending, Duration::ZERO, Duration::ZERO));
    pending.postpone("u");
    assert!(pending.get("u", Until::Scaled).unwrap().rest_until.is_none());
}

#[test]
fn what_failed_rests_ever_longer_up_to_a_bound() {
    let pending = Pending::default();
    note(&pending, 1, TRACE, Some("a"));
    let fail = || {
        pending.postpone("u");
        let rest_until = pending.get("u", Until::Quiet).unwrap().rest_until.unwrap();
        rest_until.saturating_duration_since(Instant::now())
    };
    let mut expected = PAUSES.0;
    for failure in 1..=40 {
        let pause = fail();
        assert!(pause <= expected && pause > expected / 2, "failure {failure}: {pause:?}, not {expected:?}");
        expected = (expected * 2).min(PAUSES.1);
    }
    assert_eq!(expected, PAUSES.1);
    assert!(!is_ripe(&pending, Duration::ZERO, Duration::ZERO), "it rests");
    note(&pending, 1, TRACE, Some("b"));
    assert!(!is_ripe(&pending, Duration::ZERO, Duration::ZERO), "more of it does not wake it");
    change(&pending, |entry| entry.rest_until = Some(Instant::now()));
    assert!(is_ripe(&pending, Duration::ZERO, Duration::ZERO), "it has rested");
}

#[test]
fn what_was_written_goes_and_what_came_meanwhile_stays() {
    let pending = Pending::default();
    note(&pending, 1, TRACE, Some("a"));
    note(&pending, 1, SETTLED, None);
    pending.postpone("u");
    age(&pending, HOUR);
    let written = pending.get("u", Until::Quiet).unwrap().everything();
    note(&pending, 1, TRACE, Some("b"));
    pending.note(&id(), "u", Some(1), &annotations([(TRACE, Some("a"))]), Until::Scaled, None);

    pending.done("u", Until::Quiet, &written, pending.get("u", Until::Quiet).unwrap().since);
    check_waiting(&pending, [(TRACE, Some("b"))]);
    let left = pending.get("u", Until::Quiet).unwrap();
    assert_eq!((left.failures, left.rest_until), (0, None), "what stays begins anew");
    assert!(left.first.elapsed() < HOUR, "also its time");
    assert!(pending.get("u", Until::Scaled).is_some(), "another sort");

    pending.done("u", Until::Quiet, &left.everything(), pending.get("u", Until::Quiet).unwrap().since);
    assert!(pending.get("u", Until::Quiet).is_none());
    assert!(note(&pending, 1, TRACE, Some("c")), "the next note is the first");
}

/// The object "u" at generation 1, with the status that is stored.
fn with_status(status: &str) -> Arc<Summary> {
    let text = format!(r#"{{"metadata":{{"uid":"u","generation":1}},"status":{status}}}"#);
    Arc::new(Summary::of(&Object::parse(&text).unwrap()))
}

#[test]
fn a_mark_holds_once_the_status_that_it_speaks_of_has_been_seen() {
    let pending = Pending::default();
    note(&pending, 1, SETTLED, Some("mark"));
    let mark = |status: &str| pending.over(with_status(status)).annotation(SETTLED).map(ToOwned::to_owned);
    let (busy, done) = (r#"{"observedGeneration":0}"#, r#"{"observedGeneration":1}"#);
    assert_eq!(mark(busy), None, "the status that was reviewed may never have been stored");
    assert_eq!(mark(done).as_deref(), Some("mark"));
    assert_eq!(mark(busy).as_deref(), Some("mark"), "however its status flaps afterwards");
    note(&pending, 2, SETTLED, Some("two"));
    assert_eq!(mark(done), None, "a change of intent came between");
    note(&pending, 1, SETTLED, Some("late"));
    check_waiting(&pending, [(SETTLED, Some("two"))]);
}

#[test]
fn what_a_status_showed_is_not_seen_before_the_status_is() {
    let pending = Pending::default();
    note(&pending, 1, OBSERVED_GENERATION, Some("1"));
    note(&pending, 1, PHASE, Some("Initialized"));
    let seen = |status: &str| {
        let over = pending.over(with_status(status));
        [OBSERVED_GENERATION, PHASE].map(|key| over.annotation(key).is_some())
    };
    assert_eq!(seen(r#"{"observedGeneration":0}"#), [false, false]);
    assert_eq!(seen(r#"{"observedGeneration":1}"#), [true, true]);
}

#[test]
fn what_came_while_it_was_written_stays() {
    let pending = Pending::default();
    note(&pending, 1, TRACE, Some("a"));
    let before = pending.get("u", Until::Quiet).unwrap();
    age(&pending, HOUR);
    pending.done("u", Until::Quiet, &before.everything(), before.since);
    check_waiting(&pending, [(TRACE, Some("a"))]);
    let now = pending.get("u", Until::Quiet).unwrap();
    pending.done("u", Until::Quiet, &now.everything(), now.since);
    check_waiting(&pending, []);
}
