//! What a check comes to.

/// How bad something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Severity {
    /// It works, but not as well as it should, or not for long.
    Warning,
    /// It does not work.
    Failed,
}

/// Something that is not as it should be, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Finding {
    pub(super) severity: Severity,
    pub(super) problem: String,
    pub(super) todo: String,
}

/// What a check comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// All is well, and how.
    Fine(String),
    /// It could not be looked at, and why.
    Skipped(String),
    /// These are wrong; never empty.
    Troubled(Vec<Finding>),
}

/// A check, and what it came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Check {
    pub(super) name: &'static str,
    pub(super) verdict: Verdict,
}

/// How a check ended, in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Outcome {
    Ok,
    Skipped,
    Warning,
    Failed,
}

impl Outcome {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Skipped => "skipped",
            Self::Warning => "warning",
            Self::Failed => "failed",
        }
    }
}

impl Verdict {
    /// How it ended: as bad as the worst that was found.
    pub(super) fn outcome(&self) -> Outcome {
        match self {
            Self::Fine(_) => Outcome::Ok,
            Self::Skipped(_) => Outcome::Skipped,
            Self::Troubled(findings) => match findings.iter().map(|finding| finding.severity).max() {
                Some(Severity::Failed) => Outcome::Failed,
                Some(Severity::Warning) | None => Outcome::Warning,
            },
        }
    }

    /// What was found.
    pub(super) fn findings(&self) -> &[Finding] {
        match self {
            Self::Troubled(findings) => findings,
            Self::Fine(_) | Self::Skipped(_) => &[],
        }
    }

    /// The check in one line.
    pub(super) fn summary(&self) -> String {
        match self {
            Self::Fine(text) | Self::Skipped(text) => text.clone(),
            Self::Troubled(findings) => match findings.as_slice() {
                [only] => only.problem.clone(),
                several => format!("{} things are wrong", several.len()),
            },
        }
    }
}

/// Findings as they are made.
#[derive(Debug, Default)]
pub(super) struct Findings(Vec<Finding>);

impl Findings {
    pub(super) fn warn(&mut self, problem: impl Into<String>, todo: impl Into<String>) {
        self.note(Severity::Warning, problem, todo);
    }

    pub(super) fn fail(&mut self, problem: impl Into<String>, todo: impl Into<String>) {
        self.note(Severity::Failed, problem, todo);
    }

    pub(super) fn note(&mut self, severity: Severity, problem: impl Into<String>, todo: impl Into<String>) {
        self.0.push(Finding { severity, problem: problem.into(), todo: todo.into() });
    }

    /// What was found; this, if nothing was.
    pub(super) fn or_fine(self, text: impl Into<String>) -> Verdict {
        if self.0.is_empty() { Verdict::Fine(text.into()) } else { Verdict::Troubled(self.0) }
    }
}
