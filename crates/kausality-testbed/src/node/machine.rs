//! The namespaces of a node, and how to run something in them.

use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::eventually;
use crate::folder::Folder;
use crate::process::{Group, Process, Spec};

/// How long it may take to make the namespaces.
const READY: Duration = Duration::from_secs(30);

/// Made when the namespaces are as they should be.
const DONE: &str = "machine.ready";

/// What is hidden by the mounts of a machine.
const HIDDEN: [&str; 3] = ["/var/lib", "/var/log", "/run"];

/// Furnishes the namespaces, and becomes their first process. Arguments: folder, first process, address, host name.
const SCRIPT: &str = r#"
set -eu
folder=$1 init=$2 address=$3 name=$4
mount --bind "$folder/var/lib" /var/lib
mount --bind "$folder/var/log" /var/log
mount -t tmpfs tmpfs /run
# kubelet sets these for the whole kernel, since they are in no namespace. It finds files instead, which have the values
# that it wants.
pretend() {
  [ -e "/proc/sys/$1" ] || return 0
  mkdir -p "/run/sysctl/${1%/*}"
  echo "$2" > "/run/sysctl/$1"
  mount --bind "/run/sysctl/$1" "/proc/sys/$1"
}
pretend vm/overcommit_memory 1
pretend vm/panic_on_oom 0
pretend kernel/panic 10
pretend kernel/panic_on_oops 1
pretend kernel/keys/root_maxkeys 1000000
pretend kernel/keys/root_maxbytes 25000000
# As kubelet wants it, within this namespace.
mount --make-rshared /
echo "$name" > /proc/sys/kernel/hostname
ip link set lo up
ip link add node0 type veth peer name node1
ip link set node0 up
ip link set node1 up
ip address add "$address/24" dev node0
ip route add default dev node0
echo 1 > /proc/sys/net/ipv4/ip_forward
: > "$folder/machine.ready"
exec "$init"
"#;

/// Namespaces with a first process, whose end is the end of everything in them.
#[derive(Debug)]
pub(super) struct Machine {
    /// Waits for the first process, which the kernel kills when this one ends.
    unshare: Process,
    pid: u32,
    init: OwnedFd,
}

impl Machine {
    /// Makes the namespaces. `init` has to wait for ever, and to reap processes that nobody waits for.
    pub(super) async fn start(
        folder: &Folder,
        group: &Group,
        init: &Path,
        address: Ipv4Addr,
        name: &str,
    ) -> Result<Self> {
        if let Some(hidden) = HIDDEN.iter().find(|hidden| folder.path().starts_with(hidden)) {
            bail!(
                "a node cannot use {}, since it has a {hidden} of its own: set TMPDIR",
                folder.path().display()
            );
        }
        for name in ["var/lib", "var/log"] {
            let path = folder.file(name);
            std::fs::create_dir_all(&path).with_context(|| format!("creating {}", path.display()))?;
        }
        let own = ["--net", "--mount", "--pid", "--uts", "--ipc", "--mount-proc", "--propagation=private"];
        let script = ["--fork", "--kill-child", "sh", "-c", SCRIPT, "machine"];
        let mut args: Vec<String> = own.into_iter().chain(script).map(str::to_owned).collect();
        args.extend([folder.path().display().to_string(), init.display().to_string()]);
        args.extend([address.to_string(), name.to_owned()]);
        let log = folder.file("machine.log");
        let spec = Spec { program: "unshare".into(), args, log, ..Spec::default() };
        let mut unshare = Process::start(spec, group)?;

        let done = folder.file(DONE);
        let look = async || -> Result<Result<()>> {
            // A machine that failed will not become ready.
            if let Err(error) = unshare.is_running() {
                return Ok(Err(error));
            }
            ensure!(done.exists(), "{} is not there", done.display());
            Ok(Ok(()))
        };
        eventually(READY, "the namespaces of the node", look)
            .await?
            .context("making the namespaces of a node")?;
        let pid = child(unshare.id()).context("finding the first process of the node")?;
        let raw = i32::try_from(pid).ok().and_then(Pid::from_raw).context("reading a process id")?;
        let init = pidfd_open(raw, PidfdFlags::empty()).context("opening the first process of the node")?;
        Ok(Self { unshare, pid, init })
    }

    /// The command that runs another one in the namespaces.
    pub(super) fn entry(&self) -> Vec<String> {
        let pid = self.pid.to_string();
        ["nsenter", "--target", &pid, "--mount", "--net", "--pid", "--uts", "--ipc", "--"]
            .map(str::to_owned)
            .to_vec()
    }

    /// The first process, as this machine knows it.
    pub(super) fn id(&self) -> u32 {
        self.pid
    }

    /// A file of the machine, as seen from outside.
    pub(super) fn file(&self, path: &str) -> PathBuf {
        format!("/proc/{}/root{path}", self.pid).into()
    }

    /// The network namespace.
    pub(super) fn network(&self) -> PathBuf {
        format!("/proc/{}/ns/net", self.pid).into()
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // The kernel kills everything in the namespace with its first process, and lets that end last. Both calls fail only
        // if it has ended before.
        let _ = pidfd_send_signal(&self.init, Signal::KILL);
        self.unshare.wait();
    }
}

/// The only child of a process.
fn child(parent: u32) -> Result<u32> {
    let path = format!("/proc/{parent}/task/{parent}/children");
    let children = std::fs::read_to_string(&path).with_context(|| format!("reading {path}"))?;
    let mut children = children.split_whitespace();
    match (children.next(), children.next()) {
        (Some(child), None) => child.parse().with_context(|| format!("reading {path}")),
        _ => bail!("{path} does not have one process"),
    }
}
