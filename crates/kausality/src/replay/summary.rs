//! What a replay came to.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    io::{self, Write},
};

use comfy_table::{CellAlignment, Table, presets};
use kausality_api::{exception::Action, text::plain};
use kausality_core::{
    Decision,
    cause::Cause,
    exceptions::{Exceptions, Ruled},
};
use serde::{Serialize, Serializer};

use super::engine::Judged;

/// How many actors are listed.
const TOP_ACTORS: usize = 5;

/// Counts of a replay.
#[derive(Debug, Default, Serialize)]
pub struct Summary {
    /// All requests that were read.
    pub requests: u64,
    /// Changes of intent among them.
    pub changes: u64,
    /// Drifts among the changes.
    pub drifts: u64,
    /// Changes that would be denied.
    pub denied: u64,
    /// Requests that the recording does not suffice to judge.
    pub unjudged: u64,
    /// Audit events that tell nothing: reads, early stages, requests that failed.
    pub skipped: u64,
    /// Lines that could not be read.
    pub bad: u64,
    /// Changes by kind, cause and verdict.
    pub by_kind: BTreeMap<String, BTreeMap<&'static str, u64>>,
    /// Changes by verdict.
    pub by_verdict: BTreeMap<&'static str, u64>,
    /// Changes that rules of approval policies matched, by rule.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub by_rule: BTreeMap<RuleName, u64>,
    /// Changes and drifts by user.
    pub by_user: BTreeMap<String, (u64, u64)>,
    /// Kinds of parents whose children were changed although nothing tells whether that is drift.
    #[serde(skip)]
    silent: BTreeSet<String>,
    /// Kinds of parents of which some status tells how far their controller has got.
    #[serde(skip)]
    telling: BTreeSet<String>,
}

/// Names a rule by what it is and does. The tenth of a policy comes after the ninth.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RuleName {
    policy: String,
    rule: usize,
    does: &'static str,
}

impl From<&Ruled> for RuleName {
    fn from(ruled: &Ruled) -> Self {
        let does = match (ruled.action, ruled.dry_run) {
            (Action::Allow, false) => "",
            (Action::Allow, true) => " (dryRun)",
            (Action::Deny, false) => " (deny)",
            (Action::Deny, true) => " (deny, dryRun)",
        };
        Self { policy: plain(&ruled.policy).into_owned(), rule: ruled.rule, does }
    }
}

impl fmt::Display for RuleName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { policy, rule, does } = self;
        write!(f, "{policy} rules[{rule}]{does}")
    }
}

impl Serialize for RuleName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

const CAUSES: [Cause; 5] =
    [Cause::Origin, Cause::Initialization, Cause::Expected, Cause::Drift, Cause::Cleanup];

impl Summary {
    /// Counts of a replay with these rules.
    #[must_use]
    pub fn of(exceptions: &Exceptions) -> Self {
        let by_rule = exceptions.rules().map(|ruled| (RuleName::from(&ruled), 0)).collect();
        Self { by_rule, ..Self::default() }
    }

    /// Counts a request.
    pub fn count(&mut self, judged: &Judged) {
        self.requests += 1;
        if !judged.is_change() {
            return;
        }
        self.changes += 1;
        let drift = judged.cause() == Some(Cause::Drift);
        self.drifts += u64::from(drift);
        self.denied += u64::from(judged.verdict() == "deny");
        self.unjudged += u64::from(judged.decision().is_none());
        for ruled in judged.decision().into_iter().flat_map(Decision::matched) {
            *self.by_rule.entry(ruled.into()).or_default() += 1;
        }
        *self.by_verdict.entry(judged.verdict()).or_default() += 1;
        let kind = entry(&mut self.by_kind, &plain(&judged.kind));
        *kind.entry(judged.cause().map_or("-", Cause::as_str)).or_default() += 1;
        *kind.entry(judged.verdict()).or_default() += 1;
        if let Some((parent, has_evidence)) = &judged.parent {
            let kind = plain(&parent.to_string()).into_owned();
            if *has_evidence {
                self.telling.insert(kind);
            } else if judged.decision().is_some_and(|decision| decision.unjudged) {
                self.silent.insert(kind);
            }
        }
        let (changes, drifts) = entry(&mut self.by_user, &plain(&judged.user));
        *changes += 1;
        *drifts += u64::from(drift);
    }

    /// Kinds of parents that cannot be judged: no status of any of them shows when its controller is done.
    #[must_use]
    pub fn cannot_be_judged(&self) -> Vec<&str> {
        self.silent.difference(&self.telling).map(String::as_str).collect()
    }

    /// Prints it for people.
    ///
    /// # Errors
    /// If writing fails.
    pub fn print(&self, out: &mut impl Write) -> io::Result<()> {
        let Self { requests, changes, drifts, denied, unjudged, bad, .. } = self;
        writeln!(
            out,
            "\n{requests} requests: {changes} changes of intent, {} others (of status, of metadata, or none).",
            requests - changes
        )?;
        write!(out, "{drifts} drifts, {denied} denied, {unjudged} could not be judged")?;
        if *bad > 0 {
            write!(out, ", {bad} could not be read")?;
        }
        writeln!(out, ".")?;
        if self.skipped > 0 {
            writeln!(out, "{} audit events were of reads, early stages or failed requests.", self.skipped)?;
        }
        let kinds = self.cannot_be_judged();
        if !kinds.is_empty() {
            writeln!(
                out,
                "Cannot be judged without settle: quiet (or status.settled) in a policy: {}.",
                kinds.join(", ")
            )?;
        }
        if *changes == 0 {
            return Ok(());
        }
        let rules = (!self.by_rule.is_empty()).then(|| self.rules());
        for table in [self.kinds(), self.actors()].into_iter().chain(rules) {
            writeln!(out)?;
            for line in table.lines() {
                writeln!(out, "{}", line.trim_end())?;
            }
        }
        Ok(())
    }

    fn kinds(&self) -> Table {
        let mut table = bare(&["KIND"]);
        let mut header = vec!["KIND".to_owned()];
        header.extend(CAUSES.map(|cause| cause.as_str().to_uppercase()));
        header.extend(["ALLOW", "WARN", "DENY", "UNJUDGED"].map(ToOwned::to_owned));
        table.set_header(header);
        for (kind, counts) in &self.by_kind {
            let mut row = vec![kind.clone()];
            let columns = CAUSES.map(Cause::as_str).into_iter().chain(["allow", "warn", "deny", "unjudged"]);
            row.extend(columns.map(|column| counts.get(column).map_or("·".to_owned(), u64::to_string)));
            table.add_row(row);
        }
        align_numbers(table)
    }

    fn rules(&self) -> Table {
        let mut table = bare(&["RULE", "MATCHES"]);
        for (rule, matches) in &self.by_rule {
            table.add_row([rule.to_string(), matches.to_string()]);
        }
        align_numbers(table)
    }

    fn actors(&self) -> Table {
        let mut table = bare(&["ACTOR", "CHANGES", "DRIFTS"]);
        let mut actors: Vec<_> = self.by_user.iter().collect();
        actors
            .sort_by_key(|(name, (changes, drifts))| (std::cmp::Reverse((*drifts, *changes)), name.as_str()));
        for (name, (changes, drifts)) in actors.iter().take(TOP_ACTORS) {
            table.add_row([name.as_str(), &changes.to_string(), &drifts.to_string()]);
        }
        if actors.len() > TOP_ACTORS {
            table.add_row([format!("… and {} more", actors.len() - TOP_ACTORS)]);
        }
        align_numbers(table)
    }
}

fn entry<'a, T: Default>(map: &'a mut BTreeMap<String, T>, key: &str) -> &'a mut T {
    map.entry(key.to_owned()).or_default()
}

fn bare(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(header);
    table
}

fn align_numbers(mut table: Table) -> Table {
    for (place, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        if place > 0 {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use kausality_api::exception::ApprovalPolicy;
    use kausality_core::exceptions::compile;
    use serde_json::json;

    use super::*;

    #[test]
    fn rules_are_counted_in_their_order() {
        let rule = json!({"apiVersion": "v1", "kind": "Pod", "subjects": [{"kind": "User", "name": "a"}]});
        let policy: ApprovalPolicy = serde_json::from_value(json!({
            "apiVersion": "kausality.io/v1alpha1", "kind": "ClusterApprovalPolicy",
            "metadata": {"name": "x"}, "spec": {"rules": vec![rule; 12]},
        }))
        .unwrap();
        let summary = Summary::of(&Exceptions::new([&compile(&policy).unwrap()]));
        let names: Vec<String> = summary.by_rule.keys().map(ToString::to_string).collect();
        let expected: Vec<String> =
            (0..12).map(|place| format!("ClusterApprovalPolicy/x rules[{place}]")).collect();
        assert_eq!(names, expected);
    }
}
