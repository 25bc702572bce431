//! Bytes written as `%20`, and which bytes are written so in which part of a URL.

/// A part of a URL.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Part {
    Fragment,
    Host,
    Parameter,
    Path,
    User,
    /// The zone of an address in brackets.
    Zone,
}

impl Part {
    /// Whether a byte is written as it is.
    fn is_plain(self, byte: u8) -> bool {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
            return true;
        }
        match self {
            Self::Parameter => false,
            Self::Path => b"$&+,/:;=@".contains(&byte),
            Self::User => b"$&+,;=".contains(&byte),
            Self::Fragment => b"$&+,/:;=?@!()*".contains(&byte),
            Self::Host | Self::Zone => b"!$&'()*+,;=:[]<>\"".contains(&byte),
        }
    }
}

/// Writes bytes as they are in that part.
pub(super) fn escape(bytes: &[u8], part: Part) -> String {
    let mut escaped = String::with_capacity(bytes.len());
    for byte in bytes {
        if part.is_plain(*byte) {
            escaped.push(char::from(*byte));
        } else {
            escaped.push_str(&format!("%{byte:02X}"));
        }
    }
    escaped
}

/// Reads what is written so.
pub(super) fn unescape(text: &str, part: Part) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        match *first {
            b'%' => {
                let (byte, after) =
                    escaped(after).ok_or_else(|| "a % without two hexadecimal digits".to_owned())?;
                // A host has escapes for what is not ASCII only. %25 starts a zone.
                let allowed = match part {
                    Part::Host => byte >= 0x80 || byte == b'%',
                    Part::Zone => matches!(byte, b'%' | b' ') || Part::Host.is_plain(byte),
                    _ => true,
                };
                if !allowed {
                    return Err(format!("%{byte:02X} cannot be in a host"));
                }
                bytes.push(byte);
                rest = after;
            }
            b'+' if part == Part::Parameter => bytes.push(b' '),
            byte if matches!(part, Part::Host | Part::Zone) && byte < 0x80 && !part.is_plain(byte) => {
                return Err(format!("{:?} cannot be in a host", char::from(byte)));
            }
            byte => bytes.push(byte),
        }
    }
    Ok(bytes)
}

/// The byte of two hexadecimal digits, and what follows them.
fn escaped(text: &[u8]) -> Option<(u8, &[u8])> {
    let [high, low, rest @ ..] = text else { return None };
    let digit = |letter: u8| char::from(letter).to_digit(16);
    let byte = u8::try_from(digit(*high)? * 16 + digit(*low)?).ok()?;
    Some((byte, rest))
}

/// A key or a value of a query.
pub(super) fn parameter(text: &str) -> Result<String, String> {
    Ok(String::from_utf8_lossy(&unescape(text, Part::Parameter)?).into_owned())
}

/// How a part is written in the end: as it came if that is well-formed, else with all escapes it needs.
pub(super) fn normal(text: &str, part: Part) -> Result<String, String> {
    let bytes = unescape(text, part)?;
    let tolerated = |byte: u8| b"!$&'()*+,;=:@[]%".contains(&byte) || part.is_plain(byte);
    if text.bytes().all(tolerated) { Ok(text.to_owned()) } else { Ok(escape(&bytes, part)) }
}
