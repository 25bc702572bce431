use std::path::Path;

use super::*;
use crate::programs::tests::check_tools;

#[test]
fn each_peer_has_a_name_of_its_own_and_a_suite() {
    let suites = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/kausality/tests/peers");
    let main = std::fs::read_to_string(suites.join("main.rs")).unwrap();
    for (index, peer) in PEERS.iter().enumerate() {
        assert!(PEERS[..index].iter().all(|other| other.name != peer.name), "{}", peer.name);
        // `make test-peers` runs the tests of this module.
        let module = format!("mod {};", peer.name.replace('-', "_"));
        assert!(main.contains(&module), "{} has no `{module}`", suites.display());
    }
}

#[test]
fn each_package_is_a_tool_of_its_module() {
    for peer in PEERS {
        check_tools(peer);
    }
}

#[test]
fn the_table_says_what_is_built_and_how_to_build_the_rest() {
    let row = |name, version: &str, folder: Option<&str>| Row {
        name,
        version: version.to_owned(),
        folder: folder.map(PathBuf::from),
    };
    let rows = [row("argo-rollouts", "v1.10.1", Some("/cache/argo-rollouts-0123")), row("node", "v1", None)];
    assert_eq!(
        table(&rows),
        "NAME           VERSION  FOLDER\n\
         argo-rollouts  v1.10.1  /cache/argo-rollouts-0123\n\
         node           v1       not built; `cargo xtask peer node` builds it\n"
    );
    assert_eq!(
        serde_json::to_value(&rows[1]).unwrap(),
        serde_json::json!({ "name": "node", "version": "v1", "folder": null })
    );
}
