//! Names from content.

use serde_json::Value;
use sha2::{Digest, Sha256};

/// Letters and digits that cannot spell a word, nor be read as one another.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// Ten characters that stand for a value: the same for the same value, in whatever order its fields are.
pub(crate) fn short(value: &Value) -> String {
    let mut hasher = Sha256::new();
    feed(&mut hasher, value);
    let digest = hasher.finalize();
    let mut number = digest.iter().take(8).fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
    let mut name = String::with_capacity(10);
    for _ in 0..10 {
        // The remainder is below 27, so it indexes the alphabet.
        name.push(char::from(ALPHABET[usize::try_from(number % 27).unwrap_or_default()]));
        number /= 27;
    }
    name
}

/// Feeds a value with its structure, so that different values cannot look the same.
fn feed(hasher: &mut Sha256, value: &Value) {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(key, _)| *key);
            hasher.update(b"{");
            for (key, value) in fields {
                feed_text(hasher, key);
                feed(hasher, value);
            }
            hasher.update(b"}");
        }
        Value::Array(items) => {
            hasher.update(b"[");
            items.iter().for_each(|item| feed(hasher, item));
            hasher.update(b"]");
        }
        Value::String(text) => feed_text(hasher, text),
        other => feed_text(hasher, &format!("\0{other}")),
    }
}

fn feed_text(hasher: &mut Sha256, text: &str) {
    hasher.update((text.len() as u64).to_be_bytes());
    hasher.update(text.as_bytes());
}

#[cfg(test)]
mod tests;
