//! What people and programs are shown.

use std::io::Write;

use anstyle::{AnsiColor, Style};
use anyhow::Result;
use kausality_api::text::plain;
use serde_json::{Value, json};

use super::finding::{Check, Finding, Outcome, Severity};

/// Writes one line for each check, and under those that are not well what to do.
pub(super) fn table(out: &mut impl Write, checks: &[Check]) -> Result<()> {
    let names = checks.iter().map(|check| check.name.len()).max().unwrap_or(0);
    let indent = " ".repeat(9 + names + 2);
    for Check { name, verdict } in checks {
        let outcome = verdict.outcome();
        let style = style(outcome);
        let word = outcome.as_str();
        writeln!(out, "{style}{word:<7}{style:#}  {name:<names$}  {}", plain(&verdict.summary()))?;
        let findings = verdict.findings();
        for Finding { problem, todo, .. } in findings {
            if findings.len() > 1 {
                writeln!(out, "{indent}- {}", plain(problem))?;
            }
            writeln!(out, "{indent}→ {}", plain(todo))?;
        }
    }
    let count = |outcome: Outcome| checks.iter().filter(|check| check.verdict.outcome() == outcome).count();
    let (failed, warned) = (count(Outcome::Failed), count(Outcome::Warning));
    let (skipped, fine) = (count(Outcome::Skipped), count(Outcome::Ok));
    let s = if warned == 1 { "" } else { "s" };
    writeln!(out, "\n{failed} failed, {warned} warning{s}, {skipped} skipped, {fine} ok")?;
    Ok(())
}

/// Writes all of it as one JSON document.
pub(super) fn document(out: &mut impl Write, checks: &[Check]) -> Result<()> {
    let shown: Vec<Value> = checks.iter().map(as_json).collect();
    let failed = is_failed(checks);
    serde_json::to_writer_pretty(&mut *out, &json!({"healthy": !failed, "checks": shown}))?;
    writeln!(out)?;
    Ok(())
}

/// Whether anything does not work.
pub(super) fn is_failed(checks: &[Check]) -> bool {
    checks.iter().any(|check| check.verdict.outcome() == Outcome::Failed)
}

fn as_json(Check { name, verdict }: &Check) -> Value {
    let findings = verdict.findings().iter().map(|Finding { severity, problem, todo }| {
        let severity = match severity {
            Severity::Warning => Outcome::Warning,
            Severity::Failed => Outcome::Failed,
        };
        json!({"severity": severity.as_str(), "problem": problem, "todo": todo})
    });
    json!({
        "name": name,
        "outcome": verdict.outcome().as_str(),
        "summary": verdict.summary(),
        "findings": findings.collect::<Vec<_>>(),
    })
}

fn style(outcome: Outcome) -> Style {
    let color = match outcome {
        Outcome::Ok => AnsiColor::Green,
        Outcome::Skipped => AnsiColor::BrightBlack,
        Outcome::Warning => AnsiColor::Yellow,
        Outcome::Failed => AnsiColor::Red,
    };
    color.on_default()
}
