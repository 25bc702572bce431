//! What a control plane must offer for scenarios to be played on it.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use serde_json::Value;

use crate::scenarios::kinds::{Kind, Target};

/// How long anything may take that must come.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A control plane, with Kausality before it.
pub(crate) trait Plane {
    /// Makes a call as a user.
    async fn call(&self, user: &str, target: Target<'_>, call: &Call) -> Result<Answer, String>;

    /// Reads an object as an administrator.
    async fn get(&self, target: Target<'_>) -> Result<Option<Value>, String>;

    /// Waits until the control plane's own cache has an object as it is stored. An API server tries an update on its cache
    /// first; if that is stale, the update is reviewed twice, and the audit log keeps what was said the first time.
    async fn cached(&self, target: Target<'_>) -> Result<(), String>;

    /// Reads all objects of a kind as an administrator.
    async fn list(&self, kind: &Kind, namespace: &str) -> Result<Vec<Value>, String>;

    /// How many calls have been audited.
    fn audited(&self) -> usize;

    /// The audited calls from this place on.
    fn audit(&self, from: usize) -> Vec<Arc<Audited>>;

    /// What Kausality has written to its log.
    fn log(&self) -> String;
}

/// A call that changes something.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub action: Action,
    pub dry_run: bool,
    pub field_manager: Option<String>,
}

/// What is done.
#[derive(Clone, Debug)]
pub(crate) enum Action {
    Create(Value),
    /// Also of a subresource, as `status` or `scale`.
    Patch {
        patch: PatchType,
        subresource: Option<String>,
        body: Value,
    },
    Delete {
        propagation: Option<String>,
    },
}

/// The ways in which a patch is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum PatchType {
    #[default]
    Merge,
    Strategic,
    Json,
    Apply,
}

/// What comes back.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub code: u16,
    /// The object, or a Status.
    pub body: Value,
    pub warnings: Vec<String>,
    /// Under which the call is audited.
    pub audit_id: String,
}

impl Answer {
    pub(crate) fn is_allowed(&self) -> bool {
        (200..300).contains(&self.code)
    }

    /// What the server says about a call that it did not carry out.
    pub(crate) fn message(&self) -> &str {
        self.body["message"].as_str().unwrap_or_default()
    }
}

/// A call, as it was audited.
#[derive(Clone, Debug)]
pub(crate) struct Audited {
    pub id: String,
    pub verb: String,
    pub user: String,
    pub resource: String,
    pub subresource: String,
    pub namespace: String,
    pub name: String,
    pub code: u16,
    /// With the keys that the API server gives them: `<webhook name>/<key>`.
    pub annotations: BTreeMap<String, String>,
}

impl Audited {
    /// What Kausality said about it.
    pub(crate) fn said(&self, key: &str) -> Option<&str> {
        let of = |webhook: &str| self.annotations.get(&format!("{webhook}.kausality.io/{key}"));
        ["drift", "drift-plain", "status"].into_iter().find_map(of).map(String::as_str)
    }
}
