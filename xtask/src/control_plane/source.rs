//! Where the binaries come from.

use std::path::{Path, PathBuf};

use super::set::{CONTROL_PLANE, HELM};
use crate::programs::Binary;

/// Where the binaries come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Source {
    /// This folder has all that we need, helm too.
    Complete { folder: PathBuf },
    /// This folder has the control plane. helm is to be built.
    Assets { folder: PathBuf },
    /// All is to be built.
    Modules { passed_over: Option<PassedOver> },
}

/// A `KUBEBUILDER_ASSETS` that is of no use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PassedOver {
    folder: PathBuf,
    missing: Vec<&'static str>,
}

/// Takes `KUBEBUILDER_ASSETS` if it holds a control plane, else the pinned modules.
pub(super) fn choose(assets: Option<&Path>, is_file: impl Fn(&Path) -> bool) -> Source {
    let Some(folder) = assets.map(Path::to_path_buf) else { return Source::Modules { passed_over: None } };
    let has = |binary: &Binary| is_file(&folder.join(binary.name));
    let missing: Vec<_> =
        CONTROL_PLANE.iter().filter(|binary| !has(binary)).map(|binary| binary.name).collect();
    if !missing.is_empty() {
        Source::Modules { passed_over: Some(PassedOver { folder, missing }) }
    } else if has(&HELM) {
        Source::Complete { folder }
    } else {
        Source::Assets { folder }
    }
}

impl Source {
    /// What the user should know about this choice.
    pub(super) fn notice(&self) -> Option<String> {
        let Self::Modules { passed_over: Some(PassedOver { folder, missing }) } = self else { return None };
        Some(format!(
            "KUBEBUILDER_ASSETS is passed over: {} has no {}. The binaries come from control-plane/ instead.",
            folder.display(),
            missing.join(", no ")
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FOUR: [&str; 4] = ["kube-apiserver", "kube-controller-manager", "kubectl", "etcd"];

    /// The choice for a `/assets` that has these files.
    fn choice(files: &[&str]) -> Source {
        let folder = Path::new("/assets");
        choose(Some(folder), |path| files.iter().any(|file| path == folder.join(file)))
    }

    #[test]
    fn without_assets_all_is_built() {
        let source = choose(None, |_| true);
        assert_eq!(source, Source::Modules { passed_over: None });
        assert_eq!(source.notice(), None);
    }

    #[test]
    fn assets_with_a_control_plane_are_taken() {
        let source = choice(&FOUR);
        assert_eq!(source, Source::Assets { folder: "/assets".into() });
        assert_eq!(source.notice(), None);
    }

    #[test]
    fn assets_with_helm_too_are_all_that_is_needed() {
        assert_eq!(choice(&[&FOUR[..], &["helm"]].concat()), Source::Complete { folder: "/assets".into() });
    }

    #[test]
    fn assets_without_controllers_or_etcd_are_passed_over_and_the_user_is_told() {
        let source = choice(&["kube-apiserver", "kubectl"]);
        assert!(matches!(source, Source::Modules { passed_over: Some(_) }), "{source:?}");
        let notice = source.notice().unwrap();
        assert!(notice.contains("/assets has no kube-controller-manager, no etcd."), "{notice}");
    }
}
