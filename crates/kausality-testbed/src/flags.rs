//! The command lines of the components, and the names of the files that they share.

use std::fmt::Display;
use std::net::Ipv4Addr;
use std::path::Path;

/// Files in the folder of a control plane.
pub(crate) mod file {
    pub(crate) const CA: &str = "ca.pem";
    pub(crate) const CERTIFICATE: &str = "server.pem";
    pub(crate) const KEY: &str = "server.key";
    pub(crate) const SERVICE_ACCOUNT_KEY: &str = "service-account.key";
    pub(crate) const SERVICE_ACCOUNT_PUBLIC: &str = "service-account.pub";
    pub(crate) const TOKENS: &str = "tokens.csv";
    pub(crate) const AUDIT_POLICY: &str = "audit-policy.json";
    pub(crate) const AUDIT_LOG: &str = "audit.log";
    pub(crate) const KUBECONFIG: &str = "kubeconfig";
    pub(crate) const CONTROLLERS_KUBECONFIG: &str = "kube-controller-manager.kubeconfig";
    pub(crate) const SCHEDULER_KUBECONFIG: &str = "kube-scheduler.kubeconfig";
    pub(crate) const KUBELET_KUBECONFIG: &str = "kubelet.kubeconfig";
    pub(crate) const PROXY_KUBECONFIG: &str = "kube-proxy.kubeconfig";
    pub(crate) const KUBECTL_CACHE: &str = "kubectl-cache";
    pub(crate) const KUBELET_LOG: &str = "kubelet.log";
}

/// The addresses of Services.
const SERVICES: &str = "10.0.0.0/24";

/// The address of the Service `kubernetes`: the first of [`SERVICES`].
const KUBERNETES: &str = "10.0.0.1";

/// Where a control plane listens.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Site {
    /// The address of the API server. Nodes and Pods can reach it unless it is on loopback.
    pub(crate) address: Ipv4Addr,
    pub(crate) etcd: u16,
    pub(crate) apiserver: u16,
}

impl Site {
    /// Whether there are nodes, with Pods that call the API server through the Service `kubernetes`.
    fn has_nodes(self) -> bool {
        !self.address.is_loopback()
    }

    /// The names and addresses that the API server is called by.
    pub(crate) fn names(self) -> Vec<String> {
        let mut names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
        if self.has_nodes() {
            names.extend([self.address.to_string(), KUBERNETES.to_owned()]);
            names.extend(["kubernetes", "kubernetes.default", "kubernetes.default.svc"].map(str::to_owned));
        }
        names
    }
}

/// The flags of etcd.
pub(crate) fn etcd(folder: &Path, site: Site) -> Vec<String> {
    let url = format!("https://127.0.0.1:{}", site.etcd);
    let path = |name: &str| folder.join(name).display().to_string();
    vec![
        flag("data-dir", path("etcd")),
        flag("listen-client-urls", &url),
        flag("advertise-client-urls", &url),
        flag("cert-file", path(file::CERTIFICATE)),
        flag("key-file", path(file::KEY)),
        flag("trusted-ca-file", path(file::CA)),
        flag("client-cert-auth", true),
        // Nobody joins: any port will do, and no one needs to know it.
        flag("listen-peer-urls", "http://127.0.0.1:0"),
        // The data does not outlive the test.
        flag("unsafe-no-fsync", true),
    ]
}

/// The flags of kube-apiserver.
pub(crate) fn apiserver(folder: &Path, site: Site) -> Vec<String> {
    let path = |name: &str| folder.join(name).display().to_string();
    let mut flags = vec![
        flag("etcd-servers", format_args!("https://127.0.0.1:{}", site.etcd)),
        flag("etcd-cafile", path(file::CA)),
        flag("etcd-certfile", path(file::CERTIFICATE)),
        flag("etcd-keyfile", path(file::KEY)),
        flag("bind-address", site.address),
        flag("advertise-address", site.address),
        flag("secure-port", site.apiserver),
        flag("cert-dir", path("apiserver-certificates")),
        flag("tls-cert-file", path(file::CERTIFICATE)),
        flag("tls-private-key-file", path(file::KEY)),
        flag("token-auth-file", path(file::TOKENS)),
        flag("allow-privileged", true),
        flag("service-cluster-ip-range", SERVICES),
        flag("service-account-issuer", "https://kubernetes.default.svc"),
        flag("service-account-key-file", path(file::SERVICE_ACCOUNT_PUBLIC)),
        flag("service-account-signing-key-file", path(file::SERVICE_ACCOUNT_KEY)),
        flag("audit-policy-file", path(file::AUDIT_POLICY)),
        flag("audit-log-path", path(file::AUDIT_LOG)),
        // In megabytes: one file holds all, since at 0 it would begin a second one after 100.
        flag("audit-log-maxsize", 100_000),
        flag("profiling", false),
    ];
    if site.has_nodes() {
        flags.push(flag("authorization-mode", "Node,RBAC"));
        flags.push(flag("enable-admission-plugins", "NodeRestriction"));
        // `kubectl logs` goes to the kubelet, and nobody resolves the name of its host.
        flags.push(flag("kubelet-preferred-address-types", "InternalIP"));
    } else {
        flags.push(flag("authorization-mode", "RBAC"));
        // The endpoints of the service "kubernetes" may not be on loopback.
        flags.push(flag("endpoint-reconciler-type", "none"));
    }
    flags
}

/// The flags of kube-controller-manager.
pub(crate) fn controller_manager(folder: &Path, site: Site) -> Vec<String> {
    let path = |name: &str| folder.join(name).display().to_string();
    let mut flags = vec![
        flag("kubeconfig", path(file::CONTROLLERS_KUBECONFIG)),
        // Without it, every controller is the same user, and nobody can tell them apart.
        flag("use-service-account-credentials", true),
        flag("service-account-private-key-file", path(file::SERVICE_ACCOUNT_KEY)),
        flag("root-ca-file", path(file::CA)),
        flag("leader-elect", false),
        // Serves nothing, and so needs no port.
        flag("secure-port", 0),
        // At its default of 20 calls a second a test would wait for the rate limiter.
        flag("kube-api-qps", 1000),
        flag("kube-api-burst", 2000),
        flag("profiling", false),
    ];
    if !site.has_nodes() {
        // The node of the kubelet that we play sends no heartbeats, which would only fill the audit log.
        flags.push(flag("node-monitor-grace-period", "24h"));
    }
    flags
}

/// The flags of kube-scheduler.
pub(crate) fn scheduler(folder: &Path) -> Vec<String> {
    let kubeconfig = folder.join(file::SCHEDULER_KUBECONFIG).display().to_string();
    vec![
        flag("kubeconfig", &kubeconfig),
        flag("leader-elect", false),
        // Serves nothing, and so needs no port.
        flag("secure-port", 0),
    ]
}

pub(crate) fn flag(name: &str, value: impl Display) -> String {
    format!("--{name}={value}")
}
