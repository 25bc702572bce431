//! A plan as one JSON document.

use serde_json::{Map, Value, json};

use super::{
    owner::Owner,
    planned::{Action, Change, Field, Future, Planned, Problem},
    summary::Summary,
};

/// All of a plan.
pub(super) fn document(manager: &str, planned: &[Planned]) -> Value {
    let summary = Summary::of(planned);
    let count = |action| summary.count(action);
    json!({
        "manager": manager,
        "summary": {"create": count(Action::Create), "change": count(Action::Change),
            "conflict": count(Action::Conflict), "none": count(Action::Nothing), "error": count(Action::Error)},
        "objects": planned.iter().map(object).collect::<Vec<Value>>(),
    })
}

fn object(planned: &Planned) -> Value {
    let name = &planned.object;
    json!({
        "apiVersion": name.api_version, "kind": name.kind, "name": name.name, "file": name.file,
        "namespace": if name.namespace.is_empty() { Value::Null } else { name.namespace.as_str().into() },
        "action": planned.action.as_str(),
        "fields": planned.fields.iter().map(field).collect::<Vec<Value>>(),
        "notes": planned.notes,
        "errors": planned.problems.iter().map(problem).collect::<Vec<Value>>(),
    })
}

/// A value that is absent has no key: `null` is a value.
fn field(field: &Field) -> Value {
    let mut line = Map::new();
    let mut put = |key: &str, value: Value| line.insert(key.to_owned(), value);
    put("path", json!(field.path));
    put("change", kind(&field.change).into());
    let future = match &field.change {
        Change::Added(future) => Some(future),
        Change::Changed(before, future) => {
            put("before", before.clone());
            Some(future)
        }
        Change::Removed(before) => {
            put("before", before.clone());
            None
        }
        Change::Reordered(before, after) => {
            let items = |steps: &[kausality_fields::Step]| {
                let item = |step: &kausality_fields::Step| {
                    std::iter::once(step.clone()).collect::<kausality_fields::Path>().to_string()
                };
                steps.iter().map(item).collect::<Vec<String>>()
            };
            put("before", json!(items(before)));
            put("after", json!(items(after)));
            None
        }
        Change::Kept(Some(value)) => {
            put("before", value.clone());
            put("after", value.clone());
            None
        }
        Change::Kept(None) => None,
    };
    if let Some(Future::Known(value)) = future {
        put("after", value.clone());
    }
    put("knownAfterApply", (future == Some(&Future::KnownAfterApply)).into());
    put("ownersBefore", owners(&field.owners.before));
    put("ownersAfter", owners(&field.owners.after));
    let with = field.conflict.as_ref().map(|conflict| owners(&conflict.with));
    put("conflictWith", with.unwrap_or_else(|| json!([])));
    put("forced", field.conflict.as_ref().is_some_and(|conflict| conflict.forced).into());
    Value::Object(line)
}

fn kind(change: &Change) -> &'static str {
    match change {
        Change::Added(_) => "add",
        Change::Changed(..) => "change",
        Change::Removed(_) => "remove",
        Change::Reordered(..) => "reorder",
        Change::Kept(_) => "owners",
    }
}

fn owners(owners: &[Owner]) -> Value {
    let owner = |owner: &Owner| json!({"manager": owner.manager, "operation": owner.operation.as_str(), "subresource": owner.subresource});
    owners.iter().map(owner).collect()
}

fn problem(problem: &Problem) -> Value {
    let wanted = problem.wanted.iter().map(|(path, before, after)| {
        let mut line = Map::new();
        line.insert("path".to_owned(), json!(path));
        line.extend(before.clone().map(|value| ("before".to_owned(), value)));
        line.extend(after.clone().map(|value| ("after".to_owned(), value)));
        Value::Object(line)
    });
    json!({"reason": problem.why.as_str(), "field": problem.field, "message": problem.message,
        "wanted": wanted.collect::<Vec<Value>>()})
}
