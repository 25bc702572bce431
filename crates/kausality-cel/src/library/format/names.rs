//! Names of objects, labels and their values.

const MAX_LABEL: usize = 63;
const MAX_SUBDOMAIN: usize = 253;

/// What a prefix of a name is checked as. A hyphen at its end and what is before it are taken for a letter: that is
/// what API servers do, where only the hyphen was meant.
pub(super) fn prefix(text: &str) -> Vec<u8> {
    match text.as_bytes() {
        [kept @ .., _, b'-'] => kept.iter().copied().chain([b'a']).collect(),
        other => other.to_vec(),
    }
}

pub(super) fn dns1123_label(text: &[u8]) -> Vec<String> {
    let mut wrong = too_long(text, MAX_LABEL);
    if !is_label(text, is_lower) {
        wrong.push(if is_subdomain(text) {
            "it is a subdomain and no label: a label has no dots".to_owned()
        } else {
            "a label of RFC 1123 has lower case letters, digits and hyphens, and neither starts nor ends with a \
             hyphen: [a-z0-9]([-a-z0-9]*[a-z0-9])?"
                .to_owned()
        });
    }
    wrong
}

pub(super) fn dns1123_subdomain(text: &[u8]) -> Vec<String> {
    let mut wrong = too_long(text, MAX_SUBDOMAIN);
    if !is_subdomain(text) {
        wrong.push(
            "a subdomain of RFC 1123 has labels with dots between them, each of lower case letters, digits and \
             hyphens, and neither starting nor ending with a hyphen: \
             [a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
                .to_owned(),
        );
    }
    wrong
}

pub(super) fn dns1035_label(text: &[u8]) -> Vec<String> {
    let mut wrong = too_long(text, MAX_LABEL);
    if !(is_label(text, is_lower) && text.first().is_some_and(u8::is_ascii_lowercase)) {
        wrong.push(
            "a label of RFC 1035 has lower case letters, digits and hyphens, starts with a letter and does not end \
             with a hyphen: [a-z]([-a-z0-9]*[a-z0-9])?"
                .to_owned(),
        );
    }
    wrong
}

pub(super) fn label_value(text: &str) -> Vec<String> {
    let mut wrong = too_long(text.as_bytes(), MAX_LABEL);
    if !text.is_empty() && !is_label_part(text) {
        wrong.push(
            "the value of a label is empty, or has letters, digits, hyphens, underscores and dots, and starts and \
             ends with a letter or digit: (([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?"
                .to_owned(),
        );
    }
    wrong
}

/// As the keys of labels are.
pub(super) fn qualified_name(text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let name = match text.split_once('/') {
        Some((_, name)) if name.contains('/') => {
            return vec!["a qualified name has at most one slash, between a subdomain and a name".to_owned()];
        }
        Some(("", name)) => {
            wrong.push("what is before the slash is empty".to_owned());
            name
        }
        Some((prefix, name)) => {
            let of_prefix = dns1123_subdomain(prefix.as_bytes());
            wrong.extend(of_prefix.into_iter().map(|wrong| format!("before the slash: {wrong}")));
            name
        }
        None => text,
    };
    if name.is_empty() {
        wrong.push("the name is empty".to_owned());
    } else {
        wrong.extend(too_long(name.as_bytes(), MAX_LABEL));
    }
    if !is_label_part(name) {
        wrong.push(
            "a name has letters, digits, hyphens, underscores and dots, and starts and ends with a letter or digit: \
             ([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
                .to_owned(),
        );
    }
    wrong
}

fn too_long(text: &[u8], most: usize) -> Vec<String> {
    if text.len() > most { vec![format!("it has more than {most} bytes")] } else { vec![] }
}

fn is_lower(letter: u8) -> bool {
    letter.is_ascii_lowercase() || letter.is_ascii_digit()
}

/// Hyphens between letters of that sort.
fn is_label(text: &[u8], letter: fn(u8) -> bool) -> bool {
    let ends = [text.first(), text.last()];
    ends.into_iter().all(|end| end.is_some_and(|end| letter(*end)))
        && text.iter().all(|it| letter(*it) || *it == b'-')
}

fn is_subdomain(text: &[u8]) -> bool {
    text.split(|letter| *letter == b'.').all(|label| is_label(label, is_lower))
}

fn is_label_part(text: &str) -> bool {
    let ends = [text.bytes().next(), text.bytes().next_back()];
    ends.into_iter().all(|end| end.is_some_and(|end| end.is_ascii_alphanumeric()))
        && text.bytes().all(|letter| letter.is_ascii_alphanumeric() || b"-_.".contains(&letter))
}
