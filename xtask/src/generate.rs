//! Files that follow from the code.

use std::{fs, io::Write, path::Path, process::ExitCode};

use anyhow::{Context, Result};

/// Where the CustomResourceDefinitions are: for kubectl, and for Helm, which takes them from the chart alone.
const CRDS: [&str; 2] = ["deploy/crds", "deploy/chart/crds"];

const HEAD: &str = "# Made by `cargo xtask generate`. Do not edit.\n";

/// The policies that come with Kausality: Helm takes them from the chart alone.
const POLICIES: (&str, &str) = ("policies", "deploy/chart/policies");

/// Writes them; or only says which are out of date, and fails if any is.
pub(crate) fn run(check: bool) -> Result<ExitCode> {
    let mut wanted = Vec::new();
    for (name, definition) in kausality_api::crd::all() {
        let text = format!("{HEAD}{}", serde_saphyr::to_string(&definition)?);
        wanted.extend(CRDS.map(|folder| (Path::new(folder).join(name), text.clone())));
    }
    let (from, to) = POLICIES;
    for entry in fs::read_dir(from).context(from)? {
        let file = entry?;
        // Their tests stand beside them, in a folder.
        if !file.file_type()?.is_file() {
            continue;
        }
        let text = format!("{HEAD}{}", fs::read_to_string(file.path())?);
        wanted.push((Path::new(to).join(file.file_name()), text));
    }
    wanted.sort();
    let mut outdated = Vec::new();
    for (path, text) in wanted {
        if fs::read_to_string(&path).is_ok_and(|there| there == text) {
            continue;
        }
        if !check {
            path.parent().map_or(Ok(()), fs::create_dir_all)?;
            fs::write(&path, &text).with_context(|| path.display().to_string())?;
        }
        outdated.push(path);
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
