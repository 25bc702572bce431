//! What commands print: tables as kubectl's, and documents for programs.

use std::{
    io::{self, Write},
    path::Path,
};

use anstyle::Style;
use anyhow::Result;
use clap::ValueEnum;
use kausality_api::text::plain;
use serde::Serialize;
use serde_json::{Value, json};

/// How a list is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ListOutput {
    /// For people
    #[default]
    Table,
    /// For people with wide screens
    Wide,
    /// One JSON document
    Json,
    /// One YAML document
    Yaml,
    /// Only the names
    Name,
}

/// How one thing is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ThingOutput {
    /// For people
    #[default]
    Table,
    /// One JSON document
    Json,
    /// One YAML document
    Yaml,
}

/// How it is shown what was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum DeedOutput {
    /// For people
    #[default]
    Text,
    /// One JSON document
    Json,
    /// One YAML document
    Yaml,
    /// Only the names of what it was done to
    Name,
}

/// What the program is called where commands to type are shown: it may be a plugin of kubectl.
#[must_use]
pub(crate) fn program() -> &'static str {
    let called = std::env::args_os().next();
    let name = called.as_deref().map(Path::new).and_then(Path::file_stem);
    if name.is_some_and(|name| name == "kubectl-kausality") { "kubectl kausality" } else { "kausality" }
}

/// Writes a document as JSON.
pub(crate) fn json(out: &mut impl Write, document: &impl Serialize) -> Result<()> {
    serde_json::to_writer_pretty(&mut *out, document)?;
    writeln!(out)?;
    Ok(())
}

/// Writes a document as YAML.
pub(crate) fn yaml(out: &mut impl Write, document: &impl Serialize) -> Result<()> {
    write!(out, "{}", serde_saphyr::to_string(document)?)?;
    Ok(())
}

/// Many objects as one, as kubectl has it.
pub(crate) fn list(items: Vec<Value>) -> Value {
    json!({"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": ""}, "items": items})
}

/// One place of a table.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cell {
    text: String,
    style: Style,
}

impl Cell {
    /// A text that others may have written.
    pub(crate) fn new(text: &str) -> Self {
        Self { text: plain(text).into_owned(), style: Style::new() }
    }

    /// The same in this style.
    pub(crate) fn styled(self, style: Style) -> Self {
        Self { style, ..self }
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::new(&text)
    }
}

/// Columns under headers. Each is as wide as its widest text, and the last as it likes.
#[derive(Debug)]
pub(crate) struct Table {
    header: Vec<&'static str>,
    rows: Vec<Vec<Cell>>,
}

/// Between columns, as kubectl has it.
const GAP: &str = "   ";

impl Table {
    /// A table with these headers.
    pub(crate) fn new(header: Vec<&'static str>) -> Self {
        Self { header, rows: Vec::new() }
    }

    /// Adds a row.
    pub(crate) fn push(&mut self, row: Vec<Cell>) {
        self.rows.push(row);
    }

    /// Writes it all, header first.
    pub(crate) fn write(&self, out: &mut impl Write) -> io::Result<Widths> {
        let widths = Widths((0..self.header.len()).map(|column| self.width(column)).collect());
        let bold = Style::new().bold();
        let header = self.header.iter().map(|text| Cell::new(text).styled(bold)).collect::<Vec<_>>();
        widths.row(out, &header)?;
        for row in &self.rows {
            widths.row(out, row)?;
        }
        Ok(widths)
    }

    fn width(&self, column: usize) -> usize {
        // What ends a row early needs no room: nothing stands after it.
        let ends = |row: &&Vec<Cell>| row.len() > column + 1 || row.len() == self.header.len();
        let cells = self.rows.iter().filter(ends).filter_map(|row| row.get(column));
        let texts = cells.map(|cell| cell.text.chars().count());
        let header = self.header.get(column).map_or(0, |text| text.len());
        texts.max().unwrap_or_default().max(header)
    }
}

/// How wide columns are: for rows that come later.
#[derive(Clone, Debug)]
pub(crate) struct Widths(Vec<usize>);

impl Widths {
    /// Writes one row.
    pub(crate) fn row(&self, out: &mut impl Write, row: &[Cell]) -> io::Result<()> {
        let last = row.iter().rposition(|cell| !cell.text.is_empty()).unwrap_or_default();
        for (column, cell) in row.iter().enumerate().take(last + 1) {
            let Cell { text, style } = cell;
            // What is padded is not styled: underlined spaces are ugly, and escapes have no width.
            let width = self.0.get(column).copied().unwrap_or_default();
            let padding = if column == last { 0 } else { width.saturating_sub(text.chars().count()) };
            let gap = if column == last { "" } else { GAP };
            write!(out, "{style}{text}{style:#}{:padding$}{gap}", "")?;
        }
        writeln!(out)
    }
}

/// Text in which XML sees nothing but text. What XML cannot hold at all becomes a replacement character.
pub(crate) fn xml_text(text: &str) -> String {
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

/// `1 drift`, `2 drifts`.
pub(crate) fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_texts_and_nobody_moves_the_cursor() {
        let mut table = Table::new(vec!["NAME", "CHANGE", "AGE"]);
        table.push(vec![Cell::new("a-long-name"), Cell::new("é"), Cell::new("5m")]);
        table.push(vec![Cell::new("b\u{1b}[2J"), Cell::new("x"), Cell::new("")]);
        let mut out = Vec::new();
        table.write(&mut anstream::StripStream::new(&mut out)).unwrap();
        insta::assert_snapshot!(String::from_utf8(out).unwrap(), @r"
        NAME          CHANGE   AGE
        a-long-name   é        5m
        b\u{1b}[2J    x
        ");
    }

    #[test]
    fn nothing_breaks_out_of_the_text() {
        assert_eq!(xml_text("a<b>&\"c\"\u{1b}[0m\nd"), "a&lt;b&gt;&amp;&quot;c&quot;\u{fffd}[0m\nd");
    }

    #[test]
    fn yaml_is_read_back() {
        let document = json!({"a": "yes", "b": ["1", 1, null, "x: y"], "c": "line\nline"});
        let mut out = Vec::new();
        yaml(&mut out, &document).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(serde_saphyr::from_str::<Value>(&text).unwrap(), document, "{text}");
    }
}
