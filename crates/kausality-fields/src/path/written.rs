//! Paths that people write, to name fields as a [`Path`] shows them.

use serde_json::{Number, Value};
use std::borrow::Cow;

use super::{Path, Step};
use crate::{render, scalar::Scalar};

/// Reads a path that somebody wrote.
///
/// # Errors
/// What is wrong with it, so that it can be none of an object.
pub fn parse(text: &str) -> Result<Path, String> {
    if text.is_empty() {
        return Err("must not be empty".to_owned());
    }
    let mut rest = text;
    let mut path = Path::default();
    while !rest.is_empty() {
        let (step, after) = step(rest, path.0.is_empty()).map_err(|what| {
            let place = text.len() - rest.len() + 1;
            format!(
                "{what} at character {place}: fields are written as diffs show them, \
                 spec.replicas or spec.template.spec.containers[name=app].image"
            )
        })?;
        path.0.push(step);
        rest = after;
    }
    Ok(path)
}

type Parsed<'a, T> = Result<(T, &'a str), &'static str>;

/// The first step, and what follows it.
fn step(text: &str, first: bool) -> Parsed<'_, Step> {
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
        _ => Ok((Step::Field(name.to_owned()), rest)),
    }
}

/// `[2]`, `[=5]`, `["a.b/c"]` or `[port=53,protocol=UDP]`, from after the first bracket, and what follows it.
fn bracket(text: &str) -> Parsed<'_, Step> {
    const OPEN: &str = "a bracket that is not closed";
    if text.starts_with('"') {
        let (name, rest) = quoted(text)?;
        return Ok((Step::Field(name), rest.strip_prefix(']').ok_or(OPEN)?));
    }
    if text.starts_with("*]") {
        return Err("\"*\", which stands for nothing here,");
    }
    let neither = "an item that has neither a number nor a key";
    let (mut parts, mut rest) = (Vec::<(Cow<'static, str>, Scalar)>::new(), text);
    loop {
        let end = rest.find(['=', ']', ',', '"']).ok_or(OPEN)?;
        let (name, after) = rest.split_at(end);
        let Some(value) = after.strip_prefix('=') else {
            let index = name.parse().ok().filter(|_| parts.is_empty());
            return match (after.strip_prefix(']'), index) {
                (Some(rest), Some(index)) => Ok((Step::Index(index), rest)),
                (None, _) if after.starts_with('"') => Err("a quotation mark"),
                _ => Err(neither),
            };
        };
        let (value, after) = match value.starts_with('"') {
            true => quoted(value).map(|(text, rest)| (Scalar::Text(text), rest))?,
            false => {
                let (value, rest) = value.split_at(value.find([']', ',', '"']).ok_or(OPEN)?);
                (scalar(value), rest)
            }
        };
        parts.push((Cow::Owned(name.to_owned()), value));
        match (after.strip_prefix(']'), after.strip_prefix(',')) {
            (Some(rest), _) => {
                let member = parts.len() == 1 && parts.iter().any(|(name, _)| name.is_empty());
                return Ok(match parts.pop() {
                    Some((_, value)) if member => (Step::Value(value), rest),
                    last => (Step::Key(parts.into_iter().chain(last).collect()), rest),
                });
            }
            (None, Some(next)) => rest = next,
            (None, None) => return Err(OPEN),
        }
    }
}

/// A value that stands without quotes: what would be taken for another is written in them.
fn scalar(text: &str) -> Scalar {
    match text {
        "null" => Scalar::Null,
        "true" => Scalar::Bool(true),
        "false" => Scalar::Bool(false),
        _ => match serde_json::from_str::<Number>(text) {
            Ok(number) => Scalar::or_null(&Value::Number(number)).unwrap_or(Scalar::Null),
            Err(_) => Scalar::Text(text.to_owned()),
        },
    }
}

/// A text in quotes, and what follows it.
fn quoted(text: &str) -> Parsed<'_, String> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<String>();
    match values.next() {
        Some(Ok(value)) => {
            let rest = text.get(values.byte_offset()..).ok_or("quotes that are not closed")?;
            Ok((value, rest))
        }
        _ => Err("quotes that are not closed"),
    }
}

#[cfg(test)]
mod tests {
    use super::parse;

    fn fault(path: &str) -> Option<String> {
        parse(path).err()
    }

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
            let shown = parse(path).unwrap().to_string();
            // A member of a set cannot be told from a key of a map.
            assert_eq!(shown, path.replace("[\"x\"]", ".x"));
        }
    }

    #[test]
    fn other_spellings_name_the_same_fields() {
        let is_within = |path: &str, field: &str| parse(path).unwrap().is_within(&parse(field).unwrap());
        for (path, field) in [
            ("data.x", "data[\"x\"]"),
            ("spec.c[name=a].image", "spec.c[name=\"a\"].image"),
            ("spec.ports[port=80,protocol=TCP].x", "spec.ports[protocol=TCP,port=80]"),
            ("spec.ports[port=80,protocol=TCP].x", "spec.ports[port=80].x"),
            ("spec.tolerations[key=a,value=\"1\"]", "spec.tolerations[value=\"1\"]"),
            ("spec.verbs[\"get\"]", "spec.verbs[=get]"),
            ("spec.replicas", "spec"),
        ] {
            assert!(is_within(path, field), "{path} in {field}");
        }
        for (path, field) in [
            ("spec.replicas", "spec.rep"),
            ("spec", "spec.replicas"),
            ("spec.c[name=a].image", "spec.c[0].image"),
            ("spec.c[name=a]", "spec.c[name=b]"),
            ("spec.c[name=a]", "spec.c[name=a,kind=b]"),
            ("ids[=5]", "ids[=\"5\"]"),
            ("spec.ports[port=80,protocol=TCP]", "spec.ports[port=80,protocol=UDP]"),
        ] {
            assert!(!is_within(path, field), "{path} in {field}");
        }
        let touches = |path: &str, field: &str| parse(path).unwrap().may_touch(&parse(field).unwrap());
        // Who knows items by their places cannot tell which has the name.
        for (path, field) in [
            ("spec.c[0].image", "spec.c[name=a].image"),
            ("spec.c", "spec.c[name=a].image"),
            ("spec.c[name=a].image", "spec.c[0]"),
            ("spec.c[name=a]", "spec.c[name=a].image"),
        ] {
            assert!(touches(path, field), "{path} and {field}");
        }
        for (path, field) in [
            ("spec.c[1].image", "spec.c[name=a].name"),
            ("spec.c[0]", "spec.c[1]"),
            ("spec.c[name=b]", "spec.c[name=a]"),
        ] {
            assert!(!touches(path, field), "{path} and {field}");
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
