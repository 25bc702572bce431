//! Files that come with a module, out of Go's module cache.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::set::{Copied, Module};

/// Copies a file or a folder of a module into the folder of a set. `root` is the root of the repository.
pub(super) fn copy(what: &Copied, root: &Path, folder: &Path) -> Result<()> {
    let from = source(what.module, root)?.join(what.from);
    tree(&from, &folder.join(what.to))
        .with_context(|| format!("copying {} of {}", what.from, what.module.pins))
}

/// Where Go keeps the source of the pinned module. It is there when a binary of it has been built.
pub(super) fn source(module: &Module, root: &Path) -> Result<PathBuf> {
    let output = Command::new("go")
        .current_dir(root.join(module.folder))
        .args(["list", "-mod=readonly", "-m", "-f", "{{.Dir}}", module.pins])
        .env("GOWORK", "off")
        .output()
        .context("starting `go list`")?;
    let folder = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    ensure!(
        output.status.success() && !folder.is_empty(),
        "`go list -m {}` names no folder ({}): {}",
        module.pins,
        output.status,
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(folder.into())
}

/// Copies a file, or a folder with all that is in it. What is read-only in the module cache stays so.
pub(super) fn tree(from: &Path, to: &Path) -> Result<()> {
    if from.is_file() {
        fs::copy(from, to).with_context(|| format!("copying {} to {}", from.display(), to.display()))?;
        return Ok(());
    }
    fs::create_dir(to).with_context(|| format!("making {}", to.display()))?;
    let entries = fs::read_dir(from).with_context(|| format!("listing {}", from.display()))?;
    for entry in entries {
        let entry = entry.with_context(|| format!("listing {}", from.display()))?;
        tree(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_copied_with_all_that_is_in_it() {
        let place = tempfile::tempdir().unwrap();
        let (from, to) = (place.path().join("from"), place.path().join("to"));
        fs::create_dir_all(from.join("inner")).unwrap();
        fs::write(from.join("a"), "1").unwrap();
        fs::write(from.join("inner/b"), "2").unwrap();
        tree(&from, &to).unwrap();
        assert_eq!(fs::read_to_string(to.join("a")).unwrap(), "1");
        assert_eq!(fs::read_to_string(to.join("inner/b")).unwrap(), "2");
    }

    #[test]
    fn a_file_is_copied_alone() {
        let place = tempfile::tempdir().unwrap();
        fs::write(place.path().join("a"), "1").unwrap();
        tree(&place.path().join("a"), &place.path().join("b")).unwrap();
        assert_eq!(fs::read_to_string(place.path().join("b")).unwrap(), "1");
    }

    #[test]
    fn what_the_module_does_not_have_is_an_error_that_names_it() {
        let place = tempfile::tempdir().unwrap();
        let error = tree(&place.path().join("crds"), &place.path().join("to")).unwrap_err();
        assert!(format!("{error:#}").contains("/crds"), "{error:#}");
    }
}
