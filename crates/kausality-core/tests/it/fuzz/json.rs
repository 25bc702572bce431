//! Where the values in a JSON text are, however broken the rest of it is.

use std::ops::Range;

/// The values of a text: strings, lists, objects, numbers and words, keys of objects excepted.
pub(crate) fn values(text: &[u8]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut open: Vec<usize> = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let begin = at;
        match text[at] {
            b'{' | b'[' => {
                open.push(at);
                at += 1;
                continue;
            }
            b'}' | b']' => {
                at += 1;
                if let Some(begin) = open.pop() {
                    found.push(begin..at);
                }
                continue;
            }
            b'"' => {
                at += 1;
                while at < text.len() && text[at] != b'"' {
                    at += if text[at] == b'\\' { 2 } else { 1 };
                }
                at = (at + 1).min(text.len());
                if text.get(at) == Some(&b':') {
                    continue;
                }
            }
            byte if byte.is_ascii_alphanumeric() || byte == b'-' => {
                while at < text.len() && (text[at].is_ascii_alphanumeric() || b"+-.".contains(&text[at])) {
                    at += 1;
                }
            }
            _ => {
                at += 1;
                continue;
            }
        }
        found.push(begin..at);
    }
    found
}

/// The items of a list, or the members of an object, each as text.
pub(crate) fn items(value: &[u8]) -> Vec<&[u8]> {
    let Some(inner) = value.get(1..value.len().saturating_sub(1)) else { return Vec::new() };
    let (mut depth, mut quoted, mut escaped, mut begin) = (0_i32, false, false, 0);
    let mut found = Vec::new();
    for (at, byte) in inner.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            _ if quoted => {}
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            b',' if depth == 0 => {
                found.push(&inner[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    if begin < inner.len() {
        found.push(&inner[begin..]);
    }
    found
}

#[test]
fn values_and_items_are_found() {
    let text = br#"{"a":[1,"x,]",{"b":null}],"c":-1.5e3}"#;
    let shown = |range: Range<usize>| std::str::from_utf8(&text[range]).unwrap();
    let mut found: Vec<&str> = values(text).into_iter().map(shown).collect();
    found.sort_unstable();
    let all = [
        r#""x,]""#,
        "-1.5e3",
        "1",
        r#"[1,"x,]",{"b":null}]"#,
        "null",
        r#"{"a":[1,"x,]",{"b":null}],"c":-1.5e3}"#,
        r#"{"b":null}"#,
    ];
    assert_eq!(found, all);
    let of = |text: &'static str| {
        items(text.as_bytes()).into_iter().map(|item| std::str::from_utf8(item).unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(of(r#"[1,"x,]",{"b":[1,2]}]"#), ["1", r#""x,]""#, r#"{"b":[1,2]}"#]);
    assert_eq!(of(r#"{"a":1,"b":2}"#), [r#""a":1"#, r#""b":2"#]);
    assert!(of("[]").is_empty() && of("").is_empty());
}
