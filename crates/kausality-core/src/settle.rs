//! Settled: whether a parent has reached steady state at its present intent, now or earlier.

use kausality_api::{annotation, policy::Settle};

use crate::{
    intent::IntentHash,
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
    /// It is not, and why.
    No(String),
    /// It cannot be known: nothing says what its controller has seen. Never drift.
    Unknown,
}

impl Settled {
    /// Whether it is.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        matches!(self, Self::Marked | Self::Steady | Self::Observed)
    }
}

/// Whether `parent` is settled by `rule`.
#[must_use]
pub fn of(parent: &Summary, rule: Settle) -> Settled {
    if rule == Settle::ObservedGeneration {
        return match behind(parent) {
            Ok(None) => Settled::Observed,
            Ok(Some(behind)) => Settled::No(behind),
            Err(Unobserved) => Settled::Unknown,
        };
    }
    if is_marked(parent) {
        return Settled::Marked;
    }
    match steady(parent) {
        Ok(None) => Settled::Steady,
        Ok(Some(busy)) => Settled::No(busy),
        Err(Unobserved) => Settled::Unknown,
    }
}

/// Whether the mark stands: it was set at the intent that the parent still has.
fn is_marked(parent: &Summary) -> bool {
    parent.annotation(annotation::SETTLED).and_then(IntentHash::parse) == Some(parent.intent)
}

/// Whether an object is steady now, whatever was seen of it before.
#[must_use]
pub fn is_steady(object: &impl Seen) -> bool {
    steady(object) == Ok(None)
}

/// What keeps an object from being steady now; `None` if it is.
pub(crate) fn steady(object: &impl Seen) -> Result<Option<String>, Unobserved> {
    busy(object.generation(), object.observed_generation(), object.reading().standing)
}

/// What keeps an object from being steady; `None` if it is.
pub(crate) fn busy(
    generation: Option<i64>,
    observed: Option<i64>,
    standing: Standing,
) -> Result<Option<String>, Unobserved> {
    if let Standing::Never(why) = standing {
        return Ok(Some(why.to_owned()));
    }
    let (Some(generation), Some(observed)) = (generation, observed) else { return Err(Unobserved) };
    if observed != generation {
        return Ok(Some(format!("observedGeneration is {observed}, generation {generation}")));
    }
    Ok(match standing {
        Standing::Done => None,
        Standing::Busy(why) | Standing::Never(why) => Some(why.to_owned()),
    })
}

fn behind(parent: &Summary) -> Result<Option<String>, Unobserved> {
    busy(parent.generation, parent.observed_generation(), Standing::Done)
}

/// Nothing says which generation the controller has acted on.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Unobserved;
