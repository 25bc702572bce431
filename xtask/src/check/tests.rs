//! The whole chain, on workspaces that are planted on disk.

use std::fs;

use tempfile::TempDir;

use super::violations;
use super::workspace::Workspace;

const LINTS: &str = "[lints]\nworkspace = true\n";

/// Writes a workspace of the given files, and says what the check says about it.
fn check(files: &[(&str, &str)]) -> Vec<String> {
    let root = TempDir::new().expect("a temporary directory");
    let manifest = "[workspace]\nresolver = \"3\"\nmembers = [\"crates/*\"]\nexclude = [\"elsewhere\"]\n\
        [workspace.lints.rust]\nunsafe_code = \"forbid\"\n";
    // Path dependencies need no registry, so nothing here may reach for one.
    let common = [("Cargo.toml", manifest), (".cargo/config.toml", "[net]\noffline = true\n")];
    for (path, text) in common.iter().chain(files) {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        fs::write(path, text).expect("a file");
    }
    let workspace = Workspace::read(root.path()).expect("cargo metadata");
    let found = violations(&workspace).expect("the check runs");
    found.into_iter().map(|violation| format!("{}: {}", violation.place, violation.what)).collect()
}

fn manifest(name: &str, rest: &str) -> String {
    format!("[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n{rest}")
}

#[test]
fn a_runtime_behind_another_crate_is_found() {
    let core = manifest(
        "kausality-core",
        &format!(
            "{LINTS}[features]\nx = [\"dep:middle\"]\n[dependencies]\n\
             middle = {{ path = \"../../elsewhere/middle\", optional = true }}\n"
        ),
    );
    let middle =
        manifest("middle", "[target.'cfg(windows)'.dependencies]\ntokio = { path = \"../tokio\" }\n");
    let files = [
        ("crates/kausality-core/Cargo.toml", core.as_str()),
        ("crates/kausality-core/src/lib.rs", ""),
        ("elsewhere/middle/Cargo.toml", &middle),
        ("elsewhere/middle/src/lib.rs", ""),
        ("elsewhere/tokio/Cargo.toml", &manifest("tokio", "")),
        ("elsewhere/tokio/src/lib.rs", ""),
    ];
    assert_eq!(
        check(&files),
        ["crates/kausality-core/Cargo.toml: depends on a package that runs asynchronous code: \
             kausality-core -> middle -> tokio"]
    );
}

#[test]
fn a_runtime_for_tests_and_build_scripts_is_free() {
    let core = manifest(
        "kausality-core",
        &format!(
            "{LINTS}[dev-dependencies]\ntokio = {{ path = \"../../elsewhere/tokio\" }}\n\
             [build-dependencies]\nmio = {{ path = \"../../elsewhere/mio\" }}\n"
        ),
    );
    let files = [
        ("crates/kausality-core/Cargo.toml", core.as_str()),
        ("crates/kausality-core/src/lib.rs", ""),
        ("crates/kausality-core/build.rs", "fn main() { println!(); }"),
        ("elsewhere/tokio/Cargo.toml", &manifest("tokio", "")),
        ("elsewhere/tokio/src/lib.rs", ""),
        ("elsewhere/mio/Cargo.toml", &manifest("mio", "")),
        ("elsewhere/mio/src/lib.rs", ""),
    ];
    assert_eq!(check(&files), [] as [&str; 0]);
}

#[test]
fn the_files_of_a_pure_crate_are_read_as_the_compiler_reads_them() {
    let bad = "fn f() { println!(); }";
    let core = manifest("kausality-core", LINTS);
    let files = [
        ("crates/kausality-core/Cargo.toml", core.as_str()),
        (
            "crates/kausality-core/src/lib.rs",
            "mod a;\nmod b;\nmod r#match;\n#[path = \"odd/name.rs\"]\nmod c;\n",
        ),
        // Tests, in all the places that they have.
        ("crates/kausality-core/tests/it.rs", bad),
        ("crates/kausality-core/src/a.rs", "#[cfg(test)]\nmod tests;\nmod deep { mod file; }\n"),
        ("crates/kausality-core/src/a/tests.rs", "mod more;\nfn f() { println!(); }"),
        ("crates/kausality-core/src/a/tests/more.rs", bad),
        ("crates/kausality-core/src/b/mod.rs", "mod tests;\nmod inner;"),
        ("crates/kausality-core/src/b/inner.rs", "#![cfg(test)]\nfn f() { println!(); }"),
        ("crates/kausality-core/src/match.rs", "#[cfg(test)]\nmod tests;"),
        ("crates/kausality-core/src/match/tests.rs", bad),
        ("crates/kausality-core/src/orphan/tests.rs", bad),
        // Code, in all the places that it has.
        ("crates/kausality-core/src/a/deep/file.rs", bad),
        ("crates/kausality-core/src/b/tests.rs", bad),
        ("crates/kausality-core/src/odd/name.rs", bad),
        ("crates/kausality-core/src/orphan.rs", "#[cfg(test)]\nmod tests;\nfn f() { println!(); }"),
    ];
    assert_eq!(
        check(&files),
        [
            "crates/kausality-core/src/a/deep/file.rs:1: `println!` does I/O",
            "crates/kausality-core/src/b/tests.rs:1: `println!` does I/O",
            "crates/kausality-core/src/odd/name.rs:1: `println!` does I/O",
            "crates/kausality-core/src/orphan.rs:3: `println!` does I/O",
        ]
    );
}

#[test]
fn shells_lints_and_impure_crates() {
    let webhook =
        manifest("kausality-webhook", "[dependencies]\nkausality-web = { path = \"../kausality-web\" }\n");
    let files = [
        ("crates/kausality-webhook/Cargo.toml", webhook.as_str()),
        ("crates/kausality-webhook/src/lib.rs", "fn f() { println!(); }"),
        ("crates/kausality-web/Cargo.toml", &manifest("kausality-web", LINTS)),
        ("crates/kausality-web/src/lib.rs", ""),
    ];
    assert_eq!(
        check(&files),
        [
            "crates/kausality-webhook/Cargo.toml: kausality-webhook (shell) depends on kausality-web (shell)",
            "crates/kausality-webhook/Cargo.toml: the crate does not take the lints of the workspace",
        ]
    );
}
