//! Drifts as lines of a table.

use anstyle::{AnsiColor, Style};
use jiff::Timestamp;
use kausality_api::{
    drift::{Drift, DriftState},
    text::shorten,
};

use crate::{
    live::age_of,
    output::{Cell, Table},
};

/// Characters of a change, where there is little room.
const MAX_CHANGE: usize = 60;

/// Which columns there are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    /// With namespaces.
    pub(super) namespaces: bool,
    /// With all that is known.
    pub(super) wide: bool,
}

impl Layout {
    pub(super) fn table(self, drifts: &[&Drift], now: Timestamp) -> Table {
        let mut header = if self.namespaces { vec!["NAMESPACE"] } else { Vec::new() };
        header.extend(["NAME", "STATE", "PARENT", "CHILD", "ACTOR", "CHANGE", "COUNT", "AGE"]);
        if self.wide {
            header.extend(["LAST", "MANAGER", "DECISION"]);
        }
        let mut table = Table::new(header);
        for drift in drifts {
            table.push(self.row(drift, now));
        }
        table
    }

    pub(super) fn row(self, drift: &Drift, now: Timestamp) -> Vec<Cell> {
        let Drift { metadata, spec, status, .. } = drift;
        let summary = &spec.summary;
        let change = if self.wide { summary.change.clone() } else { shorten(&summary.change, MAX_CHANGE) };
        let mut row = if self.namespaces { vec![Cell::new(&metadata.namespace)] } else { Vec::new() };
        row.extend([
            Cell::new(&metadata.name),
            Cell::new(status.state.as_str()).styled(style(status.state)),
            Cell::new(&summary.parent),
            Cell::new(&summary.child),
            Cell::new(&summary.actor),
            Cell::new(&change),
            status.count.to_string().into(),
            age_of(status.first_seen, now).into(),
        ]);
        if self.wide {
            let decision = status.decision.as_ref().map(|decision| {
                let by = decision.by.as_deref().map(|by| format!(" by {by}")).unwrap_or_default();
                shorten(&format!("{}{by}", decision.action), MAX_CHANGE)
            });
            row.extend([
                age_of(status.last_seen, now).into(),
                Cell::new(spec.request.field_manager.as_deref().unwrap_or_default()),
                Cell::new(decision.as_deref().unwrap_or_default()),
            ]);
        }
        row
    }
}

/// How a state looks.
pub(crate) fn style(state: DriftState) -> Style {
    let colour = match state {
        DriftState::Blocked => AnsiColor::Red,
        DriftState::Rejected => AnsiColor::Magenta,
        DriftState::Denied => AnsiColor::Cyan,
        DriftState::Passed => AnsiColor::Yellow,
        DriftState::Resolved => AnsiColor::Green,
    };
    colour.on_default()
}
