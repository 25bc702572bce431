//! Label selectors as text: `a=b,c!=d,e in (f,g),h,!i,j>1`.
//!
//! What is not one is refused: a selector that is read wrongly selects what nobody meant, and may delete it.

use super::{Requirement, Test};
use crate::validate::names;

/// Reads a selector. None at all selects everything.
pub(super) fn parse(text: &str) -> Result<Vec<Requirement>, String> {
    let mut rest = Words { words: words(text), next: 0 };
    let mut all = Vec::new();
    if matches!(rest.peek(), Word::End) {
        return Ok(all);
    }
    loop {
        if !matches!(rest.peek(), Word::Name(_) | Word::Sign("!")) {
            return Err(format!(
                "found '{}', expected: !, identifier, or 'end of string'",
                rest.peek().text()
            ));
        }
        let requirement = requirement(&mut rest);
        all.push(requirement.map_err(|reason| format!("unable to parse requirement: {reason}"))?);
        match rest.take() {
            Word::End => return Ok(all),
            Word::Sign(",") => {}
            other => return Err(format!("found '{}', expected: ',' or 'end of string'", other.text())),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Word<'t> {
    /// A key, a value, `in` or `notin`.
    Name(&'t str),
    Sign(&'t str),
    End,
}

impl<'t> Word<'t> {
    fn text(self) -> &'t str {
        match self {
            Self::Name(text) | Self::Sign(text) => text,
            Self::End => "",
        }
    }
}

struct Words<'t> {
    words: Vec<Word<'t>>,
    next: usize,
}

impl<'t> Words<'t> {
    fn peek(&self) -> Word<'t> {
        self.words.get(self.next).copied().unwrap_or(Word::End)
    }

    fn take(&mut self) -> Word<'t> {
        let word = self.peek();
        self.next += 1;
        word
    }

    fn name(&mut self) -> Result<&'t str, String> {
        match self.take() {
            Word::Name(name) => Ok(name),
            other => Err(format!("found '{}', expected: identifier", other.text())),
        }
    }
}

fn words(text: &str) -> Vec<Word<'_>> {
    let is_sign = |letter: char| "=!(),<>".contains(letter);
    let is_space = |letter: char| " \t\r\n".contains(letter);
    let mut words = Vec::new();
    let mut rest = text.trim_start_matches(is_space);
    while !rest.is_empty() {
        let double = rest.starts_with("==") || rest.starts_with("!=");
        let (length, sign) = match rest.find(|letter| is_sign(letter) || is_space(letter)) {
            Some(0) => (if double { 2 } else { 1 }, true),
            Some(end) => (end, false),
            None => (rest.len(), false),
        };
        let (word, after) = rest.split_at(length);
        words.push(if sign { Word::Sign(word) } else { Word::Name(word) });
        rest = after.trim_start_matches(is_space);
    }
    words
}

fn requirement(rest: &mut Words<'_>) -> Result<Requirement, String> {
    let absent = rest.peek() == Word::Sign("!");
    if absent {
        rest.take();
    }
    let key = rest.name()?;
    if !names::is_qualified(key) {
        return Err(format!("key: Invalid value: {key:?}: {}", names::QUALIFIED));
    }
    let key = key.to_owned();
    if absent {
        return Ok(Requirement { key, test: Test::Absent });
    }
    if matches!(rest.peek(), Word::End | Word::Sign(",")) {
        return Ok(Requirement { key, test: Test::Exists });
    }
    let test = match rest.take() {
        Word::Sign("=" | "==") => Test::In(vec![value(rest)?]),
        Word::Sign("!=") => Test::NotIn(vec![value(rest)?]),
        Word::Sign(">") => Test::Above(number(rest)?),
        Word::Sign("<") => Test::Below(number(rest)?),
        Word::Name("in") => Test::In(set(rest)?),
        Word::Name("notin") => Test::NotIn(set(rest)?),
        other => {
            return Err(format!("found '{}', expected: in, notin, =, ==, !=, gt, lt", other.text()));
        }
    };
    if let Test::In(values) | Test::NotIn(values) = &test
        && let Some(wrong) = values.iter().find(|value| !names::is_value(value))
    {
        return Err(format!("values[0][{key}]: Invalid value: {wrong:?}: {}", names::LABEL_VALUE));
    }
    Ok(Requirement { key, test })
}

/// One value, which may be empty.
fn value(rest: &mut Words<'_>) -> Result<String, String> {
    match rest.peek() {
        Word::End | Word::Sign(",") => Ok(String::new()),
        _ => Ok(rest.name()?.to_owned()),
    }
}

fn number(rest: &mut Words<'_>) -> Result<i64, String> {
    let value = value(rest)?;
    let why = "for 'Gt', 'Lt' operators, the value must be an integer";
    // What is compared is a label's value, too, and those begin with no sign.
    let number = value.parse().ok().filter(|_| names::is_value(&value));
    number.ok_or_else(|| format!("values[0]: Invalid value: {value:?}: {why}"))
}

/// `(a,b)`. Between commas there may be nothing, which is the empty value.
fn set(rest: &mut Words<'_>) -> Result<Vec<String>, String> {
    match rest.take() {
        Word::Sign("(") => {}
        other => return Err(format!("found '{}', expected: '('", other.text())),
    }
    let mut values = Vec::new();
    loop {
        values.push(match rest.peek() {
            Word::Name(name) => {
                rest.take();
                name.to_owned()
            }
            _ => String::new(),
        });
        match rest.take() {
            Word::Sign(",") => {}
            Word::Sign(")") => return Ok(values),
            other => return Err(format!("found '{}', expected: ',' or ')'", other.text())),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::Selector;
    use super::parse;

    #[test]
    fn labels_are_matched_by_every_operator() {
        let labels = json!({"app": "web", "tier": "front", "rank": "7", "empty": ""});
        let check = |text: &str, expected: bool| {
            let selector = Selector { labels: parse(text).unwrap(), fields: Vec::new() };
            assert_eq!(selector.matches_labels(Some(&labels)), expected, "{text}");
        };
        check("", true);
        check("app=web,tier==front", true);
        check("app!=web", false);
        check("app in (web,api),!gone", true);
        check("app in(web)", true);
        check("app notin (web, api)", false);
        check("tier", true);
        check("!tier", false);
        check("other!=x", true);
        check("other=", false);
        check("empty=", true);
        check("empty in (,a)", true);
        check("empty in ()", true);
        check("rank>6,rank<8", true);
        check("rank>7", false);
        check("app>1", false);
        check("gone<1", false);
        check("in in (in)", false);
    }

    #[test]
    fn what_is_no_selector_selects_nothing() {
        for text in [
            "a b c",
            ",",
            ",,",
            "a=b,",
            "a=b=c",
            "a~b",
            "-a=b",
            "a in (b",
            "a in b",
            "a in",
            "a=b c",
            "a=-b",
            "a>x",
            "a>",
            "!a=b",
            "!",
            "=b",
            "a/b/c=d",
            "a=(b)",
            "(a)",
            "a in (b))",
            "a in (b c)",
            "!!a",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
