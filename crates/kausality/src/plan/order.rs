//! Lists whose items come in another order.
//!
//! Items that are known by a key are the same in any place, but the order may have an effect: containers in another
//! order are another template, which is rolled out.

use kausality_fields::{
    Path, Step,
    schema::{ResolvedList, TypeRef},
    typed::Type,
};
use serde_json::Value;

/// The lists in which the items that both values have come in another order, with these items before and after.
pub(super) fn changed(of: Type<'_>, old: &Value, new: &Value) -> Vec<(Path, Vec<Step>, Vec<Step>)> {
    let mut found = Vec::new();
    walk(of, old, new, &mut Vec::new(), &mut found);
    found
}

/// The step to an item; `None` if the list is owned as a whole.
pub(super) fn step(of: Type<'_>, item: &Value) -> Option<Step> {
    // What else is in the item may not be valid.
    let item = match (item, list(of)?.keys) {
        (Value::Object(fields), keys) if !keys.is_empty() => {
            keys.iter().filter_map(|key| Some((key.clone(), fields.get(key)?.clone()))).collect()
        }
        _ => item.clone(),
    };
    let fields = of.field_set(&Value::Array(vec![item])).ok()?;
    let path = fields.iter().next()?;
    path.steps().first().cloned()
}

/// The list that a type allows.
pub(super) fn list<'s>(of: Type<'s>) -> Option<ResolvedList<'s>> {
    of.schema().resolve(of.reference())?.list
}

/// The type of a field.
pub(super) fn field<'s>(of: Type<'s>, name: &str) -> Option<&'s TypeRef> {
    of.schema().resolve(of.reference())?.map?.field(name)
}

fn walk(
    of: Type<'_>,
    old: &Value,
    new: &Value,
    way: &mut Vec<Step>,
    found: &mut Vec<(Path, Vec<Step>, Vec<Step>)>,
) {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            for (name, old) in old {
                if let (Some(new), Some(inner)) = (new.get(name), field(of, name)) {
                    way.push(Step::Field(name.clone()));
                    walk(Type::new(of.schema(), inner), old, new, way, found);
                    way.pop();
                }
            }
        }
        (Value::Array(old), Value::Array(new)) => {
            let steps = |items: &[Value]| items.iter().map(|item| step(of, item)).collect::<Option<Vec<_>>>();
            let (Some(list), Some(before), Some(after)) = (list(of), steps(old), steps(new)) else { return };
            let both = |steps: &[Step], others: &[Step]| -> Vec<Step> {
                steps.iter().filter(|step| others.contains(step)).cloned().collect()
            };
            let (common_before, common_after) = (both(&before, &after), both(&after, &before));
            if common_before != common_after {
                found.push((way.iter().cloned().collect(), common_before, common_after));
            }
            for (step, old) in before.iter().zip(old) {
                if let Some(new) = after.iter().position(|other| other == step).and_then(|at| new.get(at)) {
                    way.push(step.clone());
                    walk(Type::new(of.schema(), list.element), old, new, way, found);
                    way.pop();
                }
            }
        }
        _ => {}
    }
}
