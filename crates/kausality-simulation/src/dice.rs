//! All that is random, from a seed.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

/// Dice that fall the same way for the same seed. Clones share them; everybody in a simulation has dice of its own, so
/// that what one does moves nobody else's.
#[derive(Clone, Debug)]
pub(crate) struct Dice(Arc<Mutex<u64>>);

impl Dice {
    /// The dice of somebody.
    pub(crate) fn new(seed: u64, whose: &str) -> Self {
        let fold = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        let state =
            whose.bytes().fold(0xcbf2_9ce4_8422_2325 ^ seed.wrapping_mul(0x9e37_79b9_7f4a_7c15), fold);
        Self(Arc::new(Mutex::new(state)))
    }

    fn roll(&self) -> u64 {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below this one.
    pub(crate) fn below(&self, end: u64) -> u64 {
        self.roll() % end.max(1)
    }

    /// Whether something happens that happens so many times out of a thousand.
    pub(crate) fn chance(&self, per_mille: u64) -> bool {
        self.below(1000) < per_mille
    }

    /// One of these. There must be one.
    pub(crate) fn pick<'a, T>(&self, from: &'a [T]) -> Option<&'a T> {
        from.get(usize::try_from(self.below(from.len() as u64)).unwrap_or_default())
    }

    /// A time up to about this one, short ones more often than long ones.
    pub(crate) fn time(&self, most: Duration) -> Duration {
        let most = u64::try_from(most.as_micros()).unwrap_or(u64::MAX);
        Duration::from_micros(self.below(most >> self.below(6)))
    }
}
