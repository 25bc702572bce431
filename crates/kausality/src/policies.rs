//! `kausality policies`: what Kausality watches, and whether it does.

use std::{io::Write, process::ExitCode};

use anstyle::AnsiColor;
use anyhow::{Result, bail};
use clap::Args;
use jiff::Timestamp;
use kausality_api::{
    API_VERSION, GROUP,
    mode::Mode,
    policy::{Kausality, KausalitySpec, Settle},
    selector::{LabelSelector, Operator, Requirement},
    status::KausalityStatus,
    text::{plain, shorten},
};
use kube::{Api, api::ListParams, core::DynamicObject};
use serde::Deserialize;
use serde_json::Value;

use crate::{
    connect::Connection,
    ledger::{refused, within},
    live::{age, policy_resource},
    output::{self, Cell, ListOutput, Table, program},
};

/// List the Kausality policies: what they cover, in which mode, and whether they are in force.
#[derive(Debug, Args)]
pub struct Policies {
    /// Only these
    #[arg(value_name = "NAME")]
    names: Vec<String>,

    /// How policies are shown
    #[arg(short, long, value_enum, default_value_t)]
    output: ListOutput,

    #[command(flatten)]
    connection: Connection,
}

impl Policies {
    /// Runs the command.
    ///
    /// # Errors
    /// If policies cannot be read, or there is none of a name.
    pub fn run(&self) -> Result<ExitCode> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let mut found = runtime.block_on(self.read())?;
        found.sort_by_cached_key(name);
        if let Some(missing) = self.names.iter().find(|wanted| !found.iter().any(|it| name(it) == **wanted)) {
            bail!("there is no policy {missing:?}");
        }
        found.retain(|policy| self.names.is_empty() || self.names.contains(&name(policy)));
        let out = &mut anstream::stdout().lock();
        match self.output {
            ListOutput::Json => output::json(out, &output::list(found))?,
            ListOutput::Yaml => output::yaml(out, &output::list(found))?,
            ListOutput::Name => {
                for policy in &found {
                    writeln!(out, "kausality.{GROUP}/{}", plain(&name(policy)))?;
                }
            }
            ListOutput::Table | ListOutput::Wide if found.is_empty() => {
                anstream::eprintln!(
                    "There are no Kausality policies. Without them, only what the webhook was started with is watched."
                );
            }
            ListOutput::Table | ListOutput::Wide => {
                table(&found, self.output == ListOutput::Wide, Timestamp::now()).write(out)?;
                for note in unjudged(&found, Timestamp::now()) {
                    anstream::eprintln!("{note}");
                }
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    async fn read(&self) -> Result<Vec<Value>> {
        let client = self.connection.client("policies").await?;
        let api: Api<DynamicObject> = Api::all_with(client, &policy_resource());
        let found = within("cannot list policies", api.list(&ListParams::default())).await;
        let found = found.map_err(|error| match refused(&error) {
            Some(404) => anyhow::anyhow!(
                "this cluster has no kausalities.{GROUP}: is Kausality installed? `{} doctor` tells",
                program()
            ),
            _ => error,
        })?;
        let mut policies = Vec::new();
        for policy in found.items {
            let mut policy = serde_json::to_value(policy)?;
            policy["apiVersion"] = API_VERSION.into();
            policy["kind"] = "Kausality".into();
            policies.push(policy);
        }
        Ok(policies)
    }
}

fn text<'a>(policy: &'a Value, pointer: &str) -> &'a str {
    policy.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn name(policy: &Value) -> String {
    text(policy, "/metadata/name").to_owned()
}

/// Characters of a list, where there is little room.
const MAX_LIST: usize = 60;

fn table(policies: &[Value], wide: bool, now: Timestamp) -> Table {
    let mut header = vec!["NAME", "MODE", "RESOURCES", "NAMESPACES", "READY", "REASON", "AGE"];
    if wide {
        header.extend(["OBJECTS", "OVERRIDES", "SETTLE", "MESSAGE"]);
    }
    let max = if wide { usize::MAX } else { MAX_LIST };
    let mut table = Table::new(header);
    for policy in policies {
        let spec = policy.get("spec").cloned().unwrap_or_default();
        let spec = match serde_json::from_value::<KausalitySpec>(spec) {
            Ok(spec) => spec,
            // A newer version may say what this one does not know.
            Err(error) => {
                table.push(vec![Cell::new(&name(policy)), Cell::new(&format!("cannot be read: {error}"))]);
                continue;
            }
        };
        let status = policy.get("status").cloned().unwrap_or_default();
        let status: KausalityStatus = serde_json::from_value(status).unwrap_or_default();
        let ready = status.conditions.iter().find(|condition| condition.kind == "Ready");
        let (word, reason, message) = ready.map_or(("Unknown", "", ""), |ready| {
            (ready.status.as_str(), ready.reason.as_str(), ready.message.as_str())
        });
        let colour = match word {
            "True" => AnsiColor::Green,
            "False" => AnsiColor::Red,
            _ => AnsiColor::Yellow,
        };
        let age = age(text(policy, "/metadata/creationTimestamp"), now).unwrap_or_default();
        let mut row = vec![
            Cell::new(&name(policy)),
            Cell::new(mode(spec.mode)),
            Cell::new(&shorten(&resources(&spec), max)),
            Cell::new(&shorten(&namespaces(&spec), max)),
            Cell::new(word).styled(colour.on_default()),
            Cell::new(reason),
            age.into(),
        ];
        if wide {
            let settle = match spec.settle.unwrap_or_default() {
                Settle::Steady => "steady",
                Settle::ObservedGeneration => "observedGeneration",
                Settle::Quiet => "quiet",
            };
            let objects = spec.object_selector.as_ref().map_or("all".to_owned(), selector);
            row.extend([
                Cell::new(&objects),
                Cell::new(&overrides(&spec)),
                Cell::new(settle),
                Cell::new(&shorten(message, 200)),
            ]);
        }
        table.push(row);
    }
    table
}

/// What policies leave unjudged: a line each.
fn unjudged(policies: &[Value], now: Timestamp) -> Vec<String> {
    let all = policies.iter().filter_map(|policy| Kausality::deserialize(policy).ok()).collect();
    let all = kausality_core::policy::Policies::new(all);
    let of = |policy: &Value| {
        let status = KausalityStatus::deserialize(policy.get("status")?).ok()?;
        let kinds = status.unjudged.iter().filter(|kind| kind.is_recent(now) && all.leave_unjudged(kind));
        let kinds: Vec<String> = kinds.map(ToString::to_string).collect();
        let name = name(policy);
        let told = format!("policy {name}: cannot be judged without settle: quiet: {}", kinds.join(", "));
        (!kinds.is_empty()).then(|| plain(&told).into_owned())
    };
    policies.iter().filter_map(of).collect()
}

fn mode(mode: Mode) -> &'static str {
    match mode {
        Mode::Log => "log",
        Mode::Enforce => "enforce",
    }
}

/// `deployments.apps, *.batch except jobs`.
fn resources(spec: &KausalitySpec) -> String {
    let mut parts = Vec::new();
    for rule in &spec.resources {
        for group in &rule.api_groups {
            let separator = if group.is_empty() { "" } else { "." };
            let except = match rule.excluded.as_slice() {
                [] => String::new(),
                excluded => format!(" except {}", excluded.join(" ")),
            };
            parts.extend(rule.resources.iter().map(|name| format!("{name}{separator}{group}{except}")));
        }
    }
    parts.join(", ")
}

fn namespaces(spec: &KausalitySpec) -> String {
    let Some(namespaces) = &spec.namespaces else { return "all".to_owned() };
    let mut parts = namespaces.names.clone();
    parts.extend(namespaces.selector.as_ref().map(selector));
    if parts.is_empty() {
        parts.push("all".to_owned());
    }
    let except = match namespaces.excluded.as_slice() {
        [] => String::new(),
        excluded => format!(" except {}", excluded.join(" ")),
    };
    format!("{}{except}", parts.join(", "))
}

/// As kubectl writes selectors: `app=web,tier in (a,b)`.
fn selector(selector: &LabelSelector) -> String {
    let mut parts: Vec<String> =
        selector.match_labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    parts.extend(selector.match_expressions.iter().map(|Requirement { key, operator, values }| {
        let values = values.join(",");
        match operator {
            Operator::In => format!("{key} in ({values})"),
            Operator::NotIn => format!("{key} notin ({values})"),
            Operator::Exists => key.clone(),
            Operator::DoesNotExist => format!("!{key}"),
        }
    }));
    if parts.is_empty() { "all".to_owned() } else { parts.join(",") }
}

fn overrides(spec: &KausalitySpec) -> String {
    let one = |it: &kausality_api::policy::Override| {
        let list = |names: &[String]| if names.is_empty() { "*".to_owned() } else { names.join(" ") };
        let (resources, namespaces) = (list(&it.resources), list(&it.namespaces));
        format!("{} for {resources} in {namespaces}", mode(it.mode))
    };
    let all: Vec<String> = spec.overrides.iter().map(one).collect();
    all.join(", ")
}

#[cfg(test)]
mod tests;
