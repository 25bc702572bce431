//! What inputs are made from.

use std::{fs, path::PathBuf};

/// Where the inputs of a target are kept.
fn folder(target: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target)
}

/// The kept inputs of a target, in the order of their names.
pub(crate) fn kept(target: &str) -> Vec<Vec<u8>> {
    let mut files: Vec<PathBuf> =
        fs::read_dir(folder(target)).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty(), "no corpus in {}", folder(target).display());
    files.iter().map(|file| fs::read(file).unwrap()).collect()
}

/// A file of the repository.
pub(crate) fn file(path: &str) -> Vec<u8> {
    fs::read(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)).unwrap()
}

/// Keeps an input that failed. Where it is.
pub(crate) fn keep(target: &str, input: &[u8]) -> PathBuf {
    let hash = input.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let path = folder(target).join(format!("failed-{hash:016x}"));
    fs::write(&path, input).unwrap();
    path
}
