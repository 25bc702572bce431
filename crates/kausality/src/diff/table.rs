//! Verdicts as people read them.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use jiff::Timestamp;
use kausality_api::text::{plain, shorten};
use kausality_fields::{
    Leaf,
    attribution::Owner,
    verdict::{Class, Finding},
};
use serde_json::Value;

use super::compare::{Compared, Outcome, Summary, matters, meaning};
use crate::live::age;

/// Columns for paths and values. What is longer moves the rest of its line.
const MAX_PATH: usize = 72;
const MAX_VALUE: usize = 40;

pub(super) fn table(out: &mut impl Write, compared: &[Compared], all: bool) -> io::Result<()> {
    let now = Timestamp::now();
    for compared in compared {
        let shown: Vec<&Finding> = compared
            .findings()
            .iter()
            .filter(|finding| all || finding.verdict.class() != Class::Clean)
            .collect();
        if all || !shown.is_empty() || !matches!(compared.outcome, Outcome::Judged(_)) {
            object(out, compared, &shown, now)?;
            writeln!(out)?;
        }
    }
    let bold = Style::new().bold();
    writeln!(out, "{bold}{}{bold:#}", summary(Summary::of(compared)))
}

fn object(
    out: &mut impl Write,
    compared: &Compared,
    findings: &[&Finding],
    now: Timestamp,
) -> io::Result<()> {
    let (what, colour) = match &compared.outcome {
        Outcome::Failed(_) => ("cannot be compared", AnsiColor::Red),
        Outcome::Missing => ("does not exist", AnsiColor::Red),
        Outcome::Judged(_) if compared.has_drifted() => ("has drifted", AnsiColor::Yellow),
        Outcome::Judged(_) => ("is as declared", AnsiColor::Green),
    };
    let (bold, style, dim) = (Style::new().bold(), colour.on_default(), Style::new().dimmed());
    let (title, file) = (compared.title(), plain(&compared.file));
    writeln!(out, "{bold}{}{bold:#} {style}{what}{style:#}  {dim}{file}{dim:#}", plain(&title))?;
    if let Outcome::Failed(why) = &compared.outcome {
        writeln!(out, "  {}", plain(why))?;
    }
    let lines: Vec<[String; 3]> = findings
        .iter()
        .map(|finding| [finding.verdict.to_string(), finding.path.to_string(), values(finding)])
        .collect();
    let width = |column: usize, max: usize| {
        let lengths = lines.iter().filter_map(|line| line.get(column)).map(|text| text.chars().count());
        lengths.filter(|length| *length <= max).max().unwrap_or_default()
    };
    let (verdicts, paths, all_values) = (width(0, MAX_PATH), width(1, MAX_PATH), width(2, 2 * MAX_VALUE));
    for (finding, [verdict, path, values]) in findings.iter().zip(&lines) {
        let colour = if matters(finding) { AnsiColor::Yellow } else { AnsiColor::Cyan }.on_default();
        let owners = owners(&finding.owners, now);
        let line = format!("{path:paths$}  {values:all_values$}  {owners}");
        writeln!(out, "  {colour}{verdict:verdicts$}{colour:#}  {}", line.trim_end())?;
        if matches!(finding.verdict.class(), Class::Unknown) || verdict == "fight" {
            writeln!(out, "  {:verdicts$}  {dim}{}{dim:#}", "", plain(&meaning(finding)))?;
        }
    }
    Ok(())
}

/// `declared ≠ live`.
fn values(finding: &Finding) -> String {
    match (&finding.declared, &finding.live) {
        (Some(declared), Some(live)) if declared == live => shown(declared),
        (Some(declared), Some(live)) => format!("{} ≠ {}", shown(declared), shown(live)),
        (Some(declared), None) => format!("{} ≠ (absent)", shown(declared)),
        (None, Some(live)) => format!("(undeclared) ≠ {}", shown(live)),
        (None, None) => String::new(),
    }
}

fn shown(value: &Value) -> String {
    shorten(&Leaf::Value(value.clone()).to_string(), MAX_VALUE)
}

fn owners(owners: &[Owner], now: Timestamp) -> String {
    let owner = |owner: &Owner| {
        let how = [owner.operation.as_str().to_lowercase(), owner.subresource.clone()].join(" ");
        let age = owner.time.as_deref().and_then(|time| age(time, now)).map(|age| format!(", {age}"));
        plain(&format!("{} ({}{})", owner.manager, how.trim_end(), age.unwrap_or_default())).into_owned()
    };
    match owners {
        [] => "nobody".to_owned(),
        owners => owners.iter().map(owner).collect::<Vec<String>>().join(" + "),
    }
}

/// `3 objects: 1 drifted (2 fields), 1 missing, 1 clean`.
fn summary(Summary { drifted, missing, clean, failed, fields }: Summary) -> String {
    let total = drifted + missing + clean + failed;
    let plural = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    let parts = [
        (drifted, format!("{drifted} drifted ({})", plural(fields, "field"))),
        (missing, format!("{missing} missing")),
        (failed, format!("{failed} not compared")),
        (clean, format!("{clean} as declared")),
    ];
    let parts: Vec<String> =
        parts.into_iter().filter(|(count, _)| *count > 0).map(|(_, text)| text).collect();
    format!("{}: {}", plural(total, "object"), parts.join(", "))
}
