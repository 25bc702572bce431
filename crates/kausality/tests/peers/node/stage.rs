//! What the story needs: kubectl, helm and our own command on the node.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use kausality_testbed::{MASTERS, Node};
use serde_json::Value;

pub(super) const PATIENCE: Duration = Duration::from_secs(90);

/// A node, and who acts on it.
pub(super) struct Stage {
    node: Node,
}

impl Stage {
    pub(super) fn of(node: Node) -> Self {
        Self { node }
    }

    pub(super) fn node(&self) -> &Node {
        &self.node
    }

    pub(super) fn into_node(self) -> Node {
        self.node
    }

    /// What kubectl prints as alice.
    #[track_caller]
    pub(super) fn kubectl(&self, arguments: &[&str]) -> String {
        let (code, text) = run(self.node.kubectl("alice", &[MASTERS]).args(arguments));
        assert_eq!(code, 0, "kubectl {arguments:?}: {text}");
        text
    }

    /// What kubectl finds; null if there is nothing.
    pub(super) fn get(&self, arguments: &[&str]) -> Value {
        let mut kubectl = self.node.kubectl("watcher", &[MASTERS]);
        let output = kubectl.arg("get").args(arguments).args(["-o", "json"]).output().unwrap();
        serde_json::from_slice(&output.stdout).unwrap_or_default()
    }

    pub(super) fn apply(&self, manifest: &Value) {
        let file = self.node.folder().join("manifest.json");
        std::fs::write(&file, manifest.to_string()).unwrap();
        self.kubectl(&["apply", "--server-side", "-f", file.to_str().unwrap()]);
    }

    #[track_caller]
    pub(super) fn helm(&self, arguments: &[&str]) -> String {
        let helm = self.node.binaries().helm().expect("helm, which `make control-plane` provides");
        let (code, text) = run(self.node.command(helm).args(arguments));
        assert_eq!(code, 0, "helm {arguments:?}: {text}");
        text
    }

    /// What our own command prints, and its exit code.
    pub(super) fn kausality(&self, arguments: &[&str]) -> (i32, String) {
        run(self.node.command(env!("CARGO_BIN_EXE_kausality")).args(arguments))
    }

    /// What is served at an address on the node, on port 80, within two seconds.
    pub(super) fn fetch(&self, address: &str) -> String {
        let script =
            format!("exec 3<>/dev/tcp/{address}/80; printf 'GET / HTTP/1.0\\r\\n\\r\\n' >&3; cat <&3");
        run(self.node.command("timeout").args(["2", "bash", "-c", &script])).1
    }
}

fn run(command: &mut Command) -> (i32, String) {
    let output = command.stdin(Stdio::null()).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.code().unwrap_or(-1), String::from_utf8_lossy(&text).into_owned())
}

/// The root of the repository.
pub(super) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The control groups of this name, in all trees.
pub(super) fn control_groups(name: &str) -> Vec<PathBuf> {
    let root = Path::new("/sys/fs/cgroup");
    let trees = root.read_dir().unwrap().map(|entry| entry.unwrap().path());
    let groups = trees.chain([root.to_owned()]).map(|tree| tree.join(name.trim_start_matches('/')));
    groups.filter(|group| group.exists()).collect()
}

/// The command lines of all processes that mention a folder.
pub(super) fn processes_with(folder: &Path) -> Vec<String> {
    let folder = folder.to_str().unwrap();
    let processes = Path::new("/proc").read_dir().unwrap().flatten();
    let lines = processes.filter_map(|process| std::fs::read(process.path().join("cmdline")).ok());
    let lines = lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
    lines.filter(|line| line.contains(folder)).collect()
}
