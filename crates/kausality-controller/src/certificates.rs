//! Our own CA and the webhook's certificate, and how one follows the other without a failed request.
//!
//! ```text
//!            begin ──▶ one CA, one certificate
//!                        │ two thirds of the CA's life
//!                        ▼
//!            prepare ─▶ a second CA in the bundle; the first one still signs
//!                        │ the bundle is in the stored configuration (publish), and has been for a while
//!                        ▼
//!            switch ──▶ the second CA signs; the first one is still in the bundle
//!                        │ everything that the first one has signed is over
//!                        ▼
//!            retire ──▶ one CA, one certificate
//! ```
//!
//! All of it is in one Secret: what must be known beside the PEM texts is in an annotation of it. So nothing here needs
//! to remember anything, and any leader can go on where the last one stopped.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

pub mod external;
mod issue;
mod ours;
mod secret;

pub use issue::{Unmakeable, perform};
pub use secret::{STATE, is_written, read, write};

/// How long things last.
#[derive(Clone, Copy, Debug)]
pub struct Lifetimes {
    /// A CA.
    pub authority: SignedDuration,
    /// A certificate of the webhook.
    pub serving: SignedDuration,
    /// From when a bundle is seen in the stored configuration until every API server certainly trusts it.
    pub settling: SignedDuration,
}

/// What the certificate is for.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// The names and addresses under which the webhook is reached.
    pub hosts: Vec<String>,
    /// How long things last.
    pub lifetimes: Lifetimes,
}

/// A time from which something holds, and until when.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Term {
    /// When it was made.
    pub from: Timestamp,
    /// When it is over.
    pub until: Timestamp,
}

impl Term {
    fn new(from: Timestamp, length: SignedDuration) -> Self {
        Self { from, until: from.checked_add(length).unwrap_or(Timestamp::MAX) }
    }

    /// When two thirds of it are over.
    fn due(&self) -> Timestamp {
        let length = self.until.duration_since(self.from);
        self.from.checked_add(length / 3 * 2).unwrap_or(self.until)
    }
}

/// A CA. Shows no key when printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Authority {
    /// How long it is one.
    pub term: Term,
    /// Its certificate, PEM.
    pub certificate: String,
    /// Its key, PEM.
    pub key: String,
}

/// The certificate of the webhook. Shows no key when printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Serving {
    /// How long it holds.
    pub term: Term,
    /// The names and addresses it is for.
    pub hosts: Vec<String>,
    /// The certificate, PEM.
    pub certificate: String,
    /// Its key, PEM.
    pub key: String,
}

/// CAs that sign no more, but have signed what is still in use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retired {
    /// Until when.
    pub until: Timestamp,
    /// Their certificates, PEM.
    pub certificates: String,
}

/// What is in the Secret.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stored {
    /// The CA that signs.
    pub authority: Option<Authority>,
    /// The CA that will sign next.
    pub next: Option<Authority>,
    /// The CA that has signed before.
    pub retired: Option<Retired>,
    /// The certificate of the webhook.
    pub serving: Option<Serving>,
    /// Since when the present bundle is certainly in the stored configuration.
    pub published: Option<Timestamp>,
}

impl Stored {
    /// All CAs that API servers are to trust: the `caBundle`.
    #[must_use]
    pub fn bundle(&self) -> String {
        let authorities = [&self.authority, &self.next].into_iter().flatten();
        let mut bundle: String = authorities.map(|authority| authority.certificate.as_str()).collect();
        if let Some(retired) = &self.retired {
            bundle.push_str(&retired.certificates);
        }
        bundle
    }
}

/// What to do with the Secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Make a CA. `trusted` is the bundle that the stored configuration has, if there is one: it stays trusted as well.
    Begin {
        /// The bundle of the stored configuration.
        trusted: Option<String>,
    },
    /// Make the next CA.
    Prepare,
    /// Write down that the bundle is in the stored configuration.
    Publish,
    /// Let the next CA sign, and the one before retire.
    Switch,
    /// Issue a certificate.
    Renew,
    /// Take retired CAs out of the bundle.
    Retire,
    /// Nothing, until then.
    Wait(Timestamp),
}

impl Action {
    /// What it is called in logs.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Begin { .. } => "begin",
            Self::Prepare => "prepare",
            Self::Publish => "publish",
            Self::Switch => "switch",
            Self::Renew => "renew",
            Self::Retire => "retire",
            Self::Wait(_) => "wait",
        }
    }
}

/// What to do now. `trusted` is the bundle in the stored configuration; none, if there is no configuration.
#[must_use]
pub fn step(now: Timestamp, stored: &Stored, trusted: Option<&str>, wanted: &Wanted) -> Action {
    let Some(authority) = stored.authority.as_ref().filter(|authority| authority.term.until > now) else {
        return Action::Begin { trusted: trusted.map(ToOwned::to_owned) };
    };
    // Somebody else's certificate was in place of ours, and whoever serves it is trusted by what is not ours.
    if let (None, Some(trusted)) = (&stored.serving, trusted)
        && !external::left_over(trusted, &stored.bundle()).is_empty()
    {
        return Action::Begin { trusted: Some(trusted.to_owned()) };
    }
    let published = trusted.is_some_and(|trusted| trusted == stored.bundle());
    let settled = stored.published.filter(|_| published).map(|since| add(since, wanted.lifetimes.settling));
    let is_settled = settled.is_some_and(|settled| settled <= now);
    let mut then = Vec::new();

    // Nobody is asked yet, or everybody trusts what is about to be served.
    let may_serve = trusted.is_none() || is_settled;
    match &stored.serving {
        None if may_serve => return Action::Renew,
        None => then.extend(settled),
        Some(serving) if serving.hosts != wanted.hosts => return Action::Renew,
        // Another one could not last longer.
        Some(serving) if serving.term.until >= authority.term.until => {}
        Some(serving) if serving.term.due() <= now => return Action::Renew,
        Some(serving) => then.push(serving.term.due()),
    }
    match (&stored.next, &stored.retired) {
        (Some(_), _) if may_serve => return Action::Switch,
        (Some(_), _) => then.extend(settled),
        (None, Some(retired)) if retired.until <= now => return Action::Retire,
        (None, Some(retired)) => then.push(retired.until),
        (None, None) if authority.term.due() <= now => return Action::Prepare,
        (None, None) => then.push(authority.term.due()),
    }
    let waits = stored.next.is_some() || stored.serving.is_none();
    if waits && published && stored.published.is_none() {
        return Action::Publish;
    }
    Action::Wait(then.into_iter().min().unwrap_or(authority.term.until))
}

fn add(time: Timestamp, length: SignedDuration) -> Timestamp {
    time.checked_add(length).unwrap_or(Timestamp::MAX)
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Authority").field("term", &self.term).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Serving {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Serving")
            .field("term", &self.term)
            .field("hosts", &self.hosts)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
