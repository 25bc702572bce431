//! Which binaries there are, and how each is built.

use super::pin::Version;

/// A module of `control-plane/`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Module {
    Kubernetes,
    Etcd,
    Helm,
}

impl Module {
    /// Its folder below `control-plane/`.
    pub(super) fn folder(self) -> &'static str {
        match self {
            Self::Kubernetes => "kubernetes",
            Self::Etcd => "etcd",
            Self::Helm => "helm",
        }
    }

    /// The path of the module that it pins.
    pub(super) fn pinned(self) -> &'static str {
        match self {
            Self::Kubernetes => "k8s.io/kubernetes",
            Self::Etcd => "go.etcd.io/etcd/server/v3",
            Self::Helm => "helm.sh/helm/v4",
        }
    }

    /// The variables that tell a binary of it which version it is.
    ///
    /// A release build sets them from git. Without them clients cannot parse the version of the API server, and
    /// a chart sees an empty `.Capabilities.KubeVersion.Minor`. etcd has its version in its source.
    fn stamps(self, version: &Version) -> Vec<(String, String)> {
        match self {
            Self::Kubernetes => ["k8s.io/component-base/version", "k8s.io/client-go/pkg/version"]
                .into_iter()
                .flat_map(|package| {
                    [
                        ("gitVersion", version.to_string()),
                        ("gitMajor", version.major().to_owned()),
                        ("gitMinor", version.minor().to_owned()),
                        ("gitTreeState", "clean".to_owned()),
                    ]
                    .map(|(variable, value)| (format!("{package}.{variable}"), value))
                })
                .collect(),
            Self::Etcd => Vec::new(),
            Self::Helm => vec![("helm.sh/helm/v4/internal/version.version".to_owned(), version.to_string())],
        }
    }
}

/// A binary of the control plane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Binary {
    pub(super) name: &'static str,
    pub(super) module: Module,
    /// The Go package that it is built from.
    pub(super) package: &'static str,
}

/// The control plane itself, and the client to it: what `KUBEBUILDER_ASSETS` must hold to be of use.
pub(super) const CONTROL_PLANE: [Binary; 4] = [
    Binary {
        name: "kube-apiserver",
        module: Module::Kubernetes,
        package: "k8s.io/kubernetes/cmd/kube-apiserver",
    },
    Binary {
        name: "kube-controller-manager",
        module: Module::Kubernetes,
        package: "k8s.io/kubernetes/cmd/kube-controller-manager",
    },
    Binary { name: "kubectl", module: Module::Kubernetes, package: "k8s.io/kubernetes/cmd/kubectl" },
    Binary { name: "etcd", module: Module::Etcd, package: "go.etcd.io/etcd/server/v3" },
];

/// What installs our chart into it.
pub(super) const HELM: Binary =
    Binary { name: "helm", module: Module::Helm, package: "helm.sh/helm/v4/cmd/helm" };

impl Binary {
    /// The flags of `go build` for it: static, small, and the same bytes on every machine.
    pub(super) fn flags(&self, version: &Version) -> Vec<String> {
        let mut linker = "-s -w".to_owned();
        for (variable, value) in self.module.stamps(version) {
            linker.push_str(&format!(" -X {variable}={value}"));
        }
        ["-mod=readonly", "-trimpath", "-buildvcs=false", "-ldflags", &linker].map(str::to_owned).to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kubernetes_binaries_know_their_version_where_servers_and_clients_look() {
        let flags = CONTROL_PLANE[0].flags(&Version::parse("v1.35.8").unwrap()).join(" ");
        for package in ["k8s.io/component-base/version", "k8s.io/client-go/pkg/version"] {
            for stamp in ["gitVersion=v1.35.8", "gitMajor=1", "gitMinor=35"] {
                let wanted = format!(" -X {package}.{stamp}");
                assert!(flags.contains(&wanted), "{flags} lacks {wanted}");
            }
        }
    }

    #[test]
    fn helm_knows_its_patch_version() {
        let flags = HELM.flags(&Version::parse("v4.3.1").unwrap()).join(" ");
        assert!(flags.ends_with("-s -w -X helm.sh/helm/v4/internal/version.version=v4.3.1"), "{flags}");
    }
}
