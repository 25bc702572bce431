//! Short texts.

use jiff::Timestamp;
use kausality_api::text::plain;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// How long ago something was, as kubectl says it: `5s`, `3m`, `2h`, `4d`.
pub(crate) fn age(now: Timestamp, then: Timestamp) -> String {
    let seconds = now.duration_since(then).as_secs().max(0);
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7200 => format!("{}m", seconds / 60),
        7200..172_800 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// A text of others on one line, without what would move the cursor, no wider than this.
pub(crate) fn fit(text: &str, width: usize) -> String {
    let text = plain(text).replace(['\n', '\t'], " ");
    if text.width() <= width {
        return text;
    }
    let mut out = String::new();
    let mut used = 1;
    for letter in text.chars() {
        used += letter.width().unwrap_or(0);
        if used > width {
            break;
        }
        out.push(letter);
    }
    if width > 0 {
        out.push('…');
    }
    out
}

/// A text of others on as many lines as it takes.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let (mut line, mut used) = (String::new(), 0);
    for letter in plain(text).chars() {
        let columns = letter.width().unwrap_or(0);
        if used + columns > width && used > 0 {
            lines.push(std::mem::take(&mut line));
            used = 0;
        }
        line.push(letter);
        used += columns;
    }
    lines.push(line);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_by_the_columns_that_they_take() {
        assert_eq!(fit("replicas", 8), "replicas");
        assert_eq!(fit("replicas", 5), "repl…");
        assert_eq!(fit("日本語", 5), "日本…");
        assert!(!fit("\u{1b}[31mred", 20).contains('\u{1b}'));
        assert_eq!(fit("a", 0), "");
    }

    #[test]
    fn long_texts_go_on_in_the_next_line() {
        assert_eq!(wrap("replicas", 3), ["rep", "lic", "as"]);
        assert_eq!(wrap("日本語", 5), ["日本", "語"]);
        assert_eq!(wrap("", 5), [""]);
        assert_eq!(wrap("ab", 0), ["a", "b"]);
        assert_eq!(wrap("a\u{1b}", 20), ["a\\u{1b}"]);
    }

    #[test]
    fn ages_are_as_kubectl_says_them() {
        let then = Timestamp::UNIX_EPOCH;
        let after = |seconds: i64| age(then + jiff::SignedDuration::from_secs(seconds), then);
        assert_eq!([119, 120, 7199, 7200, 172_800].map(after), ["119s", "2m", "119m", "2h", "2d"]);
        assert_eq!(age(then, then + jiff::SignedDuration::from_secs(5)), "0s");
    }
}
