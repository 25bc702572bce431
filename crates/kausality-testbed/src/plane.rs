//! The control plane itself.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Error, Result, anyhow, bail, ensure};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::{Api, Client};
use rustix::process::Signal;
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use crate::audit::{self, AuditEvent};
use crate::binaries::Binaries;
use crate::certificates::Certificates;
use crate::flags::{self, Ports, file};
use crate::folder::Folder;
use crate::identity::{Access, Tokens};
use crate::kubelet::Kubelet;
use crate::port::free_port;
use crate::process::{Died, Group, Process, Spec};

/// How long one component may take to become ready. It takes seconds, but not on a machine that runs all tests at once.
const READY: Duration = Duration::from_secs(120);

/// How long one question whether it is ready may take.
const ANSWER: Duration = Duration::from_secs(5);

/// How long to wait between two questions.
const INTERVAL: Duration = Duration::from_millis(25);

/// How often a start is tried when others take our ports.
const ATTEMPTS: u32 = 5;

/// A process of the control plane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Component {
    /// The store.
    Etcd,
    /// kube-apiserver.
    ApiServer,
    /// kube-controller-manager.
    ControllerManager,
}

/// A running control plane. Its processes end when it is dropped, or when the test process ends, however that happens.
pub struct ControlPlane {
    // Dropped in this order: the processes, their group, and what they write to.
    processes: Processes,
    group: Group,
    access: Access,
    binaries: Binaries,
    ports: Ports,
    startup: Duration,
    folder: Folder,
}

struct Processes {
    controller_manager: Process,
    apiserver: Process,
    etcd: Process,
}

/// How long a process may take to stop in its tracks.
const STOPPING: std::time::Duration = std::time::Duration::from_secs(10);

/// Whether every thread of a process stands still; also where nobody can tell.
fn all_stopped(pid: u32) -> bool {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return true };
    threads.flatten().all(|thread| {
        let status = std::fs::read_to_string(thread.path().join("status")).unwrap_or_default();
        let state = status.lines().find_map(|line| line.strip_prefix("State:"));
        state.is_none_or(|state| !state.trim_start().starts_with(['R', 'S', 'D']))
    })
}

impl ControlPlane {
    /// Starts a control plane, and waits until its controllers are at work.
    pub async fn start(binaries: &Binaries) -> Result<Self> {
        let mut attempt = 1;
        loop {
            match Self::attempt(binaries).await {
                Err(error) if lost_a_port(&error) && attempt < ATTEMPTS => attempt += 1,
                outcome => return outcome,
            }
        }
    }

    async fn attempt(binaries: &Binaries) -> Result<Self> {
        let begun = Instant::now();
        let mut folder = Folder::create()?;
        let ports = Ports { etcd: free_port()?, apiserver: free_port()? };
        match launch(binaries, &folder, ports).await {
            Ok(Launched { processes, group, access }) => Ok(Self {
                processes,
                group,
                access,
                binaries: binaries.clone(),
                ports,
                startup: begun.elapsed(),
                folder,
            }),
            Err(error) if lost_a_port(&error) => Err(error),
            Err(error) => {
                folder.keep();
                Err(error.context(format!("starting a control plane in {}", folder.path().display())))
            }
        }
    }

    /// Ends all processes. To drop it does the same.
    pub fn stop(self) {}

    /// A client that acts as any user, in any groups. `system:authenticated` is always among them.
    ///
    /// It impersonates: RBAC, admission and object metadata see only the user named here, and the audit log has both
    /// (see [`AuditEvent::user`]). RBAC holds, so a user may do nothing until a role is bound to it or its groups;
    /// [`MASTERS`](crate::MASTERS) may do all. Needs a tokio runtime.
    pub fn client(&self, user: &str, groups: &[&str]) -> Result<Client> {
        self.access.impersonate(user, groups)
    }

    /// A client that may do everything, as the user `testbed:admin`. Needs a tokio runtime.
    pub fn admin(&self) -> Result<Client> {
        self.access.admin()
    }

    /// The kubeconfig of the administrator.
    pub fn kubeconfig(&self) -> PathBuf {
        self.folder.file(file::KUBECONFIG)
    }

    /// A kubectl that acts as any user, in any groups, as [`client`](Self::client) does.
    pub fn kubectl(&self, user: &str, groups: &[&str]) -> Command {
        let mut command = Command::new(self.binaries.kubectl());
        command.env_remove("KUBECONFIG");
        command.arg("--kubeconfig").arg(self.kubeconfig());
        command.arg("--cache-dir").arg(self.folder.file(file::KUBECTL_CACHE));
        command.args(["--as", user]);
        command.args(groups.iter().flat_map(|group| ["--as-group", group]));
        command
    }

    /// Runs every Pod until the value that it gives is dropped.
    ///
    /// Pods become ready; those that do not restart, as of a Job, succeed; deletions are finished. Nothing is run.
    pub async fn play_kubelet(&self) -> Result<Kubelet> {
        Kubelet::start(self).await.context("playing the kubelet")
    }

    /// All calls of the API so far, oldest first, except those that are being answered.
    ///
    /// The API server writes a call down *after* it has answered: look for it with [`eventually`](crate::eventually).
    pub fn audit(&self) -> Result<Vec<AuditEvent>> {
        audit::read(&self.folder.file(file::AUDIT_LOG))
    }

    /// The URL of the API server.
    pub fn url(&self) -> &str {
        self.access.url()
    }

    /// The authority that signed the certificate of the API server.
    pub fn ca_pem(&self) -> &str {
        self.access.ca_pem()
    }

    /// What it was started from.
    pub fn binaries(&self) -> &Binaries {
        &self.binaries
    }

    /// The folder with its logs, `<component>.log`.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// How long the start took.
    pub fn startup(&self) -> Duration {
        self.startup
    }

    /// The id of a process.
    pub fn pid(&self, component: Component) -> u32 {
        self.processes.get(component).id()
    }

    /// Stops a process in its tracks: its connections stay open, and nobody answers.
    pub fn pause(&self, component: Component) -> Result<()> {
        let process = self.processes.get(component);
        process.signal(Signal::STOP)?;
        // A thread that runs on another processor stops a moment later, and may answer until then.
        let deadline = std::time::Instant::now() + STOPPING;
        while !all_stopped(self.pid(component)) {
            ensure!(std::time::Instant::now() < deadline, "{component:?} does not stop");
            std::thread::yield_now();
        }
        Ok(())
    }

    /// Lets a paused process go on.
    pub fn resume(&self, component: Component) -> Result<()> {
        self.processes.get(component).signal(Signal::CONT)
    }

    /// Kills a process, which cuts its connections, starts it again, and waits until it is ready.
    pub async fn restart(&mut self, component: Component) -> Result<()> {
        let process = self.processes.get_mut(component);
        process.restart(&self.group)?;
        match component {
            Component::Etcd => listens(process, self.ports.etcd).await,
            Component::ApiServer => serves(&mut [process], &self.access.admin()?).await,
            // What shows that controllers work is there from before.
            Component::ControllerManager => Ok(()),
        }
    }

    pub(crate) fn kubelet_log(&self) -> PathBuf {
        self.folder.file(file::KUBELET_LOG)
    }
}

impl Processes {
    fn get(&self, component: Component) -> &Process {
        match component {
            Component::Etcd => &self.etcd,
            Component::ApiServer => &self.apiserver,
            Component::ControllerManager => &self.controller_manager,
        }
    }

    fn get_mut(&mut self, component: Component) -> &mut Process {
        match component {
            Component::Etcd => &mut self.etcd,
            Component::ApiServer => &mut self.apiserver,
            Component::ControllerManager => &mut self.controller_manager,
        }
    }
}

struct Launched {
    processes: Processes,
    group: Group,
    access: Access,
}

/// One component after the other, each as soon as it can be of use: kube-apiserver backs off for a second from an
/// etcd that is not there, and kube-controller-manager gives up on an API server that takes ten.
async fn launch(binaries: &Binaries, folder: &Folder, ports: Ports) -> Result<Launched> {
    let access = prepare(folder, ports)?;
    let client = access.admin()?;
    let group = Group::start()?;
    let start =
        |program: PathBuf, args, log| Process::start(Spec { program, args, log: folder.file(log) }, &group);

    let mut etcd = start(binaries.etcd(), flags::etcd(folder.path(), ports), "etcd.log")?;
    listens(&mut etcd, ports.etcd).await?;
    let args = flags::apiserver(folder.path(), ports);
    let mut apiserver = start(binaries.apiserver(), args, "kube-apiserver.log")?;
    // With etcd among them: the one that listens may be somebody else's, and ours about to give up.
    serves(&mut [&mut etcd, &mut apiserver], &client).await?;
    let args = flags::controller_manager(folder.path());
    let mut controller_manager = start(binaries.controller_manager(), args, "kube-controller-manager.log")?;
    controls(&mut [&mut controller_manager, &mut apiserver, &mut etcd], &client).await?;
    Ok(Launched { processes: Processes { controller_manager, apiserver, etcd }, group, access })
}

/// Writes the files that the components read.
fn prepare(folder: &Folder, ports: Ports) -> Result<Access> {
    let certificates = Certificates::generate()?;
    let tokens = Tokens::generate()?;
    folder.write(file::CA, &certificates.ca_pem)?;
    folder.write(file::CERTIFICATE, &certificates.certificate_pem)?;
    folder.write(file::KEY, &certificates.key_pem)?;
    folder.write(file::SERVICE_ACCOUNT_KEY, &certificates.service_account_key_pem)?;
    folder.write(file::SERVICE_ACCOUNT_PUBLIC, &certificates.service_account_public_pem)?;
    folder.write(file::TOKENS, tokens.csv())?;
    folder.write(file::AUDIT_POLICY, audit::POLICY)?;
    let access = Access::new(ports.apiserver, &certificates, tokens);
    folder.write(file::KUBECONFIG, access.admin_kubeconfig())?;
    folder.write(file::CONTROLLERS_KUBECONFIG, access.controller_manager_kubeconfig())?;
    Ok(access)
}

/// Waits until a process takes connections.
async fn listens(process: &mut Process, port: u16) -> Result<()> {
    let ask = async || TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.map(drop).map_err(Into::into);
    ready(&mut [process], ask).await
}

/// Waits until the API server says that it is ready.
async fn serves(processes: &mut [&mut Process], client: &Client) -> Result<()> {
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
async fn ready(processes: &mut [&mut Process], mut ask: impl AsyncFnMut() -> Result<()>) -> Result<()> {
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

fn lost_a_port(error: &Error) -> bool {
    error.downcast_ref::<Died>().is_some_and(Died::lost_its_port)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;
    use crate::skip::find_or_skip;

    /// The retry in [`ControlPlane::start`] hangs on what components say when they cannot listen.
    #[tokio::test]
    async fn a_taken_port_is_told_from_other_failures() {
        let Some(binaries) = find_or_skip().await.unwrap() else { return };
        let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let taken = taken.local_addr().unwrap().port();
        for ports in [
            Ports { etcd: taken, apiserver: free_port().unwrap() },
            Ports { etcd: free_port().unwrap(), apiserver: taken },
        ] {
            let error = launch(&binaries, &Folder::create().unwrap(), ports).await.err().unwrap();
            assert!(lost_a_port(&error), "{ports:?}: {error:#}");
        }
    }

    #[tokio::test]
    async fn what_cannot_start_is_an_error_with_its_reason() {
        let Some(binaries) = find_or_skip().await.unwrap() else { return };
        let folder = Folder::create().unwrap();
        std::fs::write(folder.file("etcd"), "a file where a folder should be").unwrap();
        let ports = Ports { etcd: free_port().unwrap(), apiserver: free_port().unwrap() };
        let error = launch(&binaries, &folder, ports).await.err().unwrap();
        assert!(!lost_a_port(&error), "{error:#}");
        assert!(error.to_string().contains("etcd ended (exit status: 1). The end of "), "{error:#}");
    }
}
