//! What a request asks for: its path, its parameters and its headers.

use http::{HeaderMap, header};

/// What a path names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) plural: String,
    /// Empty for what lives in no namespace, and for all namespaces.
    pub(crate) namespace: String,
    /// Empty for a collection.
    pub(crate) name: String,
    /// Empty for the object itself.
    pub(crate) subresource: String,
}

/// The target of a path below `/api/v1` or `/apis/<group>/<version>`.
pub(crate) fn target(path: &str) -> Option<Target> {
    let parts: Vec<String> =
        path.split('/').filter(|part| !part.is_empty()).map(|part| decode(part, false)).collect();
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let (group, version, rest) = match parts.as_slice() {
        ["api", version, rest @ ..] => ("", *version, rest),
        ["apis", group, version, rest @ ..] => (*group, *version, rest),
        _ => return None,
    };
    let (namespace, rest) = match rest {
        ["namespaces", _] | ["namespaces", _, "status" | "finalize"] => ("", rest),
        ["namespaces", namespace, rest @ ..] => (*namespace, rest),
        rest => ("", rest),
    };
    let (plural, name, subresource) = match rest {
        [plural] => (*plural, "", ""),
        [plural, name] => (*plural, *name, ""),
        [plural, name, subresource] => (*plural, *name, *subresource),
        _ => return None,
    };
    Some(Target {
        group: group.to_owned(),
        version: version.to_owned(),
        plural: plural.to_owned(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        subresource: subresource.to_owned(),
    })
}

/// The parameters of a request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    pub(crate) fn parse(text: &str) -> Self {
        let pair = |pair: &str| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decode(key, true), decode(value, true))
        };
        Self(text.split('&').filter(|part| !part.is_empty()).map(pair).collect())
    }

    /// A parameter; empty if it is not set.
    pub(crate) fn get(&self, key: &str) -> &str {
        self.0.iter().find(|(name, _)| name == key).map_or("", |(_, value)| value)
    }

    pub(crate) fn flag(&self, key: &str) -> bool {
        matches!(self.get(key), "true" | "1")
    }

    pub(crate) fn number(&self, key: &str) -> Option<u64> {
        self.get(key).parse().ok()
    }
}

/// In which form an answer is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// The object.
    Object,
    /// A table for people.
    Table,
    /// Its metadata.
    Metadata,
}

/// The first form that is asked for and known.
pub(crate) fn form(headers: &HeaderMap) -> Form {
    for accepted in accepts(headers) {
        if accepted.contains("as=Table") {
            return Form::Table;
        }
        if accepted.contains("as=PartialObjectMetadata") {
            return Form::Metadata;
        }
        if accepted.starts_with("application/json") || accepted.starts_with("*/*") {
            return Form::Object;
        }
    }
    Form::Object
}

/// Whether discovery is wanted in one piece.
pub(crate) fn wants_aggregated(headers: &HeaderMap) -> bool {
    accepts(headers).any(|accepted| {
        accepted.starts_with("application/json")
            && accepted.contains("as=APIGroupDiscoveryList")
            && accepted.contains("v=v2;")
            || accepted.ends_with("v=v2;as=APIGroupDiscoveryList")
    })
}

fn accepts(headers: &HeaderMap) -> impl Iterator<Item = String> {
    let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    accept.split(',').map(|part| part.replace(' ', "")).collect::<Vec<_>>().into_iter()
}

/// A header as text.
pub(crate) fn text<'h>(headers: &'h HeaderMap, name: &str) -> &'h str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

fn decode(text: &str, plus: bool) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let hex = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        match (first, tail) {
            (b'%', [high, low, after @ ..]) if hex(*high).is_some() && hex(*low).is_some() => {
                bytes.push(hex(*high).unwrap_or(0) << 4 | hex(*low).unwrap_or(0));
                rest = after;
                continue;
            }
            (b'+', _) if plus => bytes.push(b' '),
            _ => bytes.push(*first),
        }
        rest = tail;
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_name_targets() {
        let check = |path: &str, expected: [&str; 6]| {
            let Target { group, version, plural, namespace, name, subresource } = target(path).unwrap();
            assert_eq!([group, version, plural, namespace, name, subresource], expected, "{path}");
        };
        check("/api/v1/pods", ["", "v1", "pods", "", "", ""]);
        check("/api/v1/namespaces/a", ["", "v1", "namespaces", "", "a", ""]);
        check("/api/v1/namespaces/a/finalize", ["", "v1", "namespaces", "", "a", "finalize"]);
        check("/api/v1/namespaces/a/pods/b", ["", "v1", "pods", "a", "b", ""]);
        check(
            "/apis/apps/v1/namespaces/a/deployments/b/scale",
            ["apps", "v1", "deployments", "a", "b", "scale"],
        );
        check("/apis/x/v1/things/a%3Ab", ["x", "v1", "things", "", "a:b", ""]);
        assert!(target("/version").is_none());
    }

    #[test]
    fn parameters_are_decoded() {
        let query = Query::parse("labelSelector=a%3Db%2Cc&watch=true&x=a+b");
        assert_eq!((query.get("labelSelector"), query.get("x")), ("a=b,c", "a b"));
        assert!(query.flag("watch") && !query.flag("other"));
    }
}
