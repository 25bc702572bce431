//! Whoever is told of every write as it is stored.

use std::sync::Mutex;

use serde_json::Value;

use crate::call::Call;
use crate::sandbox::{Sandbox, lock};

/// Somebody who is told of every write by a request as it is stored, in order. It must not ask the sandbox anything
/// meanwhile.
pub trait Observer: Send + Sync + 'static {
    /// This has just been stored.
    fn stored(&self, write: &Stored<'_>);
}

/// A write that is stored.
#[derive(Clone, Copy, Debug)]
pub struct Stored<'a> {
    /// The group of the resource; empty for the core group.
    pub group: &'a str,
    /// The resource: `deployments`.
    pub resource: &'a str,
    /// The subresource; empty for the object itself.
    pub subresource: &'a str,
    /// Who did it.
    pub user: &'a str,
    /// The uids of the AdmissionReviews that were made for it in this process, in order.
    pub reviews: &'a [String],
    /// The object before, if there was one.
    pub before: Option<&'a Value>,
    /// The object after, if there still is one.
    pub after: Option<&'a Value>,
}

/// The uids of the reviews of a call.
#[derive(Debug, Default)]
pub(crate) struct Reviewed(Mutex<Vec<String>>);

impl Reviewed {
    pub(crate) fn note(&self, uid: &str) {
        lock(&self.0).push(uid.to_owned());
    }
}

impl Sandbox {
    /// Tells whoever wants to know of a write that has just been stored.
    pub(crate) fn tell(&self, call: &Call, before: Option<&Value>, after: Option<&Value>) {
        let observers = lock(&self.inner.observers);
        if observers.is_empty() {
            return;
        }
        let reviews = lock(&call.reviewed.0);
        let write = Stored {
            group: &call.definition.group,
            resource: &call.definition.plural,
            subresource: &call.subresource,
            user: &call.user.name,
            reviews: &reviews,
            before,
            after,
        };
        observers.iter().for_each(|observer| observer.stored(&write));
    }
}
