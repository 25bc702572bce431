//! How files become a tar archive, always the same one.
//!
//! Sorted by path, dated 1970, owned by numbers, modes as given, and not compressed: nothing depends on when, where and by
//! whom it is written.

use std::path::Path;

use anyhow::{Context as _, Result};
use tar::{Builder, EntryType, Header};

use super::contents::{Contents, Entry, Kind};

/// The archive of these files.
pub(super) fn layer(contents: &Contents) -> Result<Vec<u8>> {
    let mut archive = Builder::new(Vec::new());
    for (path, entry) in contents {
        append(&mut archive, path, entry).with_context(|| format!("archiving {}", path.display()))?;
    }
    archive.into_inner().context("ending the archive")
}

/// One file of an archive, by root and readable by all.
pub(super) fn plain(content: &[u8]) -> Entry {
    Entry { mode: 0o644, owner: 0, kind: Kind::File(content.to_vec()) }
}

fn append(archive: &mut Builder<Vec<u8>>, path: &Path, entry: &Entry) -> std::io::Result<()> {
    let mut header = Header::new_gnu();
    header.set_mode(entry.mode);
    header.set_uid(entry.owner);
    header.set_gid(entry.owner);
    header.set_mtime(0);
    header.set_size(0);
    match &entry.kind {
        Kind::Folder => {
            header.set_entry_type(EntryType::Directory);
            archive.append_data(&mut header, path, std::io::empty())
        }
        Kind::File(content) => {
            header.set_entry_type(EntryType::Regular);
            header.set_size(content.len() as u64);
            archive.append_data(&mut header, path, content.as_slice())
        }
        Kind::Link(target) => {
            header.set_entry_type(EntryType::Symlink);
            archive.append_link(&mut header, path, target)
        }
    }
}
