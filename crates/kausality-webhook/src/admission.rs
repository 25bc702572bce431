//! Who decides: the seam between the server and what it serves.

use std::{sync::Arc, time::Instant};

use axum::body::Bytes;
use kausality_api::text::shorten;
use kausality_core::{
    Decision,
    review::{BadReview, Request},
};

/// Decides reviews; implemented on a cluster, or on anything else.
pub trait Admission: Send + Sync + 'static {
    /// Decides one review before the time is up: later, nobody waits for the answer. `Err` only for what is no review.
    ///
    /// The future is dropped when its deadline passes or the client goes away, at whatever it waits for. What
    /// must be finished once it is begun belongs into a task of its own.
    fn decide(&self, review: Bytes, until: Instant) -> impl Future<Output = Result<Reply, BadReview>> + Send;

    /// Decides who may decide about drifts, and nothing else: for kinds that are not watched. The whole decision, where
    /// there is nothing less.
    fn decisions(
        &self,
        review: Bytes,
        until: Instant,
    ) -> impl Future<Output = Result<Reply, BadReview>> + Send {
        self.decide(review, until)
    }

    /// Looks at a change of an object that controllers act on beside their parents, and allows it. The whole decision, where
    /// there is nothing less.
    fn observe(
        &self,
        review: Bytes,
        until: Instant,
    ) -> impl Future<Output = Result<Reply, BadReview>> + Send {
        self.decide(review, until)
    }

    /// The memory that the expressions and patterns of a policy (`Kind/name` or `Kind/namespace/name`) may take. Any, where nobody
    /// keeps them.
    fn room_for(&self, _policy: &str) -> usize {
        usize::MAX
    }

    /// Whether decisions can be made, that is, caches are synced.
    fn is_ready(&self) -> bool;
}

impl<A: Admission> Admission for Arc<A> {
    fn decide(&self, review: Bytes, until: Instant) -> impl Future<Output = Result<Reply, BadReview>> + Send {
        A::decide(self, review, until)
    }

    fn decisions(
        &self,
        review: Bytes,
        until: Instant,
    ) -> impl Future<Output = Result<Reply, BadReview>> + Send {
        A::decisions(self, review, until)
    }

    fn observe(
        &self,
        review: Bytes,
        until: Instant,
    ) -> impl Future<Output = Result<Reply, BadReview>> + Send {
        A::observe(self, review, until)
    }

    fn room_for(&self, policy: &str) -> usize {
        A::room_for(self, policy)
    }

    fn is_ready(&self) -> bool {
        A::is_ready(self)
    }
}

/// What is asked of a review.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Question {
    /// Everything.
    All,
    /// Who decides about drifts.
    Decisions,
    /// Nothing: it is to be known.
    Inputs,
}

/// A decision, and what it is about.
#[derive(Clone, Debug)]
pub struct Reply {
    /// What was asked.
    pub subject: Subject,
    /// The decision.
    pub decision: Decision,
}

/// What a review is about, as far as answers and logs name it. Nothing of what objects contain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subject {
    /// The uid of the request, which the answer must repeat.
    pub uid: String,
    /// `CREATE`, `UPDATE`, `DELETE` or `CONNECT`.
    pub operation: &'static str,
    /// The kind, with its group where it has one: `Deployment.apps`.
    pub kind: String,
    /// The subresource; empty for the object itself.
    pub subresource: String,
    /// The namespace; empty for cluster-scoped kinds.
    pub namespace: String,
    /// The name; empty where the API server has yet to make one up.
    pub name: String,
    /// The user name, else the uid of the user.
    pub user: String,
}

/// Characters of a name that logs show. Names in Kubernetes have at most 253, user names any number.
const MAX_NAME: usize = 253;

impl From<&Request<'_>> for Subject {
    fn from(request: &Request<'_>) -> Self {
        let kind = &request.kind;
        let kind = if kind.group.is_empty() {
            shorten(&kind.kind, MAX_NAME)
        } else {
            shorten(&format!("{}.{}", &*kind.kind, &*kind.group), MAX_NAME)
        };
        Self {
            uid: request.uid.to_string(),
            operation: request.operation.as_str(),
            kind,
            subresource: shorten(&request.sub_resource, MAX_NAME),
            namespace: shorten(&request.namespace, MAX_NAME),
            name: shorten(&request.name, MAX_NAME),
            user: shorten(request.user(), MAX_NAME),
        }
    }
}

#[cfg(test)]
mod tests {
    use kausality_core::Review;

    use super::*;

    #[test]
    fn a_subject_names_the_request_and_stays_short() {
        let user = "u".repeat(10_000);
        let review = format!(
            r#"{{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {{
                "uid": "7", "operation": "DELETE", "namespace": "shop", "name": "web", "subResource": "",
                "kind": {{"group": "apps", "version": "v1", "kind": "Deployment"}},
                "resource": {{"group": "apps", "version": "v1", "resource": "deployments"}},
                "userInfo": {{"username": "{user}"}}, "oldObject": {{"metadata": {{"name": "web"}}}}}}}}"#
        );
        let subject = Subject::from(&Review::parse(review.as_bytes()).unwrap().request);

        assert_eq!(subject.user.chars().count(), MAX_NAME);
        let subject = Subject { user: String::new(), ..subject };
        let expected = Subject {
            uid: "7".to_owned(),
            operation: "DELETE",
            kind: "Deployment.apps".to_owned(),
            namespace: "shop".to_owned(),
            name: "web".to_owned(),
            ..Subject::default()
        };
        assert_eq!(subject, expected);
    }
}
