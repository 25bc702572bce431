//! Kubernetes' protobuf, as far as clients send it: kubectl creates built-in kinds with it. Answers are always JSON.
//!
//! `protobuf.json` has a line for each field of each message, taken from the tags of the Go types: its number, its name in
//! JSON (`-` for what is inlined, with a `+` if Go writes it also when it is empty), and its type (`!` for a pointer, which
//! tells zero from absent).

use std::collections::{BTreeMap, HashMap};
use std::sync::OnceLock;

use base64::Engine as _;
use kausality_fields::schema::GroupVersionKind;
use serde_json::{Map, Value};

use super::built_in;
use crate::controllers::Time;

const TEXT: &str = include_str!("protobuf.json");
const MAGIC: &[u8] = b"k8s\0";
const DELETE_OPTIONS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";
const MAX_DEPTH: usize = 64;
const SCALARS: [&str; 5] = ["string", "int", "bool", "double", "bytes"];

/// A field of a message.
struct Field {
    name: String,
    inline: bool,
    always: bool,
    shape: Shape,
    pointer: bool,
    of: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    One,
    List,
    Map,
}

type Messages = HashMap<String, BTreeMap<u64, Field>>;

fn messages() -> &'static Messages {
    static READ: OnceLock<Messages> = OnceLock::new();
    READ.get_or_init(|| {
        let lines: BTreeMap<String, Vec<String>> = serde_json::from_str(TEXT).unwrap_or_default();
        let message = |lines: &[String]| lines.iter().filter_map(|line| field(line)).collect();
        lines.iter().map(|(name, lines)| (name.clone(), message(lines))).collect()
    })
}

fn field(line: &str) -> Option<(u64, Field)> {
    let mut parts = line.split(' ');
    let (number, name) = (parts.next()?.parse().ok()?, parts.next()?);
    let first = parts.next()?;
    let (shape, of) = match first {
        "list" => (Shape::List, parts.next()?),
        "map" => (Shape::Map, parts.next()?),
        of => (Shape::One, of),
    };
    let always = name.ends_with('+');
    let name = name.trim_end_matches('+');
    Some((
        number,
        Field {
            name: name.to_owned(),
            inline: name == "-",
            always,
            shape,
            pointer: of.starts_with('!'),
            of: of.trim_start_matches('!').to_owned(),
        },
    ))
}

/// What Go writes of a field that is empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Empty {
    /// Nothing, of an empty list or map, or of a zero that is no pointer's.
    Omitted,
    /// A null, of a time, list, map or pointer that is not set.
    Null,
}

/// The fields of a definition of which Go writes something else than what they are, if they are empty.
pub(crate) fn when_empty(definition: &str) -> impl Iterator<Item = (&'static str, Empty)> {
    let fields = messages().get(definition).into_iter().flat_map(BTreeMap::values);
    fields.filter_map(|field| {
        let time = field.of.ends_with(".Time") || field.of.ends_with(".MicroTime");
        match field.shape {
            Shape::List | Shape::Map if !field.always => Some((field.name.as_str(), Empty::Omitted)),
            Shape::List | Shape::Map => Some((field.name.as_str(), Empty::Null)),
            Shape::One if field.pointer && field.always => Some((field.name.as_str(), Empty::Null)),
            Shape::One if time && field.always && !field.pointer => Some((field.name.as_str(), Empty::Null)),
            Shape::One if !field.always && !field.pointer && SCALARS.contains(&field.of.as_str()) => {
                Some((field.name.as_str(), Empty::Omitted))
            }
            _ => None,
        }
    })
}

/// Reads an object.
pub(crate) fn decode(bytes: &[u8]) -> Result<Value, String> {
    let unknown = bytes.strip_prefix(MAGIC).ok_or("it does not begin as Kubernetes' protobuf does")?;
    let (mut version, mut kind, mut raw) = (String::new(), String::new(), &[][..]);
    each(unknown, |number, wire| {
        match (number, wire) {
            (1, Wire::Bytes(meta)) => each(meta, |number, wire| {
                if let Wire::Bytes(text) = wire {
                    let text = String::from_utf8_lossy(text).into_owned();
                    match number {
                        1 => version = text,
                        2 => kind = text,
                        _ => {}
                    }
                }
                Ok(())
            })?,
            (2, Wire::Bytes(bytes)) => raw = bytes,
            _ => {}
        }
        Ok(())
    })?;
    let name = match kind.as_str() {
        "DeleteOptions" => DELETE_OPTIONS,
        _ => {
            let known = built_in().kinds.types.get(&GroupVersionKind::new(&version, &kind));
            known.ok_or_else(|| format!("no kind {kind:?} is registered for version {version:?}"))?
        }
    };
    let mut object = message(name, raw, 0)?;
    object.insert("apiVersion".to_owned(), version.into());
    object.insert("kind".to_owned(), kind.into());
    Ok(Value::Object(object))
}

/// A value as it is on the wire.
enum Wire<'b> {
    Number(u64),
    Fixed(u64),
    Bytes(&'b [u8]),
}

/// Each field of a message.
fn each<'b>(
    mut bytes: &'b [u8],
    mut found: impl FnMut(u64, Wire<'b>) -> Result<(), String>,
) -> Result<(), String> {
    const SHORT: &str = "unexpected EOF";
    while !bytes.is_empty() {
        let tag = varint(&mut bytes)?;
        let mut take = |length: usize| {
            let (taken, rest) = bytes.split_at_checked(length).ok_or(SHORT)?;
            bytes = rest;
            Ok::<_, String>(taken)
        };
        let wire = match tag & 7 {
            0 => Wire::Number(varint(&mut bytes)?),
            1 => Wire::Fixed(take(8)?.try_into().map(u64::from_le_bytes).map_err(|_| SHORT)?),
            2 => {
                let length = usize::try_from(varint(&mut bytes)?).map_err(|_| SHORT)?;
                let (taken, rest) = bytes.split_at_checked(length).ok_or(SHORT)?;
                bytes = rest;
                Wire::Bytes(taken)
            }
            5 => Wire::Fixed(take(4)?.try_into().map(u32::from_le_bytes).map_err(|_| SHORT)?.into()),
            other => return Err(format!("illegal wireType {other}")),
        };
        found(tag >> 3, wire)?;
    }
    Ok(())
}

fn varint(bytes: &mut &[u8]) -> Result<u64, String> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first().ok_or("unexpected EOF")?;
        *bytes = rest;
        value |= u64::from(byte & 0x7F) << shift;
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err("a number is too long".to_owned())
}

fn message(name: &str, bytes: &[u8], depth: usize) -> Result<Map<String, Value>, String> {
    let mut read = Map::new();
    let Some(fields) = messages().get(name).filter(|_| depth < MAX_DEPTH) else { return Ok(read) };
    each(bytes, |number, wire| {
        let Some(field) = fields.get(&number) else { return Ok(()) };
        match field.shape {
            _ if field.inline => {
                if let Wire::Bytes(bytes) = wire {
                    read.extend(message(&field.of, bytes, depth + 1)?);
                }
            }
            Shape::One => {
                let value = value(&field.of, &wire, depth)?;
                if !is_zero(&value) || field.pointer && !value.is_null() || field.always && !value.is_null() {
                    read.insert(field.name.clone(), value);
                }
            }
            Shape::List => {
                let list = read.entry(field.name.clone()).or_insert_with(|| Value::Array(Vec::new()));
                if let Some(list) = list.as_array_mut() {
                    list.push(value(&field.of, &wire, depth)?);
                }
            }
            Shape::Map => {
                let Wire::Bytes(entry) = wire else { return Ok(()) };
                let (mut key, mut of) = (String::new(), None);
                each(entry, |number, wire| {
                    match (number, &wire) {
                        (1, Wire::Bytes(text)) => key = String::from_utf8_lossy(text).into_owned(),
                        (2, _) => of = Some(value(&field.of, &wire, depth)?),
                        _ => {}
                    }
                    Ok(())
                })?;
                let map = read.entry(field.name.clone()).or_insert_with(|| Value::Object(Map::new()));
                if let Some(map) = map.as_object_mut() {
                    map.insert(key, of.unwrap_or_else(|| empty(&field.of)));
                }
            }
        }
        Ok(())
    })?;
    Ok(read)
}

fn value(of: &str, wire: &Wire<'_>, depth: usize) -> Result<Value, String> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok(match (of.rsplit('.').next().unwrap_or(of), wire) {
        ("string", Wire::Bytes(bytes)) => text(bytes).into(),
        ("bytes", Wire::Bytes(bytes)) => base64::engine::general_purpose::STANDARD.encode(bytes).into(),
        ("bool", Wire::Number(number)) => (*number != 0).into(),
        // Negative numbers are written as their two's complement.
        ("int", Wire::Number(number)) => number.cast_signed().into(),
        ("double", Wire::Fixed(bits)) => f64::from_bits(*bits).into(),
        ("Quantity", Wire::Bytes(bytes)) => first_text(bytes)?.into(),
        ("RawExtension" | "FieldsV1" | "JSON", Wire::Bytes(bytes)) => {
            serde_json::from_str(&first_text(bytes)?).unwrap_or(Value::Null)
        }
        ("IntOrString", Wire::Bytes(bytes)) => int_or_string(bytes)?,
        ("Time" | "MicroTime", Wire::Bytes(bytes)) => time(bytes)?,
        (_, Wire::Bytes(bytes)) => Value::Object(message(of, bytes, depth + 1)?),
        _ => Value::Null,
    })
}

fn empty(of: &str) -> Value {
    match of {
        "string" | "bytes" => "".into(),
        "int" => 0.into(),
        "bool" => false.into(),
        _ => Value::Object(Map::new()),
    }
}

fn first_text(bytes: &[u8]) -> Result<String, String> {
    let mut text = String::new();
    each(bytes, |number, wire| {
        if let (1, Wire::Bytes(bytes)) = (number, wire) {
            text = String::from_utf8_lossy(bytes).into_owned();
        }
        Ok(())
    })?;
    Ok(text)
}

fn int_or_string(bytes: &[u8]) -> Result<Value, String> {
    let (mut is_text, mut number, mut text) = (false, 0, String::new());
    each(bytes, |field, wire| {
        match (field, wire) {
            (1, Wire::Number(kind)) => is_text = kind == 1,
            (2, Wire::Number(value)) => number = value.cast_signed(),
            (3, Wire::Bytes(bytes)) => text = String::from_utf8_lossy(bytes).into_owned(),
            _ => {}
        }
        Ok(())
    })?;
    Ok(if is_text { text.into() } else { number.into() })
}

fn time(bytes: &[u8]) -> Result<Value, String> {
    let mut seconds = None;
    each(bytes, |field, wire| {
        if let (1, Wire::Number(value)) = (field, wire) {
            seconds = Some(value);
        }
        Ok(())
    })?;
    // The zero time of Go is long before the epoch.
    let seconds = seconds.filter(|seconds| seconds.cast_signed() > 0);
    Ok(seconds.map_or(Value::Null, |seconds| Time(0).after_seconds(seconds).rfc3339().into()))
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Bool(true) => false,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A message: fields of bytes and of numbers.
    fn bytes(number: u8, bytes: &[u8]) -> Vec<u8> {
        [&[number << 3 | 2, u8::try_from(bytes.len()).unwrap()], bytes].concat()
    }

    #[test]
    fn objects_are_read() {
        let metadata =
            [bytes(1, b"web"), bytes(2, b""), bytes(11, &[bytes(1, b"a"), bytes(2, b"b")].concat())].concat();
        let spec = vec![1 << 3, 0];
        let deployment = [bytes(1, &metadata), bytes(2, &spec), bytes(3, &[])].concat();
        let kind = [bytes(1, b"apps/v1"), bytes(2, b"Deployment")].concat();
        let text = [MAGIC, &bytes(1, &kind), &bytes(2, &deployment)].concat();
        let expected = json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "web", "labels": {"a": "b"}}, "spec": {"replicas": 0}});
        assert_eq!(decode(&text).unwrap(), expected);
    }

    #[test]
    fn what_is_cut_off_is_refused() {
        assert!(decode(b"{}").is_err());
        assert!(decode(b"k8s\0\x0A\x05ab").is_err());
        assert!(decode(&[MAGIC, &[0xFF; 12]].concat()).is_err());
    }
}
