//! Whether clocks agree: this machine's, the API server's, the controller's.

use jiff::{SignedDuration, Timestamp};

use super::{
    CONTROLLER,
    finding::{Findings, Verdict},
};

/// By how much clocks may differ. What is compared by clocks (the life of certificates, when approvals expire) is
/// longer than this by far.
const TOLERANCE: SignedDuration = SignedDuration::from_secs(5);

/// The time that the API server had, between two times of this machine.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading {
    pub(super) asked: Timestamp,
    pub(super) answered: Timestamp,
    pub(super) server: Option<Timestamp>,
}

impl Reading {
    /// How far the API server's clock is ahead of this machine's at least; negative if it is behind.
    fn skew(&self) -> Option<SignedDuration> {
        // A date of HTTP has no fractions of a second: it is any time within that second.
        let earliest = self.server?;
        let latest = earliest + SignedDuration::from_secs(1);
        Some(if earliest > self.answered {
            earliest.duration_since(self.answered)
        } else if latest < self.asked {
            latest.duration_since(self.asked)
        } else {
            SignedDuration::ZERO
        })
    }

    /// What time the API server has, when it is `now` here.
    pub(super) fn server_time(&self, now: Timestamp) -> Timestamp {
        now + self.skew().unwrap_or(SignedDuration::ZERO)
    }
}

/// Judges the clocks. `controller` is how far the controller's is ahead of the API server's, where that is known.
pub(super) fn judge(reading: &Reading, controller: Option<SignedDuration>) -> Verdict {
    let mut findings = Findings::default();
    let Some(skew) = reading.skew() else {
        return Verdict::Skipped("the API server does not say what time it has".to_owned());
    };
    let sync = "have it synchronise its clock (NTP, chrony)";
    if skew.abs() > TOLERANCE {
        let (seconds, way) = told(-skew);
        findings.warn(
            format!("the clock of this machine is {seconds} s {way} the API server's"),
            format!("if the API server is right, fix this machine; if not, {sync}: certificates and approvals expire by it"),
        );
    }
    if let Some(ahead) = controller.filter(|ahead| ahead.abs() > TOLERANCE) {
        let (seconds, way) = told(ahead);
        findings.warn(
            format!(
                "the clock of the node that {CONTROLLER} leads from is {seconds} s {way} the API server's"
            ),
            format!("{sync}: certificates are renewed by it"),
        );
    }
    findings.or_fine("this machine and the API server agree on the time")
}

fn told(ahead: SignedDuration) -> (i64, &'static str) {
    (ahead.abs().as_secs(), if ahead.is_negative() { "behind" } else { "ahead of" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Outcome;

    #[test]
    fn clocks_agree_or_not() {
        let at = |second: i64| Timestamp::from_second(1_700_000_000 + second).unwrap();
        let behind = "the clock of this machine is 60 s behind the API server's";
        let ahead = "the clock of this machine is 60 s ahead of the API server's";
        let led = |seconds| Some(SignedDuration::from_secs(seconds));
        for (asked, answered, server, controller, outcome, said) in [
            (0, 1, Some(0), None, Outcome::Ok, "agree"),
            (0, 1, Some(6), None, Outcome::Ok, "agree"),
            (0, 1, Some(61), None, Outcome::Warning, behind),
            (61, 62, Some(0), None, Outcome::Warning, ahead),
            // A slow answer says little.
            (0, 60, Some(30), None, Outcome::Ok, "agree"),
            (0, 1, None, None, Outcome::Skipped, "does not say"),
            (0, 1, Some(0), led(4), Outcome::Ok, "agree"),
            (0, 1, Some(0), led(90), Outcome::Warning, "90 s ahead of the API server's"),
            (0, 1, Some(0), led(-90), Outcome::Warning, "90 s behind the API server's"),
            (0, 1, Some(61), led(-90), Outcome::Warning, "2 things"),
        ] {
            let reading = Reading { asked: at(asked), answered: at(answered), server: server.map(at) };
            let verdict = judge(&reading, controller);
            assert_eq!(verdict.outcome(), outcome, "{reading:?}: {verdict:?}");
            assert!(verdict.summary().contains(said), "{said}: {verdict:?}");
        }
    }
}
