//! Argo Rollouts: the controller, its CustomResourceDefinitions and its role.

use crate::programs::{Binary, Copied, Module, Set, Value};

static MODULE: Module = Module {
    folder: "peers/argo-rollouts",
    pins: "github.com/argoproj/argo-rollouts",
    // It takes the tag for its version if it was built from a commit, and that was clean.
    stamps: &[
        ("github.com/argoproj/argo-rollouts/utils/version.gitTag", Value::Version),
        ("github.com/argoproj/argo-rollouts/utils/version.gitCommit", Value::Version),
        ("github.com/argoproj/argo-rollouts/utils/version.gitTreeState", Value::Text("clean")),
    ],
    edits: &[],
};

pub(super) static SET: Set = Set {
    name: "argo-rollouts",
    binaries: &[Binary {
        name: "rollouts-controller",
        module: &MODULE,
        package: "github.com/argoproj/argo-rollouts/cmd/rollouts-controller",
    }],
    copies: &[
        Copied { module: &MODULE, from: "manifests/crds", to: "crds" },
        Copied { module: &MODULE, from: "manifests/role", to: "role" },
    ],
    steps: &[],
};
