//! Changes of intent: the whole pipeline.

use kausality_api::{
    annotation::{SNOOZE, SNOOZE_UNTIL},
    approval::ApprovalMode,
    identity::UserHash,
    mode::Mode,
    phase::Phase,
    snooze::Snooze,
};

use super::Draft;
use crate::{
    actor::{self, Actor},
    annotations::{self, Wanted, pairs},
    answer,
    cause::Cause,
    change::{Change, Drift},
    child::Child,
    class::Class,
    decision::{Denial, Effect, Verdict},
    effect,
    exceptions::{Asked, Behind, Known},
    explain::Rule,
    facts::{Facts, Parent},
    gate::{Passage, Resolution},
    mode, phase,
    review::{Request, Review},
    settle::{self, Settled},
    summary::Summary,
    trace,
};

impl Draft {
    /// Changes of intent: the whole pipeline.
    pub(super) fn judge(&mut self, review: &Review<'_>, user: UserHash, facts: &Facts<'_>) {
        let request = &review.request;
        let class = self.decision.class;
        let what = match class {
            Class::Release => "an object is taken from the owner that controls it",
            _ => "a change of intent",
        };
        self.saw(Rule::Class, format!("{class}: {what}"));
        let child = match (class, &facts.scaled) {
            (Class::Scale, Some(Ok(summary))) => Some(Child::scaled(summary)),
            (Class::Scale, unreadable) => {
                let why = match unreadable {
                    Some(Err(why)) => why.as_str(),
                    _ => "it was not looked up",
                };
                self.unreadable_scaled(request, why, facts);
                return;
            }
            _ => Child::of(request),
        };
        let Some(child) = child else { return };
        let change = Change::new(review, &facts.settings.salt);
        let parent = if child.has_owner { &facts.parent } else { &Parent::None };

        // Who acts matters to the mode on CREATE, and to annotations even of an object on its way out.
        match parent {
            Parent::None => {}
            Parent::Found { summary, .. } => self.identify(request, user, Some(summary), &child),
            Parent::Gone | Parent::Unreadable(_) => self.identify(request, user, None, &child),
        }
        let labels = child.labels(request);
        let chosen = mode::choose(request, class, &child, self.decision.actor, &labels, facts);
        self.decision.mode = Some(chosen.mode);
        chosen.faults.into_iter().for_each(|fault| self.warn(fault));

        let judged = match parent {
            _ if child.deleting => {
                self.saw(Rule::Deletion, "the object itself is being deleted");
                self.caused(Cause::Cleanup, Rule::Deletion);
                None
            }
            Parent::None => {
                self.saw(Rule::Parent, "there is no controlling owner");
                self.caused(Cause::Origin, Rule::Parent);
                None
            }
            Parent::Gone => {
                self.gone(&child, class);
                None
            }
            Parent::Unreadable(why) => {
                self.unreadable(&child, why);
                None
            }
            Parent::Found { summary, resource } => Some((*summary, *resource)),
        };
        if let Some((summary, resource)) = judged {
            self.find_cause(summary, resource, facts);
            if let Some(cause) = self.decision.cause {
                let asked = Asked {
                    cause,
                    child: &child.id,
                    parent: summary,
                    namespace: facts.namespace,
                    request,
                    change: &change,
                    behind: match (class, &facts.scaled) {
                        (Class::Scale, Some(Ok(Summary { whole: Some(whole), .. }))) => Behind::Scale(whole),
                        (Class::Scale, _) => Behind::Unknown,
                        _ => Behind::Nothing,
                    },
                    now: facts.now,
                    known: Known::default(),
                };
                self.ask_gates(&asked, &child, (chosen.mode, &chosen.from), facts);
            }
        }
        match (class, &request.old_object, &request.object) {
            _ if !self.decision.verdict.is_allowed() => {}
            (Class::Release, Some(stored), Some(sent)) if request.sub_resource == "status" => {
                self.note_status(request, stored, sent, user);
            }
            (Class::Release, Some(stored), Some(sent)) => {
                let writer = self.writer(&child, user, facts.parent.found());
                self.keep(&child, stored, sent, writer);
            }
            _ => self.record(request, &child, user, judged.map(|(summary, _)| summary), facts),
        }
    }

    pub(super) fn identify(
        &mut self,
        request: &Request<'_>,
        user: UserHash,
        parent: Option<&Summary>,
        child: &Child<'_>,
    ) {
        let creates = self.decision.class == Class::Create;
        let identified = actor::identify(request, user, parent, &child.updaters(), creates);
        self.decision.actor = Some(identified.actor);
        self.decision.explanation.saw_by(Rule::Actor, identified.actor.as_str(), identified.evidence);
    }

    fn caused(&mut self, cause: Cause, rule: Rule) {
        self.decision.cause = Some(cause);
        self.decided_by(rule);
    }

    fn gone(&mut self, child: &Child<'_>, class: Class) {
        self.saw(Rule::Parent, "the parent is gone");
        if class != Class::Create {
            self.caused(Cause::Cleanup, Rule::Parent);
            return;
        }
        self.decided_by(Rule::Parent);
        self.decision.resolution = Resolution::ParentGone;
        let message = answer::parent_gone(&child.id);
        self.stop_if_enforced(Denial::invalid(message));
    }

    fn unreadable(&mut self, child: &Child<'_>, why: &str) {
        self.saw(Rule::Parent, format!("the parent could not be read: {why}"));
        self.decided_by(Rule::Parent);
        self.decision.resolution = Resolution::ParentUnreadable;
        let message = answer::parent_unreadable(&child.id, why);
        self.stop_if_enforced(Denial::internal(message));
    }

    /// A `scale` of an object that cannot be read: nothing is known but the namespace's and the default mode.
    fn unreadable_scaled(&mut self, request: &Request<'_>, why: &str, facts: &Facts<'_>) {
        let Some(child) = Child::of(request) else { return };
        let labels = child.labels(request);
        let chosen = mode::choose(request, Class::Scale, &child, None, &labels, facts);
        self.decision.mode = Some(chosen.mode);
        chosen.faults.into_iter().for_each(|fault| self.warn(fault));
        self.unreadable(&child, why);
    }

    /// Denies in enforce mode; log mode blocks nothing that nobody forbade.
    fn stop_if_enforced(&mut self, denial: Denial) {
        if self.decision.mode == Some(Mode::Enforce) {
            self.decision.verdict = Verdict::Deny(denial);
        } else {
            self.warn(denial.message);
        }
    }

    fn find_cause(&mut self, parent: &Summary, resource: &str, facts: &Facts<'_>) {
        self.saw(Rule::Parent, parent.id.to_string());
        let (phase, shown_by) = phase::of(parent);
        self.saw(Rule::Phase, format!("{phase} ({shown_by})"));
        let rule = facts.settings.policies.settle(parent.id.group(), resource);
        let settled = settle::of(parent, rule);
        self.saw(
            Rule::Settled,
            match &settled {
                Settled::Marked => "yes: seen in steady state at this intent".to_owned(),
                Settled::Steady => "yes: in steady state at this intent".to_owned(),
                Settled::Observed => "yes: observedGeneration equals generation (literal rule)".to_owned(),
                Settled::No(why) => format!("no: {why}"),
                Settled::Unknown => {
                    "unknown: nothing says which generation the controller has seen".to_owned()
                }
            },
        );
        let actor = self.decision.actor.unwrap_or(Actor::Unknown);
        let cause = Cause::of(actor, phase, settled.is_settled());
        self.saw(Rule::Cause, cause.as_str());
        self.decision.phase = Some(phase);
        self.decision.settled = Some(settled);
        self.decision.cause = Some(cause);
    }

    fn ask_gates(
        &mut self,
        asked: &Asked<'_>,
        child: &Child<'_>,
        (mode, mode_from): (Mode, &str),
        facts: &Facts<'_>,
    ) {
        let (parent, change) = (asked.parent, asked.change);
        let passage = Passage {
            cause: asked.cause,
            parent,
            child,
            change,
            exceptions: &facts.settings.exceptions,
            asked,
            exception: facts.exception.as_ref(),
            mode,
            mode_from,
            now: facts.now,
        };
        let outcome = passage.ask(&mut self.decision.explanation);
        outcome.faults.into_iter().for_each(|fault| self.warn(fault));
        self.decision.resolution = outcome.resolution;
        self.decision.tried = outcome.tried;

        let snoozed = self.snoozed(parent, facts);
        let phase = self.decision.phase.unwrap_or(Phase::Initialized);
        match &self.decision.resolution {
            Resolution::Frozen => {
                let message = answer::frozen(&parent.id, &child.id, &outcome.reason);
                self.decision.verdict = Verdict::Deny(Denial::forbidden(message));
            }
            Resolution::Denied(_) => {
                let message = answer::denied(&parent.id, &child.id, &outcome.reason);
                self.decision.verdict = Verdict::Deny(Denial::forbidden(message));
                if asked.cause == Cause::Drift {
                    self.report(change.drift(parent, phase, child, snoozed));
                }
            }
            Resolution::Rejected => {
                let message = answer::rejected(&parent.id, &child.id, &outcome.reason);
                self.decision.verdict = Verdict::Deny(Denial::forbidden(message));
                self.report(change.drift(parent, phase, child, snoozed));
            }
            Resolution::Blocked => {
                let drift = change.drift(parent, phase, child, snoozed);
                let message = answer::blocked(parent, &child.id, &drift);
                self.decision.verdict = Verdict::Deny(Denial::forbidden(message));
                self.report(drift);
            }
            Resolution::Logged => {
                let drift = change.drift(parent, phase, child, snoozed);
                self.warn(answer::logged(&parent.id, &child.id, &drift));
                self.report(drift);
            }
            Resolution::Approved(used) if used.approval.mode == ApprovalMode::Once => {
                let effect = effect::consume(parent, used);
                self.decision.effects.push(effect);
            }
            Resolution::Ruled(ruled) => {
                let effect = effect::record_use(parent, &child.id, ruled, &facts.settings.exceptions);
                self.decision.effects.extend(effect);
            }
            _ => {}
        }
    }

    fn report(&mut self, drift: Drift) {
        self.decision.effects.push(Effect::Report(Box::new(drift)));
    }

    /// Whether nobody wants to hear of this parent's drifts now.
    fn snoozed(&mut self, parent: &Summary, facts: &Facts<'_>) -> bool {
        if self.decision.cause != Some(Cause::Drift) {
            return false;
        }
        let mut snoozed = false;
        for key in [SNOOZE, SNOOZE_UNTIL] {
            match parent.annotation(key).map(Snooze::decode) {
                Some(Ok(snooze)) => snoozed |= snooze.is_active(facts.now),
                Some(Err(fault)) => self.warn(format!("{key}: {fault}")),
                None => {}
            }
        }
        snoozed
    }

    /// Leaves the trace of an allowed change on its object.
    fn record(
        &mut self,
        request: &Request<'_>,
        child: &Child<'_>,
        user: UserHash,
        parent: Option<&Summary>,
        facts: &Facts<'_>,
    ) {
        let class = self.decision.class;
        let writer = self.writer(child, user, facts.parent.found());
        let table = match (class, &request.old_object, &request.object) {
            (Class::Create, _, Some(sent)) => Some(annotations::created(&sent.metadata.annotations, writer)),
            (Class::Update, Some(stored), Some(sent)) => {
                Some(annotations::updated(&stored.metadata.annotations, &sent.metadata.annotations, writer))
            }
            _ => None,
        };
        let labels = match &table {
            Some(table) => trace::labels(pairs(&table.wanted)),
            None => child.trace_labels(),
        };
        let (trace, fault) = trace::of(trace::Source {
            request,
            class,
            child,
            parent,
            cause: self.decision.cause,
            resolution: &self.decision.resolution,
            labels,
            now: facts.now,
        });
        fault.into_iter().for_each(|fault| self.warn(fault));
        let kept = parent.map(Summary::controllers).unwrap_or_default();
        match (table, &request.object) {
            (Some(mut table), Some(sent)) => {
                annotations::record_change(&mut table.wanted, trace.encode(), user, child.updaters(), &kept);
                if class == Class::Update {
                    annotations::prune(&mut table.wanted, child.next_generation(class));
                }
                self.finish_annotations(&sent.metadata.annotations, table);
            }
            _ if class == Class::Scale => {
                let mut wanted = Wanted::new();
                annotations::record_change(&mut wanted, trace.encode(), user, child.updaters(), &kept);
                self.decision.effects.push(effect::record_scale(child, wanted));
            }
            _ => {}
        }
        self.decision.trace = Some(trace);
    }
}
