//! What is said when there is no control plane.

use crate::programs::{Reason, Recipe};

/// Says loudly that there is no control plane, why, how to get one, and what is not tested until then.
pub(super) fn absent(reason: &Reason, recipe: &Recipe, required: bool) -> String {
    let names: Vec<_> = recipe.builds.iter().map(|build| build.binary.name).collect();
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
         !! to do: install Go {} or later (https://go.dev/dl), then run `make control-plane`;\n\
         !!        or set KUBEBUILDER_ASSETS to a folder with kube-apiserver,\n\
         !!        kube-controller-manager, kubectl, etcd and helm\n\
         !!\n\
         !! {outcome}\n\
         {rule}",
        names.join(", "),
        recipe.go(),
    )
}

#[cfg(test)]
mod tests;
