//! The `Kausality` kind: what is watched, where, and in which mode.

use std::{fmt, str::FromStr, time::Duration};

use jiff::SignedDuration;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::{
    mode::Mode,
    selector::{LabelSelector, is_label},
};

mod evidence;

pub use evidence::{ConditionEvidence, ConditionStatus, Evidence, MAX_EVIDENCE, MAX_WORD, StatusRules};

/// The longest name of a policy: names of webhooks are made of it.
pub const MAX_NAME: usize = 200;

/// The longest quiet time: a parent that is never settled is never judged.
const MAX_QUIET_TIME: Duration = Duration::from_secs(3600);

/// How many characters the names in all overrides have at most. They become a condition, and an API server takes none
/// of more than 100,000 characters.
const MAX_OVERRIDES: usize = 48 * 1024;

/// A policy. Cluster-scoped; several may exist, and the most specific one that matches wins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Kausality {
    /// `kausality.io/v1alpha1`.
    pub api_version: String,
    /// `Kausality`.
    pub kind: String,
    /// Its name.
    pub metadata: Metadata,
    /// What it says.
    pub spec: KausalitySpec,
}

impl Kausality {
    /// What keeps the policy from matching what its author means.
    #[must_use]
    pub fn fault(&self) -> Option<String> {
        let rules = &self.spec.resources;
        if rules.is_empty()
            || rules.iter().any(|rule| rule.api_groups.is_empty() || rule.resources.is_empty())
        {
            return Some("spec.resources must name apiGroups and resources".to_owned());
        }
        if rules.iter().any(|rule| rule.api_groups.iter().any(|group| group == "*")) {
            return Some("apiGroups must be named one by one: \"*\" is for resources only".to_owned());
        }
        let names = rules.iter().flat_map(|rule| rule.resources.iter().chain(&rule.excluded));
        if let Some(kind) = names.into_iter().find(|name| name.chars().any(char::is_uppercase)) {
            return Some(format!("resource {kind:?} is no plural name in lower case, as \"deployments\" is"));
        }
        if self.metadata.name.len() > MAX_NAME {
            return Some(format!("metadata.name is longer than {MAX_NAME} characters"));
        }
        if let Some(fault) = self.spec.fault_of_namespaces().or_else(|| self.spec.fault_of_overrides()) {
            return Some(fault);
        }
        let of_input = |(number, input): (usize, &Input)| input.fault(&format!("spec.inputs[{number}]"));
        if let Some(fault) = self.spec.inputs.iter().enumerate().find_map(of_input) {
            return Some(fault);
        }
        if let Some(fault) = self.spec.status.as_ref().and_then(StatusRules::fault) {
            return Some(fault);
        }
        let of_namespaces = self.spec.namespaces.as_ref().and_then(|namespaces| namespaces.selector.as_ref());
        let selectors = [
            ("spec.namespaces.selector", of_namespaces),
            ("spec.objectSelector", self.spec.object_selector.as_ref()),
        ];
        selectors.into_iter().find_map(|(place, selector)| selector?.fault(place))
    }
}

/// As much of a policy's metadata as matters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Metadata {
    /// Decides between policies that are equally specific.
    pub name: String,
}

/// What a policy says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct KausalitySpec {
    /// The resources it is about.
    pub resources: Vec<ResourceRule>,
    /// The namespaces it is about; all, if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespaces: Option<Namespaces>,
    /// The objects it is about, by label; all, if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object_selector: Option<LabelSelector>,
    /// The mode, where no override says another.
    pub mode: Mode,
    /// Other modes for some of the resources or namespaces; the first that matches wins.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overrides: Vec<Override>,
    /// When parents of these resources count as settled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settle: Option<Settle>,
    /// How parents of these resources show in their status how far their controller has got.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<StatusRules>,
    /// For how long parents of these resources must have been quiet to count as settled, as in `30s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quiet_time: Option<QuietTime>,
    /// Fields of these resources that hold secrets, as `spec.users[*].pin`: shown as digests, as the values of Secrets are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub redact: Vec<String>,
    /// What else the controllers of these resources act on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<Input>,
    /// What happens to a request that Kausality does not answer; by the mode, if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_policy: Option<FailurePolicy>,
}

impl KausalitySpec {
    /// The first name that no namespace can have. The API server would refuse a registration with it, and with that
    /// one the registration of all other policies.
    fn fault_of_namespaces(&self) -> Option<String> {
        let default = Namespaces::default();
        let Namespaces { names, excluded, .. } = self.namespaces.as_ref().unwrap_or(&default);
        let named = |place: String, names: &[String], any: bool| {
            let bad = names.iter().find(|name| !(is_label(name) || any && *name == "*"))?;
            Some(format!(
                "{place}: {bad:?} is no name of a namespace: small letters, digits and -, at most 63, and no patterns"
            ))
        };
        named("spec.namespaces.names".to_owned(), names, false)
            .or_else(|| named("spec.namespaces.excluded".to_owned(), excluded, false))
            .or_else(|| {
                self.overrides.iter().enumerate().find_map(|(number, entry)| {
                    named(format!("spec.overrides[{number}].namespaces"), &entry.namespaces, true)
                })
            })
    }

    fn fault_of_overrides(&self) -> Option<String> {
        let names = self.overrides.iter().flat_map(|entry| {
            let Override { api_groups, resources, namespaces, .. } = entry;
            api_groups.iter().chain(resources).chain(namespaces)
        });
        // Each in quotes, and after a comma.
        let size: usize = names.map(|name| name.chars().count() + 4).sum();
        (size > MAX_OVERRIDES).then(|| {
            format!(
                "spec.overrides name too much: {size} characters, and the API server takes conditions of up to {MAX_OVERRIDES}; \
                make several policies of it"
            )
        })
    }
}

/// Resources of some API groups.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ResourceRule {
    /// The groups, each by its name; `""` is the core group.
    pub api_groups: Vec<String>,
    /// The plural names, or `*`.
    pub resources: Vec<String>,
    /// What `*` does not mean.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub excluded: Vec<String>,
}

/// Namespaces by name or label.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Namespaces {
    /// These.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
    /// Those with these labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<LabelSelector>,
    /// Never these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub excluded: Vec<String>,
}

/// Another mode for some of what a policy is about. What is empty matches everything.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Override {
    /// In these API groups.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub api_groups: Vec<String>,
    /// For these resources.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<String>,
    /// In these namespaces.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub namespaces: Vec<String>,
    /// The mode.
    pub mode: Mode,
}

/// Objects that controllers act on beside the parent itself. A person's change of one opens the parents that it reaches, as
/// a change of their own intent does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Input {
    /// The API groups, each by its name; `""` is the core group.
    pub api_groups: Vec<String>,
    /// The plural names.
    pub resources: Vec<String>,
    /// Which objects a parent acts on.
    pub relation: Relation,
    /// The field of the parent that names them (`Reference`), or holds a label selector for them (`Selector`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// Which changes count; all, if absent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub operations: Vec<InputOperation>,
}

/// How an input relates to a parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Relation {
    /// It is in the parent's namespace.
    Namespace,
    /// It is anywhere.
    Cluster,
    /// A field of the parent names it.
    Reference,
    /// A label selector in a field of the parent selects it, or did so before the change.
    Selector,
    /// It is the parent itself: its labels and annotations, which are no intent.
    Metadata,
}

/// A change of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum InputOperation {
    /// It is created.
    Create,
    /// Its intent or its labels are changed.
    Update,
    /// It is deleted.
    Delete,
}

impl Input {
    fn fault(&self, place: &str) -> Option<String> {
        let named = matches!(self.relation, Relation::Reference | Relation::Selector);
        if self.api_groups.is_empty() || self.resources.is_empty() {
            return Some(format!("{place} must name apiGroups and resources"));
        }
        if self.resources.iter().any(|name| name == "*" || name.chars().any(char::is_uppercase)) {
            return Some(format!("{place}.resources must be plural names in lower case, one by one"));
        }
        match &self.field {
            None if named => {
                Some(format!("{place}.field is missing: relation {:?} needs one", self.relation))
            }
            Some(_) if !named => {
                Some(format!("{place}.field means nothing with relation {:?}", self.relation))
            }
            _ => None,
        }
    }
}

/// What happens to a request that Kausality does not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FailurePolicy {
    /// It passes.
    Ignore,
    /// It fails.
    Fail,
}

/// When a parent counts as settled at its intent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Settle {
    /// Once it has been seen in steady state.
    #[default]
    Steady,
    /// As soon as `observedGeneration` equals `generation`: the literal rule, which takes the later steps
    /// of a rollout for drift.
    ObservedGeneration,
    /// As `steady`; and where the status tells nothing, once the controller has been quiet for the quiet time.
    Quiet,
}

/// For how long a parent must have been quiet, as in `500ms`, `30s` or `1m30s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuietTime(pub Duration);

impl QuietTime {
    /// None at all: what is settled is so at once.
    pub const NONE: Self = Self(Duration::ZERO);
}

impl Default for QuietTime {
    /// Controllers report that they are done before another of their loops, or their next reconcile, has written the last
    /// child: within two seconds, as far as was seen.
    fn default() -> Self {
        Self(Duration::from_secs(5))
    }
}

impl FromStr for QuietTime {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bad = || format!("invalid duration {text:?} (try 500ms, 30s or 2m)");
        let span: SignedDuration = text.parse().map_err(|_| bad())?;
        let time = Duration::try_from(span).map_err(|_| bad())?;
        if time > MAX_QUIET_TIME { Err(format!("{text} is longer than one hour")) } else { Ok(Self(time)) }
    }
}

impl fmt::Display for QuietTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = self.0.as_millis();
        if millis.is_multiple_of(1000) { write!(f, "{}s", millis / 1000) } else { write!(f, "{millis}ms") }
    }
}

impl Serialize for QuietTime {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for QuietTime {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests;
