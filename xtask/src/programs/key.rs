//! The name of a folder in the cache.

use super::recipe::Recipe;

/// Names the folders that one recipe can make on one platform, one for each version of Go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Key(String);

impl Key {
    /// Depends on all that the content depends on, but for Go: the go.mod and go.sum files, the flags, the edits, the
    /// links, the inputs of the steps.
    pub(super) fn new(recipe: &Recipe, os: &str, arch: &str) -> Self {
        let mut print = Fingerprint::new();
        for link in &recipe.links {
            print.add("link").add(link.name).add(&link.target.to_string_lossy());
        }
        for build in &recipe.builds {
            print.add("build").add(build.binary.name).add(build.binary.package);
            print.add(&build.pin.go_mod).add(&build.pin.go_sum);
            for flag in build.flags() {
                print.add(&flag);
            }
            for edit in build.binary.module.edits {
                print.add("edit").add(edit.file).add(edit.from).add(edit.to);
            }
        }
        for copy in &recipe.copies {
            print.add("copy").add(copy.what.from).add(copy.what.to);
            print.add(&copy.pin.go_mod).add(&copy.pin.go_sum);
        }
        for work in &recipe.steps {
            print.add("step").add(work.step.name).add(&work.step.revision.to_string());
            for input in &work.inputs {
                print.add(input);
            }
        }
        Self(format!("{:016x}-{os}-{arch}", print.0))
    }

    /// With a name before it, where one folder of the cache holds sets of several names.
    pub(super) fn named(&self, name: &str) -> Self {
        Self(format!("{name}-{}", self.0))
    }

    /// The folder that this version of Go fills.
    pub(super) fn with_go(&self, version: &str) -> String {
        let plain = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c } else { '_' };
        format!("{}-{}", self.0, version.chars().map(plain).collect::<String>())
    }

    /// Whether some version of Go fills this folder.
    pub(super) fn is_of(&self, folder: &str) -> bool {
        folder.strip_prefix(&self.0).is_some_and(|rest| rest.starts_with('-'))
    }
}

/// FNV-1a. A name is all that is wanted of it: nobody gains from two recipes with one name.
struct Fingerprint(u64);

impl Fingerprint {
    fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    fn add(&mut self, text: &str) -> &mut Self {
        // With the length, so that moving a byte from one text to the next makes a difference.
        self.bytes(&text.len().to_le_bytes()).bytes(text.as_bytes())
    }

    fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        self
    }
}

#[cfg(test)]
mod tests;
