//! A decision of a replay, as programs read it.

use kausality_api::{mode::Mode, phase::Phase, trace::Hop};
use kausality_core::{
    Decision, Drift,
    cause::Cause,
    decision::{Effect, Verdict},
};
use kausality_fields::attribution::Handover;
use serde::Serialize;

use super::engine::{Judged, Outcome};

/// One line of `-o json`. What is not known or does not apply is null.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Row<'a> {
    /// The file.
    pub file: &'a str,
    /// The line on which the request starts.
    pub line: u64,
    /// The request's uid.
    pub uid: &'a str,
    /// CREATE, UPDATE, DELETE or CONNECT.
    pub operation: &'static str,
    /// The object's apiVersion.
    pub api_version: &'a str,
    /// The object's kind.
    pub kind: &'a str,
    /// The object's namespace; empty for cluster-scoped kinds.
    pub namespace: &'a str,
    /// The object's name; its `generateName` while it has none.
    pub name: &'a str,
    /// The part of the object that was written to; empty for the object itself.
    pub subresource: &'a str,
    /// Who sent the request.
    pub user: &'a str,
    /// The sort of request.
    pub class: Option<&'static str>,
    /// Who acted, in relation to the parent.
    pub actor: Option<&'static str>,
    /// The parent's phase.
    pub phase: Option<Phase>,
    /// Whether the parent was settled.
    pub settled: Option<bool>,
    /// What caused the change.
    pub cause: Option<&'static str>,
    /// allow, warn, deny, or unjudged.
    pub verdict: &'static str,
    /// How the gates resolved it.
    pub resolution: Option<&'static str>,
    /// Log or enforce.
    pub mode: Option<Mode>,
    /// The denial, the first warning, or why it cannot be judged.
    pub message: Option<&'a str>,
    /// All warnings.
    pub warnings: &'a [String],
    /// The drift, where it is one that no gate let pass.
    pub drift: Option<DriftRow<'a>>,
    /// The trace that the object would carry.
    pub trace: Option<&'a [Hop]>,
}

/// A drift, in short.
#[derive(Debug, Serialize)]
pub struct DriftRow<'a> {
    /// Names it by its content.
    pub id: &'a str,
    /// The fields that changed.
    pub diff: &'a kausality_fields::Diff,
    /// Who owned them before, and who after.
    pub owners: &'a [Handover],
}

impl<'a> Row<'a> {
    /// The row of a request.
    #[must_use]
    pub fn new(file: &'a str, line: u64, judged: &'a Judged) -> Self {
        let decision = judged.decision();
        Self {
            file,
            line,
            uid: &judged.uid,
            operation: judged.operation.as_str(),
            api_version: &judged.api_version,
            kind: &judged.kind,
            namespace: &judged.namespace,
            name: &judged.name,
            subresource: &judged.subresource,
            user: &judged.user,
            class: decision.map(|decision| decision.class.as_str()),
            actor: decision.and_then(|decision| decision.actor).map(|actor| actor.as_str()),
            phase: decision.and_then(|decision| decision.phase),
            settled: decision.and_then(|decision| decision.settled.as_ref()).map(|it| it.is_settled()),
            cause: judged.cause().map(Cause::as_str),
            verdict: judged.verdict(),
            resolution: decision.map(|decision| decision.resolution.as_str()),
            mode: decision.and_then(|decision| decision.mode),
            message: judged.message(),
            warnings: decision.map(|decision| decision.warnings.as_slice()).unwrap_or_default(),
            drift: judged.drift().map(|drift| DriftRow {
                id: drift.id(),
                diff: &drift.diff,
                owners: &drift.owners,
            }),
            trace: decision.and_then(|decision| decision.trace.as_ref()).map(|trace| trace.hops()),
        }
    }
}

impl Judged {
    /// The decision, if there is one.
    #[must_use]
    pub fn decision(&self) -> Option<&Decision> {
        match &self.outcome {
            Outcome::Decided(decision) => Some(decision),
            Outcome::Unjudged(_) => None,
        }
    }

    /// What caused the change, as far as it could be judged.
    #[must_use]
    pub fn cause(&self) -> Option<Cause> {
        self.decision()?.cause
    }

    /// The drift, where it is one that no gate let pass.
    #[must_use]
    pub fn drift(&self) -> Option<&Drift> {
        self.decision()?.effects.iter().find_map(|effect| match effect {
            Effect::Report(drift) => Some(&**drift),
            _ => None,
        })
    }

    /// The word for the verdict.
    #[must_use]
    pub fn verdict(&self) -> &'static str {
        self.decision().map_or("unjudged", |decision| decision.verdict.as_str())
    }

    /// What a person should know about it.
    #[must_use]
    pub fn message(&self) -> Option<&str> {
        match &self.outcome {
            Outcome::Unjudged(why) => Some(why),
            Outcome::Decided(decision) => match &decision.verdict {
                Verdict::Deny(denial) => Some(&denial.message),
                _ => decision.warnings.first().map(String::as_str),
            },
        }
    }

    /// Whether it is a change of intent, or cannot be told to be none.
    #[must_use]
    pub fn is_change(&self) -> bool {
        use kausality_core::class::Class::{Create, Delete, Release, Scale, Update};
        self.decision()
            .is_none_or(|decision| matches!(decision.class, Create | Update | Release | Delete | Scale))
    }
}
