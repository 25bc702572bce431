//! Which Go there is, and whether it is new enough.

use std::fmt;
use std::io::ErrorKind;
use std::path::Path;
use std::process::Command;

use super::pin::release;

/// The Go on the `PATH`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Toolchain {
    /// As Go writes it: `go1.26.8`.
    Usable {
        version: String,
    },
    Unusable(Reason),
}

/// Why nothing can be built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reason {
    Missing,
    /// This version, and it may not fetch a newer one.
    TooOld(String),
    /// It is there, and fails with this message.
    Broken(String),
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => write!(f, "Go is not installed"),
            Self::TooOld(version) => {
                write!(f, "{version} is too old, and GOTOOLCHAIN lets it fetch no other")
            }
            Self::Broken(told) => write!(f, "`go env` failed: {told}"),
        }
    }
}

impl Toolchain {
    /// Asks the Go on the `PATH`, from a folder outside of any module, so that it answers for itself.
    pub(super) fn find(folder: &Path, oldest: &str) -> Self {
        match Command::new("go").args(["env", "GOVERSION", "GOTOOLCHAIN"]).current_dir(folder).output() {
            Err(error) if error.kind() == ErrorKind::NotFound => Self::Unusable(Reason::Missing),
            Err(error) => Self::Unusable(Reason::Broken(error.to_string())),
            Ok(output) if output.status.success() => {
                Self::judge(&String::from_utf8_lossy(&output.stdout), oldest)
            }
            Ok(output) => {
                let told = String::from_utf8_lossy(&output.stderr).trim().to_owned();
                Self::Unusable(Reason::Broken(told))
            }
        }
    }

    /// `answer` has the values of `GOVERSION` and `GOTOOLCHAIN`, one per line.
    ///
    /// An old Go fetches the one that a go.mod asks for, unless `GOTOOLCHAIN` is `local`. Before 1.21 it could
    /// not, and the value is empty.
    fn judge(answer: &str, oldest: &str) -> Self {
        let mut lines = answer.lines().map(str::trim);
        let version = lines.next().unwrap_or_default().to_owned();
        let alone = matches!(lines.next(), None | Some("" | "local"));
        if alone && release(&version) < release(oldest) {
            Self::Unusable(Reason::TooOld(version))
        } else {
            Self::Usable { version }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(answer: &str, expected: &Toolchain) {
        assert_eq!(&Toolchain::judge(answer, "1.26.0"), expected);
    }

    fn usable(version: &str) -> Toolchain {
        Toolchain::Usable { version: version.to_owned() }
    }

    fn too_old(version: &str) -> Toolchain {
        Toolchain::Unusable(Reason::TooOld(version.to_owned()))
    }

    #[test]
    fn as_new_as_needed() {
        check("go1.26.0\nlocal\n", &usable("go1.26.0"));
    }

    #[test]
    fn numbers_are_compared_as_numbers() {
        check("go1.100.0\nlocal\n", &usable("go1.100.0"));
        check("go1.9.7\nlocal\n", &too_old("go1.9.7"));
    }

    #[test]
    fn old_and_may_not_fetch_another() {
        check("go1.25.9\nlocal\n", &too_old("go1.25.9"));
    }

    #[test]
    fn old_and_may_fetch_another() {
        check("go1.25.9\nauto\n", &usable("go1.25.9"));
    }

    #[test]
    fn so_old_that_it_cannot_fetch_another() {
        check("go1.19.8\n\n", &too_old("go1.19.8"));
    }
}
