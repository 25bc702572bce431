//! Verdicts as JUnit XML: a test case an object.

use std::io::{self, Write};

use kausality_fields::verdict::Finding;

use super::{
    compare::{Compared, Outcome, Summary, matters},
    sarif,
};

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

/// Text in which XML sees nothing but text. What XML cannot hold at all becomes a replacement character.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' | '\t' => escaped.push(c),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::escaped;

    #[test]
    fn nothing_breaks_out_of_the_text() {
        assert_eq!(escaped("a<b>&\"c\"\u{1b}[0m\nd"), "a&lt;b&gt;&amp;&quot;c&quot;\u{fffd}[0m\nd");
    }
}
