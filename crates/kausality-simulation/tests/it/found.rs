//! Every bug in FOUND.md has its test.
use std::{fs, path::Path};

/// All sources and cases of a folder.
fn read(folder: &Path, all: &mut String) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            read(&path, all);
        } else if path.extension().is_some_and(|ending| ending == "rs" || ending == "yaml") {
            all.push_str(&fs::read_to_string(&path).unwrap());
        }
    }
}

#[test]
fn every_bug_that_was_found_has_its_test() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut all = String::new();
    read(&here.join("../kausality-cluster/src"), &mut all);
    read(&here.join("../kausality-core/cases"), &mut all);
    let page = fs::read_to_string(here.join("FOUND.md")).unwrap();
    let rows = page.lines().filter(|line| line.starts_with("| ") && line.ends_with("` |"));
    let tests: Vec<&str> = rows.map(|row| row.rsplit('`').nth(1).unwrap()).collect();
    assert!(tests.len() >= 7, "{tests:?}");
    for test in tests {
        let there = all.contains(&format!("fn {test}(")) || all.contains(&format!("- name: {test}\n"));
        assert!(there, "there is no test {test:?}");
    }
}
