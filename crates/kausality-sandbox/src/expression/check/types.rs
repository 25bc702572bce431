//! The types of CEL, and what `request` is made of.

use std::fmt;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Type {
    /// Anything: it is known when it is evaluated.
    Dyn,
    Bool,
    Bytes,
    Double,
    Duration,
    Int,
    List(Box<Type>),
    Map(Box<Type>, Box<Type>),
    Null,
    Object(&'static Object),
    Optional(Box<Type>),
    String,
    Timestamp,
    /// Of types themselves.
    Kind,
    Uint,
}

/// Something with fields of its own.
#[derive(Debug, PartialEq)]
pub(super) struct Object {
    name: &'static str,
    fields: &'static [(&'static str, Field)],
}

#[derive(Debug, PartialEq)]
enum Field {
    Dyn,
    Bool,
    String,
    Strings,
    StringsByString,
    Object(&'static Object),
}

pub(super) static REQUEST: Object = Object {
    name: "kubernetes.AdmissionRequest",
    fields: &[
        ("kind", Field::Object(&KIND)),
        ("resource", Field::Object(&RESOURCE)),
        ("subResource", Field::String),
        ("requestKind", Field::Object(&KIND)),
        ("requestResource", Field::Object(&RESOURCE)),
        ("requestSubResource", Field::String),
        ("name", Field::String),
        ("namespace", Field::String),
        ("operation", Field::String),
        ("userInfo", Field::Object(&USER)),
        ("dryRun", Field::Bool),
        ("options", Field::Dyn),
    ],
};
static KIND: Object = Object {
    name: "kubernetes.GroupVersionKind",
    fields: &[("group", Field::String), ("version", Field::String), ("kind", Field::String)],
};
static RESOURCE: Object = Object {
    name: "kubernetes.GroupVersionResource",
    fields: &[("group", Field::String), ("version", Field::String), ("resource", Field::String)],
};
static USER: Object = Object {
    name: "kubernetes.UserInfo",
    fields: &[
        ("username", Field::String),
        ("uid", Field::String),
        ("groups", Field::Strings),
        ("extra", Field::StringsByString),
    ],
};

impl Type {
    /// Whether values of both can be of one type.
    pub(super) fn agrees(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Dyn, _) | (_, Self::Dyn) => true,
            (Self::List(one), Self::List(two)) | (Self::Optional(one), Self::Optional(two)) => {
                one.agrees(two)
            }
            (Self::Map(key, value), Self::Map(other_key, other_value)) => {
                key.agrees(other_key) && value.agrees(other_value)
            }
            (Self::Null, it) | (it, Self::Null) => {
                matches!(
                    it,
                    Self::Null | Self::Object(_) | Self::Duration | Self::Timestamp | Self::Optional(_)
                )
            }
            (one, two) => one == two,
        }
    }

    pub(super) fn is_number(&self) -> bool {
        matches!(self, Self::Int | Self::Uint | Self::Double)
    }

    /// The type of a field of it.
    pub(super) fn field(&self, name: &str) -> Result<Self, String> {
        match self {
            Self::Dyn => Ok(Self::Dyn),
            Self::Map(_, values) => Ok((**values).clone()),
            Self::Optional(of) => Ok(Self::Optional(Box::new(of.field(name)?))),
            Self::Object(object) => {
                let found = object.fields.iter().find(|(field, _)| *field == name);
                let (_, field) = found.ok_or_else(|| format!("undefined field '{name}'"))?;
                Ok(match field {
                    Field::Dyn => Self::Dyn,
                    Field::Bool => Self::Bool,
                    Field::String => Self::String,
                    Field::Strings => Self::List(Box::new(Self::String)),
                    Field::StringsByString => {
                        Self::Map(Box::new(Self::String), Box::new(Self::List(Box::new(Self::String))))
                    }
                    Field::Object(object) => Self::Object(object),
                })
            }
            other => Err(format!("type '{other}' does not support field selection")),
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dyn => f.write_str("dyn"),
            Self::Bool => f.write_str("bool"),
            Self::Bytes => f.write_str("bytes"),
            Self::Double => f.write_str("double"),
            Self::Duration => f.write_str("duration"),
            Self::Int => f.write_str("int"),
            Self::List(of) => write!(f, "list({of})"),
            Self::Map(keys, values) => write!(f, "map({keys}, {values})"),
            Self::Null => f.write_str("null"),
            Self::Object(object) => f.write_str(object.name),
            Self::Optional(of) => write!(f, "optional_type({of})"),
            Self::String => f.write_str("string"),
            Self::Timestamp => f.write_str("timestamp"),
            Self::Kind => f.write_str("type"),
            Self::Uint => f.write_str("uint"),
        }
    }
}
