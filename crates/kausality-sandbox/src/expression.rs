//! Expressions in CEL, as `matchConditions` of webhooks have them.
//!
//! `object`, `oldObject` and `request` are known, with the standard functions, those for strings, and optionals. An
//! expression is checked before it is stored: what cannot be parsed, names what is not there, or cannot be a boolean is
//! refused. What an API server knows beyond that (`authorizer`, quantities, addresses, URLs) is refused, too, so that
//! nothing is silently taken for something else.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};
use std::thread;

use cel::common::ast::{EntryExpr, Expr, IdedExpr};
use cel::{Context, Env, Program};
use serde_json::Value;

mod check;
mod values;

/// The longest source.
const MAX_SOURCE: usize = 16 << 10;
/// The most brackets within each other.
const MAX_BRACKETS: usize = 64;
/// The deepest expression.
const MAX_DEPTH: usize = 128;
/// The deepest expression that is evaluated where it is asked about. Each level takes some 20 KiB of stack without
/// optimisation; what is deeper has a thread with more of it.
const SHALLOW: usize = 24;
/// The stack for what is deep.
const DEEP_STACK: usize = 64 << 20;
/// The stack for parsing and checking, which go as deep as the source, whatever comes of it.
const STACK: usize = 512 << 20;
/// The most steps that loops within loops may take.
const MAX_STEPS: u64 = 100_000_000;

static ENVIRONMENT: LazyLock<Arc<Env>> = LazyLock::new(|| {
    let mut environment = Env::stdlib();
    // The names of the extension are its own: it cannot collide with the standard functions.
    _ = environment.add_extension(cel::extensions::strings);
    Arc::new(environment)
});

/// An expression that can be evaluated, any number of times and at once.
#[derive(Debug)]
pub(crate) struct Expression {
    program: Program,
    /// What it asks for.
    variables: BTreeSet<String>,
    extent: Extent,
}

/// What an expression may ask for.
pub(crate) trait Facts {
    /// The value of `object`, `oldObject` or `request`; null if there is none.
    fn get(&self, name: &str) -> std::borrow::Cow<'_, Value>;
}

impl Expression {
    /// Reads and checks a source.
    ///
    /// # Errors
    /// If there is anything wrong with it: in words for who wrote it.
    pub(crate) fn compile(source: &str) -> Result<Self, String> {
        if source.len() > MAX_SOURCE {
            return Err(format!("expressions of more than {MAX_SOURCE} bytes are not supported"));
        }
        if brackets(source) > MAX_BRACKETS {
            return Err(format!("more than {MAX_BRACKETS} brackets within each other are not supported"));
        }
        let source = source.to_owned();
        let compiling = thread::Builder::new().stack_size(STACK).spawn(move || Self::checked(&source));
        let compiled = compiling.map_err(|error| format!("no thread to compile it: {error}"))?;
        compiled.join().unwrap_or_else(|_| Err("it cannot be parsed".to_owned()))
    }

    fn checked(source: &str) -> Result<Self, String> {
        let program =
            ENVIRONMENT.compile(source).map_err(|errors| format!("compilation failed: {errors}"))?;
        let extent = extent(program.expression());
        if extent.depth > MAX_DEPTH {
            return Err(format!("expressions of more than {MAX_DEPTH} levels are not supported"));
        }
        check::check(&program, source)?;
        let variables = program.references().variables().into_iter().map(str::to_owned).collect();
        Ok(Self { program, variables, extent })
    }

    /// Whether it holds.
    ///
    /// # Errors
    /// If that cannot be told: something is missing, or of another type.
    pub(crate) fn holds(&self, facts: &impl Facts) -> Result<bool, String> {
        let Extent { depth, loops, size } = self.extent;
        let mut context = Context::with_env(Arc::clone(&ENVIRONMENT));
        let mut longest = size;
        for name in check::VARIABLES.iter().filter(|name| self.variables.contains(**name)) {
            let value = facts.get(name);
            longest = longest.max(values::longest(&value));
            context.add_variable_from_value(*name, values::of(&value));
        }
        let steps = longest.checked_pow(loops).and_then(|steps| steps.checked_mul(size));
        if loops > 1 && steps.is_none_or(|steps| steps > MAX_STEPS) {
            return Err("operation cancelled: actual cost limit exceeded".to_owned());
        }
        let execute = || self.program.execute(&context);
        let result = if depth <= SHALLOW {
            execute()
        } else {
            thread::scope(|scope| {
                let executing = thread::Builder::new().stack_size(DEEP_STACK).spawn_scoped(scope, execute);
                let executing = executing.map_err(|error| format!("no thread to evaluate it: {error}"))?;
                executing.join().map_err(|_| "it cannot be evaluated".to_owned())
            })?
        };
        match result {
            Ok(cel::Value::Bool(holds)) => Ok(holds),
            Ok(other) => Err(format!("it is a {} and not a bool", other.type_of())),
            Err(cel::ExecutionError::NoSuchKey(key)) => Err(format!("no such key: {key}")),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// How many brackets are within each other, outside of texts.
fn brackets(source: &str) -> usize {
    let (mut depth, mut deepest, mut quote, mut escaped) = (0_usize, 0, None, false);
    for letter in source.chars() {
        match (quote, letter) {
            (Some(_), _) if escaped => escaped = false,
            (Some(_), '\\') => escaped = true,
            (Some(open), letter) if open == letter => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(letter),
            (None, '(' | '[' | '{') => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            (None, ')' | ']' | '}') => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// How large an expression is.
#[derive(Clone, Copy, Debug)]
struct Extent {
    depth: usize,
    /// How many loops are within each other.
    loops: u32,
    /// How many parts it has.
    size: u64,
}

/// Without recursion: whatever comes out of the parser can be measured.
fn extent(root: &IdedExpr) -> Extent {
    let mut extent = Extent { depth: 0, loops: 0, size: 0 };
    let mut open = vec![(root, 1_usize, 0_u32)];
    while let Some((at, depth, loops)) = open.pop() {
        extent.size += 1;
        extent.depth = extent.depth.max(depth);
        extent.loops = extent.loops.max(loops);
        match &at.expr {
            Expr::Call(call) => {
                let parts = call.target.as_deref().into_iter().chain(&call.args);
                open.extend(parts.map(|part| (part, depth + 1, loops)));
            }
            Expr::Comprehension(it) => {
                open.push((&it.iter_range, depth + 1, loops));
                open.push((&it.accu_init, depth + 1, loops));
                open.push((&it.result, depth + 1, loops));
                open.push((&it.loop_cond, depth + 1, loops + 1));
                open.push((&it.loop_step, depth + 1, loops + 1));
            }
            Expr::List(list) => open.extend(list.elements.iter().map(|part| (part, depth + 1, loops))),
            Expr::Select(select) => open.push((&select.operand, depth + 1, loops)),
            Expr::Map(map) => {
                for entry in &map.entries {
                    if let EntryExpr::MapEntry(entry) = &entry.expr {
                        open.push((&entry.key, depth + 1, loops));
                        open.push((&entry.value, depth + 1, loops));
                    }
                }
            }
            Expr::Struct(it) => {
                for entry in &it.entries {
                    if let EntryExpr::StructField(field) = &entry.expr {
                        open.push((&field.value, depth + 1, loops));
                    }
                }
            }
            Expr::Ident(_) | Expr::Literal(_) | Expr::Unspecified => {}
        }
    }
    extent
}

#[cfg(test)]
mod tests;
