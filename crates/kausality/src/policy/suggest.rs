//! `kausality policy suggest`: the narrowest rules that would have let the drifts of a recording pass.

use std::{
    collections::BTreeMap,
    io::{self, Write},
    process::ExitCode,
};

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use kausality_api::{
    API_VERSION,
    exception::{Action, ApprovalPolicy, ApprovalPolicySpec, MAX_RULES, Metadata, PolicyKind, PolicyRule},
    text::plain,
};
use kausality_core::{cause::Cause, exceptions::Compiled};
use serde::Serialize;

use crate::{
    output::{self, count},
    replay::{
        Fed, Flow, Recording,
        engine::Judged,
        policies::{self, Loaded},
    },
};

mod group;
mod inputs;

use group::{Group, Key};

/// Suggest a policy that would have let the approved drifts of a recording pass, and as little else as can be.
///
/// With --inputs, suggest which other objects to declare as inputs instead: those that somebody changed shortly before a
/// drift, by the narrowest relation that explains it.
///
/// Every rule names a kind, an object, a user, an operation and, of updates, fields; only generated names are suggested by
/// their beginning. The recording is then replayed with the policy, and the first lines say what came of that.
#[derive(Debug, Args)]
pub(super) struct Suggest {
    #[command(flatten)]
    recording: Recording,

    /// Take in every drift that was not stopped by a freeze, a rejection or a rule
    #[arg(long)]
    all_drifts: bool,

    /// Suggest an ApprovalPolicy in this namespace, as far as such a policy may speak of the drifts
    #[arg(short, long, value_name = "NAMESPACE")]
    namespace: Option<String>,

    /// Suggest inputs of Kausality policies: what else controllers act on. Needs an audit log, which tells the time
    #[arg(long, conflicts_with_all = ["all_drifts", "namespace"])]
    inputs: bool,

    /// What the policy is called
    #[arg(long, value_name = "NAME", default_value = "suggested")]
    name: String,

    /// How the policy is shown
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Output {
    /// As kubectl applies it; what there is to say stands in comments
    #[default]
    Yaml,
    /// As kubectl applies it; what there is to say goes to standard error
    Json,
}

/// No policy of a cluster can be called that, so none is taken for it.
const TRIED: &str = "kausality policy suggest";

/// What drifts a suggestion is about.
#[derive(Default)]
struct Drifts {
    groups: BTreeMap<Key, Group>,
    /// How many are to be let pass.
    taken: usize,
    /// How many no rule can name.
    left: usize,
}

/// What came of a replay with the suggested rules.
#[derive(Default)]
struct Proof {
    /// Of the drifts that were to be let pass, how many are.
    covered: usize,
    /// Others that would be, too.
    others: usize,
}

impl Suggest {
    /// Runs the command.
    ///
    /// # Errors
    /// If a file or a policy cannot be read.
    pub(super) fn run(&self) -> Result<ExitCode> {
        if self.recording.has_stdin() {
            bail!("give the recording as a file: it is read twice");
        }
        if self.inputs {
            return self.suggest_inputs();
        }
        let drifts = self.gather()?;
        if drifts.taken == 0 {
            anstream::eprintln!("{}", self.nothing(&drifts));
            return Ok(ExitCode::FAILURE);
        }
        let home = self.namespace.as_deref();
        let rules: Vec<PolicyRule> = drifts.groups.iter().map(|(key, group)| key.rule(group, home)).collect();
        let policies: Vec<ApprovalPolicy> =
            rules.chunks(MAX_RULES).enumerate().map(|(number, rules)| self.policy(number, rules)).collect();
        for policy in &policies {
            compiled(policy)?;
        }
        let proof = self.prove(&policies)?;
        self.print(&policies, &self.notes(&drifts, &proof))?;
        Ok(if proof.covered == drifts.taken { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    /// Whether a drift is to be let pass: what people or rules stopped is not, and what rules let pass needs no other.
    fn wants(&self, judged: &Judged) -> bool {
        let resolution = judged.decision().map(|decision| decision.resolution.as_str());
        judged.cause() == Some(Cause::Drift)
            && match resolution {
                Some("approved") => true,
                Some("logged" | "blocked" | "upgrade") => self.all_drifts,
                _ => false,
            }
    }

    fn gather(&self) -> Result<Drifts> {
        let mut drifts = Drifts::default();
        self.recording.replay(|_, _, fed| {
            if let Fed::Judged(judged) = fed
                && self.wants(judged)
            {
                match Key::of(judged, self.namespace.as_deref()) {
                    Some(key) => {
                        drifts.groups.entry(key).or_default().add(judged);
                        drifts.taken += 1;
                    }
                    None => drifts.left += 1,
                }
            }
            Ok(Flow::GoOn)
        })?;
        Ok(drifts)
    }

    fn policy(&self, number: usize, rules: &[PolicyRule]) -> ApprovalPolicy {
        let name = match number {
            0 => self.name.clone(),
            number => format!("{}-{}", self.name, number + 1),
        };
        ApprovalPolicy {
            api_version: API_VERSION.to_owned(),
            kind: match self.namespace {
                Some(_) => PolicyKind::ApprovalPolicy,
                None => PolicyKind::ClusterApprovalPolicy,
            },
            metadata: Metadata { name, namespace: self.namespace.clone().unwrap_or_default() },
            spec: ApprovalPolicySpec { rules: rules.to_vec() },
        }
    }

    /// Replays with the rules. They are tried as rules that deny: those are asked before approvals, so that it shows which of
    /// them match what was approved; and what is only tried changes nothing else.
    fn prove(&self, policies: &[ApprovalPolicy]) -> Result<Proof> {
        let mut names = Vec::new();
        let mut rules = Vec::new();
        for (number, policy) in policies.iter().enumerate() {
            let mut policy = policy.clone();
            policy.metadata.name = format!("{TRIED} {number}");
            for rule in &mut policy.spec.rules {
                rule.action = Action::Deny;
                rule.dry_run = true;
            }
            names.push(policy.reference());
            rules.push(compiled(&policy)?);
        }
        let mut proof = Proof::default();
        self.recording.replay_with(Loaded { exceptions: rules, ..Loaded::default() }, |_, _, fed| {
            if let Fed::Judged(judged) = fed
                && let Some(decision) = judged.decision()
                && judged.cause() == Some(Cause::Drift)
                && decision.tried.iter().any(|ruled| names.contains(&ruled.policy))
            {
                let wanted = self.wants(judged) && Key::of(judged, self.namespace.as_deref()).is_some();
                let number = if wanted { &mut proof.covered } else { &mut proof.others };
                *number += 1;
            }
            Ok(Flow::GoOn)
        })?;
        Ok(proof)
    }

    fn notes(&self, drifts: &Drifts, proof: &Proof) -> Vec<String> {
        let which = if self.all_drifts { "drift" } else { "approved drift" };
        let caution = if proof.covered == drifts.taken { "Replayed" } else { "CAUTION: replayed" };
        let taken = count(drifts.taken, which);
        let pass = if drifts.taken == 1 { "passes" } else { "pass" };
        let covered = format!("{caution} with it, {} of {taken} {pass}", proof.covered);
        let others = match proof.others {
            0 => "no other drift does.".to_owned(),
            others => {
                format!("{} would, too: read the rules before you apply them.", count(others, "other drift"))
            }
        };
        let mut notes = vec![format!("{covered}, and {others}")];
        notes.extend(drifts.groups.iter().filter_map(|(key, group)| key.widened(group)));
        notes.extend(self.left_out(drifts));
        notes
    }

    fn left_out(&self, drifts: &Drifts) -> Option<String> {
        let left = count(drifts.left, "drift");
        let why = match &self.namespace {
            Some(namespace) => format!(
                "an ApprovalPolicy of {namespace} speaks of objects in {namespace}, and of its service accounts"
            ),
            None => "no rule can name who caused it".to_owned(),
        };
        (drifts.left > 0).then(|| format!("Left out: {left}, since {why}."))
    }

    fn nothing(&self, drifts: &Drifts) -> String {
        match self.left_out(drifts) {
            Some(left) => format!("There is nothing to suggest. {left}"),
            None if self.all_drifts => {
                "There is nothing to suggest: the recording holds no drift that was not stopped.".to_owned()
            }
            None => "There is nothing to suggest: the recording holds no approved drift. With --all-drifts, those that nobody \
                     approved are taken in, too."
                .to_owned(),
        }
    }

    fn print(&self, policies: &[impl Serialize], notes: &[String]) -> Result<()> {
        let mut out = io::BufWriter::new(io::stdout().lock());
        match self.output {
            Output::Yaml => {
                for note in notes {
                    writeln!(out, "# {}", plain(note))?;
                }
                for (number, policy) in policies.iter().enumerate() {
                    if number > 0 {
                        writeln!(out, "---")?;
                    }
                    output::yaml(&mut out, policy)?;
                }
            }
            Output::Json => {
                for note in notes {
                    anstream::eprintln!("{}", plain(note));
                }
                let items = policies.iter().map(serde_json::to_value).collect::<Result<Vec<_>, _>>()?;
                match <[_; 1]>::try_from(items) {
                    Ok([policy]) => output::json(&mut out, &policy)?,
                    Err(items) => output::json(&mut out, &output::list(items))?,
                }
            }
        }
        out.flush().context("cannot write")
    }
}

/// A policy that was made here is valid; if it is not, that must show here and not in a cluster.
fn compiled(policy: &ApprovalPolicy) -> Result<Compiled> {
    policies::compiled(policy, "the rules that were found are not valid")
}
