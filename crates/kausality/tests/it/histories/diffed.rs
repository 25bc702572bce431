//! What `kausality diff` says, held against the facts.

use std::collections::{BTreeMap, BTreeSet};

use kausality_fields::{FieldSet, Path, typed::Type};
use serde_json::Value;

use crate::histories::{
    Case,
    facts::{Facts, Owners, changed, is_bookkeeping, value_at, written},
};

pub(crate) fn check(
    case: &Case,
    facts: &Facts,
    of: Type<'_>,
    seen: &mut BTreeMap<String, usize>,
) -> Vec<String> {
    let manager = case.history.manager.as_str();
    let Ok(forced) = &facts.forced else {
        return Vec::new();
    };
    if case.diff["state"] == "error" {
        return vec![format!("diff: {}", case.diff["error"])];
    }
    let mut wrong = Vec::new();
    let before = Owners::of(&facts.live);
    let declared = of.field_set(&case.history.manifest).unwrap();
    let judge = Judge {
        manager,
        own: before.by(manager),
        others: before.by_others(manager),
        changed: changed_in_value(of, &facts.live, forced),
        after: Owners::of(forced),
        facts,
        forced,
        before,
    };
    let business: FieldSet = declared.union(&judge.own).iter().filter(|path| !is_bookkeeping(path)).collect();
    let by_text: BTreeMap<String, Path> = business.iter().map(|path| (path.to_string(), path)).collect();
    let mut drift = BTreeSet::new();
    for finding in case.diff["fields"].as_array().unwrap() {
        let text = finding["path"].as_str().unwrap();
        let class = if finding["drift"] == true { "drift" } else { "clean" };
        let verdict = finding["verdict"].as_str().unwrap();
        *seen.entry(format!("{class} {verdict}")).or_default() += 1;
        let Some(path) = by_text.get(text) else {
            wrong.push(format!("diff reports {text}, which {manager} neither declares nor owns"));
            continue;
        };
        if finding["drift"] == true {
            drift.insert(path.clone());
        }
        if let Err(why) = judge.finding(path, verdict, finding) {
            wrong.push(format!("diff: {text} is no {verdict}: {why}"));
        }
    }
    // A field that is to be of another shape is told by its parts, or its parts by the field.
    let told = |path: &Path| {
        let (path, within) = (path.steps(), |told: &Path, path: &[_]| path.starts_with(told.steps()));
        drift.iter().any(|told| told.steps().starts_with(path) || within(told, path))
    };
    for path in judge.changed.iter().filter(|path| business.has(path) && !told(path)) {
        wrong.push(format!("diff misses {path}, which an apply changes"));
    }
    let known: BTreeMap<String, Path> = business.iter().map(|path| (written(&path), path)).collect();
    for conflict in facts.conflicts.keys() {
        match known.get(conflict) {
            // Others own an object that is not there, and its parts have the verdicts.
            None if drift.iter().any(|path| written(path).starts_with(conflict)) => {}
            None => wrong.push(format!("{conflict} is in conflict, and nothing below it has drifted")),
            Some(path) if told(path) => {}
            // The API server compares what is applied as it is written: an amount that the manager owns, written in
            // another way, is in conflict with other owners (its own updates among them), but it does not differ.
            Some(path)
                if (judge.own.has(path) || judge.before.is_empty()) && !judge.changed.contains(path) =>
            {
                *seen.entry("spelling".to_owned()).or_default() += 1;
            }
            Some(path) => wrong.push(format!("diff misses {path}, which is in conflict")),
        }
    }
    // Not every apply leaves nothing for the next: the API server forgets an empty list that took items away.
    if !case.after.is_null() && changed_in_value(of, &case.after, &case.again).is_empty() {
        for finding in case.diff_after["fields"].as_array().into_iter().flatten() {
            if finding["drift"] == true {
                wrong.push(format!(
                    "diff reports {} ({}) after the apply",
                    finding["path"], finding["verdict"]
                ));
            }
        }
        if case.diff_after["state"] != "clean" {
            wrong.push(format!("diff is {} after the apply", case.diff_after["state"]));
        }
    }
    wrong
}

/// The fields that differ. Null is as good as absent.
fn changed_in_value(of: Type<'_>, old: &Value, new: &Value) -> BTreeSet<Path> {
    let is = |object, path: &Path| value_at(object, path).is_some_and(|value| !value.is_null());
    changed(of, old, new).into_iter().filter(|path| is(old, path) || is(new, path)).collect()
}

struct Judge<'a> {
    manager: &'a str,
    own: FieldSet,
    others: FieldSet,
    before: Owners,
    changed: BTreeSet<Path>,
    after: Owners,
    facts: &'a Facts,
    forced: &'a Value,
}

impl Judge<'_> {
    /// Whether a verdict is what it is defined to be.
    fn finding(&self, path: &Path, verdict: &str, finding: &Value) -> Result<(), String> {
        let must = |is: bool, why: &str| if is { Ok(()) } else { Err(why.to_owned()) };
        let (own, others) = (self.own.has(path), self.others.has(path));
        let [live, then] = [&self.facts.live, self.forced].map(|object| value_at(object, path));
        let differs = self.changed.contains(path)
            || self.facts.conflicts.contains_key(&written(path))
            // It comes into being with parts that nobody declared.
            || live.is_none() && then.is_some_and(|then| !then.is_null());
        let applied_after = self.after.applied_by(self.manager).has(path);
        match verdict {
            "own-drift" => must(differs, "an apply does not change it"),
            "takeover" => {
                must(!own && others, "it is not others' alone")?;
                must(differs || finding["equal"] == true, "it does not differ")?;
                must(applied_after, "an apply does not win it back")
            }
            "release" => {
                must(own, "it was not owned")?;
                must(!applied_after, "it is still owned after an apply")?;
                let stays = !self.after.of_field(path).is_empty();
                if finding["removed"] == true {
                    must(!stays, "others still own it after an apply")
                } else {
                    must(!self.changed.contains(path), "an apply changes it")
                }
            }
            "co-owned" => {
                must(own && others, "it is not owned by both")?;
                must(!self.changed.contains(path), "an apply changes it")
            }
            "unowned" => {
                must(self.before.of_field(path).is_empty(), "it has an owner")?;
                must(!differs && applied_after, "an apply does not just come to own it")
            }
            "unknown" => {
                must(self.before.is_empty(), "it can be told")?;
                // Nor is another spelling of the same value drift, which is in conflict with all that was there.
                let is_spelling = finding["equal"] == true && !self.changed.contains(path);
                must(
                    is_spelling || differs == (finding["drift"] == true),
                    "drift is not where the value differs",
                )
            }
            other => Err(format!("nobody asked for {other}")),
        }
        .map_err(|why| format!("{why} ({live:?} -> {then:?})"))
    }
}
