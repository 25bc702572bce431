//! Fields that may be taken from others: `--force-path`, `--force-conflicts`.

use std::str::FromStr;

use kausality_fields::{Path, Scalar, Step};

/// A path as people write it. It stands for all that lies below it, too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ForcePath {
    pub(super) text: String,
    steps: Vec<Wanted>,
}

/// What may be taken from others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Taking {
    Everything,
    Only(Vec<ForcePath>),
}

impl Taking {
    pub(super) fn covers(&self, path: &Path) -> bool {
        match self {
            Self::Everything => true,
            Self::Only(paths) => paths.iter().any(|force| force.covers(path)),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Wanted {
    Field(String),
    /// `[name=app]`, sorted by name.
    Key(Vec<(String, String)>),
    /// `["app.kubernetes.io/name"]`: the key of a map, or the member of a set.
    Named(String),
    /// `[=53]`.
    Member(String),
    Index(usize),
}

impl ForcePath {
    /// Whether a field is meant.
    pub(super) fn covers(&self, path: &Path) -> bool {
        let steps = path.steps();
        self.steps.len() <= steps.len() && self.steps.iter().zip(steps).all(|(wanted, step)| wanted.is(step))
    }
}

impl Wanted {
    fn is(&self, step: &Step) -> bool {
        match (self, step) {
            (Self::Field(wanted) | Self::Named(wanted), Step::Field(name)) => wanted == name,
            (Self::Named(wanted) | Self::Member(wanted), Step::Value(value)) => *wanted == text(value),
            (Self::Key(wanted), Step::Key(parts)) => {
                let mut parts: Vec<_> =
                    parts.iter().map(|(name, value)| (name.as_ref(), text(value))).collect();
                parts.sort();
                let wanted = wanted.iter().map(|(name, value)| (name.as_str(), value.as_str()));
                wanted.eq(parts.iter().map(|(name, value)| (*name, value.as_str())))
            }
            (Self::Index(wanted), Step::Index(index)) => wanted == index,
            // A member of a set of numbers looks like an index.
            (Self::Index(wanted), Step::Value(value)) => wanted.to_string() == text(value),
            _ => false,
        }
    }
}

/// Without quotes: whether a text or a number is meant is for the field to say.
fn text(scalar: &Scalar) -> String {
    match scalar {
        Scalar::Text(text) => text.clone(),
        other => other.to_string(),
    }
}

impl FromStr for ForcePath {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong =
            |why: &str| format!("{text:?} is not a path such as spec.ports[port=53,protocol=UDP]: {why}");
        let mut rest = text.strip_prefix('.').unwrap_or(text);
        let mut steps = Vec::new();
        if rest.is_empty() {
            return Err(wrong("it names no field"));
        }
        while !rest.is_empty() {
            if let Some(inner) = rest.strip_prefix('[') {
                let (step, after) = bracket(inner).map_err(wrong)?;
                steps.push(step);
                rest = after;
                if !(rest.is_empty() || rest.starts_with(['.', '['])) {
                    return Err(wrong("after ] there must be a dot"));
                }
            } else {
                let rest_of_name =
                    if steps.is_empty() { rest } else { rest.strip_prefix('.').unwrap_or(rest) };
                let end = rest_of_name.find(['.', '[']).unwrap_or(rest_of_name.len());
                let (name, after) = rest_of_name.split_at(end);
                if name.is_empty() {
                    return Err(wrong("a name is missing"));
                }
                steps.push(Wanted::Field(name.to_owned()));
                rest = after;
            }
        }
        Ok(Self { text: text.to_owned(), steps })
    }
}

/// What is in brackets, and what follows them.
fn bracket(inner: &str) -> Result<(Wanted, &str), &'static str> {
    const OPEN: &str = "a bracket is not closed";
    if inner.starts_with('"') {
        let (name, rest) = quoted(inner)?;
        return Ok((Wanted::Named(name), rest.strip_prefix(']').ok_or(OPEN)?));
    }
    if let Some(member) = inner.strip_prefix('=') {
        let (member, rest) = value(member)?;
        return Ok((Wanted::Member(member), rest.strip_prefix(']').ok_or(OPEN)?));
    }
    let end = inner.find(['=', ']']).ok_or(OPEN)?;
    if inner[end..].starts_with(']') {
        let (name, rest) = (&inner[..end], &inner[end + 1..]);
        return match name.parse() {
            _ if name.is_empty() => Err("there is nothing in a bracket"),
            Ok(index) => Ok((Wanted::Index(index), rest)),
            Err(_) => Ok((Wanted::Named(name.to_owned()), rest)),
        };
    }
    let mut parts = Vec::new();
    let mut rest = inner;
    loop {
        let (name, after) = rest.split_once('=').ok_or("a key has no value")?;
        let (value, after) = value(after)?;
        parts.push((name.trim().to_owned(), value));
        match after.strip_prefix(',') {
            Some(next) => rest = next,
            None => {
                parts.sort();
                return Ok((Wanted::Key(parts), after.strip_prefix(']').ok_or(OPEN)?));
            }
        }
    }
}

/// A value, in quotes or up to the next comma or bracket.
fn value(text: &str) -> Result<(String, &str), &'static str> {
    if text.starts_with('"') {
        return quoted(text);
    }
    let end = text.find([',', ']']).ok_or("a bracket is not closed")?;
    Ok((text[..end].to_owned(), &text[end..]))
}

/// A JSON string, and what follows it.
fn quoted(text: &str) -> Result<(String, &str), &'static str> {
    let mut strings = serde_json::Deserializer::from_str(text).into_iter::<String>();
    match strings.next() {
        Some(Ok(string)) => Ok((string, &text[strings.byte_offset()..])),
        _ => Err("a quote is not closed"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(name: &str) -> Step {
        Step::Field(name.to_owned())
    }

    fn key(parts: &[(&str, Scalar)]) -> Step {
        Step::Key(parts.iter().map(|(name, value)| ((*name).to_owned().into(), value.clone())).collect())
    }

    fn word(text: &str) -> Scalar {
        Scalar::Text(text.to_owned())
    }

    /// Whatever a path is shown as can be given back; the way that the API server writes it will do as well.
    #[test]
    fn paths_are_understood_as_they_are_shown() {
        let dns = key(&[("port", Scalar::Integer(53)), ("protocol", word("UDP"))]);
        let paths: [Path; 7] = [
            [field("spec"), field("replicas")].into_iter().collect(),
            [field("spec"), field("ports"), dns, field("nodePort")].into_iter().collect(),
            [field("metadata"), field("labels"), field("app.kubernetes.io/name")].into_iter().collect(),
            [field("spec"), field("containers"), key(&[("name", word("a b, \"c\"]"))]), field("image")]
                .into_iter()
                .collect(),
            [field("metadata"), field("finalizers"), Step::Value(word("a/b"))].into_iter().collect(),
            [field("spec"), field("sizes"), Step::Value(Scalar::Integer(5))].into_iter().collect(),
            [field("spec"), field("args"), Step::Index(2)].into_iter().collect(),
        ];
        for path in &paths {
            let shown = path.to_string();
            let force: ForcePath = shown.parse().unwrap();
            assert!(force.covers(path), "{shown}");
            for other in paths.iter().filter(|other| *other != path) {
                assert!(!force.covers(other), "{shown} covers {other}");
            }
        }
        for text in [".spec.replicas", "spec"] {
            assert!(text.parse::<ForcePath>().unwrap().covers(&paths[0]), "{text}");
        }
        for text in [r#".spec.ports[protocol="UDP",port=53].nodePort"#, "spec.ports[port=53,protocol=UDP]"] {
            assert!(text.parse::<ForcePath>().unwrap().covers(&paths[1]), "{text}");
        }
        assert!("spec.replicas.x".parse::<ForcePath>().is_ok_and(|force| !force.covers(&paths[0])));
    }

    #[test]
    fn what_is_no_path_is_said_so() {
        for text in ["", ".", "spec..a", "spec.", "a[", "a[]", "a[b", "a[b=1", "a[\"b]", "a[b=1]c"] {
            let error = text.parse::<ForcePath>().unwrap_err();
            assert!(error.contains("is not a path"), "{text}: {error}");
        }
    }
}
