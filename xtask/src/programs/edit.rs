//! A copy of a module, with changes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::copy;
use super::set::{Edit, Module};

/// The edited source, in a scratch folder. A relative path, so that binaries do not depend on where they are built.
const SOURCE: &str = "edited";

/// The folder that `go build` runs in. Without edits that is the module in the repository; else a copy of it in `scratch`,
/// which takes the pinned module from an edited copy.
pub(super) fn workplace(module: &Module, root: &Path, scratch: &Path) -> Result<PathBuf> {
    let own = root.join(module.folder);
    if module.edits.is_empty() {
        return Ok(own);
    }
    download(module, &own)?;
    copy::tree(&own, scratch)?;
    let source = scratch.join(SOURCE);
    copy::tree(&copy::source(module, root)?, &source)
        .with_context(|| format!("copying the source of {}", module.pins))?;
    for edit in module.edits {
        apply(edit, &source).with_context(|| format!("editing the source of {}", module.pins))?;
    }
    redirect(module, &scratch.join("go.mod"))?;
    Ok(scratch.to_owned())
}

/// Removes a scratch folder, if there is one.
pub(super) fn clear(scratch: &Path) -> Result<()> {
    if !scratch.exists() {
        return Ok(());
    }
    fs::remove_dir_all(scratch).with_context(|| format!("removing {}", scratch.display()))
}

/// Fetches the source of the pinned module.
fn download(module: &Module, folder: &Path) -> Result<()> {
    let output = Command::new("go")
        .current_dir(folder)
        .args(["mod", "download", module.pins])
        .env("GOWORK", "off")
        .output()
        .context("starting `go mod download`")?;
    ensure!(
        output.status.success(),
        "`go mod download {}` failed ({}): {}",
        module.pins,
        output.status,
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(())
}

fn apply(edit: &Edit, source: &Path) -> Result<()> {
    let path = source.join(edit.file);
    let text = fs::read_to_string(&path).with_context(|| format!("reading {}", edit.file))?;
    ensure!(
        text.contains(edit.from),
        "{} does not contain `{}`: look how this version does it, and adapt the edit",
        edit.file,
        edit.from
    );
    // Files out of the module cache are read-only.
    fs::remove_file(&path).with_context(|| format!("removing {}", path.display()))?;
    fs::write(&path, text.replace(edit.from, edit.to)).with_context(|| format!("writing {}", path.display()))
}

/// Makes a go.mod take the pinned module from the edited copy.
fn redirect(module: &Module, go_mod: &Path) -> Result<()> {
    let text = fs::read_to_string(go_mod).with_context(|| format!("reading {}", go_mod.display()))?;
    let text = format!("{text}\nreplace {} => ./{SOURCE}\n", module.pins);
    fs::write(go_mod, text).with_context(|| format!("writing {}", go_mod.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const EDIT: Edit = Edit { file: "main.go", from: "\":%d\"", to: "\"127.0.0.1:%d\"" };

    fn source(text: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(EDIT.file);
        fs::write(&path, text).unwrap();
        let mut permissions = fs::metadata(&path).unwrap().permissions();
        permissions.set_readonly(true);
        fs::set_permissions(&path, permissions).unwrap();
        folder
    }

    #[test]
    fn each_occurrence_is_replaced_in_a_file_that_is_read_only() {
        let folder = source("a(\":%d\") b(\":%d\")");
        apply(&EDIT, folder.path()).unwrap();
        let text = fs::read_to_string(folder.path().join(EDIT.file)).unwrap();
        assert_eq!(text, "a(\"127.0.0.1:%d\") b(\"127.0.0.1:%d\")");
    }

    #[test]
    fn an_edit_that_changes_nothing_is_an_error() {
        let error = apply(&EDIT, source("a(address)").path()).unwrap_err().to_string();
        assert!(error.starts_with("main.go does not contain `\":%d\"`"), "{error}");
    }

    #[test]
    fn without_edits_the_module_is_built_where_it_is() {
        static MODULE: Module = Module { folder: "m", pins: "example.com/m", stamps: &[], edits: &[] };
        let scratch = Path::new("/nonexistent/scratch");
        assert_eq!(workplace(&MODULE, Path::new("/root"), scratch).unwrap(), Path::new("/root/m"));
        clear(scratch).unwrap();
    }

    #[test]
    fn the_edited_copy_replaces_the_pinned_module() {
        static MODULE: Module = Module { folder: "m", pins: "example.com/m", stamps: &[], edits: &[EDIT] };
        let folder = tempfile::tempdir().unwrap();
        let go_mod = folder.path().join("go.mod");
        fs::write(&go_mod, "module m\n").unwrap();
        redirect(&MODULE, &go_mod).unwrap();
        let text = fs::read_to_string(&go_mod).unwrap();
        assert_eq!(text, "module m\n\nreplace example.com/m => ./edited\n");
    }
}
