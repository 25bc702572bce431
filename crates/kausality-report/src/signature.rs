//! The signature of a report: who has the key can tell that it comes from Kausality, and was sent just now.
//!
//! HMAC-SHA256 over `<seconds since 1970>.<body>`, in two headers:
//!
//! ```text
//! Kausality-Timestamp: 1763251200
//! Kausality-Signature: v1=3f0c…
//! ```
//!
//! A request without a body, as a query is, signs `<METHOD> <path and query>` in the place of the body.

use std::fmt;

use aws_lc_rs::hmac;
use jiff::Timestamp;

/// The header with the time at which a request was signed.
pub const TIMESTAMP: &str = "kausality-timestamp";

/// The header with the signature.
pub const SIGNATURE: &str = "kausality-signature";

/// How many seconds the clocks of both sides may differ, the time on the way included.
pub const TOLERANCE: i64 = 300;

/// The bytes that a key has at least.
pub const SHORTEST: usize = 16;

/// The key that both sides share. It is never shown.
#[derive(Clone)]
pub struct Key(hmac::Key);

/// A key that is too short to keep a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a key of {0} bytes is too short: make one of at least {SHORTEST}, as with `openssl rand -hex 32`")]
pub struct TooShort(usize);

/// What a signed request carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signed {
    /// The value of [`TIMESTAMP`].
    pub timestamp: String,
    /// The value of [`SIGNATURE`].
    pub signature: String,
}

/// Why a signature does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The time is none.
    #[error("the Kausality-Timestamp header is not a number of seconds since 1970")]
    NoTime,
    /// The time is too long ago, or in the future.
    #[error("the request was signed more than {TOLERANCE} s from now: is one of the clocks wrong?")]
    Stale,
    /// It is of another key or another body, or no signature at all.
    #[error("the signature does not fit the request: do both sides have the same key?")]
    Wrong,
}

impl Key {
    /// A key of these bytes. A line's end after them is not part of it, since editors add one.
    ///
    /// # Errors
    /// If it is too short.
    pub fn new(secret: &[u8]) -> Result<Self, TooShort> {
        let secret = secret.trim_ascii_end();
        if secret.len() < SHORTEST {
            return Err(TooShort(secret.len()));
        }
        Ok(Self(hmac::Key::new(hmac::HMAC_SHA256, secret)))
    }

    /// Signs a body.
    #[must_use]
    pub fn sign(&self, now: Timestamp, body: &[u8]) -> Signed {
        let timestamp = now.as_second().to_string();
        let mut context = hmac::Context::with_key(&self.0);
        context.update(timestamp.as_bytes());
        context.update(b".");
        context.update(body);
        let signature = format!("v1={}", hex(context.sign().as_ref()));
        Signed { timestamp, signature }
    }

    /// Checks a signature. There may be several, separated by commas, of which one has to fit.
    ///
    /// # Errors
    /// If it does not count.
    pub fn verify(
        &self,
        now: Timestamp,
        timestamp: &str,
        signature: &str,
        body: &[u8],
    ) -> Result<(), Refused> {
        let at: i64 = timestamp.parse().map_err(|_| Refused::NoTime)?;
        if at.abs_diff(now.as_second()) > TOLERANCE.unsigned_abs() {
            return Err(Refused::Stale);
        }
        // What was signed is the text that was sent, and not the number it stands for.
        let signed = [timestamp.as_bytes(), b".", body].concat();
        let fits = |one: &str| {
            let tag = one.trim().strip_prefix("v1=").and_then(bytes);
            // The library compares in constant time.
            tag.is_some_and(|tag| hmac::verify(&self.0, &signed, &tag).is_ok())
        };
        if signature.split(',').any(fits) { Ok(()) } else { Err(Refused::Wrong) }
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key")
    }
}

/// What a request without a body signs.
#[must_use]
pub fn query(method: &str, path_and_query: &str) -> Vec<u8> {
    format!("{method} {path_and_query}").into_bytes()
}

fn hex(bytes: &[u8]) -> String {
    use fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        _ = write!(text, "{byte:02x}");
        text
    })
}

fn bytes(hex: &str) -> Option<Vec<u8>> {
    if !hex.len().is_multiple_of(2) || !hex.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(hex.get(at..at + 2)?, 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &[u8] = b"0123456789abcdef0123456789abcdef";

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    fn key() -> Key {
        Key::new(SECRET).unwrap()
    }

    /// `printf '1700000000.{"a":1}' | openssl dgst -sha256 -hmac 0123456789abcdef0123456789abcdef`
    #[test]
    fn it_is_what_openssl_says() {
        let signed = key().sign(at(1_700_000_000), br#"{"a":1}"#);
        assert_eq!(signed.timestamp, "1700000000");
        assert_eq!(signed.signature, "v1=f05f2539e3ae1c49aec5f8cfdad75ef6b06480b133973ffbb7ec9e18827af177");
    }

    #[test]
    fn what_was_signed_is_accepted_and_nothing_else() {
        let Signed { timestamp, signature } = key().sign(at(1000), b"body");
        let check = |timestamp: &str, signature: &str, body: &[u8]| {
            key().verify(at(1000), timestamp, signature, body)
        };
        assert_eq!(check(&timestamp, &signature, b"body"), Ok(()));
        assert_eq!(check(&timestamp, &format!("v0=00, {signature}"), b"body"), Ok(()));
        assert_eq!(check(&timestamp, &signature, b"other"), Err(Refused::Wrong));
        assert_eq!(check("1001", &signature, b"body"), Err(Refused::Wrong), "the time is signed too");
        assert_eq!(check("01000", &signature, b"body"), Err(Refused::Wrong), "and as it is written");
        assert_eq!(check("soon", &signature, b"body"), Err(Refused::NoTime));
        for wrong in ["", "v1=", "v1=zz", "v1=0", &signature[3..], &signature[..20]] {
            assert_eq!(check(&timestamp, wrong, b"body"), Err(Refused::Wrong), "{wrong}");
        }
        let other = Key::new(b"another key, as long as it is").unwrap();
        assert_eq!(other.verify(at(1000), &timestamp, &signature, b"body"), Err(Refused::Wrong));
    }

    #[test]
    fn it_lasts_five_minutes() {
        let Signed { timestamp, signature } = key().sign(at(1000), b"");
        for (now, expected) in
            [(700, Ok(())), (1300, Ok(())), (699, Err(Refused::Stale)), (1301, Err(Refused::Stale))]
        {
            assert_eq!(key().verify(at(now), &timestamp, &signature, b""), expected, "{now}");
        }
    }

    #[test]
    fn a_line_end_is_no_part_of_a_key_and_keys_are_not_shown() {
        let with_end = Key::new(&[SECRET, b"\r\n"].concat()).unwrap();
        assert_eq!(with_end.sign(at(1), b""), key().sign(at(1), b""));
        assert_eq!(Key::new(b"0123456789abcde\n\n").unwrap_err(), TooShort(15));
        assert_eq!(format!("{:?}", key()), "Key");
    }
}
