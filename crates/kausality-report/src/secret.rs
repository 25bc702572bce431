//! Secrets in files. They are read whenever they are needed, so that they can be changed without a restart, and never
//! shown: errors name the file.

use std::{
    fmt, fs,
    path::{Path, PathBuf},
};

use http::HeaderValue;

use crate::signature::{Key, TooShort};

/// The bytes of the largest file that is read: one that is no secret must not fill the memory.
const LARGEST: u64 = 1 << 20;

/// Why a secret cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BadSecret {
    /// Its file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file is too big.
    #[error("{} holds more than {LARGEST} bytes: is it the right file?", path.display())]
    TooBig {
        /// The file.
        path: PathBuf,
    },
    /// There is no token in it.
    #[error("{} holds no token: a token is one line of printable characters", path.display())]
    NoToken {
        /// The file.
        path: PathBuf,
    },
    /// The key in it is too short.
    #[error("{}: {fault}", path.display())]
    BadKey {
        /// The file.
        path: PathBuf,
        /// Why.
        fault: TooShort,
    },
}

/// A bearer token.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// The token in a file.
    ///
    /// # Errors
    /// If there is none.
    pub fn read(path: &Path) -> Result<Self, BadSecret> {
        let bytes = read(path)?;
        let token = std::str::from_utf8(bytes.trim_ascii()).unwrap_or_default();
        if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(BadSecret::NoToken { path: path.to_owned() });
        }
        Ok(Self(token.to_owned()))
    }

    /// The value of an `Authorization` header.
    pub(crate) fn header(&self) -> Option<HeaderValue> {
        let mut value = HeaderValue::from_str(&format!("Bearer {}", self.0)).ok()?;
        value.set_sensitive(true);
        Some(value)
    }

    /// Whether an `Authorization` header has this token. Takes as long for a wrong one as for the right one.
    pub(crate) fn fits(&self, header: &str) -> bool {
        let Some((scheme, token)) = header.split_once(' ') else { return false };
        scheme.eq_ignore_ascii_case("bearer")
            && aws_lc_rs::constant_time::verify_slices_are_equal(token.trim().as_bytes(), self.0.as_bytes())
                .is_ok()
    }

    /// A text in which the token is blackened: others may repeat it.
    pub(crate) fn blacken(&self, text: &str) -> String {
        text.replace(&self.0, "[token]")
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

/// The key for signatures in a file.
///
/// # Errors
/// If there is none.
pub fn key(path: &Path) -> Result<Key, BadSecret> {
    Key::new(&read(path)?).map_err(|fault| BadSecret::BadKey { path: path.to_owned(), fault })
}

/// What is in a small file.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, BadSecret> {
    let unreadable = |source| BadSecret::Unreadable { path: path.to_owned(), source };
    if fs::metadata(path).map_err(unreadable)?.len() > LARGEST {
        return Err(BadSecret::TooBig { path: path.to_owned() });
    }
    fs::read(path).map_err(unreadable)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(content: &[u8]) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), content).unwrap();
        file
    }

    #[test]
    fn tokens_fit_or_do_not() {
        let token = Token::read(file(b" s3cr3t\n").path()).unwrap();
        assert_eq!(token.header().unwrap(), "Bearer s3cr3t");
        for right in ["Bearer s3cr3t", "bearer s3cr3t"] {
            assert!(token.fits(right), "{right}");
        }
        for wrong in ["", "Bearer", "Bearer ", "Bearer s3cr3", "Bearer s3cr3tt", "Basic s3cr3t", "s3cr3t"] {
            assert!(!token.fits(wrong), "{wrong}");
        }
    }

    #[test]
    fn what_is_no_secret_is_refused_and_what_is_one_is_not_shown() {
        for bad in [&b""[..], b"\n", b"two words", b"two\nlines", b"\xff\xfe"] {
            assert!(matches!(Token::read(file(bad).path()), Err(BadSecret::NoToken { .. })), "{bad:?}");
        }
        assert!(matches!(key(file(b"short").path()), Err(BadSecret::BadKey { .. })));
        let big = file(&vec![b'x'; 1 << 20 | 1]);
        assert!(matches!(Token::read(big.path()), Err(BadSecret::TooBig { .. })));
        assert!(matches!(key(Path::new("/nowhere/at/all")), Err(BadSecret::Unreadable { .. })));
        let token = Token::read(file(b"s3cr3t").path()).unwrap();
        assert_eq!(format!("{token:?} {:?}", token.header()), "Token Some(Sensitive)");
        assert_eq!(token.blacken("no s3cr3t is known"), "no [token] is known");
    }
}
