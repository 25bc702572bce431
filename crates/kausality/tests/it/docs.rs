//! Every command in the documentation is run, and says what the documentation says it does.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

/// A command of a `console` block, with the output that the page shows.
struct Example {
    page: String,
    command: String,
    exits: i32,
    shown: Vec<String>,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn pages() -> Vec<PathBuf> {
    let docs = root().join("docs").read_dir().unwrap().map(|entry| entry.unwrap().path());
    let mut pages: Vec<PathBuf> =
        docs.filter(|path| path.extension().is_some_and(|ending| ending == "md")).collect();
    pages.push(root().join("README.md"));
    pages.sort();
    pages
}

fn examples(page: &Path) -> Vec<Example> {
    let name = page.file_name().unwrap().to_str().unwrap();
    let mut examples: Vec<Example> = Vec::new();
    let mut inside = false;
    for line in std::fs::read_to_string(page).unwrap().lines() {
        match (inside, line) {
            (false, "```console") => inside = true,
            (true, "```") => inside = false,
            (true, line) => match (line.strip_prefix("$ "), examples.last_mut()) {
                (Some(command), _) => {
                    let (command, exits) = command.split_once(" # exits ").unwrap_or((command, "0"));
                    examples.push(Example {
                        page: name.to_owned(),
                        command: command.to_owned(),
                        exits: exits.parse().unwrap(),
                        shown: Vec::new(),
                    });
                }
                (None, Some(example)) => example.shown.push(line.to_owned()),
                (None, None) => panic!("{name}: a console block without a command"),
            },
            _ => {}
        }
    }
    examples
}

/// Whether the output is as shown, where a line `…` stands for any lines.
fn is_as_shown(shown: &[String], output: &[&str]) -> bool {
    match shown.split_first() {
        None => output.is_empty(),
        Some((first, rest)) if first == "…" => {
            (0..=output.len()).any(|skipped| is_as_shown(rest, &output[skipped..]))
        }
        Some((first, rest)) => output.first() == Some(&first.as_str()) && is_as_shown(rest, &output[1..]),
    }
}

#[test]
fn every_example_does_what_it_shows() {
    let bin = Path::new(env!("CARGO_BIN_EXE_kausality")).parent().unwrap().to_owned();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let examples: Vec<Example> = pages().iter().flat_map(|page| examples(page)).collect();
    assert!(examples.len() >= 6, "only {} examples were found", examples.len());
    for Example { page, command, exits, shown } in examples {
        let output = Command::new("bash")
            .args(["-o", "pipefail", "-c", &command])
            .env("PATH", &path)
            .current_dir(root())
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(exits), "{page}: {command}\n{text}{errors}");
        assert!(is_as_shown(&shown, &lines), "{page}: {command}\n--- printed\n{text}{errors}");
    }
}

#[test]
fn links_between_pages_lead_somewhere() {
    for page in pages() {
        let text = std::fs::read_to_string(&page).unwrap();
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let target = link.split('#').next().unwrap();
            if !target.is_empty() && !target.contains("://") {
                let file = page.parent().unwrap().join(target);
                assert!(file.exists(), "{} links to {link}", page.display());
            }
        }
    }
}
