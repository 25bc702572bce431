//! Which functions and operators there are, for which types, and what comes of them.

use cel::common::ast::operators as op;

use super::types::Type;

/// Whether a qualified name is that of a function.
pub(super) fn is_known(name: &str) -> bool {
    matches!(name, "optional.of" | "optional.none" | "optional.ofNonZeroValue" | "strings.quote")
}

/// The type of a call.
pub(super) fn result(name: &str, target: Option<&Type>, arguments: &[Type]) -> Result<Type, String> {
    let found = match (target, arguments) {
        (None, arguments) if super::is_operator(name) => operator(name, arguments),
        (None, arguments) => function(name, arguments),
        (Some(target), arguments) => method(name, target, arguments),
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

/// What is not there.
enum Unknown {
    Name,
    Types,
}

fn when(fits: bool, result: Type) -> Result<Type, Unknown> {
    if fits { Ok(result) } else { Err(Unknown::Types) }
}

fn operator(name: &str, arguments: &[Type]) -> Result<Type, Unknown> {
    let bools = || arguments.iter().all(|it| it.agrees(&Type::Bool));
    match (name, arguments) {
        (op::LOGICAL_AND | op::LOGICAL_OR | op::LOGICAL_NOT | op::NOT_STRICTLY_FALSE, _) => {
            when(bools(), Type::Bool)
        }
        (op::CONDITIONAL, [condition, yes, no]) => {
            let fits = condition.agrees(&Type::Bool) && yes.agrees(no);
            when(fits, if yes == no { yes.clone() } else { Type::Dyn })
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
        (op::SUBSTRACT, [Type::Timestamp, Type::Timestamp]) => Ok(Type::Duration),
        (op::SUBSTRACT, [Type::Timestamp, Type::Duration]) => Ok(Type::Timestamp),
        (op::SUBSTRACT, [Type::Duration, Type::Duration]) => Ok(Type::Duration),
        (op::SUBSTRACT | op::MULTIPLY | op::DIVIDE | op::MODULO, [one, two]) => {
            let numbers = [one, two]
                .iter()
                .all(|it| it.is_number() || matches!(it, Type::Dyn | Type::Duration | Type::Timestamp));
            when(numbers && one.agrees(two), if one == two { one.clone() } else { Type::Dyn })
        }
        (op::NEGATE, [of]) => when(matches!(of, Type::Dyn | Type::Int | Type::Double), of.clone()),
        (op::IN, [item, within]) => match within {
            Type::Dyn => Ok(Type::Bool),
            Type::List(of) | Type::Map(of, _) => when(item.agrees(of), Type::Bool),
            _ => Err(Unknown::Types),
        },
        (op::INDEX, [within, at]) => index(within, at),
        (op::OPT_INDEX, [within, at]) => Ok(match index(unwrapped(within), at)? {
            Type::Optional(of) => Type::Optional(of),
            of => Type::Optional(Box::new(of)),
        }),
        _ => Err(Unknown::Name),
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
        (Type::Dyn, other) | (other, Type::Dyn) => when(addable(other), Type::Dyn),
        (one, two) => when(one == two && addable(one), one.clone()),
    }
}

fn addable(it: &Type) -> bool {
    it.is_number()
        || matches!(
            it,
            Type::Dyn | Type::String | Type::Bytes | Type::List(_) | Type::Duration | Type::Timestamp
        )
}

fn index(within: &Type, at: &Type) -> Result<Type, Unknown> {
    match within {
        Type::Dyn => Ok(Type::Dyn),
        Type::List(of) => when(at.agrees(&Type::Int), (**of).clone()),
        Type::Map(keys, values) => when(at.agrees(keys), (**values).clone()),
        Type::Optional(of) => Ok(Type::Optional(Box::new(index(of, at)?))),
        _ => Err(Unknown::Types),
    }
}

fn function(name: &str, arguments: &[Type]) -> Result<Type, Unknown> {
    let scalar = |it: &Type| {
        it.is_number()
            || matches!(
                it,
                Type::Dyn | Type::Bool | Type::Bytes | Type::Duration | Type::String | Type::Timestamp
            )
    };
    match (name, arguments) {
        ("size", [of]) => when(sized(of), Type::Int),
        ("bool", [of]) => when(scalar(of), Type::Bool),
        ("bytes", [of]) => when(scalar(of), Type::Bytes),
        ("double", [of]) => when(scalar(of), Type::Double),
        ("duration", [of]) => when(scalar(of), Type::Duration),
        ("int", [of]) => when(scalar(of), Type::Int),
        ("string", [of]) => when(scalar(of), Type::String),
        ("timestamp", [of]) => when(scalar(of), Type::Timestamp),
        ("uint", [of]) => when(scalar(of), Type::Uint),
        ("type", [_]) => Ok(Type::Kind),
        ("dyn", [_]) => Ok(Type::Dyn),
        ("matches", [text, pattern]) => {
            when(text.agrees(&Type::String) && pattern.agrees(&Type::String), Type::Bool)
        }
        ("strings.quote", [of]) => when(of.agrees(&Type::String), Type::String),
        ("optional.none", []) => Ok(Type::Optional(Box::new(Type::Dyn))),
        ("optional.of" | "optional.ofNonZeroValue", [of]) => Ok(Type::Optional(Box::new(of.clone()))),
        (
            "size"
            | "bool"
            | "bytes"
            | "double"
            | "duration"
            | "int"
            | "string"
            | "timestamp"
            | "uint"
            | "type"
            | "dyn"
            | "matches"
            | "optional.none"
            | "optional.of"
            | "optional.ofNonZeroValue",
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
        "lowerAscii" | "upperAscii" | "trim" | "reverse" => when(text() && arguments.is_empty(), String),
        "replace" => when(text() && given(&[&String, &String, &Int], 2), String),
        "split" => when(text() && given(&[&String, &Int], 1), texts()),
        "substring" => when(text() && given(&[&Int, &Int], 1), String),
        "join" => when(target.agrees(&texts()) && given(&[&String], 0), String),
        "format" => when(text() && given(&[&List(Box::new(Dyn))], 1), String),
        "getFullYear" | "getMonth" | "getDate" | "getDayOfMonth" | "getDayOfWeek" | "getDayOfYear" => {
            when(target.agrees(&Timestamp) && given(&[&String], 0), Int)
        }
        "getHours" | "getMinutes" | "getSeconds" | "getMilliseconds" => {
            let fits = target.agrees(&Timestamp) || target.agrees(&Duration);
            when(fits && given(&[&String], 0), Int)
        }
        "hasValue" => when(matches!(target, Optional(_) | Dyn) && arguments.is_empty(), Bool),
        "value" => match target {
            Optional(of) if arguments.is_empty() => Ok((**of).clone()),
            other => when(*other == Dyn, Dyn),
        },
        "or" => when(matches!(target, Optional(_) | Dyn) && arguments.len() == 1, target.clone()),
        "orValue" => match (target, arguments) {
            (Optional(of), [other]) => when(of.agrees(other), if **of == Dyn { Dyn } else { (**of).clone() }),
            (other, [_]) => when(*other == Dyn, Dyn),
            _ => Err(Unknown::Types),
        },
        _ => Err(Unknown::Name),
    }
}
