//! URLs: `url("https://example.com:443/path?key=value")`.
//!
//! They are read as Go's `net/url` does it, which an API server asks twice: `ParseRequestURI` says whether a text is a
//! URL, `Parse` what its parts are. Neither is what browsers do, and so what the crate `url` does: nothing is added,
//! resolved or put into lower case except the scheme.

use std::collections::BTreeMap;

use cel::common::types::{CelMap, CelMapKey, CelString};
use cel::common::value::{CowVal, Val};

use super::{Kind, Overload, STRINGS, bool, failed, function, member, opaque, plain, string, strings, text};
use parse::{Caller, Parts};

mod escape;
mod parse;

const NAME: &str = "kubernetes.URL";
const URL: Kind = Kind::Opaque(NAME);
/// The most parameters of a query: what has more counts as having none, as in Go.
const MAX_PARAMETERS: usize = 10_000;

pub(super) static OVERLOADS: &[Overload] = &[
    function("url", &[Kind::String], URL, |arguments| {
        Ok(CowVal::owned(Url::parse(text(&arguments, 0)?).map_err(|error| failed("url", error))?))
    }),
    function("isURL", &[Kind::String], Kind::Bool, |arguments| bool(check(text(&arguments, 0)?).is_ok())),
    member("getScheme", &[URL], Kind::String, |arguments| {
        string(plain::<Url>(&arguments, 0)?.parts.scheme.clone())
    }),
    member("getHost", &[URL], Kind::String, |arguments| {
        string(String::from_utf8_lossy(&plain::<Url>(&arguments, 0)?.parts.host))
    }),
    member("getHostname", &[URL], Kind::String, |arguments| {
        let host = String::from_utf8_lossy(&plain::<Url>(&arguments, 0)?.parts.host);
        string(split_port(&host).0)
    }),
    member("getPort", &[URL], Kind::String, |arguments| {
        let host = String::from_utf8_lossy(&plain::<Url>(&arguments, 0)?.parts.host);
        string(split_port(&host).1)
    }),
    member("getEscapedPath", &[URL], Kind::String, |arguments| {
        string(plain::<Url>(&arguments, 0)?.parts.path.clone())
    }),
    member("getQuery", &[URL], Kind::Map(&Kind::String, &STRINGS), |arguments| {
        Ok(CowVal::owned(query(&plain::<Url>(&arguments, 0)?.parts.query)))
    }),
];

/// A URL, equal to others that are written the same way once all parts of them are.
#[derive(Clone, Debug)]
struct Url {
    parts: Parts,
    written: String,
}

opaque!(Url, NAME);

impl Url {
    fn parse(text: &str) -> Result<Self, String> {
        check(text)?;
        let refused = |error| format!("{text:?} is no URL: {error}");
        let (before, fragment) = text.split_once('#').unwrap_or((text, ""));
        let mut parts = parse::parts(before, Caller::Parse).map_err(refused)?;
        parts.fragment = parse::fragment(fragment).map_err(refused)?;
        Ok(Self { written: parts.to_string(), parts })
    }
}

impl PartialEq for Url {
    fn eq(&self, other: &Self) -> bool {
        self.written == other.written
    }
}

/// Whether a text is a URL, in the sense of `isURL` and of the format `uri`.
pub(super) fn check(text: &str) -> Result<(), String> {
    match parse::parts(text, Caller::ParseRequestUri) {
        Ok(_) => Ok(()),
        Err(error) => Err(format!("{text:?} is no URL: {error}")),
    }
}

/// A host and its port, without brackets and colon.
fn split_port(host: &str) -> (&str, &str) {
    let split = host.rsplit_once(':').filter(|(_, port)| port.bytes().all(|digit| digit.is_ascii_digit()));
    let (name, port) = split.unwrap_or((host, ""));
    (name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name), port)
}

/// The parameters of a query. What is malformed is left out.
fn query(query: &str) -> CelMap<'static> {
    let mut parameters: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let pairs = query.split('&').filter(|pair| !pair.is_empty() && !pair.contains(';'));
    if query.split('&').count() <= MAX_PARAMETERS {
        for pair in pairs {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            if let (Ok(key), Ok(value)) = (escape::parameter(key), escape::parameter(value)) {
                parameters.entry(key).or_default().push(value);
            }
        }
    }
    let entry =
        |(key, values)| (CelMapKey::String(CelString::from(key)), Box::new(strings(values)) as Box<dyn Val>);
    crate::object::map(parameters.into_iter().map(entry))
}

#[cfg(test)]
mod tests;
