//! What the ledger holds of a drift must be what the decision rests on.

use jiff::Timestamp;
use kausality_api::drift::DriftStep;
use kausality_core::{Decision, cause::Cause, decision::Effect, gate::Resolution, ledger};

use crate::cases::case::{Entered, Expect};

pub(crate) fn problems(expect: &Expect, decision: &Decision) -> Vec<String> {
    let drift = decision.effects.iter().find_map(|effect| match effect {
        Effect::Report(drift) => Some(drift),
        _ => None,
    });
    let Some(drift) = drift else {
        return expect.entry.iter().map(|_| "  nothing is entered into the ledger".to_owned()).collect();
    };
    let entry = ledger::entry(drift, decision, Timestamp::UNIX_EPOCH);
    let barred = entry.is_barred();
    let (spec, status) = (entry.spec, entry.status);
    let mut problems = Vec::new();
    let recorded: Vec<&str> = status.explanation.iter().map(|step| step.rule.as_str()).collect();
    let looked_at: Vec<&str> = decision.explanation.steps().iter().map(|step| step.rule.as_str()).collect();
    if recorded != looked_at {
        problems.push(format!("  the entry tells of {recorded:?}, looked at were {looked_at:?}"));
    }
    let is_drift = decision.cause == Some(Cause::Drift);
    let denied = is_drift && matches!(decision.resolution, Resolution::Denied(_));
    if barred != denied {
        problems
            .push(format!("  that a rule of a policy denies the drift is {denied}, and not so in the entry"));
    }
    if spec.denied_by.is_none() != is_drift {
        problems.push(format!("  that it is a drift is {is_drift}, and not so in the entry"));
    }
    let Some(Entered { state, decided, says, denied_by }) = &expect.entry else { return problems };
    if denied_by.is_some() && *denied_by != spec.denied_by {
        problems.push(format!("  the entry is denied by {:?}, expected was {denied_by:?}", spec.denied_by));
    }
    let said = |step: &DriftStep| format!("{}: {}", step.rule, step.finding);
    let deciding = status.deciding().map(said).unwrap_or_default();
    if (state.as_str(), decided) != (status.state.as_str(), &deciding) {
        let state = status.state.as_str();
        problems.push(format!("  the entry is {state} by {deciding:?}, expected was {:?}", expect.entry));
    }
    let lines: Vec<String> = (status.explanation.iter())
        .flat_map(|step| std::iter::once(said(step)).chain(step.evidence.iter().cloned()))
        .collect();
    for text in says {
        if !lines.iter().any(|line| line.contains(text)) {
            problems.push(format!("  the entry does not say {text:?}"));
        }
    }
    problems
}
