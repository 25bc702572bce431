//! What shells and readers of manuals need, and what the program calls itself.

use std::process::Command;

fn kausality(arguments: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_kausality")).args(arguments).output().unwrap();
    (output.status.code(), String::from_utf8([output.stdout, output.stderr].concat()).unwrap())
}

#[test]
fn every_shell_can_complete_every_command() {
    for shell in ["bash", "zsh", "fish"] {
        let (code, script) = kausality(&["completions", shell]);
        assert_eq!(code, Some(0), "{script}");
        for word in ["unapprove", "snooze", "policies", "dry-run", "generation"] {
            assert!(script.contains(word), "{shell} does not know {word}");
        }
    }
    let (_, script) = kausality(&["completions", "bash"]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("kausality.bash");
    std::fs::write(&file, script).unwrap();
    let complete = format!(
        "source {}; COMP_WORDS=(kausality unf); COMP_CWORD=1; _kausality kausality unf kausality; echo \"${{COMPREPLY[@]}}\"",
        file.display()
    );
    let output = Command::new("bash").args(["--norc", "-c", &complete]).output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "unfreeze\n");
}

#[test]
fn every_command_has_a_manual_page() {
    let (code, page) = kausality(&["man"]);
    assert_eq!(code, Some(0));
    assert!(page.starts_with(".ie") || page.contains(".TH kausality 1"), "{page}");
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("pages");
    let (code, said) = kausality(&["man", "--out", out.to_str().unwrap()]);
    assert_eq!((code, said.as_str()), (Some(0), ""));
    let mut pages: Vec<String> =
        out.read_dir().unwrap().map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    pages.sort();
    for name in ["kausality.1", "kausality-approve.1", "kausality-drifts.1", "kausality-unsnooze.1"] {
        assert!(pages.iter().any(|page| page == name), "{pages:?}");
    }
    let approve = std::fs::read_to_string(out.join("kausality-approve.1")).unwrap();
    assert!(approve.contains("exact"), "{approve}");
    let (code, said) = kausality(&["man", "--out", "/dev/null/pages"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("cannot write manual pages into /dev/null/pages"), "{said}");
}

#[test]
fn as_a_plugin_it_is_called_as_one() {
    let folder = tempfile::tempdir().unwrap();
    let plugin = folder.path().join("kubectl-kausality");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_kausality"), &plugin).unwrap();
    let usage = |program: &std::path::Path| {
        let output = Command::new(program).args(["approve", "--help"]).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let text = usage(&plugin);
    assert!(text.contains("Usage: kubectl kausality approve [OPTIONS]"), "{text}");
    let text = usage(std::path::Path::new(env!("CARGO_BIN_EXE_kausality")));
    assert!(text.contains("Usage: kausality approve [OPTIONS]"), "{text}");
}
