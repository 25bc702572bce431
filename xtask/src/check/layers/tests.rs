use serde_json::json;

use super::violations;
use crate::check::workspace::Member;

/// What is said about one crate with one dependency of a kind ("" is a normal one).
fn check(name: &str, dependency: &str, kind: &str) -> Vec<String> {
    let kind = (!kind.is_empty()).then_some(kind);
    let member = json!({
        "name": name,
        "manifest_path": "Cargo.toml",
        "dependencies": [{ "name": dependency, "kind": kind, "rename": null }],
        "targets": [],
    });
    let member: Member = serde_json::from_value(member).expect("a member");
    violations(&[member], |_| String::new()).into_iter().map(|violation| violation.what).collect()
}

#[test]
fn shells_never_import_each_other() {
    let shells = super::LAYERS.iter().find(|layer| layer.name == "shell").expect("the shells").crates;
    assert_eq!(shells.len(), 5);
    for shell in shells {
        for other in shells.iter().filter(|other| *other != shell) {
            for kind in ["", "build", "dev"] {
                assert_eq!(
                    check(shell, other, kind),
                    [format!("{shell} (shell) depends on {other} (shell)")]
                );
            }
        }
    }
}

#[test]
fn dependencies_point_one_way() {
    assert_eq!(
        check("kausality-core", "kausality-sandbox", ""),
        ["kausality-core (pure) depends on kausality-sandbox (cluster)"]
    );
    assert_eq!(
        check("kausality-cluster", "kausality-web", "build"),
        ["kausality-cluster (cluster) depends on kausality-web (shell)"]
    );
    assert_eq!(
        check("kausality-web", "kausality", ""),
        ["kausality-web (shell) depends on kausality (binary)"]
    );
}

#[test]
fn the_drawn_way_is_free() {
    for (name, dependency) in [
        ("kausality-core", "kausality-fields"),
        ("kausality-sandbox", "kausality-core"),
        ("kausality-sandbox", "kausality-cluster"),
        ("kausality-webhook", "kausality-cluster"),
        ("kausality", "kausality-tui"),
        ("kausality-core", "serde"),
    ] {
        assert!(check(name, dependency, "").is_empty(), "{name} -> {dependency}");
    }
}

#[test]
fn tests_of_an_earlier_layer_may_use_a_later_one() {
    assert!(check("kausality-core", "kausality-sandbox", "dev").is_empty());
}

#[test]
fn a_crate_without_a_layer_is_noticed() {
    assert_eq!(check("kausality-extra", "serde", ""), ["kausality-extra is in no layer"]);
}
