//! The parts of a URL, after Go's `net/url`.

use std::fmt;
use std::net::Ipv6Addr;

use super::escape::{Part, escape, normal, unescape};

/// Which function of Go.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Caller {
    Parse,
    /// It takes absolute URLs and absolute paths only, and knows nothing of fragments.
    ParseRequestUri,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Parts {
    pub(super) scheme: String,
    /// What follows the scheme if that is no path, as in `mailto:somebody@example.com`.
    opaque: String,
    /// As it is written.
    user: Option<String>,
    /// With its port. Go does not insist on UTF-8.
    pub(super) host: Vec<u8>,
    /// Whether there is a scheme and no host at all: not even an empty one.
    no_host: bool,
    /// With escapes.
    pub(super) path: String,
    /// Without the `?`.
    pub(super) query: String,
    /// Whether there is a `?` and nothing behind it.
    empty_query: bool,
    /// With escapes.
    pub(super) fragment: String,
}

/// Reads a URL without its fragment.
pub(super) fn parts(text: &str, caller: Caller) -> Result<Parts, String> {
    let request = caller == Caller::ParseRequestUri;
    if text.bytes().any(|byte| byte.is_ascii_control()) {
        return Err("it has a control character".to_owned());
    }
    if text.is_empty() && request {
        return Err("it is empty".to_owned());
    }
    if text == "*" {
        return Ok(Parts { path: text.to_owned(), ..Parts::default() });
    }
    let (scheme, rest) = scheme(text)?;
    let mut parts = Parts { scheme: scheme.to_ascii_lowercase(), ..Parts::default() };
    let (mut rest, query) = rest.split_once('?').map_or((rest, None), |(rest, query)| (rest, Some(query)));
    parts.query = query.unwrap_or_default().to_owned();
    parts.empty_query = query == Some("");
    if !rest.starts_with('/') {
        if !scheme.is_empty() {
            parts.opaque = rest.to_owned();
            return Ok(parts);
        }
        if request {
            return Err("it is neither absolute nor an absolute path".to_owned());
        }
        if rest.split('/').next().is_some_and(|segment| segment.contains(':')) {
            return Err("the first part of its path has a colon".to_owned());
        }
    }
    let may_have_host = !scheme.is_empty() || (!request && !rest.starts_with("///"));
    match rest.strip_prefix("//").filter(|_| may_have_host) {
        Some(after) => {
            let end = after.find('/').unwrap_or(after.len());
            let (authority, path) = after.split_at_checked(end).unwrap_or((after, ""));
            rest = path;
            let (user, written) =
                authority.rsplit_once('@').map_or((None, authority), |(user, host)| (Some(user), host));
            parts.host = host(written)?;
            parts.user = user.map(userinfo).transpose()?;
        }
        None => parts.no_host = !scheme.is_empty() && rest.starts_with('/'),
    }
    parts.path = normal(rest, Part::Path)?;
    Ok(parts)
}

/// How a fragment is written.
pub(super) fn fragment(text: &str) -> Result<String, String> {
    normal(text, Part::Fragment)
}

fn scheme(text: &str) -> Result<(&str, &str), String> {
    let Some((scheme, rest)) = text.split_once(':') else { return Ok(("", text)) };
    if scheme.is_empty() {
        return Err("it starts with a colon: its scheme is missing".to_owned());
    }
    let first = scheme.starts_with(|letter: char| letter.is_ascii_alphabetic());
    let valid = scheme.bytes().all(|letter| letter.is_ascii_alphanumeric() || b"+-.".contains(&letter));
    Ok(if first && valid { (scheme, rest) } else { ("", text) })
}

fn userinfo(text: &str) -> Result<String, String> {
    let valid = |letter: u8| letter.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&letter);
    if !text.bytes().all(valid) {
        return Err("its user has characters that must be escaped".to_owned());
    }
    let written = |text| Ok::<_, String>(escape(&unescape(text, Part::User)?, Part::User));
    match text.split_once(':') {
        Some((name, password)) => Ok(format!("{}:{}", written(name)?, written(password)?)),
        None => written(text),
    }
}

fn host(text: &str) -> Result<Vec<u8>, String> {
    match text.rfind('[') {
        Some(0) => return literal(text),
        Some(_) => return Err("its host has a [ that is not at its start".to_owned()),
        None => {}
    }
    // Several colons are a list of hosts with ports, as databases have it. Go 1.26 would not take them with HTTP, but
    // API servers are programs of earlier versions to it.
    if let Some(port) = text.rfind(':').and_then(|at| text.get(at..)) {
        check_port(port)?;
    }
    unescape(text, Part::Host)
}

/// An IPv6 address in brackets.
fn literal(text: &str) -> Result<Vec<u8>, String> {
    let (address, port) = text
        .strip_prefix('[')
        .and_then(|text| text.rsplit_once(']'))
        .ok_or_else(|| "its host has a [ without a ]".to_owned())?;
    check_port(port)?;
    let (name, zone) =
        address.find("%25").and_then(|at| address.split_at_checked(at)).unwrap_or((address, ""));
    let mut host = unescape(name, Part::Host)?;
    host.extend(unescape(zone, Part::Zone)?);
    let plain = String::from_utf8_lossy(&host);
    let (name, zone) = plain.split_once('%').map_or((&*plain, None), |(name, zone)| (name, Some(zone)));
    if zone == Some("") || name.parse::<Ipv6Addr>().is_err() {
        return Err("its host in brackets is no IPv6 address".to_owned());
    }
    let mut literal = vec![b'['];
    literal.extend(host);
    literal.push(b']');
    literal.extend(port.bytes());
    Ok(literal)
}

/// A port is a colon and digits, or nothing at all.
fn check_port(port: &str) -> Result<(), String> {
    let digits =
        port.is_empty() || port.strip_prefix(':').is_some_and(|it| it.bytes().all(|it| it.is_ascii_digit()));
    if digits { Ok(()) } else { Err(format!("{port:?} after its host is no port")) }
}

/// The whole of it, with all parts in their normal form.
impl fmt::Display for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.scheme.is_empty() {
            write!(f, "{}:", self.scheme)?;
        }
        if self.opaque.is_empty() {
            let named = !self.scheme.is_empty() || !self.host.is_empty() || self.user.is_some();
            let empty = self.host.is_empty() && self.user.is_none();
            if named && !(empty && (self.no_host || self.path.is_empty())) {
                f.write_str("//")?;
                if let Some(user) = &self.user {
                    write!(f, "{user}@")?;
                }
                f.write_str(&escape(&self.host, Part::Host))?;
            }
            f.write_str(&self.path)?;
        } else {
            f.write_str(&self.opaque)?;
        }
        if self.empty_query || !self.query.is_empty() {
            write!(f, "?{}", self.query)?;
        }
        if !self.fragment.is_empty() {
            write!(f, "#{}", self.fragment)?;
        }
        Ok(())
    }
}
