//! Who leads: a pure state machine over one Lease.
//!
//! Nobody trusts another's clock. A lease is over when it has not changed for its duration as seen from here; whoever
//! holds it counts from before it sent its last successful write, and gives up a good while earlier. So there are
//! never two leaders, however clocks differ, as long as they all run at about the same speed.

use std::time::Duration;

/// How long a lease lasts, and how it is kept.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// How long it must be left alone before somebody else may take it.
    pub duration: Duration,
    /// How long after its last renewal its holder still leads. Shorter than `duration`.
    pub deadline: Duration,
    /// How often it is renewed, or looked at.
    pub pause: Duration,
}

impl Default for Terms {
    fn default() -> Self {
        Self {
            duration: Duration::from_secs(15),
            deadline: Duration::from_secs(10),
            pause: Duration::from_secs(2),
        }
    }
}

/// A lease as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// Who holds it; empty: nobody.
    pub holder: String,
    /// How long it lasts when it is left alone.
    pub duration: Duration,
    /// The version that a write must be based on.
    pub version: String,
}

/// What one contender knows. Times are counted from any moment in the past, by a clock that never goes back.
#[derive(Clone, Debug, Default)]
pub struct View {
    /// The lease as it was last seen, and since when it has been so; none, if there is none.
    lease: Option<(Lease, Duration)>,
    /// When the last write that made or kept us the leader was sent.
    held: Option<Duration>,
}

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Write oneself into the lease, by compare-and-swap.
    Take,
    /// Write the lease once more, by compare-and-swap.
    Renew,
    /// Stop leading.
    StepDown,
    /// Look again after this time.
    Wait(Duration),
}

impl View {
    /// The lease was read.
    pub fn see(&mut self, now: Duration, lease: Option<Lease>) {
        let known = self.lease.as_ref().map(|(lease, _)| lease);
        if known != lease.as_ref() {
            self.lease = lease.map(|lease| (lease, now));
        }
    }

    /// A write that was sent at this time was stored.
    pub fn win(&mut self, sent: Duration, now: Duration, lease: Lease) {
        self.see(now, Some(lease));
        self.held = Some(sent);
    }

    /// We do not lead any more.
    pub fn step_down(&mut self) {
        self.held = None;
    }

    /// The lease as it was last seen.
    #[must_use]
    pub fn lease(&self) -> Option<&Lease> {
        self.lease.as_ref().map(|(lease, _)| lease)
    }

    /// Until when we lead, if we do.
    #[must_use]
    pub fn leads_until(&self, terms: &Terms) -> Option<Duration> {
        self.held.map(|held| held + terms.deadline)
    }
}

/// What to do next.
#[must_use]
pub fn step(now: Duration, view: &View, me: &str, terms: &Terms) -> Action {
    let mine = |lease: &Lease| lease.holder == me;
    if let Some(held) = view.held {
        let lost = !view.lease().is_some_and(mine);
        return if lost || now >= held + terms.deadline {
            Action::StepDown
        } else if now >= held + terms.pause {
            Action::Renew
        } else {
            Action::Wait(held + terms.pause - now)
        };
    }
    match &view.lease {
        None => Action::Take,
        // Ours, though we do not lead: an answer got lost.
        Some((lease, _)) if lease.holder.is_empty() || mine(lease) => Action::Take,
        Some((lease, since)) if now >= *since + lease.duration => Action::Take,
        Some((lease, since)) => Action::Wait((*since + lease.duration - now).min(terms.pause)),
    }
}

#[cfg(test)]
mod tests;
