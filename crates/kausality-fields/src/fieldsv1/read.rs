//! From text to sets, in one pass and without a tree of JSON values in between.

use super::{FieldsV1Error, FieldsV1Problem, MAX_DEPTH};
use crate::path::Step;
use crate::scalar::Scalar;
use crate::set::{FieldSet, Node};
use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;

pub(super) fn text(json: &str) -> Result<FieldSet, FieldsV1Error> {
    let mut fault = None;
    let mut json = serde_json::Deserializer::from_str(json);
    let read = Fields { depth: 0, fault: &mut fault }.deserialize(&mut json);
    match read.and_then(|(set, _)| json.end().map(|()| set)) {
        Ok(set) => Ok(set),
        Err(error) => Err(located(fault, &error)),
    }
}

/// The fault that was noted, or else what the parser says.
fn located(fault: Option<FieldsV1Error>, error: &impl fmt::Display) -> FieldsV1Error {
    fault.unwrap_or_else(|| FieldsV1Problem::Malformed(error.to_string()).into())
}

/// As FieldsV1, from any format.
impl<'de> Deserialize<'de> for FieldSet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut fault = None;
        match (Fields { depth: 0, fault: &mut fault }).deserialize(deserializer) {
            Ok((set, _)) => Ok(set),
            Err(error) => Err(fault.map_or(error, D::Error::custom)),
        }
    }
}

/// Reads the fields below a step, and whether the step itself is a member.
///
/// A parser's errors carry no path, so the fault is noted beside them. Each level on the way out adds its step, and
/// reading without a fault pays nothing for it.
struct Fields<'f> {
    depth: usize,
    fault: &'f mut Option<FieldsV1Error>,
}

impl<'de> DeserializeSeed<'de> for Fields<'_> {
    type Value = (FieldSet, bool);

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Fields<'_> {
    type Value = (FieldSet, bool);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of fields")
    }

    /// The API server takes null for an empty object.
    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok((FieldSet::new(), true))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut nodes = Vec::new();
        let mut member = false;
        while let Some(key) = map.next_key_seed(Key { fault: self.fault })? {
            let Some(step) = key else {
                map.next_value::<IgnoredAny>()?;
                member = true;
                continue;
            };
            if self.depth == MAX_DEPTH {
                *self.fault = Some(FieldsV1Problem::TooDeep.into());
                return Err(A::Error::custom(FieldsV1Problem::TooDeep));
            }
            match map.next_value_seed(Fields { depth: self.depth + 1, fault: self.fault }) {
                Ok((below, member)) => nodes.push(Node { step, member, below }),
                Err(error) => {
                    *self.fault = Some(located(self.fault.take(), &error).at(step));
                    return Err(error);
                }
            }
        }
        let set = FieldSet::of_nodes(nodes);
        let member = member || set.is_empty();
        Ok((set, member))
    }
}

/// Reads a key: a step, or `.`.
struct Key<'f> {
    fault: &'f mut Option<FieldsV1Error>,
}

impl<'de> DeserializeSeed<'de> for Key<'_> {
    type Value = Option<Step>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Key<'_> {
    type Value = Option<Step>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a step of a path")
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<Self::Value, E> {
        if key == "." {
            return Ok(None);
        }
        element(key).map(Some).map_err(|problem| {
            let error = E::custom(&problem);
            *self.fault = Some(problem.into());
            error
        })
    }
}

fn element(key: &str) -> Result<Step, FieldsV1Problem> {
    let bad = |why: &dyn fmt::Display| FieldsV1Problem::BadElement(format!("{key:?} is no step: {why}"));
    let Some((kind, rest)) = key.split_once(':').filter(|(kind, _)| kind.len() == 1) else {
        return Err(bad(&"it must begin with f:, k:, v: or i:"));
    };
    match kind {
        "f" => Ok(Step::Field(rest.to_owned())),
        "k" => serde_json::from_str(rest).map(|Parts(parts)| Step::Key(parts)).map_err(|error| bad(&error)),
        "v" => match serde_json::from_str::<&RawValue>(rest).and_then(scalar) {
            Ok(Some(scalar)) => Ok(Step::Value(scalar)),
            Ok(None) => Err(bad(&"a list or an object is no member of a set")),
            Err(error) => Err(bad(&error)),
        },
        "i" => rest.parse().map(Step::Index).map_err(|error| bad(&error)),
        _ => Err(FieldsV1Problem::UnknownElement(key.to_owned())),
    }
}

/// The scalar that a JSON text is; `None` if it is a list or an object.
///
/// Numbers are read here, since the parser may miss a float by its last digit, and another number is another item.
fn scalar(json: &RawValue) -> serde_json::Result<Option<Scalar>> {
    let text = json.get();
    Ok(match text.as_bytes().first() {
        Some(b'"') => Some(Scalar::Text(serde_json::from_str(text)?)),
        Some(b'[' | b'{') => None,
        Some(b'-' | b'0'..=b'9') => Some(match (text.parse::<i64>(), text.parse::<f64>()) {
            (Ok(integer), _) => Scalar::Integer(integer.into()),
            (_, Ok(float)) if float.is_finite() => Scalar::float(float),
            _ => return Err(serde_json::Error::custom("the number is out of range")),
        }),
        _ => Scalar::or_null(&serde_json::from_str(text)?),
    })
}

/// The fields that identify an item, sorted by name.
struct Parts(Vec<(Cow<'static, str>, Scalar)>);

impl<'de> Deserialize<'de> for Parts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Parts;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of keys")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Parts, A::Error> {
                let mut parts: Vec<(Cow<'static, str>, Scalar)> = Vec::new();
                while let Some((name, value)) = map.next_entry::<String, &RawValue>()? {
                    match scalar(value).map_err(A::Error::custom)? {
                        Some(value) => parts.push((Cow::Owned(name), value)),
                        None => return Err(A::Error::custom("a list or an object is no key")),
                    }
                }
                parts.sort_by(|(a, _), (b, _)| a.cmp(b));
                Ok(Parts(parts))
            }
        }
        deserializer.deserialize_map(Object)
    }
}
