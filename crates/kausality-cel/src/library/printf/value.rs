//! Any value as text.

use cel::common::types::{
    CelBool, CelBytes, CelDouble, CelDuration, CelInt, CelString, CelTimestamp, CelType, CelUInt, Kind,
};
use cel::common::value::Val;

use super::numbers;

/// As it is written on its own.
pub(in crate::library) fn top(value: &dyn Val) -> Result<String, String> {
    Ok(match scalar(value)? {
        Scalar::Double(double) => numbers::shortest(double),
        Scalar::Duration(text) | Scalar::Timestamp(text) | Scalar::Other(text) => text,
        Scalar::String(text) => text.to_owned(),
        Scalar::Bytes(bytes) => bytes.to_owned(),
        Scalar::List => list(value)?,
        Scalar::Map => map(value)?,
    })
}

/// As it is written within a list or map: so that it could be read again.
fn within(value: &dyn Val) -> Result<String, String> {
    Ok(match scalar(value)? {
        Scalar::Double(double) if double.is_finite() => format!("{double:.6}"),
        Scalar::Double(double) => quoted(&numbers::shortest(double)),
        Scalar::Duration(text) => format!("duration({})", quoted(&text)),
        Scalar::Timestamp(text) => format!("timestamp({})", quoted(&text)),
        Scalar::Other(text) => text,
        Scalar::String(text) => quoted(text),
        Scalar::Bytes(bytes) => format!("b{}", quoted(bytes)),
        Scalar::List => list(value)?,
        Scalar::Map => map(value)?,
    })
}

/// What the two have in common.
enum Scalar<'a> {
    Bytes(&'a str),
    Double(f64),
    Duration(String),
    List,
    Map,
    Other(String),
    String(&'a str),
    Timestamp(String),
}

fn scalar(value: &dyn Val) -> Result<Scalar<'_>, String> {
    let scalar = match value.get_type().kind() {
        Kind::Boolean => value.downcast_ref::<CelBool>().map(|it| Scalar::Other(it.inner().to_string())),
        Kind::Int => value.downcast_ref::<CelInt>().map(|it| Scalar::Other(it.inner().to_string())),
        Kind::UInt => value.downcast_ref::<CelUInt>().map(|it| Scalar::Other(it.inner().to_string())),
        Kind::Double => value.downcast_ref::<CelDouble>().map(|it| Scalar::Double(*it.inner())),
        Kind::String => value.downcast_ref::<CelString>().map(|it| Scalar::String(it.inner())),
        Kind::Bytes => match value.downcast_ref::<CelBytes>().map(|it| str::from_utf8(it.inner())) {
            Some(Ok(text)) => Some(Scalar::Bytes(text)),
            Some(Err(_)) => return Err("the bytes are not UTF-8".to_owned()),
            None => None,
        },
        Kind::NullType => Some(Scalar::Other("null".to_owned())),
        Kind::Type => value.downcast_ref::<CelType>().map(|it| Scalar::Other(it.name().to_owned())),
        Kind::Duration => value.downcast_ref::<CelDuration>().map(|it| Scalar::Duration(duration(it))),
        Kind::Timestamp => value.downcast_ref::<CelTimestamp>().map(|it| Scalar::Timestamp(timestamp(it))),
        Kind::List => Some(Scalar::List),
        Kind::Map => Some(Scalar::Map),
        _ => None,
    };
    scalar.ok_or_else(|| format!("%s cannot be used with a {}", value.get_type().name()))
}

/// In seconds.
fn duration(duration: &CelDuration) -> String {
    let seconds = duration.num_seconds() as f64 + f64::from(duration.subsec_nanos()) / 1e9;
    format!("{seconds}s")
}

/// With the offset it was written with, and as many digits of a second as there are.
fn timestamp(timestamp: &CelTimestamp) -> String {
    let time = timestamp.inner();
    let nanos = format!("{:09}", time.timestamp_subsec_nanos() % 1_000_000_000);
    let fraction = match nanos.trim_end_matches('0') {
        "" => String::new(),
        digits => format!(".{digits}"),
    };
    let offset = match time.offset().to_string().as_str() {
        "+00:00" => "Z".to_owned(),
        offset => offset.to_owned(),
    };
    format!("{}{fraction}{offset}", time.naive_local().format("%Y-%m-%dT%H:%M:%S"))
}

fn list(value: &dyn Val) -> Result<String, String> {
    let mut items = value.as_iterable().ok_or("a list without items")?.iter();
    let mut written = Vec::new();
    while let Some(item) = items.next() {
        written.push(within(item)?);
    }
    Ok(format!("[{}]", written.join(", ")))
}

/// In the order of keys as they are written.
fn map(value: &dyn Val) -> Result<String, String> {
    let (keys, values) = value.as_iterable().zip(value.as_indexer()).ok_or("a map without entries")?;
    let mut keys = keys.iter();
    let mut written = Vec::new();
    while let Some(key) = keys.next() {
        let value = values.get(key).map_err(|error| error.to_string())?;
        written.push((within(key)?, within(value.as_ref())?));
    }
    written.sort();
    let written: Vec<String> = written.into_iter().map(|(key, value)| format!("{key}:{value}")).collect();
    Ok(format!("{{{}}}", written.join(", ")))
}

/// As Go quotes a text.
fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for letter in text.chars() {
        match letter {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\u{7}' => quoted.push_str("\\a"),
            '\u{8}' => quoted.push_str("\\b"),
            '\u{c}' => quoted.push_str("\\f"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\u{b}' => quoted.push_str("\\v"),
            letter if letter.is_ascii_control() => quoted.push_str(&format!("\\x{:02x}", u32::from(letter))),
            letter if is_printable(letter) => quoted.push(letter),
            letter if u32::from(letter) < 0x10000 => {
                quoted.push_str(&format!("\\u{:04x}", u32::from(letter)))
            }
            letter => quoted.push_str(&format!("\\U{:08x}", u32::from(letter))),
        }
    }
    quoted.push('"');
    quoted
}

/// As Rust has it, with the marks that are put on the letter before.
fn is_printable(letter: char) -> bool {
    letter == '\'' || format!("a{letter}").escape_debug().count() == 2
}
