//! The `Kausality` kind: what is watched, where, and in which mode.

use serde::{Deserialize, Serialize};

use crate::{
    mode::Mode,
    selector::{LabelSelector, is_label},
};

/// The longest name of a policy: names of webhooks are made of it.
pub const MAX_NAME: usize = 200;

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
}

#[cfg(test)]
mod tests;
