//! A request's way: facts, decision, and what must happen before the answer.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use kausality_api::{annotation::TRACE, approval::Approval};
use kausality_core::{
    Decision, Exception, Facts, Known, KnownParent, Review, Settings, Summary,
    cause::Cause,
    class::Class,
    decision::Effect,
    decisions,
    gate::Resolution,
    ledger, questions,
    review::{BadReview, Request},
    summary::ObjectId,
};
use tokio::time::Instant;

use crate::{
    clock::left_until,
    cluster::{Cluster, Freshness},
    index::Sight,
};

/// How long a decision may take, if there is time for it.
const TIME: Duration = Duration::from_secs(6);

/// Why an approval is not used up for a review that does not agree with the cluster.
const NOT_SO: &str =
    "its approval is not used up: the API server does not confirm that the object is as the review says";

/// How often a decision is made again because an approval was taken meanwhile, or the parent changed.
const MAX_ATTEMPTS: usize = 10;

/// How long a watch is given to catch up before an answer that waits for it is checked live.
const MOMENT: Duration = Duration::from_millis(2);

/// A review that is being decided.
struct Case<'a> {
    review: Review<'a>,
    settings: Arc<Settings>,
    /// Why the object behind it could not be read, where it was asked for before all else.
    unreadable: Option<Result<Arc<Summary>, String>>,
    /// When it came, if that was earlier than now.
    at: Option<Timestamp>,
    until: Instant,
}

impl Case<'_> {
    fn request(&self) -> &Request<'_> {
        &self.review.request
    }

    fn decide(&self, known: &Known) -> Decision {
        kausality_core::decide(&self.review, &known.facts(&self.settings))
    }
}

/// What a review is decided by, the decision, and whether all that the review says is so.
struct Decided {
    known: Known,
    decision: Decision,
    follows: bool,
}

impl Cluster {
    /// Decides a review before the time is up, does what must be done before the answer, and starts what comes after
    /// it. With the decision comes what `describe` says of the request.
    ///
    /// What is to be denied is confirmed before. An update that is drift and passes anyway is answered from memory: it is confirmed,
    /// entered and reported afterwards.
    ///
    /// # Errors
    /// If the bytes are no review.
    pub async fn admit<T>(
        self: &Arc<Self>,
        bytes: &[u8],
        until: Instant,
        describe: impl FnOnce(&Request<'_>) -> T,
    ) -> Result<(T, Decision), BadReview> {
        let until = until.min(Instant::now() + TIME);
        let deletion;
        let mut bytes = bytes;
        let mut review = Review::parse(bytes)?;
        let mut unreadable = None;
        if let Some((namespace, name)) = review.evicted() {
            match Box::pin(self.read_pod(namespace, name, until)).await {
                Ok(pod) => {
                    deletion = review.as_deletion_of(&pod);
                    bytes = &deletion;
                    review = Review::parse(bytes)?;
                }
                Err(why) => unreadable = Some(Err(why)),
            }
        }
        let case = Case { unreadable, ..self.case(review, until) };
        let (known, first) = self.recall(&case).await;
        let room =
            if passes_anyway(&first, &case.settings) { self.afterwards.room(bytes.len()) } else { None };
        let decision = match room {
            Some(room) => {
                let (cluster, decision, bytes) = (self.clone(), first.clone(), bytes.to_vec());
                tokio::spawn(async move {
                    cluster.confirm_afterwards(&bytes, known, decision).await;
                    drop(room);
                });
                self.lately.note(case.request(), &first);
                first
            }
            None => {
                let decided = match is_plain(&first) {
                    true => Decided { known, decision: first, follows: true },
                    // What is rare has a place of its own: the answers to all others need not keep room for it.
                    false => Box::pin(self.confirm(&case, known, first)).await,
                };
                self.lately.note(case.request(), &decided.decision);
                self.conclude(&case, decided).await
            }
        };
        Ok((describe(case.request()), decision))
    }

    /// A review, its object as it is known here.
    fn case<'a>(&self, mut review: Review<'a>, until: Instant) -> Case<'a> {
        let settings = self.settings();
        let request = &mut review.request;
        if let Some(old) = &mut request.old_object {
            let resource = &request.resource;
            old.read_by(settings.policies.status_rules(&resource.group, &resource.resource));
            self.pending.dress(old, self.believes_reviews());
        }
        Case { review, settings, unreadable: None, at: None, until }
    }

    async fn know_of(&self, case: &Case<'_>, freshness: Freshness) -> Known {
        let recollected = match freshness {
            Freshness::Cached => self.recollect(case.request()),
            Freshness::Live => None,
        };
        let mut known = match recollected {
            Some(known) => known,
            None => Box::pin(self.know(case.request(), freshness, case.until)).await,
        };
        known.scaled = known.scaled.or_else(|| case.unreadable.clone());
        known.now = case.at.unwrap_or(known.now);
        known
    }

    /// Decides by what is known here.
    async fn recall(&self, case: &Case<'_>) -> (Known, Decision) {
        let mut known = self.know_of(case, Freshness::Cached).await;
        let mut decision = case.decide(&known);
        if decision.may_follow_input()
            && let Some(around) = Box::pin(self.look_around(&known.parent, false, &case.settings)).await
            && self.explain(case.request(), &mut known, &decision, &around, &case.settings)
        {
            decision = case.decide(&known);
        }
        (known, decision)
    }

    /// Confirms a decision live, where it must not rest on what is known here, and uses up the approval that it rests on.
    async fn confirm(&self, case: &Case<'_>, mut known: Known, mut decision: Decision) -> Decided {
        let (request, until) = (case.request(), case.until);
        if must_confirm(&decision) && self.catches_up(&known).await {
            (known, decision) = self.recall(case).await;
        }
        let mut is_so = None;
        if must_confirm(&decision) {
            let around = async {
                let is_asked = decision.may_follow_input();
                if is_asked { self.look_around(&known.parent, true, &case.settings).await } else { None }
            };
            // What could not be found out in time explains nothing.
            let around = tokio::time::timeout_at(until, around);
            let so = async {
                let is_asked = self.must_be_so(request, &decision);
                if is_asked { Some(self.is_so(request, until).await) } else { None }
            };
            let (live, around, so) = tokio::join!(self.know_of(case, Freshness::Live), around, so);
            is_so = so;
            if !live.agrees_with(&known) {
                decision = case.decide(&live);
            }
            known = live;
            if decision.may_follow_input() {
                let around = match around.ok().flatten() {
                    Some(around) => Some(around),
                    None => {
                        let late = self.look_around(&known.parent, true, &case.settings);
                        tokio::time::timeout_at(until, late).await.ok().flatten()
                    }
                };
                if around.is_some_and(|it| self.explain(request, &mut known, &decision, &it, &case.settings))
                {
                    decision = case.decide(&known);
                }
            }
        }
        let follows = self.may_follow(request, &decision, is_so, until).await;
        if !follows && used_up(&decision).is_some() {
            known.parent = KnownParent::Unreadable(NOT_SO.to_owned());
            decision = case.decide(&known);
        }
        let mut attempts = 1;
        while let Err(why) = self.consume(&decision, until).await {
            if !why.may_pass || attempts == MAX_ATTEMPTS || Instant::now() >= until {
                let why = why.reason;
                known.parent = KnownParent::Unreadable(format!("its approval could not be used up: {why}"));
            } else {
                let (input, hints) = (known.input.take(), std::mem::take(&mut known.hints));
                known = self.know_of(case, Freshness::Live).await;
                (known.input, known.hints) = (input, hints);
            }
            decision = case.decide(&known);
            attempts += 1;
        }
        if let Some(approval) = used_up(&decision) {
            self.spent.note(request, approval);
        } else if wants_approval(&decision)
            && let Some(approval) = self.spent.again(request)
        {
            known.exception = Some(Exception::Used(Box::new(approval)));
            decision = case.decide(&known);
        }
        Decided { known, decision, follows }
    }

    /// Does what must be done before the answer, and starts what comes after it.
    async fn conclude(self: &Arc<Self>, case: &Case<'_>, mut decided: Decided) -> Decision {
        let Decided { known, decision, follows } = &mut decided;
        let request = case.request();
        decision.effects.retain(|effect| match effect {
            Effect::ConsumeOnce { .. } | Effect::Report(_) => *follows,
            Effect::RecordScale { uid, .. } => self.is_of_scaled(request, uid),
            Effect::RecordStatus { .. } => true,
        });
        self.below.note(request, known, decision);
        self.tell_of_step(request, known, decision);
        self.changes.note(request, decision, &case.settings, known.now);
        if decision.unjudged || !is_plain(decision) || !decision.effects.is_empty() {
            Box::pin(self.carry_out(case, &decided)).await;
        }
        decided.decision
    }

    /// Writes what follows from a decision: what must be there before the answer, and, in tasks of their own, the rest.
    async fn carry_out(self: &Arc<Self>, case: &Case<'_>, decided: &Decided) {
        let Decided { known, decision, follows } = decided;
        let (request, settings) = (case.request(), &case.settings);
        self.tell_unjudged(request, known, decision, settings).await;
        let counts = *follows && !request.is_dry_run();
        if counts {
            self.exceptions.note(decision, known.now);
        }
        for effect in &decision.effects {
            if let Effect::Report(drift) = effect {
                self.enter(drift, decision, case.until).await;
            }
        }
        if let (Some(approval), KnownParent::Found { summary, .. }) = (approval(decision), &known.parent)
            && counts
            && let Some(key) = ledger::key(&case.review, decision, summary, settings)
        {
            let cluster = self.clone();
            tokio::spawn(async move { cluster.ledger.close(&key, &approval).await });
        }
        if decision.effects.iter().any(|effect| !matches!(effect, Effect::ConsumeOnce { .. })) {
            let word = self.takes_word(request, decision, case.until).await;
            self.clone().follow(request, known, decision, word);
        }
    }

    /// Confirms a drift that is let pass, and does all that follows from it. It is read at once what there is: what its
    /// controller does next is no reason for what it has done. What cannot be read shows nothing else.
    async fn confirm_afterwards(self: &Arc<Self>, bytes: &[u8], known: Known, first: Decision) {
        // It has been read before.
        let Ok(review) = Review::parse(bytes) else { return };
        let case = Case { at: Some(known.now), ..self.case(review, Instant::now() + TIME) };
        let (request, until) = (case.request(), case.until);
        let around = tokio::time::timeout_at(until, self.look_around(&known.parent, true, &case.settings));
        let so = async {
            let is_asked = self.must_be_so(request, &first);
            if is_asked { Some(self.is_so(request, until).await) } else { None }
        };
        let (mut live, around, so) = tokio::join!(self.know_of(&case, Freshness::Live), around, so);
        let mut now = case.decide(&live);
        if now.may_follow_input()
            && let Ok(Some(around)) = around
            && self.explain(request, &mut live, &now, &around, &case.settings)
        {
            now = case.decide(&live);
        }
        let is_none = now.cause.is_some_and(|cause| cause != Cause::Drift) && now.verdict.is_allowed();
        let (known, decision) = match is_none {
            true => {
                self.mend_trace(request, &first, &now);
                (live, now)
            }
            false => (known, first),
        };
        let follows = self.may_follow(request, &decision, so, until).await;
        self.conclude(&case, Decided { known, decision, follows }).await;
    }

    /// Has an object get the trace that it should have been given, where it turned out that a change was no drift.
    fn mend_trace(&self, request: &Request<'_>, first: &Decision, now: &Decision) {
        let Some(old) = request.old_object.as_ref().filter(|_| !request.is_dry_run()) else { return };
        let trace = |decision: &Decision| decision.patch.annotations.get(TRACE).cloned().flatten();
        let stored = || old.metadata.annotations.get(TRACE).map(ToOwned::to_owned);
        if let (Some(given), Some(right)) = (trace(first), trace(now).or_else(stored))
            && given != right
        {
            let object = ObjectId {
                api_version: old.api_version.to_string(),
                kind: old.kind.to_string(),
                namespace: old.metadata.namespace.to_string(),
                name: old.metadata.name.to_string(),
            };
            self.pending.mend(&object, &old.metadata.uid, given, right);
        }
    }

    /// Whether the parent turns out to have changed within a moment.
    async fn catches_up(&self, known: &Known) -> bool {
        let KnownParent::Found { summary, .. } = &known.parent else { return false };
        let Ok(kind) = self.kinds.of_kind(&summary.id.api_version, &summary.id.kind).await else {
            return false;
        };
        let index = self.watch(&kind);
        let deadline = Instant::now() + MOMENT;
        let mut changes = index.changes();
        while let Some(left) = left_until(deadline) {
            match index.look(&summary.id.namespace, &summary.id.name, &summary.uid) {
                Sight::Here(now) if now.resource_version == summary.resource_version => {
                    changes.next(left).await
                }
                Sight::Here(_) | Sight::Departed => return true,
                Sight::Unseen | Sight::Blind => return false,
            }
        }
        false
    }
}

impl Cluster {
    /// Decides before the time is up whether whoever sends a review may decide about drifts, and nothing else: for kinds
    /// that are not watched. With the decision comes what `describe` says of the request.
    ///
    /// # Errors
    /// If the bytes are no review.
    pub async fn decisions<T>(
        &self,
        bytes: &[u8],
        until: Instant,
        describe: impl FnOnce(&Request<'_>) -> T,
    ) -> Result<(T, Decision), BadReview> {
        let review = Review::parse(bytes)?;
        let settings = self.settings();
        let matters = questions(&review.request, &settings).authority;
        let authority = self.authority(matters, &review.request, until.min(Instant::now() + TIME)).await;
        let facts = Facts { authority, ..Facts::new(self.clock.now(), &settings) };
        Ok((describe(&review.request), decisions(&review, &facts)))
    }
}

/// The approval that a decision used up.
fn used_up(decision: &Decision) -> Option<&Approval> {
    decision.effects.iter().find_map(|effect| match effect {
        Effect::ConsumeOnce { approval, .. } => Some(&**approval),
        _ => None,
    })
}

/// The approval that lets a drift pass; a rule of a policy stands for one.
fn approval(decision: &Decision) -> Option<Approval> {
    match &decision.resolution {
        Resolution::Approved(used) => Some(used.approval.clone()),
        Resolution::Excepted(Exception::Used(approval)) => Some(Approval::clone(approval)),
        Resolution::Ruled(ruled) => Some(ruled.approval()),
        _ => None,
    }
}

/// Whether a decision must not rest on a cache: a stale one must never block, nor report, what is legitimate.
fn must_confirm(decision: &Decision) -> bool {
    !decision.verdict.is_allowed()
        || decision.cause == Some(Cause::Drift)
        || matches!(decision.resolution, Resolution::ParentGone | Resolution::Approved(_))
}

/// Whether a request passes for itself: nothing has to be confirmed or used up, and nobody told.
fn is_plain(decision: &Decision) -> bool {
    let is_small =
        |effect: &Effect| matches!(effect, Effect::RecordStatus { .. } | Effect::RecordScale { .. });
    decision.verdict.is_allowed()
        && decision.cause != Some(Cause::Drift)
        && matches!(decision.resolution, Resolution::Passed)
        && decision.effects.iter().all(is_small)
        && decision.matched().next().is_none()
}

/// Whether the update of an object is let pass in any case, though it is drift, and what is known of the object can be put right
/// afterwards. What is created has no uid yet, what is deleted is gone by then, and a `scale` is recorded beside what it
/// changes. What rests on an approval, or on a rule that may read more than is known here, is confirmed before.
fn passes_anyway(decision: &Decision, settings: &Settings) -> bool {
    decision.verdict.is_allowed()
        && decision.cause == Some(Cause::Drift)
        && decision.class == Class::Update
        && matches!(decision.resolution, Resolution::Logged | Resolution::Ruled(_))
        && used_up(decision).is_none()
        && !settings.exceptions.asks_for_parent()
}

/// Whether a change was denied for want of an approval.
fn wants_approval(decision: &Decision) -> bool {
    match decision.resolution {
        Resolution::Blocked => true,
        Resolution::Denied(_) => decision.cause != Some(Cause::Drift),
        _ => false,
    }
}
