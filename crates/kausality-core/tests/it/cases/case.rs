//! What a case may say. A key that is not here is an error.

use std::collections::BTreeMap;

use kausality_api::mode::Mode;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// The cases about one rule.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct File {
    /// The rule.
    pub about: String,
    /// What all cases say unless they say otherwise.
    #[serde(default = "nothing")]
    pub defaults: Value,
    pub cases: Vec<Value>,
}

fn nothing() -> Value {
    Value::Object(serde_json::Map::new())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Case {
    pub name: String,
    #[serde(default)]
    pub request: Request,
    #[serde(default)]
    pub facts: Facts,
    pub expect: Expect,
}

/// The request. By default `eks-controller` updates `nodepool`, a child of `cluster`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub(crate) struct Request {
    pub operation: String,
    /// The base of the object.
    pub base: String,
    pub sub_resource: String,
    /// The subresource that the client wrote to, where that is another.
    pub request_sub_resource: Option<String>,
    pub user: String,
    pub user_uid: String,
    pub groups: Vec<String>,
    pub field_manager: Option<String>,
    pub dry_run: bool,
    /// How the stored object differs from its base.
    pub old_object: Patch,
    /// How the object that is sent differs from the stored one; on CREATE, from its base.
    pub object: Patch,
}

impl Default for Request {
    fn default() -> Self {
        Self {
            operation: "UPDATE".to_owned(),
            base: "nodepool".to_owned(),
            sub_resource: String::new(),
            request_sub_resource: None,
            user: "eks-controller".to_owned(),
            user_uid: String::new(),
            groups: Vec::new(),
            field_manager: None,
            dry_run: false,
            old_object: Patch::default(),
            object: Patch::default(),
        }
    }
}

/// How an object differs from the one it starts from; `null` removes.
#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub(crate) struct Patch {
    /// For parents and scaled objects: the base.
    pub base: Option<String>,
    #[serde(deserialize_with = "given")]
    pub api_version: Option<Value>,
    #[serde(deserialize_with = "given")]
    pub kind: Option<Value>,
    pub annotations: BTreeMap<String, Value>,
    #[serde(deserialize_with = "given")]
    pub metadata: Option<Value>,
    #[serde(deserialize_with = "given")]
    pub spec: Option<Value>,
    #[serde(deserialize_with = "given")]
    pub data: Option<Value>,
    #[serde(deserialize_with = "given")]
    pub rules: Option<Value>,
    #[serde(deserialize_with = "given")]
    pub status: Option<Value>,
}

/// A field that is there, be it `null`.
fn given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// What is known. By default all is well: `cluster` is the parent, the mode is enforce.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub(crate) struct Facts {
    pub now: String,
    pub default_mode: Mode,
    pub own_users: Vec<String>,
    /// A difference from a base, `none`, `gone`, or `{unreadable: why}`.
    pub parent: Known,
    /// Set where the parent is only known from a watch, in summary.
    pub parent_cached: bool,
    /// The object behind `/scale`; its owner is the parent.
    pub scaled: Option<Known>,
    pub namespace: Option<Namespace>,
    pub policies: Vec<Policy>,
    pub approval_policies: Vec<ApprovalPolicy>,
    pub exception: Option<Exception>,
    /// Whether a recording tells no time.
    pub untimed: bool,
    /// When the parent's controller last carried out a change on one of its children.
    pub last_change: Option<String>,
    /// When something else changed that the parent's controller acts on.
    pub input: Option<String>,
    /// When something changed that no policy declares as an input.
    pub hint: Option<String>,
    /// Who was seen to act on the children of the object itself.
    pub acts_below: Vec<String>,
    /// When its controller last carried out a change on one of them.
    pub last_change_below: Option<String>,
    /// Set where only those decide who may: `granted`, `refused` or `unknown`.
    pub authority: Option<Authority>,
}

impl Default for Facts {
    fn default() -> Self {
        Self {
            now: "2026-01-24T10:30:00Z".to_owned(),
            default_mode: Mode::Enforce,
            own_users: Vec::new(),
            parent: Known::Found(Box::default()),
            parent_cached: false,
            scaled: None,
            namespace: None,
            policies: Vec::new(),
            approval_policies: Vec::new(),
            exception: None,
            untimed: false,
            last_change: None,
            input: None,
            hint: None,
            acts_below: Vec::new(),
            last_change_below: None,
            authority: None,
        }
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
pub(crate) enum Known {
    Word(Missing),
    Unreadable(Unreadable),
    Found(Box<Patch>),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Missing {
    None,
    Gone,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Unreadable {
    pub unreadable: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Namespace {
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    #[serde(default)]
    pub mode: Option<String>,
}

/// A `Kausality` policy: its name, and what else its spec says.
#[derive(Deserialize)]
pub(crate) struct Policy {
    pub name: String,
    #[serde(flatten)]
    pub spec: Value,
}

/// An `ApprovalPolicy`, or a `ClusterApprovalPolicy` if it names no namespace. Without rules it lets everything pass.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ApprovalPolicy {
    pub name: String,
    #[serde(default)]
    pub namespace: String,
    pub rules: Option<Value>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Authority {
    Granted,
    Refused,
    Unknown,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) enum Exception {
    Upgrade(String),
    /// An approval by this user was used up for this very change a moment ago.
    Used(String),
}

/// What must come out; what is not mentioned may be anything.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub(crate) struct Expect {
    pub class: Option<String>,
    /// `none` if nobody was identified.
    pub actor: Option<String>,
    pub phase: Option<String>,
    /// `marked`, `steady`, `observed`, `unknown`, or `no: why`.
    pub settled: Option<String>,
    /// Whether a controller changes a child of a parent that cannot be judged.
    pub unjudged: Option<bool>,
    pub cause: Option<String>,
    pub mode: Option<String>,
    pub resolution: Option<String>,
    pub verdict: Option<String>,
    pub code: Option<u16>,
    pub reason: Option<String>,
    /// What the denial must contain.
    pub message: Vec<String>,
    /// What each warning must contain, one by one; `[]` for no warnings.
    pub warnings: Option<Vec<String>>,
    /// After the patch: values as in objects, or `absent`, or `present`.
    pub annotations: BTreeMap<String, Value>,
    /// What the patch changes, by annotation; `[]` for no patch.
    pub patches: Option<Vec<String>>,
    /// The hops that the object will carry; `[]` for no trace.
    pub trace: Option<Vec<Value>>,
    pub audit: BTreeMap<String, String>,
    /// In order; a map is compared as far as it goes.
    pub effects: Option<Vec<Value>>,
    /// The rule that decided.
    pub rule: Option<String>,
    /// What some step of the explanation must contain.
    pub explanation: Vec<String>,
    /// What is entered into the ledger: its `state`, the step that `decided`, and what some step `says`.
    pub entry: Option<Entered>,
    /// What the request asks to know, of `parent`, `scaled`, `namespace`, `authority`.
    pub asks: Option<Vec<String>>,
}

/// What is entered into the ledger.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub(crate) struct Entered {
    pub state: String,
    pub decided: String,
    pub says: Vec<String>,
    /// The rule that denied it, where it is not a drift.
    pub denied_by: Option<String>,
}
