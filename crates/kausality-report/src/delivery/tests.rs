use super::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn told(endpoint: &str, detected: Option<i64>, resolved: Option<i64>) -> Delivery {
    Delivery {
        endpoint: endpoint.to_owned(),
        detected: detected.map(at),
        resolved: resolved.map(at),
        error: None,
    }
}

const DETECTED: Next = Next::Tell(ReportPhase::Detected);
const RESOLVED: Next = Next::Tell(ReportPhase::Resolved);

#[test]
fn what_is_next() {
    struct Case {
        what: &'static str,
        resolved: Option<i64>,
        deliveries: Vec<Delivery>,
        snooze: Option<i64>,
        next: Next,
    }
    let case = |what, resolved, deliveries: &[Delivery], snooze, next| Case {
        what,
        resolved,
        deliveries: deliveries.to_vec(),
        snooze,
        next,
    };
    let (fresh, heard, done) =
        (told("a", None, None), told("a", Some(10), None), told("a", Some(10), Some(20)));
    let elsewhere = told("b", Some(10), Some(20));
    let silenced = told("a", None, Some(20));
    let cases = [
        case("a new one", None, &[], None, DETECTED),
        case("a new one that failed", None, std::slice::from_ref(&fresh), None, DETECTED),
        case("what others know does not count", None, std::slice::from_ref(&elsewhere), None, DETECTED),
        case("it is told once", None, std::slice::from_ref(&heard), None, Next::Nothing),
        case("it is over", Some(50), std::slice::from_ref(&heard), None, RESOLVED),
        case("it is over and unheard of: first things first", Some(50), &[], None, DETECTED),
        case("all is told", Some(50), std::slice::from_ref(&done), None, Next::Nothing),
        case("snoozed", None, &[], Some(101), Next::Wait(at(101))),
        case("snoozed until now", None, &[], Some(100), DETECTED),
        case("snoozed too late", None, std::slice::from_ref(&heard), Some(101), Next::Nothing),
        case("over while snoozed", Some(50), &[], Some(101), Next::Silence),
        case("over while snoozed, seen after it", Some(50), &[], Some(51), Next::Silence),
        case("over after it was snoozed", Some(50), &[], Some(50), DETECTED),
        case("silence is kept", Some(50), std::slice::from_ref(&silenced), None, Next::Nothing),
        case("who has heard hears the end", Some(50), std::slice::from_ref(&heard), Some(101), RESOLVED),
    ];
    for Case { what, resolved, deliveries, snooze, next: expected } in cases {
        let standing = Standing { resolved: resolved.map(at), deliveries };
        assert_eq!(next(&standing, "a", snooze.map(at), at(100)), expected, "{what}");
        let depends =
            next(&standing, "a", Some(Timestamp::MAX), at(100)) != next(&standing, "a", None, at(100));
        assert_eq!(depends_on_snooze(&standing, "a"), depends, "{what}");
    }
}

#[test]
fn told_both_in_order_until_nothing_is_left() {
    let mut standing = Standing { resolved: Some(at(50)), deliveries: Vec::new() };
    let mut heard = Vec::new();
    while let Next::Tell(phase) = next(&standing, "a", None, at(100)) {
        heard.push(phase);
        standing.deliveries = record(&standing.deliveries, &["a"], "a", &Record::Told(phase), at(100));
    }
    assert_eq!(heard, [ReportPhase::Detected, ReportPhase::Resolved]);
}

#[test]
fn records_change_one_endpoint_and_forget_those_that_are_gone() {
    let failed = Delivery { error: Some("no route".to_owned()), ..told("a", Some(1), None) };
    let before = [failed.clone(), told("b", Some(2), None), told("gone", Some(3), Some(4))];
    let after = |kind: &Record| record(&before, &["a", "b", "c"], "a", kind, at(9));
    assert_eq!(
        after(&Record::Told(ReportPhase::Resolved)),
        [told("a", Some(1), Some(9)), told("b", Some(2), None)],
        "and the error is history"
    );
    let worse = Delivery { error: Some("worse".to_owned()), ..failed };
    assert_eq!(after(&Record::Failed("worse".to_owned())), [worse, told("b", Some(2), None)]);
    let silent = record(&before, &["a", "b", "c"], "c", &Record::Silent, at(9));
    assert_eq!(silent.last(), Some(&told("c", None, Some(9))));
}
