//! Settled: whether a parent has reached steady state at its present intent, now or earlier.

use std::{borrow::Cow, fmt, time::Duration};

use jiff::{SignedDuration, Timestamp};
use kausality_api::{annotation, policy::Settle, trace::Trace};

use crate::{
    intent::IntentHash,
    managers::{self, StatusWrite},
    review::Object,
    status::{Reading, Standing},
    summary::Summary,
};

/// An object, in whichever form it is at hand.
pub trait Seen {
    /// Its generation, if its kind has one.
    fn generation(&self) -> Option<i64>;
    /// Hash of its intent.
    fn intent(&self) -> IntentHash;
    /// Its status, read.
    fn reading(&self) -> &Reading;
    /// One of Kausality's annotations.
    fn annotation(&self, key: &str) -> Option<&str>;

    /// Who wrote its status, and when, as far as managed fields tell.
    fn status_writes(&self) -> Cow<'_, [StatusWrite]>;

    /// The generation that its controller has acted on: as its status says, else as was recorded.
    fn observed_generation(&self) -> Option<i64> {
        let recorded = || self.annotation(annotation::OBSERVED_GENERATION)?.parse().ok();
        self.reading().observed_generation.or_else(recorded)
    }
}

impl Seen for Summary {
    fn generation(&self) -> Option<i64> {
        self.generation
    }

    fn intent(&self) -> IntentHash {
        self.intent
    }

    fn reading(&self) -> &Reading {
        &self.status
    }

    fn annotation(&self, key: &str) -> Option<&str> {
        self.annotation(key)
    }

    fn status_writes(&self) -> Cow<'_, [StatusWrite]> {
        Cow::Borrowed(&self.status_writes)
    }
}

impl Seen for Object<'_> {
    fn generation(&self) -> Option<i64> {
        self.metadata.generation
    }

    fn intent(&self) -> IntentHash {
        self.intent.hash()
    }

    fn reading(&self) -> &Reading {
        self.reading()
    }

    fn annotation(&self, key: &str) -> Option<&str> {
        self.metadata.annotations.get(key)
    }

    fn status_writes(&self) -> Cow<'_, [StatusWrite]> {
        Cow::Owned(managers::status_writes(&self.metadata))
    }
}

/// How often a mark is withdrawn at one intent. Every change of an annotation may be copied to children, and a controller
/// that reports busy after each write of a child would make us change the mark again, for ever.
const WITHDRAWALS: u8 = 3;

/// The mark on an object that was seen steady: at which intent, and since when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The intent that it had.
    pub intent: IntentHash,
    /// When it was first seen steady at it, as far as known.
    pub since: Option<Timestamp>,
    /// When it last became steady again. Kept for kinds that act on inputs, which may change after the first time.
    pub again: Option<Timestamp>,
    /// How often it was withdrawn at this intent.
    pub withdrawn: u8,
}

impl Mark {
    /// The mark of an object that is seen steady.
    #[must_use]
    pub fn new(intent: IntentHash, since: Timestamp) -> Self {
        Self { intent, since: Some(since), again: None, withdrawn: 0 }
    }

    /// Reads an annotation: `<hash>@<time>`, `<hash>@<time>,<time>`, either with `!<n>` if it was withdrawn before.
    /// `<hash>!<n>` is not a mark, but a [`Withdrawn`] one.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (mark, withdrawn) = split_count(text);
        let (intent, times) = match mark.split_once('@') {
            Some(parts) => parts,
            None if withdrawn == 0 => (mark, ""),
            None => return None,
        };
        let mut times = times.split(',').map(|time| time.parse().ok());
        let (since, again) = (times.next().flatten(), times.next().flatten());
        Some(Self { intent: IntentHash::parse(intent)?, since, again, withdrawn })
    }

    /// The mark withdrawn, unless it was often enough.
    pub(crate) fn withdraw(self) -> Option<Withdrawn> {
        let times = self.withdrawn.saturating_add(1);
        (times <= WITHDRAWALS).then_some(Withdrawn { intent: self.intent, times })
    }
}

/// An annotation that a `scale` leaves on an object, as it must be on the object that has been scaled: a mark, which the object's
/// own controller keeps, comes to speak of the intent that the object has then.
#[must_use]
pub fn carried(seen: &impl Seen, key: &str, value: &str) -> String {
    match Mark::parse(value) {
        Some(mark) if key == annotation::SETTLED => Mark { intent: seen.intent(), ..mark }.to_string(),
        _ => value.to_owned(),
    }
}

/// What is left of a mark that did not last: its object was busy again within the quiet time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Withdrawn {
    pub intent: IntentHash,
    /// How often that has happened at this intent.
    pub times: u8,
}

impl Withdrawn {
    /// Reads an annotation: `<hash>!<n>`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        match split_count(text) {
            (intent, times @ 1..) => Some(Self { intent: IntentHash::parse(intent)?, times }),
            _ => None,
        }
    }
}

impl fmt::Display for Withdrawn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}!{}", self.intent, self.times)
    }
}

/// A mark's text, and how often it was withdrawn.
fn split_count(text: &str) -> (&str, u8) {
    let count = text.split_once('!').and_then(|(mark, count)| Some((mark, count.parse().ok()?)));
    count.unwrap_or((text, 0))
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.intent)?;
        let Some(since) = self.since else { return Ok(()) };
        write!(f, "@{since:.3}")?;
        self.again.map_or(Ok(()), |again| write!(f, ",{again:.3}"))?;
        if self.withdrawn > 0 { write!(f, "!{}", self.withdrawn) } else { Ok(()) }
    }
}

/// When a parent counts as settled: the rule for its kind, and how long it must have been quiet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settling {
    /// What shows that its controller is done.
    pub rule: Settle,
    /// For how long that must have been so, with no change of a child since.
    pub quiet: Duration,
}

/// How long it has been quiet below a parent.
#[derive(Clone, Copy, Debug)]
pub struct Calm {
    /// The time; nothing, where a recording does not tell: whatever must have lasted counts as having done so.
    pub now: Option<Timestamp>,
    /// When its controller last carried out a change of the parent on one of its children, as far as known.
    pub last_change: Option<Timestamp>,
    /// When somebody last changed something else that its controller acts on.
    pub input: Option<Timestamp>,
}

/// Whether a parent is settled, and how that is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Settled {
    /// It has been seen steady at this intent.
    Marked,
    /// It is steady.
    Steady,
    /// By the literal rule: `observedGeneration` has caught up.
    Observed,
    /// By a rule for kinds whose status tells nothing: its controller has been quiet for long enough.
    Quiet,
    /// It is done, and has not been quiet for long enough. Says for how long it has.
    Restless(String),
    /// It is not, and why.
    No(String),
    /// It cannot be known: nothing says what its controller has seen. Never drift.
    Unknown,
}

impl Settled {
    /// Whether it is.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        matches!(self, Self::Marked | Self::Steady | Self::Observed | Self::Quiet)
    }
}

/// Whether `parent` is settled.
#[must_use]
pub fn of(parent: &Summary, settling: Settling, calm: Calm) -> Settled {
    if settling.rule == Settle::ObservedGeneration {
        return match behind(parent) {
            Ok(None) => Settled::Observed,
            Ok(Some(behind)) => Settled::No(behind),
            Err(Unobserved) => Settled::Unknown,
        };
    }
    if let (Some(due), Some(now)) = (parent.status.due, calm.now)
        && due <= now
    {
        return Settled::No(format!("it acts on a schedule, and has been due since {due}"));
    }
    // What was seen before an input changed says nothing about what is done since.
    let mark = mark(parent);
    let stands = |_: &Mark| calm.input.is_none_or(|input| !is_opened_by(parent, input));
    let (settled, since) = match mark.filter(stands) {
        Some(mark) => (Settled::Marked, mark.since),
        None => match steady(parent) {
            // Where it was seen steady before an input changed, quiet is counted from that change: some controllers write
            // their status at each look, also while nothing is asked for.
            Ok(None) => {
                let written = parent.status_written().map(end_of_second).max(asked(parent));
                (Settled::Steady, written.filter(|_| mark.is_none()))
            }
            Ok(Some(busy)) => return Settled::No(busy),
            // Without times, nothing tells whether it has been quiet.
            Err(Unobserved) if settling.rule == Settle::Quiet && calm.now.is_some() => {
                // A controller that says it is busy may pause for longer than the quiet time.
                if let Standing::Busy(why) = parent.status.standing {
                    return Settled::No(why.to_owned());
                }
                (Settled::Quiet, parent.intent_written().map(end_of_second))
            }
            Err(Unobserved) => return Settled::Unknown,
        },
    };
    if settled == Settled::Marked && since.zip(calm.now).is_some_and(|(since, now)| since > now) {
        return Settled::Restless("it has settled later".to_owned());
    }
    match restless(since.max(calm.last_change).max(calm.input), settling.quiet, calm.now) {
        Some(why) => Settled::Restless(why),
        None => settled,
    }
}

/// When an object was last changed by whoever asked for something, as its trace tells: perhaps by way of its status, which managed
/// fields do not show where it was a field that was taken away.
pub(crate) fn asked(object: &impl Seen) -> Option<Timestamp> {
    let trace = object.annotation(annotation::TRACE).and_then(|text| Trace::decode(text).ok());
    trace.and_then(|trace| trace.hops().last().map(|hop| hop.timestamp))
}

/// Whether an object that has been steady since then, as far as known, has been so and quiet for long enough.
pub(crate) fn has_lasted(since: Option<Timestamp>, quiet: Duration, calm: Calm) -> bool {
    restless(since.max(calm.last_change), quiet, calm.now).is_none()
}

/// Whether `parent` cannot be judged unless a policy says `settle: quiet`: its status tells nothing, and by that rule it would
/// count as settled.
#[must_use]
pub fn needs_quiet(parent: &Summary, settling: Settling, calm: Calm) -> bool {
    let by_quiet = Settling { rule: Settle::Quiet, ..settling };
    !parent.shows_progress() && of(parent, by_quiet, calm) == Settled::Quiet
}

/// Whether the change of an input came after all that was seen of a parent's steady state, and so opened it.
pub(crate) fn is_opened_by(parent: &Summary, input: Timestamp) -> bool {
    mark(parent).is_none_or(|mark| mark.since.max(mark.again) <= Some(input))
}

/// Why it has not been quiet for long enough.
fn restless(last: Option<Timestamp>, quiet: Duration, now: Option<Timestamp>) -> Option<String> {
    let passed = now?.duration_since(last?);
    let quiet = SignedDuration::try_from(quiet).unwrap_or(SignedDuration::MAX);
    (passed < quiet && !quiet.is_zero()).then(|| {
        let passed = passed.max(SignedDuration::ZERO).as_secs_f64();
        format!("quiet for {passed:.1} s only, and it must be {} s", quiet.as_secs_f64())
    })
}

/// Times of managed fields and traces have no fractions: it may have been at the end of the second.
pub(crate) fn end_of_second(time: Timestamp) -> Timestamp {
    time.saturating_add(SignedDuration::from_secs(1)).unwrap_or(time)
}

/// The mark of an object, if it stands: it was set at the intent that the object still has.
fn mark(parent: &Summary) -> Option<Mark> {
    let mark = parent.annotation(annotation::SETTLED).and_then(Mark::parse)?;
    (mark.intent == parent.intent).then_some(mark)
}

/// Whether an object is steady now, whatever was seen of it before.
#[must_use]
pub fn is_steady(object: &impl Seen) -> bool {
    steady(object) == Ok(None)
}

/// What keeps an object from being steady now; `None` if it is.
pub(crate) fn steady(object: &impl Seen) -> Result<Option<String>, Unobserved> {
    busy(object.generation(), object.observed_generation(), object.reading())
}

/// What keeps an object from being steady; `None` if it is.
pub(crate) fn busy(
    generation: Option<i64>,
    observed: Option<i64>,
    reading: &Reading,
) -> Result<Option<String>, Unobserved> {
    if let Standing::Never(why) = reading.standing {
        return Ok(Some(why.to_owned()));
    }
    let (Some(generation), Some(observed)) = (generation, observed) else { return Err(Unobserved) };
    if observed != generation {
        return Ok(Some(format!("observedGeneration is {observed}, generation {generation}")));
    }
    match reading.standing {
        Standing::Done => Ok(None),
        Standing::Busy(why) | Standing::Never(why) => Ok(Some(why.to_owned())),
        // A status that has nothing but observedGeneration says all that its kind can say.
        Standing::Silent if reading.observed_generation.is_some() => Ok(None),
        Standing::Silent | Standing::Unclear => Err(Unobserved),
    }
}

fn behind(parent: &Summary) -> Result<Option<String>, Unobserved> {
    let (Some(generation), Some(observed)) = (parent.generation, parent.observed_generation()) else {
        return Err(Unobserved);
    };
    let behind = format!("observedGeneration is {observed}, generation {generation}");
    Ok((observed != generation).then_some(behind))
}

/// Nothing says which generation the controller has acted on.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Unobserved;
