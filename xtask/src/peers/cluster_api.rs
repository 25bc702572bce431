//! Cluster API: its core and kubeadm bootstrap managers, providers that we play, and CustomResourceDefinitions.

use anyhow::{Context as _, Result};

use super::command::{go_build, run};
use crate::programs::{Binary, Copied, Edit, Module, Place, Set, Step, Value};

/// Pins what the provider needs, too.
static CLUSTER_API: Module = Module {
    folder: "peers/cluster-api",
    pins: "sigs.k8s.io/cluster-api",
    stamps: &[("sigs.k8s.io/cluster-api/version.gitVersion", Value::Version)],
    // Webhooks: there are flags for the port, and none for the address.
    edits: &[
        Edit { file: "core/main.go", from: HOSTLESS, to: ON_LOOPBACK },
        Edit { file: "bootstrap/kubeadm/main.go", from: HOSTLESS, to: ON_LOOPBACK },
    ],
};

const HOSTLESS: &str = "Port:     webhookPort,";
const ON_LOOPBACK: &str = "Port: webhookPort, Host: \"127.0.0.1\",";

pub(super) static SET: Set = Set {
    name: "cluster-api",
    binaries: &[
        Binary { name: "core", module: &CLUSTER_API, package: "sigs.k8s.io/cluster-api/core" },
        Binary {
            name: "kubeadm-bootstrap",
            module: &CLUSTER_API,
            package: "sigs.k8s.io/cluster-api/bootstrap/kubeadm",
        },
    ],
    copies: &[
        Copied { module: &CLUSTER_API, from: "core/config/crd/bases", to: "crds" },
        Copied { module: &CLUSTER_API, from: "core/config/webhook/manifests.yaml", to: "webhooks.yaml" },
        Copied { module: &CLUSTER_API, from: "bootstrap/kubeadm/config/crd/bases", to: "bootstrap-crds" },
        Copied {
            module: &CLUSTER_API,
            from: "bootstrap/kubeadm/config/webhook/manifests.yaml",
            to: "bootstrap-webhooks.yaml",
        },
    ],
    steps: &[Step {
        name: "provider",
        revision: 1,
        inputs: &["peers/cluster-api/provider/main.go"],
        outputs: &["provider"],
        run: provider,
    }],
};

/// Builds the providers that we play with the modules that Cluster API is pinned with.
fn provider(place: &Place<'_>) -> Result<()> {
    let module = place.repository.join(CLUSTER_API.folder);
    run(&mut go_build(&module, "./provider", &place.folder.join("provider")))
        .context("building the providers")?;
    Ok(())
}
