//! Decisions as people read them, a line each, printed as they come.

use std::{
    collections::HashSet,
    io::{self, Write},
};

use anstyle::{AnsiColor, Style};
use kausality_api::text::plain;
use kausality_core::{cause::Cause, class::Class};

use super::engine::Judged;

/// Changes of one drift that are listed at most.
const SHOWN_CHANGES: usize = 3;

/// Rows, under a header where one is due.
#[derive(Debug, Default)]
pub(super) struct Table {
    names_files: bool,
    file: Option<String>,
    /// Status and metadata updates that were not shown.
    passed_over: u64,
    /// What could not be judged and has been said once.
    unjudged: HashSet<(String, String)>,
    repeated: u64,
}

impl Table {
    /// A table that tells files apart, if there are several.
    pub(super) fn new(names_files: bool) -> Self {
        Self { names_files, ..Self::default() }
    }

    /// Takes note of a request that is not shown.
    pub(super) fn pass_over(&mut self, judged: &Judged) {
        let class = judged.decision().map(|decision| decision.class);
        self.passed_over += u64::from(matches!(class, Some(Class::Status | Class::Metadata)));
    }

    pub(super) fn row(
        &mut self,
        out: &mut impl Write,
        file: &str,
        line: u64,
        judged: &Judged,
    ) -> io::Result<()> {
        if judged.decision().is_none() {
            let reason = (judged.kind.clone(), judged.message().unwrap_or_default().to_owned());
            if !self.unjudged.insert(reason) {
                self.repeated += 1;
                return Ok(());
            }
        }
        self.header(out, file)?;
        let style = style(judged);
        let verdict = judged.verdict();
        let cause = judged.cause().map_or("-", Cause::as_str);
        writeln!(
            out,
            "{line:>6}  {style}{verdict:8}  {cause:14}{style:#}  {:6}  {:44}  {}",
            judged.operation.as_str(),
            object(judged),
            plain(short_user(&judged.user)),
        )?;
        match (judged.drift(), judged.message()) {
            (Some(drift), _) => {
                let parent = &drift.report.spec.parent;
                let changes = drift.diff.limited(SHOWN_CHANGES).to_string().replace('\n', "; ");
                let (kind, name) = (plain(&parent.kind), plain(&parent.name));
                let what = match judged.operation.as_str() {
                    "CREATE" => "creates it".to_owned(),
                    "DELETE" => "deletes it".to_owned(),
                    _ => changes,
                };
                writeln!(out, "{:>6}  {:8}  nobody changed {kind} {name}: {what}", "", "")
            }
            (None, Some(message)) => writeln!(out, "{:>6}  {:8}  {}", "", "", plain(message)),
            (None, None) => Ok(()),
        }
    }

    fn header(&mut self, out: &mut impl Write, file: &str) -> io::Result<()> {
        if self.file.as_deref() == Some(file) {
            return Ok(());
        }
        if self.names_files {
            let gap = if self.file.is_some() { "\n" } else { "" };
            writeln!(out, "{gap}==> {} <==", plain(file))?;
        }
        self.file = Some(file.to_owned());
        writeln!(out, "{:>6}  {:8}  {:14}  {:6}  {:44}  USER", "LINE", "VERDICT", "CAUSE", "OP", "OBJECT")
    }

    pub(super) fn footer(&self, out: &mut impl Write) -> io::Result<()> {
        if self.repeated > 0 {
            writeln!(out, "({} more that could not be judged for the same reasons)", self.repeated)?;
        }
        if self.passed_over > 0 {
            writeln!(
                out,
                "({} updates of status or metadata are not shown; --all shows them)",
                self.passed_over
            )?;
        }
        Ok(())
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
#[must_use]
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
    plain(&text).into_owned()
}

/// Service accounts by namespace and name: the prefix is the same for all.
fn short_user(user: &str) -> &str {
    user.strip_prefix("system:serviceaccount:").unwrap_or(user)
}
