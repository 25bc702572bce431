//! Intent: whether two objects want the same, and a hash that says so across time.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{self, MapAccess, SeqAccess, Visitor},
};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use crate::review::{Intent, Text};

/// Hash of an intent: independent of the order of keys and of white space.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct IntentHash(u64);

impl IntentHash {
    /// Hashes an intent.
    #[must_use]
    pub fn of(intent: &Intent<'_>) -> Self {
        let mut fields: Vec<_> = intent.iter().collect();
        fields.sort_by(|(a, _), (b, _)| a.cmp(b));
        let mut bytes = Vec::with_capacity(fields.iter().map(|(_, raw)| raw.get().len()).sum());
        for (key, raw) in fields {
            string(&mut bytes, b'k', key);
            match serde_json::from_str::<Node<'_>>(raw.get()) {
                Ok(node) => node.encode(&mut bytes),
                // Deeper than a parser will go. The text itself is a sound, if stricter, identity.
                Err(_) => string(&mut bytes, b'r', raw.get()),
            }
        }
        let digest = Sha256::digest(&bytes);
        Self(digest.iter().take(8).fold(0, |sum, byte| (sum << 8) | u64::from(*byte)))
    }

    /// Reads a hash from an annotation.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        (text.len() == 16).then(|| u64::from_str_radix(text, 16).ok().map(Self))?
    }
}

impl fmt::Display for IntentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Debug for IntentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Whether both want the same. Equal bytes settle it; only where they differ is their meaning compared.
#[must_use]
pub fn same(old: &Intent<'_>, new: &Intent<'_>) -> bool {
    fn sorted<'i, 'a>(intent: &'i Intent<'a>) -> Vec<&'i (Text<'a>, &'a RawValue)> {
        let mut fields: Vec<_> = intent.iter().collect();
        fields.sort_by(|(a, _), (b, _)| a.cmp(b));
        fields
    }
    let named = |((a, _), (b, _)): (&Field<'_>, &Field<'_>)| a == b;
    let alike = |((key, a), (other, b)): (&Field<'_>, &Field<'_>)| {
        key == other && (a.get() == b.get() || same_meaning(a, b))
    };
    // An API server writes the fields in one order; anybody else need not.
    old.len() == new.len()
        && if old.iter().zip(new.iter()).all(named) {
            old.iter().zip(new.iter()).all(alike)
        } else {
            sorted(old).into_iter().zip(sorted(new)).all(alike)
        }
}

type Field<'a> = (Text<'a>, &'a RawValue);

fn same_meaning(a: &RawValue, b: &RawValue) -> bool {
    match (serde_json::from_str::<Node<'_>>(a.get()), serde_json::from_str::<Node<'_>>(b.get())) {
        (Ok(a), Ok(b)) => a == b,
        _ => false,
    }
}

/// A JSON value with sorted maps and numbers by value, so that equal meaning is equality.
#[derive(Debug, PartialEq)]
enum Node<'a> {
    Null,
    Bool(bool),
    Integer(i64),
    Natural(u64),
    Float(u64),
    Text(Text<'a>),
    List(Vec<Node<'a>>),
    Map(Vec<(Text<'a>, Node<'a>)>),
}

impl Node<'_> {
    /// Appends an encoding in which no two different nodes look alike.
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Null => out.push(b'n'),
            Self::Bool(value) => out.extend([b'b', u8::from(*value)]),
            Self::Integer(value) => number(out, b'i', value.to_be_bytes()),
            Self::Natural(value) => number(out, b'u', value.to_be_bytes()),
            Self::Float(value) => number(out, b'f', value.to_be_bytes()),
            Self::Text(text) => string(out, b's', text),
            Self::List(items) => {
                number(out, b'[', (items.len() as u64).to_be_bytes());
                items.iter().for_each(|item| item.encode(out));
            }
            Self::Map(entries) => {
                number(out, b'{', (entries.len() as u64).to_be_bytes());
                for (key, value) in entries {
                    string(out, b'k', key);
                    value.encode(out);
                }
            }
        }
    }
}

fn number(out: &mut Vec<u8>, tag: u8, bytes: [u8; 8]) {
    out.push(tag);
    out.extend(bytes);
}

fn string(out: &mut Vec<u8>, tag: u8, text: &str) {
    number(out, tag, (text.len() as u64).to_be_bytes());
    out.extend(text.as_bytes());
}

impl<'de> Deserialize<'de> for Node<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Node<'de>, E> {
        Ok(Node::Null)
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Node<'de>, E> {
        Ok(Node::Bool(value))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Node<'de>, E> {
        Ok(Node::Integer(value))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Node<'de>, E> {
        Ok(i64::try_from(value).map_or(Node::Natural(value), Node::Integer))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Node<'de>, E> {
        const EXACT: f64 = 9_007_199_254_740_992.0;
        // 3.0 is 3. The cast is exact: it is guarded by the range in which floats hold every integer.
        if value.fract() == 0.0 && value.abs() <= EXACT {
            return Ok(Node::Integer(value as i64));
        }
        Ok(Node::Float(value.to_bits()))
    }

    fn visit_borrowed_str<E: de::Error>(self, value: &'de str) -> Result<Node<'de>, E> {
        Ok(Node::Text(value.into()))
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<Node<'de>, E> {
        Ok(Node::Text(value.to_owned().into()))
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut seq: S) -> Result<Node<'de>, S::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(Node::List(items))
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Node<'de>, M::Error> {
        let mut entries: Vec<(Text<'de>, Node<'de>)> = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        entries.sort_by(|(a, _), (b, _)| a.cmp(b));
        Ok(Node::Map(entries))
    }
}

#[cfg(test)]
mod tests;
