//! What is asked, in a box over the rest.

use ratatui::{
    Frame,
    layout::Rect,
    style::Stylize,
    text::Line,
    widgets::{Block, Borders, Clear, Padding, Paragraph, Wrap},
};

use crate::{
    app::{App, Asking, Deed},
    text::wrap,
};

/// Columns of what is read at length.
const WIDE: u16 = 100;

/// Draws it.
pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, app: &mut App) {
    let (title, lines) = match &app.asking {
        Asking::Nothing | Asking::Filter => return,
        Asking::Shown(deed, lines, from) => {
            let shown = show(frame, area, deed, lines, *from);
            if let Asking::Shown(_, _, from) = &mut app.asking {
                *from = shown;
            }
            return;
        }
        Asking::Waiting(deed) => (
            " Decide ",
            vec![
                Line::from(deed.action.name()).bold(),
                Line::from("What that would do is being found out…"),
                Line::from("Esc leaves it").dim(),
            ],
        ),
        Asking::Approval => (
            " Approve ",
            vec![
                Line::from("o  once: the next time it happens"),
                Line::from("g  generation: while the parent stays as it is"),
                Line::from("a  always: until somebody takes it back"),
                Line::from("Esc  not at all").dim(),
            ],
        ),
        Asking::Text(action, text) => (
            " Decide ",
            vec![
                Line::from(action.name()).bold(),
                Line::from(action.question().unwrap_or_default()),
                Line::from(format!("> {text}▏")).yellow(),
                Line::from(match action.is_tried() {
                    true => "Enter shows what that would do, Esc leaves it",
                    false => "Enter does it, Esc does not",
                })
                .dim(),
            ],
        ),
        Asking::Sure(deed) => {
            let mut lines =
                vec![Line::from(format!("{} — {} drifts:", deed.action.name(), deed.drifts.len())).bold()];
            let shown = deed.drifts.iter().take(5).filter_map(|key| app.drifts.get(key));
            lines.extend(shown.map(|drift| {
                Line::from(format!("  {} of {}", drift.spec.summary.child, drift.spec.summary.parent))
            }));
            if deed.drifts.len() > 5 {
                lines.push(Line::from(format!("  … and {} more", deed.drifts.len() - 5)));
            }
            lines.push(Line::from("Sure? y does it, any other key does not").yellow());
            (" Several at once ", lines)
        }
    };
    let height = u16::try_from(lines.len()).unwrap_or(5) + 2;
    let area = middle(area, 70, height);
    frame.render_widget(Clear, area);
    let block = Block::new().borders(Borders::ALL).title(title);
    frame.render_widget(Paragraph::new(lines).block(block).wrap(Wrap { trim: false }), area);
}

/// The middle of an area, at most as large as this.
fn middle(area: Rect, width: u16, height: u16) -> Rect {
    let (width, height) = (width.min(area.width), height.min(area.height));
    Rect { x: area.x + (area.width - width) / 2, y: area.y + (area.height - height) / 2, width, height }
}

/// Shows what a deed would do, from a line on. Gives that line, or the last one from which anything is left to see.
fn show(frame: &mut Frame<'_>, area: Rect, deed: &Deed, lines: &[String], from: usize) -> usize {
    let width = area.width.min(WIDE);
    let room = usize::from(width.saturating_sub(4));
    let lines: Vec<Line<'_>> =
        lines.iter().flat_map(|line| wrap(line, room).into_iter().map(|part| styled(line, part))).collect();
    let area = middle(area, width, u16::try_from(lines.len()).unwrap_or(u16::MAX).saturating_add(2));
    let (all, page) = (lines.len(), usize::from(area.height.saturating_sub(2)));
    let from = from.min(all.saturating_sub(page));
    let drifts = match deed.drifts.len() {
        1 => "1 drift".to_owned(),
        several => format!("{several} drifts"),
    };
    let scroll = match all > page {
        true => format!(" ↑↓ lines {} to {} of {all} ", from + 1, from + page),
        false => String::new(),
    };
    let block = Block::new()
        .borders(Borders::ALL)
        .padding(Padding::horizontal(1))
        .title(format!(" {}: {drifts} ", deed.action.name()))
        .title_bottom(Line::from(" y writes it, Esc does not ").yellow())
        .title_bottom(Line::from(scroll).right_aligned());
    frame.render_widget(Clear, area);
    let shown: Vec<Line<'_>> = lines.into_iter().skip(from).take(page).collect();
    frame.render_widget(Paragraph::new(shown).block(block), area);
    from
}

/// A part of a line, as the line is to look.
fn styled(line: &str, part: String) -> Line<'static> {
    match line {
        line if line.starts_with("# CAUTION") => Line::from(part).red().bold(),
        line if line.starts_with('#') => Line::from(part).yellow(),
        _ => Line::from(part),
    }
}
