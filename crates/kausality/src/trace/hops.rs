//! Hops as people read them.

use anstyle::{AnsiColor, Style};
use jiff::Timestamp;
use kausality_api::{
    text::{plain, shorten},
    trace::Hop,
};

use crate::{live::age_of, span::to_second};

/// Characters of a label's value, and of who approved.
const MAX_TEXT: usize = 100;

/// `ReplicaSet web-1, generation 2, by kube-system:deployment-controller 5m ago (2026-01-25T12:00:00Z)`.
pub(crate) fn hop(hop: &Hop, now: Timestamp) -> String {
    let bold = Style::new().bold();
    format!("{bold}{} {}{bold:#}, {}", plain(&hop.kind), plain(&hop.name), deed(hop, now))
}

/// The same without the object.
pub(crate) fn deed(hop: &Hop, now: Timestamp) -> String {
    let generation = hop.generation.map(|it| format!("generation {it}, ")).unwrap_or_default();
    let mut text = format!("{generation}by {} {}", plain(&hop.user), when(hop.timestamp, now));
    for (key, value) in &hop.labels {
        let label = format!("{key}={}", shorten(value, MAX_TEXT));
        let cyan = AnsiColor::Cyan.on_default();
        text += &format!(" {cyan}{}{cyan:#}", plain(&label));
    }
    if let Some(approval) = &hop.approval {
        let mode = approval.mode.map(|mode| format!(" ({})", mode.as_str())).unwrap_or_default();
        let by = approval.by.as_ref().or(approval.policy.as_ref());
        let by = by.map(|by| format!(" by {}", shorten(by, MAX_TEXT))).unwrap_or_default();
        let why = approval.reason.as_ref().map(|why| format!(": {}", shorten(why, MAX_TEXT)));
        let said = format!("approved{mode}{by}{}", why.unwrap_or_default());
        let green = AnsiColor::Green.on_default();
        text += &format!(" {green}[{}]{green:#}", plain(&said));
    }
    if hop.drift {
        let red = AnsiColor::Red.on_default();
        text += &format!(" {red}[drift: nobody asked for it]{red:#}");
    }
    text
}

/// `5m ago (2026-01-25T12:00:00Z)`.
pub(crate) fn when(time: Timestamp, now: Timestamp) -> String {
    format!("{} ago ({})", age_of(time, now), to_second(time))
}
