//! Text that others wrote, kept within bounds.

use std::borrow::Cow;

/// Characters of a parser's complaint that are worth showing: it may quote all that it could not read.
pub(crate) const MAX_FAULT: usize = 200;

/// A text in which control characters stand escaped: nobody's words move a cursor or begin a line.
///
/// ```
/// assert_eq!(kausality_api::text::plain("alice\u{1b}[2J\n"), "alice\\u{1b}[2J\\n");
/// assert_eq!(kausality_api::text::plain("déjà vu"), "déjà vu");
/// ```
#[must_use]
pub fn plain(text: &str) -> Cow<'_, str> {
    // Mostly it is ASCII, which is looked at byte by byte.
    let has_control = match text.is_ascii() {
        true => text.bytes().any(|byte| byte.is_ascii_control()),
        false => text.chars().any(char::is_control),
    };
    if !has_control {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        if character.is_control() {
            plain.extend(character.escape_default());
        } else {
            plain.push(character);
        }
    }
    Cow::Owned(plain)
}

/// At most `max` characters of `text`, with `…` in place of what was cut.
///
/// ```
/// assert_eq!(kausality_api::text::shorten("déjà vu", 5), "déjà…");
/// assert_eq!(kausality_api::text::shorten("short", 5), "short");
/// ```
#[must_use]
pub fn shorten(text: &str, max: usize) -> String {
    if text.len() <= max || text.chars().count() <= max {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(max.saturating_sub(1)).collect();
    short.push('…');
    short
}

/// As much of `text` as takes `max` bytes at most in JSON, without its quotes, with `…` in place of what was cut.
///
/// ```
/// assert_eq!(kausality_api::text::fit("déjà vu", 8), "déj…");
/// assert_eq!(kausality_api::text::fit("a\u{1}\u{1}", 12), "a\u{1}…");
/// assert_eq!(kausality_api::text::fit("short", 5), "short");
/// ```
#[must_use]
pub fn fit(text: &str, max: usize) -> String {
    let bytes = |character: char| match character {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        '\0'..='\u{1f}' => 6,
        other => other.len_utf8(),
    };
    let (mut used, mut end) = (0, 0);
    let room = max.saturating_sub('…'.len_utf8());
    for (at, character) in text.char_indices() {
        if used <= room {
            end = at;
        }
        used += bytes(character);
        if used > max {
            return format!("{}…", &text[..end]);
        }
    }
    text.to_owned()
}

/// At most `max` characters of `text`, with `…` in place of what was cut out of its middle: what quotes a long value often
/// says at its end what is wrong with it.
///
/// ```
/// assert_eq!(kausality_api::text::shorten_middle("names: long long long: too long", 17), "names: l…too long");
/// assert_eq!(kausality_api::text::shorten_middle("short", 5), "short");
/// ```
#[must_use]
pub fn shorten_middle(text: &str, max: usize) -> String {
    let count = text.chars().count();
    if count <= max {
        return text.to_owned();
    }
    let kept = max.saturating_sub(1);
    let tail = kept / 2;
    let mut short: String = text.chars().take(kept - tail).collect();
    short.push('…');
    short.extend(text.chars().skip(count - tail));
    short
}
