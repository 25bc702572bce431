//! `kausality diff`: manifests against the cluster, in the fields that are their manager's business.

use std::{path::PathBuf, process::ExitCode, sync::Arc, time::Duration};

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use kausality_cluster::{Kinds, Schemas};
use kausality_fields::{delegation::Delegation, fight::Fights};

use crate::{
    connect::Connection,
    live::{Secrets, Server, Types, in_order},
    manifests::{self, Manifest},
};

mod compare;
mod junit;
mod sarif;
mod settle;
mod table;
mod watch;

use compare::{Compared, Summary};

/// Compare manifests with the cluster, in the fields that their manager declares or owns.
///
/// Exits with 0 if there is no drift, with 1 if there is, and with 2 if something cannot be read or compared.
#[derive(Debug, Args)]
pub struct Diff {
    /// Files or folders with manifests; `-` for standard input; may be given several times
    #[arg(short, long = "filename", alias = "file", value_name = "DIR|FILE|-", required = true)]
    files: Vec<PathBuf>,

    /// The manager that applies the manifests
    #[arg(long, value_name = "NAME")]
    manager: String,

    /// Fields that are left to another manager, optionally within bounds: spec.replicas=hpa,
    /// spec.replicas=hpa:1..10, spec.template.spec.containers[*].resources=vpa; may be given several times
    #[arg(long = "delegate", value_name = "PATH=MANAGER[:LOW..HIGH]")]
    delegations: Vec<Delegation>,

    /// Watch the objects for so many seconds first, to find managers that take fields from each other
    #[arg(long, value_name = "SECONDS")]
    watch: Option<u64>,

    /// Show also what is no drift: co-owned, delegated and unowned fields, and objects without drift
    #[arg(long)]
    all: bool,

    /// The namespace of objects that name none [default: that of the context]
    #[arg(short, long, value_name = "NAME")]
    namespace: Option<String>,

    /// How verdicts are shown
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,

    #[command(flatten)]
    connection: Connection,
}

/// How verdicts are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Output {
    /// For people
    #[default]
    Table,
    /// One JSON document
    Json,
    /// SARIF 2.1.0, for code scanning
    Sarif,
    /// JUnit XML, a test case an object
    Junit,
}

impl Diff {
    /// Runs the command.
    ///
    /// # Errors
    /// If manifests cannot be read, or no cluster is found.
    pub fn run(&self) -> Result<ExitCode> {
        if self.manager.is_empty() {
            bail!("--manager must not be empty");
        }
        let manifests = manifests::load(&self.files)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let compared = runtime.block_on(self.compare(manifests))?;
        let mut out = anstream::stdout().lock();
        match self.output {
            Output::Table => table::table(&mut out, &compared, self.all)?,
            Output::Json => json(&mut out, &compare::document(&self.manager, &compared, self.all))?,
            Output::Sarif => json(&mut out, &sarif::document(&compared))?,
            Output::Junit => junit::document(&mut out, &compared)?,
        }
        Ok(ExitCode::from(Summary::of(&compared).exit_code()))
    }

    async fn compare(&self, manifests: Vec<Manifest>) -> Result<Vec<Compared>> {
        let client = self.connection.client("diff").await?;
        let judge = Arc::new(compare::Judge {
            kinds: Kinds::new(client.clone()),
            types: Types::of_manifests(Schemas::new(client.clone()), &manifests),
            namespace: self.namespace.clone().unwrap_or_else(|| client.default_namespace().to_owned()),
            delegations: self.delegations.clone(),
            secrets: Secrets::of(&client).await,
            server: Server { client, manager: self.manager.clone() },
        });
        let fights = match self.watch {
            Some(seconds) => watch::all(&judge, &manifests, Duration::from_secs(seconds)).await,
            None => vec![Fights::default(); manifests.len()],
        };
        let tasks = manifests.into_iter().zip(fights).map(|(manifest, fights)| {
            let judge = judge.clone();
            async move { judge.compare(manifest, &fights).await }
        });
        in_order(tasks.collect()).await
    }
}

fn json(out: &mut impl std::io::Write, document: &serde_json::Value) -> Result<()> {
    serde_json::to_writer_pretty(&mut *out, document)?;
    writeln!(out).context("cannot write")
}
