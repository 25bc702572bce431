//! A pure crate depends on nothing that does I/O, not even through others.

use super::Violation;
use super::forbidden::{self, Kind};

/// The forbidden packages in a tree that `cargo tree --prefix depth` printed, with the way that leads to
/// each.
pub(crate) fn violations(place: &str, tree: &str) -> Vec<Violation> {
    let mut way: Vec<&str> = Vec::new();
    let mut found = Vec::new();
    for line in tree.lines() {
        let digits = line.find(|c: char| !c.is_ascii_digit()).unwrap_or(line.len());
        let (depth, package) = line.split_at(digits);
        let (Ok(depth), Some(name)) = (depth.parse::<usize>(), package.split_whitespace().next()) else {
            continue;
        };
        way.truncate(depth);
        way.push(name);
        if let Some(kind) = forbidden::package(name) {
            found.push(violation(place, &way, kind));
        }
    }
    // Cargo prints a package once for each way to it; the same way twice says nothing more.
    found.sort();
    found.dedup();
    found
}

fn violation(place: &str, way: &[&str], kind: Kind) -> Violation {
    Violation {
        place: place.to_owned(),
        what: format!("depends on a package that {}: {}", kind.what(), way.join(" -> ")),
        why: format!("the crate is pure, and {}", kind.why()),
        instead: format!("{}; or switch off the feature that pulls the package in", kind.instead()),
    }
}

#[cfg(test)]
mod tests {
    use super::violations;

    fn check(tree: &str) -> Vec<String> {
        violations("Cargo.toml", tree).into_iter().map(|violation| violation.what).collect()
    }

    #[test]
    fn every_forbidden_package_is_named_with_the_way_to_it() {
        for name in [
            "tokio",
            "tokio-util",
            "hyper",
            "hyper-util",
            "kube",
            "kube-core",
            "kube-client",
            "kube-runtime",
            "reqwest",
            "async-std",
            "mio",
            "rand",
            "getrandom",
            "fastrand",
            "rusqlite",
        ] {
            let tree =
                format!("0kausality-core v0.1.0 (/src)\n1serde v1.0.0\n1middle v2.0.0\n2{name} v3.0.0 (*)\n");
            let found = check(&tree);
            assert_eq!(found.len(), 1, "{name}: {found:?}");
            assert!(found[0].ends_with(&format!(": kausality-core -> middle -> {name}")), "{found:?}");
        }
    }

    #[test]
    fn the_way_forgets_the_branches_it_left() {
        let found = check("0a v1.0.0\n1b v1.0.0\n2c v1.0.0\n3d v1.0.0\n1e v1.0.0\n2mio v1.0.0\n");
        assert!(found[0].ends_with(": a -> e -> mio"), "{found:?}");
    }

    #[test]
    fn names_that_only_look_alike_pass() {
        assert!(
            check(
                "0kausality-core v0.1.0\n1serde v1.0.0\n1kubernetes v1.0.0\n1random v1.0.0\n1mio2 v1.0.0\n\n"
            )
            .is_empty()
        );
    }
}
