//! How it looks.

use kausality_api::drift::{Drift, DriftState, cause::Cause};
use ratatui::{
    Frame,
    layout::{Alignment, Constraint, Layout, Rect},
    style::{Color, Modifier, Style, Stylize},
    text::{Line, Span},
    widgets::{Paragraph, Wrap},
};

use crate::{
    app::{App, Asking, Link, Screen},
    keys::HELP,
    rows::{CauseKey, Row},
    text::{age, fit},
};

mod ask;
mod detail;

/// Draws everything.
pub fn draw(frame: &mut Frame<'_>, app: &mut App) {
    let [head, body, foot] =
        Layout::vertical([Constraint::Length(1), Constraint::Fill(1), Constraint::Length(1)])
            .areas(frame.area());
    frame.render_widget(title(app, head.width), head);
    match &app.screen {
        Screen::List => list(frame, body, app),
        Screen::Detail(key, from) => match app.drifts.get(key) {
            Some(drift) => {
                let present =
                    app.present.as_ref().filter(|(of, _)| of == key).map(|(_, steps)| steps.as_slice());
                let shown = detail::draw(frame, body, (drift, present), app.now, *from);
                if let Screen::Detail(_, from) = &mut app.screen {
                    *from = shown;
                }
            }
            None => frame.render_widget(Paragraph::new("\n  This drift is gone. Esc goes back.").dim(), body),
        },
        Screen::Help => help(frame, body),
    }
    frame.render_widget(foot_line(app, foot.width), foot);
    ask::draw(frame, body, app);
}

fn title(app: &App, width: u16) -> Line<'static> {
    let open = app.drifts.values().filter(|drift| drift.status.state.is_open()).count();
    let blocked = app.drifts.values().filter(|drift| drift.status.state == DriftState::Blocked).count();
    let mut line = Line::from(vec![
        Span::from(" Kausality ").bold().reversed(),
        Span::from(format!(" {}  ", fit(&app.place, 40))),
        Span::from(format!("{open} open, {blocked} blocked  ")),
    ]);
    let room = usize::from(width).saturating_sub(line.width());
    line.push_span(match &app.link {
        Link::Connecting => Span::from("connecting…").yellow(),
        Link::Live => Span::from("live").green(),
        Link::Broken(why) => Span::from(fit(&format!("not connected: {why}"), room)).red(),
    });
    line
}

fn foot_line(app: &App, width: u16) -> Line<'static> {
    let width = usize::from(width);
    if let Some((text, bad)) = &app.message {
        let color = if *bad { Color::Red } else { Color::Green };
        return Line::styled(fit(&format!(" {text}"), width), Style::new().fg(color));
    }
    if app.working > 0 {
        return Line::from(" working…").yellow();
    }
    let keys = match app.screen {
        Screen::List => " ↑↓ move  Enter look  a approve  r reject  / filter  R all  ? help  q quit",
        Screen::Detail(..) => {
            " ↑↓ scroll  a approve  A for how long  r reject  e except  f freeze  s snooze  Esc back  ? help"
        }
        Screen::Help => " Esc back",
    };
    Line::from(fit(keys, width)).dim()
}

/// The widths of columns: state, parent, child, actor, count, age; what is left is for the change.
fn widths(width: usize) -> [usize; 6] {
    let named = width.saturating_sub(9 + 6 + 6 + 6) / 5;
    [9, named.clamp(8, 32), named.clamp(8, 36), named.clamp(8, 34), 5, 5]
}

fn list(frame: &mut Frame<'_>, area: Rect, app: &mut App) {
    let width = usize::from(area.width);
    let [head, filter, body] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(u16::from(!app.filter.is_empty() || app.asking == Asking::Filter)),
        Constraint::Fill(1),
    ])
    .areas(area);
    let [state, parent, child, actor, count, since] = widths(width);
    let header = format!(
        "  {:state$} {:parent$} {:child$} {:actor$} {:>count$} {:>since$}  CHANGE",
        "STATE", "PARENT", "CHILD", "ACTOR", "COUNT", "AGE"
    );
    frame.render_widget(Line::from(fit(&header, width)).bold(), head);
    let cursor = if app.asking == Asking::Filter { "▏" } else { "" };
    frame.render_widget(Line::from(format!("  /{}{cursor}", app.filter)).yellow(), filter);
    app.page = usize::from(body.height).max(1);
    if app.rows.is_empty() {
        let text = match (&app.link, app.drifts.is_empty(), app.filter.is_empty()) {
            (Link::Connecting, ..) => "Waiting for the cluster…",
            (Link::Broken(_), true, _) => {
                "Nothing is known, since there is no connection. It is tried again."
            }
            (_, true, _) => "No drift: every change has a cause.",
            (_, _, false) => "No drift matches the filter. Esc clears it.",
            _ => "No drift is open. R shows those that are over.",
        };
        frame.render_widget(Paragraph::new(format!("\n{text}")).alignment(Alignment::Center).dim(), body);
        return;
    }
    let first = app.selected.saturating_sub(app.page.saturating_sub(1));
    for (place, row) in app.rows.iter().enumerate().skip(first).take(app.page) {
        let line = match row {
            Row::Cause(key) => {
                let cause = app.causes.iter().find(|cause| CauseKey::of(cause) == *key);
                cause.map(|cause| cause_line(cause, app.folded.contains(key), app, width))
            }
            Row::Drift(key) => app.drifts.get(key).map(|drift| drift_line(drift, app, width)),
        };
        let y = body.y + u16::try_from(place - first).unwrap_or(u16::MAX);
        let line = line.unwrap_or_default();
        let line = if place == app.selected { line.patch_style(Modifier::REVERSED) } else { line };
        frame.render_widget(line, Rect { y, height: 1, ..body });
    }
}

fn cause_line(cause: &Cause, folded: bool, app: &App, width: usize) -> Line<'static> {
    let kinds: Vec<String> = cause.kinds.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    let fields: Vec<&str> = cause.fields.iter().map(|field| field.path.as_str()).collect();
    let fields = if fields.is_empty() { String::new() } else { format!(" — {}", fields.join(", ")) };
    let text = format!(
        "{} {}: {} drifts of {}, {} open, since {}: {}{fields}",
        if folded { "▸" } else { "▾" },
        cause.actor,
        cause.count,
        match cause.parents.len() {
            1 => "1 parent".to_owned(),
            several => format!("{several} parents"),
        },
        cause.open,
        age(app.now, cause.first_seen),
        kinds.join(", "),
    );
    Line::from(format!("{:width$}", fit(&text, width))).bold()
}

fn color(state: DriftState) -> Color {
    match state {
        DriftState::Blocked => Color::Red,
        DriftState::Rejected => Color::Magenta,
        DriftState::Denied => Color::Cyan,
        DriftState::Passed => Color::Yellow,
        DriftState::Resolved => Color::Green,
    }
}

/// The parent, with its namespace where there are several.
fn placed(parent: &str, drift: &Drift, app: &App) -> String {
    let namespace = &drift.metadata.namespace;
    let mut others = app.drifts.keys().map(|key| &key.namespace);
    if namespace.is_empty() || others.all(|other| other == namespace) {
        parent.to_owned()
    } else {
        format!("{namespace}:{parent}")
    }
}

fn drift_line(drift: &Drift, app: &App, width: usize) -> Line<'static> {
    let [state, parent, child, actor, count, since] = widths(width);
    let summary = &drift.spec.summary;
    let cell = |text: &str, width: usize| {
        let text = fit(text, width);
        let used = unicode_width::UnicodeWidthStr::width(text.as_str());
        format!("{text}{:1$} ", "", width.saturating_sub(used))
    };
    let before = 2 + state + parent + child + actor + count + since + 7;
    Line::from(vec![
        Span::from("  "),
        Span::styled(cell(drift.status.state.as_str(), state), color(drift.status.state)),
        Span::from(cell(&placed(&summary.parent, drift, app), parent)),
        Span::from(cell(&summary.child, child)),
        Span::from(cell(&summary.actor, actor)),
        Span::from(format!("{:>count$} ", drift.status.count)),
        Span::from(format!("{:>since$}  ", age(app.now, drift.status.first_seen))),
        Span::from(fit(&summary.change, width.saturating_sub(before))),
    ])
}

fn help(frame: &mut Frame<'_>, area: Rect) {
    let mut lines = vec![Line::default()];
    lines.extend(
        HELP.iter().map(|(keys, what)| {
            Line::from(vec![Span::from(format!("  {keys:16}")).bold(), Span::from(*what)])
        }),
    );
    lines.push(Line::default());
    lines.push(
        Line::from("  On a cause, a decision is about all of its drifts, and is asked about first.").dim(),
    );
    frame.render_widget(Paragraph::new(lines).wrap(Wrap { trim: false }), area);
}

#[cfg(test)]
mod tests;
