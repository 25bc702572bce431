//! What cargo says about the workspace.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

use super::PURE;
use super::features::{PROGRAMS, Trees};

/// The crates of the workspace.
#[derive(Debug)]
pub(crate) struct Workspace {
    root: PathBuf,
    /// Ordered by name.
    pub(crate) members: Vec<Member>,
}

/// One crate of the workspace.
#[derive(Debug, Deserialize)]
pub(crate) struct Member {
    /// The name in the manifest, with dashes.
    pub(crate) name: String,
    /// Its Cargo.toml.
    #[serde(rename = "manifest_path")]
    pub(crate) manifest: PathBuf,
    /// As declared, of all kinds.
    pub(crate) dependencies: Vec<Dependency>,
    targets: Vec<Target>,
}

/// One line of a `[dependencies]`, `[dev-dependencies]` or `[build-dependencies]` section.
#[derive(Debug, Deserialize)]
pub(crate) struct Dependency {
    /// The name of the package.
    pub(crate) name: String,
    /// What the code calls it, where that differs.
    pub(crate) rename: Option<String>,
    /// `None` for a normal one, else `dev` or `build`.
    pub(crate) kind: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Target {
    kind: Vec<String>,
    src_path: PathBuf,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Member>,
    workspace_root: PathBuf,
}

impl Workspace {
    /// Asks cargo about the workspace that holds a directory.
    pub(crate) fn read(directory: &Path) -> Result<Self> {
        let json = cargo(directory, &["metadata", "--no-deps", "--format-version", "1"])?;
        let metadata: Metadata =
            serde_json::from_str(&json).context("reading the output of cargo metadata")?;
        let mut members = metadata.packages;
        members.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(Self { root: metadata.workspace_root, members })
    }

    /// The pure crates that exist.
    pub(crate) fn pure(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(|member| PURE.contains(&member.name.as_str()))
    }

    /// The features that the programs of the workspace and its tests are built with.
    pub(crate) fn features(&self) -> Result<Trees> {
        let tree = |selection: &[&str], edges: &str| {
            let format = ["tree", "--prefix", "none", "--format", "{p} {f}", "--edges", edges];
            cargo(&self.root, &[&format, selection].concat())
        };
        let there = |name: &&&str| self.members.iter().any(|member| member.name == **name);
        let programs: Vec<_> = PROGRAMS.iter().filter(there).flat_map(|name| ["--package", name]).collect();
        Ok(Trees {
            // Without a package cargo would take all.
            programs: if programs.is_empty() { String::new() } else { tree(&programs, "normal")? },
            built: tree(&["--workspace"], "normal")?,
            tested: tree(&["--workspace"], "normal,dev")?,
        })
    }

    /// A path as people name it, seen from the root of the workspace.
    pub(crate) fn relative(&self, path: &Path) -> String {
        path.strip_prefix(&self.root).unwrap_or(path).display().to_string()
    }
}

impl Member {
    /// The root files of what the crate ships: its library and binaries; not tests, benches, examples, build
    /// scripts.
    pub(crate) fn roots(&self) -> impl Iterator<Item = &Path> {
        let shipped = |kind: &String| kind.ends_with("lib") || kind == "bin" || kind == "proc-macro";
        self.targets
            .iter()
            .filter(move |target| target.kind.iter().any(shipped))
            .map(|target| target.src_path.as_path())
    }

    /// Its `src` directory.
    pub(crate) fn sources(&self) -> PathBuf {
        self.manifest.with_file_name("src")
    }
}

/// The dependency tree of a crate as `cargo tree` prints it, one `<depth><name> v<version>` a line.
///
/// For every platform and with every feature, so that nothing impure hides behind a `cfg`. Procedural macros
/// run at build time and are left out, as are build- and dev-dependencies.
pub(crate) fn dependency_tree(member: &Member) -> Result<String> {
    let directory = member.manifest.parent().unwrap_or(Path::new("."));
    let edges = ["--edges", "normal,no-proc-macro", "--target", "all", "--all-features"];
    cargo(directory, &[&["tree", "--prefix", "depth"], &edges[..]].concat())
}

fn cargo(directory: &Path, arguments: &[&str]) -> Result<String> {
    // Under `cargo run`, CARGO is the cargo that runs us: the same toolchain answers.
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let what = || format!("cargo {} in {}", arguments.join(" "), directory.display());
    let output = Command::new(cargo).args(arguments).current_dir(directory).output().with_context(what)?;
    ensure!(output.status.success(), "{} failed: {}", what(), String::from_utf8_lossy(&output.stderr).trim());
    String::from_utf8(output.stdout).with_context(what)
}
