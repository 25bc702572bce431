//! Figures that were counted already: instructions are the same as long as what is measured is the same.

use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};
use sha2::{Digest as _, Sha256};

use super::Figures;

/// All that the figures depend on, besides the compiler.
const MEASURED: &[&str] = &[
    "Cargo.lock",
    "Cargo.toml",
    "crates/kausality-api/Cargo.toml",
    "crates/kausality-api/src",
    "crates/kausality-cel/Cargo.toml",
    "crates/kausality-cel/src",
    "crates/kausality-core/Cargo.toml",
    "crates/kausality-core/examples",
    "crates/kausality-core/src",
    "crates/kausality-fields/Cargo.toml",
    "crates/kausality-fields/examples",
    "crates/kausality-fields/src",
    "crates/kausality/examples/synthesise.rs",
    "crates/kausality/src/replay",
    "crates/kausality/src/replay.rs",
    "fixtures/admission-reviews",
    "xtask/src/cost.rs",
];

/// The figures of these sources: from the cache, or measured and kept there.
pub(super) fn once(measure: impl FnOnce() -> Result<Figures>) -> Result<Figures> {
    let Some(file) = kept()? else { return measure() };
    if let Some(figures) = fs::read(&file).ok().and_then(|text| serde_json::from_slice(&text).ok()) {
        writeln!(std::io::stdout(), "unchanged since it was counted ({}):", file.display())?;
        return Ok(figures);
    }
    let figures = measure()?;
    fs::create_dir_all(file.parent().unwrap_or(Path::new(".")))?;
    fs::write(&file, serde_json::to_vec(&figures)?).with_context(|| format!("writing {}", file.display()))?;
    Ok(figures)
}

/// The file of these sources in the cache of the user, where there is one.
fn kept() -> Result<Option<PathBuf>> {
    let xdg = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || std::env::var_os("HOME").map(|home| Path::new(&home).join(".cache"));
    let Some(cache) = xdg.or_else(home) else { return Ok(None) };
    let compiler = Command::new("rustc").arg("-vV").output().context("running rustc")?;
    ensure!(compiler.status.success(), "rustc -vV failed");
    let mut hash = Sha256::new();
    hash.update(&compiler.stdout);
    for path in MEASURED {
        add(Path::new(path), &mut hash)?;
    }
    let name: String = hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    Ok(Some(cache.join("kausality/cost").join(name + ".json")))
}

/// Adds a file, or all files of a folder, by name and content.
fn add(path: &Path, hash: &mut Sha256) -> Result<()> {
    let context = || format!("reading {}", path.display());
    if path.is_dir() {
        let entries = fs::read_dir(path).with_context(context)?;
        let mut paths: Vec<PathBuf> = entries.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
        paths.sort();
        return paths.iter().try_for_each(|path| add(path, hash));
    }
    let text = fs::read(path).with_context(context)?;
    hash.update(path.to_string_lossy().as_bytes());
    hash.update(text.len().to_le_bytes());
    hash.update(&text);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn print(path: &Path) -> Vec<u8> {
        let mut hash = Sha256::new();
        add(path, &mut hash).unwrap();
        hash.finalize().to_vec()
    }

    #[test]
    fn a_changed_renamed_or_added_file_is_measured_again() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        file("a", "1");
        let first = print(folder.path());
        assert_eq!(print(folder.path()), first);
        file("a", "2");
        let changed = print(folder.path());
        fs::rename(folder.path().join("a"), folder.path().join("b")).unwrap();
        let renamed = print(folder.path());
        file("c", "");
        let added = print(folder.path());
        let all = std::collections::BTreeSet::from([first, changed, renamed, added]);
        assert_eq!(all.len(), 4);
    }

    #[test]
    fn all_that_is_measured_is_there() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        for path in MEASURED {
            assert!(root.join(path).exists(), "{path} is gone: bring MEASURED up to date");
        }
    }
}
