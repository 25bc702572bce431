//! Verdicts as JUnit XML: a test case an object.

use std::io::{self, Write};

use kausality_fields::verdict::Finding;

use super::{
    compare::{Compared, Outcome, Summary, matters},
    sarif,
};
use crate::output::xml_text as escaped;

pub(super) fn document(out: &mut impl Write, compared: &[Compared]) -> io::Result<()> {
    let Summary { drifted, missing, failed, .. } = Summary::of(compared);
    writeln!(out, r#"<?xml version="1.0" encoding="UTF-8"?>"#)?;
    let counts = format!(r#"tests="{}" failures="{}" errors="{failed}""#, compared.len(), drifted + missing);
    writeln!(out, r#"<testsuites {counts}>"#)?;
    writeln!(out, r#"  <testsuite name="kausality diff" {counts}>"#)?;
    for compared in compared {
        case(out, compared)?;
    }
    writeln!(out, "  </testsuite>\n</testsuites>")
}

fn case(out: &mut impl Write, compared: &Compared) -> io::Result<()> {
    let (name, file) = (escaped(&compared.title()), escaped(&compared.file));
    let open = format!(r#"    <testcase name="{name}" classname="{file}""#);
    let drifted: Vec<&Finding> = compared.findings().iter().filter(|finding| matters(finding)).collect();
    match &compared.outcome {
        Outcome::Failed(why) => {
            writeln!(out, "{open}>\n      <error message=\"{}\"/>\n    </testcase>", escaped(why))
        }
        Outcome::Missing => {
            writeln!(out, "{open}>\n      <failure message=\"{name} does not exist\"/>\n    </testcase>")
        }
        Outcome::Judged(_) if drifted.is_empty() => writeln!(out, "{open}/>"),
        Outcome::Judged(_) => {
            let text: Vec<String> = drifted.iter().map(|finding| sarif::text(compared, finding)).collect();
            let message = match drifted.len() {
                1 => "1 field has drifted".to_owned(),
                count => format!("{count} fields have drifted"),
            };
            writeln!(
                out,
                "{open}>\n      <failure message=\"{message}\">{}</failure>\n    </testcase>",
                escaped(&text.join("\n"))
            )
        }
    }
}
