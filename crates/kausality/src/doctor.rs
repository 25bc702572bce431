//! `kausality doctor`: whether Kausality works on a cluster, and what to do if not.
//!
//! ```text
//!  cluster ──▶ Facts (what was seen, absent, hidden) ──▶ checks (each a pure judgement) ──▶ table, document
//! ```

use std::{process::ExitCode, time::Duration};

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressDrawTarget};
use kausality_cluster::Kinds;

use crate::{
    connect::Connection,
    install::{bundle::NAMESPACE, installed, label, objects::Objects},
};

mod answering;
mod certificates;
mod clients;
mod clock;
mod controllers;
mod definitions;
mod deployments;
mod facts;
mod finding;
mod lease;
mod policies;
mod registration;
mod report;
mod rights;
mod server;
mod version;

use facts::Facts;
use server::Server;

/// The Deployment and the Service of the webhook, and whom it runs as.
const WEBHOOK: &str = "kausality-webhook";
/// The Deployment and the Lease of the controller.
const CONTROLLER: &str = "kausality-controller";
/// The Secret with the certificate of the webhook.
const SECRET: &str = "kausality-webhook-tls";
/// The configurations of the API server.
const CONFIGURATION: &str = "kausality";

/// What is done sooner shows no progress.
const PATIENCE: Duration = Duration::from_secs(2);

/// Check whether Kausality works on a cluster, and say what to do if not.
///
/// It changes nothing. Exits with 0 if nothing failed, with 1 if something did, and with 2 if the cluster cannot be
/// reached.
#[derive(Debug, Args)]
pub struct Doctor {
    /// The namespace that Kausality is installed in [default: where it is found]
    #[arg(short, long, value_name = "NAME", value_parser = label)]
    namespace: Option<String>,

    /// How the result is shown
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,

    #[command(flatten)]
    connection: Connection,
}

/// How the result is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Output {
    /// A line for each check, for people
    #[default]
    Table,
    /// One JSON document
    Json,
}

impl Doctor {
    /// Runs the command.
    ///
    /// # Errors
    /// If the cluster cannot be reached.
    pub fn run(&self) -> Result<ExitCode> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let checks = runtime.block_on(self.facts())?.judge();
        let mut out = anstream::stdout().lock();
        match self.output {
            Output::Table => report::table(&mut out, &checks)?,
            Output::Json => report::document(&mut out, &checks)?,
        }
        Ok(if report::is_failed(&checks) { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }

    async fn facts(&self) -> Result<Facts> {
        let client = self.connection.client("doctor").await?;
        let server = Server::new(client.clone());
        let kinds = Kinds::new(client.clone());
        let bar = ProgressBar::hidden();
        bar.set_message("the API server");
        let work = async {
            let greeting = server.greet().await.context(
                "the API server cannot be reached: is the cluster up, the kubeconfig right, the network open?",
            )?;
            let namespace = match &self.namespace {
                Some(namespace) => namespace.clone(),
                // Who may not look there is told so by the checks.
                None => installed(&Objects::new(client))
                    .await
                    .ok()
                    .flatten()
                    .map_or_else(|| NAMESPACE.to_owned(), |found| found.namespace),
            };
            anyhow::Ok(
                Facts::gather(&server, &kinds, &namespace, greeting, |what| bar.set_message(what)).await,
            )
        };
        tokio::pin!(work);
        tokio::select! {
            facts = &mut work => return facts,
            () = tokio::time::sleep(PATIENCE) => {}
        }
        // Shows nothing where standard error is no terminal.
        bar.set_draw_target(ProgressDrawTarget::stderr());
        bar.enable_steady_tick(Duration::from_millis(100));
        let facts = work.await;
        bar.finish_and_clear();
        facts
    }
}

/// How to see what the controllers have to say, all of them: who leads is not known by name.
fn logs(namespace: &str) -> String {
    format!("kubectl -n {namespace} logs -l app.kubernetes.io/component=controller --prefix --tail=100")
}

#[cfg(test)]
mod tests;
