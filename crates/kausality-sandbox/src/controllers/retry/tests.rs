use super::{Retry, Time};

#[test]
fn waits_double_up_to_a_thousand_seconds() {
    let mut retry = Retry::default();
    let waits: Vec<_> = (0..20).map(|_| retry.failed(&"a", Time(7)).0 - 7).collect();
    assert_eq!(waits[..4], [5, 10, 20, 40]);
    assert_eq!(waits[17], 655_360);
    assert_eq!(waits[18..], [1_000_000, 1_000_000]);
}

#[test]
fn keys_wait_on_their_own_and_success_forgets() {
    let mut retry = Retry::default();
    retry.failed(&"a", Time(0));
    assert_eq!(retry.failed(&"b", Time(0)), Time(5));
    retry.forget(&"a");
    assert_eq!((retry.failures(&"a"), retry.failures(&"b")), (0, 1));
    assert_eq!(retry.failed(&"a", Time(0)), Time(5));
}
