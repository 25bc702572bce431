//! Whether a controller leads.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::{
    CONTROLLER,
    finding::{Findings, Verdict},
    logs,
    server::{Seen, number, text},
};

/// A Lease, and once more a little later where the first look left doubts.
#[derive(Clone, Debug)]
pub(super) struct Watched {
    pub(super) first: Seen,
    /// What time the API server had then.
    pub(super) at: Timestamp,
    pub(super) again: Option<Seen>,
}

impl Watched {
    /// Whether a second look would tell more: the Lease looks old, but clocks may differ.
    pub(super) fn is_doubtful(&self) -> bool {
        self.first.found().is_some_and(|lease| !holder(lease).is_empty() && !is_fresh(lease, self.at))
    }

    /// Whether somebody renews it.
    pub(super) fn is_alive(&self) -> bool {
        let Some(lease) = self.first.found().filter(|lease| !holder(lease).is_empty()) else { return false };
        let again = self.again.as_ref().and_then(Seen::found);
        is_fresh(lease, self.at) || again.is_some_and(|again| renewed(again) != renewed(lease))
    }

    /// How far the clock of whoever renews it is ahead of the API server's, if that can be told.
    pub(super) fn ahead(&self) -> Option<SignedDuration> {
        let renewed = renewed(self.first.found()?)?;
        let ahead = renewed.duration_since(self.at);
        // What is a little in the past may just have been renewed then.
        let moved = self.again.is_some() && self.is_alive();
        (ahead > SignedDuration::ZERO || moved).then_some(ahead)
    }
}

/// Judges the Lease that controllers compete for.
pub(super) fn judge(namespace: &str, lease: &Watched) -> Verdict {
    let logs = logs(namespace);
    let mut findings = Findings::default();
    let found = match &lease.first {
        Seen::Found(found) => found,
        Seen::Absent => {
            findings.fail(
                format!("there is no Lease {namespace}/{CONTROLLER}: no controller has ever led"),
                format!("see that {CONTROLLER} runs and may write Leases: {logs}"),
            );
            return findings.or_fine("");
        }
        Seen::Hidden(why) => return Verdict::Skipped(format!("the Lease cannot be read: {why}")),
    };
    let holder = holder(found);
    let age = renewed(found).map(|renewed| lease.at.duration_since(renewed).as_secs());
    if holder.is_empty() {
        findings.fail(
            format!("nobody holds the Lease {namespace}/{CONTROLLER}: no controller leads"),
            format!("wait {} s; if it stays so: {logs}", duration(found).as_secs()),
        );
    } else if !lease.is_alive() {
        let since = age.map_or_else(String::new, |age| format!(" for {age} s"));
        findings.fail(
            format!("the Lease {namespace}/{CONTROLLER} has not been renewed{since} by {holder}"),
            format!("another controller should have taken it: {logs}"),
        );
    }
    findings.or_fine(format!("{holder} leads"))
}

fn holder(lease: &Value) -> &str {
    text(lease, "/spec/holderIdentity")
}

fn renewed(lease: &Value) -> Option<Timestamp> {
    text(lease, "/spec/renewTime").parse().ok()
}

fn duration(lease: &Value) -> SignedDuration {
    SignedDuration::from_secs(number(lease, "/spec/leaseDurationSeconds").unwrap_or(15))
}

fn is_fresh(lease: &Value, now: Timestamp) -> bool {
    renewed(lease).is_some_and(|renewed| now.duration_since(renewed) <= duration(lease))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::doctor::finding::Outcome;

    fn lease(holder: &str, renewed: &str) -> Seen {
        Seen::Found(json!({"spec": {"holderIdentity": holder, "leaseDurationSeconds": 15,
            "renewTime": format!("2026-01-24T10:{renewed}.000000Z")}}))
    }

    #[test]
    fn a_lease_is_held_and_fresh() {
        let at: Timestamp = "2026-01-24T10:30:00Z".parse().unwrap();
        let stale = || lease("pod-a", "29:44");
        for (first, again, doubtful, outcome, said) in [
            (lease("pod-a", "29:58"), None, false, Outcome::Ok, "pod-a leads"),
            (lease("pod-a", "29:45"), None, false, Outcome::Ok, "pod-a leads"),
            (stale(), None, true, Outcome::Failed, "not been renewed for 16 s by pod-a"),
            (stale(), Some(stale()), true, Outcome::Failed, "not been renewed"),
            (stale(), Some(lease("pod-a", "29:46")), true, Outcome::Ok, "pod-a leads"),
            (lease("pod-a", "35:00"), None, false, Outcome::Ok, "pod-a leads"),
            (lease("", "29:58"), None, false, Outcome::Failed, "nobody holds"),
            (
                Seen::Found(json!({"spec": {"holderIdentity": "x"}})),
                None,
                true,
                Outcome::Failed,
                "not been renewed by x",
            ),
            (Seen::Absent, None, false, Outcome::Failed, "no controller has ever led"),
            (Seen::Hidden("no".to_owned()), None, false, Outcome::Skipped, "no"),
        ] {
            let watched = Watched { first, at, again };
            let verdict = judge("there", &watched);
            assert_eq!(verdict.outcome(), outcome, "{watched:?}: {verdict:?}");
            assert_eq!(watched.is_doubtful(), doubtful, "{watched:?}");
            assert!(verdict.summary().contains(said), "{said}: {verdict:?}");
        }
    }

    #[test]
    fn a_clock_is_known_to_be_wrong_only_where_a_lease_lives() {
        let at: Timestamp = "2026-01-24T10:30:00Z".parse().unwrap();
        let ahead = |first: Seen, again: Option<Seen>| {
            Watched { first, at, again }.ahead().map(|ahead| ahead.as_secs())
        };
        assert_eq!(ahead(lease("a", "35:00"), None), Some(300));
        assert_eq!(ahead(lease("a", "29:58"), None), None);
        assert_eq!(ahead(lease("a", "20:00"), Some(lease("a", "20:00"))), None);
        assert_eq!(ahead(lease("a", "20:00"), Some(lease("a", "20:02"))), Some(-600));
        assert_eq!(ahead(Seen::Absent, None), None);
    }
}
