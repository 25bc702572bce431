//! `kausality diff` and `kausality plan` against the API server itself, over random histories of objects that several
//! managers write to: what is said of a manifest must be what its apply does.
//!
//! `KAUSALITY_HISTORIES` says how many histories there are, `KAUSALITY_SEED` plays that one alone and tells of it.

#![allow(clippy::print_stderr, reason = "a history that fails is told to a person")]

mod api;
mod command;
mod diffed;
mod facts;
mod history;
mod planned;
mod types;

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use api::{Api, Force, Run};
use facts::Facts;
use futures::{StreamExt, stream};
use history::History;
use kausality_testbed::{Component, ControlPlane, MASTERS, eventually, start_or_skip};
use serde_json::{Value, json};
use types::Types;

use crate::ownership::kinds;

/// So many come to everything that is asserted below; `make soak` plays more.
const HISTORIES: u64 = 250;

/// Histories that are under way at once.
const AT_ONCE: usize = 16;

/// Failures that are told in full.
const TOLD: usize = 2;

#[tokio::test(flavor = "multi_thread")]
async fn diff_and_plan_say_what_an_apply_does() {
    let Some(plane) = start_or_skip().await.unwrap() else { return };
    // No controller may write to what histories are about.
    plane.pause(Component::ControllerManager).unwrap();
    let api = Api::new(plane.client("alice", &[MASTERS]).unwrap());
    let types = prepare(&plane, &api).await;
    let seeds: Vec<u64> = match number("KAUSALITY_SEED") {
        Some(seed) => vec![seed],
        None => (0..number("KAUSALITY_HISTORIES").unwrap_or(HISTORIES)).collect(),
    };
    let (begun, count) = (Instant::now(), seeds.len());

    let cases = stream::iter(seeds).map(|seed| Case::play(seed, &api)).buffered(AT_ONCE);
    let mut cases: Vec<Case> = cases.collect().await;
    let played = begun.elapsed();
    command::on_all(&plane, &mut cases, "diff", &["--all"], |case, said| case.diff = said);
    command::on_all(&plane, &mut cases, "plan", &[], |case, said| case.plan = said);
    command::on_all(&plane, &mut cases, "plan", &["--force-conflicts"], |case, said| case.forced_plan = said);
    let applied = stream::iter(cases).map(|case| case.apply(&api)).buffered(AT_ONCE);
    let mut cases: Vec<Case> = applied.collect().await;
    command::on_all(&plane, &mut cases, "diff", &["--all"], |case, said| case.diff_after = said);
    command::on_all(&plane, &mut cases, "plan", &[], |case, said| case.plan_after = said);

    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut failures = Vec::new();
    for case in &cases {
        let wrong = case.check(&types, &mut seen);
        if !wrong.is_empty() {
            failures.push((case, wrong));
        }
    }
    eprintln!("{count} histories in {:.1?} ({played:.1?} to play them): {seen:#?}", begun.elapsed());
    for (nth, (case, wrong)) in failures.iter().enumerate() {
        eprintln!("KAUSALITY_SEED={} ({:?}): {}", case.history.seed, case.history.kind, wrong.join("; "));
        if nth < TOLD {
            eprintln!("{}", case.story());
        }
    }
    assert!(failures.is_empty(), "{} of {count} histories", failures.len());
    if count as u64 >= HISTORIES {
        for wanted in [
            "drift own-drift",
            "drift takeover",
            "drift release",
            "drift unknown",
            "clean co-owned",
            "clean unowned",
            "clean release",
            "plan conflict",
            "plan change",
            "plan none",
        ] {
            assert!(seen.contains_key(wanted), "no history came to this: {wanted}");
        }
        let refused = seen.get("refused").copied().unwrap_or_default();
        assert!(refused * 4 < count, "the API server refused {refused} manifests, which shows little");
    }
}

/// A history, and what is said and done at its end.
pub(crate) struct Case {
    pub(crate) history: History,
    /// None if the API server did not answer as it should, which is told in the history.
    pub(crate) facts: Option<Facts>,
    pub(crate) diff: Value,
    pub(crate) plan: Value,
    pub(crate) forced_plan: Value,
    /// The object after the apply; null if it was refused.
    pub(crate) after: Value,
    /// The object after the same apply once more.
    pub(crate) again: Value,
    pub(crate) diff_after: Value,
    pub(crate) plan_after: Value,
}

impl Case {
    async fn play(seed: u64, api: &Api) -> Self {
        let history = History::play(seed, api).await;
        let facts = Facts::find(&history, api).await;
        let [diff, plan, forced_plan, after, again, diff_after, plan_after] = [const { Value::Null }; 7];
        Self { history, facts, diff, plan, forced_plan, after, again, diff_after, plan_after }
    }

    /// Applies the manifest: if others hold fields, by force.
    async fn apply(mut self, api: &Api) -> Self {
        let History { kind, name, manager, manifest, log, .. } = &mut self.history;
        for force in [Force::No, Force::Yes] {
            let answer = api.apply(*kind, name, manager, manifest, force, Run::Real).await;
            log.push(format!("the apply: {force:?} -> {}", answer.0));
            if answer.0 != 409 {
                break;
            }
        }
        let accepted = self.facts.as_ref().is_some_and(|facts| facts.forced.is_ok());
        if accepted {
            self.after = api.get(*kind, name).await.unwrap_or_default();
            self.again = api.apply(*kind, name, manager, manifest, Force::Yes, Run::Dry).await.1;
        }
        self
    }

    /// All that is wrong with what was said.
    fn check(&self, types: &Types, seen: &mut BTreeMap<String, usize>) -> Vec<String> {
        let Some(facts) = &self.facts else { return vec!["the history came to nothing".to_owned()] };
        let of = types.of(self.history.kind);
        let mut wrong = diffed::check(self, facts, of, seen);
        wrong.extend(planned::check(self, facts, of, seen));
        wrong
    }

    fn story(&self) -> String {
        let live = self.facts.as_ref().map_or(&Value::Null, |facts| &facts.live);
        let refusal = self.facts.as_ref().and_then(|facts| facts.forced.as_ref().err());
        format!(
            "{}\n   live: {live}\n   {} applies: {}\n   refusal: {refusal:?}\n   conflicts: {:?}\n   diff: {}\n   \
             plan: {}\n   after: {}\n   diff after: {}\n   plan after: {}\n",
            self.history.log.join("\n"),
            self.history.manager,
            self.history.manifest,
            self.facts.as_ref().map(|facts| &facts.conflicts),
            self.diff,
            self.forced_plan,
            self.after,
            self.diff_after,
            self.plan_after
        )
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name)
        .ok()
        .map(|text| text.parse().unwrap_or_else(|_| panic!("{name} must be a number: {text}")))
}

/// Defines our kinds, and learns the types of all.
async fn prepare(plane: &ControlPlane, api: &Api) -> Types {
    let file = plane.folder().join("kinds.json");
    let list = json!({"apiVersion": "v1", "kind": "List", "items": kinds::definitions()});
    std::fs::write(&file, list.to_string()).unwrap();
    let output = plane.kubectl("alice", &[MASTERS]).arg("apply").arg("-f").arg(&file).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let learn = async || Types::learn(&api.client).await;
    let types = eventually(Duration::from_secs(60), "the types of our kinds", learn).await.unwrap();
    let served = async || api.serves(&kinds::KINDS).await;
    eventually(Duration::from_secs(60), "our kinds", served).await.unwrap();
    types
}
