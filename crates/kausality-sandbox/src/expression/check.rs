//! Whether an expression makes sense, before it is ever evaluated: the types of its parts, as far as they are known.

use cel::Program;
use cel::common::ast::{ComprehensionExpr, EntryExpr, Expr, IdedExpr, LiteralValue, SelectExpr, operators};

mod functions;
mod types;

use types::Type;

/// What expressions may name.
pub(super) const VARIABLES: [&str; 3] = ["object", "oldObject", "request"];

/// Something wrong with a part of the expression.
struct Fault {
    part: u64,
    message: String,
}

/// The variables of loops, the innermost last.
type Scope = Vec<(String, Type)>;

/// Whether a program is a condition.
///
/// # Errors
/// What is wrong, and where.
pub(super) fn check(program: &Program, source: &str) -> Result<(), String> {
    match infer(program.expression(), &mut Scope::new()) {
        Ok(Type::Bool) => Ok(()),
        Ok(other) => Err(format!("must evaluate to bool but got {other}")),
        Err(Fault { part, message }) => {
            let offset = program.source_info().offset_for(part).map_or(0, |(start, _)| start as usize);
            let before = source.get(..offset).unwrap_or_default();
            let line = before.matches('\n').count();
            let column = before.rsplit('\n').next().map_or(0, |text| text.chars().count());
            let text = source.lines().nth(line).unwrap_or_default();
            Err(format!(
                "compilation failed: ERROR: <input>:{}:{}: {message}\n | {text}\n | {}^",
                line + 1,
                column + 1,
                ".".repeat(column)
            ))
        }
    }
}

fn infer(expression: &IdedExpr, scope: &mut Scope) -> Result<Type, Fault> {
    let fault = |message: String| Fault { part: expression.id, message };
    match &expression.expr {
        Expr::Literal(literal) => Ok(match literal {
            LiteralValue::Boolean(_) => Type::Bool,
            LiteralValue::Bytes(_) => Type::Bytes,
            LiteralValue::Double(_) => Type::Double,
            LiteralValue::Int(_) => Type::Int,
            LiteralValue::Null => Type::Null,
            LiteralValue::String(_) => Type::String,
            LiteralValue::UInt(_) => Type::Uint,
        }),
        Expr::Ident(name) => variable(name, scope)
            .ok_or_else(|| fault(format!("undeclared reference to '{name}' (in container '')"))),
        Expr::Select(select) => field(select, scope, &fault),
        Expr::Call(call) if call.func_name == operators::OPT_SELECT => match call.args.as_slice() {
            [within, IdedExpr { expr: Expr::Literal(LiteralValue::String(name)), .. }] => {
                let within = match infer(within, scope)? {
                    Type::Optional(of) => *of,
                    other => other,
                };
                Ok(Type::Optional(Box::new(within.field(name.inner()).map_err(fault)?)))
            }
            _ => Err(fault("a field is expected".to_owned())),
        },
        Expr::Call(call) => {
            // `optional.of` is one name.
            let qualified = call.target.as_deref().and_then(|target| match &target.expr {
                Expr::Ident(name) if variable(name, scope).is_none() => {
                    Some(format!("{name}.{}", call.func_name))
                }
                _ => None,
            });
            let target = match (&qualified, &call.target) {
                (None, Some(target)) => Some(infer(target, scope)?),
                _ => None,
            };
            let name = match &qualified {
                Some(name) if functions::is_known(name) => name,
                Some(name) => {
                    let root = name.split('.').next().unwrap_or_default();
                    return Err(fault(format!("undeclared reference to '{root}' (in container '')")));
                }
                None => &call.func_name,
            };
            let arguments = call.args.iter().map(|it| infer(it, scope)).collect::<Result<Vec<_>, _>>()?;
            functions::result(name, target.as_ref(), &arguments).map_err(fault)
        }
        Expr::List(list) => {
            let mut of = Type::Dyn;
            for (nth, element) in list.elements.iter().enumerate() {
                let mut found = infer(element, scope)?;
                if let (true, Type::Optional(inner)) = (list.optional_indices.contains(&nth), &found) {
                    found = (**inner).clone();
                }
                of = same(of, found, element)?;
            }
            Ok(Type::List(Box::new(of)))
        }
        Expr::Map(map) => {
            let (mut keys, mut values) = (Type::Dyn, Type::Dyn);
            for entry in &map.entries {
                let EntryExpr::MapEntry(entry) = &entry.expr else { continue };
                keys = same(keys, infer(&entry.key, scope)?, &entry.key)?;
                let value = infer(&entry.value, scope)?;
                let value = if entry.optional { Type::Dyn } else { value };
                values = same(values, value, &entry.value)?;
            }
            Ok(Type::Map(Box::new(keys), Box::new(values)))
        }
        Expr::Comprehension(it) => looped(it, scope),
        Expr::Struct(it) => {
            Err(fault(format!("undeclared reference to '{}' (in container '')", it.type_name)))
        }
        Expr::Unspecified => Err(fault("there is no expression".to_owned())),
    }
}

/// The one type of what stands together in a literal.
fn same(before: Type, found: Type, at: &IdedExpr) -> Result<Type, Fault> {
    match (before, found) {
        (Type::Dyn, it) | (it, Type::Dyn) => Ok(it),
        (before, found) if before.agrees(&found) => Ok(before),
        (before, found) => {
            Err(Fault { part: at.id, message: format!("expected type '{before}' but found '{found}'") })
        }
    }
}

fn variable(name: &str, scope: &Scope) -> Option<Type> {
    if let Some((_, found)) = scope.iter().rev().find(|(known, _)| known == name) {
        return Some(found.clone());
    }
    match name {
        "request" => Some(Type::Object(&types::REQUEST)),
        name if VARIABLES.contains(&name) => Some(Type::Dyn),
        "bool" | "bytes" | "double" | "duration" | "int" | "list" | "map" | "null_type" | "string"
        | "timestamp" | "type" | "uint" => Some(Type::Kind),
        _ => None,
    }
}

fn field(select: &SelectExpr, scope: &mut Scope, fault: &dyn Fn(String) -> Fault) -> Result<Type, Fault> {
    let operand = infer(&select.operand, scope)?;
    let found = operand.field(&select.field).map_err(fault)?;
    Ok(if select.test { Type::Bool } else { found })
}

/// What macros such as `exists` and `map` are made of.
fn looped(it: &ComprehensionExpr, scope: &mut Scope) -> Result<Type, Fault> {
    let range = infer(&it.iter_range, scope)?;
    let (first, second) = match &range {
        Type::Dyn => (Type::Dyn, Type::Dyn),
        Type::List(of) if it.iter_var2.is_some() => (Type::Int, (**of).clone()),
        Type::List(of) => ((**of).clone(), Type::Dyn),
        Type::Map(keys, values) => ((**keys).clone(), (**values).clone()),
        other => {
            let message = format!(
                "expression of type '{other}' cannot be range of a comprehension (must be list, map, or dynamic)"
            );
            return Err(Fault { part: it.iter_range.id, message });
        }
    };
    let mut collected = infer(&it.accu_init, scope)?;
    let outer = scope.len();
    scope.push((it.accu_var.clone(), collected.clone()));
    scope.push((it.iter_var.clone(), first));
    if let Some(name) = &it.iter_var2 {
        scope.push((name.clone(), second));
    }
    let condition = infer(&it.loop_cond, scope)?;
    if !condition.agrees(&Type::Bool) {
        let message = format!("expected type 'bool' but found '{condition}'");
        return Err(Fault { part: it.loop_cond.id, message });
    }
    let step = infer(&it.loop_step, scope)?;
    // A list begins empty, and is known by what is put in.
    if collected.agrees(&step) {
        collected = step;
    }
    scope.truncate(outer);
    scope.push((it.accu_var.clone(), collected));
    let result = infer(&it.result, scope);
    scope.truncate(outer);
    result
}

/// Whether a name is an operator that the parser makes.
fn is_operator(name: &str) -> bool {
    name.contains('_') && !name.starts_with(char::is_alphabetic) || name == operators::IN
}
