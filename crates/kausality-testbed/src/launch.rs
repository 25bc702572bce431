//! How a control plane comes up: files, processes in their order, and when each is ready.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, bail};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::{Api, Client};
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio::time::{sleep, timeout};

use crate::audit;
use crate::binaries::Binaries;
use crate::certificates::Certificates;
use crate::flags::{self, Site, file};
use crate::folder::Folder;
use crate::identity::{Access, Tokens, User};
use crate::process::{Group, Process, Spec};

/// How long one component may take to become ready. It takes seconds, but not on a machine that runs all tests at once.
const READY: Duration = Duration::from_secs(120);

/// How long one question whether it is ready may take.
const ANSWER: Duration = Duration::from_secs(5);

/// How long to wait between two questions.
const INTERVAL: Duration = Duration::from_millis(25);

/// Starts processes that end with a group, each with its log in one folder.
#[derive(Debug)]
pub(crate) struct Launcher {
    pub(crate) group: Arc<Group>,
    /// The command that starts a program in other namespaces. Empty where it runs in those of this process.
    within: Vec<String>,
    /// Threads in the network where the processes listen, if it is not that of this process.
    network: Option<Handle>,
    folder: PathBuf,
}

impl Launcher {
    pub(crate) fn new(group: Arc<Group>, folder: &Path) -> Self {
        Self { group, within: Vec::new(), network: None, folder: folder.to_owned() }
    }

    /// The same, in other namespaces.
    pub(crate) fn within(self, within: Vec<String>, network: Handle) -> Self {
        Self { within, network: Some(network), ..self }
    }

    pub(crate) fn start(&self, program: PathBuf, args: Vec<String>, log: &str) -> Result<Process> {
        self.start_with(program, args, log, Vec::new())
    }

    /// Starts a process with more variables in its environment.
    pub(crate) fn start_with(
        &self,
        program: PathBuf,
        args: Vec<String>,
        log: &str,
        env: Vec<(String, String)>,
    ) -> Result<Process> {
        let log = self.folder.join(log);
        Process::start(Spec { within: self.within.clone(), program, args, env, log }, &self.group)
    }

    /// Whether somebody listens on a port of loopback, where the processes are.
    async fn connect(&self, port: u16) -> Result<()> {
        let connect = TcpStream::connect((Ipv4Addr::LOCALHOST, port));
        match &self.network {
            Some(network) => network.spawn(connect).await??,
            None => connect.await?,
        };
        Ok(())
    }
}

/// The processes of a control plane.
pub(crate) struct Processes {
    pub(crate) controller_manager: Process,
    pub(crate) apiserver: Process,
    pub(crate) etcd: Process,
}

/// Writes the files that the components read.
pub(crate) fn prepare(folder: &Folder, site: Site) -> Result<Access> {
    let certificates = Certificates::generate(site.names())?;
    let tokens = Tokens::generate()?;
    folder.write(file::CA, &certificates.ca_pem)?;
    folder.write(file::CERTIFICATE, &certificates.certificate_pem)?;
    folder.write(file::KEY, &certificates.key_pem)?;
    folder.write(file::SERVICE_ACCOUNT_KEY, &certificates.service_account_key_pem)?;
    folder.write(file::SERVICE_ACCOUNT_PUBLIC, &certificates.service_account_public_pem)?;
    folder.write(file::TOKENS, tokens.csv())?;
    folder.write(file::AUDIT_POLICY, audit::POLICY)?;
    let access = Access::new(site, &certificates, tokens);
    folder.write(file::KUBECONFIG, access.kubeconfig_of(User::Admin))?;
    folder.write(file::CONTROLLERS_KUBECONFIG, access.kubeconfig_of(User::ControllerManager))?;
    Ok(access)
}

/// One component after the other, each as soon as it can be of use: kube-apiserver backs off for a second from an
/// etcd that is not there, and kube-controller-manager gives up on an API server that takes ten.
pub(crate) async fn launch(
    binaries: &Binaries,
    launcher: &Launcher,
    site: Site,
    client: &Client,
) -> Result<Processes> {
    let folder = launcher.folder.as_path();
    let mut etcd = launcher.start(binaries.etcd(), flags::etcd(folder, site), "etcd.log")?;
    listens(&mut etcd, launcher, site.etcd).await?;
    let args = flags::apiserver(folder, site);
    let mut apiserver = launcher.start(binaries.apiserver(), args, "kube-apiserver.log")?;
    // With etcd among them: the one that listens may be somebody else's, and ours about to give up.
    serves(&mut [&mut etcd, &mut apiserver], client).await?;
    let args = flags::controller_manager(folder, site);
    let mut controller_manager =
        launcher.start(binaries.controller_manager(), args, "kube-controller-manager.log")?;
    controls(&mut [&mut controller_manager, &mut apiserver, &mut etcd], client).await?;
    Ok(Processes { controller_manager, apiserver, etcd })
}

/// Waits until a process takes connections.
pub(crate) async fn listens(process: &mut Process, launcher: &Launcher, port: u16) -> Result<()> {
    ready(&mut [process], async || launcher.connect(port).await).await
}

/// Waits until the API server says that it is ready.
pub(crate) async fn serves(processes: &mut [&mut Process], client: &Client) -> Result<()> {
    let ask = async || {
        let request = http::Request::get("/readyz").body(Vec::new())?;
        client.request_text(request).await?;
        Ok(())
    };
    ready(processes, ask).await
}

/// Waits until the controllers have done something that tests need: Pods cannot be created without a service account.
async fn controls(processes: &mut [&mut Process], client: &Client) -> Result<()> {
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), "default");
    ready(processes, async || accounts.get("default").await.map(drop).map_err(Into::into)).await
}

/// Asks until the answer is yes, and fails at once if one of the processes ends.
pub(crate) async fn ready(
    processes: &mut [&mut Process],
    mut ask: impl AsyncFnMut() -> Result<()>,
) -> Result<()> {
    let begun = Instant::now();
    loop {
        for process in &mut *processes {
            process.is_running()?;
        }
        let answer =
            timeout(ANSWER, ask()).await.unwrap_or_else(|_| Err(anyhow!("no answer within {ANSWER:?}")));
        match answer {
            Ok(()) => return Ok(()),
            Err(error) if begun.elapsed() > READY => {
                let logs: String = processes.iter().map(|process| process.last_words()).collect();
                bail!("not ready after {READY:?}: {error:#}\n{logs}");
            }
            Err(_) => sleep(INTERVAL).await,
        }
    }
}
