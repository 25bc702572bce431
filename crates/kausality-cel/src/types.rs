//! The types of CEL, and what `request` and `user` are made of.

use std::fmt;

/// The type of a part of an expression, as far as it is known before there are values.
#[derive(Clone, Debug, PartialEq)]
pub enum Type {
    /// Anything: it is known when it is evaluated.
    Dyn,
    /// `true` or `false`.
    Bool,
    /// Bytes.
    Bytes,
    /// A number with a fraction.
    Double,
    /// A span of time.
    Duration,
    /// A whole number.
    Int,
    /// A list of something.
    List(Box<Type>),
    /// Keys and values.
    Map(Box<Type>, Box<Type>),
    /// `null`.
    Null,
    /// Something with fields of its own.
    Object(&'static Record),
    /// Something of a library, such as a quantity.
    Opaque(&'static str),
    /// Something that may be missing.
    Optional(Box<Type>),
    /// Text.
    String,
    /// A point in time.
    Timestamp,
    /// The type of types.
    Kind,
    /// A whole number that is not negative.
    Uint,
}

/// Something with fields of its own.
#[derive(Debug, PartialEq)]
pub struct Record {
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
    Object(&'static Record),
}

static REQUEST: Record = Record {
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
static KIND: Record = Record {
    name: "kubernetes.GroupVersionKind",
    fields: &[("group", Field::String), ("version", Field::String), ("kind", Field::String)],
};
static RESOURCE: Record = Record {
    name: "kubernetes.GroupVersionResource",
    fields: &[("group", Field::String), ("version", Field::String), ("resource", Field::String)],
};
static USER: Record = Record {
    name: "kubernetes.UserInfo",
    fields: &[
        ("username", Field::String),
        ("uid", Field::String),
        ("groups", Field::Strings),
        ("extra", Field::StringsByString),
    ],
};

impl Type {
    /// An admission request, without its objects.
    pub const REQUEST: Self = Self::Object(&REQUEST);
    /// Who makes a request: its `userInfo`.
    pub const USER: Self = Self::Object(&USER);

    /// A list of it.
    pub(crate) fn list(self) -> Self {
        Self::List(Box::new(self))
    }

    /// It, if it is there.
    pub(crate) fn optional(self) -> Self {
        Self::Optional(Box::new(self))
    }

    /// Whether values of both can be of one type.
    pub(crate) fn agrees(&self, other: &Self) -> bool {
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
                    Self::Null
                        | Self::Object(_)
                        | Self::Duration
                        | Self::Timestamp
                        | Self::Optional(_)
                        | Self::Opaque(_)
                )
            }
            (one, two) => one == two,
        }
    }

    pub(crate) fn is_number(&self) -> bool {
        matches!(self, Self::Int | Self::Uint | Self::Double)
    }

    /// The type of a field of it.
    pub(crate) fn field(&self, name: &str) -> Result<Self, String> {
        match self {
            Self::Dyn => Ok(Self::Dyn),
            Self::Map(_, values) => Ok((**values).clone()),
            Self::Optional(of) => Ok(match of.field(name)? {
                Self::Optional(of) => Self::Optional(of),
                of => of.optional(),
            }),
            Self::Object(object) => {
                let found = object.fields.iter().find(|(field, _)| *field == name);
                let (_, field) = found.ok_or_else(|| format!("undefined field '{name}'"))?;
                Ok(match field {
                    Field::Dyn => Self::Dyn,
                    Field::Bool => Self::Bool,
                    Field::String => Self::String,
                    Field::Strings => Self::String.list(),
                    Field::StringsByString => {
                        Self::Map(Box::new(Self::String), Box::new(Self::String.list()))
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
            Self::Opaque(name) => f.write_str(name),
            Self::Optional(of) => write!(f, "optional_type({of})"),
            Self::String => f.write_str("string"),
            Self::Timestamp => f.write_str("timestamp"),
            Self::Kind => f.write_str("type"),
            Self::Uint => f.write_str("uint"),
        }
    }
}
