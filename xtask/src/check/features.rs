//! The programs and the tests build third-party crates with the same features, so that nothing is compiled twice.
//!
//! Cargo unifies features over what one command builds. Built from the root of the workspace, `cargo build --bin kausality`
//! and `cargo test` differ only by dev-dependencies: those must not add a feature to a crate that a program uses.

use std::collections::{BTreeMap, BTreeSet};

use super::Violation;

/// The programs that are built alone: by `make demo`, and by every `cargo xtask`.
pub(crate) const PROGRAMS: &[&str] = &["kausality", "xtask"];

/// What `cargo tree --prefix none --format '{p} {f}'` prints.
pub(crate) struct Trees {
    /// Of the programs.
    pub(crate) programs: String,
    /// Of the workspace, without dev-dependencies.
    pub(crate) built: String,
    /// Of the workspace, with them.
    pub(crate) tested: String,
}

/// The packages of the programs that have other features in the tests.
pub(crate) fn violations(trees: &Trees) -> Vec<Violation> {
    let used = features(&trees.programs);
    let tested = features(&trees.tested);
    let mut found = Vec::new();
    for (package, built) in features(&trees.built) {
        let tested = tested.get(&package).cloned().unwrap_or_default();
        if !used.contains_key(&package) || built.is_subset(&tested) {
            continue;
        }
        let show = |sets: BTreeSet<String>| sets.into_iter().collect::<Vec<_>>().join(" or ");
        found.push(Violation {
            place: "Cargo.toml".to_owned(),
            what: format!("{package} has the features [{}], and in tests [{}]", show(built), show(tested)),
            why: "it and all that depends on it are compiled twice".to_owned(),
            instead: "name the same features in [workspace.dependencies], or switch off the dev-dependency's"
                .to_owned(),
        });
    }
    found
}

/// The sets of features that each package is built with.
fn features(tree: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in tree.lines() {
        let line = line.replace("(proc-macro)", "");
        let mut words = line.split_whitespace();
        let (Some(name), Some(version)) = (words.next(), words.next()) else { continue };
        // A path or a `(*)` may stand where the features would.
        let features = words.next().filter(|word| !word.starts_with('(')).unwrap_or_default();
        found.entry(format!("{name} {version}")).or_default().insert(features.to_owned());
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{Trees, violations};

    fn check(programs: &str, built: &str) -> Vec<String> {
        let tested =
            "kausality v0.1.0 (/src)\ntokio v1.0.0 net,time\nrcgen v0.14.0 pem\ntokio v1.0.0 net,time (*)\n";
        let [programs, built, tested] = [programs, built, tested].map(str::to_owned);
        let found = violations(&Trees { programs, built, tested });
        found.into_iter().map(|violation| violation.what).collect()
    }

    #[test]
    fn the_same_features_are_fine() {
        assert_eq!(check("tokio v1.0.0 net", "tokio v1.0.0 net,time (*)\nkausality v0.1.0 (/src)"), [""; 0]);
    }

    #[test]
    fn a_feature_that_only_tests_have_is_found() {
        let found = check("tokio v1.0.0", "tokio v1.0.0 net");
        assert_eq!(found, ["tokio v1.0.0 has the features [net], and in tests [net,time]"]);
    }

    #[test]
    fn crates_that_no_program_uses_may_differ() {
        assert_eq!(check("rcgen v0.14.0 pem", "tokio v1.0.0 net\nrcgen v0.14.0 pem"), [""; 0]);
    }
}
