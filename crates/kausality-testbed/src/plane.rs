//! The control plane itself.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Error, Result, ensure};
use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::PostParams;
use kube::{Api, Client};
use rustix::process::Signal;

use crate::audit::{self, AuditEvent, AuditTail};
use crate::binaries::Binaries;
use crate::flags::{Site, file};
use crate::folder::Folder;
use crate::identity::Access;
use crate::kubelet::Kubelet;
use crate::launch::{self, Launcher, Processes};
use crate::port::free_port;
use crate::process::{Died, Group, Process, Spec};
use crate::program::Program;

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
    launcher: Launcher,
    access: Access,
    binaries: Binaries,
    site: Site,
    startup: Duration,
    folder: Folder,
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
        let site = Site { address: Ipv4Addr::LOCALHOST, etcd: free_port()?, apiserver: free_port()? };
        match launch(binaries, &folder, site).await {
            Ok((processes, launcher, access)) => Ok(Self {
                processes,
                launcher,
                access,
                binaries: binaries.clone(),
                site,
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

    /// Makes a token for a ServiceAccount that exists, and gives a kubeconfig with it. The token holds for an hour.
    pub async fn service_account_kubeconfig(&self, namespace: &str, name: &str) -> Result<PathBuf> {
        let accounts: Api<ServiceAccount> = Api::namespaced(self.admin()?, namespace);
        let answer = accounts
            .create_token_request(name, &PostParams::default(), &TokenRequest::default())
            .await
            .with_context(|| format!("requesting a token for {namespace}/{name}"))?;
        let status = answer.status.with_context(|| format!("no token was issued for {namespace}/{name}"))?;
        self.folder.write(&format!("{namespace}.{name}.kubeconfig"), self.access.kubeconfig(&status.token))
    }

    /// Runs a program beside the control plane until the value that it gives is dropped. Its log is in the folder of
    /// the control plane, `<program>.log`.
    pub fn run(&self, program: &Path, args: &[&str]) -> Result<Program> {
        self.run_with(&[], program, args)
    }

    /// Like [`run`](Self::run), with variables beside those of this process.
    pub fn run_with(&self, env: &[(&str, &str)], program: &Path, args: &[&str]) -> Result<Program> {
        let name = program.file_name().with_context(|| format!("{} is not a program", program.display()))?;
        let log = self.folder.file(&format!("{}.log", name.to_string_lossy()));
        let args = args.iter().map(|arg| (*arg).to_owned()).collect();
        let env = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let spec = Spec { program: program.to_path_buf(), args, env, log, ..Spec::default() };
        Process::start(spec, &self.launcher.group).map(Program::new)
    }

    /// All calls of the API so far, oldest first, except those that are being answered.
    ///
    /// The API server writes a call down *after* it has answered: look for it with [`eventually`](crate::eventually).
    pub fn audit(&self) -> Result<Vec<AuditEvent>> {
        audit::read(&self.folder.file(file::AUDIT_LOG))
    }

    /// The calls of the API from now on, for who looks often.
    pub fn audit_tail(&self) -> Result<AuditTail> {
        AuditTail::new(self.folder.file(file::AUDIT_LOG))
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
        let log = self.folder.file(file::AUDIT_LOG);
        process.restart(&self.launcher.group, || match component {
            Component::ApiServer => audit::drop_torn_line(&log),
            Component::Etcd | Component::ControllerManager => Ok(()),
        })?;
        match component {
            Component::Etcd => launch::listens(process, &self.launcher, self.site.etcd).await,
            Component::ApiServer => launch::serves(&mut [process], &self.access.admin()?).await,
            // What shows that controllers work is there from before.
            Component::ControllerManager => Ok(()),
        }
    }

    /// Like [`restart`](Self::restart), with more flags from then on.
    pub async fn restart_with(&mut self, component: Component, flags: &[&str]) -> Result<()> {
        self.processes.get_mut(component).add_args(flags);
        self.restart(component).await
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

async fn launch(binaries: &Binaries, folder: &Folder, site: Site) -> Result<(Processes, Launcher, Access)> {
    let access = launch::prepare(folder, site)?;
    let launcher = Launcher::new(Arc::new(Group::start()?), folder.path());
    let processes = launch::launch(binaries, &launcher, site, &access.admin()?).await?;
    Ok((processes, launcher, access))
}

fn lost_a_port(error: &Error) -> bool {
    error.downcast_ref::<Died>().is_some_and(Died::lost_its_port)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;
    use crate::skip::find_or_skip;

    fn site((etcd, apiserver): (u16, u16)) -> Site {
        Site { address: Ipv4Addr::LOCALHOST, etcd, apiserver }
    }

    /// The retry in [`ControlPlane::start`] hangs on what components say when they cannot listen.
    #[tokio::test]
    async fn a_taken_port_is_told_from_other_failures() {
        let Some(binaries) = find_or_skip().await.unwrap() else { return };
        let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let taken = taken.local_addr().unwrap().port();
        for ports in [(taken, free_port().unwrap()), (free_port().unwrap(), taken)] {
            let site = site(ports);
            let error = launch(&binaries, &Folder::create().unwrap(), site).await.err().unwrap();
            assert!(lost_a_port(&error), "{site:?}: {error:#}");
        }
    }

    #[tokio::test]
    async fn what_cannot_start_is_an_error_with_its_reason() {
        let Some(binaries) = find_or_skip().await.unwrap() else { return };
        let folder = Folder::create().unwrap();
        std::fs::write(folder.file("etcd"), "a file where a folder should be").unwrap();
        let site = site((free_port().unwrap(), free_port().unwrap()));
        let error = launch(&binaries, &folder, site).await.err().unwrap();
        assert!(!lost_a_port(&error), "{error:#}");
        assert!(error.to_string().contains("etcd ended (exit status: 1). The end of "), "{error:#}");
    }
}
