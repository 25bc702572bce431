//! The image that `make image` makes: what is in it, and that it runs.

use std::{
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
};

use crate::install::stage::*;

/// Makes an image of our own command, from a copy of it in this folder, and gives the archive.
fn image(folder: &Path) -> PathBuf {
    let (binary, archive) = (folder.join("kausality"), folder.join("image.tar"));
    std::fs::copy(env!("CARGO_BIN_EXE_kausality"), &binary).unwrap();
    let output = Command::new(env!("CARGO"))
        .args(["run", "--quiet", "--locked", "--bin", "xtask", "--", "image"])
        .args(["--tag", "registry.local/kausality:test", "--binary"])
        .arg(&binary)
        .arg("--output")
        .arg(&archive)
        .current_dir(root())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.starts_with("registry.local/kausality:test@sha256:"), "{text}");
    archive
}

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Unpacks the only layer of an image.
fn unpack(archive: &Path, folder: &Path) -> PathBuf {
    run(Command::new("tar").arg("-xf").arg(archive).arg("-C").arg(folder));
    let manifest: serde_json::Value =
        serde_json::from_slice(&std::fs::read(folder.join("manifest.json")).unwrap()).unwrap();
    let layer = folder.join(manifest[0]["Layers"][0].as_str().unwrap());
    let files = folder.join("files");
    std::fs::create_dir(&files).unwrap();
    run(Command::new("tar").arg("-xpf").arg(layer).arg("-C").arg(&files));
    files
}

/// All files below a folder that can be run, by path.
fn programs(folder: &Path) -> Vec<String> {
    let listed = run(Command::new("find").arg(folder).args(["-type", "f", "-perm", "/111"]));
    let mut paths: Vec<String> =
        listed.lines().map(|path| path.strip_prefix(folder.to_str().unwrap()).unwrap().to_owned()).collect();
    paths.sort();
    paths
}

#[test]
fn the_image_is_the_same_from_any_folder_and_holds_one_program() {
    if !cfg!(target_os = "linux") {
        return;
    }
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let archives = folders.each_ref().map(|folder| image(folder.path()));
    assert!(
        std::fs::read(&archives[0]).unwrap() == std::fs::read(&archives[1]).unwrap(),
        "the images differ"
    );

    let files = unpack(&archives[0], folders[0].path());
    // Libraries have to be readable, not executable, but all of them are in an installed system.
    let programs = programs(&files);
    let ours: Vec<_> = programs.iter().filter(|path| !path.contains(".so")).collect();
    assert_eq!(ours, ["/usr/local/bin/kausality"], "no shell, no package manager");
    let libraries: Vec<_> = programs.iter().filter_map(|path| path.rsplit('/').next()).collect();
    assert!(libraries.contains(&"libc.so.6"), "{programs:?}");
    assert_eq!(files.join("tmp").metadata().unwrap().permissions().mode() & 0o7777, 0o1777);
    let link = std::fs::read_link(files.join("usr/local/bin/kubectl-kausality")).unwrap();
    assert_eq!(link, Path::new("kausality"));

    // It has all that it needs, and needs no root. Only root can look at it from inside.
    if rustix::process::geteuid().is_root() {
        let user = ["--userspec=65532:65532"];
        let said = run(Command::new("chroot")
            .args(user)
            .arg(&files)
            .args(["/usr/local/bin/kausality", "--version"]));
        assert!(said.starts_with("kausality "), "{said}");
    }
}
