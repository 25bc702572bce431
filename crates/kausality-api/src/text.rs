//! Text that others wrote, kept within bounds.

/// Characters of a parser's complaint that are worth showing: it may quote all that it could not read.
pub(crate) const MAX_FAULT: usize = 200;

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
