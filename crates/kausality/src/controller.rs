//! `kausality controller`: keeps the webhook registered, granted and certified, and tells of drifts.

use std::{
    net::SocketAddr,
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use anyhow::Result;
use clap::{Args, ValueEnum};
use jiff::SignedDuration;
use kausality_cluster::{Clock, Cluster, ledger};
use kausality_controller::{
    Metrics,
    certificates::{Lifetimes, Wanted},
    desired::Target,
    election::Election,
    lease::Terms,
    run,
};
use kausality_report::deliver;
use kausality_webhook::Probes;
use prometheus_client::registry::Registry;
use tokio::sync::watch;

mod reports;

use reports::Reports;

use crate::{
    connect::Connection,
    reach::{NOT_REACHED, WHO, reach},
    webhook::{host_of, interrupted},
};

/// The Lease for which replicas contend.
const LEASE: &str = "kausality-controller";

/// Register the webhook for what policies name; keep its rights and its certificate; report drifts.
#[derive(Debug, Args)]
pub struct Controller {
    #[command(flatten)]
    connection: Connection,

    /// The namespace of Kausality, with the Secret, the Lease and the Service; never watched
    #[arg(long, value_name = "NAMESPACE", default_value = "kausality-system")]
    namespace: String,

    /// The Service of the webhook, in that namespace
    #[arg(long, value_name = "NAME", required_unless_present = "webhook_url")]
    service: Option<String>,

    /// The URL of the webhook, without a path: for one outside of the cluster
    #[arg(long, value_name = "URL", conflicts_with = "service")]
    webhook_url: Option<String>,

    /// The Secret with the webhook's certificate, in that namespace
    #[arg(long, value_name = "NAME", default_value = "kausality-webhook-tls")]
    tls_secret: String,

    /// Who writes that Secret
    #[arg(long, value_enum, default_value_t = Source::Own)]
    certificates: Source,

    /// How long an own CA lasts; it is replaced after two thirds of that
    #[arg(long, value_name = "TIME", default_value = "8760h")]
    ca_lifetime: SignedDuration,

    /// How long an own certificate lasts; it is replaced after two thirds of that
    #[arg(long, value_name = "TIME", default_value = "2160h")]
    certificate_lifetime: SignedDuration,

    /// How long API servers take at most to notice a CA that is in the registration, and webhooks to serve what it has signed
    #[arg(long, value_name = "TIME", default_value = "1m")]
    ca_settling: SignedDuration,

    /// The ClusterRole that owns everything made here: when it is deleted, so is the rest
    #[arg(long, value_name = "NAME")]
    anchor: Option<String>,

    /// Where to serve /healthz, /readyz and /metrics
    #[arg(long, value_name = "ADDRESS")]
    health_address: Option<SocketAddr>,

    #[command(flatten)]
    reports: Reports,
}

/// Who writes the certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Source {
    /// This controller, with a CA of its own
    Own,
    /// Somebody else, as cert-manager, with the CA in ca.crt
    External,
}

impl Controller {
    /// Runs the command until it is told to stop.
    ///
    /// # Errors
    /// If the cluster cannot be reached.
    pub fn run(&self) -> Result<ExitCode> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        runtime.block_on(self.contend())
    }

    async fn contend(&self) -> Result<ExitCode> {
        let senders = self.reports.senders()?;
        let (pooled, client) = self.connection.clients("controller").await?;
        let metrics = Metrics::default();
        let mut registry = Registry::default();
        metrics.register(&mut registry);
        let deliveries = kausality_report::Metrics::default();
        deliveries.register(&mut registry);
        let reached = Arc::new(AtomicBool::new(false));
        if let Some(address) = self.health_address {
            // One that waits for its turn is as ready as one that leads.
            let reached = reached.clone();
            let probes = Probes::new(registry, move || match reached.load(Ordering::Relaxed) {
                true => Ok(()),
                false => Err(NOT_REACHED.to_owned()),
            });
            tokio::spawn(async move {
                if let Err(error) = probes.serve(address).await {
                    tracing::error!(%error, "no probes and metrics are served");
                }
            });
        }
        let who = async || Ok(Cluster::own_user(&client).await?);
        let Some(user) = reach(WHO, who).await? else { return Ok(ExitCode::SUCCESS) };
        reached.store(true, Ordering::Relaxed);
        let me = identity();
        tracing::info!(user, me, "connected");
        let controller = run::Controller::new(client.clone(), self.settings(), metrics.clone());
        let (leading, mut led) = watch::channel(false);
        // Many small calls, each tried again: connections are worth keeping.
        let cluster = Cluster::new(pooled.clone(), client.clone(), Default::default(), Clock::default());
        let deliver = async || {
            if senders.is_empty() {
                return std::future::pending().await;
            }
            deliver::run(pooled.clone(), &senders, &deliveries).await;
        };
        let election = Election::new(client, &self.namespace, LEASE, &me, Terms::default());
        let work = async {
            loop {
                let leads = *led.borrow_and_update();
                metrics.leading(leads);
                let changed = async { led.changed().await.is_ok() };
                let goes_on = if leads {
                    tokio::select! {
                        goes_on = changed => goes_on,
                        () = controller.lead() => false,
                        () = ledger::keep::keep(cluster.clone()) => false,
                        () = deliver() => false,
                    }
                } else {
                    changed.await
                };
                if !goes_on {
                    return;
                }
            }
        };
        tokio::select! {
            () = election.run(&leading, interrupted()) => {}
            () = work => {}
        }
        Ok(ExitCode::SUCCESS)
    }

    fn settings(&self) -> run::Settings {
        let namespace = self.namespace.clone();
        let (target, hosts) = match (&self.service, &self.webhook_url) {
            (Some(name), _) => {
                let host = format!("{name}.{namespace}.svc");
                let hosts = vec![format!("{host}.cluster.local"), host];
                (Target::Service { namespace: namespace.clone(), name: name.clone() }, hosts)
            }
            (None, url) => {
                let url = url.clone().unwrap_or_default();
                let hosts = vec![host_of(&url).to_owned()];
                (Target::Url(url), hosts)
            }
        };
        let lifetimes = Lifetimes {
            authority: self.ca_lifetime,
            serving: self.certificate_lifetime,
            settling: self.ca_settling,
        };
        run::Settings {
            namespace,
            target,
            secret: self.tls_secret.clone(),
            certificates: match self.certificates {
                Source::Own => run::Source::Own(Wanted { hosts, lifetimes }),
                Source::External => run::Source::External { settling: self.ca_settling },
            },
            anchor: self.anchor.clone(),
        }
    }
}

/// A name that no other contender has: where it runs, and since when.
fn identity() -> String {
    let host = std::env::var("HOSTNAME").unwrap_or_else(|_| "kausality-controller".to_owned());
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    format!("{host}_{}_{}", std::process::id(), since.as_nanos())
}
