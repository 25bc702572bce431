use std::path::Path;

use super::super::recipe;
use super::*;

fn repository(assets: Option<&Path>) -> Recipe {
    recipe(&Path::new(env!("CARGO_MANIFEST_DIR")).join(".."), assets).unwrap()
}

#[track_caller]
fn check(reason: &Reason, assets: Option<&Path>, required: bool, expected: &[&str]) {
    let message = absent(reason, &repository(assets), required);
    for words in expected {
        assert!(message.contains(words), "{message}\nlacks: {words}");
    }
}

#[test]
fn without_go_it_says_what_to_install_and_what_is_skipped() {
    check(
        &Reason::Missing,
        None,
        false,
        &[
            "why:   Go is not installed,\n",
            "and the cache has no kube-apiserver, kube-controller-manager, kubectl, etcd, helm\n",
            "install Go 1.26.0 or later",
            "make control-plane",
            "SKIPPED until then: every test against a real API server.",
        ],
    );
}

#[test]
fn where_it_is_required_nothing_is_called_skipped() {
    let message = absent(&Reason::Missing, &repository(None), true);
    assert!(message.contains("REQUIRE_CONTROL_PLANE is set: this is an error."), "{message}");
    assert!(!message.contains("SKIPPED"), "{message}");
}

#[test]
fn with_assets_only_helm_is_lacking() {
    check(&Reason::Missing, Some(Path::new("/assets")), false, &["the cache has no helm\n"]);
}

#[test]
fn an_old_go_is_named() {
    check(&Reason::TooOld("go1.19.8".to_owned()), None, false, &["go1.19.8 is too old"]);
}

#[test]
fn a_broken_go_is_quoted() {
    check(&Reason::Broken("no space left".to_owned()), None, false, &["`go env` failed: no space left"]);
}
