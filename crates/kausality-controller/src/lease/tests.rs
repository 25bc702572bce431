use super::*;

const TERMS: Terms = Terms {
    duration: Duration::from_secs(15),
    deadline: Duration::from_secs(10),
    pause: Duration::from_secs(2),
};

fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn lease(holder: &str, version: &str) -> Lease {
    Lease { holder: holder.to_owned(), duration: at(15), version: version.to_owned() }
}

/// What happened at which second, and what is to be done at another.
enum Event {
    Saw(Option<Lease>),
    Won(Lease),
    SteppedDown,
}
use Event::{Saw, SteppedDown, Won};

#[track_caller]
fn check(events: Vec<(u64, Event)>, now: u64, expected: Action) {
    let mut view = View::default();
    for (when, event) in events {
        match event {
            Saw(lease) => view.see(at(when), lease),
            Won(lease) => view.win(at(when), at(when), lease),
            SteppedDown => view.step_down(),
        }
    }
    assert_eq!(step(at(now), &view, "me", &TERMS), expected);
}

#[test]
fn a_free_lease_is_taken() {
    check(vec![], 0, Action::Take);
    check(vec![(0, Saw(None))], 0, Action::Take);
    check(vec![(0, Saw(Some(lease("", "1"))))], 0, Action::Take);
    // Released by its holder, long before its time.
    check(vec![(0, Saw(Some(lease("you", "1")))), (2, Saw(Some(lease("", "2"))))], 2, Action::Take);
    check(vec![(0, Saw(Some(lease("you", "1")))), (2, Saw(None))], 2, Action::Take);
}

#[test]
fn anothers_lease_is_left_alone_until_it_has_not_changed_for_its_duration() {
    let seen = || vec![(100, Saw(Some(lease("you", "1")))), (107, Saw(Some(lease("you", "1"))))];
    check(seen(), 107, Action::Wait(at(2)));
    check(seen(), 114, Action::Wait(at(1)));
    check(seen(), 115, Action::Take);
    let renewed = || vec![(100, Saw(Some(lease("you", "1")))), (107, Saw(Some(lease("you", "2"))))];
    check(renewed(), 115, Action::Wait(at(2)));
    check(renewed(), 122, Action::Take);
}

#[test]
fn a_leader_renews_and_gives_up_before_anybody_else_may_begin() {
    let won = || vec![(50, Won(lease("me", "1")))];
    check(won(), 51, Action::Wait(at(1)));
    check(won(), 52, Action::Renew);
    check(won(), 59, Action::Renew);
    check(won(), 60, Action::StepDown);
    check(vec![(50, Won(lease("me", "1"))), (58, Won(lease("me", "2")))], 61, Action::Renew);
    // The other one has seen the last renewal at 50 at the earliest, and waits until 65.
    assert!(TERMS.deadline < TERMS.duration);
}

#[test]
fn a_leader_whose_lease_is_anothers_is_none() {
    let taken = || vec![(50, Won(lease("me", "1"))), (51, Saw(Some(lease("you", "2"))))];
    check(taken(), 51, Action::StepDown);
    check(vec![(50, Won(lease("me", "1"))), (51, Saw(None))], 51, Action::StepDown);
    let after = [taken(), vec![(51, SteppedDown)]].into_iter().flatten().collect();
    check(after, 52, Action::Wait(at(2)));
}

#[test]
fn an_answer_that_got_lost_costs_one_more_write() {
    check(vec![(0, Saw(Some(lease("you", "1")))), (15, Saw(Some(lease("me", "2"))))], 15, Action::Take);
}
