use kausality_api::report::ReportPhase;

use super::*;

fn key(name: &str) -> Key {
    Key { namespace: "ns".to_owned(), name: name.to_owned() }
}

fn failure(about: About, patience: Patience) -> Landing {
    let failure = Failure { about, patience, asked: None, text: "no".to_owned() };
    Landing::Failed { failure, complained: true }
}

fn unreachable() -> Landing {
    failure(About::Endpoint, Patience::Growing)
}

/// A queue with these drifts in it.
fn queue(names: &[&str], now: Instant) -> Queue {
    let mut queue = Queue::default();
    for name in names {
        queue.want(&key(name), now);
    }
    queue
}

/// The most that a pause can be: the jitter takes all of it.
fn whole(millis: u64) -> u64 {
    millis
}

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn at_most_eight_are_under_way_and_each_drift_once() {
    let now = Instant::now();
    let names: Vec<String> = (0..10).map(|name| name.to_string()).collect();
    let mut queue = queue(&names.iter().map(String::as_str).collect::<Vec<_>>(), now);
    let mut flights: Vec<Flight> = std::iter::from_fn(|| queue.take(now)).collect();
    assert_eq!((flights.len(), queue.pending()), (AT_ONCE, 10));
    assert_eq!(queue.next_due(), None, "a landing will wake us");
    queue.want(&flights[0].key, now);
    queue.land(flights.remove(1), Landing::Told { more: false }, now, 0);
    let next = queue.take(now).unwrap();
    assert!(flights.iter().all(|flight| flight.key != next.key), "not again while it is under way");
    assert_eq!(queue.pending(), 9);
}

#[test]
fn what_changes_on_the_way_is_looked_at_again() {
    let now = Instant::now();
    let snoozed = Landing::Snoozed(now + SECOND);
    for landing in [Landing::Idle, Landing::Told { more: false }, snoozed] {
        let mut queue = queue(&["a"], now);
        let flight = queue.take(now).unwrap();
        queue.want(&key("a"), now);
        queue.land(flight, landing, now, 0);
        assert_eq!(queue.take(now).unwrap().key, key("a"));
    }
    let mut queue = queue(&["a"], now);
    let flight = queue.take(now).unwrap();
    queue.land(flight, Landing::Told { more: true }, now, 0);
    let flight = queue.take(now).unwrap();
    queue.land(flight, Landing::Told { more: false }, now, 0);
    assert!(queue.take(now).is_none());
    assert_eq!((queue.pending(), queue.next_due()), (0, None));
}

#[test]
fn a_report_that_is_refused_waits_and_others_do_not() {
    let now = Instant::now();
    let mut queue = queue(&["a", "b"], now);
    let flight = queue.take(now).unwrap();
    queue.land(flight, failure(About::Report, Patience::Longest), now, 0);
    let other = queue.take(now).unwrap();
    assert_eq!(other.key, key("b"));
    queue.land(other, Landing::Told { more: false }, now, 0);
    let again = now + backoff::LONGEST / 2;
    assert_eq!(queue.next_due(), Some(again));
    queue.want(&key("a"), now);
    assert!(queue.take(again - SECOND).is_none(), "a change of the Drift is no reason to try sooner");
    assert_eq!(queue.take(again).unwrap().key, key("a"));
}

#[test]
fn an_endpoint_that_is_down_is_tried_by_one_at_a_time() {
    let now = Instant::now();
    let mut queue = queue(&["a", "b", "c"], now);
    let flights: Vec<Flight> = std::iter::from_fn(|| queue.take(now)).collect();
    for flight in flights {
        queue.land(flight, unreachable(), now, whole(1000));
    }
    assert!(queue.take(now + SECOND / 2).is_none());
    let later = now + SECOND;
    assert_eq!(queue.next_due(), Some(later), "three that failed together count as one failure");
    let probe = queue.take(later).unwrap();
    assert!(queue.take(later).is_none());
    queue.land(probe, unreachable(), later, whole(2000));
    assert!(queue.take(later + SECOND).is_none(), "the second pause is longer");
    let probe = queue.take(later + 2 * SECOND).unwrap();
    queue.land(probe, Landing::Told { more: false }, later + 2 * SECOND, 0);
    assert_eq!(std::iter::from_fn(|| queue.take(later + 2 * SECOND)).count(), 2, "it is back");
}

#[test]
fn one_that_answers_is_not_down() {
    let now = Instant::now();
    let mut queue = queue(&["a", "b"], now);
    let flight = queue.take(now).unwrap();
    queue.land(flight, unreachable(), now, whole(1000));
    let probe = queue.take(now + SECOND).unwrap();
    queue.land(probe, failure(About::Report, Patience::Growing), now + SECOND, 0);
    assert_eq!(std::iter::from_fn(|| queue.take(now + SECOND)).count(), 2);
}

#[test]
fn what_was_told_and_not_recorded_is_only_recorded() {
    let now = Instant::now();
    let mut queue = queue(&["a"], now);
    let owed = Owed { uid: Some("u".to_owned()), record: Record::Told(ReportPhase::Detected) };
    let flight = queue.take(now).unwrap();
    queue.land(flight, Landing::Unrecorded(owed.clone()), now, 0);
    queue.forget(&key("a"));
    let flight = queue.take(now).unwrap();
    assert_eq!(flight.owed.as_ref(), Some(&owed));
    queue.land(flight, Landing::Stuck, now, 0);
    assert_eq!(queue.take(now).unwrap().owed, Some(owed), "and not lost if the cluster is away");
}

#[test]
fn snoozed_ones_are_not_pending() {
    let now = Instant::now();
    let mut queue = queue(&["a"], now);
    let flight = queue.take(now).unwrap();
    queue.land(flight, Landing::Snoozed(now + SECOND), now, 0);
    assert_eq!((queue.pending(), queue.next_due()), (0, Some(now + SECOND)));
    queue.want(&key("a"), now);
    let flight = queue.take(now).expect("a change may be its end");
    queue.land(flight, Landing::Snoozed(now + SECOND), now, 0);
    let flight = queue.take(now + SECOND).unwrap();
    queue.land(flight, Landing::Told { more: true }, now + SECOND, 0);
    assert_eq!(queue.pending(), 1);
    queue.forget(&key("a"));
    assert_eq!((queue.pending(), queue.next_due()), (0, None));
}

#[test]
fn failures_are_written_down_every_five_minutes() {
    let mut now = Instant::now();
    let mut queue = queue(&["a"], now);
    let mut written = Vec::new();
    for _ in 0..5 {
        let flight = queue.take(now).unwrap();
        written.push(flight.may_complain);
        let Landing::Failed { failure, .. } = failure(About::Report, Patience::Longest) else { panic!() };
        let complained = flight.may_complain;
        queue.land(flight, Landing::Failed { failure, complained }, now, 0);
        now += backoff::LONGEST / 2;
    }
    assert_eq!(written, [true, false, true, false, true]);
}

#[test]
fn a_cluster_that_is_away_is_soon_asked_again() {
    let mut now = Instant::now();
    let mut queue = queue(&["a"], now);
    for _ in 0..12 {
        let flight = queue.take(now).unwrap();
        queue.land(flight, Landing::Stuck, now, whole(300_000));
        let due = queue.next_due().unwrap();
        assert!(due <= now + CLUSTER, "{:?}", due - now);
        now = due;
    }
    assert!(queue.gate.failures == 0, "that is no fault of the endpoint");
}
