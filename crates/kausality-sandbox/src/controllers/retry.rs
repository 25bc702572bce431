//! How long a key waits after a failure.

use std::collections::BTreeMap;

use super::Time;

/// The first wait, in milliseconds.
const FIRST: u64 = 5;
/// The longest wait, in milliseconds.
const LONGEST: u64 = 1_000_000;

/// Doubles the wait of a key at each failure, from 5 ms to 1,000 s, as the work queues of Kubernetes do.
#[derive(Clone, Debug)]
pub struct Retry<K> {
    failures: BTreeMap<K, u32>,
}

impl<K> Default for Retry<K> {
    fn default() -> Self {
        Self { failures: BTreeMap::new() }
    }
}

impl<K: Ord + Clone> Retry<K> {
    /// Counts a failure, and says when to try again.
    pub fn failed(&mut self, key: &K, now: Time) -> Time {
        let failures = self.failures.entry(key.clone()).or_default();
        let wait = FIRST.saturating_mul(1 << (*failures).min(40)).min(LONGEST);
        *failures = failures.saturating_add(1);
        now.after(wait)
    }

    /// Forgets the failures of a key that succeeded.
    pub fn forget(&mut self, key: &K) {
        self.failures.remove(key);
    }

    /// How often a key has failed since it last succeeded.
    pub fn failures(&self, key: &K) -> u32 {
        self.failures.get(key).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
