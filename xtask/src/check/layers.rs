//! Which crate of the workspace may depend on which.

use super::workspace::{Dependency, Member};
use super::{PURE, Violation};

/// Crates of one kind. A crate depends on its own layer, where that is open, and on layers before it.
struct Layer {
    name: &'static str,
    crates: &'static [&'static str],
    siblings: Siblings,
}

/// Whether the crates of one layer may depend on each other.
#[derive(PartialEq)]
enum Siblings {
    Open,
    /// Not even in tests: what needs two of them is tested where they come together.
    Strangers,
}

/// The picture in ARCHITECTURE.md, top to bottom. Crates that do not exist do no harm here.
///
/// What only tests use comes last: every crate may have it as a dev-dependency, and none otherwise.
const LAYERS: &[Layer] = &[
    Layer { name: "pure", crates: PURE, siblings: Siblings::Open },
    Layer { name: "cluster", crates: &["kausality-cluster", "kausality-sandbox"], siblings: Siblings::Open },
    Layer {
        name: "shell",
        crates: &[
            "kausality-webhook",
            "kausality-controller",
            "kausality-report",
            "kausality-web",
            "kausality-tui",
        ],
        siblings: Siblings::Strangers,
    },
    Layer { name: "binary", crates: &["kausality", "xtask"], siblings: Siblings::Strangers },
    Layer { name: "test", crates: &["kausality-simulation", "kausality-testbed"], siblings: Siblings::Open },
];

/// The dependencies inside the workspace that go the wrong way, and the crates that have no layer.
pub(crate) fn violations(members: &[Member], place: impl Fn(&Member) -> String) -> Vec<Violation> {
    let mut found = Vec::new();
    for member in members {
        let Some(own) = layer(&member.name) else {
            found.push(homeless(place(member), &member.name));
            continue;
        };
        for dependency in &member.dependencies {
            if let Some(other) = layer(&dependency.name) {
                found.extend(wrong(place(member), &member.name, own, dependency, other));
            }
        }
    }
    found
}

fn layer(name: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.crates.contains(&name))
}

fn wrong(place: String, name: &str, own: usize, dependency: &Dependency, other: usize) -> Option<Violation> {
    let (from, to) = (LAYERS.get(own)?, LAYERS.get(other)?);
    let test_only = dependency.kind.as_deref() == Some("dev");
    let (why, instead) = if own == other && from.siblings == Siblings::Strangers {
        (
            format!("crates of the {} layer never import each other", from.name),
            "move what both need into a layer before, or let `kausality` bring the two together",
        )
    } else if other > own && !test_only {
        (
            format!("dependencies point one way, and {} comes before {}", from.name, to.name),
            "turn it round: pass in the data or a trait that the earlier layer defines",
        )
    } else {
        return None;
    };
    Some(Violation {
        place,
        what: format!("{name} ({}) depends on {} ({})", from.name, dependency.name, to.name),
        why,
        instead: instead.to_owned(),
    })
}

fn homeless(place: String, name: &str) -> Violation {
    Violation {
        place,
        what: format!("{name} is in no layer"),
        why: "nothing says what it may depend on, or whether it must be pure".to_owned(),
        instead: "add it to LAYERS in xtask/src/check/layers.rs, or to PURE in xtask/src/check.rs".to_owned(),
    }
}

#[cfg(test)]
mod tests;
