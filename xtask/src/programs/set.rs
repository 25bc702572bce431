//! What a set of programs is. All of it is data, except for what a [`Step`] does.

use std::path::Path;

use anyhow::Result;

use super::pin::Version;
use super::progress::Detail;

/// Programs that tests run together, kept in one folder of the cache.
#[derive(Debug)]
pub(crate) struct Set {
    pub(crate) name: &'static str,
    /// Built first. The version of the first one is the version of the set.
    pub(crate) binaries: &'static [Binary],
    /// Copied when all is built.
    pub(crate) copies: &'static [Copied],
    /// Run last, in this order.
    pub(crate) steps: &'static [Step],
}

/// A folder with a go.mod and a go.sum that pin one Go module and all that goes with it.
#[derive(Debug)]
pub(crate) struct Module {
    /// From the root of the repository.
    pub(crate) folder: &'static str,
    /// The path of the Go module that it pins.
    pub(crate) pins: &'static str,
    /// The variables that tell its binaries which version they are. A release build sets them from git.
    pub(crate) stamps: &'static [(&'static str, Value)],
    /// Made in a copy of the source before its binaries are built.
    pub(crate) edits: &'static [Edit],
}

/// A change to the source of a pinned module, for what its binaries have no flag for: to listen on loopback only.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Edit {
    /// From the root of the pinned module.
    pub(crate) file: &'static str,
    /// Replaced wherever it occurs. An error if it does not.
    pub(crate) from: &'static str,
    pub(crate) to: &'static str,
}

/// What a variable is set to when a binary is linked.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Value {
    /// `v1.35.8`
    Version,
    /// `1`
    Major,
    /// `35`
    Minor,
    Text(&'static str),
}

/// A binary that Go builds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Binary {
    /// Its file in the folder of the set.
    pub(crate) name: &'static str,
    pub(crate) module: &'static Module,
    /// The Go package that it is built from.
    pub(crate) package: &'static str,
}

/// A file or a folder that comes with the module that is pinned, such as its CustomResourceDefinitions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Copied {
    pub(crate) module: &'static Module,
    /// From the root of the pinned module.
    pub(crate) from: &'static str,
    /// In the folder of the set.
    pub(crate) to: &'static str,
}

/// Anything else that fills the folder of a set: packages of a distribution, images, …
#[derive(Debug, Clone, Copy)]
pub(crate) struct Step {
    /// For people, and for the key.
    pub(crate) name: &'static str,
    /// Raised when the code of the step changes what it makes.
    pub(crate) revision: u32,
    /// Files of the repository that it reads: a change to one of them builds the set again.
    pub(crate) inputs: &'static [&'static str],
    /// What is there when it is done: files or folders in the folder of the set.
    pub(crate) outputs: &'static [&'static str],
    pub(crate) run: fn(&Place<'_>) -> Result<()>,
}

/// Where a step works.
pub(crate) struct Place<'a> {
    /// The root of the repository.
    pub(crate) repository: &'a Path,
    /// The folder to fill. Binaries and copies are in it. It is renamed at the end: keep its path out of files.
    pub(crate) folder: &'a Path,
    /// Shows people how far the step has come.
    pub(crate) detail: &'a Detail,
}

impl Binary {
    /// The flags of `go build` for it: static, small, and the same bytes on every machine.
    pub(super) fn flags(&self, version: &Version) -> Vec<String> {
        let mut linker = "-s -w".to_owned();
        for (variable, value) in self.module.stamps {
            let value = match value {
                Value::Version => version.as_str(),
                Value::Major => version.major(),
                Value::Minor => version.minor(),
                Value::Text(text) => text,
            };
            linker.push_str(&format!(" -X {variable}={value}"));
        }
        ["-mod=readonly", "-trimpath", "-buildvcs=false", "-ldflags", &linker].map(str::to_owned).to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_binary_knows_its_version_where_it_looks_for_it() {
        const MODULE: Module = Module {
            folder: "m",
            pins: "example.com/m",
            stamps: &[
                ("a.version", Value::Version),
                ("a.major", Value::Major),
                ("a.minor", Value::Minor),
                ("a.state", Value::Text("clean")),
            ],
            edits: &[],
        };
        let binary = Binary { name: "m", module: &MODULE, package: "example.com/m" };
        let flags = binary.flags(&Version::parse("v1.35.8").unwrap()).join(" ");
        let stamps = "-s -w -X a.version=v1.35.8 -X a.major=1 -X a.minor=35 -X a.state=clean";
        assert!(flags.ends_with(stamps), "{flags}");
    }
}
