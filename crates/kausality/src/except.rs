//! `kausality except`: makes rules of drifts, so that nobody is asked again.

use std::{
    collections::BTreeSet,
    io::{IsTerminal, Write},
    process::ExitCode,
};

use anyhow::{Result, anyhow, bail};
use clap::Args;
use jiff::Timestamp;
use kausality_api::{
    GROUP,
    exception::{ApprovalPolicy, ApprovalPolicySpec, PolicyKind, PolicyRule},
    text::plain,
};
use kausality_core::exceptions::Exceptions;

use crate::{
    act::{Acting, Choice, DryRun, Editor, agreed},
    approve::{ModeArgument, reason},
    connect::Connection,
    ledger::{Entry, Scope},
    output::{self, DeedOutput, count},
    replay::policies::compiled,
    span,
};

#[cfg(test)]
mod fixture;
mod hold;
mod home;
mod known;
mod outlook;
mod past;
mod rules;

use home::{Home, Plan};
use known::Known;
use past::Past;
use rules::Wish;

/// How many other drifts are listed.
const SHOWN: usize = 10;

/// What is said before all that is wrong with the policy.
const INVALID: &str = "the policy would not be valid";

/// Make rules of drifts, so that the like of them pass without anybody being asked.
///
/// Each rule names the child, who changed it, the operation and, of updates, the fields. It must match the drift that it is made
/// of. The policy is shown with what else of the ledger its rules would have matched, and then written. You need the verb "approve" on drifts.kausality.io, and must be
/// allowed to write approvalpolicies.kausality.io.
#[derive(Debug, Args)]
pub struct Except {
    #[command(flatten)]
    choice: Choice,

    /// The policy that the rules are added to, which is made if there is none
    #[arg(long, value_name = "NAME", default_value = "exceptions")]
    policy: String,

    /// Make it a ClusterApprovalPolicy, whose rules may speak of all namespaces
    #[arg(long)]
    cluster_policy: bool,

    /// Let all children of the kind pass, and not only those that drifted
    #[arg(long)]
    any_name: bool,

    /// Let changes of all fields pass, and not only of those that drifted
    #[arg(long)]
    any_field: bool,

    /// What must hold of the change besides, in CEL: object.spec.replicas < 10
    #[arg(long, value_name = "EXPRESSION")]
    cel: Option<String>,

    /// For how long a child may be changed once it has been let pass
    #[arg(long, value_enum, default_value = "always")]
    mode: ModeArgument,

    /// When the rules become void: in 2h, 7d, or at 2026-01-25T12:00:00Z
    #[arg(long, value_name = "TIME", value_parser = span::until)]
    expires: Option<Timestamp>,

    /// Why, for those who read the policy later
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    reason: Option<String>,

    #[command(flatten)]
    acting: Acting,

    #[command(flatten)]
    connection: Connection,
}

/// What there is to say about a plan.
struct Outlook {
    /// What must be known before it is written, in every case.
    cautions: Vec<String>,
    /// What else is good to know.
    notes: Vec<String>,
}

impl Outlook {
    fn warn(&self) {
        for line in &self.cautions {
            anstream::eprintln!("note: {}", plain(line));
        }
    }
}

impl Except {
    /// Runs the command.
    ///
    /// # Errors
    /// If drifts are not found, no rule can be made of them, or nothing may be written.
    pub fn run(&self) -> Result<ExitCode> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(self.except())
    }

    async fn except(&self) -> Result<ExitCode> {
        let editor = Editor::new(self.connection.client("except").await?).await?;
        let entries = self.choice.find(&editor).await?;
        if entries.is_empty() {
            bail!("there is no such open drift {}", self.choice.place.scope(&editor.ledger.client));
        }
        let home = Home::of(&editor.ledger.client, self.cluster_policy, &entries)?;
        editor.may_decide(&home.namespace).await?;
        let rules = self.rules(&home, &entries)?;
        let plan = home.plan(&self.policy, &rules).await?;
        compiled(&plan.policy, INVALID)?;
        let mut outlook = self.outlook(&editor, &home, &plan, &rules, &entries).await?;
        let wish = self.wish(&home);
        let widened = entries.iter().filter_map(|entry| wish.widened(&entry.drift.spec));
        outlook.cautions.extend(widened.collect::<BTreeSet<String>>());
        if plan.added.is_empty() {
            outlook.warn();
            self.tell(&plan.policy, "has such a rule already")?;
            return Ok(ExitCode::SUCCESS);
        }
        if !self.agreed(&plan, &outlook)? {
            anstream::eprintln!("Nothing was written.");
            return Ok(ExitCode::FAILURE);
        }
        home.write(&plan, self.acting.dry_run).await?;
        let done = match &plan.version {
            Some(_) => format!("has {} more", count(plan.added.len(), "rule")),
            None => format!("created, with {}", count(plan.added.len(), "rule")),
        };
        self.tell(&plan.policy, &format!("{done}{}", self.acting.dry_run.note()))?;
        Ok(ExitCode::SUCCESS)
    }

    /// What the rules should be like.
    fn wish(&self, home: &Home) -> Wish<'_> {
        Wish {
            any_name: self.any_name,
            any_field: self.any_field,
            cel: self.cel.as_deref(),
            mode: self.mode.into(),
            expires: self.expires,
            reason: self.reason.as_deref(),
            cluster: home.kind == PolicyKind::ClusterApprovalPolicy,
        }
    }

    /// The rules that the drifts call for, each once.
    fn rules(&self, home: &Home, entries: &[Entry]) -> Result<Vec<PolicyRule>> {
        let wish = self.wish(home);
        let mut rules: Vec<PolicyRule> = Vec::new();
        for entry in entries {
            let rule = wish.rule(&entry.drift.spec).map_err(|why| anyhow!("{}: {why}", entry.full_name()))?;
            if !rules.iter().any(|known| rules::says_the_same(known, &rule)) {
                rules.push(rule);
            }
        }
        Ok(rules)
    }

    /// What will become of the drifts that were chosen, and what else of the ledger the new rules would have matched.
    async fn outlook(
        &self,
        editor: &Editor,
        home: &Home,
        plan: &Plan,
        rules: &[PolicyRule],
        chosen: &[Entry],
    ) -> Result<Outlook> {
        let now = span::now();
        let alone = |rules: &[PolicyRule]| {
            let spec = ApprovalPolicySpec { rules: rules.to_vec() };
            let compiled = compiled(&ApprovalPolicy { spec, ..plan.policy.clone() }, INVALID)?;
            anyhow::Ok(Exceptions::new([&compiled]))
        };
        let mut known = Known::default();
        let rules = alone(rules)?;
        known.gather(editor, &rules, chosen, now).await;
        let mut cautions = outlook::covered(&rules, chosen, &known, now)?;
        match home.prohibitions(plan, chosen).await {
            Ok(prohibitions) => {
                let prohibitions = Exceptions::new(&prohibitions);
                known.gather(editor, &prohibitions, chosen, now).await;
                cautions.extend(outlook::denied(&prohibitions, chosen, &known, now));
            }
            Err(error) => {
                cautions.push(format!("It cannot be told whether a policy denies it: {error:#}."));
            }
        }
        if plan.added.is_empty() {
            return Ok(Outlook { cautions, notes: Vec::new() });
        }
        let scope = match home.kind {
            PolicyKind::ApprovalPolicy => Scope::Namespace(home.namespace.clone()),
            PolicyKind::ClusterApprovalPolicy => Scope::Everywhere,
        };
        let entries = editor.ledger.read(&scope, None).await?;
        let added = alone(&plan.added)?;
        known.gather(editor, &added, &entries, now).await;
        let mut notes = Past::of(&added, &entries, chosen, &known, now).lines(SHOWN);
        if known.is_any() {
            notes.push("What rules ask of parents and namespaces is told as of now.".to_owned());
        }
        Ok(Outlook { cautions, notes })
    }

    /// Shows the policy and what follows from it, and asks whether it is meant, where somebody can be asked.
    fn agreed(&self, plan: &Plan, outlook: &Outlook) -> Result<bool> {
        if self.acting.output == DeedOutput::Text {
            let mut shown = Vec::new();
            output::yaml(&mut shown, &plan.policy)?;
            anstream::eprint!("{}", plain_lines(&String::from_utf8_lossy(&shown)));
            if plan.version.is_some() {
                let new = match plan.added.len() {
                    1 => "The last rule is new.".to_owned(),
                    several => format!("The last {several} rules are new."),
                };
                anstream::eprintln!("# {new}");
            }
            for line in outlook.notes.iter().chain(&outlook.cautions) {
                anstream::eprintln!("# {}", plain(line));
            }
        } else {
            outlook.warn();
        }
        if self.acting.yes || self.acting.dry_run != DryRun::None {
            return Ok(true);
        }
        if !std::io::stdin().is_terminal() {
            bail!("a policy outlasts the drift, and there is nobody to ask: say --yes");
        }
        agreed("Write it?")
    }

    /// Says what was done.
    fn tell(&self, policy: &ApprovalPolicy, done: &str) -> Result<()> {
        let name = format!("{}.{GROUP}/{}", policy.kind.as_str().to_lowercase(), policy.metadata.name);
        let mut out = anstream::stdout();
        match self.acting.output {
            DeedOutput::Text => writeln!(out, "{name} {done}")?,
            DeedOutput::Name => writeln!(out, "{name}")?,
            DeedOutput::Json => output::json(&mut out, policy)?,
            DeedOutput::Yaml => output::yaml(&mut out, policy)?,
        }
        Ok(())
    }
}

/// Several lines, each without what would move the cursor.
fn plain_lines(text: &str) -> String {
    text.lines().map(|line| format!("{}\n", plain(line))).collect()
}
