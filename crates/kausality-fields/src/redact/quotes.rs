//! Annotations and labels of a Secret that quote its values: people and tools leave them behind.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::Value;

use super::Cover;

/// Bytes of the shortest value that is looked for within a text: a shorter one is in every other text by chance.
const SHORTEST: usize = 4;

/// The same of a value that is not a Secret's: many are no secrets, such as the password of a test.
const SHORTEST_HIDDEN: usize = 8;

/// The values of Secrets in every form in which they may be quoted: as they are, and in base64.
#[derive(Default)]
pub(super) struct Quotes(Vec<String>);

impl Quotes {
    /// The values of these, and what a cover hides of them.
    pub(super) fn of<'a>(objects: impl IntoIterator<Item = &'a Value>, cover: &Cover<'_>) -> Self {
        let mut quotes = Self::default();
        quotes.0.extend(cover.hidden().filter(|text| text.len() >= SHORTEST_HIDDEN).map(ToOwned::to_owned));
        for secret in objects.into_iter().filter(|_| cover.is_of_secret()) {
            for value in values(secret, "data") {
                quotes.0.extend(STANDARD.decode(value).ok().and_then(|bytes| String::from_utf8(bytes).ok()));
                quotes.0.push(value.trim_end_matches('=').to_owned());
            }
            for value in values(secret, "stringData") {
                quotes.0.push(STANDARD.encode(value).trim_end_matches('=').to_owned());
                quotes.0.push(value.to_owned());
            }
        }
        quotes.0.retain(|quote| !quote.trim().is_empty());
        quotes
    }

    /// Whether a text holds one of them.
    pub(super) fn are_in(&self, text: &str) -> bool {
        self.0.iter().any(|quote| match quote.trim() {
            short if short.len() < SHORTEST => text.trim() == short,
            quote => text.contains(quote),
        })
    }
}

fn values<'a>(secret: &'a Value, field: &str) -> impl Iterator<Item = &'a str> {
    let map = secret.get(field).and_then(Value::as_object);
    map.into_iter().flat_map(serde_json::Map::values).filter_map(Value::as_str)
}
