//! The configuration of containerd, kubelet and kube-proxy.

use std::path::Path;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use crate::flags::file;
use crate::folder::Folder;
use crate::identity::NODE;

use super::SITE;
use super::cgroup::Cgroup;
use super::programs::NodePrograms;

pub(super) const CONTAINERD: &str = "containerd.toml";
pub(super) const KUBELET: &str = "kubelet.json";
pub(super) const PROXY: &str = "kube-proxy.json";

/// The folder of the Pods that the kubelet runs on its own.
pub(super) const STATIC_PODS: &str = "static-pods";

/// The folder with the configuration of the Pods' network, and the file in it.
const CNI: &str = "cni";
const BRIDGE: &str = "cni/10-bridge.conflist";

/// The image that keeps the namespaces of a Pod. It is loaded before the first Pod.
pub(super) const PAUSE: &str = "registry.local/pause:1";

pub(super) const SOCKET: &str = "/run/containerd/containerd.sock";

/// The addresses of Pods.
const PODS: &str = "10.88.0.0/24";

/// Writes all of it.
pub(super) fn write(folder: &Folder, programs: &NodePrograms, cgroup: &Cgroup) -> Result<()> {
    let (cni, pods) = (folder.file(CNI), folder.file(STATIC_PODS));
    for folder in [&cni, &pods] {
        std::fs::create_dir(folder).with_context(|| format!("creating {}", folder.display()))?;
    }
    let containerd = containerd(&programs.cni().display().to_string(), &cni.display().to_string());
    folder.write(CONTAINERD, containerd)?;
    folder.write(BRIDGE, bridge().to_string())?;
    folder.write(KUBELET, kubelet(&cgroup.path(), &pods).to_string())?;
    let kubeconfig = folder.file(file::PROXY_KUBECONFIG).display().to_string();
    folder.write(PROXY, proxy(&kubeconfig).to_string())?;
    Ok(())
}

fn containerd(plugins: &str, configuration: &str) -> String {
    format!(
        r#"version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
[grpc]
  address = "{SOCKET}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{PAUSE}"
  # Without CAP_SYS_RESOURCE, nobody may become less likely to be killed, and no sandbox would start.
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = false
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{plugins}"
    conf_dir = "{configuration}"
"#
    )
}

fn bridge() -> Value {
    json!({
        "cniVersion": "1.0.0",
        "name": "pods",
        "plugins": [{
            "type": "bridge",
            "bridge": "cni0",
            "isGateway": true,
            "ipMasq": false,
            // A Pod may reach itself through a Service.
            "hairpinMode": true,
            "ipam": {
                "type": "host-local",
                "ranges": [[{ "subnet": PODS }]],
                "routes": [{ "dst": "0.0.0.0/0" }],
            },
        }],
    })
}

fn kubelet(cgroup: &str, pods: &Path) -> Value {
    json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": SITE.address,
        "authentication": { "anonymous": { "enabled": true }, "webhook": { "enabled": false } },
        "authorization": { "mode": "AlwaysAllow" },
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": cgroup,
        "failCgroupV1": false,
        "containerRuntimeEndpoint": format!("unix://{SOCKET}"),
        // Nothing is evicted because the disk of this machine is full. Memory has to be above zero.
        "evictionHard": {
            "imagefs.available": "0%", "nodefs.available": "0%", "nodefs.inodesFree": "0%", "memory.available": "10Mi",
        },
        "imageGCHighThresholdPercent": 100,
        "failSwapOn": false,
        "healthzBindAddress": "127.0.0.1",
        "registerNode": true,
        "resolvConf": "",
        "staticPodPath": pods,
        // A manifest is noticed when it is written; this is for what was missed.
        "fileCheckFrequency": "1s",
    })
}

fn proxy(kubeconfig: &str) -> Value {
    json!({
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "nftables",
        "clientConnection": { "kubeconfig": kubeconfig },
        "clusterCIDR": PODS,
        "hostnameOverride": NODE,
        // Settings of the whole kernel stay as they are.
        "conntrack": {
            "maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s",
        },
        "healthzBindAddress": "127.0.0.1:10256",
        "metricsBindAddress": "127.0.0.1:10249",
    })
}
