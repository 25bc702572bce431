//! Decisions as people read them, a line each, printed as they come.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use kausality_core::cause::Cause;

use super::engine::Judged;

/// Changes of one drift that are listed at most.
const SHOWN_CHANGES: usize = 3;

pub(super) fn header(out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "{:>6}  {:8}  {:14}  {:6}  {:44}  USER", "LINE", "VERDICT", "CAUSE", "OP", "OBJECT")
}

pub(super) fn row(out: &mut impl Write, line: u64, judged: &Judged) -> io::Result<()> {
    let style = style(judged);
    let verdict = judged.verdict();
    let cause = judged.cause().map_or("-", Cause::as_str);
    writeln!(
        out,
        "{line:>6}  {style}{verdict:8}  {cause:14}{style:#}  {:6}  {:44}  {}",
        judged.operation.as_str(),
        object(judged),
        short_user(&judged.user),
    )?;
    match (judged.drift(), judged.message()) {
        (Some(drift), _) => {
            let parent = &drift.report.spec.parent;
            let changes = drift.diff.limited(SHOWN_CHANGES).to_string().replace('\n', "; ");
            writeln!(out, "{:>6}  {:8}  nobody changed {} {}: {changes}", "", "", parent.kind, parent.name)
        }
        (None, Some(message)) => writeln!(out, "{:>6}  {:8}  {message}", "", ""),
        (None, None) => Ok(()),
    }
}

fn style(judged: &Judged) -> Style {
    let colour = match (judged.verdict(), judged.cause()) {
        ("deny", _) => AnsiColor::Red,
        (_, Some(Cause::Drift)) => AnsiColor::Yellow,
        ("unjudged", _) => AnsiColor::Magenta,
        _ => return Style::new(),
    };
    Style::new().fg_color(Some(colour.into()))
}

/// `Deployment default/web status`.
pub fn object(judged: &Judged) -> String {
    let mut text = format!("{} ", judged.kind);
    if !judged.namespace.is_empty() {
        text.push_str(&judged.namespace);
        text.push('/');
    }
    text.push_str(&judged.name);
    if !judged.subresource.is_empty() {
        text.push(' ');
        text.push_str(&judged.subresource);
    }
    text
}

/// Service accounts by namespace and name: the prefix is the same for all.
fn short_user(user: &str) -> &str {
    user.strip_prefix("system:serviceaccount:").unwrap_or(user)
}
