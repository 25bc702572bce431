//! Whether an expression makes sense, before it is ever evaluated: the types of its parts, as far as they are known.

use cel::IdedExpr;
use cel::common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, LiteralValue, SelectExpr, operators};

mod format;
pub(crate) mod functions;

use crate::environment::Environment;
use crate::types::Type;

/// Something wrong with a part of the expression.
#[derive(Debug)]
pub(crate) struct Wrong {
    pub(crate) part: u64,
    pub(crate) message: String,
}

/// # Errors
/// If the expression is not a condition: what is wrong, and where.
pub(crate) fn check(expression: &IdedExpr, environment: &Environment) -> Result<(), Wrong> {
    match of(expression, environment)? {
        Type::Bool => Ok(()),
        other => {
            Err(Wrong { part: expression.id, message: format!("must evaluate to bool but got {other}") })
        }
    }
}

/// The type of an expression.
pub(crate) fn of(expression: &IdedExpr, environment: &Environment) -> Result<Type, Wrong> {
    Check { environment, locals: Vec::new(), formatting: false }.infer(expression)
}

struct Check<'a> {
    environment: &'a Environment,
    /// The variables of loops, the innermost last.
    locals: Vec<(&'a str, Type)>,
    /// Whether what is looked at is given to `format`.
    formatting: bool,
}

impl<'a> Check<'a> {
    fn infer(&mut self, expression: &'a IdedExpr) -> Result<Type, Wrong> {
        let wrong = |message: String| Wrong { part: expression.id, message };
        match &expression.expr {
            Expr::Literal(literal) => Ok(literal_type(literal)),
            Expr::Ident(name) => self.variable(name).ok_or_else(|| wrong(undeclared(name))),
            Expr::Select(select) => self.field(select).map_err(|it| it.or(expression.id)),
            Expr::Call(call) => self.call(call).map_err(|it| it.or(expression.id)),
            Expr::List(list) => {
                let mut of = None;
                for (nth, element) in list.elements.iter().enumerate() {
                    let mut found = self.infer(element)?;
                    if list.optional_indices.contains(&nth) {
                        found = within(found).map_err(|it| it.or(element.id))?;
                    }
                    of = Some(self.same(of, found, element)?);
                }
                Ok(of.unwrap_or(Type::Dyn).list())
            }
            Expr::Map(map) => {
                let (mut keys, mut values) = (None, None);
                for entry in &map.entries {
                    let EntryExpr::MapEntry(entry) = &entry.expr else { continue };
                    let key = self.infer(&entry.key)?;
                    keys = Some(self.same(keys, key, &entry.key)?);
                    let mut value = self.infer(&entry.value)?;
                    if entry.optional {
                        value = within(value).map_err(|it| it.or(entry.value.id))?;
                    }
                    values = Some(self.same(values, value, &entry.value)?);
                }
                let of = |found: Option<Type>| Box::new(found.unwrap_or(Type::Dyn));
                Ok(Type::Map(of(keys), of(values)))
            }
            Expr::Comprehension(it) => self.looped(it),
            Expr::Struct(it) => Err(wrong(undeclared(&it.type_name))),
            Expr::Unspecified => Err(wrong("there is no expression".to_owned())),
        }
    }

    /// The one type of what stands together in a literal. What is known and what is not do not stand together, except in
    /// what is formatted.
    fn same(&self, before: Option<Type>, found: Type, at: &IdedExpr) -> Result<Type, Wrong> {
        match before {
            None => Ok(found),
            Some(before) if before.agrees(&found) && (before == Type::Dyn) == (found == Type::Dyn) => {
                Ok(before)
            }
            Some(_) if self.formatting => Ok(Type::Dyn),
            Some(before) => {
                Err(Wrong { part: at.id, message: format!("expected type '{before}' but found '{found}'") })
            }
        }
    }

    fn variable(&self, name: &str) -> Option<Type> {
        let name = absolute(name);
        if let Some((_, found)) = self.locals.iter().rev().find(|(known, _)| *known == name) {
            return Some(found.clone());
        }
        match self.environment.variable(name) {
            Some((_, found)) => Some(found.clone()),
            None => functions::is_type_name(name).then_some(Type::Kind),
        }
    }

    fn field(&mut self, select: &'a SelectExpr) -> Result<Type, Somewhere> {
        // `google.protobuf.Duration` and the like are names of types, if nothing else is of that name.
        if functions::type_name(select).is_some() {
            return Ok(Type::Kind);
        }
        let operand = self.infer(&select.operand)?;
        let found = operand.field(&select.field)?;
        Ok(if select.test { Type::Bool } else { found })
    }

    fn call(&mut self, call: &'a CallExpr) -> Result<Type, Somewhere> {
        if call.func_name == operators::OPT_SELECT {
            let [of, IdedExpr { expr: Expr::Literal(LiteralValue::String(name)), .. }] = call.args.as_slice()
            else {
                return Err("a field is expected".to_owned().into());
            };
            let of = match self.infer(of)? {
                Type::Optional(of) => *of,
                other => other,
            };
            return Ok(match of.field(name.inner())? {
                Type::Optional(of) => Type::Optional(of),
                of => of.optional(),
            });
        }
        let (name, target) = match &call.target {
            None => (absolute(&call.func_name).to_owned(), None),
            Some(target) => match qualified(call, |name| self.variable(name).is_some()) {
                Some(name) if functions::is_known(&name) => (name, None),
                Some(name) => return Err(undeclared(name.split('.').next().unwrap_or_default()).into()),
                None => (call.func_name.clone(), Some(self.infer(target)?)),
            },
        };
        let mut arguments = Vec::with_capacity(call.args.len());
        let outside = self.formatting;
        self.formatting |= name == "format";
        for argument in &call.args {
            let found = self.infer(argument)?;
            let logical =
                target.is_none() && matches!(name.as_str(), operators::LOGICAL_AND | operators::LOGICAL_OR);
            if logical && !found.agrees(&Type::Bool) {
                let message = format!("expected type 'bool' but found '{found}'");
                return Err(Wrong { part: argument.id, message }.into());
            }
            arguments.push(found);
        }
        if name == "format" && target.is_some() {
            self.formatted(call)?;
        }
        self.formatting = outside;
        Ok(functions::result(&name, target.as_ref(), &arguments)?)
    }

    /// What macros such as `exists` and `map` are made of.
    fn looped(&mut self, it: &'a ComprehensionExpr) -> Result<Type, Wrong> {
        let range = self.infer(&it.iter_range)?;
        let (first, second) = match &range {
            Type::Dyn => (Type::Dyn, Type::Dyn),
            Type::List(of) if it.iter_var2.is_some() => (Type::Int, (**of).clone()),
            Type::List(of) => ((**of).clone(), Type::Dyn),
            Type::Map(keys, values) => ((**keys).clone(), (**values).clone()),
            other => {
                let message = format!(
                    "expression of type '{other}' cannot be range of a comprehension (must be list, map, or dynamic)"
                );
                return Err(Wrong { part: it.iter_range.id, message });
            }
        };
        let mut collected = self.infer(&it.accu_init)?;
        let outer = self.locals.len();
        self.locals.push((&it.accu_var, collected.clone()));
        self.locals.push((&it.iter_var, first));
        if let Some(name) = &it.iter_var2 {
            self.locals.push((name, second));
        }
        let condition = self.infer(&it.loop_cond)?;
        if !condition.agrees(&Type::Bool) {
            let message = format!("expected type 'bool' but found '{condition}'");
            return Err(Wrong { part: it.loop_cond.id, message });
        }
        let step = self.infer(&it.loop_step)?;
        // A list begins empty, and is known by what is put in.
        if collected.agrees(&step) {
            collected = step;
        }
        self.locals.truncate(outer);
        self.locals.push((&it.accu_var, collected));
        let result = self.infer(&it.result);
        self.locals.truncate(outer);
        result
    }
}

/// The name of a function such as `optional.of`, whose first part is no variable.
pub(crate) fn qualified(call: &CallExpr, is_variable: impl Fn(&str) -> bool) -> Option<String> {
    match &call.target.as_deref()?.expr {
        Expr::Ident(name) if !is_variable(absolute(name)) => {
            Some(format!("{}.{}", absolute(name), call.func_name))
        }
        _ => None,
    }
}

/// A name without the dot before it, which is nothing where there are no containers: `.object`.
pub(crate) fn absolute(name: &str) -> &str {
    name.strip_prefix('.').unwrap_or(name)
}

fn undeclared(name: &str) -> String {
    format!("undeclared reference to '{name}' (in container '')")
}

fn literal_type(literal: &LiteralValue) -> Type {
    match literal {
        LiteralValue::Boolean(_) => Type::Bool,
        LiteralValue::Bytes(_) => Type::Bytes,
        LiteralValue::Double(_) => Type::Double,
        LiteralValue::Int(_) => Type::Int,
        LiteralValue::Null => Type::Null,
        LiteralValue::String(_) => Type::String,
        LiteralValue::UInt(_) => Type::Uint,
    }
}

/// Of an optional part of a literal: what it is if it is there.
fn within(found: Type) -> Result<Type, Somewhere> {
    match found {
        Type::Optional(of) => Ok(*of),
        Type::Dyn => Ok(Type::Dyn),
        other => Err(format!("expected type 'optional_type({other})' but found '{other}'").into()),
    }
}

/// What is wrong with a part or with one within it.
enum Somewhere {
    Here(String),
    There(Wrong),
}

impl Somewhere {
    fn or(self, part: u64) -> Wrong {
        match self {
            Self::Here(message) => Wrong { part, message },
            Self::There(wrong) => wrong,
        }
    }
}

impl From<String> for Somewhere {
    fn from(message: String) -> Self {
        Self::Here(message)
    }
}

impl From<Wrong> for Somewhere {
    fn from(wrong: Wrong) -> Self {
        Self::There(wrong)
    }
}
