//! One drift: what happened, why it counts as drift, who asked for what before, and what has become of it.

use jiff::Timestamp;
use kausality_api::drift::{Drift, DriftStep, FieldChange};
use ratatui::{
    Frame,
    layout::Rect,
    style::{Color, Style, Stylize},
    text::{Line, Span},
    widgets::Paragraph,
};

use super::color;
use crate::text::{age, fit};

/// A drift, and what rules say about it now, once that is known.
type Subject<'a> = (&'a Drift, Option<&'a [DriftStep]>);

/// Draws a drift from a line on. Gives that line, or the last one from which anything is left to see.
pub(super) fn draw(
    frame: &mut Frame<'_>,
    area: Rect,
    subject: Subject<'_>,
    now: Timestamp,
    from: u16,
) -> u16 {
    let lines = lines(subject, now, usize::from(area.width));
    let most = u16::try_from(lines.len()).unwrap_or(u16::MAX).saturating_sub(area.height);
    let from = from.min(most);
    frame.render_widget(Paragraph::new(lines).scroll((from, 0)), area);
    from
}

fn lines((drift, present): Subject<'_>, now: Timestamp, width: usize) -> Vec<Line<'static>> {
    let (spec, status) = (&drift.spec, &drift.status);
    let width = width.saturating_sub(2);
    let mut lines = Vec::new();
    let fact = |name: &str, value: String| {
        let text = fit(&value, width.saturating_sub(12));
        Line::from(vec![Span::from(format!("  {name:10} ")).dim(), Span::from(text)])
    };
    let place = |kind: &str, namespace: &str, name: &str| match namespace {
        "" => format!("{kind} {name}"),
        _ => format!("{kind} {namespace}/{name}"),
    };
    lines.push(Line::default());
    lines.push(Line::from(vec![
        Span::from(format!("  {} ", drift.metadata.name)).bold(),
        Span::styled(status.state.as_str(), Style::new().fg(color(status.state)).bold()),
    ]));
    lines.push(fact("child", place(&spec.child.kind, &spec.child.namespace, &spec.child.name)));
    lines.push(fact("parent", place(&spec.parent.kind, &spec.parent.namespace, &spec.parent.name)));
    let manager = spec.request.field_manager.as_deref().map(|it| format!(" ({it})")).unwrap_or_default();
    lines.push(fact("actor", format!("{}{manager}", spec.request.user)));
    let times = match status.count {
        1 => "once".to_owned(),
        count => format!("{count} times, last {} ago", age(now, status.last_seen)),
    };
    lines.push(fact(
        "seen",
        format!("{times}, first {} ago ({})", age(now, status.first_seen), status.first_seen),
    ));
    if let Some(rule) = &spec.denied_by {
        lines.push(fact("denied by", format!("{rule}: not a drift, and open to approval by somebody else")));
    } else if status.explanation.is_empty() {
        let verb = match spec.request.operation.as_str() {
            "CREATE" => "creates a child",
            "DELETE" => "deletes a child",
            _ => "changes a child",
        };
        lines.push(fact(
            "why",
            format!("the controller {verb} although nobody changed its parent, which has settled"),
        ));
    }

    lines.extend(heading("Changes"));
    for change in &spec.changes {
        lines.extend(change_lines(change, width));
    }
    if spec.more_changes > 0 {
        lines.push(Line::from(format!("  … and {} more", spec.more_changes)).dim());
    }

    lines.extend(heading("Who last asked for something of the parent"));
    let hops = spec.trace.as_ref().map(|trace| trace.hops()).unwrap_or_default();
    if hops.is_empty() {
        lines.push(Line::from("  Nobody whom Kausality has seen.").dim());
    }
    for (depth, hop) in hops.iter().enumerate() {
        let indent = "  ".repeat(depth);
        let branch = if depth == 0 { "" } else { "└ " };
        let labels: Vec<String> = hop.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let text = format!(
            "  {indent}{branch}{} {} — {}, {} ago {}",
            hop.kind,
            hop.name,
            hop.user,
            age(now, hop.timestamp),
            labels.join(" ")
        );
        lines.push(Line::from(fit(&text, width)));
    }

    if let Some(decision) = &status.decision {
        let by = decision.by.as_deref().unwrap_or("somebody");
        let mode = decision.mode.map(|mode| format!(" ({})", mode.as_str())).unwrap_or_default();
        let reason = decision.reason.as_deref().map(|reason| format!(": {reason}")).unwrap_or_default();
        lines.extend(heading("Decided"));
        lines.push(Line::from(fit(&format!("  {}{mode} by {by}{reason}", decision.action), width)));
    }
    if let Some(resolution) = &status.resolution {
        lines.extend(heading("Over"));
        let text = format!(
            "  {} {} ago: {}",
            resolution.reason.as_str(),
            age(now, resolution.at),
            resolution.message
        );
        lines.push(Line::from(fit(&text, width)));
    }
    if !status.explanation.is_empty() {
        lines.extend(heading("Why, as the rules had it when it was last seen"));
        lines.extend(status.explanation.iter().flat_map(|step| step_lines(step, width)));
    }
    lines.extend(heading("What holds now"));
    match present {
        Some(steps) => lines.extend(steps.iter().flat_map(|step| step_lines(step, width))),
        None => lines.push(Line::from("  Being looked at…").dim()),
    }
    if !status.deliveries.is_empty() {
        lines.extend(heading("Reports"));
        for delivery in &status.deliveries {
            let told = match (&delivery.resolved, &delivery.detected, &delivery.error) {
                (Some(_), ..) => "told that it is over".to_owned(),
                (None, Some(_), None) => "told".to_owned(),
                (_, _, Some(error)) => format!("failing: {error}"),
                (None, None, None) => "not told yet".to_owned(),
            };
            lines.push(Line::from(fit(&format!("  {}: {told}", delivery.endpoint), width)));
        }
    }
    lines
}

fn heading(text: &str) -> [Line<'static>; 2] {
    [Line::default(), Line::from(format!("  {text}")).bold()]
}

fn step_lines(step: &DriftStep, width: usize) -> Vec<Line<'static>> {
    let mark = if step.decided { " ◀ decided" } else { "" };
    let rule = fit(&step.rule, 13);
    let room = width.saturating_sub(14 + mark.chars().count());
    let finding = Span::from(format!("{}{mark}", fit(&step.finding, room)));
    let finding = if step.decided { finding.bold() } else { finding };
    let mut lines = vec![Line::from(vec![Span::from(format!("  {rule:13} ")).dim(), finding])];
    let evidence =
        |line: &String| Line::from(format!("      · {}", fit(line, width.saturating_sub(8)))).dim();
    lines.extend(step.evidence.iter().map(evidence));
    lines
}

fn change_lines(change: &FieldChange, width: usize) -> Vec<Line<'static>> {
    let owner = |owner: &Option<String>| owner.as_deref().map(|it| format!("  ({it})")).unwrap_or_default();
    let line = |sign: &str, value: &str, whose: String, color: Color| {
        let room = width.saturating_sub(6 + whose.chars().count());
        Line::from(vec![
            Span::styled(format!("    {sign} {}", fit(value, room)), color),
            Span::from(whose).dim(),
        ])
    };
    let mut lines = vec![Line::from(fit(&format!("  {}", change.path), width))];
    lines.extend(change.old.as_deref().map(|old| line("-", old, owner(&change.old_owner), Color::Red)));
    lines.extend(change.new.as_deref().map(|new| line("+", new, owner(&change.new_owner), Color::Green)));
    lines
}
