//! A request's way: facts, decision, and what must happen before the answer.

use std::{sync::Arc, time::Duration};

use kausality_api::approval::Approval;
use kausality_core::{
    Decision, Exception, Facts, Known, KnownParent, Review,
    cause::Cause,
    decision::Effect,
    decisions,
    gate::Resolution,
    ledger, questions,
    review::{BadReview, Request},
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

impl Cluster {
    /// Decides a review before the time is up, does what must be done before the answer, and starts what comes after
    /// it. With the decision comes what `describe` says of the request.
    ///
    /// # Errors
    /// If the bytes are no review.
    pub async fn admit<T>(
        self: &Arc<Self>,
        bytes: &[u8],
        until: Instant,
        describe: impl FnOnce(&Request<'_>) -> T,
    ) -> Result<(T, Decision), BadReview> {
        let deletion;
        let mut review = Review::parse(bytes)?;
        let settings = self.settings();
        let until = until.min(Instant::now() + TIME);
        let mut unreadable = None;
        if let Some((namespace, name)) = review.evicted() {
            match self.read_pod(namespace, name, until).await {
                Ok(pod) => {
                    deletion = review.as_deletion_of(&pod);
                    review = Review::parse(&deletion)?;
                }
                Err(why) => unreadable = Some(Err(why)),
            }
        }
        let request = &mut review.request;
        if let Some(old) = &mut request.old_object {
            let resource = &request.resource;
            old.read_by(settings.policies.status_rules(&resource.group, &resource.resource));
            self.pending.dress(old, self.believes_reviews());
        }
        let review = review;
        let decide = |known: &Known| kausality_core::decide(&review, &known.facts(&settings));
        let mut known = self.know(&review.request, Freshness::Cached, until).await;
        known.scaled = known.scaled.or(unreadable.clone());
        let mut decision = decide(&known);
        // Mostly it is the watch that lags behind: a moment saves a live read.
        if must_confirm(&decision) && self.catches_up(&known).await {
            known = self.know(&review.request, Freshness::Cached, until).await;
            decision = decide(&known);
        }
        if must_confirm(&decision) {
            let mut live = self.know(&review.request, Freshness::Live, until).await;
            live.scaled = live.scaled.or(unreadable);
            if !live.agrees_with(&known) {
                decision = decide(&live);
            }
            known = live;
        }
        if decision.may_follow_input() {
            let last_step = known.below_parent.last;
            let look = self.look_around(&review.request, &mut known, &decision, &settings);
            // What could not be found out in time explains nothing.
            let _ = tokio::time::timeout_at(until, look).await;
            if known.input.is_some() || !known.hints.is_empty() || known.below_parent.last > last_step {
                decision = decide(&known);
            }
        }
        let follows = self.may_follow(&review.request, &decision, until).await;
        if !follows && used_up(&decision).is_some() {
            known.parent = KnownParent::Unreadable(NOT_SO.to_owned());
            decision = decide(&known);
        }
        let mut attempts = 1;
        while let Err(why) = self.consume(&decision, until).await {
            if !why.may_pass || attempts == MAX_ATTEMPTS || Instant::now() >= until {
                let why = why.reason;
                known.parent = KnownParent::Unreadable(format!("its approval could not be used up: {why}"));
            } else {
                let (input, hints) = (known.input.take(), std::mem::take(&mut known.hints));
                known = self.know(&review.request, Freshness::Live, until).await;
                (known.input, known.hints) = (input, hints);
            }
            decision = decide(&known);
            attempts += 1;
        }
        if let Some(approval) = used_up(&decision) {
            self.spent.note(&review.request, approval);
        } else if wants_approval(&decision)
            && let Some(approval) = self.spent.again(&review.request)
        {
            known.exception = Some(Exception::Used(Box::new(approval)));
            decision = decide(&known);
        }
        decision.effects.retain(|effect| match effect {
            Effect::ConsumeOnce { .. } | Effect::Report(_) => follows,
            Effect::RecordScale { uid, .. } => self.is_of_scaled(&review.request, uid),
            Effect::RecordStatus { .. } => true,
        });
        self.lately.note(&review.request, &decision);
        self.below.note(&review.request, &known, &decision);
        self.tell_of_step(&review.request, &known, &decision);
        self.changes.note(&review.request, &decision, &settings, known.now);
        self.tell_unjudged(&review.request, &known, &decision, &settings).await;
        if follows && !review.request.is_dry_run() {
            self.exceptions.note(&decision, known.now);
        }
        for effect in &decision.effects {
            if let Effect::Report(drift) = effect {
                self.enter(drift, &decision, until).await;
            }
        }
        if let (Some(approval), KnownParent::Found { summary, .. }) = (approval(&decision), &known.parent)
            && follows
            && !review.request.is_dry_run()
            && let Some(key) = ledger::key(&review, &decision, summary, &settings)
        {
            let cluster = self.clone();
            tokio::spawn(async move { cluster.ledger.close(&key, &approval).await });
        }
        if decision.effects.iter().any(|effect| !matches!(effect, Effect::ConsumeOnce { .. })) {
            self.clone().follow(&review.request, &known, &decision);
        }
        Ok((describe(&review.request), decision))
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

/// How long a watch is given to catch up before it is checked.
const MOMENT: Duration = Duration::from_millis(25);

impl Cluster {
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

/// Whether a change was denied for want of an approval.
fn wants_approval(decision: &Decision) -> bool {
    match decision.resolution {
        Resolution::Blocked => true,
        Resolution::Denied(_) => decision.cause != Some(Cause::Drift),
        _ => false,
    }
}
