//! Results of tests, for people and for CI systems.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use kausality_api::text::plain;

use super::{Said, Tested};
use crate::output::{count, xml_text};

/// A line a case; what failed, with why.
pub(super) fn table(out: &mut impl Write, tested: &[Tested]) -> io::Result<()> {
    let bold = Style::new().bold();
    let mut file = "";
    for tested in tested {
        if tested.file != file {
            file = &tested.file;
            writeln!(out, "{bold}{}{bold:#}", plain(file))?;
        }
        let (word, colour) =
            if tested.passed { ("ok  ", AnsiColor::Green) } else { ("FAIL", AnsiColor::Red) };
        let style = colour.on_default();
        writeln!(out, "  {style}{word}{style:#}  {}", plain(&tested.name))?;
        if !tested.passed {
            writeln!(out, "        {}", plain(&tested.message()))?;
            for evidence in &tested.evidence {
                writeln!(out, "        · {}", plain(evidence))?;
            }
        }
    }
    let failed = failures(tested);
    let passed = tested.len() - failed;
    writeln!(out, "\n{}: {passed} passed, {failed} failed.", count(tested.len(), "case"))
}

/// A suite a file.
pub(super) fn junit(out: &mut impl Write, tested: &[Tested]) -> io::Result<()> {
    writeln!(out, r#"<?xml version="1.0" encoding="UTF-8"?>"#)?;
    writeln!(out, r#"<testsuites name="kausality policy test" {}>"#, counts(tested))?;
    for suite in tested.chunk_by(|a, b| a.file == b.file) {
        let file = suite.first().map(|tested| xml_text(&tested.file)).unwrap_or_default();
        writeln!(out, r#"  <testsuite name="{file}" {}>"#, counts(suite))?;
        for tested in suite {
            let open = format!(r#"    <testcase name="{}" classname="{file}""#, xml_text(&tested.name));
            if tested.passed {
                writeln!(out, "{open}/>")?;
                continue;
            }
            writeln!(
                out,
                "{open}>\n      <failure message=\"{}\">{}</failure>\n    </testcase>",
                xml_text(&tested.message()),
                xml_text(&tested.evidence.join("\n"))
            )?;
        }
        writeln!(out, "  </testsuite>")?;
    }
    writeln!(out, "</testsuites>")
}

fn failures(tested: &[Tested]) -> usize {
    tested.iter().filter(|tested| !tested.passed).count()
}

fn counts(tested: &[Tested]) -> String {
    format!(r#"tests="{}" failures="{}" errors="0" skipped="0""#, tested.len(), failures(tested))
}

impl Tested {
    /// How it failed.
    fn message(&self) -> String {
        format!("expected {}, got {}", self.expected, self.got)
    }
}

impl std::fmt::Display for Said {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (&self.rule, self.decision) {
            (Some(rule), decision) => write!(f, "{} by {rule}", decision.as_str()),
            (None, decision) => f.write_str(decision.as_str()),
        }
    }
}
