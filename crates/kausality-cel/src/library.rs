//! The functions that Kubernetes adds to those of CEL.

use cel::{DeclarationError, Env};

/// One overload, for the type checker.
#[derive(Debug)]
pub(crate) struct Signature {
    pub(crate) name: &'static str,
    /// Whether it is called on its first argument.
    pub(crate) member: bool,
    /// The target first, if there is one.
    pub(crate) arguments: &'static [Kind],
    pub(crate) result: Kind,
}

/// The types, as far as signatures need them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(dead_code, reason = "the libraries follow")]
pub(crate) enum Kind {
    Any,
    Bool,
    Bytes,
    Double,
    Duration,
    Int,
    List(&'static Kind),
    Map(&'static Kind, &'static Kind),
    /// A type of Kubernetes, by its name.
    Opaque(&'static str),
    Optional(&'static Kind),
    String,
    Timestamp,
    Uint,
}

/// Adds every library to an environment of cel.
pub(crate) fn register(environment: &mut Env) -> Result<(), DeclarationError> {
    environment.add_extension(cel::extensions::strings)
}

pub(crate) fn signatures() -> impl Iterator<Item = &'static Signature> {
    const NONE: &[Signature] = &[];
    NONE.iter()
}
