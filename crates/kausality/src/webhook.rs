//! `kausality webhook`: admission on a cluster.

use std::{
    net::{IpAddr, SocketAddr},
    path::PathBuf,
    process::ExitCode,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use kausality_api::policy::QuietTime;
use kausality_cluster::{
    Clock, Cluster, exceptions, ledger, policies,
    registration::{Registration, excluded},
};
use kausality_core::{Settings, authority::Authorization, exceptions::Exceptions, policy::Policies};
use kausality_webhook::{
    Admission, BadReview, Bytes, Certificates, Config, Metrics, Probes, Reply, Server, Subject,
};
use kube::Client;
use prometheus_client::registry::Registry;

use crate::{
    connect::Connection,
    live,
    mode::ModeArgument,
    reach::{NOT_REACHED, WHO, reach},
    replay::policies::{self as policy_files, Loaded},
};

mod health;
mod resources;
mod secret;
mod served;
mod transport;

use health::Watches;
use resources::Resources;
use secret::SecretName;
use served::Served;
use transport::Transport;

/// Serve admission reviews of a cluster over HTTPS.
#[derive(Debug, Args)]
pub struct Webhook {
    /// Where to listen
    #[arg(long, default_value = "0.0.0.0:9443", value_name = "ADDRESS")]
    bind_address: SocketAddr,

    /// Where to serve /healthz, /readyz and /metrics without TLS, too
    #[arg(long, value_name = "ADDRESS")]
    health_address: Option<SocketAddr>,

    /// The certificate to serve, PEM; read again when it changes. Self-signed, if not given
    #[arg(long, value_name = "FILE", requires = "tls_private_key_file")]
    tls_cert_file: Option<PathBuf>,

    /// The private key of the certificate, PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert_file")]
    tls_private_key_file: Option<PathBuf>,

    /// The Secret with the certificate to serve, followed as it changes; not ready until it is there
    #[arg(long, value_name = "NAMESPACE/NAME", conflicts_with = "tls_cert_file")]
    tls_secret: Option<SecretName>,

    #[command(flatten)]
    transport: Transport,

    #[command(flatten)]
    connection: Connection,

    /// The mode where no annotation or policy says another
    #[arg(long, value_enum, default_value_t = ModeArgument::Log)]
    default_mode: ModeArgument,

    /// How long a parent must have been in steady state, with no change to its children, before a change counts as drift,
    /// where no policy says otherwise
    #[arg(long, default_value_t, value_name = "DURATION")]
    quiet_time: QuietTime,

    /// Who may approve, reject, freeze and snooze: whoever may write the object, or only those who have the verb `approve` on
    /// drifts.kausality.io beside that
    #[arg(long, value_enum, default_value_t)]
    approval_authorization: ApprovalAuthorization,

    /// A file of policies, YAML or JSON, that hold beside those of the cluster
    #[arg(long, value_name = "FILE")]
    policy: Vec<PathBuf>,

    /// Resources to watch, as kubectl names them: deployments.apps, pods, nodepools.example.com
    #[arg(long, value_name = "RESOURCE", value_delimiter = ',')]
    resources: Vec<String>,

    /// Register with the API server for these resources, and take that back at the end: for local use
    #[arg(long, requires = "resources")]
    register: bool,

    /// The URL under which the API server reaches this webhook [default: the address it listens on]
    #[arg(long, value_name = "URL", requires = "register")]
    url: Option<String>,

    /// What becomes of requests while the webhook does not answer [default: Fail in enforce mode, Ignore in log mode]
    #[arg(long, value_enum, requires = "register")]
    failure_policy: Option<FailurePolicy>,

    /// The CA that signed the certificate, PEM, for the API server to trust it when registering
    #[arg(long, value_name = "FILE", requires = "register")]
    ca_bundle_file: Option<PathBuf>,

    /// Namespaces to leave alone when registering, beside those with the label kausality.io/exclude
    #[arg(long, value_name = "NAMESPACE", value_delimiter = ',', default_values = excluded::names())]
    exclude_namespaces: Vec<String>,

    /// How long requests are served on after the signal to stop, so that clients can look elsewhere
    #[arg(long, value_name = "SECONDS", default_value_t = 5)]
    shutdown_delay: u64,
}

/// Who may decide about drifts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum ApprovalAuthorization {
    /// Whoever may write the object
    #[default]
    None,
    /// Only those who may `approve` drifts in its namespace
    Rbac,
}

impl From<ApprovalAuthorization> for Authorization {
    fn from(authorization: ApprovalAuthorization) -> Self {
        match authorization {
            ApprovalAuthorization::None => Self::None,
            ApprovalAuthorization::Rbac => Self::Rbac,
        }
    }
}

/// Who answers within this time has nobody wait.
const AT_ONCE: Duration = Duration::from_secs(1);

/// How long the last records may take at the end.
const FLUSH_DEADLINE: Duration = Duration::from_secs(5);

/// As Kubernetes writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FailurePolicy {
    /// They fail
    #[value(name = "Fail")]
    Fail,
    /// They pass
    #[value(name = "Ignore")]
    Ignore,
}

impl Webhook {
    /// Runs the command until it is told to stop.
    ///
    /// # Errors
    /// If the cluster cannot be reached, or the address not listened on.
    pub fn run(&self) -> Result<ExitCode> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        runtime.block_on(self.serve())
    }

    async fn serve(&self) -> Result<ExitCode> {
        let (client, fresh) = self.connection.clients("webhook").await?;
        let Loaded { policies: fixed, exceptions: excepted } = policy_files::load(&self.policy)?;
        let certificates = self.certificates()?;
        let Some((own_user, salt)) = self.introduce(&client).await? else { return Ok(ExitCode::SUCCESS) };
        tracing::info!(own_user, "connected");
        let settings = Settings {
            own_users: [own_user].into(),
            default_mode: self.default_mode.into(),
            quiet_time: self.quiet_time.0,
            policies: Policies::new(fixed.clone()),
            exceptions: Arc::new(Exceptions::new(&excepted)),
            salt,
            authorization: self.approval_authorization.into(),
        };
        if let Some(secret) = &self.tls_secret {
            tokio::spawn(secret.clone().follow(fresh.clone(), certificates.clone()));
        }
        let cluster = Cluster::new(client.clone(), fresh, settings, Clock::default());
        let resources = Resources::new(&self.resources, cluster.clone());
        let kinds = reach("cannot tell what the API server serves.", async || Ok(resources.kinds().await?));
        let Some(kinds) = kinds.await? else { return Ok(ExitCode::SUCCESS) };
        kinds.iter().for_each(|kind| resources.require(kind));
        tokio::spawn(policies::follow(cluster.clone(), fixed));
        tokio::spawn(exceptions::follow(cluster.clone(), excepted));
        tokio::spawn(cluster.clone().record());
        if let Some(secret) = &self.tls_secret {
            tokio::spawn(cluster.clone().share_inputs(secret.namespace().to_owned()));
        }
        tokio::spawn(cluster.clone().follow_salt(self.salt_namespace(&client).to_owned()));
        tokio::spawn(cluster.clone().keep_ledger());

        let ca_pem = match &self.ca_bundle_file {
            Some(file) => Some(
                std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?,
            ),
            None => certificates.ca_pem().map(ToOwned::to_owned),
        };
        let mut config = Config::new(self.bind_address, certificates.clone());
        config.drain_delay = Duration::from_secs(self.shutdown_delay);
        config.health_address = self.health_address;
        self.transport.apply(self.url.as_deref(), &mut config)?;
        if config.clients.are_anybody() {
            cluster.doubt_reviews();
        }
        let mut registry = Registry::default();
        registry.register_collector(Box::new(Watches(cluster.clone())));
        registry.register_collector(Box::new(Served {
            cluster: cluster.clone(),
            certificates: certificates.clone(),
        }));
        let metrics = Metrics::new(registry);
        let server = Server::new(config, OnCluster(cluster.clone()), metrics).listen().await?;
        let address = server.address();
        tracing::info!(%address, "listening");

        if self.register {
            // No controller is there to do it.
            tokio::spawn(ledger::keep::keep(cluster.clone()));
        }
        let mut registration = Registration {
            name: "kausality".to_owned(),
            url: self.url.clone().unwrap_or_else(|| format!("https://{}/admit", reachable(address))),
            ca_pem,
            kinds: Vec::new(),
            parents: Vec::new(),
            fail_closed: match self.failure_policy {
                Some(policy) => policy == FailurePolicy::Fail,
                None => matches!(self.default_mode, ModeArgument::Enforce),
            },
            excluded_namespaces: self.exclude_namespaces.clone(),
        };
        let stop = async {
            if !self.register {
                return interrupted().await;
            }
            tokio::select! {
                () = interrupted() => {}
                () = resources.keep_registered(&mut registration, client.clone()) => {}
            }
            if let Err(error) = in_time(registration.remove(client.clone())).await {
                tracing::error!(%error, "the registration could not be taken back: delete \
                    mutatingwebhookconfiguration/kausality by hand");
            }
        };
        server.run(stop).await;
        cluster.flush(FLUSH_DEADLINE).await;
        Ok(ExitCode::SUCCESS)
    }

    /// Who we are, and the salt of digests: what the API server must say before anything can be decided. Probes are
    /// answered meanwhile, so that nobody takes a webhook that waits for one that hangs.
    async fn introduce(&self, client: &Client) -> Result<Option<(String, Vec<u8>)>> {
        let ask = async || Ok((Cluster::own_user(client).await?, self.salt(client).await?));
        let reached = reach(WHO, ask);
        // Where any port will do, nobody knows yet which.
        let Some(address) = self.health_address.filter(|address| address.port() != 0) else {
            return reached.await;
        };
        let probes = async {
            tokio::time::sleep(AT_ONCE).await;
            Probes::new(Registry::default(), || Err(NOT_REACHED.to_owned())).serve(address).await
        };
        tokio::select! {
            reached = reached => reached,
            failed = probes => failed.map(|()| None).map_err(Into::into),
        }
    }

    /// The salt of the installation. Until the controller has made it, one of our own stands in; where there is no controller, it
    /// is kept, so that digests can be compared after a restart.
    async fn salt(&self, client: &Client) -> Result<Vec<u8>, kube::Error> {
        let (own, namespace) = (live::salt(), self.salt_namespace(client));
        let found = match &self.tls_secret {
            Some(_) => Cluster::salt(client, namespace).await?,
            None => Cluster::make_salt(client, namespace, &own).await?,
        };
        Ok(found.or_own(namespace, own))
    }

    /// That of Kausality, or else of the Pod, or of the context.
    fn salt_namespace<'a>(&'a self, client: &'a Client) -> &'a str {
        self.tls_secret.as_ref().map_or(client.default_namespace(), SecretName::namespace)
    }

    fn certificates(&self) -> Result<Certificates> {
        if let (Some(cert), Some(key)) = (&self.tls_cert_file, &self.tls_private_key_file) {
            return Ok(Certificates::from_files(cert, key)?);
        }
        if let Some(secret) = &self.tls_secret {
            return Ok(Certificates::handed_over(&secret.to_string()));
        }
        if self.url.is_none() && self.register && !self.bind_address.ip().is_loopback() {
            bail!(
                "with --register and no certificate, listen on a loopback address (--bind-address 127.0.0.1:9443) or give --url"
            );
        }
        let host = self.url.as_deref().map(host_of);
        let mut names = vec!["localhost".to_owned()];
        let mut addresses = vec![self.bind_address.ip(), IpAddr::from([127, 0, 0, 1])];
        match host.map(str::parse::<IpAddr>) {
            Some(Ok(address)) => addresses.push(address),
            Some(Err(_)) => names.extend(host.map(ToOwned::to_owned)),
            None => {}
        }
        Ok(Certificates::self_signed(&names, &addresses)?)
    }
}

/// How long the API server may take to answer when nobody else waits.
const PATIENCE: Duration = Duration::from_secs(10);

pub(crate) async fn in_time<T>(answer: impl Future<Output = Result<T, kube::Error>>) -> Result<T> {
    let answer = tokio::time::timeout(PATIENCE, answer).await;
    Ok(answer.with_context(|| format!("no answer within {} s", PATIENCE.as_secs()))??)
}

/// Waits for the signal to stop: an interrupt, a termination, or the end of the terminal.
pub(crate) async fn interrupted() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let (Ok(mut terminate), Ok(mut hangup)) = (signal(SignalKind::terminate()), hangup()) {
            tokio::select! {
                _ = terminate.recv() => {}
                () = hangup.received() => {}
                _ = tokio::signal::ctrl_c() => {}
            }
            return;
        }
    }
    let _ = tokio::signal::ctrl_c().await;
}

/// The end of the terminal, unless whoever started us wants us to outlive it (`nohup`).
#[cfg(unix)]
struct Hangup(Option<tokio::signal::unix::Signal>);

#[cfg(unix)]
impl Hangup {
    async fn received(&mut self) {
        match &mut self.0 {
            Some(signal) => _ = signal.recv().await,
            None => std::future::pending().await,
        }
    }
}

#[cfg(unix)]
fn hangup() -> std::io::Result<Hangup> {
    use tokio::signal::unix::{SignalKind, signal};
    // Listening for a signal ends that it is ignored. Only Linux tells what is.
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|set| u64::from_str_radix(set.trim(), 16).ok()).unwrap_or(0);
    // SIGHUP is the first.
    if ignored & 1 == 1 { Ok(Hangup(None)) } else { signal(SignalKind::hangup()).map(|it| Hangup(Some(it))) }
}

fn reachable(address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() { SocketAddr::from(([127, 0, 0, 1], address.port())) } else { address }
}

pub(crate) fn host_of(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let rest = rest.split('/').next().unwrap_or_default();
    rest.rsplit_once(':').map_or(rest, |(host, _)| host)
}

/// Decides on a cluster.
pub(crate) struct OnCluster(pub(crate) Arc<Cluster>);

impl Admission for OnCluster {
    async fn decide(&self, review: Bytes, until: Instant) -> Result<Reply, BadReview> {
        // In a place of its own: what is handed from layer to layer stays small.
        let admitted = Box::pin(self.0.admit(&review, until.into(), |request| Subject::from(request)));
        let (subject, decision) = admitted.await?;
        Ok(Reply { subject, decision })
    }

    async fn decisions(&self, review: Bytes, until: Instant) -> Result<Reply, BadReview> {
        let (subject, decision) =
            self.0.decisions(&review, until.into(), |request| Subject::from(request)).await?;
        Ok(Reply { subject, decision })
    }

    async fn observe(&self, review: Bytes, _until: Instant) -> Result<Reply, BadReview> {
        let (subject, decision) = self.0.observe(&review, |request| Subject::from(request))?;
        Ok(Reply { subject, decision })
    }

    fn room_for(&self, policy: &str) -> usize {
        self.0.room_for(policy)
    }

    fn is_ready(&self) -> bool {
        self.0.is_synced()
    }
}
