//! The functions that Kubernetes 1.33 adds to CEL.
//!
//! One table per library says each overload once: its name and types, and what it does. What is registered with the
//! evaluator and what the type checker is told both come from these tables, so that they cannot disagree. Where an API
//! server differs from its documentation, these functions do as the server does; each such place says so.
//!
//! | library | of | |
//! |---|---|---|
//! | [`cidr`], [`ip`] | Kubernetes | addresses and networks |
//! | [`mod@format`] | Kubernetes | named formats |
//! | [`lists`] | Kubernetes | `sum`, `min`, `indexOf` and the like |
//! | [`optionals`] | cel-go | what `cel` lacks of them |
//! | [`printf`] | cel-go | `format` of texts, in place of that of `cel`, which is of another version |
//! | [`quantity`] | Kubernetes | amounts of resources |
//! | [`regex`] | Kubernetes | `find` and `findAll` |
//! | [`semver`] | Kubernetes | versions |
//! | [`sets`] | cel-go | lists as sets |
//! | [`standard`] | cel-go | conversions, in place of those of `cel` |
//! | [`texts`] | cel-go | searches in texts, in place of those of `cel` |
//! | [`url`] | Kubernetes | parts of URLs |
//!
//! The other functions of texts are those of `cel`. Of these, `reverse` is no function of Kubernetes: the type checker
//! is not told of it.

use std::collections::BTreeSet;

use cel::common::functions::Function;
use cel::common::types::{self, CelBool, CelDouble, CelInt, CelList, CelString, Type};
use cel::common::value::{CowVal, StaticVal, Val};
use cel::{DeclarationError, Env, ExecutionError};

mod cidr;
mod format;
mod ip;
mod lists;
mod optionals;
mod printf;
mod quantity;
pub(crate) mod regex;
mod semver;
mod sets;
pub(crate) mod standard;
mod texts;
mod url;

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

/// What a library consists of.
struct Overload {
    signature: Signature,
    op: Function,
    /// Whether the evaluator is told that the target is of any type, so that another overload for the same types can
    /// be registered behind it, and is never called.
    hides: bool,
}

/// What functions are called with.
type Arguments<'b, 'v> = Vec<CowVal<'b, 'v>>;
/// What comes of them.
type Outcome<'b, 'v> = Result<CowVal<'b, 'v>, ExecutionError>;

const STRINGS: Kind = Kind::List(&Kind::String);

static LIBRARIES: &[&[Overload]] = &[
    cidr::OVERLOADS,
    format::OVERLOADS,
    ip::OVERLOADS,
    lists::OVERLOADS,
    optionals::OVERLOADS,
    printf::OVERLOADS,
    quantity::OVERLOADS,
    regex::OVERLOADS,
    semver::OVERLOADS,
    sets::OVERLOADS,
    texts::OVERLOADS,
    url::OVERLOADS,
];

/// Adds every library to an environment of cel, which has the standard functions.
///
/// # Errors
/// If it has one of them already, such as the extension of `cel` for texts.
pub(crate) fn register(environment: &mut Env) -> Result<(), DeclarationError> {
    // The names of the other types are no names in expressions.
    for name in [cidr::NAME, ip::NAME] {
        environment.add_type(erased(Kind::Opaque(name)))?;
    }
    // The evaluator knows nothing of what lists are of: overloads that differ in that only are one to it.
    let mut known = BTreeSet::new();
    for Overload { signature, op, hides } in LIBRARIES.iter().copied().flatten() {
        let Signature { name, member, arguments, .. } = signature;
        let types: Vec<Type> = arguments.iter().map(|kind| erased(*kind)).collect();
        let names: Vec<&str> = types.iter().map(Type::name).collect();
        let id = format!("kubernetes {name}({})", names.join(","));
        if !known.insert((id.clone(), *member)) {
            continue;
        }
        if *member {
            let mut types = types.into_iter();
            let target = types.next().filter(|_| !hides).unwrap_or(types::DYN_TYPE);
            environment.add_member_overload(name, &format!("{id} member"), target, types.collect(), *op)?;
        } else {
            environment.add_overload(name, &id, types, *op)?;
        }
    }
    // After the libraries: the first overload that fits is called, and `format` is the one above.
    environment.add_extension(cel::extensions::strings)
}

/// What the type checker should know of the libraries. The functions of texts that `cel` brings are not among them.
pub(crate) fn signatures() -> impl Iterator<Item = &'static Signature> {
    LIBRARIES.iter().copied().flatten().map(|overload| &overload.signature)
}

/// As the evaluator tells types apart.
fn erased(kind: Kind) -> Type {
    match kind {
        Kind::Any => types::DYN_TYPE,
        Kind::Bool => types::BOOL_TYPE,
        Kind::Bytes => types::BYTES_TYPE,
        Kind::Double => types::DOUBLE_TYPE,
        Kind::Duration => types::DURATION_TYPE,
        Kind::Int => types::INT_TYPE,
        Kind::List(_) => types::LIST_TYPE,
        Kind::Map(_, _) => types::MAP_TYPE,
        Kind::Opaque(name) => Type::simple_type(types::Kind::Opaque, name),
        Kind::Optional(_) => types::OPTIONAL_TYPE,
        Kind::String => types::STRING_TYPE,
        Kind::Timestamp => types::TIMESTAMP_TYPE,
        Kind::Uint => types::UINT_TYPE,
    }
}

/// A function: `name(…)`.
const fn function(name: &'static str, arguments: &'static [Kind], result: Kind, op: Function) -> Overload {
    Overload { signature: Signature { name, member: false, arguments, result }, op, hides: false }
}

/// A function of its first argument: `first.name(…)`.
const fn member(name: &'static str, arguments: &'static [Kind], result: Kind, op: Function) -> Overload {
    Overload { signature: Signature { name, member: true, arguments, result }, op, hides: false }
}

/// The same, in place of one that `cel` brings.
const fn instead(name: &'static str, arguments: &'static [Kind], result: Kind, op: Function) -> Overload {
    Overload { signature: Signature { name, member: true, arguments, result }, op, hides: true }
}

/// Makes a type a value of CEL: it can be compared for equality, and handed to the functions that know it.
macro_rules! opaque {
    ($type:ty, $name:expr) => {
        impl cel::common::value::Val for $type {
            fn get_type(&self) -> &cel::common::types::Type {
                <Self as cel::common::value::Val>::cel_type()
            }

            fn cel_type() -> &'static cel::common::types::Type {
                static TYPE: cel::common::types::Type =
                    cel::common::types::Type::simple_type(cel::common::types::Kind::Opaque, $name);
                &TYPE
            }

            fn equals(&self, other: &dyn cel::common::value::Val) -> bool {
                other.downcast_ref::<$type>().is_some_and(|other| self == other)
            }

            fn clone_as_boxed<'v>(&self) -> Box<dyn cel::common::value::Val + 'v> {
                Box::new(self.clone())
            }

            fn as_any(&self) -> Option<&dyn std::any::Any> {
                Some(self)
            }
        }

        impl cel::common::value::StaticVal for $type {}
    };
}
use opaque;

/// The error of a function, in words.
fn failed(function: &str, message: impl ToString) -> ExecutionError {
    ExecutionError::function_error(function, message)
}

/// An argument. Overloads are chosen by type, so that it is there and as declared.
fn argument<'a, 'b, 'v>(
    arguments: &'a [CowVal<'b, 'v>],
    at: usize,
) -> Result<&'a (dyn Val + 'v), ExecutionError> {
    match arguments.get(at) {
        Some(argument) => Ok(argument.as_ref()),
        None => Err(ExecutionError::invalid_argument_count(at + 1, arguments.len())),
    }
}

fn unexpected(value: &dyn Val, want: &Type) -> ExecutionError {
    ExecutionError::UnexpectedType { got: value.get_type().name().to_owned(), want: want.name().to_owned() }
}

/// An argument that is a text.
fn text<'a>(arguments: &'a [CowVal<'_, '_>], at: usize) -> Result<&'a str, ExecutionError> {
    let value = argument(arguments, at)?;
    let text = value.downcast_ref::<CelString>().map(CelString::inner);
    text.ok_or_else(|| unexpected(value, &types::STRING_TYPE))
}

/// An argument of a type that is not borrowed: numbers and the types of Kubernetes.
fn plain<'a, T: StaticVal>(arguments: &'a [CowVal<'_, '_>], at: usize) -> Result<&'a T, ExecutionError> {
    let value = argument(arguments, at)?;
    value.downcast_ref::<T>().ok_or_else(|| unexpected(value, T::cel_type()))
}

/// The items of an argument that is a list.
fn items<'a, 'v>(
    arguments: &'a [CowVal<'_, 'v>],
    at: usize,
) -> Result<Vec<&'a (dyn Val + 'v)>, ExecutionError> {
    let value = argument(arguments, at)?;
    let mut iterator = value.as_iterable().ok_or_else(|| unexpected(value, &types::LIST_TYPE))?.iter();
    let mut items = Vec::new();
    while let Some(item) = iterator.next() {
        items.push(item);
    }
    Ok(items)
}

fn bool<'b, 'v>(value: bool) -> Outcome<'b, 'v> {
    Ok(CowVal::owned(CelBool::from(value)))
}

fn int<'b, 'v>(value: i64) -> Outcome<'b, 'v> {
    Ok(CowVal::owned(CelInt::from(value)))
}

fn double<'b, 'v>(value: f64) -> Outcome<'b, 'v> {
    Ok(CowVal::owned(CelDouble::from(value)))
}

fn string<'b, 'v>(value: impl Into<String>) -> Outcome<'b, 'v> {
    Ok(CowVal::owned(CelString::from(value.into())))
}

/// A list of texts.
pub(crate) fn strings<'v>(texts: impl IntoIterator<Item = String>) -> CelList<'v> {
    let boxed = |text| Box::new(CelString::from(text)) as Box<dyn Val>;
    CelList::from(texts.into_iter().map(boxed).collect::<Vec<Box<dyn Val>>>())
}

/// As `compareTo` says it.
fn ordering<'b, 'v>(ordering: std::cmp::Ordering) -> Outcome<'b, 'v> {
    int(ordering as i64)
}

#[cfg(test)]
mod tests;
