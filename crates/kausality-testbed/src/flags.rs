//! The command lines of the three components, and the names of the files that they share.

use std::fmt::Display;
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
    pub(crate) const KUBECTL_CACHE: &str = "kubectl-cache";
    pub(crate) const KUBELET_LOG: &str = "kubelet.log";
}

/// The ports that a control plane listens on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ports {
    pub(crate) etcd: u16,
    pub(crate) apiserver: u16,
}

/// The flags of etcd.
pub(crate) fn etcd(folder: &Path, ports: Ports) -> Vec<String> {
    let url = format!("https://127.0.0.1:{}", ports.etcd);
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
pub(crate) fn apiserver(folder: &Path, ports: Ports) -> Vec<String> {
    let path = |name: &str| folder.join(name).display().to_string();
    vec![
        flag("etcd-servers", format_args!("https://127.0.0.1:{}", ports.etcd)),
        flag("etcd-cafile", path(file::CA)),
        flag("etcd-certfile", path(file::CERTIFICATE)),
        flag("etcd-keyfile", path(file::KEY)),
        flag("bind-address", "127.0.0.1"),
        flag("advertise-address", "127.0.0.1"),
        // The endpoints of the service "kubernetes" may not be on loopback.
        flag("endpoint-reconciler-type", "none"),
        flag("secure-port", ports.apiserver),
        flag("cert-dir", path("apiserver-certificates")),
        flag("tls-cert-file", path(file::CERTIFICATE)),
        flag("tls-private-key-file", path(file::KEY)),
        flag("token-auth-file", path(file::TOKENS)),
        flag("authorization-mode", "RBAC"),
        flag("allow-privileged", true),
        flag("service-cluster-ip-range", "10.0.0.0/24"),
        flag("service-account-issuer", "https://kubernetes.default.svc"),
        flag("service-account-key-file", path(file::SERVICE_ACCOUNT_PUBLIC)),
        flag("service-account-signing-key-file", path(file::SERVICE_ACCOUNT_KEY)),
        flag("audit-policy-file", path(file::AUDIT_POLICY)),
        flag("audit-log-path", path(file::AUDIT_LOG)),
        // In megabytes: one file holds all, since at 0 it would begin a second one after 100.
        flag("audit-log-maxsize", 100_000),
        flag("profiling", false),
    ]
}

/// The flags of kube-controller-manager.
pub(crate) fn controller_manager(folder: &Path) -> Vec<String> {
    let path = |name: &str| folder.join(name).display().to_string();
    vec![
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
        // The node of the kubelet that we play sends no heartbeats, which would only fill the audit log.
        flag("node-monitor-grace-period", "24h"),
        flag("profiling", false),
    ]
}

fn flag(name: &str, value: impl Display) -> String {
    format!("--{name}={value}")
}
