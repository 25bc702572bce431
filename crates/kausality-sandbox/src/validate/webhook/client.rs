//! Where a webhook is: at a URL, or behind a Service.

use serde_json::{Value, json};

use crate::metadata::text;
use crate::status::Cause;
use crate::validate::names;

const FORM: &str = "; desired format: https://host[/path]";

/// Faults of a `clientConfig`.
pub(super) fn faults(client: &Value, at: &str) -> Vec<Cause> {
    match (client["url"].as_str(), &client["service"]) {
        (None, Value::Null) => vec![Cause::required(at, "exactly one of url or service is required")],
        (Some(address), Value::Null) => url(address, &format!("{at}.url")),
        (None, reference) => service(reference, &format!("{at}.service")),
        (Some(_), _) => vec![Cause::required(at, "exactly one of url or service is required")],
    }
}

/// The parts of a URL that are looked at.
#[derive(Debug, Default, PartialEq, Eq)]
struct Parts<'u> {
    scheme: &'u str,
    user: Option<&'u str>,
    host: &'u str,
    query: &'u str,
    fragment: &'u str,
}

fn url(address: &str, at: &str) -> Vec<Cause> {
    let parts = match parse(address) {
        Ok(parts) => parts,
        Err(why) => {
            let why = format!("url must be a valid URL: parse {address:?}: {why}{FORM}");
            return vec![Cause::required(at, &why)];
        }
    };
    let mut causes = Vec::new();
    let mut wrong = |value: &str, why: &str| causes.push(Cause::invalid(at, &json!(value), why));
    if !parts.scheme.eq_ignore_ascii_case("https") {
        wrong(&parts.scheme.to_lowercase(), &format!("'https' is the only allowed URL scheme{FORM}"));
    }
    if parts.host.is_empty() {
        wrong("", &format!("host must be specified{FORM}"));
    }
    if let Some(user) = parts.user {
        wrong(user, "user information is not permitted in the URL");
    }
    if !parts.fragment.is_empty() {
        wrong(parts.fragment, "fragments are not permitted in the URL");
    }
    if !parts.query.is_empty() {
        wrong(parts.query, "query parameters are not permitted in the URL");
    }
    causes
}

/// Takes a URL apart as Go does, which takes almost anything for one.
fn parse(address: &str) -> Result<Parts<'_>, &'static str> {
    let (rest, fragment) = address.split_once('#').unwrap_or((address, ""));
    if address.contains(|letter: char| letter.is_ascii_control()) {
        return Err("net/url: invalid control character in URL");
    }
    let (scheme, rest) = match rest.split_once(':') {
        Some(("", _)) => return Err("missing protocol scheme"),
        Some((scheme, rest)) if is_scheme(scheme) => (scheme, rest),
        _ => ("", rest),
    };
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    if !rest.split('%').skip(1).all(|after| after.bytes().take(2).filter(u8::is_ascii_hexdigit).count() == 2)
    {
        return Err("invalid URL escape");
    }
    let parts = Parts { scheme, query, fragment, ..Parts::default() };
    if !rest.starts_with('/') {
        let first = rest.split('/').next().unwrap_or_default();
        return if scheme.is_empty() && first.contains(':') {
            Err("first path segment in URL cannot contain colon")
        } else {
            Ok(parts)
        };
    }
    let Some(authority) = rest.strip_prefix("//") else { return Ok(parts) };
    let authority = authority.split('/').next().unwrap_or_default();
    let (user, host) =
        authority.rsplit_once('@').map_or((None, authority), |(user, host)| (Some(user), host));
    let after_address = host.rsplit_once(']').map_or(host, |(_, after)| after);
    if after_address.rsplit_once(':').is_some_and(|(_, port)| !port.bytes().all(|it| it.is_ascii_digit())) {
        return Err("invalid port after host");
    }
    if host.contains([' ', '^', '`', '{', '}', '|', '\\']) {
        return Err("invalid character in host name");
    }
    Ok(Parts { user, host, ..parts })
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|letter: char| letter.is_ascii_alphabetic())
        && text.chars().all(|letter| letter.is_ascii_alphanumeric() || "+-.".contains(letter))
}

fn service(service: &Value, at: &str) -> Vec<Cause> {
    let mut causes = Vec::new();
    // An API server takes the one for the other here.
    for (key, told) in [("namespace", "name"), ("name", "namespace")] {
        if text(service, &format!("/{key}")).is_empty() {
            causes.push(Cause::required(format!("{at}.{told}"), ""));
        }
    }
    let port = &service["port"];
    if port.as_i64().is_some_and(|port| !(1..=65535).contains(&port)) {
        let why = "port is not valid: must be between 1 and 65535, inclusive";
        causes.push(Cause::invalid(format!("{at}.port"), port, why));
    }
    let path = text(service, "/path");
    let mut wrong = |why: &str| causes.push(Cause::invalid(format!("{at}.path"), &json!(path), why));
    match path {
        "" | "/" => return causes,
        "//" => {
            wrong("segment[0] may not be empty");
            return causes;
        }
        _ => {}
    }
    if !path.starts_with('/') {
        wrong("must start with a '/'");
    }
    // The first letter is left out, whatever it is.
    let steps = path.get(1..).unwrap_or(path);
    for (nth, step) in steps.strip_suffix('/').unwrap_or(steps).split('/').enumerate() {
        if step.is_empty() {
            wrong(&format!("segment[{nth}] may not be empty"));
        } else if let Some(why) = names::subdomain_fault(step) {
            wrong(&format!("segment[{nth}]: {why}"));
        }
    }
    causes
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;

    #[test]
    fn urls_are_taken_apart_as_go_does() {
        let check = |address: &str, scheme: &str, user: Option<&str>, host: &str| {
            let Parts { scheme: is, user: by, host: at, .. } = parse(address).unwrap();
            assert_eq!((is, by, at), (scheme, user, host), "{address}");
        };
        check("https://a.b:443/c", "https", None, "a.b:443");
        check("https://[::1]:443", "https", None, "[::1]:443");
        check("https://me:secret@a", "https", Some("me:secret"), "a");
        check("", "", None, "");
        check("a/b", "", None, "");
        check("mailto:a@b", "mailto", None, "");
        check("https:/a", "https", None, "");
        for none in [":a", "1:2", "https://a:b/", "https://a b/", "https://a\n", "https://a/%zz"] {
            assert!(parse(none).is_err(), "{none}");
        }
    }
}
