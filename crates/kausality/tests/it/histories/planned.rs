//! What `kausality plan` says, held against the facts, and against what an apply did.

use std::collections::{BTreeMap, BTreeSet};

use kausality_fields::{Path, typed::Type};
use serde_json::Value;

use crate::histories::{
    Case,
    facts::{Facts, Owner, Owners, changed, is_bookkeeping, value_at, written},
};

pub(crate) fn check(
    case: &Case,
    facts: &Facts,
    of: Type<'_>,
    seen: &mut BTreeMap<String, usize>,
) -> Vec<String> {
    let mut count = |what: &str| *seen.entry(what.to_owned()).or_default() += 1;
    let action = case.plan["action"].as_str().unwrap_or_default();
    if facts.forced.is_err() {
        count("refused");
        let errors = [&case.plan, &case.forced_plan].map(|plan| plan["action"] == "error");
        return if errors == [true, true] {
            Vec::new()
        } else {
            vec![format!("plan says {action}, and the API server refuses")]
        };
    }
    count(&format!("plan {action}"));
    let mut wrong = Vec::new();
    if (action == "conflict") == facts.conflicts.is_empty() {
        wrong.push(format!("plan says {action}, with conflicts {:?}", facts.conflicts));
    }
    if case.forced_plan["action"] == "conflict" {
        wrong.push("plan by force has conflicts".to_owned());
    }
    let prophecy = Prophecy::new(case, facts, of);
    for plan in [&case.plan, &case.forced_plan] {
        wrong.extend(prophecy.check(plan));
    }
    let again = changed(of, &case.after, &case.again);
    if again.is_empty() != (case.plan_after["action"] == "none") {
        wrong.push(format!("plan after the apply says {}", case.plan_after["action"]));
    }
    wrong
}

/// What has come to pass.
struct Prophecy<'a> {
    facts: &'a Facts,
    after: &'a Value,
    /// Fields whose value changed.
    changed: BTreeSet<Path>,
    /// Fields whose owners changed, with those before and after.
    moved: BTreeMap<Path, [BTreeSet<Owner>; 2]>,
    owners: [Owners; 2],
    /// All paths by how they are shown.
    paths: BTreeMap<String, Path>,
}

impl<'a> Prophecy<'a> {
    fn new(case: &'a Case, facts: &'a Facts, of: Type<'_>) -> Self {
        let owners = [Owners::of(&facts.live), Owners::of(&case.after)];
        let declared = of.field_set(&case.history.manifest).unwrap();
        let fields = [&facts.live, &case.after].map(|object| of.field_set(object).unwrap());
        let all = owners.iter().fold(declared, |all, owners| all.union(&owners.all()));
        let all = fields.iter().fold(all, |all, fields| all.union(fields));
        let mut moved = BTreeMap::new();
        for path in all.iter().filter(|path| !is_bookkeeping(path)) {
            let pair = [owners[0].of_field(&path), owners[1].of_field(&path)];
            if pair[0] != pair[1] {
                moved.insert(path, pair);
            }
        }
        let changed = changed(of, &facts.live, &case.after);
        let paths = all.iter().chain(changed.iter().cloned());
        Self {
            paths: paths.map(|path| (path.to_string(), path)).collect(),
            changed,
            after: &case.after,
            facts,
            moved,
            owners,
        }
    }

    fn check(&self, plan: &Value) -> Vec<String> {
        let mut wrong = Vec::new();
        let mut foretold = BTreeSet::new();
        let mut conflicts: BTreeMap<String, usize> = BTreeMap::new();
        for field in plan["fields"].as_array().unwrap() {
            let text = field["path"].as_str().unwrap();
            if field["change"] == "reorder" {
                continue;
            }
            let Some(path) = self.paths.get(text) else {
                wrong.push(format!("plan: there is no {text}"));
                continue;
            };
            let with = field["conflictWith"].as_array().unwrap();
            if !with.is_empty() {
                conflicts.insert(written(path), with.len());
            }
            foretold.insert(path.clone());
            if let Err(why) = self.field(path, field) {
                wrong.push(format!("plan: {text} ({}): {why}", field["change"]));
            }
        }
        // By force, there are the same conflicts, overcome.
        if conflicts != self.facts.conflicts {
            wrong.push(format!("plan has conflicts {conflicts:?}, the server {:?}", self.facts.conflicts));
        }
        // That something absent becomes null, and nobody owns it, is nothing to tell.
        let is_null = |path: &Path| value_at(self.after, path).is_some_and(Value::is_null);
        for path in self.changed.iter().filter(|path| !foretold.contains(*path) && !is_null(path)) {
            wrong.push(format!("plan misses that {path} changes"));
        }
        // The owners of an object with parts are told with its parts.
        let told = |path: &Path| foretold.iter().any(|told| told.steps().starts_with(path.steps()));
        for path in self.moved.keys().filter(|path| !told(path)) {
            wrong.push(format!("plan misses that {path} has other owners: {:?}", self.moved[path]));
        }
        wrong
    }

    fn field(&self, path: &Path, field: &Value) -> Result<(), String> {
        let must = |is: bool, why: &str| if is { Ok(()) } else { Err(why.to_owned()) };
        let change = field["change"].as_str().unwrap();
        let [before, after] = [&self.facts.live, self.after].map(|object| value_at(object, path));
        let is = |foretold: Option<&Value>, value: Option<&Value>| {
            let empty = |value: &Value| matches!(value.to_string().as_str(), "{}" | "[]");
            foretold == value
                || foretold.is_some_and(empty)
                    && value.is_some_and(|value| value.is_object() || value.is_array())
        };
        let is_open = field["knownAfterApply"] == true;
        let contested = !field["conflictWith"].as_array().unwrap().is_empty();
        match change {
            "owners" => must(!self.changed.contains(path), "its value changed")?,
            _ => {
                must(self.changed.contains(path) || contested, "its value did not change")?;
                must(
                    is(field.get("before"), before) || field.get("before").is_none(),
                    "it was another value",
                )?;
                must(is_open || is(field.get("after"), after), &format!("it is {after:?}"))?;
            }
        }
        for (key, owners) in [("ownersBefore", &self.owners[0]), ("ownersAfter", &self.owners[1])] {
            let told: BTreeSet<Owner> = field[key].as_array().unwrap().iter().map(owner).collect();
            let real = owners.of_field(path);
            must(told == real, &format!("{key} {told:?}, and are {real:?}"))?;
        }
        Ok(())
    }
}

fn owner(owner: &Value) -> Owner {
    let text = |key: &str| owner[key].as_str().unwrap_or_default().to_owned();
    (text("manager"), text("operation"), text("subresource"))
}
