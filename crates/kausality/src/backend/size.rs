//! Amounts of bytes, as people write them.

use std::str::FromStr;

/// So many bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size(pub(super) u64);

/// Not an amount of bytes.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a size like 500MiB, 2GiB or 1073741824")]
pub(super) struct NoSize;

const UNITS: [(&str, u64); 10] = [
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("Ki", 1 << 10),
    ("Mi", 1 << 20),
    ("Gi", 1 << 30),
    ("Ti", 1 << 40),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
];

impl FromStr for Size {
    type Err = NoSize;

    fn from_str(text: &str) -> Result<Self, NoSize> {
        let unit = UNITS.iter().find_map(|(unit, bytes)| Some((text.strip_suffix(unit)?, *bytes)));
        let (number, unit) = unit.unwrap_or((text, 1));
        let number: u64 = number.trim_end().parse().map_err(|_| NoSize)?;
        number.checked_mul(unit).map(Self).ok_or(NoSize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read() {
        for (text, bytes) in [
            ("0", 0),
            ("17", 17),
            ("2KiB", 2048),
            ("500 MiB", 500 << 20),
            ("2Gi", 2 << 30),
            ("3MB", 3_000_000),
        ] {
            assert_eq!(text.parse(), Ok(Size(bytes)), "{text}");
        }
        for text in ["", "MiB", "-1", "1.5GiB", "1 PiB", "99999999999TiB", "two"] {
            assert_eq!(text.parse::<Size>(), Err(NoSize), "{text}");
        }
    }
}
