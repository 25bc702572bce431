use std::fs;

use super::set::Step;
use super::*;

static ONE: Module = Module {
    folder: "modules/one",
    pins: "example.com/one",
    stamps: &[("example.com/one/version.version", Value::Version)],
    edits: &[],
};

static OTHER: Module = Module { folder: "modules/other", pins: "example.com/other", stamps: &[], edits: &[] };

/// A set with something of everything.
static SET: Set = Set {
    name: "set",
    binaries: &[
        Binary { name: "one", module: &ONE, package: "example.com/one/cmd" },
        Binary { name: "other", module: &OTHER, package: "example.com/other/cmd" },
    ],
    copies: &[Copied { module: &OTHER, from: "manifests", to: "crds" }],
    steps: &[Step {
        name: "greeting",
        revision: 1,
        inputs: &["modules/greeting"],
        outputs: &["made/greeting"],
        run: |place| {
            place.detail.set("writing".to_owned());
            fs::create_dir(place.folder.join("made"))?;
            fs::copy(place.repository.join("modules/greeting"), place.folder.join("made/greeting"))?;
            Ok(())
        },
    }],
};

/// A repository with the modules of [`SET`].
pub(super) struct Repository(tempfile::TempDir);

impl Repository {
    pub(super) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (module, version) in [(&ONE, "v1.2.3"), (&OTHER, "v4.5.6")] {
            let path = folder.path().join(module.folder);
            fs::create_dir_all(&path).unwrap();
            let go_mod = format!("module m\n\ngo 1.26.0\n\nrequire {} {version}\n", module.pins);
            fs::write(path.join("go.mod"), go_mod).unwrap();
            fs::write(path.join("go.sum"), format!("{} {version} h1:sum\n", module.pins)).unwrap();
        }
        fs::write(folder.path().join("modules/greeting"), "hello\n").unwrap();
        Self(folder)
    }

    pub(super) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(super) fn recipe(&self) -> Recipe {
        Recipe::read(&SET, self.path()).unwrap()
    }

    /// Replaces a text in a file.
    pub(super) fn edit(&self, file: &str, from: &str, to: &str) {
        let path = self.path().join(file);
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{text}");
        fs::write(path, text.replace(from, to)).unwrap();
    }
}

/// Fails if `go mod tidy` would drop a binary of a set that is in the repository.
#[track_caller]
pub(crate) fn check_tools(set: &Set) {
    for binary in set.binaries {
        let go_mod = repository().join(binary.module.folder).join("go.mod");
        let go_mod = fs::read_to_string(go_mod).unwrap();
        let mut last_words = go_mod.lines().map(|line| line.rsplit([' ', '\t']).next().unwrap_or_default());
        assert!(last_words.any(|word| word == binary.package), "`go mod tidy` would drop {}", binary.package);
    }
}

#[test]
fn set_unless_unset_empty_or_zero() {
    let set = |value: &str| is_set(Some(OsStr::new(value)));
    assert!(set("1") && set("true"));
    assert!(!set("") && !set("0"));
    assert!(!is_set(None));
}
