//! Endpoints: who is told, where, and how they know that it is us.
//!
//! ```yaml
//! endpoints:
//! - name: pager
//!   url: https://pager.example.com/hooks/drift
//!   timeout: 10s
//!   caFile: /etc/kausality/pager/ca.crt
//!   certFile: /etc/kausality/pager/tls.crt
//!   keyFile: /etc/kausality/pager/tls.key
//!   tokenFile: /etc/kausality/pager/token
//!   hmacKeyFile: /etc/kausality/pager/hmac
//! ```

use std::{
    collections::BTreeSet,
    fmt,
    net::IpAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use http::Uri;
use jiff::SignedDuration;
use serde::Deserialize;

/// How long an endpoint may take, unless it says otherwise.
pub const TIMEOUT: Duration = Duration::from_secs(10);

/// How long an endpoint may say to take.
const LONGEST: Duration = Duration::from_secs(120);

/// How many endpoints there may be: what each was told is kept in every Drift.
const MOST: usize = 32;

/// One who is told of drifts.
///
/// The URL is not shown: paths and queries of webhooks are often secrets.
#[derive(Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// Under which it is known in the ledger, in metrics and in logs.
    pub name: String,
    /// Where reports are posted to.
    pub url: Uri,
    /// The time for all of one attempt.
    pub timeout: Duration,
    /// The files it needs.
    pub files: Files,
}

/// What is read from files, again for every report, so that it can be changed without a restart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Files {
    /// The CAs that may have signed the endpoint's certificate, PEM; those of the system, if none.
    pub ca: Option<PathBuf>,
    /// Our own certificate and its key, PEM.
    pub identity: Option<(PathBuf, PathBuf)>,
    /// The bearer token.
    pub token: Option<PathBuf>,
    /// The key with which reports are signed.
    pub hmac_key: Option<PathBuf>,
}

/// Why endpoints cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BadEndpoints {
    /// The file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file is no list of endpoints.
    #[error("{}: {message}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong, and where.
        message: String,
    },
    /// A field of one is wrong.
    #[error("endpoint {endpoint}: {field}: {why}")]
    Field {
        /// Its name, or which one in the list.
        endpoint: String,
        /// The field.
        field: &'static str,
        /// What is wrong with it, and what would be right.
        why: String,
    },
    /// There are too many.
    #[error("there are {0} endpoints, and may be {MOST}: let one of them pass reports on")]
    TooMany(usize),
}

/// The file, as people write it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    endpoints: Vec<Entry>,
}

/// An endpoint, as people write it.
#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Entry {
    /// A name like a DNS label.
    pub name: String,
    /// An https URL.
    pub url: String,
    /// As `10s`.
    pub timeout: Option<String>,
    /// The CAs to trust.
    pub ca_file: Option<PathBuf>,
    /// Our certificate.
    pub cert_file: Option<PathBuf>,
    /// Its key.
    pub key_file: Option<PathBuf>,
    /// The bearer token.
    pub token_file: Option<PathBuf>,
    /// The key for signatures.
    pub hmac_key_file: Option<PathBuf>,
    /// Whether `http` will do beyond this machine.
    pub allow_insecure: bool,
}

/// Reads the endpoints in a file, YAML or JSON, as they are written there.
///
/// # Errors
/// If it cannot be read, or is no list of endpoints.
pub fn read(path: &Path) -> Result<Vec<Entry>, BadEndpoints> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| BadEndpoints::Unreadable { path: path.to_owned(), source })?;
    // The lines themselves are not quoted, since URLs may be secrets.
    let options = serde_saphyr::options! { with_snippet: false };
    let written: Written = serde_saphyr::from_str_with_options(&text, options)
        .map_err(|error| BadEndpoints::Malformed { path: path.to_owned(), message: error.to_string() })?;
    Ok(written.endpoints)
}

/// The endpoints that these entries describe.
///
/// # Errors
/// If one cannot be used.
pub fn check(entries: Vec<Entry>) -> Result<Vec<Endpoint>, BadEndpoints> {
    if entries.len() > MOST {
        return Err(BadEndpoints::TooMany(entries.len()));
    }
    let mut names = BTreeSet::new();
    let mut endpoints = Vec::with_capacity(entries.len());
    for (position, entry) in entries.into_iter().enumerate() {
        let label = if entry.name.is_empty() { format!("#{}", position + 1) } else { entry.name.clone() };
        let endpoint = entry.check().and_then(|endpoint| {
            if names.insert(endpoint.name.clone()) {
                Ok(endpoint)
            } else {
                Err(("name", "another endpoint has the same; names tell them apart in the ledger".to_owned()))
            }
        });
        let endpoint =
            endpoint.map_err(|(field, why)| BadEndpoints::Field { endpoint: label, field, why })?;
        endpoints.push(endpoint);
    }
    Ok(endpoints)
}

type Fault = (&'static str, String);

impl Entry {
    fn check(self) -> Result<Endpoint, Fault> {
        if !is_label(&self.name) {
            let why =
                "must be lower-case letters, digits and dashes, at most 63, as \"pager\" or \"audit-eu\"";
            return Err(("name", why.to_owned()));
        }
        let url = check_url(&self.url, self.allow_insecure).map_err(|why| ("url", why))?;
        let timeout = self.timeout.as_deref().map_or(Ok(TIMEOUT), check_timeout);
        let timeout = timeout.map_err(|why| ("timeout", why))?;
        let identity = match (self.cert_file, self.key_file) {
            (Some(certificate), Some(key)) => Some((certificate, key)),
            (None, None) => None,
            (Some(_), None) => return Err(("keyFile", "is missing: certFile needs it".to_owned())),
            (None, Some(_)) => return Err(("certFile", "is missing: keyFile needs it".to_owned())),
        };
        if url.scheme_str() == Some("http") {
            let useless = [("caFile", self.ca_file.is_some()), ("certFile", identity.is_some())];
            if let Some((field, _)) = useless.into_iter().find(|(_, given)| *given) {
                return Err((field, "has no meaning without TLS: give an https url".to_owned()));
            }
        }
        let files =
            Files { ca: self.ca_file, identity, token: self.token_file, hmac_key: self.hmac_key_file };
        Ok(Endpoint { name: self.name, url, timeout, files })
    }
}

fn is_label(name: &str) -> bool {
    let inner = |letter: u8| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == b'-';
    (1..=63).contains(&name.len())
        && name.bytes().all(inner)
        && !name.starts_with('-')
        && !name.ends_with('-')
}

fn check_url(url: &str, allow_insecure: bool) -> Result<Uri, String> {
    if url.is_empty() {
        return Err("is missing".to_owned());
    }
    let parsed: Uri = url.parse().map_err(|error| format!("is no URL: {error}"))?;
    let Some(authority) = parsed.authority() else {
        return Err("must be absolute, as https://pager.example.com/hooks/drift".to_owned());
    };
    if authority.as_str().contains('@') {
        return Err("must not hold a user or password: give a tokenFile".to_owned());
    }
    match parsed.scheme_str() {
        Some("https") => Ok(parsed),
        Some("http") if allow_insecure || is_loopback(authority.host()) => Ok(parsed),
        Some("http") => {
            Err("must be https, unless the endpoint is on this machine: reports hold what is in \
            objects. To send them unprotected, set allowInsecure: true"
                .to_owned())
        }
        _ => Err("must begin with https://".to_owned()),
    }
}

/// Whether a host of a URL or of a `Host` header is this machine.
pub(crate) fn is_loopback(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    bare.eq_ignore_ascii_case("localhost") || bare.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

fn check_timeout(text: &str) -> Result<Duration, String> {
    let longest = LONGEST.as_secs();
    let wrong = || format!("must be a time like 10s or 500ms, at most {longest}s");
    let timeout: SignedDuration = text.parse().map_err(|_| wrong())?;
    let timeout = Duration::try_from(timeout).map_err(|_| wrong())?;
    if timeout.is_zero() || timeout > LONGEST { Err(wrong()) } else { Ok(timeout) }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("name", &self.name)
            .field("host", &self.url.host())
            .field("timeout", &self.timeout)
            .field("files", &self.files)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
