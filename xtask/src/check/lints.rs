//! Every crate takes the lints of the workspace.

use anyhow::{Context as _, Result};
use toml_edit::Document;

use super::Violation;

/// Whether a manifest says `[lints] workspace = true`.
pub(crate) fn violation(place: &str, manifest: &str) -> Result<Option<Violation>> {
    let document = Document::parse(manifest).with_context(|| format!("reading {place}"))?;
    let inherited =
        document.get("lints").and_then(|lints| lints.get("workspace")).and_then(|value| value.as_bool());
    Ok((inherited != Some(true)).then(|| Violation {
        place: place.to_owned(),
        what: "the crate does not take the lints of the workspace".to_owned(),
        why: "a crate without them may panic, print and use unsafe code unnoticed".to_owned(),
        instead: "add `[lints]` with `workspace = true` to the manifest".to_owned(),
    }))
}

#[cfg(test)]
mod tests {
    use super::violation;

    #[test]
    fn only_the_inherited_lints_will_do() {
        let passes = |manifest: &str| violation("Cargo.toml", manifest).expect("valid TOML").is_none();
        assert!(passes("[package]\nname = \"a\"\n[lints]\nworkspace = true\n"));
        assert!(passes("lints.workspace = true\n"));
        assert!(!passes("[package]\nname = \"a\"\n"));
        assert!(!passes("[lints]\nworkspace = false\n"));
        assert!(!passes("[lints.rust]\nunsafe_code = \"forbid\"\n"));
        assert!(!passes("# [lints]\n# workspace = true\n"));
    }
}
