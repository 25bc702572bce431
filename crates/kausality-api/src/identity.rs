//! Short hashes of user names, and the bounded lists of them that annotations hold.

use std::fmt;

use sha2::{Digest, Sha256};

/// How many hashes an annotation holds at most.
pub const MAX_HASHES: usize = 5;

const LENGTH: usize = 5;

/// A user, as five characters of base36.
///
/// The SHA-256 of the user name (or, without one, of the user's UID); its first four bytes as a
/// big-endian number, in base36, padded with zeros on the left, cut to five characters.
///
/// ```
/// use kausality_api::identity::UserHash;
///
/// let hash = UserHash::of("system:serviceaccount:kube-system:deployment-controller", "");
/// assert_eq!(hash.to_string(), "1likq");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct UserHash([u8; LENGTH]);

impl UserHash {
    /// Hashes the user name, or the UID where the name is empty.
    #[must_use]
    pub fn of(name: &str, uid: &str) -> Self {
        let digest = Sha256::digest(if name.is_empty() { uid } else { name });
        let mut number = digest.iter().take(4).fold(0_u32, |sum, byte| (sum << 8) | u32::from(*byte));
        // A u32 has at most seven digits in base36, least significant first.
        let mut digits = [0_u8; 7];
        let mut count = 0;
        while number > 0 {
            if let Some(digit) = digits.get_mut(count) {
                *digit = base36(number % 36);
            }
            number /= 36;
            count += 1;
        }
        let mut text = [b'0'; LENGTH];
        let padding = LENGTH.saturating_sub(count);
        for (place, digit) in text.iter_mut().skip(padding).zip(digits.iter().take(count).rev()) {
            *place = *digit;
        }
        Self(text)
    }

    /// Stands for whoever changed an object before anything was recorded of it. No user has this hash: base36 has no `-`.
    pub const UNRECORDED: Self = Self(*b"-----");

    /// Reads a hash back from an annotation.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let bytes: [u8; LENGTH] = text.as_bytes().try_into().ok()?;
        let valid = bytes.iter().all(|byte| byte.is_ascii_digit() || byte.is_ascii_lowercase());
        (valid || Self(bytes) == Self::UNRECORDED).then_some(Self(bytes))
    }
}

pub(crate) fn base36(digit: u32) -> u8 {
    let digit = u8::try_from(digit).unwrap_or(0);
    if digit < 10 { b'0' + digit } else { b'a' + (digit - 10) }
}

impl fmt::Display for UserHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(std::str::from_utf8(&self.0).unwrap_or_default())
    }
}

impl fmt::Debug for UserHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A list of user hashes, least recently seen first, as an annotation holds it: `1likq,afodm`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hashes(Vec<UserHash>);

impl Hashes {
    /// Reads an annotation. What is not a hash is skipped, and so is what goes beyond the bound.
    #[must_use]
    pub fn decode(text: &str) -> Self {
        let mut hashes = Vec::new();
        for hash in text.split(',').filter_map(|part| UserHash::parse(part.trim())) {
            if !hashes.contains(&hash) && hashes.len() < MAX_HASHES {
                hashes.push(hash);
            }
        }
        Self(hashes)
    }

    /// Writes the annotation's value.
    #[must_use]
    pub fn encode(&self) -> String {
        let mut text = String::with_capacity(self.0.len() * (LENGTH + 1));
        for hash in &self.0 {
            if !text.is_empty() {
                text.push(',');
            }
            text.push_str(std::str::from_utf8(&hash.0).unwrap_or_default());
        }
        text
    }

    /// Notes that `user` was seen. A full list lets the least recently seen one go that is not in `kept`; if all
    /// are, it stays as it is.
    pub fn note(&mut self, user: UserHash, kept: &Hashes) {
        match self.0.iter().position(|hash| *hash == user) {
            Some(position) => {
                self.0.remove(position);
            }
            None if self.0.len() < MAX_HASHES => {}
            None => {
                let Some(expendable) = self.0.iter().position(|hash| !kept.contains(*hash)) else { return };
                self.0.remove(expendable);
            }
        }
        self.0.push(user);
    }

    /// Whether `user` is in the list.
    #[must_use]
    pub fn contains(&self, user: UserHash) -> bool {
        self.0.contains(&user)
    }

    /// The hashes, least recently seen first.
    pub fn iter(&self) -> impl Iterator<Item = UserHash> {
        self.0.iter().copied()
    }

    /// The hashes in both lists.
    #[must_use]
    pub fn intersection(&self, other: &Hashes) -> Hashes {
        Self(self.0.iter().copied().filter(|hash| other.contains(*hash)).collect())
    }

    /// Whether both lists have the same members, in whatever order.
    #[must_use]
    pub fn same_members(&self, other: &Hashes) -> bool {
        self.0.len() == other.0.len() && self.0.iter().all(|hash| other.contains(*hash))
    }

    /// Whether nobody is in the list.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether one more would push another out.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.0.len() >= MAX_HASHES
    }

    /// The only member, where there is exactly one.
    #[must_use]
    pub fn only(&self) -> Option<UserHash> {
        match self.0.as_slice() {
            [hash] => Some(*hash),
            _ => None,
        }
    }
}

impl fmt::Display for Hashes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.encode())
    }
}

#[cfg(test)]
mod tests;
