//! Whether time grows as input does.
//!
//! Some value of an input is made many times as long, and then eight times that. Both are timed in turn, and the best
//! times are compared: what is linear takes eight times as long, what is quadratic sixty-four times. What seems to be
//! worse than linear must be so at the next length again: once, when memory comes to be had from somewhere else, anything is.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use crate::fuzz::{dice::Dice, json};

/// How much more there is the second time, and how many times as long that may take: five times what is linear.
const MORE: (usize, u32) = (8, 40);

/// The same for the third time, against the second: twice what is linear, half of what is quadratic.
const AND_MORE: (usize, u32) = (4, 8);

/// What is measured must take at least this long, or the clock says nothing.
const MEASURABLE: Duration = Duration::from_micros(20);

/// An input of which one value can have any length.
#[derive(Debug)]
pub(crate) struct Growing {
    input: Vec<u8>,
    value: Vec<u8>,
    times: usize,
    alike: bool,
}

impl Growing {
    /// Some value of an input, if there is any. It gets about `bytes` long at first.
    pub(crate) fn new(dice: &mut Dice, input: &[u8], bytes: usize) -> Option<Self> {
        let values: Vec<_> = json::values(input).into_iter().filter(|value| value.len() < 4_096).collect();
        if values.is_empty() {
            return None;
        }
        let value = input[dice.pick(&values).clone()].to_vec();
        let times = bytes / value.len() + 1;
        Some(Self { input: input.to_vec(), value, times, alike: dice.one_in(3) })
    }

    /// The shortest input.
    pub(crate) fn short(&self) -> Vec<u8> {
        self.with(self.times)
    }

    /// A longer one.
    pub(crate) fn long(&self) -> Vec<u8> {
        self.with(self.times * MORE.0)
    }

    /// Whether time grows far faster than the input; if so, how.
    pub(crate) fn is_superlinear(&self, run: &dyn Fn(&[u8]) -> String) -> Option<String> {
        is_superlinear(&|times| self.with(times), self.times, run)
    }

    /// The input with every occurrence of the value made so many times as long; the second one in the other direction, so
    /// that what is compared differs everywhere.
    fn with(&self, times: usize) -> Vec<u8> {
        let Self { input, value, alike, .. } = self;
        let (open, close, separator) = match value.first() {
            Some(b'{') => ("{", "}", ","),
            Some(b'"') => ("\"", "\"", ""),
            _ => ("[", "]", ","),
        };
        let is_closed = value.len() >= 2 && matches!(value.first(), Some(b'{' | b'[' | b'"'));
        let inner = if is_closed { &value[1..value.len() - 1] } else { value };
        let inner = String::from_utf8_lossy(inner);
        let one = |number: usize| if *alike { inner.to_string() } else { told_apart(&inner, number, open) };
        let whole = |numbers: &mut dyn Iterator<Item = usize>| {
            let all: Vec<String> = numbers.map(one).collect();
            format!("{open}{}{close}", all.join(separator)).into_bytes()
        };
        let mut turns = [whole(&mut (0..times)), whole(&mut (0..times).rev())].into_iter();
        let (mut grown, mut rest) = (Vec::new(), input.as_slice());
        while let Some(at) = rest.windows(value.len()).position(|window| window == value) {
            let Some(turn) = turns.next() else { break };
            grown.extend_from_slice(&rest[..at]);
            grown.extend(turn);
            rest = &rest[at + value.len()..];
        }
        grown.extend_from_slice(rest);
        grown
    }
}

/// Whether time grows far faster than the input, from inputs of so many items on; if so, how.
pub(crate) fn is_superlinear(
    input: &dyn Fn(usize) -> Vec<u8>,
    items: usize,
    run: &dyn Fn(&[u8]) -> String,
) -> Option<String> {
    let (short, long) = (input(items), input(items * MORE.0));
    let told = compare(&short, &long, MORE.1, run)?;
    let longer = input(items * MORE.0 * AND_MORE.0);
    let again = compare(&long, &longer, AND_MORE.1, run)?;
    Some(format!("{told}; {again}"))
}

/// A copy that is not like the others: with other keys, or other names.
fn told_apart(inner: &str, number: usize, open: &str) -> String {
    let mut copy = inner.to_owned();
    for field in ["\"name\":\"", "\"uid\":\"", "\"type\":\"", "\"key\":\""] {
        copy = copy.replacen(field, &format!("{field}{number}"), 1);
    }
    if open == "{" && copy.starts_with('"') {
        copy = format!("\"{number}{}", &copy[1..]);
    }
    copy
}

/// Whether one takes more than so many times as long as the other; if so, how long.
fn compare(short: &[u8], long: &[u8], allowed: u32, run: &dyn Fn(&[u8]) -> String) -> Option<String> {
    let mut told = None;
    // Others use this machine too: only what is slow every time is slow.
    for repeats in [2, 3, 5, 8] {
        let (mut best_short, mut best_long) = (Duration::MAX, Duration::MAX);
        for _ in 0..repeats {
            best_short = best_short.min(time(short, run));
            best_long = best_long.min(time(long, run));
        }
        if best_long <= best_short.max(MEASURABLE) * allowed {
            return None;
        }
        told = Some(format!("{} bytes take {best_short:?}, {} bytes {best_long:?}", short.len(), long.len()));
    }
    told
}

/// How long this thread works on it. How long it waits for others does not count.
fn time(input: &[u8], run: &dyn Fn(&[u8]) -> String) -> Duration {
    let worked = || Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap();
    let begun = worked();
    let _ = run(input);
    worked() - begun
}

/// The measure itself finds what is quadratic, and lets pass what is not.
#[test]
fn what_is_quadratic_is_found() {
    let growing = Growing { input: b"x[7]".to_vec(), value: b"[7]".to_vec(), times: 200, alike: true };
    assert_eq!((growing.short().len(), growing.long().len()), (402, 3_202));
    let linear = |input: &[u8]| {
        let sum = (0..200_u64).map(|turn| input.iter().map(|byte| u64::from(*byte) ^ turn).sum::<u64>());
        sum.fold(0, u64::wrapping_add).to_string()
    };
    let quadratic = |input: &[u8]| {
        let turns = input.iter().map(|turn| input.iter().map(|byte| u64::from(*byte ^ *turn)).sum::<u64>());
        turns.fold(0, u64::wrapping_add).to_string()
    };
    assert_eq!(growing.is_superlinear(&linear), None);
    // A busy machine may hide it once.
    assert!((0..10).any(|_| growing.is_superlinear(&quadratic).is_some()));
}
