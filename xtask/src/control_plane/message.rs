//! What is said when there is no control plane.

use super::recipe::Recipe;
use super::toolchain::Reason;

/// Says loudly that there is no control plane, why, how to get one, and what is not tested until then.
pub(super) fn absent(reason: &Reason, oldest_go: &str, recipe: &Recipe, required: bool) -> String {
    let names: Vec<_> = recipe.builds.iter().map(|build| build.binary.name).collect();
    let reason = match reason {
        Reason::Missing => "Go is not installed".to_owned(),
        Reason::TooOld(version) => format!("{version} is too old, and GOTOOLCHAIN lets it fetch no other"),
        Reason::Broken(told) => format!("`go env` failed: {told}"),
    };
    let outcome = if required {
        "REQUIRE_CONTROL_PLANE is set: this is an error."
    } else {
        "SKIPPED until then: every test against a real API server. Nothing else is."
    };
    let rule = "!".repeat(80);
    format!(
        "{rule}\n\
         !! THERE IS NO CONTROL PLANE FOR TESTS\n\
         !!\n\
         !! why:   {reason},\n\
         !!        and the cache has no {}\n\
         !! to do: install Go {oldest_go} or later (https://go.dev/dl), then run `make control-plane`;\n\
         !!        or set KUBEBUILDER_ASSETS to a folder with kube-apiserver,\n\
         !!        kube-controller-manager, kubectl, etcd and helm\n\
         !!\n\
         !! {outcome}\n\
         {rule}",
        names.join(", "),
    )
}

#[cfg(test)]
mod tests;
