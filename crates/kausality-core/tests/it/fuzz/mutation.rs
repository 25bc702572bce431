//! What may happen to an input.

use crate::fuzz::{dice::Dice, json};

/// How long an input gets at most. The webhook reads no more than 8 MiB; what matters shows in less.
const MAX_BYTES: usize = 256 * 1024;

/// Words that mean something to somebody, or break something.
const WORDS: &[&str] = &[
    "null",
    "true",
    "{}",
    "[]",
    "\"\"",
    "\"*\"",
    "-0",
    "1e999",
    "-1e-999",
    "18446744073709551616",
    "-9223372036854775809",
    "0.1e1",
    "1E400",
    "\"\\ud800\"",
    "\"\\udc00\\ud800\"",
    "\"\\u0000\"",
    "\"\u{feff}\"",
    "NaN",
    "\"2026-13-45T99:99:99Z\"",
    "\"9999-12-31T23:59:60Z\"",
    "\"-009999-01-01T00:00:00Z\"",
    "\"true\"",
    "\"false\"",
    "\"once\"",
    "\"always\"",
    "\"generation\"",
    "\"enforce\"",
    "\"UPDATE\"",
    "\"DELETE\"",
    "\"CREATE\"",
    "\"CONNECT\"",
    "\"status\"",
    "\"scale\"",
    "\"system:serviceaccount:kube-system:deployment-controller\"",
    "[{\"apiVersion\":\"*\",\"kind\":\"*\",\"name\":\"*\",\"mode\":\"always\"}]",
    "{\"kausality.io/freeze\":\"true\"}",
    "{\"kausality.io/trace\":\"[]\"}",
    "{\"kausality.io/approvals\":\"[1]\"}",
    "{\"kausality.io/mode\":\"enforce\"}",
    "\"kausality.io/settled\"",
    "\"metadata\":",
    "\"annotations\":",
    "\"ownerReferences\":",
    "\"managedFields\":",
    "\"deletionTimestamp\":",
    "\"generation\":",
    "\"spec\":",
    "\"status\":",
    "\"object\":",
    "\"oldObject\":",
    "&a [*a]",
    "*a",
    "!!binary",
    "? [",
    "---\n",
    "%YAML 1.2\n",
    "\t",
    "\r\n",
    "<<: ",
];

/// Changes an input, several times.
pub(crate) fn mutate(dice: &mut Dice, input: &[u8], others: &[Vec<u8>]) -> Vec<u8> {
    let mut text = input.to_vec();
    for _ in 0..=dice.below(4) {
        change(dice, &mut text, others);
        text.truncate(MAX_BYTES);
    }
    text
}

fn change(dice: &mut Dice, text: &mut Vec<u8>, others: &[Vec<u8>]) {
    match dice.below(16) {
        0 => flip(dice, text),
        1 => {
            let range = range(dice, text);
            text.drain(range);
        }
        2 => {
            let copied = text[range(dice, text)].to_vec();
            insert(dice, text, &copied);
        }
        3 => {
            let word = word(dice);
            insert(dice, text, word.as_bytes());
        }
        4 => {
            let other = dice.pick(others);
            let part = other[range(dice, other)].to_vec();
            let range = range(dice, text);
            text.splice(range, part);
        }
        5 => text.truncate(dice.below(text.len() + 1)),
        6 => {
            // None of these is UTF-8.
            let byte = *dice.pick(&[0xff, 0xc0, 0x80, 0xed]);
            insert(dice, text, &[byte]);
        }
        7 | 8 => replace(dice, text, |dice, _| word(dice).into()),
        9 | 10 => {
            let other = dice.pick(others).clone();
            replace(dice, text, |dice, _| {
                let values = json::values(&other);
                if values.is_empty() { Vec::new() } else { other[dice.pick(&values).clone()].to_vec() }
            });
        }
        11 => replace(dice, text, nested),
        12 => replace(dice, text, |dice, _| long(dice)),
        13 => replace(dice, text, doubled),
        14 => replace(dice, text, |dice, value| {
            // A value as text in text: annotations hold JSON.
            let value = String::from_utf8_lossy(value).into_owned();
            let key = *dice.pick(&[
                "approvals",
                "rejections",
                "trace",
                "freeze",
                "snooze",
                "controllers",
                "updaters",
            ]);
            let quoted = serde_json::Value::from(value).to_string();
            format!("{{\"annotations\":{{\"kausality.io/{key}\":{quoted}}}}}").into()
        }),
        _ => replace(dice, text, |dice, value| {
            let items = json::items(value);
            let kept: Vec<&[u8]> = items.into_iter().filter(|_| !dice.one_in(3)).collect();
            let (open, close) = if value.starts_with(b"{") { ("{", "}") } else { ("[", "]") };
            [open.as_bytes(), &kept.join(&b","[..]), close.as_bytes()].concat()
        }),
    }
}

fn word(dice: &mut Dice) -> &'static str {
    WORDS[dice.below(WORDS.len())]
}

fn flip(dice: &mut Dice, text: &mut [u8]) {
    let at = dice.below(text.len());
    if let Some(byte) = text.get_mut(at) {
        *byte ^= 1 << dice.below(8);
    }
}

fn insert(dice: &mut Dice, text: &mut Vec<u8>, part: &[u8]) {
    let at = dice.below(text.len() + 1);
    text.splice(at..at, part.iter().copied());
}

/// Some of a text, mostly little.
fn range(dice: &mut Dice, text: &[u8]) -> std::ops::Range<usize> {
    let begin = dice.below(text.len() + 1);
    let most = if dice.one_in(4) { text.len() } else { 64 };
    let length = dice.below(most + 1).min(text.len() - begin);
    begin..begin + length
}

/// Puts something else into the place of a value.
fn replace(dice: &mut Dice, text: &mut Vec<u8>, by: impl FnOnce(&mut Dice, &[u8]) -> Vec<u8>) {
    let values = json::values(text);
    if !values.is_empty() {
        let place = dice.pick(&values).clone();
        let new = by(dice, &text[place.clone()]);
        text.splice(place, new);
    }
}

/// A value in many lists or objects: up to what parsers bear, just beyond, and far beyond.
fn nested(dice: &mut Dice, value: &[u8]) -> Vec<u8> {
    let depth = *dice.pick(&[10, 100, 120, 126, 127, 128, 129, 1_000, 20_000]);
    let (open, close) = *dice.pick(&[("[", "]"), ("{\"a\":", "}"), ("[{\"spec\":", "}]")]);
    let close = if dice.one_in(4) { String::new() } else { close.repeat(depth) };
    [open.repeat(depth).as_bytes(), value, close.as_bytes()].concat()
}

/// A long string, number or list.
fn long(dice: &mut Dice) -> Vec<u8> {
    let length = *dice.pick(&[100, 300, 1_000, 5_000, 40_000]);
    match dice.below(6) {
        0 => format!("\"{}\"", "x".repeat(length)),
        1 => format!("\"{}\"", "\\u0001".repeat(length / 6)),
        2 => format!("\"{}\"", "🦀".repeat(length / 4)),
        3 => "9".repeat(length),
        4 => format!("[{}0]", "0,".repeat(length / 2)),
        _ => format!("\"{}\"", "a,".repeat(length / 2)),
    }
    .into()
}

/// A list or an object with all its members twice, or many times: keys come again.
fn doubled(dice: &mut Dice, value: &[u8]) -> Vec<u8> {
    let items = json::items(value);
    if items.is_empty() || !(value.starts_with(b"{") || value.starts_with(b"[")) {
        return [b"[", value, b",", value, b"]"].concat();
    }
    let times = *dice.pick(&[2, 2, 3, 50]);
    let inner = items.join(&b","[..]);
    let all = vec![inner.as_slice(); times].join(&b","[..]);
    let (open, close) = if value.starts_with(b"{") { ("{", "}") } else { ("[", "]") };
    [open.as_bytes(), &all, close.as_bytes()].concat()
}
