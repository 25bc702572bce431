//! How often things go wrong.

use std::{
    collections::BTreeMap,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::sync::broadcast;

use crate::dice::Dice;

/// How often things go wrong, in times out of a thousand where nothing else is said.
#[derive(Clone, Copy, Debug, Default)]
pub struct Weather {
    /// How long anything may take on its way.
    pub delay: Duration,
    /// How often it takes up to [`SLOW`].
    pub slow: u64,
    /// A call does not get through.
    pub refused: u64,
    /// A call gets through, but its answer does not.
    pub lost: u64,
    /// A watch breaks, and what it was about to show gets lost with it.
    pub cut: u64,
    /// A watch dies without a word.
    pub stalled: u64,
    /// A watch shows something twice.
    pub twice: u64,
    /// A write fails after it was admitted.
    pub failing: u64,
    /// A write is changed by somebody after it was admitted, and so admitted again.
    pub meddling: u64,
    /// The time between two crashes of something, or none at all.
    pub crashes: Option<Duration>,
}

/// How long it takes at most when it takes long.
pub(crate) const SLOW: Duration = Duration::from_secs(6);

impl Weather {
    /// The weather of a seed. Not everything goes wrong in each of them, so that no fault hides another.
    pub(crate) fn of(seed: u64) -> Self {
        let dice = Dice::new(seed, "weather");
        let often =
            |choices: &[u64]| if dice.chance(500) { dice.pick(choices).copied().unwrap_or(0) } else { 0 };
        let delays = [0, 2, 20, 200, 1000];
        Self {
            delay: Duration::from_millis(dice.pick(&delays).copied().unwrap_or_default()),
            slow: often(&[2, 10, 50]),
            refused: often(&[5, 20, 100]),
            lost: often(&[5, 20, 100]),
            cut: often(&[5, 20, 100]),
            stalled: often(&[1, 5, 20]),
            twice: often(&[20, 100]),
            failing: often(&[10, 50, 200]),
            meddling: often(&[20, 200]),
            crashes: dice.chance(500).then(|| Duration::from_secs(5 + dice.below(60))),
        }
    }
}

impl Weather {
    /// Whether nothing keeps anybody from reading anything in time.
    pub(crate) fn is_calm(&self) -> bool {
        let faults = [self.slow, self.refused, self.lost, self.cut, self.stalled];
        faults.iter().all(|fault| *fault == 0)
            && self.crashes.is_none()
            && self.delay < Duration::from_millis(200)
    }
}

/// The weather over a simulation, until it clears up.
#[derive(Debug)]
pub(crate) struct Sky {
    weather: Weather,
    calm: AtomicBool,
    /// Tells when the API server starts again.
    restarts: broadcast::Sender<()>,
    counts: Mutex<BTreeMap<&'static str, u64>>,
}

impl Sky {
    pub(crate) fn new(weather: Weather) -> Self {
        let (calm, counts) = (AtomicBool::new(false), Mutex::default());
        Self { weather, calm, restarts: broadcast::Sender::new(1), counts }
    }

    /// Nothing goes wrong from now on.
    pub(crate) fn clear_up(&self) {
        self.calm.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_calm(&self) -> bool {
        self.calm.load(Ordering::Relaxed)
    }

    pub(crate) fn now(&self) -> Weather {
        if self.is_calm() { Weather::default() } else { self.weather }
    }

    /// Whether a fault happens that happens so often in this weather. Those that do are counted.
    pub(crate) fn strikes(&self, dice: &Dice, fault: &'static str, often: impl Fn(&Weather) -> u64) -> bool {
        let struck = dice.chance(often(&self.now()));
        if struck {
            self.count(fault);
        }
        struck
    }

    /// Counts what happened.
    pub(crate) fn count(&self, what: &'static str) {
        *self.counts.lock().unwrap_or_else(PoisonError::into_inner).entry(what).or_default() += 1;
    }

    /// How often what happened.
    pub(crate) fn counts(&self) -> BTreeMap<&'static str, u64> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The API server crashes and starts again: what is under way gets lost.
    pub(crate) fn restart(&self) {
        let _ = self.restarts.send(());
    }

    /// Ends when the API server crashes the next time.
    pub(crate) fn crash(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut restarts = self.restarts.subscribe();
        async move {
            let _ = restarts.recv().await;
        }
    }

    /// How long something takes on its way now.
    pub(crate) fn delay(&self, dice: &Dice) -> Duration {
        let slow = self.strikes(dice, "delays", |weather| weather.slow);
        dice.time(if slow { SLOW } else { self.now().delay })
    }
}
