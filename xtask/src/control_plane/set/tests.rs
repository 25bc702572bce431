use std::path::Path;

use super::super::recipe;
use super::*;
use crate::programs::tests::check_tools;

fn root() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// What the linker is told for a binary of the repository.
fn flags(name: &str) -> String {
    let recipe = recipe(&root(), None).unwrap();
    let build = recipe.builds.iter().find(|build| build.binary.name == name).unwrap();
    build.flags().join(" ")
}

#[test]
fn kubernetes_binaries_know_their_version_where_servers_and_clients_look() {
    let flags = flags("kube-apiserver");
    for package in ["k8s.io/component-base/version", "k8s.io/client-go/pkg/version"] {
        for stamp in ["gitVersion=v1.35.", "gitMajor=1 ", "gitMinor=35 "] {
            let wanted = format!(" -X {package}.{stamp}");
            assert!(flags.contains(&wanted), "{flags} lacks {wanted}");
        }
    }
}

#[test]
fn helm_knows_its_patch_version() {
    let flags = flags("helm");
    let version = flags.split("-s -w -X helm.sh/helm/v4/internal/version.version=v4.").nth(1);
    assert!(version.is_some_and(|rest| rest.split('.').count() == 2), "{flags}");
}

#[test]
fn assets_are_linked_and_only_helm_is_built() {
    let recipe = recipe(&root(), Some(Path::new("/assets"))).unwrap();
    let links: Vec<_> = recipe.links.iter().map(|link| link.target.to_str().unwrap()).collect();
    let expected = ["kube-apiserver", "kube-controller-manager", "kubectl", "etcd"];
    assert_eq!(links, expected.map(|name| format!("/assets/{name}")));
    assert_eq!(recipe.builds.iter().map(|build| build.binary.name).collect::<Vec<_>>(), ["helm"]);
}

#[test]
fn each_package_is_a_tool_of_its_module() {
    check_tools(&ALL);
}

#[test]
fn every_staging_module_has_the_version_of_kubernetes() {
    let recipe = recipe(&root(), None).unwrap();
    let staging = recipe.version().unwrap().to_string().replacen("v1.", "v0.", 1);
    let go_mod = std::fs::read_to_string(root().join(KUBERNETES.folder).join("go.mod")).unwrap();
    let replaced: Vec<_> = go_mod.lines().filter_map(|line| line.split_once(" => ")).collect();
    assert!(replaced.len() > 20, "{replaced:?}");
    for (old, new) in replaced {
        assert_eq!(new, format!("{} {staging}", old.trim()));
    }
}
