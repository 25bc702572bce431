//! The pipeline: from a request and the facts about it to a decision.

use std::collections::BTreeMap;

use kausality_api::{
    annotation::{APPROVALS, REJECTIONS, SNOOZE, SNOOZE_UNTIL},
    approval::{Approval, ApprovalMode, Entries},
    identity::UserHash,
    mode::Mode,
    phase::Phase,
    snooze::Snooze,
    text::shorten,
};

use crate::{
    actor::{self, Actor},
    annotations::{self, Table, Wanted, Writer},
    answer,
    cause::Cause,
    change::Change,
    child::{self, Child},
    class::Class,
    decision::{Decision, Denial, Effect, Verdict},
    explain::{Explanation, Rule},
    facts::{Facts, Parent},
    gate::{Passage, Resolution, Used},
    mode,
    patch::Patch,
    phase,
    review::{Object, Request, Review},
    settle::{self, Settled},
    summary::Summary,
    trace,
};

/// The longest warning in characters. The API server itself passes on far less.
const MAX_WARNING: usize = 1000;

/// Decides a request.
///
/// Total: there is a decision for every request and every state of knowledge.
#[must_use]
pub fn decide(review: &Review<'_>, facts: &Facts<'_>) -> Decision {
    let request = &review.request;
    let class = Class::of(request, facts.settings);
    let user = UserHash::of(&request.user_info.username, &request.user_info.uid);
    let mut decision = Draft::new(class);
    match (class, &request.old_object, &request.object) {
        (Class::Status, Some(stored), Some(sent)) => decision.observe(request, stored, sent, user),
        (Class::Metadata, Some(stored), Some(sent)) if request.sub_resource.is_empty() => {
            decision.protect(request, stored, sent, user, facts);
        }
        (Class::Create | Class::Update | Class::Delete | Class::Scale, ..) => {
            decision.judge(review, user, facts);
        }
        _ => decision.pass_by(class),
    }
    decision.finish(request)
}

/// A decision in the making.
struct Draft {
    decision: Decision,
}

impl Draft {
    fn new(class: Class) -> Self {
        Self {
            decision: Decision {
                class,
                actor: None,
                phase: None,
                settled: None,
                cause: None,
                mode: None,
                resolution: Resolution::Passed,
                verdict: Verdict::Allow,
                patch: Patch::default(),
                warnings: Vec::new(),
                audit: BTreeMap::new(),
                effects: Vec::new(),
                trace: None,
                explanation: Explanation::default(),
            },
        }
    }

    fn saw(&mut self, rule: Rule, finding: impl Into<String>) {
        self.decision.explanation.saw(rule, finding);
    }

    fn decided_by(&mut self, rule: Rule) {
        self.decision.explanation.decided_by(rule);
    }

    fn warn(&mut self, warning: impl Into<String>) {
        self.decision.warnings.push(shorten(&warning.into(), MAX_WARNING));
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

    /// Status updates: never gated, but they show who the controller is and how far it has got.
    fn observe(&mut self, request: &Request<'_>, stored: &Object<'_>, sent: &Object<'_>, user: UserHash) {
        self.saw(Rule::Class, "a status update is observed, never gated");
        self.decided_by(Rule::Class);
        let (before, after) = (&stored.metadata.annotations, &sent.metadata.annotations);
        let Table { mut wanted, .. } = annotations::updated(before, after, Writer::Bound(None));
        let observed = annotations::observe(&mut wanted, stored, sent, user);
        self.saw(
            Rule::Settled,
            match observed.busy {
                None => "in steady state: settled at this intent".to_owned(),
                Some(busy) => format!("not in steady state: {busy}"),
            },
        );
        self.saw(Rule::Phase, if observed.initialized { "initialized" } else { "initializing" });
        self.decision.patch = Patch::between(after, &wanted);
        let new_facts = annotations::new_facts(&wanted, before);
        if let (false, Some(child)) = (new_facts.is_empty(), Child::of(request)) {
            self.decision.effects.push(Effect::RecordStatus {
                object: child.id,
                uid: child.uid.unwrap_or_default(),
                annotations: new_facts,
            });
        }
    }

    /// Updates that leave the intent alone: never gated, but nobody writes annotations that are not theirs.
    fn protect(
        &mut self,
        request: &Request<'_>,
        stored: &Object<'_>,
        sent: &Object<'_>,
        user: UserHash,
        facts: &Facts<'_>,
    ) {
        self.saw(Rule::Class, "the intent is unchanged: never gated");
        self.decided_by(Rule::Class);
        let Some(child) = Child::of(request) else { return };
        let (before, after) = (&stored.metadata.annotations, &sent.metadata.annotations);
        let mut writer = Writer::Free;
        if annotations::user_annotations_differ(request) {
            let parent = found(&facts.parent);
            if child.has_owner {
                self.identify(request, user, parent, &child);
            }
            writer = self.writer(&child, user, parent);
        }
        let mut table = annotations::updated(before, after, writer);
        if let (true, Some(generation)) =
            (child::annotations_bump_generation(&child.id), stored.metadata.generation)
        {
            let unchanged = before.same_others(after) && before.ours().eq(strs(&table.wanted));
            if !unchanged {
                annotations::restamp(&mut table.wanted, generation, generation.saturating_add(1));
            }
        }
        self.finish_annotations(after, table);
    }

    /// Changes of intent: the whole pipeline.
    fn judge(&mut self, review: &Review<'_>, user: UserHash, facts: &Facts<'_>) {
        let request = &review.request;
        let class = self.decision.class;
        self.saw(Rule::Class, format!("{class}: a change of intent"));
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
        let labels = child::labels(request);
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
            self.ask_gates(summary, &child, &change, (chosen.mode, &chosen.from), facts);
        }
        if self.decision.verdict.is_allowed() {
            self.record(request, &child, user, judged.map(|(summary, _)| summary), facts);
        }
    }

    fn identify(
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
        let labels = child::labels(request);
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
        parent: &Summary,
        child: &Child<'_>,
        change: &Change<'_>,
        (mode, mode_from): (Mode, &str),
        facts: &Facts<'_>,
    ) {
        let Some(cause) = self.decision.cause else { return };
        let passage = Passage {
            cause,
            parent,
            child,
            change,
            exception: facts.exception.as_ref(),
            mode,
            mode_from,
            now: facts.now,
        };
        let outcome = passage.ask(&mut self.decision.explanation);
        outcome.faults.into_iter().for_each(|fault| self.warn(fault));
        self.decision.resolution = outcome.resolution;

        let snoozed = self.snoozed(parent, facts);
        let phase = self.decision.phase.unwrap_or(Phase::Initialized);
        match &self.decision.resolution {
            Resolution::Frozen => {
                let message = answer::frozen(&parent.id, &child.id, &outcome.reason);
                self.decision.verdict = Verdict::Deny(Denial::forbidden(message));
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
                self.warn(answer::logged(&parent.id, &child.id, drift.id()));
                self.report(drift);
            }
            Resolution::Approved(used) if used.approval.mode == ApprovalMode::Once => {
                let effect = consume(parent, used);
                self.decision.effects.push(effect);
            }
            _ => {}
        }
    }

    fn report(&mut self, drift: crate::change::Drift) {
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
        let writer = self.writer(child, user, found(&facts.parent));
        let table = match (class, &request.old_object, &request.object) {
            (Class::Create, _, Some(sent)) => Some(annotations::created(&sent.metadata.annotations, writer)),
            (Class::Update, Some(stored), Some(sent)) => {
                Some(annotations::updated(&stored.metadata.annotations, &sent.metadata.annotations, writer))
            }
            _ => None,
        };
        let labels = match &table {
            Some(table) => trace::labels(strs(&table.wanted)),
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
                self.decision.effects.push(record_scale(child, wanted));
            }
            _ => {}
        }
        self.decision.trace = Some(trace);
    }

    /// Whether whoever acts is bound to leave people's annotations alone.
    fn writer<'a>(&self, child: &Child<'_>, user: UserHash, parent: Option<&'a Summary>) -> Writer<'a> {
        let reconciles = self.decision.actor == Some(Actor::Controller) || child.controllers().contains(user);
        if reconciles { Writer::Bound(parent) } else { Writer::Free }
    }

    fn finish_annotations(&mut self, sent: &crate::review::Annotations<'_>, mut table: Table) {
        // What is stored as it was sent was not ignored, as when a patched object comes a second time.
        table.ignored.retain(|key| sent.get(key) != table.wanted.get(key).map(String::as_str));
        if !table.ignored.is_empty() {
            let keys = table.ignored.join(", ");
            self.saw(Rule::Annotations, format!("a controller's change of {keys} is ignored"));
            self.warn(answer::ignored(&keys));
        }
        self.decision.patch = Patch::between(sent, &table.wanted);
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
    let sent = &new.metadata.resource_version;
    !sent.is_empty() && *sent != old.metadata.resource_version
}

fn found<'a>(parent: &Parent<'a>) -> Option<&'a Summary> {
    match parent {
        Parent::Found { summary, .. } => Some(summary),
        Parent::None | Parent::Gone | Parent::Unreadable(_) => None,
    }
}

fn strs(wanted: &Wanted) -> impl Iterator<Item = (&str, &str)> {
    wanted.iter().map(|(key, value)| (key.as_str(), value.as_str()))
}

/// Takes a used approval off the parent. Where that write itself bumps the generation, the entries that
/// are left go along.
fn consume(parent: &Summary, used: &Used) -> Effect {
    let mut wanted: Wanted = (parent.annotations())
        .filter(|(key, _)| [APPROVALS, REJECTIONS].contains(key))
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect();
    let left =
        parent.annotation(APPROVALS).map(Entries::<Approval>::decode).and_then(|it| it.without(used.place));
    match left {
        Some(left) => wanted.insert(APPROVALS.to_owned(), left),
        None => wanted.remove(APPROVALS),
    };
    if let (true, Some(generation)) = (child::annotations_bump_generation(&parent.id), parent.generation) {
        annotations::restamp(&mut wanted, generation, generation.saturating_add(1));
    }
    let annotations = [APPROVALS, REJECTIONS]
        .into_iter()
        .filter(|key| parent.annotation(key) != wanted.get(*key).map(String::as_str))
        .map(|key| (key.to_owned(), wanted.get(key).cloned()))
        .collect();
    Effect::ConsumeOnce {
        parent: parent.id.clone(),
        uid: parent.uid.clone(),
        resource_version: parent.resource_version.clone(),
        approval: Box::new(used.approval.clone()),
        annotations,
    }
}

fn record_scale(child: &Child<'_>, wanted: Wanted) -> Effect {
    let mut annotations: BTreeMap<String, Option<String>> =
        wanted.into_iter().map(|(key, value)| (key, Some(value))).collect();
    annotations.insert(kausality_api::annotation::SETTLED.to_owned(), None);
    Effect::RecordScale { object: child.id.clone(), uid: child.uid.clone().unwrap_or_default(), annotations }
}
