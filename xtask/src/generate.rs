//! Files that follow from the code.

use std::{fs, io::Write, path::Path, process::ExitCode};

use anyhow::{Context, Result};

/// Where the CustomResourceDefinitions are: for kubectl, and for Helm, which takes them from the chart alone.
const CRDS: [&str; 2] = ["deploy/crds", "deploy/chart/crds"];

const HEAD: &str = "# Made by `cargo xtask generate`. Do not edit.\n";

/// Writes them; or only says which are out of date, and fails if any is.
pub(crate) fn run(check: bool) -> Result<ExitCode> {
    let mut outdated = Vec::new();
    for (name, definition) in kausality_api::crd::all() {
        let text = format!("{HEAD}{}", serde_saphyr::to_string(&definition)?);
        for folder in CRDS {
            let path = Path::new(folder).join(name);
            if fs::read_to_string(&path).is_ok_and(|there| there == text) {
                continue;
            }
            if !check {
                fs::create_dir_all(folder)?;
                fs::write(&path, &text).with_context(|| path.display().to_string())?;
            }
            outdated.push(path);
        }
    }
    let mut out = std::io::stdout();
    for path in &outdated {
        writeln!(
            out,
            "{} {}",
            path.display(),
            if check { "is out of date: run `cargo xtask generate`" } else { "written" }
        )?;
    }
    Ok(if check && !outdated.is_empty() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
