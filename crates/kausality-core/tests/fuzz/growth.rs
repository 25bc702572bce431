//! Whether time grows as input does.
//!
//! Some value of an input is made many times as long, and then eight times that. Both are timed in turn, and the best
//! times are compared: what is linear takes eight times as long, what is quadratic sixty-four times.

use std::time::{Duration, Instant};

use crate::{dice::Dice, json};

/// How much more there is the second time.
const FACTOR: usize = 8;

/// How many times as long it may take: five times what is linear, far below what is quadratic.
const ALLOWED: u32 = 40;

/// What is measured must take at least this long, or the clock says nothing.
const MEASURABLE: Duration = Duration::from_micros(20);

/// How long the shorter input gets, about.
const BYTES: usize = 12 * 1024;

/// An input in two lengths.
#[derive(Debug)]
pub(crate) struct Grown {
    pub(crate) short: Vec<u8>,
    pub(crate) long: Vec<u8>,
}

/// Makes some value of an input longer.
pub(crate) fn grow(dice: &mut Dice, input: &[u8]) -> Option<Grown> {
    let values: Vec<_> = json::values(input).into_iter().filter(|value| value.len() < 4_096).collect();
    if values.is_empty() {
        return None;
    }
    let value = &input[dice.pick(&values).clone()];
    let times = BYTES / value.len().max(1) + 1;
    let alike = dice.one_in(3);
    let at = |times| repeated(input, value, times, alike);
    Some(Grown { short: at(times)?, long: at(times * FACTOR)? })
}

/// The input with every occurrence of a value made so many times as long; the second one in the other direction, so that
/// what is compared differs everywhere.
fn repeated(input: &[u8], value: &[u8], times: usize, alike: bool) -> Option<Vec<u8>> {
    let (open, close, separator) = match value.first()? {
        b'{' => ("{", "}", ","),
        b'[' => ("[", "]", ","),
        b'"' => ("\"", "\"", ""),
        _ => ("[", "]", ","),
    };
    let is_closed = value.len() >= 2 && matches!(value.first(), Some(b'{' | b'[' | b'"'));
    let inner = if is_closed { &value[1..value.len() - 1] } else { value };
    if inner.is_empty() {
        return None;
    }
    let inner = String::from_utf8_lossy(inner);
    let one = |number: usize| if alike { inner.to_string() } else { told_apart(&inner, number, open) };
    let whole = |numbers: &mut dyn Iterator<Item = usize>| {
        let all: Vec<String> = numbers.map(one).collect();
        format!("{open}{}{close}", all.join(separator)).into_bytes()
    };
    let (forward, backward) = (whole(&mut (0..times)), whole(&mut (0..times).rev()));
    let mut grown = Vec::new();
    let (mut rest, mut count) = (input, 0_usize);
    while let Some(at) = rest.windows(value.len()).position(|window| window == value).filter(|_| count < 2) {
        grown.extend_from_slice(&rest[..at]);
        grown.extend_from_slice(if count == 0 { &forward } else { &backward });
        rest = &rest[at + value.len()..];
        count += 1;
    }
    grown.extend_from_slice(rest);
    Some(grown)
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

/// Whether the long one takes far too long against the short one; if so, by how much.
pub(crate) fn is_superlinear(grown: &Grown, run: &dyn Fn(&[u8]) -> String) -> Option<String> {
    // Others use this machine too: only what is slow every time is slow.
    let mut told = None;
    for repeats in [1, 3, 5, 8] {
        let (short, long) = best(grown, run, repeats);
        if long <= short.max(MEASURABLE) * ALLOWED {
            return None;
        }
        told =
            Some(format!("{} bytes take {short:?}, {} bytes {long:?}", grown.short.len(), grown.long.len()));
    }
    told
}

fn best(grown: &Grown, run: &dyn Fn(&[u8]) -> String, repeats: usize) -> (Duration, Duration) {
    let time = |input: &[u8]| {
        let begun = Instant::now();
        let _ = run(input);
        begun.elapsed()
    };
    let (mut short, mut long) = (Duration::MAX, Duration::MAX);
    for _ in 0..repeats {
        short = short.min(time(&grown.short));
        long = long.min(time(&grown.long));
    }
    (short, long)
}

/// The measure itself finds what is quadratic, and lets pass what is not.
#[test]
fn what_is_quadratic_is_found() {
    let grown = Grown { short: vec![1; 2_000], long: vec![1; 16_000] };
    let linear = |input: &[u8]| {
        let sum = (0..200_u64).map(|turn| input.iter().map(|byte| u64::from(*byte) ^ turn).sum::<u64>());
        format!("{}", sum.fold(0, u64::wrapping_add))
    };
    let quadratic = |input: &[u8]| {
        let turns = input.iter().map(|turn| input.iter().map(|byte| u64::from(*byte ^ *turn)).sum::<u64>());
        format!("{}", turns.fold(0, u64::wrapping_add))
    };
    assert_eq!(is_superlinear(&grown, &linear), None);
    assert!(is_superlinear(&grown, &quadratic).is_some());
}
