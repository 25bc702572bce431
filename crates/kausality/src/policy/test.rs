//! `kausality policy test`: cases that policies must decide as their authors expect.

use std::{
    collections::HashSet,
    io::{self, Write},
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use jiff::Timestamp;
use kausality_core::{
    Review,
    exceptions::{Exceptions, Judgement, Match, Supposed},
};
use serde::Serialize;

use super::files::{self, Policies};
use crate::output;

mod case;
mod show;

use case::{Case, Expect, named};

/// Hold policies against requests, and check that they decide as expected.
///
/// All .yaml and .yml files in DIR and below are read: ApprovalPolicies, ClusterApprovalPolicies, and PolicyTests with the
/// cases. Exits with 1 if a case fails, and with 2 if something cannot be read.
#[derive(Debug, Args)]
pub(super) struct Test {
    /// Where policies and tests are
    #[arg(value_name = "DIR")]
    folder: PathBuf,

    /// How results are shown
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Output {
    /// For people
    #[default]
    Table,
    /// One JSON document
    Json,
    /// JUnit XML, as CI systems read it
    Junit,
}

/// What became of a case.
#[derive(Debug, Serialize)]
struct Tested {
    file: String,
    name: String,
    passed: bool,
    expected: Said,
    got: Said,
    /// What may explain a failure.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    evidence: Vec<String>,
}

/// What rules say of a request.
#[derive(Debug, Serialize)]
struct Said {
    decision: Expect,
    /// The rule that says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<String>,
}

/// Rules that are told about where none is about a request.
const SHOWN: usize = 5;

impl Test {
    /// Runs the command.
    ///
    /// # Errors
    /// If a file cannot be read, a policy or a case is not valid, or there is none.
    pub(super) fn run(&self) -> Result<ExitCode> {
        let (policies, cases) = load(&self.folder)?;
        let exceptions = policies.exceptions();
        let now = Timestamp::now();
        let tested =
            cases.iter().map(|case| check(case, &exceptions, now)).collect::<Result<Vec<Tested>>>()?;
        let mut out = io::BufWriter::new(anstream::stdout().lock());
        match self.output {
            Output::Table => show::table(&mut out, &tested)?,
            Output::Junit => show::junit(&mut out, &tested)?,
            Output::Json => output::json(&mut out, &tested)?,
        }
        out.flush()?;
        Ok(ExitCode::from(u8::from(tested.iter().any(|tested| !tested.passed))))
    }
}

fn load(path: &Path) -> Result<(Policies, Vec<Case>)> {
    let mut policies = Policies::default();
    let mut cases: Vec<Case> = Vec::new();
    for file in files::all(path)? {
        for document in files::read(&file)? {
            policies.take(&file, &document)?;
            if files::kind(&file, &document)? == "PolicyTest" {
                cases.extend(case::all(&file, document).with_context(|| file.display().to_string())?);
            }
        }
    }
    let place = path.display();
    if policies.written.is_empty() {
        bail!("{place} holds no ApprovalPolicy or ClusterApprovalPolicy in files ending in .yaml or .yml");
    }
    if cases.is_empty() {
        bail!("{place} holds no case: write them in a document of kind PolicyTest");
    }
    let mut names = HashSet::new();
    for case in &cases {
        if !names.insert((&case.file, &case.name)) {
            bail!("{}: case {:?}: name: there is another case of this name", case.file, case.name);
        }
    }
    Ok((policies, cases))
}

/// Holds the rules against one case.
fn check(case: &Case, exceptions: &Exceptions, now: Timestamp) -> Result<Tested> {
    let context = || format!("{}: case {:?}", case.file, case.name);
    if let Some(rule) = &case.rule
        && !exceptions.rules().any(|it| named(&it) == *rule)
    {
        bail!("{}: rule: there is no {rule:?}", context());
    }
    let review = Review::parse(case.review.as_bytes()).with_context(context)?;
    let supposed = Supposed {
        review: &review,
        parent: case.parent.as_ref(),
        namespace: case.namespace_labels.as_ref(),
        cause: case.cause,
        now: case.now.unwrap_or(now),
    };
    let judgement = exceptions.judge(&supposed);
    let got = Said {
        decision: judgement.ruled.as_ref().map_or(Expect::None, |ruled| ruled.action.into()),
        rule: judgement.ruled.as_ref().map(named),
    };
    let passed = got.decision == case.expect && (case.rule.is_none() || case.rule == got.rule);
    let evidence = if passed { Vec::new() } else { evidence(case, exceptions, &supposed, judgement) };
    let expected = Said { decision: case.expect, rule: case.rule.clone() };
    Ok(Tested { file: case.file.clone(), name: case.name.clone(), passed, expected, got, evidence })
}

/// What may explain why a case failed: why the rule that was expected does not match, else what was said of those that are
/// about such requests, else in which way all are about others.
fn evidence(
    case: &Case,
    exceptions: &Exceptions,
    supposed: &Supposed<'_>,
    judgement: Judgement,
) -> Vec<String> {
    let held = exceptions.hold_each(supposed);
    let mut evidence = judgement.evidence;
    let wanted = held.iter().find(|held| case.rule.as_ref() == Some(&named(&held.rule)));
    match wanted.map(|held| (&held.rule, &held.matches)) {
        Some((rule, Match::Beside(why))) => evidence.insert(0, format!("{}: {why}", named(rule))),
        Some((rule, Match::Yes(_))) => {
            evidence.insert(0, format!("{} matches, too, and is not the one that decides", named(rule)));
        }
        _ => {}
    }
    if evidence.is_empty() && judgement.ruled.is_none() {
        let others = held.iter().filter_map(|held| match &held.matches {
            Match::Beside(why) => Some(format!("{}: {why}", named(&held.rule))),
            Match::Yes(_) | Match::No(_) => None,
        });
        evidence.extend(others.take(SHOWN));
        if held.len() > SHOWN {
            evidence.push(format!("… and {} more rules are about others", held.len() - SHOWN));
        }
    }
    evidence
}
