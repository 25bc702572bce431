//! A plan as people read it: the objects that change, field by field.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use kausality_api::text::{plain, shorten};
use kausality_fields::{Leaf, Path, Step};
use serde_json::Value;

use super::{
    owner::Owner,
    planned::{Action, Change, Field, Future, Name, Owners, Planned, Problem},
    summary::Summary,
};

const AFTER_APPLY: &str = "(known after apply)";

/// Columns for paths and values. What is longer moves the rest of its line.
const MAX_PATH: usize = 100;
const MAX_VALUE: usize = 40;

pub(super) fn table(out: &mut impl Write, planned: &[Planned]) -> io::Result<()> {
    for planned in planned.iter().filter(|planned| planned.action != Action::Nothing) {
        self::object(out, planned)?;
        writeln!(out)?;
    }
    let bold = Style::new().bold();
    writeln!(out, "{bold}{}{bold:#}", Summary::of(planned))
}

fn object(out: &mut impl Write, planned: &Planned) -> io::Result<()> {
    let (what, colour) = match planned.action {
        Action::Create => ("will be created", AnsiColor::Green),
        Action::Change | Action::Nothing => ("will change", AnsiColor::Yellow),
        Action::Conflict => ("is in conflict", AnsiColor::Red),
        Action::Error => ("cannot be applied", AnsiColor::Red),
    };
    let (bold, style, dim) = (Style::new().bold(), colour.on_default(), Style::new().dimmed());
    let file = plain(&planned.object.file);
    writeln!(out, "{bold}{}{bold:#} {style}{what}{style:#}  {dim}{file}{dim:#}", name(&planned.object))?;
    for note in &planned.notes {
        writeln!(out, "  {dim}({}){dim:#}", plain(note))?;
    }
    for problem in &planned.problems {
        self::problem(out, problem)?;
    }
    fields(out, &planned.fields)
}

/// `Deployment shop/web`.
fn name(object: &Name) -> String {
    let separator = if object.namespace.is_empty() { "" } else { "/" };
    plain(&format!("{} {}{separator}{}", object.kind, object.namespace, object.name)).into_owned()
}

fn problem(out: &mut impl Write, problem: &Problem) -> io::Result<()> {
    let red = AnsiColor::Red.on_default();
    let field = problem.field.as_ref().map(|field| format!("{field}: ")).unwrap_or_default();
    writeln!(out, "  {red}x{red:#} {field}{}", plain(&problem.message))?;
    for (path, old, new) in &problem.wanted {
        writeln!(out, "      {path}: {}", transition(old.as_ref(), new.as_ref()))?;
    }
    Ok(())
}

fn fields(out: &mut impl Write, fields: &[Field]) -> io::Result<()> {
    let lines: Vec<[String; 3]> =
        fields.iter().map(|field| [field.path.to_string(), value(&field.change), owners(field)]).collect();
    let width = |column: fn(&[String; 3]) -> &String, max: usize| {
        let lengths = lines.iter().map(|line| column(line).chars().count());
        lengths.filter(|length| *length <= max).max().unwrap_or_default()
    };
    let (paths, values) = (width(|line| &line[0], MAX_PATH), width(|line| &line[1], MAX_VALUE));
    for (field, [path, value, owners]) in fields.iter().zip(&lines) {
        let (sign, colour) = match &field.change {
            _ if field.is_held() => ('!', AnsiColor::Red),
            Change::Added(_) => ('+', AnsiColor::Green),
            Change::Removed(_) => ('-', AnsiColor::Red),
            Change::Changed(..) | Change::Reordered(..) => ('~', AnsiColor::Yellow),
            Change::Kept(_) => ('=', AnsiColor::Cyan),
        };
        let sign_style = colour.on_default();
        // What the server sets by itself is there to be known, and not to be read first.
        let by_itself = field.owners == Owners::default() && matches!(field.change, Change::Added(_));
        let style = if by_itself { Style::new().dimmed() } else { Style::new() };
        let line = format!("{path:paths$}  {value:values$}  {owners}");
        writeln!(out, "  {sign_style}{sign}{sign_style:#} {style}{}{style:#}", line.trim_end())?;
    }
    Ok(())
}

fn value(change: &Change) -> String {
    match change {
        Change::Added(Future::Known(new)) => shown(new),
        Change::Added(Future::KnownAfterApply) => AFTER_APPLY.to_owned(),
        Change::Changed(old, Future::Known(new)) => transition(Some(old), Some(new)),
        Change::Changed(old, Future::KnownAfterApply) => format!("{} → {AFTER_APPLY}", shown(old)),
        Change::Removed(old) => shown(old),
        Change::Reordered(old, new) => format!("{} → {}", items(old), items(new)),
        Change::Kept(Some(value)) => shown(value),
        Change::Kept(None) => String::new(),
    }
}

/// Characters of a value that stands alone.
const LONGEST: usize = 80;

fn shown(value: &Value) -> String {
    shorten(&leaf(value).to_string(), LONGEST)
}

/// Digests of secret values are not the values: they stand without quotes.
fn leaf(value: &Value) -> Leaf {
    match value.as_str().and_then(|text| text.strip_prefix("redacted:")) {
        Some(digest) if digest.chars().all(|c| c.is_ascii_hexdigit()) => Leaf::Redacted(digest.to_owned()),
        _ => Leaf::Value(value.clone()),
    }
}

/// `old → new`, cut around the first difference.
fn transition(old: Option<&Value>, new: Option<&Value>) -> String {
    match (old, new) {
        (Some(_), Some(_)) => {
            let change =
                kausality_fields::Change { path: Path::default(), old: old.map(leaf), new: new.map(leaf) };
            let text = change.to_string();
            text.split_once(": ").map_or(String::new(), |(_, text)| text.to_owned())
        }
        (Some(old), None) => format!("- {}", shown(old)),
        (None, Some(new)) => format!("+ {}", shown(new)),
        (None, None) => String::new(),
    }
}

fn items(steps: &[Step]) -> String {
    let item = |step: &Step| std::iter::once(step.clone()).collect::<Path>().to_string();
    shorten(&steps.iter().map(item).collect::<Vec<String>>().join(" "), MAX_VALUE)
}

fn owners(field: &Field) -> String {
    let Owners { before, after } = &field.owners;
    let change = if before == after || before.is_empty() && matches!(field.change, Change::Added(_)) {
        if after.is_empty() { String::new() } else { format!("owner: {}", all(after)) }
    } else {
        format!("owner: {} → {}", all(before), all(after))
    };
    match &field.conflict {
        None => change,
        Some(conflict) if conflict.forced => format!("{change} (taken by force)"),
        Some(conflict) => format!("held by {}", all(&conflict.with)),
    }
}

fn all(owners: &[Owner]) -> String {
    match owners {
        [] => "nobody".to_owned(),
        owners => owners.iter().map(ToString::to_string).collect::<Vec<String>>().join(" + "),
    }
}

#[cfg(test)]
mod tests;
