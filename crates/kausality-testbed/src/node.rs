//! A real node: containers run, Services have addresses, probes are asked.
//!
//! ```text
//!  Node ── namespaces of its own: network, mounts, processes, host name
//!   ├─ etcd, kube-apiserver, kube-controller-manager, kube-scheduler     10.99.0.1
//!   ├─ containerd, kubelet, kube-proxy (nftables)
//!   └─ Pods                                                             10.88.0.0/24, Services 10.0.0.0/24
//! ```
//!
//! It has namespaces of its own for three reasons: kubelet refuses an address on loopback, endpoints may not be on
//! loopback, and the rules of kube-proxy must not touch the host. There is one node, no DNS, no registry and no way out.
//!
//! | module | what it knows |
//! |---|---|
//! | [`machine`] | the namespaces, and how to run something in them |
//! | [`cgroup`] | the control groups that containers run in |
//! | [`network`] | clients of this process that connect from within |
//! | [`programs`] | where the programs are |
//! | [`config`] | the configuration of containerd, kubelet and kube-proxy |
//! | [`power`] | how it ends without a word, to be started again on the same data |

mod cgroup;
mod config;
mod machine;
mod network;
mod power;
mod programs;
mod skip;

use std::io::ErrorKind;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use k8s_openapi::api::core::v1 as core;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{Api, Client};
use tokio::sync::Mutex;

use crate::audit::{self, AuditEvent};
use crate::binaries::Binaries;
use crate::flags::{self, Site, file};
use crate::folder::Folder;
use crate::identity::{Access, NODE, User};
use crate::launch::{self, Launcher};
use crate::process::{Group, Process};
use crate::xtask::xtask;

use cgroup::Cgroup;
use machine::Machine;
use network::Network;
pub use power::Outage;
pub use programs::NodePrograms;
pub use skip::node_or_skip;

/// Where the node's control plane listens: in a network namespace all ports are free.
const SITE: Site = Site { address: Ipv4Addr::new(10, 99, 0, 1), etcd: 2379, apiserver: 6443 };

/// A running node with its control plane. Everything ends when it is dropped, or when the test process ends, however that
/// happens. After a SIGKILL, empty control groups are left, which the next node removes.
pub struct Node {
    // Dropped in this order: processes before their namespaces, those before the control groups that they are in, and all
    // of them before the files that they write.
    running: Mutex<Running>,
    network: Network,
    machine: Machine,
    inside: Inside,
    cgroup: Cgroup,
    access: Access,
    startup: Duration,
    folder: Folder,
}

impl Node {
    /// Starts a node, and waits until it is ready. Only root can.
    pub async fn start(binaries: &Binaries, programs: &NodePrograms) -> Result<Self> {
        let mut folder = Folder::create()?;
        let path = folder.path().to_owned();
        match Self::start_in(&folder, binaries, programs).await {
            Ok(Started { running, network, machine, inside, cgroup, access, startup }) => {
                let running = Mutex::new(running);
                let node = Self { running, network, machine, inside, cgroup, access, startup, folder };
                // Without it, no Pod starts.
                node.load(&programs.pause(), config::PAUSE).await?;
                Ok(node)
            }
            Err(error) => {
                folder.keep();
                Err(error.context(format!("starting a node in {}", path.display())))
            }
        }
    }

    async fn start_in(folder: &Folder, binaries: &Binaries, programs: &NodePrograms) -> Result<Started> {
        let begun = Instant::now();
        let access = launch::prepare(folder, SITE)?;
        folder.write(file::SCHEDULER_KUBECONFIG, access.kubeconfig_of(User::Scheduler))?;
        folder.write(file::KUBELET_KUBECONFIG, access.kubeconfig_of(User::Kubelet))?;
        folder.write(file::PROXY_KUBECONFIG, access.kubeconfig_of(User::Proxy))?;
        // Declared in the order in which they are needed: where the start fails, they are dropped in the reverse one.
        let cgroup = Cgroup::create()?;
        config::write(folder, programs, &cgroup)?;
        let group = Arc::new(Group::start()?);
        let machine = Machine::start(folder, &group, &programs.pause(), SITE.address, NODE).await?;
        let network = Network::of(&machine)?;
        let launcher =
            Launcher::new(Arc::clone(&group), folder.path()).within(machine.entry(), network.handle());
        let client = network.client(|| access.admin())?;
        let socket = machine.file(config::SOCKET);
        let (binaries, programs) = (binaries.clone(), programs.clone());
        let inside =
            Inside { launcher, folder: folder.path().to_owned(), binaries, programs, client, socket };
        let mut running = Running::default();
        inside.start(&mut running).await?;
        Ok(Started { running, network, machine, inside, cgroup, access, startup: begun.elapsed() })
    }

    /// Ends everything. To drop it does the same.
    pub fn stop(self) {}

    /// Ends processes as a power loss does: at once, and without a word to anybody. Files stay, and so do mounts, network
    /// interfaces and control groups.
    pub async fn lose_power(&self, outage: Outage) -> Result<()> {
        let mut running = self.running.lock().await;
        let worker = running.worker.take();
        let plane = running.plane.take_if(|_| outage == Outage::Everything);
        let mut roots: Vec<u32> = plane.iter().flat_map(Plane::ids).collect();
        roots.extend(worker.iter().flat_map(Worker::ids));
        // What nobody waits for is below the first process, as are containers.
        roots.push(self.machine.id());
        power::kill_below(&roots).context("taking the power of a node")?;
        match std::fs::remove_file(&self.inside.socket) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(error).context("removing a socket");
            }
            _ => {}
        }
        if plane.is_some() {
            audit::drop_torn_line(&self.folder.file(file::AUDIT_LOG))?;
        }
        Ok(())
    }

    /// Starts again what lost its power, on the same data, and waits until the API server answers and the node is ready.
    /// Containers may take longer.
    pub async fn restore_power(&self) -> Result<()> {
        let mut running = self.running.lock().await;
        self.inside.start(&mut running).await.context("starting a node again after a power loss")
    }

    /// The folder whose manifests the kubelet runs without being told by anybody.
    pub fn static_pods(&self) -> PathBuf {
        self.folder.file(config::STATIC_PODS)
    }

    /// A client that acts as any user, in any groups, as [`ControlPlane::client`](crate::ControlPlane::client) does. It
    /// connects from within the node.
    pub fn client(&self, user: &str, groups: &[&str]) -> Result<Client> {
        self.network.client(|| self.access.impersonate(user, groups))
    }

    /// A client that may do everything, as the user `testbed:admin`.
    pub fn admin(&self) -> Result<Client> {
        self.network.client(|| self.access.admin())
    }

    /// A command that runs on the node. `KUBECONFIG` is the administrator's, and `HOME` is the node's folder. The working
    /// directory is the root of the file system, so pass absolute paths.
    pub fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut words = self.machine.entry().into_iter();
        let mut command = Command::new(words.next().unwrap_or_default());
        command.args(words).arg(program.as_ref());
        command.envs(self.inside.programs.environment());
        command.env("KUBECONFIG", self.kubeconfig()).env("HOME", self.folder.path());
        command.env_remove("XDG_CACHE_HOME");
        command
    }

    /// A kubectl that acts as any user, in any groups.
    pub fn kubectl(&self, user: &str, groups: &[&str]) -> Command {
        let mut command = self.command(self.inside.binaries.kubectl());
        command.args(["--as", user]);
        command.args(groups.iter().flat_map(|group| ["--as-group", group]));
        command
    }

    /// Makes an image of a binary, with `cargo xtask image`, and loads it. `name` is a repository and a tag.
    pub async fn load(&self, binary: &Path, name: &str) -> Result<()> {
        let archive = self.folder.file("image.tar");
        let mut make = xtask();
        make.args(["image", "--tag", name, "--binary"]).arg(binary).arg("--output").arg(&archive);
        run(make).await.with_context(|| format!("making an image of {}", binary.display()))?;
        let mut import = self.command(self.inside.programs.ctr());
        import.args(["--namespace", "k8s.io", "images", "import"]).arg(&archive);
        run(import).await.with_context(|| format!("loading the image {name}"))?;
        // It is in the store of containerd now, and may be large.
        std::fs::remove_file(&archive).with_context(|| format!("removing {}", archive.display()))
    }

    /// The processes of a container, by its id without `containerd://`, as this machine knows them.
    pub fn processes_of(&self, container: &str) -> Result<Vec<u32>> {
        self.cgroup.processes_of(container)
    }

    /// The control group that all containers are below, as kubelet names it.
    pub fn control_group(&self) -> String {
        self.cgroup.path()
    }

    /// All calls of the API so far, as [`ControlPlane::audit`](crate::ControlPlane::audit) gives them.
    pub fn audit(&self) -> Result<Vec<AuditEvent>> {
        audit::read(&self.folder.file(file::AUDIT_LOG))
    }

    /// The kubeconfig of the administrator, which works on the node only.
    pub fn kubeconfig(&self) -> PathBuf {
        self.folder.file(file::KUBECONFIG)
    }

    /// What its control plane was started from.
    pub fn binaries(&self) -> &Binaries {
        &self.inside.binaries
    }

    /// What the rest of it was started from.
    pub fn programs(&self) -> &NodePrograms {
        &self.inside.programs
    }

    /// The folder with its logs: `<component>.log`, and those of containers in `var/log/pods`.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// How long the start took.
    pub fn startup(&self) -> Duration {
        self.startup
    }
}

struct Started {
    running: Running,
    network: Network,
    machine: Machine,
    inside: Inside,
    cgroup: Cgroup,
    access: Access,
    startup: Duration,
}

/// What runs. A part that lost its power is not there.
#[derive(Default)]
struct Running {
    worker: Option<Worker>,
    plane: Option<Plane>,
}

struct Worker {
    kubelet: Process,
    proxy: Process,
    containerd: Process,
}

impl Worker {
    fn ids(&self) -> [u32; 3] {
        [&self.kubelet, &self.proxy, &self.containerd].map(Process::id)
    }
}

struct Plane {
    scheduler: Process,
    processes: launch::Processes,
}

impl Plane {
    fn ids(&self) -> [u32; 4] {
        let launch::Processes { controller_manager, apiserver, etcd } = &self.processes;
        [apiserver, controller_manager, &self.scheduler, etcd].map(Process::id)
    }
}

/// What is started inside, and how.
struct Inside {
    launcher: Launcher,
    folder: PathBuf,
    binaries: Binaries,
    programs: NodePrograms,
    client: Client,
    /// The socket of containerd.
    socket: PathBuf,
}

impl Inside {
    /// Starts what does not run, and waits until the node is ready.
    async fn start(&self, running: &mut Running) -> Result<()> {
        let containerd = match running.worker {
            None => Some(self.containerd()?),
            Some(_) => None,
        };
        if running.plane.is_none() {
            running.plane = Some(self.plane().await?);
        }
        if let Some(containerd) = containerd {
            running.worker = Some(self.worker(containerd).await?);
        }
        Ok(())
    }

    fn containerd(&self) -> Result<Process> {
        let args = vec!["--config".to_owned(), self.path(config::CONTAINERD)];
        self.run(self.programs.containerd(), args, "containerd.log")
    }

    async fn plane(&self) -> Result<Plane> {
        let processes = launch::launch(&self.binaries, &self.launcher, SITE, &self.client).await?;
        let scheduler = flags::scheduler(&self.folder);
        let scheduler = self.run(self.programs.scheduler(), scheduler, "kube-scheduler.log")?;
        Ok(Plane { scheduler, processes })
    }

    async fn worker(&self, mut containerd: Process) -> Result<Worker> {
        let ask = async || {
            ensure!(self.socket.exists(), "containerd does not listen");
            Ok(())
        };
        launch::ready(&mut [&mut containerd], ask).await?;
        let nodes: Api<core::Node> = Api::all(self.client.clone());
        // What a kubelet before this one has said tells nothing.
        let before = nodes.get_opt(NODE).await?.as_ref().and_then(heartbeat);
        let kubelet = vec![
            flags::flag("kubeconfig", self.path(file::KUBELET_KUBECONFIG)),
            flags::flag("config", self.path(config::KUBELET)),
            flags::flag("hostname-override", NODE),
            flags::flag("node-ip", SITE.address),
        ];
        let mut kubelet = self.run(self.programs.kubelet(), kubelet, file::KUBELET_LOG)?;
        let proxy = vec![flags::flag("config", self.path(config::PROXY))];
        let mut proxy = self.run(self.programs.proxy(), proxy, "kube-proxy.log")?;
        let ask = async || {
            let node = nodes.get(NODE).await?;
            ensure!(heartbeat(&node) != before, "the kubelet has not said how the node is");
            is_ready(&node)
        };
        launch::ready(&mut [&mut containerd, &mut kubelet, &mut proxy], ask).await?;
        Ok(Worker { kubelet, proxy, containerd })
    }

    fn run(&self, program: PathBuf, args: Vec<String>, log: &str) -> Result<Process> {
        self.launcher.start_with(program, args, log, self.programs.environment())
    }

    fn path(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }
}

/// Runs a command to its end, without holding up the tasks of this thread.
async fn run(mut command: Command) -> Result<()> {
    let program = command.get_program().to_owned();
    let output = tokio::task::spawn_blocking(move || command.output()).await?;
    let output = output.with_context(|| format!("starting {}", program.display()))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{} failed ({}): {said}", program.display(), output.status);
    Ok(())
}

fn is_ready(node: &core::Node) -> Result<()> {
    match ready(node) {
        Some(ready) if ready.status == "True" => Ok(()),
        Some(ready) => bail!("the node is not ready: {}", ready.message.clone().unwrap_or_default()),
        None => Err(anyhow!("the kubelet has not said how the node is")),
    }
}

/// When the kubelet has last said how the node is.
fn heartbeat(node: &core::Node) -> Option<Time> {
    ready(node)?.last_heartbeat_time.clone()
}

fn ready(node: &core::Node) -> Option<&core::NodeCondition> {
    let conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().find(|condition| condition.type_ == "Ready")
}
