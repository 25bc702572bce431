//! The bearer token of API servers.

use std::{fmt, path::PathBuf};

use aws_lc_rs::{
    constant_time::verify_slices_are_equal,
    digest::{self, SHA256},
};

use crate::certificates::CertificateError;

/// A token, as its digest: comparing tells nobody how much of it was right, or how long it is.
pub(super) struct Token(digest::Digest);

impl Token {
    pub(super) fn parse(files: &[PathBuf], texts: &[Vec<u8>]) -> Result<Self, CertificateError> {
        let text = texts.first().map_or(&[][..], |text| text.trim_ascii());
        if text.is_empty() {
            return Err(CertificateError::NoToken { path: files.first().cloned().unwrap_or_default() });
        }
        Ok(Self(digest::digest(&SHA256, text)))
    }

    pub(super) fn is(&self, sent: &str) -> bool {
        let sent = digest::digest(&SHA256, sent.as_bytes());
        verify_slices_are_equal(self.0.as_ref(), sent.as_ref()).is_ok()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}
