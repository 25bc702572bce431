//! The name of a folder in the cache.

use super::pin::Pins;
use super::recipe::Recipe;

/// Names the folders that one recipe can make on one platform, one for each version of Go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Key(String);

impl Key {
    /// Depends on all that the binaries depend on, but for Go: the go.mod and go.sum files, the flags, the links.
    pub(super) fn new(recipe: &Recipe, pins: &Pins, os: &str, arch: &str) -> Self {
        let mut print = Fingerprint::new();
        for link in &recipe.links {
            print.add("link").add(link.name).add(&link.target.to_string_lossy());
        }
        for build in &recipe.builds {
            let pin = pins.of(build.binary.module);
            print.add("build").add(build.binary.name).add(build.binary.package);
            print.add(&pin.go_mod).add(&pin.go_sum);
            for flag in build.binary.flags(&build.version) {
                print.add(&flag);
            }
        }
        Self(format!("{:016x}-{os}-{arch}", print.0))
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
