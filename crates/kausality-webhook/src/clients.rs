//! Who may post reviews.
//!
//! An API server shows a client certificate, or sends a bearer token, to webhooks if its `AdmissionConfiguration` says so.
//! Probes and metrics are for everybody, on the same port: so a handshake asks for a certificate and takes any whose key the
//! client has, or none. Whether it is one that may post reviews is judged here, before a review is read, and the answer says
//! what is wrong with it; a handshake could only break off.

use std::{
    fmt,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use axum::http::{HeaderMap, header};
use rustls::{
    pki_types::{CertificateDer, UnixTime},
    server::danger::ClientCertVerifier,
};

use crate::{certificates::CertificateError, reread::Reread};

mod authority;
mod possession;
mod token;

use authority::Authority;
use token::Token;

/// How long a judgement about a connection's certificate holds: it may expire while the connection lives.
const RECHECK: Duration = Duration::from_secs(60);
/// The same for a certificate that was refused.
const RECHECK_REFUSED: Duration = Duration::from_secs(1);

/// Who may post reviews; anybody, unless something is asked for. Clones share what they read.
#[derive(Clone, Default)]
pub struct Clients {
    authority: Option<Arc<Reread<Authority>>>,
    /// The names that a certificate must be for, one of them. Empty: any.
    names: Arc<[String]>,
    token: Option<Arc<Reread<Token>>>,
}

impl Clients {
    /// Whoever shows a certificate that a CA of this PEM file has signed, for one of these names (its common name or a DNS
    /// name of it) if there are any. The file is read again when it changes.
    ///
    /// # Errors
    /// If there is no usable certificate in the file.
    pub fn with_authority(
        self,
        file: impl Into<PathBuf>,
        names: &[String],
    ) -> Result<Self, CertificateError> {
        let authority = Reread::open("client CA", vec![file.into()], Authority::parse)?;
        Ok(Self { authority: Some(Arc::new(authority)), names: names.into(), ..self })
    }

    /// Whoever sends the bearer token in this file, which is read again when it changes. Where a certificate would do, too,
    /// either is enough.
    ///
    /// # Errors
    /// If there is no token in the file.
    pub fn with_token(self, file: impl Into<PathBuf>) -> Result<Self, CertificateError> {
        let token = Reread::open("client token", vec![file.into()], Token::parse)?;
        Ok(Self { token: Some(Arc::new(token)), ..self })
    }

    /// Whether anybody may.
    #[must_use]
    pub fn are_anybody(&self) -> bool {
        self.authority.is_none() && self.token.is_none()
    }

    /// What handshakes ask of clients, if anything.
    pub(crate) fn verifier(&self) -> Option<Arc<dyn ClientCertVerifier>> {
        self.authority.is_some().then(|| Arc::new(possession::Possession::default()) as Arc<_>)
    }

    /// Whether whoever sent these headers over this connection may post reviews.
    pub(crate) fn check(&self, peer: Option<&Peer>, headers: &HeaderMap) -> Result<(), Denied> {
        if self.are_anybody() {
            return Ok(());
        }
        let token = self.check_token(headers);
        if token == Some(true) {
            return Ok(());
        }
        match (&self.authority, peer.filter(|peer| !peer.chain.is_empty())) {
            (Some(authority), Some(peer)) => peer.check(authority.current(), &self.names),
            _ if token == Some(false) => Err(Denied::Token),
            (authority, _) => {
                Err(Denied::Nothing { certificate: authority.is_some(), token: self.token.is_some() })
            }
        }
    }

    /// Whether the token is the right one; none, if none is sent or none is asked for.
    fn check_token(&self, headers: &HeaderMap) -> Option<bool> {
        let expected = self.token.as_ref()?;
        let (scheme, sent) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| expected.current().is(sent.trim()))
    }
}

impl fmt::Debug for Clients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Clients")
            .field("certificate", &self.authority.is_some())
            .field("names", &self.names)
            .field("token", &self.token.is_some())
            .finish()
    }
}

/// Why somebody may not post reviews.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Denied {
    #[error(
        "reviews are taken from the API server alone, by its {}; configure it with \
        --admission-control-config-file", wanted(*.certificate, *.token)
    )]
    Nothing { certificate: bool, token: bool },
    #[error("the bearer token is not the one in the file of --client-token-file")]
    Token,
    #[error(
        "the client certificate {subject} is not accepted: {reason}; the CAs are in the file of --client-ca"
    )]
    Certificate { subject: String, reason: String },
    #[error("the client certificate {subject} is valid, but none of its names is among --client-names")]
    Name { subject: String },
}

impl Denied {
    /// Why, in a word.
    pub(crate) fn reason(&self) -> &'static str {
        match self {
            Self::Nothing { .. } => "none",
            Self::Token => "token",
            Self::Certificate { .. } => "certificate",
            Self::Name { .. } => "name",
        }
    }
}

fn wanted(certificate: bool, token: bool) -> &'static str {
    match (certificate, token) {
        (true, true) => "client certificate or bearer token",
        (true, false) => "client certificate",
        (false, _) => "bearer token",
    }
}

/// The other end of a connection.
#[derive(Debug, Default)]
pub(crate) struct Peer {
    /// The certificates that it has shown; its own comes first.
    chain: Vec<CertificateDer<'static>>,
    checked: Mutex<Option<Checked>>,
}

/// What was last found out about the certificates of a connection: requests that follow need not wait for that again.
#[derive(Debug)]
struct Checked {
    /// By whom. Once other CAs are trusted, it says nothing.
    authority: Arc<Authority>,
    until: Instant,
    outcome: Result<(), Denied>,
}

impl Peer {
    pub(crate) fn new(chain: &[CertificateDer<'_>]) -> Self {
        let chain = chain.iter().map(|certificate| certificate.clone().into_owned()).collect();
        Self { chain, checked: Mutex::default() }
    }

    fn check(&self, authority: Arc<Authority>, names: &[String]) -> Result<(), Denied> {
        let mut checked = self.checked.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if let Some(known) = &*checked
            && Arc::ptr_eq(&known.authority, &authority)
            && now < known.until
        {
            return known.outcome.clone();
        }
        let outcome = authority.judge(&self.chain, names, UnixTime::now());
        let lasts = if outcome.is_ok() { RECHECK } else { RECHECK_REFUSED };
        *checked = Some(Checked { authority, until: now + lasts, outcome: outcome.clone() });
        outcome
    }
}

#[cfg(test)]
mod tests;
