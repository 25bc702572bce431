//! Who may bring reports, and ask for them.

use std::{net::SocketAddr, path::PathBuf};

use axum::http::{HeaderName, StatusCode, header, request::Parts};
use jiff::Timestamp;

use crate::{
    endpoint::is_loopback,
    secret::{self, BadSecret, Token},
    signature::{self, SIGNATURE, TIMESTAMP},
};

/// How those who come are known.
#[derive(Clone, Debug)]
pub enum Guard {
    /// By a bearer token or a signature, whichever there is a file for.
    Locked {
        /// The file with the token.
        token: Option<PathBuf>,
        /// The file with the key for signatures.
        key: Option<PathBuf>,
    },
    /// By being on this machine.
    Loopback,
    /// Not at all.
    Open,
}

/// Why there is no guard.
#[derive(Debug, thiserror::Error)]
pub enum Unprotected {
    /// Anybody could come.
    #[error(
        "reports hold what is in objects, and {0} can be reached from other machines: give --token-file or \
         --hmac-key-file, listen on 127.0.0.1, or say --insecure-no-auth"
    )]
    Reachable(SocketAddr),
    /// A file with a secret cannot be used.
    #[error(transparent)]
    BadSecret(#[from] BadSecret),
}

/// Why somebody may not come in.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refused {
    #[error("a bearer token is required")]
    NoToken,
    #[error("the headers Kausality-Timestamp and Kausality-Signature are required")]
    NoSignature,
    #[error("a bearer token or a signature is required")]
    Nothing,
    #[error("the token is wrong")]
    WrongToken,
    #[error(transparent)]
    WrongSignature(#[from] signature::Refused),
    #[error("without authentication, only this machine is served, under its own name")]
    OtherHost,
    #[error("secrets cannot be read at present: see the log")]
    Unready,
}

impl Refused {
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::OtherHost => StatusCode::FORBIDDEN,
            Self::Unready => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::UNAUTHORIZED,
        }
    }
}

impl Guard {
    /// The guard of somebody who listens there.
    ///
    /// # Errors
    /// If a secret cannot be read, or there is none where one is needed.
    pub fn new(
        address: SocketAddr,
        token: Option<PathBuf>,
        key: Option<PathBuf>,
        is_insecure: bool,
    ) -> Result<Self, Unprotected> {
        if token.is_none() && key.is_none() {
            return match (is_insecure, address.ip().is_loopback()) {
                (true, _) => Ok(Self::Open),
                (false, true) => Ok(Self::Loopback),
                (false, false) => Err(Unprotected::Reachable(address)),
            };
        }
        token.as_deref().map(Token::read).transpose()?;
        key.as_deref().map(secret::key).transpose()?;
        Ok(Self::Locked { token, key })
    }

    /// Lets a request with this body in, or not.
    pub(crate) fn check(&self, parts: &Parts, body: &[u8], now: Timestamp) -> Result<(), Refused> {
        match self {
            Self::Open => Ok(()),
            // A page on the web can have its name point to this machine, but not have browsers tell another name.
            Self::Loopback => {
                let host = parts.uri.authority().map(ToString::to_string);
                let host = host.or_else(|| text(parts, &header::HOST).map(ToOwned::to_owned));
                let is_ours = host.is_none_or(|host| is_loopback(without_port(&host)));
                if is_ours { Ok(()) } else { Err(Refused::OtherHost) }
            }
            Self::Locked { token, key } => {
                let sent = text(parts, &header::AUTHORIZATION);
                let signature = (
                    text(parts, &HeaderName::from_static(TIMESTAMP)),
                    text(parts, &HeaderName::from_static(SIGNATURE)),
                );
                match (token, sent, key, signature) {
                    (Some(token), Some(sent), ..) => {
                        let token = Token::read(token).map_err(unready)?;
                        if token.fits(sent) { Ok(()) } else { Err(Refused::WrongToken) }
                    }
                    (_, _, Some(key), (Some(timestamp), Some(signature))) => {
                        let key = secret::key(key).map_err(unready)?;
                        Ok(key.verify(now, timestamp, signature, body)?)
                    }
                    (Some(_), None, Some(_), _) => Err(Refused::Nothing),
                    (Some(_), None, None, _) => Err(Refused::NoToken),
                    (None, ..) => Err(Refused::NoSignature),
                }
            }
        }
    }

    /// Lets a request without a body in, or not.
    pub(crate) fn check_query(&self, parts: &Parts, now: Timestamp) -> Result<(), Refused> {
        let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
        self.check(parts, &signature::query(parts.method.as_str(), path), now)
    }
}

/// The sender is told nothing of files; the log is.
fn unready(error: BadSecret) -> Refused {
    tracing::error!(%error, "nobody can be let in");
    Refused::Unready
}

fn text<'a>(parts: &'a Parts, name: &HeaderName) -> Option<&'a str> {
    parts.headers.get(name)?.to_str().ok()
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => host,
        _ => host,
    }
}
