//! Paths that people write, to name fields as a [`Path`](super::Path) shows them.

use crate::render;

/// What is wrong with a path that somebody wrote, so that it can be none of an object.
pub fn fault(text: &str) -> Option<String> {
    if text.is_empty() {
        return Some("must not be empty".to_owned());
    }
    let mut rest = text;
    let mut first = true;
    while !rest.is_empty() {
        rest = match step(rest, first) {
            Ok(rest) => rest,
            Err(what) => {
                let place = text.len() - rest.len() + 1;
                return Some(format!(
                    "{what} at character {place}: fields are written as diffs show them, \
                     spec.replicas or spec.template.spec.containers[name=app].image"
                ));
            }
        };
        first = false;
    }
    None
}

/// What follows the first step, or what is wrong with that.
fn step(text: &str, first: bool) -> Result<&str, &'static str> {
    if let Some(inner) = text.strip_prefix('[') {
        return bracket(inner);
    }
    let name = match text.strip_prefix('.') {
        Some(_) if first => return Err("a dot"),
        Some(name) => name,
        None if first => text,
        None => return Err("a dot is missing"),
    };
    let end = name.find(['.', '[', ']']).unwrap_or(name.len());
    let (name, rest) = name.split_at(end);
    match name {
        "" => Err("a name is missing"),
        _ if name.contains('*') => Err("\"*\", which stands for nothing here,"),
        _ if name.starts_with('/') || !render::is_plain_field(name) => {
            Err("a name that is none, or has to be in brackets and quotes,")
        }
        _ => Ok(rest),
    }
}

/// What follows `[2]`, `[=5]`, `["a.b/c"]` or `[port=53,protocol=UDP]`, from after the first bracket.
fn bracket(text: &str) -> Result<&str, &'static str> {
    if text.starts_with('"') {
        return quoted(text)?.strip_prefix(']').ok_or("a bracket that is not closed");
    }
    let end = text.find([']', '"']).ok_or("a bracket that is not closed")?;
    let (inner, rest) = text.split_at(end);
    if inner == "*" {
        return Err("\"*\", which stands for nothing here,");
    }
    if let Some(rest) = rest.strip_prefix(']') {
        let index = !inner.is_empty() && inner.bytes().all(|byte| byte.is_ascii_digit());
        let keyed = inner.contains('=') && inner.split(',').all(|part| part.contains('='));
        return if index || keyed { Ok(rest) } else { Err("an item that has neither a number nor a key") };
    }
    // A quoted value of a key, and perhaps further ones.
    if !inner.ends_with('=') {
        return Err("a quotation mark");
    }
    let rest = quoted(rest)?;
    match rest.strip_prefix(']') {
        Some(rest) => Ok(rest),
        None => bracket(rest.strip_prefix(',').ok_or("a bracket that is not closed")?),
    }
}

/// What follows a text in quotes.
fn quoted(text: &str) -> Result<&str, &'static str> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<String>();
    match values.next() {
        Some(Ok(_)) => text.get(values.byte_offset()..).ok_or("quotes that are not closed"),
        _ => Err("quotes that are not closed"),
    }
}

#[cfg(test)]
mod tests {
    use super::fault;

    #[test]
    fn what_diffs_show_can_be_written() {
        for path in [
            "spec",
            "spec.replicas",
            "data[\"a.b/c\"]",
            "data[\"with \\\" quote\"].x",
            "spec.containers[name=app].image",
            "spec.ports[port=53,protocol=UDP]",
            "spec.ports[name=\"a]b\",protocol=UDP].port",
            "spec.args[2]",
            "ids[=5]",
            "ids[id=null]",
            "m.a-b_c",
            "m.app/name",
            "metadata.finalizers[\"x\"]",
            "[\"\"].x",
        ] {
            assert_eq!(fault(path), None, "{path}");
        }
    }

    #[test]
    fn what_can_name_no_field_is_a_fault() {
        for (path, what, place) in [
            (".spec.replicas", "a dot", 1),
            ("spec..replicas", "a name is missing", 5),
            ("spec.", "a name is missing", 5),
            ("/spec/replicas", "a name that is none", 1),
            ("spec.containers[*].image", "\"*\"", 16),
            ("spec.*", "\"*\"", 5),
            ("spec.containers[app].image", "neither a number nor a key", 16),
            ("spec.containers[name=app", "not closed", 16),
            ("spec.containers[\"a\".image", "not closed", 16),
            ("spec.containers[name=\"a].image", "not closed", 16),
            ("spec]", "a dot is missing", 5),
            ("spec[2]replicas", "a dot is missing", 8),
            ("spec.with space", "a name that is none", 5),
        ] {
            let told = fault(path).unwrap_or_else(|| panic!("{path} is taken"));
            assert!(told.contains(what) && told.contains(&format!("character {place}:")), "{path}: {told}");
        }
        assert_eq!(fault("").as_deref(), Some("must not be empty"));
    }
}
