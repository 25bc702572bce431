//! `kausality except`: makes rules of drifts, so that nobody is asked again.

use std::{
    io::{IsTerminal, Write},
    process::ExitCode,
};

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use jiff::Timestamp;
use kausality_api::{
    API_VERSION, GROUP,
    exception::{ApprovalPolicy, ApprovalPolicySpec, Metadata, PolicyKind, PolicyRule},
    text::plain,
};
use kausality_core::exceptions::{self, Compiled, Exceptions};
use kube::{
    Api, Client,
    api::{Patch, PatchParams, PostParams},
    core::DynamicObject,
};
use serde_json::json;

use crate::{
    act::{Acting, Choice, DryRun, Editor, agreed},
    approve::{ModeArgument, reason},
    connect::Connection,
    ledger::{Entry, Scope, refused, rules::resource, within},
    output::{self, DeedOutput, count},
    span,
};

mod past;
mod rules;

use past::Past;
use rules::Wish;

/// How many other drifts are listed.
const SHOWN: usize = 10;

/// The field manager of edits.
const MANAGER: &str = "kausality";

/// Make rules of drifts, so that the like of them pass without anybody being asked.
///
/// Each rule names the child, who changed it, the operation and, of updates, the fields. The policy is shown with what else of the
/// ledger its rules would have matched, and then written. You need the verb "approve" on drifts.kausality.io, and must be
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

/// Where a policy is.
struct Home {
    kind: PolicyKind,
    namespace: String,
    api: Api<DynamicObject>,
}

/// A policy as it will be.
struct Plan {
    policy: ApprovalPolicy,
    /// The rules that are not there yet.
    added: Vec<PolicyRule>,
    /// The version that it was made from, if there was one.
    version: Option<String>,
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
        let home = self.home(&editor.ledger.client, &entries)?;
        editor.may_decide(&home.namespace).await?;
        let wish = Wish {
            any_name: self.any_name,
            any_field: self.any_field,
            cel: self.cel.as_deref(),
            mode: self.mode.into(),
            expires: self.expires,
            reason: self.reason.as_deref(),
            cluster: home.kind == PolicyKind::ClusterApprovalPolicy,
        };
        let mut rules: Vec<PolicyRule> = Vec::new();
        for entry in &entries {
            let rule = wish.rule(&entry.drift.spec).map_err(|why| anyhow!("{}: {why}", entry.full_name()))?;
            if !rules.iter().any(|known| rules::says_the_same(known, &rule)) {
                rules.push(rule);
            }
        }
        let plan = self.plan(&home, rules).await?;
        compiled(&plan.policy)?;
        if plan.added.is_empty() {
            self.tell(&plan.policy, "has such a rule already")?;
            return Ok(ExitCode::SUCCESS);
        }
        let past = self.past(&editor, &home, &plan, &entries).await?;
        if !self.agreed(&plan, &past)? {
            anstream::eprintln!("Nothing was written.");
            return Ok(ExitCode::FAILURE);
        }
        let done = self.write(&home, &plan).await?;
        self.tell(&plan.policy, &done)?;
        Ok(ExitCode::SUCCESS)
    }

    /// Where the policy belongs: beside the children, or above all of them.
    fn home(&self, client: &Client, entries: &[Entry]) -> Result<Home> {
        let mut namespaces: Vec<&str> =
            entries.iter().map(|entry| entry.drift.spec.child.namespace.as_str()).collect();
        namespaces.sort_unstable();
        namespaces.dedup();
        let (kind, namespace) = match namespaces.as_slice() {
            [""] => (PolicyKind::ClusterApprovalPolicy, ""),
            _ if self.cluster_policy => (PolicyKind::ClusterApprovalPolicy, ""),
            [namespace] => (PolicyKind::ApprovalPolicy, *namespace),
            several => bail!(
                "these drifts are of children in {} namespaces: except them one namespace after the other, or say \
                 --cluster-policy",
                several.len()
            ),
        };
        let resource = resource(kind);
        let api = match kind {
            PolicyKind::ApprovalPolicy => Api::namespaced_with(client.clone(), namespace, &resource),
            PolicyKind::ClusterApprovalPolicy => Api::all_with(client.clone(), &resource),
        };
        Ok(Home { kind, namespace: namespace.to_owned(), api })
    }

    /// The policy as it is, with those of the rules that it lacks.
    async fn plan(&self, home: &Home, rules: Vec<PolicyRule>) -> Result<Plan> {
        let reading = format!("cannot read {} {}", home.kind.as_str(), self.policy);
        let found = within(&reading, home.api.get_opt(&self.policy)).await?;
        let version = found.as_ref().and_then(|object| object.metadata.resource_version.clone());
        let mut policy = match found {
            Some(object) => {
                serde_json::to_value(object)
                    .and_then(serde_json::from_value::<ApprovalPolicy>)
                    .with_context(|| format!("{} {} cannot be understood", home.kind.as_str(), self.policy))?
            }
            None => ApprovalPolicy {
                api_version: API_VERSION.to_owned(),
                kind: home.kind,
                metadata: Metadata { name: self.policy.clone(), namespace: home.namespace.clone() },
                spec: ApprovalPolicySpec { rules: Vec::new() },
            },
        };
        let known = |rule: &PolicyRule| policy.spec.rules.iter().any(|it| rules::says_the_same(it, rule));
        let added: Vec<PolicyRule> = rules.into_iter().filter(|rule| !known(rule)).collect();
        policy.spec.rules.extend(added.iter().cloned());
        Ok(Plan { policy, added, version })
    }

    /// What else of the ledger the new rules would have matched.
    async fn past(&self, editor: &Editor, home: &Home, plan: &Plan, chosen: &[Entry]) -> Result<Past> {
        let alone =
            ApprovalPolicy { spec: ApprovalPolicySpec { rules: plan.added.clone() }, ..plan.policy.clone() };
        let rules = Exceptions::new([&compiled(&alone)?]);
        let scope = match home.kind {
            PolicyKind::ApprovalPolicy => Scope::Namespace(home.namespace.clone()),
            PolicyKind::ClusterApprovalPolicy => Scope::Everywhere,
        };
        let entries = editor.ledger.read(&scope, None).await?;
        Ok(Past::of(&rules, &entries, chosen, span::now()))
    }

    /// Shows the policy and what follows from it, and asks whether it is meant, where somebody can be asked.
    fn agreed(&self, plan: &Plan, past: &Past) -> Result<bool> {
        if self.acting.output == DeedOutput::Text {
            let mut shown = Vec::new();
            output::yaml(&mut shown, &plan.policy)?;
            anstream::eprint!("{}", plain_lines(&String::from_utf8_lossy(&shown)));
            for line in past.lines(SHOWN) {
                anstream::eprintln!("# {}", plain(&line));
            }
        }
        if self.acting.yes || self.acting.dry_run != DryRun::None {
            return Ok(true);
        }
        if !std::io::stdin().is_terminal() {
            bail!("a policy outlasts the drift, and there is nobody to ask: say --yes");
        }
        agreed("Write it?")
    }

    async fn write(&self, home: &Home, plan: &Plan) -> Result<String> {
        let done = match &plan.version {
            Some(_) => format!("has {} more", count(plan.added.len(), "rule")),
            None => format!("created, with {}", count(plan.added.len(), "rule")),
        };
        let done = format!("{done}{}", self.acting.dry_run.note());
        if self.acting.dry_run == DryRun::Client {
            return Ok(done);
        }
        let dry_run = self.acting.dry_run == DryRun::Server;
        let what = format!("cannot write {}", plan.policy.reference());
        let written = match &plan.version {
            Some(version) => {
                let patch = json!({"metadata": {"resourceVersion": version}, "spec": {"rules": plan.policy.spec.rules}});
                let parameters = PatchParams {
                    dry_run,
                    field_manager: Some(MANAGER.to_owned()),
                    ..PatchParams::default()
                };
                within(&what, home.api.patch(&self.policy, &parameters, &Patch::Merge(patch))).await
            }
            None => {
                let object: DynamicObject = serde_json::from_value(serde_json::to_value(&plan.policy)?)?;
                let parameters = PostParams { dry_run, field_manager: Some(MANAGER.to_owned()) };
                within(&what, home.api.create(&parameters, &object)).await
            }
        };
        match written {
            Ok(_) => Ok(done),
            Err(error) if refused(&error) == Some(409) => {
                Err(error.context("somebody else wrote to the policy meanwhile: try again"))
            }
            Err(error) => Err(error),
        }
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

fn compiled(policy: &ApprovalPolicy) -> Result<Compiled> {
    exceptions::compile(policy).map_err(|faults| {
        let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
        anyhow!("the policy would not be valid: {}", faults.join("\n"))
    })
}
