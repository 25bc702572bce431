//! Screens as pictures: SVG of nothing but text and rectangles, which browsers show as they are.

use std::fmt::Write as _;

use ratatui::{
    buffer::{Buffer, Cell},
    layout::Rect,
    style::{Color, Modifier, Style},
};

/// The size of a letter, in pixels. The widths of fonts differ: every text is told its own.
const LETTER: (f32, f32) = (8.4, 20.0);
const FONT_SIZE: u16 = 14;
const MARGIN: f32 = 18.0;
/// The height of the bar above the screen.
const BAR: f32 = 34.0;

const BACKGROUND: &str = "#0d1117";
const FOREGROUND: &str = "#e6edf3";

/// A picture of a screen in a window with this title.
pub(crate) fn svg(screen: &Buffer, title: &str) -> String {
    let Rect { width, height, .. } = screen.area;
    let (wide, high) =
        (2.0 * MARGIN + LETTER.0 * f32::from(width), BAR + MARGIN + LETTER.1 * f32::from(height));
    let title = escaped(title);
    let mut svg = format!(
        r##"<svg xmlns="http://www.w3.org/2000/svg" width="{wide:.0}" height="{high:.0}" viewBox="0 0 {wide:.0} {high:.0}" role="img">
<title>{title}</title>
<rect x="0.5" y="0.5" width="{:.0}" height="{:.0}" rx="9" fill="{BACKGROUND}" stroke="#30363d"/>
<circle cx="20" cy="17" r="5" fill="#ff5f57"/><circle cx="38" cy="17" r="5" fill="#febc2e"/><circle cx="56" cy="17" r="5" fill="#28c840"/>
<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="{FONT_SIZE}" fill="{FOREGROUND}" xml:space="preserve">
<text x="{:.0}" y="22" text-anchor="middle" fill-opacity="0.6">{title}</text>
"##,
        wide - 1.0,
        high - 1.0,
        wide / 2.0,
    );
    for y in 0..height {
        row(&mut svg, screen, y);
    }
    svg + "</g>\n</svg>\n"
}

/// Letters in a row that look the same.
struct Run {
    from: u16,
    text: String,
    look: Look,
}

/// How a letter looks, once it is clear what is in front.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Look {
    ink: &'static str,
    paper: Option<&'static str>,
    bold: bool,
    dim: bool,
}

impl Look {
    fn of(cell: &Cell) -> Self {
        let (ink, paper) = (shade(cell.fg).unwrap_or(FOREGROUND), shade(cell.bg));
        let reversed = cell.modifier.contains(Modifier::REVERSED);
        let (ink, paper) = if reversed { (paper.unwrap_or(BACKGROUND), Some(ink)) } else { (ink, paper) };
        let (bold, dim) = (cell.modifier.contains(Modifier::BOLD), cell.modifier.contains(Modifier::DIM));
        Self { ink, paper, bold, dim }
    }
}

fn shade(color: Color) -> Option<&'static str> {
    Some(match color {
        Color::Reset => return None,
        Color::Red => "#ff7b72",
        Color::Green => "#7ee787",
        Color::Yellow => "#e3b341",
        Color::Magenta => "#d2a8ff",
        other => panic!("no shade is chosen for {other:?}"),
    })
}

fn row(svg: &mut String, screen: &Buffer, y: u16) {
    let (left, base) = (MARGIN, BAR + LETTER.1 * f32::from(y));
    let place = |x: u16| left + LETTER.0 * f32::from(x);
    let runs = runs(screen, y);
    for Run { from, text, look } in &runs {
        if let Some(paper) = look.paper {
            let width = LETTER.0 * letters(text);
            let x = place(*from);
            writeln!(
                svg,
                r#"<rect x="{x:.1}" y="{base:.1}" width="{width:.1}" height="{:.1}" fill="{paper}"/>"#,
                LETTER.1
            )
            .unwrap();
        }
    }
    let mut spans = String::new();
    for Run { from, text, look } in &runs {
        // What stands apart is placed apart: so it stays in its column.
        let mut start = *from;
        for part in parts(text) {
            let trimmed = part.trim_end();
            let indent = u16::try_from(part.len() - part.trim_start().len()).unwrap();
            if !trimmed.is_empty() {
                let word = trimmed.trim_start();
                let mut style = String::new();
                if look.ink != FOREGROUND {
                    write!(style, r#" fill="{}""#, look.ink).unwrap();
                }
                style += if look.bold { r#" font-weight="bold""# } else { "" };
                style += if look.dim { r#" fill-opacity="0.6""# } else { "" };
                let (x, length) = (place(start + indent), LETTER.0 * letters(word));
                write!(
                    spans,
                    r#"<tspan x="{x:.1}" textLength="{length:.1}" lengthAdjust="spacingAndGlyphs"{style}>{}</tspan>"#,
                    escaped(word)
                )
                .unwrap();
            }
            start += u16::try_from(part.chars().count()).unwrap();
        }
    }
    if !spans.is_empty() {
        writeln!(svg, r#"<text y="{:.1}">{spans}</text>"#, base + 15.0).unwrap();
    }
}

fn letters(text: &str) -> f32 {
    f32::from(u16::try_from(text.chars().count()).unwrap())
}

fn runs(screen: &Buffer, y: u16) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for x in 0..screen.area.width {
        let cell = &screen[(x, y)];
        let look = Look::of(cell);
        match runs.last_mut() {
            Some(run) if run.look == look => run.text += cell.symbol(),
            _ => runs.push(Run { from: x, text: cell.symbol().to_owned(), look }),
        }
    }
    runs
}

/// A text cut before every word that follows two spaces or more.
fn parts(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(gap) = rest.find("  ") {
        let after = rest[gap..].find(|letter| letter != ' ').map_or(rest.len(), |length| gap + length);
        let (part, more) = rest.split_at(after);
        parts.push(part);
        rest = more;
    }
    parts.push(rest);
    parts
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// What a program has printed on a terminal, with its colours.
pub(crate) fn screen(printed: &str) -> Buffer {
    let lines: Vec<Vec<(char, Style)>> = printed.lines().map(styled).collect();
    let width = lines.iter().map(Vec::len).max().unwrap();
    let mut screen =
        Buffer::empty(Rect::new(0, 0, u16::try_from(width).unwrap(), u16::try_from(lines.len()).unwrap()));
    for (y, line) in (0..).zip(&lines) {
        for (x, (letter, style)) in (0..).zip(line) {
            screen[(x, y)].set_char(*letter).set_style(*style);
        }
    }
    screen
}

fn styled(line: &str) -> Vec<(char, Style)> {
    let mut letters = Vec::new();
    let mut style = Style::new();
    let mut parts = line.split("\u{1b}[");
    letters.extend(parts.next().unwrap_or_default().chars().map(|letter| (letter, style)));
    for part in parts {
        let (codes, text) = part.split_once('m').expect("nothing but colours");
        for code in codes.split(';') {
            style = match code {
                "" | "0" => Style::new(),
                "1" => style.add_modifier(Modifier::BOLD),
                "2" => style.add_modifier(Modifier::DIM),
                "31" => style.fg(Color::Red),
                "32" => style.fg(Color::Green),
                "33" => style.fg(Color::Yellow),
                "35" => style.fg(Color::Magenta),
                other => panic!("what is the style {other}?"),
            };
        }
        letters.extend(text.chars().map(|letter| (letter, style)));
    }
    letters
}

#[test]
fn what_looks_alike_is_one_text_and_columns_stay_where_they_are() {
    let screen = screen("\u{1b}[1mNAME\u{1b}[0m   \u{1b}[31ma<b\u{1b}[0m   c d   e");
    let svg = svg(&screen, "a & b");
    let text = svg.lines().find(|line| line.contains("NAME")).unwrap();
    let places: Vec<&str> =
        text.split("<tspan x=\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    assert_eq!(places, ["18.0", "76.8", "127.2", "177.6"], "{text}");
    for part in [r#"font-weight="bold">NAME<"#, r##"fill="#ff7b72">a&lt;b<"##, ">c d<", ">e<"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(svg.contains("<title>a &amp; b</title>"), "{svg}");
}
