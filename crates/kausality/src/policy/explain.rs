//! `kausality policy explain`: what each rule says, in plain words; and what it says of one request.

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
    process::ExitCode,
};

use anstyle::{AnsiColor, Style};
use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use jiff::Timestamp;
use kausality_api::{
    exception::{Action, RuleCause},
    selector::Labels,
    text::plain,
};
use kausality_core::{
    Review,
    exceptions::{Held, Judgement, Match, Supposed},
};
use serde_json::{Value, json};

use super::files::{self, Policies, recorded};
use crate::{output, replay::Output};

mod words;

use words::Words;

/// Say in plain words what approval policies let pass or deny.
///
/// With --review, each rule is held against that request: whether it matches, and why not.
#[derive(Debug, Args)]
pub(super) struct Explain {
    /// Files of ApprovalPolicies and ClusterApprovalPolicies, YAML or JSON
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// An AdmissionReview; where a file holds several, with the line on which it starts
    #[arg(long, value_name = "FILE[:LINE]")]
    review: Option<String>,

    /// The parent of the object that the request is about, YAML or JSON: for rules that ask for it
    #[arg(long, value_name = "FILE", requires = "review")]
    parent: Option<PathBuf>,

    /// A label of the object's namespace: for rules that ask for it; may be given more than once
    #[arg(long, value_name = "KEY=VALUE", requires = "review", value_parser = label)]
    namespace_label: Vec<(String, String)>,

    /// What the request is taken for
    #[arg(long, value_enum, default_value_t, requires = "review")]
    cause: Cause,

    /// How it is shown
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Cause {
    /// A change by the parent's controller that nobody asked for
    #[default]
    Drift,
    /// A change by anybody else
    Origin,
}

impl From<Cause> for RuleCause {
    fn from(cause: Cause) -> Self {
        match cause {
            Cause::Drift => Self::Drift,
            Cause::Origin => Self::Origin,
        }
    }
}

fn label(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("a label is KEY=VALUE")?;
    Ok((key.to_owned(), value.to_owned()))
}

/// What the rules say of a request.
struct Answer {
    held: Vec<Held>,
    judgement: Judgement,
}

impl Explain {
    /// Runs the command.
    ///
    /// # Errors
    /// If a file cannot be read, or a policy is not valid.
    pub(super) fn run(&self) -> Result<ExitCode> {
        let mut policies = Policies::default();
        for file in &self.files {
            let before = policies.written.len();
            for document in files::read(file)? {
                policies.take(file, &document)?;
            }
            if policies.written.len() == before {
                bail!("{} holds no ApprovalPolicy or ClusterApprovalPolicy", file.display());
            }
        }
        let answer = self.review.as_deref().map(|review| self.ask(review, &policies)).transpose()?;
        let mut out = io::BufWriter::new(anstream::stdout().lock());
        match self.output {
            Output::Table => print(&mut out, &policies, answer.as_ref())?,
            Output::Json => output::json(&mut out, &document(&policies, answer.as_ref()))?,
        }
        out.flush()?;
        Ok(ExitCode::SUCCESS)
    }

    fn ask(&self, review: &str, policies: &Policies) -> Result<Answer> {
        let text = recorded(review, Path::new(""))?;
        let review = Review::parse(text.as_bytes())?;
        let parent = self.parent.as_deref().map(parent).transpose()?;
        let labels: Labels = self.namespace_label.iter().cloned().collect();
        let supposed = Supposed {
            review: &review,
            parent: parent.as_ref(),
            namespace: (!labels.is_empty()).then_some(&labels),
            cause: self.cause.into(),
            now: Timestamp::now(),
        };
        let exceptions = policies.exceptions();
        Ok(Answer { held: exceptions.hold_each(&supposed), judgement: exceptions.judge(&supposed) })
    }
}

fn parent(file: &Path) -> Result<Value> {
    let documents = files::read(file)?;
    let [parent] = documents.as_slice() else {
        bail!("{} must hold one object, and holds {}", file.display(), documents.len());
    };
    parent.as_object().with_context(|| format!("{} holds no object", file.display()))?;
    Ok(parent.clone())
}

impl Answer {
    /// What is said of a rule.
    fn of(&self, policy: &str, rule: usize) -> Option<&Match> {
        let held = self.held.iter().find(|held| held.rule.policy == policy && held.rule.rule == rule);
        held.map(|held| &held.matches)
    }

    /// What comes of it all.
    fn outcome(&self) -> String {
        match &self.judgement.ruled {
            Some(ruled) if ruled.action == Action::Deny => format!("It is denied by {ruled}."),
            Some(ruled) => format!("It passes by {ruled}, unless it is frozen or rejected."),
            None => "No rule decides.".to_owned(),
        }
    }
}

fn print(out: &mut impl Write, policies: &Policies, answer: Option<&Answer>) -> io::Result<()> {
    let bold = Style::new().bold();
    for (number, policy) in policies.written.iter().enumerate() {
        let reference = policy.reference();
        if number > 0 {
            writeln!(out)?;
        }
        writeln!(out, "{bold}{}{bold:#}", plain(&reference))?;
        for (place, rule) in policy.spec.rules.iter().enumerate() {
            let words = Words::of(policy, rule);
            writeln!(out, "  {bold}rules[{place}]{bold:#} {}", plain(&words.does))?;
            for (name, text) in words.lines() {
                for (line, text) in text.lines().enumerate() {
                    let name = if line == 0 { name } else { "" };
                    writeln!(out, "    {name:7} {}", plain(text))?;
                }
            }
            match answer.and_then(|answer| answer.of(&reference, place)) {
                None => {}
                Some(Match::Yes(note)) => {
                    let style = AnsiColor::Green.on_default();
                    let note = note.as_ref().map(|note| format!(": {note}")).unwrap_or_default();
                    writeln!(out, "    → {style}matches{style:#}{}", plain(&note))?;
                }
                Some(Match::No(why)) => writeln!(out, "    → does not match: {}", plain(why))?,
                Some(Match::Beside(why)) => writeln!(out, "    → does not match: it {}", plain(why))?,
            }
        }
    }
    if let Some(answer) = answer {
        writeln!(out, "\n{}", plain(&answer.outcome()))?;
    }
    Ok(())
}

fn document(policies: &Policies, answer: Option<&Answer>) -> Value {
    let all = policies.written.iter().map(|policy| {
        let reference = policy.reference();
        let rules = policy.spec.rules.iter().enumerate().map(|(place, rule)| {
            let mut words = serde_json::to_value(Words::of(policy, rule)).unwrap_or_default();
            words["rule"] = place.into();
            match answer.and_then(|answer| answer.of(&reference, place)) {
                None => {}
                Some(Match::Yes(note)) => words["review"] = json!({"matches": true, "why": note}),
                Some(Match::No(why) | Match::Beside(why)) => {
                    words["review"] = json!({"matches": false, "why": why});
                }
            }
            words
        });
        json!({"policy": reference, "rules": rules.collect::<Value>()})
    });
    let mut document = json!({"policies": all.collect::<Value>()});
    if let Some(answer) = answer {
        let ruled = answer.judgement.ruled.as_ref();
        document["decision"] = match ruled.map(|ruled| ruled.action) {
            None => "none".into(),
            Some(action) => json!(action),
        };
        document["rule"] = ruled.map(|ruled| format!("{} rules[{}]", ruled.policy, ruled.rule)).into();
    }
    document
}
