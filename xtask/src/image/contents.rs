//! The files of the image.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context as _, Result, bail};

/// The user that the image runs as, by number: Kubernetes cannot tell from a name that it is not root.
pub(super) const USER: u64 = 65532;

/// Where the program is.
const FOLDER: &str = "/usr/local/bin";

/// As in the distroless images: root owns the files, and nonroot runs the program.
const PASSWD: &str = "root:x:0:0:root:/root:/sbin/nologin\n\
                      nonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin\n";
const GROUP: &str = "root:x:0:\nnonroot:x:65532:\n";
/// Names are looked up in /etc/hosts, which Kubernetes writes, before DNS is asked.
const NSSWITCH: &str = "passwd: files\ngroup: files\nhosts: files dns\n";

/// A program, and everything that it needs from the machine it was built on.
pub(super) struct Program {
    pub(super) name: String,
    pub(super) binary: Vec<u8>,
    /// The path and the content of each shared library.
    pub(super) libraries: Vec<(String, Vec<u8>)>,
    /// Certificates that connections to the outside trust, in PEM, if the machine has any.
    pub(super) authorities: Option<Vec<u8>>,
}

impl Program {
    /// The path of the program in the image.
    pub(super) fn path(&self) -> String {
        format!("{FOLDER}/{}", self.name)
    }
}

/// A file, a folder or a link of the image.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) mode: u32,
    /// Both user and group.
    pub(super) owner: u64,
    pub(super) kind: Kind,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Folder,
    File(Vec<u8>),
    /// A symbolic link.
    Link(String),
}

/// Everything in the image, by path without the leading slash, parents before their children.
pub(super) type Contents = BTreeMap<PathBuf, Entry>;

/// The files of an image that runs a program.
pub(super) fn contents(program: &Program) -> Result<Contents> {
    let file = |mode, content: &[u8]| Entry { mode, owner: 0, kind: Kind::File(content.to_vec()) };
    let folder = |mode, owner| Entry { mode, owner, kind: Kind::Folder };
    let mut entries = vec![
        (program.path(), file(0o755, &program.binary)),
        ("/etc/passwd".to_owned(), file(0o644, PASSWD.as_bytes())),
        ("/etc/group".to_owned(), file(0o644, GROUP.as_bytes())),
        ("/etc/nsswitch.conf".to_owned(), file(0o644, NSSWITCH.as_bytes())),
        ("/home/nonroot".to_owned(), folder(0o700, USER)),
        ("/tmp".to_owned(), folder(0o1777, 0)),
    ];
    if let Some(authorities) = &program.authorities {
        entries.push(("/etc/ssl/certs/ca-certificates.crt".to_owned(), file(0o644, authorities)));
    }
    if program.name == "kausality" {
        // So it is a plugin of kubectl, too.
        let link = Entry { mode: 0o777, owner: 0, kind: Kind::Link(program.name.clone()) };
        entries.push((format!("{FOLDER}/kubectl-kausality"), link));
    }
    for (path, library) in &program.libraries {
        entries.push((path.clone(), file(0o755, library)));
    }

    let mut contents = Contents::new();
    for (path, entry) in entries {
        let path = relative(&path)?;
        for parent in path.ancestors().skip(1).filter(|parent| !parent.as_os_str().is_empty()) {
            contents.entry(parent.to_owned()).or_insert_with(|| folder(0o755, 0));
        }
        contents.insert(path, entry);
    }
    Ok(contents)
}

/// A path without its leading slash. Others than plain ones are refused: `ldd` prints none, and an image must not have any.
fn relative(path: &str) -> Result<PathBuf> {
    let path =
        Path::new(path).strip_prefix("/").with_context(|| format!("{path} is not an absolute path"))?;
    if path.components().any(|part| !matches!(part, Component::Normal(_))) {
        bail!("{} is not a plain path", path.display());
    }
    Ok(path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_plain() {
        assert_eq!(relative("/lib64/ld.so").unwrap(), Path::new("lib64/ld.so"));
        assert!(relative("lib64/ld.so").is_err());
        assert!(relative("/lib/../etc/passwd").is_err());
    }
}
