//! The meaning of a value as bytes: two values mean the same exactly if their encodings are equal.
//!
//! Every part is tagged and has a fixed or a stated length, so that no two different values, and no two different
//! sequences of values, share an encoding. Hashes of diffs are built on this and are kept in approvals and in names
//! of objects: a change of the format is a break, and `hashes_are_pinned` fails on it.

use crate::key;
use crate::path::{Path, Step};
use crate::scalar::Scalar;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::fmt::Write;

/// Collects encoded parts.
#[derive(Default)]
pub(crate) struct Encoder(Vec<u8>);

/// What is left to encode. An explicit stack keeps deep values off the call stack.
enum Part<'a> {
    Name(&'a str),
    Value(Option<&'a str>, &'a Value),
}

impl Encoder {
    /// Encodes a value that stands in the field of that name, which decides whether a list is ordered.
    pub(crate) fn value(&mut self, field: Option<&str>, value: &Value) {
        let mut left = vec![Part::Value(field, value)];
        while let Some(part) = left.pop() {
            match part {
                Part::Name(name) => self.bytes(name.as_bytes()),
                Part::Value(_, Value::Object(map)) => {
                    self.tag(b'o');
                    self.count(map.len());
                    // Sorted here, since serde_json keeps insertion order if anyone enables `preserve_order`.
                    let mut fields: Vec<_> = map.iter().collect();
                    fields.sort_unstable_by(|a, b| b.0.cmp(a.0));
                    left.extend(fields.into_iter().flat_map(|(name, value)| {
                        [Part::Value(Some(name.as_str()), value), Part::Name(name)]
                    }));
                }
                Part::Value(field, Value::Array(list)) => {
                    self.tag(b'a');
                    self.count(list.len());
                    match key::items(field, [list]) {
                        Some([items]) => {
                            left.extend(items.into_values().rev().map(|(_, v)| Part::Value(None, v)))
                        }
                        None => left.extend(list.iter().rev().map(|v| Part::Value(None, v))),
                    }
                }
                Part::Value(_, scalar) => self.scalar(&Scalar::or_null(scalar).unwrap_or(Scalar::Null)),
            }
        }
    }

    pub(crate) fn path(&mut self, path: &Path) {
        self.count(path.steps().len());
        for step in path.steps() {
            match step {
                Step::Field(name) => {
                    self.tag(b'F');
                    self.bytes(name.as_bytes());
                }
                Step::Key(parts) => {
                    self.tag(b'K');
                    self.count(parts.len());
                    for (name, value) in parts {
                        self.bytes(name.as_bytes());
                        self.scalar(value);
                    }
                }
                Step::Value(Scalar::Text(text)) => {
                    self.tag(b'V');
                    self.bytes(text.as_bytes());
                }
                Step::Value(scalar) => {
                    self.tag(b'W');
                    self.scalar(scalar);
                }
                Step::Index(index) => {
                    self.tag(b'I');
                    self.count(*index);
                }
            }
        }
    }

    fn scalar(&mut self, scalar: &Scalar) {
        match scalar {
            Scalar::Null => self.tag(b'n'),
            Scalar::Bool(false) => self.tag(b'f'),
            Scalar::Bool(true) => self.tag(b't'),
            Scalar::Integer(value) => {
                self.tag(b'i');
                self.0.extend(value.to_be_bytes());
            }
            Scalar::Decimal(value) => {
                self.tag(b'd');
                self.bytes(value.as_bytes());
            }
            Scalar::Text(text) => {
                self.tag(b's');
                self.bytes(text.as_bytes());
            }
        }
    }

    pub(crate) fn tag(&mut self, tag: u8) {
        self.0.push(tag);
    }

    pub(crate) fn count(&mut self, count: usize) {
        self.0.extend((count as u64).to_be_bytes());
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.count(bytes.len());
        self.0.extend(bytes);
    }

    /// The first `digits` hexadecimal digits of the SHA-256 of all that was encoded.
    pub(crate) fn digest(&self, digits: usize) -> String {
        let mut hex = Sha256::digest(&self.0).iter().fold(String::new(), |mut hex, byte| {
            // Writing to a String cannot fail.
            let _ = write!(hex, "{byte:02x}");
            hex
        });
        hex.truncate(digits);
        hex
    }
}

/// Whether two values of a field mean the same. Takes no call stack, however deep the values are.
pub(crate) fn same(field: Option<&str>, a: &Value, b: &Value) -> bool {
    let [a, b] = [a, b].map(|value| {
        let mut encoder = Encoder::default();
        encoder.value(field, value);
        encoder.0
    });
    a == b
}

#[cfg(test)]
mod tests;
