//! A control plane in this process, with Kausality in its admission: as a library, without a webhook and a network; or as a
//! webhook beside it, as on a cluster.

use std::{sync::Arc, time::Duration};

use anyhow::{Context, Result};
use clap::ValueEnum;
use futures::{FutureExt, future::BoxFuture};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kausality_api::{GROUP, mode::Mode, policy::QuietTime};
use kausality_cluster::{
    Clock, Cluster, exceptions, ledger, policies,
    registration::{OF_DECISIONS, OF_POLICIES, POLICIES, WEBHOOK, excluded},
};
use kausality_core::{Decision, Settings, decision::Verdict, written::Written};
use kausality_sandbox::{Admission, Running, Sandbox, User, Write, controllers::standard};
use kausality_webhook::Bytes;
use kube::{Api, Client, api::PostParams};
use tokio::time::Instant;

use crate::live;

mod webhook;

/// Who Kausality is in the sandbox.
const SELF: &str = "kausality";

/// How long a decision may take.
const DEADLINE: Duration = Duration::from_secs(8);

/// A sandbox with controllers and Kausality. All of it ends when this is dropped.
pub struct Embedded {
    /// The control plane.
    pub sandbox: Sandbox,
    _running: Running,
    _beside: Option<webhook::Beside>,
}

/// How it is set up.
#[derive(Clone, Copy, Debug, Default)]
pub struct Setup {
    /// The mode where nothing says another.
    pub default_mode: Mode,
    /// For how long a parent must have been quiet to count as settled.
    pub quiet_time: QuietTime,
    /// How Kausality is asked.
    pub admission: Way,
    /// Whether users may do only what roles allow them.
    pub rbac: bool,
}

/// How Kausality is asked about writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Way {
    /// As a library, in the process of the API server
    #[default]
    Library,
    /// As a webhook over HTTPS, as on a cluster
    Webhook,
}

impl Embedded {
    /// Starts everything, with Kausality as a library.
    ///
    /// # Errors
    /// If the sandbox does not answer.
    pub async fn start(default_mode: Mode, quiet_time: QuietTime) -> Result<Self> {
        Self::set_up(Setup { default_mode, quiet_time, ..Setup::default() }).await
    }

    /// Starts everything.
    ///
    /// # Errors
    /// If the sandbox does not answer, or the webhook cannot be served.
    pub async fn set_up(setup: Setup) -> Result<Self> {
        let sandbox = Sandbox::builder().rbac(setup.rbac).build();
        let beside = match setup.admission {
            Way::Library => {
                embed(&sandbox, setup.default_mode, setup.quiet_time).await?;
                None
            }
            Way::Webhook => {
                let (served, client, fresh) = webhook::connect(&sandbox).await?;
                let cluster = cluster(&client, fresh, setup.default_mode, setup.quiet_time).await?;
                Some(webhook::Beside::start(served, client, cluster, setup.default_mode).await?)
            }
        };
        let running = sandbox.run(standard());
        Ok(Self { sandbox, _running: running, _beside: beside })
    }
}

/// What Kausality knows of the sandbox, once it does.
async fn cluster(
    client: &Client,
    fresh: Client,
    default_mode: Mode,
    quiet_time: QuietTime,
) -> Result<Arc<Cluster>> {
    let settings = Settings {
        own_users: [SELF.to_owned()].into(),
        default_mode,
        quiet_time: quiet_time.0,
        // It ends with the sandbox.
        salt: live::salt(),
        ..Settings::default()
    };
    define(client).await?;
    let cluster = Cluster::new(client.clone(), fresh, settings, Clock::default());
    tokio::spawn(policies::follow(cluster.clone(), Vec::new()));
    tokio::spawn(exceptions::follow(cluster.clone(), Vec::new()));
    tokio::spawn(cluster.clone().record());
    tokio::spawn(cluster.clone().keep_ledger());
    tokio::spawn(ledger::keep::keep(cluster.clone()));
    let mut ticks = tokio::time::interval(Duration::from_millis(5));
    while !cluster.is_synced() {
        ticks.tick().await;
    }
    Ok(cluster)
}

/// Defines Kausality's own kinds.
async fn define(client: &Client) -> Result<()> {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    for (_, definition) in kausality_api::crd::all() {
        match definitions.create(&PostParams::default(), &serde_json::from_value(definition)?).await {
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            defined => drop(defined.context("the sandbox does not take Kausality's own kinds")?),
        }
    }
    Ok(())
}

/// Whether a group is one of custom resources that are looked at.
fn is_custom(group: &str) -> bool {
    group.contains('.') && !group.ends_with(".k8s.io") && group != GROUP
}

fn is_excluded(namespace: &str) -> bool {
    excluded::names().any(|excluded| excluded == namespace)
}

/// Puts Kausality into the admission of a sandbox.
///
/// # Errors
/// If the sandbox does not answer.
pub async fn embed(sandbox: &Sandbox, default_mode: Mode, quiet_time: QuietTime) -> Result<()> {
    let client = sandbox.client(&User::admin(SELF));
    let cluster = cluster(&client, client.clone(), default_mode, quiet_time).await?;
    sandbox.add_admission(Arc::new(Decisions(Gate(cluster.clone()))));
    sandbox.add_admission(Arc::new(Gate(cluster)));
    sandbox.add_admission(Arc::new(Policies));
    Ok(())
}

/// Kausality, asked directly.
struct Gate(Arc<Cluster>);

impl Admission for Gate {
    fn name(&self) -> &str {
        WEBHOOK
    }

    /// Workloads, configuration and custom resources. Pods are left alone: a ReplicaSet that replaces one heals itself.
    fn matches(&self, write: &Write<'_>) -> bool {
        let kind = match write.group {
            "" => matches!(write.resource, "configmaps" | "secrets" | "services"),
            "apps" | "batch" => true,
            group => is_custom(group),
        };
        kind && !is_excluded(write.namespace) && matches!(write.subresource, "" | "status" | "scale")
    }

    fn review(&self, review: Bytes) -> BoxFuture<'_, Result<kausality_sandbox::Verdict, String>> {
        async move {
            let decided = self.0.admit(&review, Instant::now() + DEADLINE, |_| ()).await;
            let ((), decision) = decided.map_err(|error| error.to_string())?;
            verdict(&decision)
        }
        .boxed()
    }
}

/// Looks at decisions about drifts on what is not looked at otherwise.
struct Decisions(Gate);

impl Admission for Decisions {
    fn name(&self) -> &str {
        OF_DECISIONS
    }

    fn matches(&self, write: &Write<'_>) -> bool {
        let changes = matches!(write.operation, "CREATE" | "UPDATE" | "DELETE");
        changes
            && !is_excluded(write.namespace)
            && matches!(write.subresource, "" | "status")
            && !self.0.matches(write)
    }

    fn review(&self, review: Bytes) -> BoxFuture<'_, Result<kausality_sandbox::Verdict, String>> {
        async move {
            let decided = self.0.0.decisions(&review, Instant::now() + DEADLINE, |_| ()).await;
            let ((), decision) = decided.map_err(|error| error.to_string())?;
            verdict(&decision)
        }
        .boxed()
    }
}

/// Looks at policies as they are written.
struct Policies;

impl Admission for Policies {
    fn name(&self) -> &str {
        OF_POLICIES
    }

    fn matches(&self, write: &Write<'_>) -> bool {
        write.group == GROUP && POLICIES.contains(&write.resource) && write.subresource.is_empty()
    }

    fn review(&self, review: Bytes) -> BoxFuture<'_, Result<kausality_sandbox::Verdict, String>> {
        async move {
            let written = Written::parse(&review).map_err(|error| error.to_string())?;
            Ok(match written.fault() {
                None => kausality_sandbox::Verdict::allow(),
                Some(fault) => kausality_sandbox::Verdict {
                    reason: "Invalid".to_owned(),
                    ..kausality_sandbox::Verdict::deny(422, format!("the policy is refused: {fault}"))
                },
            })
        }
        .boxed()
    }
}

fn verdict(decision: &Decision) -> Result<kausality_sandbox::Verdict, String> {
    let mut verdict = match &decision.verdict {
        Verdict::Allow | Verdict::Warn => kausality_sandbox::Verdict::allow(),
        Verdict::Deny(denial) => kausality_sandbox::Verdict {
            reason: denial.reason.to_owned(),
            ..kausality_sandbox::Verdict::deny(denial.code, denial.message.clone())
        },
    };
    if !decision.patch.is_empty() {
        let patch = serde_json::to_value(decision.patch.operations());
        verdict.patch = Some(patch.map_err(|error| error.to_string())?);
    }
    verdict.warnings.clone_from(&decision.warnings);
    verdict.audit = decision.audit.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
    Ok(verdict)
}
