//! The macros of two variables, which `cel` lacks: an index and an item of a list, or a key and a value of a map.
//!
//! They become comprehensions of the same shapes as those of one variable; [`lower`](crate::lower) tells them apart.

use cel::common::ast::{
    CallExpr, ComprehensionExpr, Expr, IdedExpr, ListExpr, LiteralValue, MapExpr, operators,
};
use cel::parser::{Macro, MacroExprHelper, ParseError};
use cel::{DeclarationError, Env};

/// A map with one more entry.
pub(crate) const INSERT: &str = "@insert";
/// A map with the entries of another.
pub(crate) const MERGE: &str = "@merge";
/// What has been made so far: no name that can be written.
const MADE: &str = "@result";

/// Adds the macros to an environment of `cel`.
///
/// # Errors
/// If one of them is there already.
pub(crate) fn register(environment: &mut Env) -> Result<(), DeclarationError> {
    for (name, arguments, shape) in [
        ("all", 3, Shape::All),
        ("exists", 3, Shape::Exists),
        ("existsOne", 3, Shape::ExistsOne),
        ("exists_one", 3, Shape::ExistsOne),
        ("transformList", 3, Shape::List),
        ("transformList", 4, Shape::List),
        ("transformMap", 3, Shape::Map),
        ("transformMap", 4, Shape::Map),
        ("transformMapEntry", 3, Shape::Entries),
        ("transformMapEntry", 4, Shape::Entries),
    ] {
        environment.add_macro(Macro::receiver(name, arguments, move |helper, target, arguments| {
            let range = target.take().unwrap_or_default();
            expanded(helper, shape, range, std::mem::take(arguments)).map(Some)
        }))?;
    }
    Ok(())
}

#[derive(Clone, Copy)]
enum Shape {
    All,
    Exists,
    ExistsOne,
    List,
    Map,
    Entries,
}

fn expanded(
    helper: &mut MacroExprHelper<'_>,
    shape: Shape,
    range: IdedExpr,
    arguments: Vec<IdedExpr>,
) -> Result<IdedExpr, ParseError> {
    let mut arguments = arguments.into_iter();
    let mut next = || arguments.next().unwrap_or_default();
    let (first, second, third, fourth) = (next(), next(), next(), next());
    let place = second.id;
    let (first, second) = (name(helper, &first)?, name(helper, &second)?);
    if first == second {
        return Err(helper.new_error(place, format!("duplicate variable name: {first}")));
    }
    let (when, each) = match fourth.expr {
        Expr::Unspecified => (None, third),
        _ => (Some(third), fourth),
    };
    let made = |helper: &mut MacroExprHelper<'_>| helper.next_expr(Expr::Ident(MADE.to_owned()));
    let accumulated = made(helper);
    let key = Expr::Ident(first.clone());
    let (start, condition, step) = match shape {
        Shape::All => {
            let condition = call(helper, operators::NOT_STRICTLY_FALSE, vec![accumulated]);
            let so_far = made(helper);
            (boolean(true), condition, call(helper, operators::LOGICAL_AND, vec![so_far, each]))
        }
        Shape::Exists => {
            let not = call(helper, operators::LOGICAL_NOT, vec![accumulated]);
            let condition = call(helper, operators::NOT_STRICTLY_FALSE, vec![not]);
            let so_far = made(helper);
            (boolean(false), condition, call(helper, operators::LOGICAL_OR, vec![so_far, each]))
        }
        Shape::ExistsOne => {
            let one = helper.next_expr(int(1));
            let more = call(helper, operators::ADD, vec![accumulated, one]);
            (int(0), helper.next_expr(boolean(true)), chosen(helper, Some(each), more))
        }
        Shape::List => {
            let item = helper.next_expr(Expr::List(ListExpr::new(vec![each])));
            let more = call(helper, operators::ADD, vec![accumulated, item]);
            let start = Expr::List(ListExpr::new(Vec::new()));
            (start, helper.next_expr(boolean(true)), chosen(helper, when, more))
        }
        Shape::Map => {
            let key = helper.next_expr(key);
            let more = call(helper, INSERT, vec![accumulated, key, each]);
            let start = Expr::Map(MapExpr::default());
            (start, helper.next_expr(boolean(true)), chosen(helper, when, more))
        }
        Shape::Entries => {
            let more = call(helper, MERGE, vec![accumulated, each]);
            let start = Expr::Map(MapExpr::default());
            (start, helper.next_expr(boolean(true)), chosen(helper, when, more))
        }
    };
    let accu_init = helper.next_expr(start);
    let so_far = made(helper);
    let result = if matches!(shape, Shape::ExistsOne) {
        let one = helper.next_expr(int(1));
        call(helper, operators::EQUALS, vec![so_far, one])
    } else {
        so_far
    };
    Ok(helper.next_expr(Expr::Comprehension(Box::new(ComprehensionExpr {
        iter_range: range,
        iter_var: first,
        iter_var2: Some(second),
        accu_var: MADE.to_owned(),
        accu_init,
        loop_cond: condition,
        loop_step: step,
        result,
    }))))
}

fn name(helper: &MacroExprHelper<'_>, of: &IdedExpr) -> Result<String, ParseError> {
    match &of.expr {
        Expr::Ident(name) => Ok(name.clone()),
        _ => Err(helper.new_error(of.id, "argument must be a simple name")),
    }
}

/// One step, if a condition holds; or else what there was.
fn chosen(helper: &mut MacroExprHelper<'_>, when: Option<IdedExpr>, step: IdedExpr) -> IdedExpr {
    match when {
        None => step,
        Some(when) => {
            let before = helper.next_expr(Expr::Ident(MADE.to_owned()));
            call(helper, operators::CONDITIONAL, vec![when, step, before])
        }
    }
}

fn call(helper: &mut MacroExprHelper<'_>, name: &str, args: Vec<IdedExpr>) -> IdedExpr {
    helper.next_expr(Expr::Call(CallExpr { func_name: name.to_owned(), target: None, args }))
}

fn boolean(value: bool) -> Expr {
    Expr::Literal(LiteralValue::Boolean(value.into()))
}

fn int(value: i64) -> Expr {
    Expr::Literal(LiteralValue::Int(value.into()))
}
