//! Crossplane, its Kubernetes provider, a composition function of our own, and their CustomResourceDefinitions.

use anyhow::{Context as _, Result};

use super::command::{go_build, run};
use crate::programs::{Binary, Copied, Edit, Module, Place, Set, Step, Value};

/// Pins what the function needs, too.
static CROSSPLANE: Module = Module {
    folder: "peers/crossplane",
    pins: "github.com/crossplane/crossplane/v2",
    stamps: &[("github.com/crossplane/crossplane-runtime/v2/pkg/version.version", Value::Version)],
    // Metrics and health: it has flags for the ports, and none for the address.
    edits: &[Edit {
        file: "cmd/crossplane/core/core.go",
        from: "fmt.Sprintf(\":%d\"",
        to: "fmt.Sprintf(\"127.0.0.1:%d\"",
    }],
};

static PROVIDER: Module = Module {
    folder: "peers/crossplane/provider",
    pins: "github.com/crossplane-contrib/provider-kubernetes",
    stamps: &[("github.com/crossplane-contrib/provider-kubernetes/internal/version.Version", Value::Version)],
    // It always serves conversions, on all addresses.
    edits: &[Edit {
        file: "cmd/provider/main.go",
        from: "Port:    *webhookPort,",
        to: "Port: *webhookPort, Host: \"127.0.0.1\",",
    }],
};

pub(super) static SET: Set = Set {
    name: "crossplane",
    binaries: &[
        Binary {
            name: "crossplane",
            module: &CROSSPLANE,
            package: "github.com/crossplane/crossplane/v2/cmd/crossplane",
        },
        Binary {
            name: "provider-kubernetes",
            module: &PROVIDER,
            package: "github.com/crossplane-contrib/provider-kubernetes/cmd/provider",
        },
    ],
    copies: &[
        Copied { module: &CROSSPLANE, from: "cluster/crds", to: "crds" },
        Copied { module: &PROVIDER, from: "package/crds", to: "provider-crds" },
    ],
    steps: &[Step {
        name: "function",
        revision: 1,
        inputs: &["peers/crossplane/function/main.go"],
        outputs: &["function"],
        run: function,
    }],
};

/// Builds the function with the modules that Crossplane is pinned with.
fn function(place: &Place<'_>) -> Result<()> {
    let module = place.repository.join(CROSSPLANE.folder);
    run(&mut go_build(&module, "./function", &place.folder.join("function")))
        .context("building the function")?;
    Ok(())
}
