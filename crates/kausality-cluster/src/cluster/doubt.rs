//! Reviews that anybody may have written.
//!
//! Where API servers show nothing by which they are known, a review is no evidence. What follows from it beyond the answer waits
//! until the API server has confirmed what nobody can guess who may not read it: the uid of the object that is said to be
//! written, and a version that it has had. A creation has neither; the uid of its parent, which was found, stands for them.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use kausality_core::{Decision, decision::Effect, review::Request};
use tokio::time::{Instant, timeout_at};

use super::{Cluster, know::Unread};
use crate::kinds::UnknownKind;

/// Whether reviews are doubted, and how many did not agree with the cluster.
#[derive(Debug, Default)]
pub(crate) struct Doubts {
    doubted: AtomicBool,
    disproved: AtomicU64,
    /// How many could not be held against it.
    unproven: AtomicU64,
}

/// Whether something with this version may have had that one.
fn comes_after(version: &str, earlier: &str) -> bool {
    let (version, earlier) = (version.parse::<u64>(), earlier.parse::<u64>());
    version.is_ok_and(|version| earlier.is_ok_and(|earlier| 0 < earlier && earlier <= version))
}

impl Cluster {
    /// From now on reviews may come from anybody: they are held against the cluster before they have an effect in it.
    pub fn doubt_reviews(&self) {
        self.doubts.doubted.store(true, Ordering::Relaxed);
    }

    /// How many reviews had no effect, since what they say is not so.
    #[must_use]
    pub fn disproved(&self) -> u64 {
        self.doubts.disproved.load(Ordering::Relaxed)
    }

    pub(crate) fn believes_reviews(&self) -> bool {
        !self.doubts.doubted.load(Ordering::Relaxed)
    }

    /// Whether a review must be so as it says, for what follows from its decision to follow.
    pub(crate) fn must_be_so(&self, request: &Request<'_>, decision: &Decision) -> bool {
        let matters = |effect: &Effect| matches!(effect, Effect::ConsumeOnce { .. } | Effect::Report(_));
        let follows = decision.effects.iter().any(matters)
            || !request.is_dry_run() && decision.matched().next().is_some();
        follows && !self.believes_reviews()
    }

    /// Whether what follows from a decision may follow, as far as it is up to the review. Perhaps it has been found out before
    /// whether that [is so](Self::is_so).
    pub(crate) async fn may_follow(
        &self,
        request: &Request<'_>,
        decision: &Decision,
        is_so: Option<Option<bool>>,
        until: Instant,
    ) -> bool {
        if !self.must_be_so(request, decision) {
            return true;
        }
        let is_so = match is_so {
            Some(is_so) => is_so,
            None => self.is_so(request, until).await,
        };
        let Some(is_so) = is_so else {
            // A drift that nobody hears of is worse than one too many; an approval is not used up for nothing.
            if self.doubts.unproven.fetch_add(1, Ordering::Relaxed).is_power_of_two() {
                tracing::warn!(
                    resource = &*request.resource.resource,
                    "a review could not be held against the cluster"
                );
            }
            return !decision.effects.iter().any(|effect| matches!(effect, Effect::ConsumeOnce { .. }));
        };
        if is_so {
            return true;
        }
        let disproved = self.doubts.disproved.fetch_add(1, Ordering::Relaxed) + 1;
        // Now and then: whoever forges one may forge many.
        if disproved.is_power_of_two() {
            tracing::warn!(
                disproved,
                resource = &*request.resource.resource,
                namespace = &*request.namespace,
                name = &*request.name,
                "a review is not of an object as it is stored, and has no effect: it may be forged"
            );
        }
        false
    }

    /// Whether the object that is said to be written is there, and has had the version that it is said to have; nothing, if the
    /// API server does not tell. What may not be read cannot be told; then the parent's uid has to do.
    pub(crate) async fn is_so(&self, request: &Request<'_>, until: Instant) -> Option<bool> {
        match self.is_seen(request, until).await {
            Ok(is_so) => Some(is_so),
            Err(Some(Unread::Forbidden(_))) => Some(true),
            Err(Some(Unread::Failed(_)) | None) => None,
        }
    }

    /// The same, where what may not be read shows nothing: why it was not read, if it was not.
    pub(crate) async fn is_seen(
        &self,
        request: &Request<'_>,
        until: Instant,
    ) -> Result<bool, Option<Unread>> {
        let Some(old) = &request.old_object else { return Ok(true) };
        let said = &old.metadata;
        let Request { resource, namespace, .. } = request;
        let mut kind = self.kinds.of_resource(&resource.group, &resource.resource).await;
        if matches!(kind, Err(UnknownKind::NotServed(_))) {
            // What has just come to be served may not be listed yet.
            kind = self.kinds.of_kind(&old.api_version, &old.kind).await;
        }
        let kind = match kind {
            Ok(kind) => kind,
            Err(UnknownKind::NotServed(_)) => return Ok(false),
            Err(UnknownKind::Failed(..)) => return Err(None),
        };
        let (namespace, name) = (if kind.namespaced { &**namespace } else { "" }, said.any_name());
        match timeout_at(until, self.read(&kind, namespace, name, false)).await {
            Ok(Ok(Some(live))) => {
                Ok(live.uid == *said.uid && comes_after(&live.resource_version, &said.resource_version))
            }
            Ok(Ok(None)) => Ok(false),
            Ok(Err(unread)) => Err(Some(unread)),
            Err(_) => Err(None),
        }
    }

    /// Whether a `scale` is of the object that was found for it.
    pub(crate) fn is_of_scaled(&self, request: &Request<'_>, uid: &str) -> bool {
        let said = request.old_object.as_ref().map(|old| &*old.metadata.uid);
        self.believes_reviews() || said == Some(uid)
    }
}
