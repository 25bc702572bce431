//! Changes of intent: the whole pipeline.

use jiff::{SignedDuration, Timestamp};
use kausality_api::{
    annotation::{FREEZE, PHASE, SETTLED, SNOOZE, SNOOZE_UNTIL},
    approval::ApprovalMode,
    identity::UserHash,
    mode::Mode,
    phase::{INITIALIZED, Phase},
    snooze::Snooze,
};

use super::{Draft, stray::is_stray};
use crate::{
    actor::{self, Actor, deletes_for_others},
    annotations::{self, Wanted, Writer, pairs},
    answer,
    cause::Cause,
    change::{Change, Drift},
    child::Child,
    class::{self, Class},
    decision::{Denial, Effect, Verdict},
    effect,
    exceptions::{Asked, Behind, Known, Ruled},
    explain::Rule,
    facts::{self, Facts, InputChange, Parent},
    gate::{self, Passage, Resolution},
    mode,
    patch::Patch,
    phase, reconciler, relation,
    review::{Object, Request, Review},
    settle::{self, Calm, Mark, Settled},
    summary::Summary,
    trace,
};

/// How long a controller may complete what it has created, at most.
const COMPLETION: SignedDuration = SignedDuration::from_secs(10);

/// How long after its time what was scheduled may happen.
const LATE: SignedDuration = SignedDuration::from_mins(5);

/// When the child of a Rollout was scheduled to be changed, if that is now.
fn due(child: &Child<'_>, parent: &Summary, now: Option<Timestamp>) -> Option<Timestamp> {
    let (due, passed) = (child.due()?, now?.duration_since(child.due()?));
    let is_rollout = parent.id.group() == "argoproj.io" && parent.id.kind == "Rollout";
    (is_rollout && !passed.is_negative() && passed < LATE).then_some(due)
}

impl Draft {
    /// Changes of intent: the whole pipeline.
    pub(super) fn judge(&mut self, review: &Review<'_>, user: UserHash, facts: &Facts<'_>) {
        let request = &review.request;
        let class = self.decision.class;
        let what = match class {
            Class::Release => "an object is taken from the owner that controls it",
            Class::Adopt => "an object gets an owner that controls it, as if it were created below that",
            Class::Relabel => "a label changes by which objects are selected",
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
        if mode::is_left_out(request, &child, facts) {
            self.saw(Rule::Class, "no policy is for an object with these labels");
            self.decided_by(Rule::Class);
            return;
        }
        let change = Change::new(review, facts.settings.redaction(request));
        let owner = facts::parent(request);
        let parent = match &facts.parent {
            Parent::Found { summary, .. } if !relation::confirms(summary, owner.as_ref(), &child.id) => {
                &Parent::None
            }
            parent if child.has_owner => parent,
            _ => &Parent::None,
        };

        // Who acts matters to the mode on CREATE, and to annotations even of an object on its way out.
        match parent {
            Parent::None => {}
            Parent::Found { summary, .. } => self.identify(request, user, Some(summary), &child),
            Parent::Gone | Parent::Unreadable(_) => self.identify(request, user, None, &child),
        }
        let own = match class {
            Class::Update => reconciler::of_change(request, user, &child, facts.parent.found(), &facts.below),
            Class::Scale => reconciler::of_scale(request, user, &child, facts.parent.found(), &facts.below),
            _ => None,
        };
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
                match own {
                    Some(why) => {
                        self.own_write(why);
                        self.decided_by(Rule::Reconciler);
                    }
                    None => self.caused(Cause::Origin, Rule::Parent),
                }
                None
            }
            Parent::Gone => {
                self.gone(request, &child);
                None
            }
            Parent::Unreadable(why) => {
                self.unreadable(&child, why);
                None
            }
            Parent::Found { summary, resource } => Some((*summary, *resource)),
        };
        if self.washes_freeze(request, &child) {
            return;
        }
        if let Some((summary, resource)) = judged {
            match own {
                Some(why) => {
                    self.saw(Rule::Parent, summary.id.to_string());
                    self.own_write(why);
                    self.saw(Rule::Cause, Cause::Expected.as_str());
                }
                None => self.find_cause(request, &child, summary, resource, facts),
            }
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
            (_, Some(stored), Some(sent)) if request.sub_resource == "status" => {
                self.note_status(request, stored, sent, user, facts);
            }
            (Class::Release | Class::Adopt | Class::Relabel, Some(stored), Some(sent)) => {
                let writer = self.writer(&child, user, facts);
                self.writer = Some(writer);
                self.keep(&child, stored, sent, writer);
            }
            (Class::Update, Some(stored), Some(sent)) if self.keeps_trace => {
                self.record_own_write(&child, stored, sent, user, own.is_some());
            }
            (Class::Scale, ..) if self.keeps_trace => {
                let own = facts.scaled.as_ref().and_then(|scaled| scaled.as_ref().ok());
                self.decision.effects.extend(own.and_then(|scaled| effect::record_own_scale(scaled, user)));
                self.decision.trace = child.trace();
            }
            _ => self.record(request, &child, user, judged.map(|(summary, _)| summary), facts),
        }
    }

    /// Denies to delete an object that is frozen, and so to lift the freeze on what is below it; or to change its owners, so
    /// that it is deleted for want of one. Who deletes it for somebody that deleted its owner or its namespace goes on.
    pub(super) fn washes_freeze(&mut self, request: &Request<'_>, child: &Child<'_>) -> bool {
        let what = match self.decision.class {
            Class::Delete => Some("cannot be deleted"),
            _ if class::changes_owners(request) => Some("cannot get other owners"),
            _ => None,
        };
        let asked = what.filter(|_| !child.deleting && !deletes_for_others(request));
        let Some(what) = asked else { return false };
        let Some((reason, faults)) = gate::frozen(child.stored(FREEZE)) else { return false };
        faults.into_iter().for_each(|fault| self.warn(fault));
        self.saw(Rule::Freeze, format!("the object itself is frozen {reason}"));
        self.decision.explanation.decides_alone(Rule::Freeze);
        self.decision.resolution = Resolution::Frozen;
        let message = answer::frozen_itself(&child.id, &reason, what);
        self.decision.verdict = Verdict::Deny(Denial::forbidden(message));
        true
    }

    pub(super) fn identify(
        &mut self,
        request: &Request<'_>,
        user: UserHash,
        parent: Option<&Summary>,
        child: &Child<'_>,
    ) {
        let creates = matches!(self.decision.class, Class::Create | Class::Adopt);
        let identified = actor::identify(request, user, parent, &child.updaters(), creates);
        self.decision.actor = Some(identified.actor);
        self.decision.explanation.saw_by(Rule::Actor, identified.actor.as_str(), identified.evidence);
    }

    fn caused(&mut self, cause: Cause, rule: Rule) {
        self.decision.cause = Some(cause);
        self.decided_by(rule);
    }

    /// The object's own controller completes it: nobody asks for anything.
    fn own_write(&mut self, why: &str) {
        self.saw(Rule::Reconciler, format!("the user {why}: not a new intent"));
        self.keeps_trace = true;
        self.decision.cause = Some(Cause::Expected);
    }

    fn gone(&mut self, request: &Request<'_>, child: &Child<'_>) {
        self.saw(Rule::Parent, "the parent is gone");
        if self.decision.class != Class::Create && !class::adopts(request) {
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

    /// A `scale` or an eviction of an object that cannot be read: nothing is known but the namespace's and the default mode.
    fn unreadable_scaled(&mut self, request: &Request<'_>, why: &str, facts: &Facts<'_>) {
        let Some(child) = Child::of(request) else { return };
        let labels = child.labels(request);
        let chosen = mode::choose(request, Class::Scale, &child, None, &labels, facts);
        self.decision.mode = Some(chosen.mode);
        chosen.faults.into_iter().for_each(|fault| self.warn(fault));
        self.unreadable(&child, why);
    }

    /// An eviction of a Pod that could not be read.
    pub(super) fn evict(&mut self, request: &Request<'_>, facts: &Facts<'_>) {
        self.saw(Rule::Class, "evict: a Pod is deleted");
        let why = match &facts.scaled {
            Some(Err(why)) => why.as_str(),
            _ => "it was not looked up",
        };
        self.unreadable_scaled(request, why, facts);
    }

    /// Denies in enforce mode; log mode blocks nothing that nobody forbade.
    fn stop_if_enforced(&mut self, denial: Denial) {
        if self.decision.mode == Some(Mode::Enforce) {
            self.decision.verdict = Verdict::Deny(denial);
        } else {
            self.warn(denial.message);
        }
    }

    fn find_cause(
        &mut self,
        request: &Request<'_>,
        child: &Child<'_>,
        parent: &Summary,
        resource: &str,
        facts: &Facts<'_>,
    ) {
        self.saw(Rule::Parent, parent.id.to_string());
        let settling = facts.settling(parent.id.group(), resource);
        let now = facts.timed.then_some(facts.now);
        let input = facts.recent_input().map(|input| input.at);
        let calm = Calm { now, last_change: facts.below_parent.last, input };
        let settled = settle::of(parent, settling, calm);
        if let Some(InputChange { object, at, ongoing, .. }) = facts.recent_input() {
            let when = if *ongoing { ", and is not done yet".to_owned() } else { format!(" at {at}") };
            self.saw(Rule::Input, format!("{object} was changed{when}"));
        }
        let (phase, shown_by) = phase::of(parent, &settled);
        self.saw(Rule::Phase, format!("{phase} ({shown_by})"));
        self.saw(
            Rule::Settled,
            match &settled {
                Settled::Marked => "yes: seen in steady state at this intent".to_owned(),
                Settled::Steady => "yes: in steady state at this intent".to_owned(),
                Settled::Observed => "yes: observedGeneration equals generation (literal rule)".to_owned(),
                Settled::Quiet => "yes: its controller has been quiet for long enough".to_owned(),
                Settled::No(why) | Settled::Restless(why) => format!("no: {why}"),
                Settled::Unknown => {
                    "unknown: nothing says which generation the controller has seen".to_owned()
                }
            },
        );
        let actor = self.decision.actor.unwrap_or(Actor::Unknown);
        let mut cause = Cause::of(actor, phase, settled.is_settled());
        // What is excused below says nothing about the parent, and does not begin its quiet time anew.
        self.decision.carries_out =
            actor == Actor::Controller && matches!(cause, Cause::Expected | Cause::Initialization);
        self.decision.unjudged = actor == Actor::Controller
            && settled == Settled::Unknown
            && settle::needs_quiet(parent, settling, calm);
        if let (Cause::Drift, Some(due)) = (cause, due(child, parent, now)) {
            self.saw(Rule::Settled, format!("the object was scheduled for {due}"));
            cause = Cause::Expected;
        }
        if cause == Cause::Drift && self.decision.class == Class::Update {
            let age = child.created().zip(now).map(|(created, now)| now.duration_since(created).abs());
            let window = SignedDuration::try_from(settling.quiet).unwrap_or(COMPLETION).min(COMPLETION);
            let made_it = child
                .trace()
                .is_some_and(|trace| trace.hops().last().is_some_and(|hop| hop.user == request.user()));
            if made_it && age.is_some_and(|age| age < window) {
                // Creating it was judged, and let pass; a child that is half made helps nobody.
                self.saw(Rule::Reconciler, "the user has just created this object, and completes it");
                self.keeps_trace = true;
                cause = Cause::Expected;
            }
        }
        if cause == Cause::Drift && self.decision.class == Class::Delete && is_stray(request, child, parent) {
            self.saw(
                Rule::Deletion,
                "it was adopted, and the parent's controllers have not changed it: they may clean it up",
            );
            cause = Cause::Cleanup;
        }
        self.saw(Rule::Cause, cause.as_str());
        self.decision.phase = Some(phase);
        self.decision.settled = Some(settled);
        self.decision.cause = Some(cause);
        if cause == Cause::Drift {
            for hint in facts.hints {
                self.saw(Rule::Hint, format!("shortly before: {}", hint.told(facts.now)));
            }
        }
        self.remember(parent, facts.now);
    }

    /// What shows for the first time that a parent is initialized or settled is recorded: it may say otherwise the next moment,
    /// and nobody else may look at it.
    fn remember(&mut self, parent: &Summary, now: Timestamp) {
        let mark = (self.decision.settled == Some(Settled::Steady))
            .then(|| Mark::new(parent.intent, parent.status_written().unwrap_or(now)).to_string());
        let is_new = self.decision.phase == Some(Phase::Initialized)
            && !phase::is_marked(|key| parent.annotation(key));
        let phase = is_new.then(|| INITIALIZED.to_owned());
        if mark.is_none() && phase.is_none() {
            return;
        }
        let facts = mark.map(|mark| (SETTLED, mark)).into_iter().chain(phase.map(|phase| (PHASE, phase)));
        self.decision.effects.push(Effect::RecordStatus {
            object: parent.id.clone(),
            uid: parent.uid.clone(),
            generation: parent.generation,
            status: parent.status.clone(),
            annotations: facts.map(|(key, value)| (key.to_owned(), Some(value))).collect(),
        });
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

        let denied_by = outcome.denied_by.as_ref();
        let snoozed = self.snoozed(parent, denied_by, facts);
        let phase = self.decision.phase.unwrap_or(Phase::Initialized);
        let entered = || change.drift(parent, phase, child, denied_by, snoozed);
        let hint = facts.hints.first().map(|hint| hint.told(facts.now));
        match &self.decision.resolution {
            Resolution::Frozen => {
                let message = answer::frozen(&parent.id, &child.id, &outcome.reason);
                self.decision.verdict = Verdict::Deny(Denial::forbidden(message));
            }
            Resolution::Denied(_) => {
                let drift = entered();
                let mut message = answer::denied(&parent.id, &child.id, &outcome.reason);
                if denied_by.is_some() {
                    message.push_str(&answer::approvable(parent, &child.id, &drift));
                }
                self.decision.verdict = Verdict::Deny(Denial::forbidden(message));
                self.report(drift);
            }
            Resolution::Rejected => {
                let message = match denied_by {
                    Some(_) => answer::denied(&parent.id, &child.id, &outcome.reason),
                    None => answer::rejected(&parent.id, &child.id, &outcome.reason),
                };
                self.decision.verdict = Verdict::Deny(Denial::forbidden(message));
                self.report(entered());
            }
            Resolution::Blocked => {
                let drift = entered();
                let message = answer::blocked(parent, &child.id, &drift, hint.as_deref());
                self.decision.verdict = Verdict::Deny(Denial::forbidden(message));
                self.report(drift);
            }
            Resolution::Logged => {
                let drift = entered();
                self.warn(answer::logged(&parent.id, &child.id, &drift));
                hint.into_iter().for_each(|hint| self.warn(answer::hint(&drift, &hint)));
                self.report(drift);
            }
            Resolution::Approved(used) if used.approval.mode == ApprovalMode::Once => {
                let effect = effect::consume(parent, used, (asked.request, facts.now));
                self.decision.effects.push(effect);
            }
            Resolution::Ruled(ruled) => {
                let (exceptions, spender) = (&facts.settings.exceptions, (asked.request, facts.now));
                let effect = effect::record_use(parent, &child.id, ruled, exceptions, spender);
                self.decision.effects.extend(effect);
            }
            _ => {}
        }
    }

    fn report(&mut self, drift: Drift) {
        if self.decision.cause == Some(Cause::Cleanup) {
            return;
        }
        self.decision.effects.push(Effect::Report(Box::new(drift)));
    }

    /// Whether nobody wants to hear now of this parent's drifts, and of what policies deny.
    fn snoozed(&mut self, parent: &Summary, denied_by: Option<&Ruled>, facts: &Facts<'_>) -> bool {
        if self.decision.cause != Some(Cause::Drift) && denied_by.is_none() {
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
        let writer = self.writer(child, user, facts);
        self.writer = (class != Class::Scale).then_some(writer);
        let wanted = match (class, &request.old_object, &request.object) {
            (Class::Create, _, Some(sent)) => Some(annotations::created(&sent.metadata.annotations)),
            (Class::Update, Some(stored), Some(sent)) => {
                Some(annotations::updated(&stored.metadata.annotations, &sent.metadata.annotations, writer))
            }
            _ => None,
        };
        let labels = match &wanted {
            Some(wanted) if writer == Writer::Free => trace::labels(pairs(wanted)),
            _ => child.trace_labels(),
        };
        let opens = |input: &&InputChange| parent.is_none_or(|parent| settle::is_opened_by(parent, input.at));
        let (trace, fault) = trace::of(trace::Source {
            request,
            class,
            child,
            parent,
            input: facts.recent_input().filter(opens),
            cause: self.decision.cause,
            resolution: &self.decision.resolution,
            labels,
            now: facts.now,
        });
        fault.into_iter().for_each(|fault| self.warn(fault));
        let kept = parent.map(Summary::controllers).unwrap_or_default();
        match (wanted, &request.object) {
            (Some(mut wanted), Some(sent)) => {
                annotations::record_change(&mut wanted, trace.encode(), user, child.updaters(), &kept);
                if class == Class::Update {
                    annotations::prune(&mut wanted, child.next_generation(class));
                }
                self.decision.patch = Patch::between(sent, &wanted);
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

    /// Leaves the trace of an object as it is: its controller has only completed it.
    fn record_own_write(
        &mut self,
        child: &Child<'_>,
        stored: &Object<'_>,
        sent: &Object<'_>,
        user: UserHash,
        own: bool,
    ) {
        let (before, after) = (&stored.metadata.annotations, &sent.metadata.annotations);
        let mut wanted = annotations::updated(before, after, Writer::Controller);
        self.writer = Some(Writer::Controller);
        if own {
            annotations::record_own_change(&mut wanted, stored, sent, user);
        }
        // What was decided about it holds on: nobody has asked for anything else.
        if let (Some(before), Some(after)) = (child.generation, child.next_generation(Class::Update)) {
            annotations::restamp(&mut wanted, before, after);
        }
        self.decision.patch = Patch::between(sent, &wanted);
        self.decision.trace = child.trace();
    }
}
