//! prometheus-operator: the controller, its CustomResourceDefinitions and its role.

use crate::programs::{Binary, Copied, Module, Set, Value};

static MODULE: Module = Module {
    folder: "peers/prometheus-operator",
    pins: "github.com/prometheus-operator/prometheus-operator",
    stamps: &[("github.com/prometheus/common/version.Version", Value::Version)],
    edits: &[],
};

pub(super) static SET: Set = Set {
    name: "prometheus-operator",
    binaries: &[Binary {
        name: "operator",
        module: &MODULE,
        package: "github.com/prometheus-operator/prometheus-operator/cmd/operator",
    }],
    copies: &[
        Copied { module: &MODULE, from: "example/prometheus-operator-crd", to: "crds" },
        Copied { module: &MODULE, from: "example/rbac/prometheus-operator", to: "role" },
    ],
    steps: &[],
};
