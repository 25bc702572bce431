//! `cargo xtask check`: the architecture invariants that the compiler cannot see.
//!
//! | module | invariant |
//! |---|---|
//! | [`features`] | programs and tests build third-party crates with the same features |
//! | [`layers`] | dependencies point one way, and the shells never import each other |
//! | [`lints`] | every crate takes the lints of the workspace |
//! | [`tree`] | a pure crate depends on nothing that does I/O, not even through others |
//! | [`source`] | a pure crate calls no clock, environment, randomness or I/O of the standard library |

mod features;
mod forbidden;
mod layers;
mod lints;
mod source;
mod tree;
mod workspace;

use std::fmt;
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, Result};

use workspace::Workspace;

/// The crates that must give the same answer for the same input, anywhere and at any time.
///
/// A crate that does not exist is passed over. Renaming one is still noticed, since [`layers`] wants every
/// crate of the workspace to be in its table.
const PURE: &[&str] = &["kausality-core", "kausality-fields", "kausality-api", "kausality-cel"];

/// One broken invariant, told so that the reader knows what to do.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Violation {
    /// `file:line`, or the manifest.
    place: String,
    /// What was found there.
    what: String,
    /// Why it may not be there.
    why: String,
    /// What to do instead.
    instead: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}", self.place, self.what)?;
        writeln!(f, "    forbidden: {}", self.why)?;
        write!(f, "    instead:   {}", self.instead)
    }
}

/// Checks the workspace of the current directory, prints what is wrong, and fails if anything is.
pub(crate) fn run() -> Result<ExitCode> {
    let workspace = Workspace::read(Path::new("."))?;
    let violations = violations(&workspace)?;
    if violations.is_empty() {
        let pure: Vec<_> = workspace.pure().map(|member| member.name.as_str()).collect();
        let mut out = std::io::stdout().lock();
        writeln!(
            out,
            "{} crates checked, {} of them pure ({})",
            workspace.members.len(),
            pure.len(),
            pure.join(", ")
        )?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut err = std::io::stderr().lock();
    for violation in &violations {
        writeln!(err, "{violation}\n")?;
    }
    writeln!(err, "cargo xtask check: {} violation(s) of the architecture", violations.len())?;
    Ok(ExitCode::FAILURE)
}

/// All that is wrong with a workspace, in a stable order.
fn violations(workspace: &Workspace) -> Result<Vec<Violation>> {
    let mut found = layers::violations(&workspace.members, |member| workspace.relative(&member.manifest));
    for member in &workspace.members {
        let manifest = std::fs::read_to_string(&member.manifest)
            .with_context(|| format!("reading {}", member.manifest.display()))?;
        found.extend(lints::violation(&workspace.relative(&member.manifest), &manifest)?);
    }
    for member in workspace.pure() {
        let text = workspace::dependency_tree(member)?;
        found.extend(tree::violations(&workspace.relative(&member.manifest), &text));
    }
    found.extend(source::violations(workspace)?);
    found.extend(features::violations(&workspace.features()?));
    Ok(found)
}

#[cfg(test)]
mod tests;
