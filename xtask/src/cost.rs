//! What decisions cost, in instructions: they are the same on a busy machine and on an idle one.
//!
//! `gungraun` was looked at: it holds one benchmark against its own past. The budget here is a ratio of two
//! things measured in one go, and that much valgrind tells without a harness.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};

mod counted;

/// Parsing and deciding a review costs at most this many times what `serde_json` takes to parse it as a `Value`.
const BUDGET: f64 = 1.0;
/// Finding out who came to own what in a review of 100 KB costs at most this many times what reading it takes.
const OWNERSHIP: f64 = 2.0;
/// A byte of a big review costs at most this many times what a byte of a small one does.
const LINEAR: f64 = 1.2;
/// A line of a long replay costs at most this many times what a line of a short one does.
const FLAT: f64 = 1.1;
/// A drift costs at most this many times as much with 10,000 approval policies, of which ten are about it, as with those ten.
const POLICIES: f64 = 1.5;
/// How far the figure in the README may be off: compilers and libraries differ a little between machines.
const TOLERANCE: f64 = 0.06;

const ROUNDS: u64 = 3;
const SHORT: u64 = 500;
const LONG: u64 = 3000;
const README: &str = "README.md";
const MARK: &str = "parse and decide one review";

/// What is measured: each figure is a ratio.
#[derive(Debug, Serialize, Deserialize)]
struct Figures {
    decide: f64,
    replay: f64,
    ownership: f64,
    growth: f64,
    policies: f64,
}

/// Measures, and fails where a budget is exceeded or the README is wrong.
pub(crate) fn run(write: bool) -> Result<ExitCode> {
    let figures = counted::once(measure)?;
    let Figures { decide, replay, ownership, growth, policies } = figures;
    let budgets = [
        ("parse and decide one review, against serde_json::Value", decide, BUDGET),
        ("a line of a replay of 3000, against one of 500", replay, FLAT),
        ("ownership in a review of 100 KB, against reading it", ownership, OWNERSHIP),
        ("ownership, a byte of a review ten times the size", growth, LINEAR),
        ("a drift with 10000 approval policies, against 10", policies, POLICIES),
    ];
    let mut out = std::io::stdout();
    for (what, figure, budget) in budgets {
        writeln!(out, "{what}: {figure:.2} x (budget {budget:.1})")?;
    }
    for (what, figure, budget) in budgets {
        ensure!(figure <= budget, "{what}: {figure:.2} x, more than the budget of {budget:.1}");
    }
    let readme = fs::read_to_string(README)?;
    if write {
        fs::write(README, with_figure(&readme, decide)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let stated = stated_figure(&readme)?;
    ensure!(
        (stated - decide).abs() <= TOLERANCE,
        "{README} says {stated:.2} x, measured is {decide:.2} x: run `cargo xtask cost --write`"
    );
    Ok(ExitCode::SUCCESS)
}

fn measure() -> Result<Figures> {
    build()?;
    let (ownership, growth) = ownership_cost()?;
    Ok(Figures {
        decide: decision_cost(&recordings()?)?,
        replay: replay_growth()?,
        ownership,
        growth,
        policies: policies_growth()?,
    })
}

/// The cost of parsing and deciding the recorded reviews, as a multiple of parsing them as values.
fn decision_cost(recordings: &[PathBuf]) -> Result<f64> {
    let measure = |what: &str| {
        let mut command = program("cost")?;
        command.extend([what.to_owned(), ROUNDS.to_string()]);
        command.extend(recordings.iter().map(|path| path.display().to_string()));
        instructions(&command)
    };
    let nothing = measure("nothing")?;
    let value = measure("value")?.saturating_sub(nothing);
    let decide = measure("decide")?.saturating_sub(nothing);
    ensure!(value > 0, "parsing took no instruction: the measurement is broken");
    Ok(decide as f64 / value as f64)
}

/// The cost of attributing a review, as a multiple of reading it; and how much more a byte of one ten times as big costs.
fn ownership_cost() -> Result<(f64, f64)> {
    const CONTAINERS: u64 = 54;
    let measure = |read: u64, attributed: u64, containers: u64| {
        let mut command = program("attribution")?;
        command.extend([read, attributed].map(|count| count.to_string()));
        command.extend(["take".to_owned(), containers.to_string()]);
        instructions(&command)
    };
    let cost = |containers: u64| -> Result<(f64, f64)> {
        let neither = measure(0, 0, containers)?;
        let of = |both: u64| both.saturating_sub(neither) as f64 / ROUNDS as f64;
        Ok((of(measure(ROUNDS, 0, containers)?), of(measure(0, ROUNDS, containers)?)))
    };
    let (read, attributed) = cost(CONTAINERS)?;
    let (_, big) = cost(CONTAINERS * 10)?;
    ensure!(read > 0.0 && attributed > 0.0, "the measurement is broken");
    Ok((attributed / read, big / attributed / 10.0))
}

/// How much more a drift costs where there are many policies that are not about it.
fn policies_growth() -> Result<f64> {
    const DRIFTS: u64 = 100;
    let measure = |policies: u64, drifts: u64| {
        let mut command = program("exceptions")?;
        command.extend([policies, drifts].map(|count| count.to_string()));
        instructions(&command)
    };
    let cost = |policies: u64| -> Result<u64> {
        Ok(measure(policies, DRIFTS)?.saturating_sub(measure(policies, 0)?))
    };
    let (few, many) = (cost(10)?, cost(10_000)?);
    ensure!(few > 0, "a drift took no instruction: the measurement is broken");
    Ok(many as f64 / few as f64)
}

/// How much more a line costs in a long replay than in a short one.
fn replay_growth() -> Result<f64> {
    let folder = target().join("cost");
    fs::create_dir_all(&folder)?;
    let per_line = |lines: u64| -> Result<f64> {
        let file = folder.join(format!("{lines}.jsonl"));
        let recording = fixtures().join("drift-after-rollout.jsonl");
        let output = Command::new(target().join("debug/examples/synthesise"))
            .arg(lines.to_string())
            .arg(recording)
            .output()?;
        ensure!(output.status.success(), "synthesise failed");
        fs::write(&file, output.stdout)?;
        let kausality = target().join("debug/kausality").display().to_string();
        let command =
            [kausality, "replay".into(), "--only".into(), "deny".into(), file.display().to_string()];
        Ok(instructions(&command)? as f64 / lines as f64)
    };
    Ok(per_line(LONG)? / per_line(SHORT)?)
}

fn build() -> Result<()> {
    // The replay is compared with itself: the program that the tests use will do, and is there.
    let costs = ["--release", "--examples", "--package=kausality-core", "--package=kausality-fields"];
    let replay = ["--bins", "--example=synthesise", "--package=kausality"];
    for arguments in [&costs[..], &replay] {
        let cargo =
            Command::new(env!("CARGO")).args(["build", "--locked", "--quiet"]).args(arguments).status()?;
        ensure!(cargo.success(), "the build failed");
    }
    Ok(())
}

/// How many instructions a command takes.
fn instructions(command: &[String]) -> Result<u64> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .args(command)
        .output()
        .context("cannot run valgrind: install it, `make setup` tells how")?;
    let text = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?} failed under valgrind:\n{text}");
    let count = text.lines().find_map(|line| line.split_once("Collected : ")).map(|(_, count)| count.trim());
    count.with_context(|| format!("valgrind told no count:\n{text}"))?.parse().context("not a count")
}

fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from)
}

fn program(example: &str) -> Result<Vec<String>> {
    let path = target().join("release/examples").join(example);
    ensure!(path.exists(), "{} was not built", path.display());
    Ok(vec![path.display().to_string()])
}

fn fixtures() -> PathBuf {
    Path::new("fixtures").join("admission-reviews")
}

fn recordings() -> Result<Vec<PathBuf>> {
    let mut files: Vec<PathBuf> =
        fixtures().read_dir()?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    files.retain(|path| path.extension().is_some_and(|ending| ending == "jsonl"));
    files.sort();
    Ok(files)
}

/// The figure in the README's table: the number before ` x` in the last cell of its row.
fn stated_figure(readme: &str) -> Result<f64> {
    let cell = row(readme)?.trim_end_matches([' ', '|']).rsplit('|').next().unwrap_or_default();
    let figure = cell.trim().split(' ').next().unwrap_or_default();
    figure.parse().with_context(|| format!("the README states no figure but {cell:?}"))
}

fn with_figure(readme: &str, figure: f64) -> Result<String> {
    let old = row(readme)?;
    let Some((head, _)) = old.trim_end_matches([' ', '|']).rsplit_once('|') else {
        bail!("the README's row {old:?} is no table row")
    };
    Ok(readme.replace(old, &format!("{head}| {figure:.2} x |")))
}

fn row(readme: &str) -> Result<&str> {
    let row = readme.lines().find(|line| line.starts_with('|') && line.contains(MARK));
    row.with_context(|| format!("{README} has no table row with {MARK:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "text\n| what | budget | measured |\n|---|---|---|\n\
        | parse and decide one review | 1.0 x | 0.47 x |\nmore\n";

    #[test]
    fn the_figure_is_read_and_written() {
        assert_eq!(stated_figure(TABLE).unwrap(), 0.47);
        let written = with_figure(TABLE, 0.5).unwrap();
        assert!(written.contains("| parse and decide one review | 1.0 x | 0.50 x |\nmore"), "{written}");
        assert!(stated_figure("no table").is_err());
    }
}
