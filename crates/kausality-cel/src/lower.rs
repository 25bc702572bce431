//! From the parser's tree to what is evaluated.
//!
//! Names become places, operators and macros become what they mean, and what is constant is looked at: a pattern, a
//! duration or a point in time that cannot be read is found here.

use std::collections::BTreeSet;

use cel::IdedExpr;
use cel::common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, LiteralValue, operators as op};
use cel::common::types::{CelString, CelType};
use cel::common::value::Val;

use crate::check::{self, Wrong};
use crate::environment::{self, Environment};
use crate::library;
use crate::library::regex::{self, Pattern, Refused};
use crate::macros;
use crate::node::{self, Call, Each, Entry, How, Loop, Node, Operator, Own};

/// An expression that can be evaluated.
pub(crate) struct Lowered {
    pub(crate) node: Node,
    /// The variables that it asks for.
    pub(crate) variables: BTreeSet<&'static str>,
    /// The memory that it takes, but for the texts in it.
    pub(crate) size: usize,
}

/// What an allocation takes beside what is in it.
const ALLOCATED: usize = 32;

/// What is evaluated.
///
/// # Errors
/// If a constant is none: what is wrong with it, and where.
pub(crate) fn lower(expression: &IdedExpr, environment: &Environment) -> Result<Lowered, Wrong> {
    let (locals, variables) = (Vec::new(), BTreeSet::new());
    let mut lowering = Lowering { environment, locals, variables, patterns: regex::MAX_WRITTEN, size: 0 };
    let node = lowering.node(expression)?;
    Ok(Lowered { node, variables: lowering.variables, size: lowering.size })
}

struct Lowering<'a> {
    environment: &'a Environment,
    /// The variables of loops, the innermost last.
    locals: Vec<&'a str>,
    variables: BTreeSet<&'static str>,
    /// How large the patterns that follow may be, all together.
    patterns: usize,
    size: usize,
}

impl<'a> Lowering<'a> {
    fn node(&mut self, expression: &'a IdedExpr) -> Result<Node, Wrong> {
        let unknown = || wrong(expression, "this kind of expression is not supported");
        self.size += size_of::<Node>() + ALLOCATED;
        match &expression.expr {
            Expr::Literal(literal) => Ok(Node::Constant(constant(literal))),
            Expr::Ident(name) => self.name(name).ok_or_else(unknown),
            Expr::Select(select) => {
                if let Some(name) = check::functions::type_name(select) {
                    return type_named(&name).ok_or_else(unknown);
                }
                let of = Box::new(self.node(&select.operand)?);
                let field = CelString::from(select.field.clone());
                Ok(if select.test {
                    Node::Has { of, field }
                } else {
                    Node::Select { of, field, optional: false }
                })
            }
            Expr::Call(call) => self.call(expression, call),
            Expr::List(list) => {
                let mut items = Vec::with_capacity(list.elements.len());
                for (nth, element) in list.elements.iter().enumerate() {
                    items.push((self.node(element)?, list.optional_indices.contains(&nth)));
                }
                Ok(Node::List(items))
            }
            Expr::Map(map) => {
                let mut entries = Vec::with_capacity(map.entries.len());
                for entry in &map.entries {
                    let EntryExpr::MapEntry(entry) = &entry.expr else { return Err(unknown()) };
                    let (key, value) = (self.node(&entry.key)?, self.node(&entry.value)?);
                    entries.push(Entry { key, value, optional: entry.optional });
                }
                Ok(Node::Map(entries))
            }
            Expr::Comprehension(it) => self.comprehension(expression, it),
            Expr::Struct(_) | Expr::Unspecified => Err(unknown()),
        }
    }

    fn name(&mut self, name: &str) -> Option<Node> {
        let name = check::absolute(name);
        if let Some(out) = self.locals.iter().rev().position(|known| *known == name) {
            return Some(Node::Local(out));
        }
        match self.environment.variable(name) {
            Some((name, _)) => {
                self.variables.insert(name);
                Some(Node::Variable(name))
            }
            None => type_named(name),
        }
    }

    fn call(&mut self, expression: &'a IdedExpr, call: &'a CallExpr) -> Result<Node, Wrong> {
        let name = check::absolute(&call.func_name);
        if call.target.is_none() && name.starts_with(['_', '!', '-', '@']) {
            return self.operator(expression, name, &call.args);
        }
        let is_variable =
            |name: &str| self.locals.contains(&name) || self.environment.variable(name).is_some();
        let qualified = check::qualified(call, is_variable).filter(|it| check::functions::is_known(it));
        let target = call.target.as_deref().filter(|_| qualified.is_none());
        let name = qualified.unwrap_or_else(|| name.to_owned());

        let mut arguments = Vec::with_capacity(call.args.len() + 1);
        for argument in target.into_iter().chain(&call.args) {
            arguments.push(self.node(argument)?);
        }
        let member = target.is_some();
        let pattern = match (name.as_str(), member) {
            ("matches" | "find" | "findAll", true) => self.pattern(call.args.first())?,
            ("matches", false) => self.pattern(call.args.get(1))?,
            _ => None,
        };
        converted(&name, &call.args)?;
        let how = match Own::of(&name, member, arguments.len()) {
            Some(own) => How::Own(own),
            None if member => {
                self.size += (arguments.len() + 1) * (size_of::<IdedExpr>() + ALLOCATED);
                How::Member(Box::new(
                    stub(&name, arguments.len())
                        .ok_or_else(|| wrong(expression, "more arguments than any function has"))?,
                ))
            }
            None => How::Global,
        };
        self.size += size_of::<Call>() + ALLOCATED;
        Ok(Node::Call(Box::new(Call { name, arguments, pattern, how })))
    }

    fn operator(
        &mut self,
        expression: &'a IdedExpr,
        name: &str,
        arguments: &'a [IdedExpr],
    ) -> Result<Node, Wrong> {
        let binary = |name: &str| {
            Some(match name {
                op::LOGICAL_AND => Operator::And,
                op::LOGICAL_OR => Operator::Or,
                op::EQUALS => Operator::Equal,
                op::NOT_EQUALS => Operator::NotEqual,
                op::LESS => Operator::Less,
                op::LESS_EQUALS => Operator::LessOrEqual,
                op::GREATER => Operator::Greater,
                op::GREATER_EQUALS => Operator::GreaterOrEqual,
                op::IN => Operator::In,
                op::ADD => Operator::Add,
                op::SUBSTRACT => Operator::Subtract,
                op::MULTIPLY => Operator::Multiply,
                op::DIVIDE => Operator::Divide,
                op::MODULO => Operator::Remainder,
                _ => return None,
            })
        };
        match (name, arguments) {
            (op::LOGICAL_NOT, [of]) => Ok(Node::Not(Box::new(self.node(of)?))),
            (op::NEGATE, [of]) => Ok(Node::Negate(Box::new(self.node(of)?))),
            (op::CONDITIONAL, [condition, yes, no]) => {
                Ok(Node::Conditional(Box::new([self.node(condition)?, self.node(yes)?, self.node(no)?])))
            }
            (op::INDEX | op::OPT_INDEX, [of, at]) => {
                let (of, at) = (Box::new(self.node(of)?), Box::new(self.node(at)?));
                Ok(Node::Index { of, at, optional: name == op::OPT_INDEX })
            }
            (op::OPT_SELECT, [of, IdedExpr { expr: Expr::Literal(LiteralValue::String(field)), .. }]) => {
                Ok(Node::Select { of: Box::new(self.node(of)?), field: field.clone(), optional: true })
            }
            (name, [one, two]) => match binary(name) {
                Some(operator) => Ok(Node::Binary(operator, Box::new([self.node(one)?, self.node(two)?]))),
                None => Err(wrong(expression, "this operator is not supported")),
            },
            _ => Err(wrong(expression, "this operator is not supported")),
        }
    }

    fn comprehension(&mut self, expression: &'a IdedExpr, it: &'a ComprehensionExpr) -> Result<Node, Wrong> {
        let made = it.accu_var.as_str();
        // A loop over nothing binds a name.
        if matches!(&it.iter_range.expr, Expr::List(list) if list.elements.is_empty())
            && matches!(&it.loop_step.expr, Expr::Ident(name) if name == made)
        {
            let value = self.node(&it.accu_init)?;
            self.locals.push(made);
            let body = self.node(&it.result);
            self.locals.pop();
            return Ok(Node::Bind(Box::new([value, body?])));
        }
        let range = self.node(&it.iter_range)?;
        let outer = self.locals.len();
        self.locals.push(&it.iter_var);
        self.locals.extend(it.iter_var2.as_deref());
        let each = self.each(it);
        self.locals.truncate(outer);
        let each = each?.ok_or_else(|| wrong(expression, "this macro is not supported"))?;
        self.size += size_of::<Loop>() + ALLOCATED;
        Ok(Node::Loop(Box::new(Loop { range, paired: it.iter_var2.is_some(), each })))
    }

    /// Which macro it was, by the shape of its step.
    fn each(&mut self, it: &'a ComprehensionExpr) -> Result<Option<Each>, Wrong> {
        let made = |of: &IdedExpr| matches!(&of.expr, Expr::Ident(name) if *name == it.accu_var);
        let (when, step) = match &it.loop_step.expr {
            Expr::Call(call) if call.func_name == op::CONDITIONAL => match call.args.as_slice() {
                [when, step, before] if made(before) => (Some(when), step),
                _ => return Ok(None),
            },
            _ => (None, &it.loop_step),
        };
        let Expr::Call(call) = &step.expr else { return Ok(None) };
        Ok(match (call.func_name.as_str(), call.args.as_slice(), when) {
            (op::LOGICAL_AND, [before, each], None) if made(before) && made(&it.result) => {
                Some(Each::All(self.node(each)?))
            }
            (op::LOGICAL_OR, [before, each], None) if made(before) && made(&it.result) => {
                Some(Each::Exists(self.node(each)?))
            }
            (op::ADD, [before, IdedExpr { expr: Expr::List(list), .. }], when)
                if made(before) && made(&it.result) =>
            {
                let when = when.map(|when| self.node(when)).transpose()?;
                match list.elements.as_slice() {
                    [item] => Some(Each::Collect { when, item: self.node(item)? }),
                    _ => None,
                }
            }
            (op::ADD, [before, IdedExpr { expr: Expr::Literal(LiteralValue::Int(_)), .. }], Some(when))
                if made(before) =>
            {
                Some(Each::ExistsOne(self.node(when)?))
            }
            (macros::INSERT, [before, _, value], when) if made(before) && made(&it.result) => {
                let when = when.map(|when| self.node(when)).transpose()?;
                Some(Each::Insert { when, value: self.node(value)? })
            }
            (macros::MERGE, [before, entries], when) if made(before) && made(&it.result) => {
                let when = when.map(|when| self.node(when)).transpose()?;
                Some(Each::Merge { when, entries: self.node(entries)? })
            }
            _ => None,
        })
    }

    /// A pattern, if it is constant.
    fn pattern(&mut self, argument: Option<&IdedExpr>) -> Result<Option<Pattern>, Wrong> {
        let Some((argument, text)) = argument.and_then(|it| Some((it, literal_text(it)?))) else {
            return Ok(None);
        };
        match Pattern::compile(text, self.patterns) {
            Ok(pattern) => {
                self.patterns -= pattern.size();
                self.size += pattern.kept();
                Ok(Some(pattern))
            }
            Err(Refused::TooLarge) if self.patterns < regex::MAX_WRITTEN => {
                Err(wrong(argument, "illegal regex: with those before it, it is too large"))
            }
            Err(refused) => Err(wrong(argument, &refused.to_string())),
        }
    }
}

fn wrong(expression: &IdedExpr, message: &str) -> Wrong {
    Wrong { part: expression.id, message: message.to_owned() }
}

fn constant(literal: &LiteralValue) -> Box<dyn Val> {
    literal.to_val().into_owned()
}

fn type_named(name: &str) -> Option<Node> {
    let found = environment::functions().types().find_type(name)?;
    Some(Node::Constant(Box::new(CelType::from(found))))
}

fn literal_text(of: &IdedExpr) -> Option<&str> {
    match &of.expr {
        Expr::Literal(LiteralValue::String(text)) => Some(text.inner()),
        _ => None,
    }
}

/// Whether a constant can be converted to what it should be.
fn converted(name: &str, arguments: &[IdedExpr]) -> Result<(), Wrong> {
    let ("bool" | "bytes" | "double" | "duration" | "int" | "string" | "timestamp" | "uint", [argument]) =
        (name, arguments)
    else {
        return Ok(());
    };
    let Expr::Literal(literal) = &argument.expr else { return Ok(()) };
    let given = vec![literal.to_val()];
    match library::standard::function(name, &given) {
        Some(function) if function(given).is_err() => {
            Err(wrong(argument, &format!("invalid {name} argument")))
        }
        _ => Ok(()),
    }
}

/// A call of a member function as `cel` wants it.
fn stub(name: &str, arguments: usize) -> Option<IdedExpr> {
    let named = |nth| Some(IdedExpr { id: 0, expr: Expr::Ident(node::argument(nth)?.to_owned()) });
    let target = Some(Box::new(named(0)?));
    let args = (1..arguments).map(named).collect::<Option<Vec<_>>>()?;
    Some(IdedExpr { id: 0, expr: Expr::Call(CallExpr { func_name: name.to_owned(), target, args }) })
}
