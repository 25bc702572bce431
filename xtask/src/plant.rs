//! Bugs that are planted to see that simulation finds them.
//!
//! Each is a change of a copy of the tree; the product itself knows nothing of them.

use std::{
    collections::BTreeSet,
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use anyhow::{Context, Result, bail, ensure};

/// A bug.
struct Plant {
    name: &'static str,
    file: &'static str,
    /// What is there, once.
    right: &'static str,
    /// What is put in its place.
    wrong: &'static str,
    /// What the oracle says of it.
    shows: &'static str,
    /// Where among the seeds it was found last: it is looked for there first.
    near: u64,
}

const PLANTS: &[Plant] = &[
    Plant {
        name: "the live confirmation is skipped",
        file: "crates/kausality-cluster/src/admission.rs",
        right: "if must_confirm(&decision) {\n            let around",
        wrong: "if false {\n            let around",
        shows: "was denied",
        near: 33,
    },
    Plant {
        name: "an approval is consumed after the answer",
        file: "crates/kausality-cluster/src/admission.rs",
        right: "while let Err(why) = self.consume(&decision, until).await {",
        wrong: "let (later, approved) = (self.clone(), decision.clone());
        tokio::spawn(async move { later.consume(&approved, until).await });
        while let Err(why) = Ok::<(), crate::effects::Unwritten>(()) {",
        shows: "for once has been used 2 times",
        near: 105,
    },
    Plant {
        name: "a stale mark is trusted",
        file: "crates/kausality-core/src/settle.rs",
        right: "(mark.intent == parent.intent).then_some(mark)",
        wrong: "Some(mark)",
        shows: "its parent has never been done since its intent was written",
        near: 264,
    },
    Plant {
        name: "nothing ever counts as settled",
        file: "crates/kausality-core/src/settle.rs",
        right: "matches!(self, Self::Marked | Self::Steady | Self::Observed | Self::Quiet)",
        wrong: "matches!(self, Self::Observed)",
        shows: "its parent was done, nobody changed it",
        near: 0,
    },
    Plant {
        name: "Kausality reverts its own writes",
        file: "crates/kausality-core/src/class.rs",
        right: "if settings.own_users.contains(&*request.user_info.username) {",
        wrong: "if false && settings.own_users.contains(&*request.user_info.username) {",
        shows: "is not marked as settled",
        near: 2,
    },
    Plant {
        name: "observedGeneration counts as settled",
        file: "crates/kausality-core/src/settle.rs",
        right: "if settling.rule == Settle::ObservedGeneration {",
        wrong: "if settling.rule != Settle::Quiet {",
        shows: "its parent has never been done since its intent was written",
        near: 0,
    },
];

impl Plant {
    /// The text of its file with the bug in it.
    fn put_into(&self, text: &str) -> Result<String> {
        ensure!(
            text.matches(self.right).count() == 1,
            "{}: the code that \"{}\" replaces is not there exactly once: update xtask/src/plant.rs",
            self.file,
            self.name
        );
        Ok(text.replace(self.right, self.wrong))
    }
}

/// How many seeds are played, and how many of them first.
const SEEDS: u64 = 1000;
const NEIGHBOURS: u64 = 20;

/// What a failing simulation prints before the seed that fails.
const FOUND: &str = "plays it again";

/// Plants each bug whose name contains `which`, and fails if simulation does not find one of them.
pub(crate) fn run(which: &str) -> Result<ExitCode> {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from);
    let bed = target.join("plants");
    let (tree, built) = (bed.join("tree"), bed.join("target"));
    copy_tree(&tree)?;
    copy_dependencies(&target, &built)?;
    let built = fs::canonicalize(&built)?;
    let mut out = std::io::stdout();
    let mut missed = 0;
    for plant in PLANTS.iter().filter(|plant| plant.name.contains(which)) {
        let file = tree.join(plant.file);
        let right = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
        fs::write(&file, plant.put_into(&right)?)?;
        let found = match simulate(&tree, &built, plant.near.saturating_sub(NEIGHBOURS / 2), NEIGHBOURS)? {
            Some(found) => Some(found),
            None => simulate(&tree, &built, 0, SEEDS)?,
        };
        fs::write(&file, right)?;
        match found {
            Some(how) if how.contains(plant.shows) => {
                let seed = how.split(':').next().unwrap_or_default();
                writeln!(out, "{:42} found: {seed}: {}", plant.name, plant.shows)?;
            }
            Some(how) => {
                missed += 1;
                writeln!(out, "{:42} took for something else: {how}", plant.name)?;
            }
            None => {
                missed += 1;
                writeln!(out, "{:42} NOT FOUND", plant.name)?;
            }
        }
    }
    ensure!(missed == 0, "simulation does not find {missed} of {} planted bugs", PLANTS.len());
    Ok(ExitCode::SUCCESS)
}

/// Which of so many seeds shows that something is wrong, if one does.
fn simulate(tree: &Path, built: &Path, first: u64, seeds: u64) -> Result<Option<String>> {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["test", "--locked", "--quiet", "--package", "kausality-simulation", "--test", "it"]);
    cargo.args(["nothing_goes_wrong", "--", "--nocapture"]);
    cargo.env("KAUSALITY_FIRST_SEED", first.to_string()).env("KAUSALITY_SEEDS", seeds.to_string());
    let output =
        cargo.current_dir(tree).env("CARGO_TARGET_DIR", built).output().context("cargo cannot be run")?;
    if output.status.success() {
        return Ok(None);
    }
    let said = [output.stdout, output.stderr].map(|said| String::from_utf8_lossy(&said).into_owned());
    let line = said.iter().flat_map(|said| said.lines()).find(|line| line.contains(FOUND));
    let violation = said.iter().flat_map(|said| said.lines()).find_map(|line| line.split_once("VIOLATION "));
    match (line, violation) {
        (Some(line), Some((_, violation))) => {
            let seed = line.split(' ').nth(1).unwrap_or_default();
            Ok(Some(format!("seed {seed}: {violation}")))
        }
        _ => bail!("the simulation did not run:\n{}", said.join("\n")),
    }
}

/// Copies what git knows of, and removes what it does not.
fn copy_tree(to: &Path) -> Result<()> {
    let files = Command::new("git").args(["ls-files", "-z"]).output().context("git cannot be run")?;
    ensure!(files.status.success(), "git ls-files: {}", String::from_utf8_lossy(&files.stderr));
    let files = String::from_utf8(files.stdout)?;
    let files: BTreeSet<&str> =
        files.split('\0').filter(|file| !file.is_empty() && Path::new(file).is_file()).collect();
    let known: BTreeSet<PathBuf> = files.iter().map(|file| to.join(file)).collect();
    remove_unknown(to, &known)?;
    for file in files {
        let copy = to.join(file);
        let Ok(text) = fs::read(file) else { continue };
        // What is the same need not be built again.
        if fs::read(&copy).is_ok_and(|there| there == text) {
            continue;
        }
        fs::create_dir_all(copy.parent().unwrap_or(to))?;
        fs::write(&copy, text)?;
    }
    Ok(())
}

fn remove_unknown(folder: &Path, known: &BTreeSet<PathBuf>) -> Result<()> {
    let Ok(entries) = fs::read_dir(folder) else { return Ok(()) };
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            remove_unknown(&path, known)?;
        } else if !known.contains(&path) {
            fs::remove_file(&path)?;
        }
    }
    Ok(())
}

/// Copies the dependencies that are built already, so that they are not built again.
fn copy_dependencies(from: &Path, to: &Path) -> Result<()> {
    if to.exists() {
        return Ok(());
    }
    for folder in ["deps", "build", ".fingerprint"] {
        let (from, to) = (from.join("debug").join(folder), to.join("debug").join(folder));
        let Ok(entries) = fs::read_dir(&from) else { continue };
        fs::create_dir_all(&to)?;
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let ours = name.trim_start_matches("lib").starts_with("kausality");
            let program = entry.file_type()?.is_file() && !name.contains('.');
            if !ours && !program {
                copy(&entry.path(), &to.join(&name))?;
            }
        }
    }
    Ok(())
}

/// Copies a file or a folder, with the times that cargo goes by.
fn copy(from: &Path, to: &Path) -> Result<()> {
    let metadata = fs::metadata(from)?;
    if metadata.is_dir() {
        fs::create_dir_all(to)?;
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            copy(&entry.path(), &to.join(entry.file_name()))?;
        }
        return Ok(());
    }
    fs::copy(from, to)?;
    fs::File::options().write(true).open(to)?.set_modified(metadata.modified()?)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Planting takes long and is not part of `make test`: this is, so that the plants do not rot.
    #[test]
    fn every_bug_can_still_be_planted() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        for plant in PLANTS {
            let text = fs::read_to_string(root.join(plant.file)).unwrap();
            assert_ne!(plant.put_into(&text).unwrap(), text);
        }
    }
}
