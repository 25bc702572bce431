//! Which functions and operators there are, for which types, and what comes of them.

use cel::common::ast::{Expr, SelectExpr, operators as op};

use super::absolute;

use crate::library::{self, Kind, Signature};
use crate::macros;
use crate::types::Type;

/// Whether a qualified name is that of a function.
pub(crate) fn is_known(name: &str) -> bool {
    matches!(name, "optional.of" | "optional.none" | "optional.ofNonZeroValue" | "strings.quote")
        || library::signatures().any(|it| !it.member && it.name == name)
}

/// Whether this is the name of a type.
pub(crate) fn is_type_name(name: &str) -> bool {
    crate::environment::functions().types().find_type(name).is_some()
}

/// The name of a type with dots in it, if this is one.
pub(crate) fn type_name(select: &SelectExpr) -> Option<String> {
    fn dotted(select: &SelectExpr) -> Option<String> {
        let before = match &select.operand.expr {
            Expr::Ident(name) => absolute(name).to_owned(),
            Expr::Select(before) => dotted(before)?,
            _ => return None,
        };
        (!select.test).then(|| format!("{before}.{}", select.field))
    }
    dotted(select).filter(|name| is_type_name(name))
}

/// The type of a call.
pub(crate) fn result(name: &str, target: Option<&Type>, arguments: &[Type]) -> Result<Type, String> {
    let found = match target {
        None if is_operator(name) => operator(name, arguments),
        None => merged(function(name, arguments), name, false, arguments),
        Some(target) => {
            let all: Vec<_> = std::iter::once(target).chain(arguments).cloned().collect();
            merged(method(name, target, arguments), name, true, &all)
        }
    };
    let list = |types: &[Type]| types.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    found.map_err(|unknown| match (unknown, target) {
        (Unknown::Name, _) => format!("undeclared reference to '{name}' (in container '')"),
        (Unknown::Types, None) => {
            format!("found no matching overload for '{name}' applied to '({})'", list(arguments))
        }
        (Unknown::Types, Some(target)) => {
            format!("found no matching overload for '{name}' applied to '{target}.({})'", list(arguments))
        }
    })
}

/// Whether a name is an operator that the parser, or a macro, makes.
fn is_operator(name: &str) -> bool {
    name.starts_with(['_', '!', '-', '@'])
}

/// What is not there.
enum Unknown {
    Name,
    Types,
}

fn when(fits: bool, result: Type) -> Result<Type, Unknown> {
    if fits { Ok(result) } else { Err(Unknown::Types) }
}

/// What a function of CEL says, and the libraries' overloads of the same name. Where several fit, which one it is shows
/// when it is evaluated.
fn merged(
    standard: Result<Type, Unknown>,
    name: &str,
    member: bool,
    arguments: &[Type],
) -> Result<Type, Unknown> {
    let overloads = || library::signatures().filter(|it| it.name == name && it.member == member);
    // Also if it is a function and was called on something, or the other way round.
    let known = library::signatures().any(|it| it.name == name)
        || !matches!(function(name, &[]), Err(Unknown::Name))
        || !matches!(method(name, &Type::Dyn, &[]), Err(Unknown::Name));
    let fitting = overloads().filter_map(|it| library_result(it, arguments));
    let (standard, unknown) = match standard {
        Ok(found) => (Some(found), Unknown::Types),
        Err(unknown) => (None, unknown),
    };
    let mut found: Vec<Type> = standard.into_iter().chain(fitting).collect();
    found.dedup();
    match (found.pop(), found.is_empty()) {
        (Some(only), true) => Ok(only),
        (Some(_), false) => Ok(Type::Dyn),
        (None, _) if known => Err(Unknown::Types),
        (None, _) => Err(unknown),
    }
}

/// What comes of an overload, if it fits.
fn library_result(signature: &Signature, arguments: &[Type]) -> Option<Type> {
    let wanted = signature.arguments;
    let fits = wanted.len() == arguments.len()
        && wanted.iter().zip(arguments).all(|(wanted, found)| found.agrees(&Type::from(*wanted)))
        && alike(signature.name, arguments);
    fits.then(|| Type::from(signature.result))
}

/// Whether lists that are compared, or searched for an item, are of the same. Signatures know no variables for types.
fn alike(name: &str, arguments: &[Type]) -> bool {
    match (name, arguments) {
        ("sets.contains" | "sets.equivalent" | "sets.intersects", [one, two]) => one.agrees(two),
        ("indexOf" | "lastIndexOf", [Type::List(of), item]) => of.agrees(item),
        _ => true,
    }
}

impl From<Kind> for Type {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Any => Self::Dyn,
            Kind::Bool => Self::Bool,
            Kind::Bytes => Self::Bytes,
            Kind::Double => Self::Double,
            Kind::Duration => Self::Duration,
            Kind::Int => Self::Int,
            Kind::List(of) => Self::from(*of).list(),
            Kind::Map(keys, values) => Self::Map(Box::new(Self::from(*keys)), Box::new(Self::from(*values))),
            Kind::Opaque(name) => Self::Opaque(name),
            Kind::Optional(of) => Self::from(*of).optional(),
            Kind::String => Self::String,
            Kind::Timestamp => Self::Timestamp,
            Kind::Uint => Self::Uint,
        }
    }
}

fn operator(name: &str, arguments: &[Type]) -> Result<Type, Unknown> {
    let bools = || arguments.iter().all(|it| it.agrees(&Type::Bool));
    match (name, arguments) {
        (op::LOGICAL_AND | op::LOGICAL_OR | op::LOGICAL_NOT | op::NOT_STRICTLY_FALSE, _) => {
            when(bools(), Type::Bool)
        }
        (op::CONDITIONAL, [condition, yes, no]) => {
            let fits = condition.agrees(&Type::Bool) && yes.agrees(no);
            when(fits, if yes == no { yes.clone() } else { either(yes, no) })
        }
        (op::EQUALS | op::NOT_EQUALS, [one, two]) => when(one.agrees(two), Type::Bool),
        (op::LESS | op::LESS_EQUALS | op::GREATER | op::GREATER_EQUALS, [one, two]) => {
            let ordered = |it: &Type| {
                it.is_number()
                    || matches!(
                        it,
                        Type::Dyn
                            | Type::Bool
                            | Type::Bytes
                            | Type::Duration
                            | Type::String
                            | Type::Timestamp
                    )
            };
            let fits = one.agrees(two) || one.is_number() && two.is_number();
            when(fits && ordered(one) && ordered(two), Type::Bool)
        }
        (op::ADD, [one, two]) => sum(one, two),
        (op::SUBSTRACT, [one, two]) => difference(one, two),
        (op::MULTIPLY | op::DIVIDE, [one, two]) => arithmetic(one, two, Type::is_number),
        (op::MODULO, [one, two]) => arithmetic(one, two, |it| matches!(it, Type::Int | Type::Uint)),
        (op::NEGATE, [of]) => when(matches!(of, Type::Dyn | Type::Int | Type::Double), of.clone()),
        (op::IN, [item, within]) => match within {
            Type::Dyn => Ok(Type::Bool),
            Type::List(of) | Type::Map(of, _) => when(item.agrees(of), Type::Bool),
            _ => Err(Unknown::Types),
        },
        (op::INDEX, [within, at]) => index(within, at),
        (op::OPT_INDEX, [within, at]) => Ok(match index(unwrapped(within), at)? {
            Type::Optional(of) => Type::Optional(of),
            of => of.optional(),
        }),
        (macros::INSERT, [_, key, value]) => Ok(Type::Map(Box::new(key.clone()), Box::new(value.clone()))),
        (macros::MERGE, [_, entries]) => when(matches!(entries, Type::Map(..) | Type::Dyn), entries.clone()),
        _ => Err(Unknown::Name),
    }
}

/// What both are, as far as it is known of both.
fn either(one: &Type, two: &Type) -> Type {
    match (one, two) {
        (Type::Null, other) | (other, Type::Null) => other.clone(),
        (Type::List(one), Type::List(two)) => either(one, two).list(),
        (Type::Optional(one), Type::Optional(two)) => either(one, two).optional(),
        (Type::Map(key, value), Type::Map(other_key, other_value)) => {
            Type::Map(Box::new(either(key, other_key)), Box::new(either(value, other_value)))
        }
        (one, two) if one == two => one.clone(),
        _ => Type::Dyn,
    }
}

fn unwrapped(of: &Type) -> &Type {
    if let Type::Optional(of) = of { of } else { of }
}

fn sum(one: &Type, two: &Type) -> Result<Type, Unknown> {
    match (one, two) {
        (Type::Timestamp, Type::Duration) | (Type::Duration, Type::Timestamp) => Ok(Type::Timestamp),
        (Type::List(of), Type::List(other)) => {
            when(of.agrees(other), Type::List(if **of == Type::Dyn { other.clone() } else { of.clone() }))
        }
        (Type::Dyn, other) | (other, Type::Dyn) => {
            let fits = addable(other) || *other == Type::Timestamp;
            // Numbers, texts and lists are added to their own kind.
            when(
                fits,
                if matches!(other, Type::Duration | Type::List(_)) { Type::Dyn } else { other.clone() },
            )
        }
        (one, two) => when(one == two && addable(one), one.clone()),
    }
}

fn addable(it: &Type) -> bool {
    it.is_number() || matches!(it, Type::Dyn | Type::String | Type::Bytes | Type::List(_) | Type::Duration)
}

fn difference(one: &Type, two: &Type) -> Result<Type, Unknown> {
    match (one, two) {
        (Type::Timestamp, Type::Timestamp) | (Type::Duration, Type::Duration) => Ok(Type::Duration),
        (Type::Timestamp, Type::Duration) => Ok(Type::Timestamp),
        (Type::Timestamp | Type::Duration, Type::Dyn) | (Type::Dyn, Type::Timestamp | Type::Duration) => {
            Ok(Type::Dyn)
        }
        (one, two) => arithmetic(one, two, Type::is_number),
    }
}

fn arithmetic(one: &Type, two: &Type, fits: impl Fn(&Type) -> bool) -> Result<Type, Unknown> {
    match (one, two) {
        (Type::Dyn, Type::Dyn) => Ok(Type::Dyn),
        (Type::Dyn, it) | (it, Type::Dyn) => when(fits(it), it.clone()),
        (one, two) => when(one == two && fits(one), one.clone()),
    }
}

fn index(within: &Type, at: &Type) -> Result<Type, Unknown> {
    match within {
        Type::Dyn => Ok(Type::Dyn),
        Type::List(of) => when(at.agrees(&Type::Int), (**of).clone()),
        Type::Map(keys, values) => when(at.agrees(keys), (**values).clone()),
        Type::Optional(of) => Ok(index(of, at)?.optional()),
        _ => Err(Unknown::Types),
    }
}

fn function(name: &str, arguments: &[Type]) -> Result<Type, Unknown> {
    use Type::{Bool, Bytes, Double, Duration, Dyn, Int, String, Timestamp, Uint};
    let of = |known: &[Type], result: Type| match arguments {
        [it] => when(*it == Dyn || known.contains(it), result),
        _ => Err(Unknown::Types),
    };
    match (name, arguments) {
        ("size", [it]) => when(sized(it), Int),
        ("bool", _) => of(&[Bool, String], Bool),
        ("bytes", _) => of(&[Bytes, String], Bytes),
        ("double", _) => of(&[Double, Int, Uint, String], Double),
        ("duration", _) => of(&[Duration, String, Int], Duration),
        ("int", _) => of(&[Int, Uint, Double, String, Timestamp, Duration], Int),
        ("string", _) => of(&[String, Bool, Int, Uint, Double, Bytes, Timestamp, Duration], String),
        ("timestamp", _) => of(&[Timestamp, String, Int], Timestamp),
        ("uint", _) => of(&[Uint, Int, Double, String], Uint),
        ("type", [_]) => Ok(Type::Kind),
        ("dyn", [_]) => Ok(Dyn),
        ("matches", [text, pattern]) => when(text.agrees(&String) && pattern.agrees(&String), Bool),
        ("strings.quote", _) => of(&[String], String),
        ("optional.none", []) => Ok(Dyn.optional()),
        ("optional.of" | "optional.ofNonZeroValue", [it]) => Ok(it.clone().optional()),
        (
            "size" | "type" | "dyn" | "matches" | "optional.none" | "optional.of" | "optional.ofNonZeroValue",
            _,
        ) => Err(Unknown::Types),
        _ => Err(Unknown::Name),
    }
}

fn sized(of: &Type) -> bool {
    matches!(of, Type::Dyn | Type::Bytes | Type::List(_) | Type::Map(..) | Type::String)
}

fn method(name: &str, target: &Type, arguments: &[Type]) -> Result<Type, Unknown> {
    use Type::{Bool, Duration, Dyn, Int, List, Optional, String, Timestamp};
    let text = || target.agrees(&String);
    let given = |wanted: &[&Type], least: usize| {
        (least..=wanted.len()).contains(&arguments.len())
            && arguments.iter().zip(wanted).all(|(found, wanted)| found.agrees(wanted))
    };
    let texts = || List(Box::new(String));
    match name {
        "startsWith" | "endsWith" | "contains" | "matches" => when(text() && given(&[&String], 1), Bool),
        "size" => when(sized(target) && arguments.is_empty(), Int),
        "charAt" => when(text() && given(&[&Int], 1), String),
        "indexOf" | "lastIndexOf" => when(text() && given(&[&String, &Int], 1), Int),
        "lowerAscii" | "upperAscii" | "trim" => when(text() && arguments.is_empty(), String),
        "replace" => when(text() && given(&[&String, &String, &Int], 2), String),
        "split" => when(text() && given(&[&String, &Int], 1), texts()),
        "substring" => when(text() && given(&[&Int, &Int], 1), String),
        "join" => when(target.agrees(&texts()) && given(&[&String], 0), String),
        "format" => when(text() && given(&[&List(Box::new(Dyn))], 1), String),
        "getFullYear" | "getMonth" | "getDate" | "getDayOfMonth" | "getDayOfWeek" | "getDayOfYear" => {
            when(target.agrees(&Timestamp) && given(&[&String], 0), Int)
        }
        "getHours" | "getMinutes" | "getSeconds" | "getMilliseconds" => {
            let fits = target.agrees(&Timestamp) && given(&[&String], 0)
                || target.agrees(&Duration) && given(&[], 0);
            when(fits, Int)
        }
        "hasValue" => when(matches!(target, Optional(_) | Dyn) && arguments.is_empty(), Bool),
        "value" => match target {
            Optional(of) if arguments.is_empty() => Ok((**of).clone()),
            other => when(*other == Dyn && arguments.is_empty(), Dyn),
        },
        "or" => match (target, arguments) {
            (Optional(_) | Dyn, [other @ (Optional(_) | Dyn)]) => {
                when(target.agrees(other), either(target, other))
            }
            _ => Err(Unknown::Types),
        },
        "orValue" => match (target, arguments) {
            (Optional(of), [other]) => when(of.agrees(other), either(of, other)),
            (other, [_]) => when(*other == Dyn, Dyn),
            _ => Err(Unknown::Types),
        },
        _ => Err(Unknown::Name),
    }
}
