//! The pipeline: from a request and the facts about it to a decision.

use kausality_api::{
    identity::UserHash,
    text::{plain, shorten},
};

use crate::{
    annotations::{self, Writer},
    answer, authority,
    class::Class,
    decision::{Decision, Verdict},
    explain::Rule,
    facts::Facts,
    mistakes,
    patch::Patch,
    review::{Metadata, Request, Review},
    writers,
};

mod decisions;
mod judge;
mod protect;
mod stray;

pub use decisions::{GUARDED, decisions};

/// The longest warning in characters. The API server itself passes on far less.
const MAX_WARNING: usize = 1000;

/// Decides a request.
///
/// Total: there is a decision for every request and every state of knowledge.
#[must_use]
pub fn decide(review: &Review<'_>, facts: &Facts<'_>) -> Decision {
    let request = &review.request;
    let class = Class::of(request, facts.settings).below(request, &facts.parent);
    let user = UserHash::of(&request.user_info.username, &request.user_info.uid);
    let mut decision = Draft::new(class);
    match (class, &request.old_object, &request.object) {
        (Class::Status, Some(stored), Some(sent)) => decision.observe(request, stored, sent, user, facts),
        (Class::Metadata, Some(stored), Some(sent)) if request.sub_resource.is_empty() => {
            decision.protect(request, stored, sent, user, facts);
        }
        (
            Class::Create
            | Class::Update
            | Class::Release
            | Class::Adopt
            | Class::Relabel
            | Class::Delete
            | Class::Scale,
            ..,
        ) => {
            decision.judge(review, user, facts);
        }
        (Class::Evict, ..) => decision.evict(request, facts),
        (Class::Bind, _, Some(sent)) => decision.bind(sent),
        _ => decision.pass_by(class),
    }
    authority::apply(&mut decision.decision, request, user, facts);
    decision.record_writer(request);
    decision.tell_mistakes(request);
    decision.finish(request)
}

/// A decision in the making.
struct Draft {
    decision: Decision,
    /// Whether the object keeps the trace that it has: its controller only completes it.
    keeps_trace: bool,
    /// Who sends people's annotations along, where that was asked.
    writer: Option<Writer>,
}

impl Draft {
    fn new(class: Class) -> Self {
        Self { decision: Decision::allow(class), keeps_trace: false, writer: None }
    }

    fn saw(&mut self, rule: Rule, finding: impl Into<String>) {
        self.decision.explanation.saw(rule, finding);
    }

    fn decided_by(&mut self, rule: Rule) {
        self.decision.explanation.decided_by(rule);
    }

    fn warn(&mut self, warning: impl Into<String>) {
        self.decision.warnings.push(shorten(&plain(&warning.into()), MAX_WARNING));
    }

    /// Requests that are no change of an object.
    fn pass_by(&mut self, class: Class) {
        self.saw(
            Rule::Class,
            match class {
                Class::Own => "a write of Kausality's own",
                _ => "no change of an object's intent, status or annotations",
            },
        );
        self.decided_by(Rule::Class);
    }

    /// Records who wrote people's annotations, as they will be.
    fn record_writer(&mut self, request: &Request<'_>) {
        let (Some(writer), Some(sent), true) =
            (self.writer, &request.object, self.decision.verdict.is_allowed())
        else {
            return;
        };
        let patch = &self.decision.patch.annotations;
        let mut wanted = annotations::stored(&sent.metadata.annotations);
        for (key, value) in patch {
            match value {
                Some(value) => wanted.insert(key.clone(), value.clone()),
                None => wanted.remove(key),
            };
        }
        writers::record(&mut wanted, request.old_object.as_ref().map(|stored| &stored.metadata), writer);
        let left_out = self.decision.patch.left_out;
        self.decision.patch = Patch::between(sent, &wanted);
        self.decision.patch.left_out |= left_out;
    }

    /// Tells people at once of annotations that they write and that will not do what they mean.
    fn tell_mistakes(&mut self, request: &Request<'_>) {
        if self.writer != Some(Writer::Controller) && self.decision.verdict.is_allowed() {
            let mistakes = mistakes::of(request, self.decision.mode);
            mistakes.into_iter().for_each(|mistake| self.warn(mistake));
        }
    }

    fn finish(mut self, request: &Request<'_>) -> Decision {
        let decision = &mut self.decision;
        if request.is_dry_run() || is_bound_to_conflict(request) {
            decision.effects.clear();
        }
        if decision.verdict == Verdict::Allow && !decision.warnings.is_empty() {
            decision.verdict = Verdict::Warn;
        }
        decision.audit = answer::audit(decision);
        self.decision
    }
}

/// Whether the write will fail with a conflict after admission: the client's copy is not the stored one.
#[must_use]
pub fn is_bound_to_conflict(request: &Request<'_>) -> bool {
    let (Some(old), Some(new)) = (&request.old_object, &request.object) else { return false };
    // As the API server compares: by number, and 0 stands for whatever is stored.
    let version = |metadata: &Metadata<'_>| {
        metadata.resource_version.parse::<u64>().ok().filter(|version| *version > 0)
    };
    match (version(&old.metadata), version(&new.metadata)) {
        (Some(stored), Some(sent)) => stored != sent,
        _ => false,
    }
}
