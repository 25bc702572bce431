//! Macros of two variables: `list.all(index, item, …)`, `map.transformList(key, value, …)`.
//!
//! `cel` can parse no such macros and evaluates loops of one variable only, so that
//! `range.all(k, v, p)` becomes, with what cannot be written in an expression behind an `@`,
//!
//! ```text
//! bind(@range, range, @keys(@range).all(k, bind(v, @range[k], p)))
//! ```
//!
//! where `bind` is, as in cel-go, a loop over nothing. To the type checker these are loops like any other: it only has
//! to know what `@keys` returns. Maps are made from a list at the end, since a loop that adds to a list does not copy
//! it each time, and one that adds to a map would.

use std::collections::HashMap;
use std::mem;

use cel::common::ast::{CallExpr, ComprehensionExpr, Expr, IdedExpr, ListExpr, LiteralValue, operators};
use cel::common::types::{self, CelInt, CelList, CelMap, CelMapKey, CelUInt};
use cel::common::value::{CowVal, Val};
use cel::parser::{Macro, MacroExprHelper, ParseError};
use cel::{DeclarationError, Env, ExecutionError};

use super::{Arguments, Kind, Outcome, Overload, argument, failed, function, items, unexpected};

const LIST: Kind = Kind::List(&Kind::Any);
const MAP: Kind = Kind::Map(&Kind::Any, &Kind::Any);
const KEYS: &str = "@keys";
const MADE_OF_PAIRS: &str = "@map";
const MADE_OF_MAPS: &str = "@merge";
const PAIR: &str = "@pair";
const RANGE: &str = "@range";
const RESULT: &str = "@result";

pub(super) static OVERLOADS: &[Overload] = &[
    function(KEYS, &[LIST], Kind::List(&Kind::Int), indices),
    function(KEYS, &[MAP], LIST, |arguments| {
        let keys = items(&arguments, 0)?.into_iter().map(|key| key.clone_as_boxed()).collect::<Vec<_>>();
        Ok(CowVal::owned(CelList::from(keys)))
    }),
    function(PAIR, &[Kind::Any, Kind::Any], Kind::Any, |arguments| {
        let pair = arguments.into_iter().map(CowVal::into_owned).collect::<Vec<_>>();
        Ok(CowVal::owned(CelList::from(pair)))
    }),
    function(MADE_OF_PAIRS, &[LIST], MAP, map_of_pairs),
    function(MADE_OF_MAPS, &[Kind::List(&MAP)], MAP, map_of_maps),
];

/// Adds the macros to an environment.
pub(super) fn macros(environment: &mut Env) -> Result<(), DeclarationError> {
    for (name, count, kind) in [
        ("all", 3, Loop::All),
        ("exists", 3, Loop::Exists),
        ("existsOne", 3, Loop::ExistsOne),
        ("exists_one", 3, Loop::ExistsOne),
        ("transformList", 3, Loop::List),
        ("transformList", 4, Loop::List),
        ("transformMap", 3, Loop::Map),
        ("transformMap", 4, Loop::Map),
        ("transformMapEntry", 3, Loop::MapOfEntries),
        ("transformMapEntry", 4, Loop::MapOfEntries),
    ] {
        environment.add_macro(Macro::receiver(name, count, move |helper, target, arguments| {
            let (Some(range), arguments) = (target.take(), mem::take(arguments)) else {
                return Err(helper.new_error(0, format!("{name} is called on a list or a map")));
            };
            Expansion { helper }.expand(kind, range, arguments).map(Some)
        }))?;
    }
    Ok(())
}

#[derive(Clone, Copy)]
enum Loop {
    All,
    Exists,
    ExistsOne,
    List,
    Map,
    MapOfEntries,
}

/// Writes what a macro stands for.
struct Expansion<'h, 'p> {
    helper: &'h mut MacroExprHelper<'p>,
}

impl Expansion<'_, '_> {
    fn expand(
        mut self,
        kind: Loop,
        range: IdedExpr,
        arguments: Vec<IdedExpr>,
    ) -> Result<IdedExpr, ParseError> {
        let mut arguments = arguments.into_iter();
        let key = self.name(arguments.next())?;
        let value_id = arguments.as_slice().first().map_or(0, |value| value.id);
        let value = self.name(arguments.next())?;
        if key == value {
            return Err(self.helper.new_error(value_id, format!("duplicate variable name: {key}")));
        }
        let (filter, body) = match (arguments.next(), arguments.next()) {
            (Some(body), None) => (None, body),
            (Some(filter), Some(body)) => (Some(filter), body),
            (None, _) => return Err(self.helper.new_error(value_id, "nothing to evaluate")),
        };
        let filter = filter.map(|filter| self.with_value(&key, &value, filter));
        let body = self.with_value(&key, &value, body);
        let (init, condition, step, result) = match kind {
            Loop::All => (self.bool(true), self.while_true(), self.fold(operators::LOGICAL_AND, body), None),
            Loop::Exists => {
                (self.bool(false), self.while_false(), self.fold(operators::LOGICAL_OR, body), None)
            }
            Loop::ExistsOne => {
                let (one, result) = (self.int(1), self.ident(RESULT));
                let only = self.call(operators::EQUALS, vec![result, one]);
                let one = self.int(1);
                let counted = self.fold(operators::ADD, one);
                (self.int(0), self.bool(true), self.only_if(Some(body), counted), Some(only))
            }
            Loop::List => (self.list(vec![]), self.bool(true), self.appending(filter, body), None),
            Loop::Map => {
                let key = self.ident(&key);
                let pair = self.call(PAIR, vec![key, body]);
                (self.list(vec![]), self.bool(true), self.appending(filter, pair), None)
            }
            Loop::MapOfEntries => (self.list(vec![]), self.bool(true), self.appending(filter, body), None),
        };
        let keys = self.ident(RANGE);
        let keys = self.call(KEYS, vec![keys]);
        let result = result.unwrap_or_else(|| self.ident(RESULT));
        let through = self.node(Expr::Comprehension(Box::new(ComprehensionExpr {
            iter_range: keys,
            iter_var: key,
            iter_var2: None,
            accu_var: RESULT.to_owned(),
            accu_init: init,
            loop_cond: condition,
            loop_step: step,
            result,
        })));
        let bound = self.bind(RANGE, range, through);
        Ok(match kind {
            Loop::Map => self.call(MADE_OF_PAIRS, vec![bound]),
            Loop::MapOfEntries => self.call(MADE_OF_MAPS, vec![bound]),
            _ => bound,
        })
    }

    fn name(&mut self, argument: Option<IdedExpr>) -> Result<String, ParseError> {
        let argument = argument.unwrap_or_default();
        match argument.expr {
            Expr::Ident(name) => Ok(name),
            _ => Err(self.helper.new_error(argument.id, "argument must be a simple name")),
        }
    }

    /// An expression in which the value at a key has a name.
    fn with_value(&mut self, key: &str, value: &str, expression: IdedExpr) -> IdedExpr {
        let (range, key) = (self.ident(RANGE), self.ident(key));
        let item = self.call(operators::INDEX, vec![range, key]);
        self.bind(value, item, expression)
    }

    /// The result so far, combined with something.
    fn fold(&mut self, operator: &str, with: IdedExpr) -> IdedExpr {
        let result = self.ident(RESULT);
        self.call(operator, vec![result, with])
    }

    fn appending(&mut self, filter: Option<IdedExpr>, item: IdedExpr) -> IdedExpr {
        let item = self.list(vec![item]);
        let appended = self.fold(operators::ADD, item);
        self.only_if(filter, appended)
    }

    /// A step that is taken only if the filter holds.
    fn only_if(&mut self, filter: Option<IdedExpr>, step: IdedExpr) -> IdedExpr {
        let Some(filter) = filter else { return step };
        let result = self.ident(RESULT);
        self.call(operators::CONDITIONAL, vec![filter, step, result])
    }

    fn while_true(&mut self) -> IdedExpr {
        let result = self.ident(RESULT);
        self.call(operators::NOT_STRICTLY_FALSE, vec![result])
    }

    fn while_false(&mut self) -> IdedExpr {
        let result = self.ident(RESULT);
        let not = self.call(operators::LOGICAL_NOT, vec![result]);
        self.call(operators::NOT_STRICTLY_FALSE, vec![not])
    }

    /// An expression in which a name stands for a value: a loop over nothing, whose result starts as that value.
    fn bind(&mut self, name: &str, value: IdedExpr, expression: IdedExpr) -> IdedExpr {
        let (iter_range, loop_cond, loop_step) = (self.list(vec![]), self.bool(false), self.ident(name));
        self.node(Expr::Comprehension(Box::new(ComprehensionExpr {
            iter_range,
            iter_var: "#unused".to_owned(),
            iter_var2: None,
            accu_var: name.to_owned(),
            accu_init: value,
            loop_cond,
            loop_step,
            result: expression,
        })))
    }

    fn call(&mut self, name: &str, args: Vec<IdedExpr>) -> IdedExpr {
        self.node(Expr::Call(CallExpr { func_name: name.to_owned(), target: None, args }))
    }

    fn ident(&mut self, name: &str) -> IdedExpr {
        self.node(Expr::Ident(name.to_owned()))
    }

    fn list(&mut self, items: Vec<IdedExpr>) -> IdedExpr {
        self.node(Expr::List(ListExpr::new(items)))
    }

    fn bool(&mut self, value: bool) -> IdedExpr {
        self.node(Expr::Literal(LiteralValue::Boolean(value.into())))
    }

    fn int(&mut self, value: i64) -> IdedExpr {
        self.node(Expr::Literal(LiteralValue::Int(value.into())))
    }

    fn node(&mut self, expression: Expr) -> IdedExpr {
        self.helper.next_expr(expression)
    }
}

fn indices<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    let list = argument(&arguments, 0)?;
    let size = list.as_sizer().ok_or_else(|| unexpected(list, &types::LIST_TYPE))?.size();
    let indices = (0..*size.inner()).map(|index| Box::new(CelInt::from(index)) as Box<dyn Val + 'v>);
    Ok(CowVal::owned(CelList::from(indices.collect::<Vec<_>>())))
}

fn map_of_pairs<'b, 'v>(mut arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    let mut entries = Entries::default();
    for pair in owned(arguments.pop())? {
        let mut pair = owned(Some(CowVal::Owned(pair)))?.into_iter();
        if let (Some(key), Some(value)) = (pair.next(), pair.next()) {
            entries.insert(key, value)?;
        }
    }
    Ok(CowVal::owned(CelMap::from(entries.0)))
}

fn map_of_maps<'b, 'v>(mut arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    let mut entries = Entries::default();
    for map in owned(arguments.pop())? {
        let no_map = || failed("transformMapEntry", format!("a {} is no map", map.get_type().name()));
        if map.get_type().kind() != types::Kind::Map {
            return Err(no_map());
        }
        let values = map.as_indexer().ok_or_else(no_map)?;
        let mut keys = map.as_iterable().ok_or_else(no_map)?.iter();
        while let Some(key) = keys.next() {
            entries.insert(key.clone_as_boxed(), values.get(key)?.into_owned())?;
        }
    }
    Ok(CowVal::owned(CelMap::from(entries.0)))
}

/// The items of a list, moved out of it where that can be.
fn owned<'v>(list: Option<CowVal<'_, 'v>>) -> Result<Vec<Box<dyn Val + 'v>>, ExecutionError> {
    let list = list.ok_or_else(|| ExecutionError::invalid_argument_count(1, 0))?;
    Vec::try_from(list.into_owned())
        .map_err(|other: Box<dyn Val + 'v>| unexpected(other.as_ref(), &types::LIST_TYPE))
}

/// The entries of a map that is being made.
#[derive(Default)]
struct Entries<'v>(HashMap<CelMapKey<'v>, Box<dyn Val + 'v>>);

impl<'v> Entries<'v> {
    fn insert(&mut self, key: Box<dyn Val + 'v>, value: Box<dyn Val + 'v>) -> Result<(), ExecutionError> {
        let key = CelMapKey::try_from(CowVal::Owned(key))?;
        // A number is the same key whatever its type.
        let twin = match &key {
            CelMapKey::Int(key) => {
                u64::try_from(*key.inner()).ok().map(|key| CelMapKey::UInt(CelUInt::from(key)))
            }
            CelMapKey::UInt(key) => {
                i64::try_from(*key.inner()).ok().map(|key| CelMapKey::Int(CelInt::from(key)))
            }
            _ => None,
        };
        if self.0.contains_key(&key) || twin.is_some_and(|twin| self.0.contains_key(&twin)) {
            return Err(failed("transformMapEntry", format!("the key {:?} is there twice", key.inner())));
        }
        self.0.insert(key, value);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
