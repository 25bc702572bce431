//! Annotations and labels of a Secret that quote its values: people and tools leave them behind.

use std::cell::Cell;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::Value;

use super::Cover;

/// Bytes of the shortest value that is looked for within a text: a shorter one is in every other text by chance.
const SHORTEST: usize = 4;

/// The same of a value that is not a Secret's: many are no secrets, such as the password of a test.
const SHORTEST_HIDDEN: usize = 8;

/// How much is searched for quotes: bytes, times the values that are looked for in them.
const MAX_SEARCHED: usize = 1 << 27;

/// What it takes to begin a search, as if it were so many bytes.
const BEGINNING: usize = 64;

/// The values of Secrets in every form in which they may be quoted: as they are, and in base64.
pub(super) struct Quotes {
    values: Vec<String>,
    /// How much may still be searched.
    left: Cell<usize>,
}

impl Quotes {
    /// The values of these, and what a cover hides of them.
    pub(super) fn of<'a>(objects: impl IntoIterator<Item = &'a Value>, cover: &Cover<'_>) -> Self {
        let mut quotes: Vec<String> = Vec::new();
        quotes.extend(cover.hidden().filter(|text| text.len() >= SHORTEST_HIDDEN).map(ToOwned::to_owned));
        for secret in objects.into_iter().filter(|_| cover.is_of_secret()) {
            for value in values(secret, "data") {
                quotes.extend(STANDARD.decode(value).ok().and_then(|bytes| String::from_utf8(bytes).ok()));
                quotes.push(value.trim_end_matches('=').to_owned());
            }
            for value in values(secret, "stringData") {
                quotes.push(STANDARD.encode(value).trim_end_matches('=').to_owned());
                quotes.push(value.to_owned());
            }
        }
        quotes.retain(|quote| !quote.trim().is_empty());
        Self { values: quotes, left: Cell::new(MAX_SEARCHED) }
    }

    /// Whether a text holds one of them. One that there is no time to search is taken to.
    pub(super) fn are_in(&self, text: &str) -> bool {
        let searched = self.values.len().saturating_mul(text.len() + BEGINNING);
        let Some(left) = self.left.get().checked_sub(searched) else { return true };
        self.left.set(left);
        self.values.iter().any(|quote| match quote.trim() {
            short if short.len() < SHORTEST => text.trim() == short,
            quote => text.contains(quote),
        })
    }
}

fn values<'a>(secret: &'a Value, field: &str) -> impl Iterator<Item = &'a str> {
    let map = secret.get(field).and_then(Value::as_object);
    map.into_iter().flat_map(serde_json::Map::values).filter_map(Value::as_str)
}
