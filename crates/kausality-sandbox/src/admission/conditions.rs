//! `matchConditions` of webhooks.

use std::cell::OnceCell;

use kausality_cel::{Environment, Expression, Facts, Object};
use serde_json::{Value, json};

use super::review::Attributes;
use crate::kinds::Definition;
use crate::status::Cause;
use crate::validate::names;

/// The most conditions that a webhook may have.
const MAX: usize = 64;

/// The conditions of a webhook.
#[derive(Debug)]
pub(crate) struct Conditions(Vec<Condition>);

#[derive(Debug)]
struct Condition {
    source: String,
    /// What is stored can be read, unless it was stored by another program.
    compiled: Result<Expression, String>,
}

impl Conditions {
    pub(super) fn of(conditions: &Value) -> Self {
        let all = conditions.as_array().map(Vec::as_slice).unwrap_or_default();
        let condition = |condition: &Value| {
            let source = condition["expression"].as_str().unwrap_or_default();
            Condition { source: source.to_owned(), compiled: compiled(source) }
        };
        Self(all.iter().map(condition).collect())
    }

    /// Whether all hold. One that does not is enough, even if it cannot be told of others.
    ///
    /// # Errors
    /// If it cannot be told.
    pub(super) fn hold(&self, review: &Review<'_>) -> Result<bool, String> {
        let mut errors = Vec::new();
        for Condition { source, compiled } in &self.0 {
            let held = match compiled {
                Ok(expression) => expression.holds(review).map_err(|failure| failure.to_string()),
                Err(error) => Err(error.clone()),
            };
            match held {
                Ok(true) => {}
                Ok(false) => return Ok(false),
                Err(error) => errors.push(format!("expression '{source}' resulted in error: {error}")),
            }
        }
        match errors.as_slice() {
            [] => Ok(true),
            [one] => Err(one.clone()),
            several => Err(format!("[{}]", several.join(", "))),
        }
    }
}

/// An expression, or what an API server would say is wrong with it.
fn compiled(source: &str) -> Result<Expression, String> {
    Expression::compile(source, Environment::conditions())
        .map_err(|fault| format!("compilation failed: ERROR: <input>:{fault}"))
}

/// What conditions are about: the review that the webhook would get, made when it is first asked about.
pub(super) struct Review<'a> {
    attributes: &'a Attributes<'a>,
    definition: &'a Definition,
    object: Option<&'a Value>,
    old: Option<&'a Value>,
    known: [OnceCell<Object>; 3],
}

impl<'a> Review<'a> {
    pub(super) fn new(
        attributes: &'a Attributes<'a>,
        definition: &'a Definition,
        object: Option<&'a Value>,
        old: Option<&'a Value>,
    ) -> Self {
        Self { attributes, definition, object, old, known: Default::default() }
    }

    fn converted(&self, object: Option<&Value>) -> Object {
        match object {
            None => Object::null(),
            Some(object) => match self.attributes.converted(self.definition, object) {
                Some(converted) => Object::of(&converted),
                None => Object::of(object),
            },
        }
    }
}

impl Facts for Review<'_> {
    fn get(&self, name: &str) -> &Object {
        let [object, old, request] = &self.known;
        match name {
            "object" => object.get_or_init(|| self.converted(self.object)),
            "oldObject" => old.get_or_init(|| self.converted(self.old)),
            _ => request.get_or_init(|| Object::of(&self.attributes.facts(self.definition))),
        }
    }
}

/// What is wrong with the conditions of a webhook.
pub(crate) fn faults(conditions: &Value, at: &str) -> Vec<Cause> {
    let conditions = conditions.as_array().map(Vec::as_slice).unwrap_or_default();
    let mut causes = Vec::new();
    if conditions.len() > MAX {
        causes.push(Cause::too_many(at, conditions.len(), MAX));
    }
    let mut known: Vec<&str> = Vec::new();
    for (nth, condition) in conditions.iter().enumerate() {
        let text = |key: &str| condition[key].as_str().unwrap_or_default();
        let (name, source) = (text("name"), text("expression").trim());
        if source.is_empty() {
            causes.push(Cause::required(format!("{at}[{nth}].expression"), ""));
        } else if let Err(error) = compiled(source) {
            causes.push(Cause::invalid(format!("{at}[{nth}].expression"), &json!(source), &error));
        }
        if name.is_empty() {
            causes.push(Cause::required(format!("{at}[{nth}].name"), ""));
            continue;
        }
        if !names::is_qualified(name) {
            causes.push(Cause::invalid(format!("{at}[{nth}].name"), &json!(name), names::QUALIFIED));
        }
        if known.contains(&name) {
            causes.push(Cause::duplicate(format!("{at}[{nth}].name"), &json!(name)));
        }
        known.push(name);
    }
    causes
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;

    #[test]
    fn what_cannot_be_a_condition_is_refused() {
        let check = |conditions: Value, expected: &[&str]| {
            let causes = faults(&conditions, "webhooks[0].matchConditions");
            let fields: Vec<_> = causes.iter().map(|it| it.field.as_str()).collect();
            assert_eq!(fields, expected, "{causes:?}");
        };
        check(json!([{"name": "a", "expression": "request.operation == 'CREATE'"}]), &[]);
        check(json!([{"name": "a", "expression": "1 +"}]), &["webhooks[0].matchConditions[0].expression"]);
        check(json!([{"name": "a", "expression": ""}]), &["webhooks[0].matchConditions[0].expression"]);
        check(json!([{"expression": "true"}]), &["webhooks[0].matchConditions[0].name"]);
        check(json!([{"name": "a b", "expression": "true"}]), &["webhooks[0].matchConditions[0].name"]);
        check(json!([{"name": "a.b/c_d", "expression": "true"}]), &[]);
        let twice = json!({"name": "a", "expression": "true"});
        check(json!([twice, twice]), &["webhooks[0].matchConditions[1].name"]);
        check(json!([{"name": "a", "expression": "1"}]), &["webhooks[0].matchConditions[0].expression"]);
        let many = |count: usize| -> Value {
            (0..count).map(|nth| json!({"name": format!("c{nth}"), "expression": "true"})).collect()
        };
        check(many(64), &[]);
        check(many(65), &["webhooks[0].matchConditions"]);
    }

    struct Known([(&'static str, Object); 3]);

    impl Facts for Known {
        fn get(&self, name: &str) -> &Object {
            &self.0.iter().find(|(known, _)| *known == name).unwrap().1
        }
    }

    /// What Kausality registers asks about changes of the spec and of its own annotations.
    #[test]
    fn the_expression_that_kausality_registers_is_understood() {
        let expression = compiled(&kausality_cluster::registration::matters()).unwrap();
        let check = |operation: &str, group: &str, new: Value, old: Value, expected: bool| {
            let object = |annotations: &Value| json!({"metadata": {"annotations": annotations}, "spec": {}});
            let request = json!({"operation": operation, "resource": {"group": group}});
            let facts = [("object", object(&new)), ("oldObject", object(&old)), ("request", request)];
            let known = Known(facts.map(|(name, value)| (name, Object::of(&value))));
            assert_eq!(expression.holds(&known), Ok(expected), "{operation} {group} {new} {old}");
        };
        check("UPDATE", "apps", json!({"a": "1"}), json!({}), false);
        check("UPDATE", "garden.io", json!({"a": "1"}), json!({}), true);
        check("CREATE", "apps", json!({"a": "1"}), json!({}), true);
        check("UPDATE", "apps", json!({"kausality.io/x": "1"}), json!({"kausality.io/x": "1"}), false);
        check("UPDATE", "apps", json!({"kausality.io/x": "1"}), json!({}), true);
        check("UPDATE", "apps", json!({}), json!({"kausality.io/x": "1"}), true);
        let approvals = json!({"kausality.io/approvals": "1"});
        check("UPDATE", "apps", json!({"kausality.io/approvals": "1", "a": "2"}), approvals, true);
        let owned = |uids: &[&str]| {
            let owners: Vec<Value> = uids.iter().map(|uid| json!({"uid": uid, "controller": true})).collect();
            json!({"metadata": {"ownerReferences": owners}, "spec": {}})
        };
        let free = || json!({"metadata": {}, "spec": {}});
        for (new, old, expected) in [
            (free(), owned(&["a"]), true),
            (owned(&["b"]), owned(&["a"]), true),
            (owned(&["a"]), owned(&["a"]), false),
            (owned(&["a"]), free(), true),
            (free(), free(), false),
        ] {
            let request = json!({"operation": "UPDATE", "resource": {"group": "apps"}});
            let facts = [("object", new), ("oldObject", old), ("request", request)];
            let known = Known(facts.map(|(name, value)| (name, Object::of(&value))));
            assert_eq!(expression.holds(&known), Ok(expected));
        }
        // Nor does it ask about what nodes need. Not every user has groups.
        let expression = compiled(kausality_cluster::registration::excluded::NOT_OF_NODES).unwrap();
        for (user, expected) in [
            (json!({"username": "system:node:n1", "groups": ["system:nodes"]}), false),
            (json!({"username": "system:apiserver", "groups": ["system:masters"]}), false),
            (json!({"username": "alice", "groups": ["people"]}), true),
            (json!({"username": "alice"}), true),
        ] {
            let facts =
                [("object", Value::Null), ("oldObject", Value::Null), ("request", json!({"userInfo": user}))];
            let known = Known(facts.map(|(name, value)| (name, Object::of(&value))));
            assert_eq!(expression.holds(&known), Ok(expected), "{user}");
        }
    }
}
