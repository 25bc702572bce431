//! A real node: kubelet, kube-proxy and kube-scheduler of the control plane's version, containerd and what it needs from
//! Debian packages, and two small programs of our own that run in Pods.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result};

use super::command::{go_build, run};
use crate::control_plane::STAMPS;
use crate::programs::{Binary, Module, Place, Set, Step};

/// Pins what the control plane pins. A module of its own, so that a change here does not build the control plane again.
static KUBERNETES: Module =
    Module { folder: "peers/node", pins: "k8s.io/kubernetes", stamps: STAMPS, edits: &[] };

/// The names of the packages, one a line.
const PACKAGES: &str = "peers/node/packages.txt";

pub(super) static SET: Set = Set {
    name: "node",
    binaries: &[
        Binary { name: "kubelet", module: &KUBERNETES, package: "k8s.io/kubernetes/cmd/kubelet" },
        Binary { name: "kube-proxy", module: &KUBERNETES, package: "k8s.io/kubernetes/cmd/kube-proxy" },
        Binary {
            name: "kube-scheduler",
            module: &KUBERNETES,
            package: "k8s.io/kubernetes/cmd/kube-scheduler",
        },
    ],
    copies: &[],
    steps: &[
        Step {
            name: "pause and app",
            revision: 1,
            inputs: &["peers/node/pause/main.go", "peers/node/app/main.go"],
            outputs: &["pause", "app"],
            run: programs,
        },
        Step {
            name: "Debian packages",
            revision: 1,
            inputs: &[PACKAGES],
            outputs: &["root", "packages.txt"],
            run: packages,
        },
    ],
};

/// Builds what runs in Pods. The programs need the standard library alone, and no module.
fn programs(place: &Place<'_>) -> Result<()> {
    for name in ["pause", "app"] {
        place.detail.set(name.to_owned());
        let folder = place.repository.join("peers/node").join(name);
        let mut go = go_build(&folder, "main.go", &place.folder.join(name));
        run(&mut go).with_context(|| format!("building {name}"))?;
    }
    Ok(())
}

/// Downloads packages and unpacks them into `root`. Nothing is installed. `packages.txt` says which versions they are: a
/// mirror of Debian has the current one only, so they are recorded and not pinned.
fn packages(place: &Place<'_>) -> Result<()> {
    let list = place.repository.join(PACKAGES);
    let list = std::fs::read_to_string(&list).with_context(|| format!("reading {}", list.display()))?;
    let downloads = place.folder.join("downloads");
    std::fs::create_dir(&downloads).with_context(|| format!("creating {}", downloads.display()))?;
    place.detail.set("downloading".to_owned());
    run(Command::new("apt-get").args(["download", "--quiet"]).args(names(&list)).current_dir(&downloads)).context(
        "downloading Debian packages: this takes a Debian or Ubuntu machine, and `apt-get update` if a package is not found",
    )?;

    let mut versions = Vec::new();
    let entries =
        std::fs::read_dir(&downloads).with_context(|| format!("listing {}", downloads.display()))?;
    for package in entries.flatten().map(|entry| entry.path()) {
        place.detail.set(format!("{} unpacked", versions.len()));
        run(Command::new("dpkg-deb").arg("--extract").arg(&package).arg(place.folder.join("root")))?;
        versions.push(version(&package)?);
    }
    versions.sort();
    let record = place.folder.join("packages.txt");
    std::fs::write(&record, versions.concat()).with_context(|| format!("writing {}", record.display()))?;
    std::fs::remove_dir_all(&downloads).with_context(|| format!("removing {}", downloads.display()))
}

/// The names in a list. `#` begins a comment.
fn names(list: &str) -> impl Iterator<Item = &str> {
    list.lines().filter_map(|line| line.split('#').next()).map(str::trim).filter(|name| !name.is_empty())
}

/// A line with the name, version and architecture of a package.
fn version(package: &Path) -> Result<String> {
    run(Command::new("dpkg-deb")
        .args(["--show", "--showformat", "${Package} ${Version} ${Architecture}\n"])
        .arg(package))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines of a go.mod that pin Kubernetes and the modules that are published with it.
    fn pins(folder: &str) -> Vec<String> {
        let path = crate::programs::repository().join(folder).join("go.mod");
        let text = std::fs::read_to_string(path).unwrap();
        let lines = text.lines().map(str::trim);
        lines
            .filter(|line| line.contains(" => ") || line.starts_with("require k8s.io"))
            .map(str::to_owned)
            .collect()
    }

    #[test]
    fn a_node_has_the_version_of_the_control_plane() {
        assert!(pins("peers/node").len() > 20);
        assert_eq!(pins("peers/node"), pins("control-plane/kubernetes"));
    }

    #[test]
    fn a_list_may_have_comments() {
        let list = "# containers\ncontainerd\nrunc # starts them\n\n";
        assert_eq!(names(list).collect::<Vec<_>>(), ["containerd", "runc"]);
    }
}
