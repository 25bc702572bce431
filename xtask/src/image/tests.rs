use std::io::Read as _;

use serde_json::Value;

use super::contents::Kind;
use super::*;

fn program() -> Program {
    let library = |path: &str| (path.to_owned(), b"a library".to_vec());
    Program {
        name: "kausality".to_owned(),
        binary: b"a program".to_vec(),
        libraries: vec![library("/lib64/ld-linux-x86-64.so.2"), library("/lib/x86_64-linux-gnu/libc.so.6")],
        authorities: Some(b"certificates".to_vec()),
    }
}

/// A line for each file of the image: mode, owner, path.
fn listing(program: &Program) -> String {
    let contents = contents::contents(program).unwrap();
    let line = |(path, entry): (&PathBuf, &contents::Entry)| {
        let path = path.display();
        let what = match &entry.kind {
            Kind::Folder => format!("{path}/"),
            Kind::File(_) => path.to_string(),
            Kind::Link(target) => format!("{path} -> {target}"),
        };
        format!("{:04o} {:>5} {what}\n", entry.mode, entry.owner)
    };
    contents.iter().map(line).collect()
}

#[test]
fn the_image_holds_the_program_and_what_it_needs_and_nothing_else() {
    let expected = "\
0755     0 etc/
0644     0 etc/group
0644     0 etc/nsswitch.conf
0644     0 etc/passwd
0755     0 etc/ssl/
0755     0 etc/ssl/certs/
0644     0 etc/ssl/certs/ca-certificates.crt
0755     0 home/
0700 65532 home/nonroot/
0755     0 lib/
0755     0 lib/x86_64-linux-gnu/
0755     0 lib/x86_64-linux-gnu/libc.so.6
0755     0 lib64/
0755     0 lib64/ld-linux-x86-64.so.2
1777     0 tmp/
0755     0 usr/
0755     0 usr/local/
0755     0 usr/local/bin/
0755     0 usr/local/bin/kausality
0777     0 usr/local/bin/kubectl-kausality -> kausality
";
    assert_eq!(listing(&program()), expected);
}

/// The files of an archive.
fn files(archive: &[u8]) -> Vec<(String, Vec<u8>)> {
    let mut archive = tar::Archive::new(archive);
    let files = archive.entries().unwrap().map(|entry| {
        let mut entry = entry.unwrap();
        assert_eq!(entry.header().mtime().unwrap(), 0);
        let mut content = Vec::new();
        entry.read_to_end(&mut content).unwrap();
        (entry.path().unwrap().to_str().unwrap().to_owned(), content)
    });
    files.collect()
}

fn json(files: &[(String, Vec<u8>)], name: &str) -> Value {
    let file = files.iter().find(|(path, _)| path == name);
    serde_json::from_slice(&file.unwrap_or_else(|| panic!("{name} is missing")).1).unwrap()
}

fn blob(digest: &Value) -> String {
    format!("blobs/{}", digest.as_str().unwrap().replace(':', "/"))
}

#[test]
fn an_engine_finds_its_way_from_the_index_to_the_layer_and_does_not_run_it_as_root() {
    let image = archive::image(&program(), "registry.local/kausality:1", "amd64").unwrap();
    let files = files(&image.archive);
    let index = json(&files, "index.json");
    let found = &index["manifests"][0];
    assert_eq!(found["digest"], image.digest);
    assert_eq!(found["annotations"]["io.containerd.image.name"], "registry.local/kausality:1");
    let manifest = json(&files, &blob(&found["digest"]));
    let config = json(&files, &blob(&manifest["config"]["digest"]));
    assert_eq!(config["config"]["User"], "65532:65532");
    assert_eq!(config["config"]["Entrypoint"][0], "/usr/local/bin/kausality");
    assert_eq!(config["rootfs"]["diff_ids"][0], manifest["layers"][0]["digest"]);
    let docker = json(&files, "manifest.json");
    assert_eq!(docker[0]["Layers"][0], blob(&manifest["layers"][0]["digest"]));
    assert_eq!(docker[0]["Config"], blob(&manifest["config"]["digest"]));
    assert!(files.iter().any(|(path, _)| docker[0]["Layers"][0] == path.as_str()));
}

#[test]
fn a_name_without_a_tag_is_refused() {
    let error = archive::image(&program(), "registry.local/kausality", "amd64").err().unwrap();
    assert!(error.to_string().contains("has no tag"), "{error}");
}

/// Copies of one binary in two folders, at two times, give the same bytes: those of this test, which has libraries.
#[test]
fn an_image_depends_on_what_is_in_the_binary_alone() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let images = folders.each_ref().map(|folder| {
        let (binary, output) = (folder.path().join("kausality"), folder.path().join("image.tar"));
        fs::copy(std::env::current_exe().unwrap(), &binary).unwrap();
        let tag = "registry.local/kausality:1".to_owned();
        write(&Options { output: Some(output.clone()), tag, binary: Some(binary) }).unwrap();
        fs::read(output).unwrap()
    });
    assert!(images[0] == images[1], "the images differ");
    let layer = files(&images[0]).into_iter().map(|(_, content)| content).max_by_key(Vec::len).unwrap();
    let paths: Vec<String> = files(&layer).into_iter().map(|(path, _)| path).collect();
    assert!(paths.iter().any(|path| path.ends_with("/libc.so.6")), "{paths:?}");
}
