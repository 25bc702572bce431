//! Runs every case in `cases/*.yaml`: a request, what is known, and what must come out.
//!
//! One file per rule. `KAUSALITY_CASE=substring` runs the cases whose `file: name` contains it.
//! What a case may say is in `cases/case.rs`; the objects it starts from are in `cases/bases/objects.yaml`.
use std::{fs, path::Path};

use serde_json::Value;

mod build;
mod case;
mod check;
mod entry;
mod object;

use case::{Case, File};
use object::Bases;

#[test]
fn cases() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases");
    let bases: Bases =
        yaml("bases/objects.yaml", &fs::read_to_string(folder.join("bases/objects.yaml")).unwrap());
    let filter = std::env::var("KAUSALITY_CASE").unwrap_or_default();

    let mut files: Vec<_> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "yaml"))
        .collect();
    files.sort();
    assert!(!files.is_empty(), "no cases in {}", folder.display());

    let (mut ran, mut failures) = (0, Vec::new());
    for path in &files {
        let file = path.file_name().unwrap().to_string_lossy().into_owned();
        let text = fs::read_to_string(path).unwrap();
        let cases = load(&file, &text);
        assert!(!cases.is_empty(), "{file} has no cases");
        let chosen: Vec<&Case> =
            cases.iter().filter(|case| format!("{file}: {}", case.name).contains(&filter)).collect();
        println!("{file:30} {:4} of {:4} cases", chosen.len(), cases.len());
        ran += chosen.len();
        for case in chosen {
            let problems = check::run(case, &bases);
            if !problems.is_empty() {
                failures.push(format!("{file}: {}\n{}", case.name, problems.join("\n")));
            }
        }
    }
    println!("{:30} {ran:4} cases", "all");
    assert!(ran > 0, "no case matches {filter:?}");
    assert!(failures.is_empty(), "{} of {ran} cases fail\n\n{}\n", failures.len(), failures.join("\n\n"));
}

/// Reads the cases of a file, each laid over the file's defaults.
fn load(file: &str, text: &str) -> Vec<Case> {
    let whole: File = yaml(file, text);
    assert!(!whole.about.is_empty(), "{file}: says nothing about itself");
    let cases: Vec<Case> = (whole.cases.iter())
        .map(|own| {
            let mut case = whole.defaults.clone();
            object::overlay(&mut case, own);
            let name = own.get("name").and_then(Value::as_str).unwrap_or("a case without name");
            let expects = own.get("expect").and_then(Value::as_object).is_some_and(|it| !it.is_empty());
            assert!(expects, "{file}: {name}: expects nothing");
            serde_json::from_value(case).unwrap_or_else(|error| panic!("{file}: {name}: {error}"))
        })
        .collect();
    for (place, case) in cases.iter().enumerate() {
        let twice = cases.iter().take(place).any(|other| other.name == case.name);
        assert!(!twice, "{file}: two cases are named {:?}", case.name);
    }
    cases
}

/// Reads YAML in which `no` is a word.
fn yaml<T: serde::de::DeserializeOwned>(file: &str, text: &str) -> T {
    let options = serde_saphyr::options! { strict_booleans: true };
    serde_saphyr::from_str_with_options(text, options).unwrap_or_else(|error| panic!("{file}: {error}"))
}
