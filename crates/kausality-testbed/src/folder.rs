//! The folder of one control plane: certificates, data and logs.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use tempfile::TempDir;

/// Set to anything but nothing or 0, no folder is removed.
const KEEP: &str = "KAUSALITY_TESTBED_KEEP";

/// A folder that only this user can read, and that goes away with this value unless somebody will want to read it.
#[derive(Debug)]
pub(crate) struct Folder {
    folder: TempDir,
    keep: bool,
}

impl Folder {
    pub(crate) fn create() -> Result<Self> {
        let folder = TempDir::with_prefix("kausality-testbed-").context("making a temporary folder")?;
        Ok(Self { folder, keep: is_set(std::env::var_os(KEEP).as_deref()) })
    }

    /// The path of a file in it.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file into it.
    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> Result<PathBuf> {
        let path = self.file(name);
        std::fs::write(&path, content).with_context(|| format!("writing {}", path.display()))?;
        Ok(path)
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Does not remove it at the end.
    pub(crate) fn keep(&mut self) {
        self.keep = true;
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if self.keep || std::thread::panicking() {
            self.folder.disable_cleanup(true);
            // Nothing is left to do for who cannot even write to stderr.
            let _ = writeln!(std::io::stderr(), "the control plane's logs are in {}", self.path().display());
        }
    }
}

/// Whether a variable is set, and not to nothing or 0.
pub(crate) fn is_set(value: Option<&std::ffi::OsStr>) -> bool {
    value.is_some_and(|value| !value.is_empty() && value != "0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_goes_away_with_its_content() {
        let folder = Folder::create().unwrap();
        let file = folder.write("etcd.log", "text").unwrap();
        assert!(file.exists());
        let path = folder.path().to_owned();
        drop(folder);
        assert!(!path.exists());
    }

    #[test]
    fn a_panic_keeps_the_folder() {
        let (sender, receiver) = std::sync::mpsc::channel();
        let test = std::thread::spawn(move || {
            let folder = Folder::create().unwrap();
            sender.send(folder.path().to_owned()).unwrap();
            panic!("as a test that fails does");
        });
        assert!(test.join().is_err());
        let path = receiver.recv().unwrap();
        assert!(path.exists());
        std::fs::remove_dir_all(path).unwrap();
    }

    #[test]
    fn zero_and_nothing_are_not_set() {
        for (value, set) in [(None, false), (Some(""), false), (Some("0"), false), (Some("1"), true)] {
            assert_eq!(is_set(value.map(std::ffi::OsStr::new)), set, "{value:?}");
        }
    }
}
