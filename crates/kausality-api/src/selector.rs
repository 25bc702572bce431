//! Label selectors, with Kubernetes' meaning.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The labels of an object.
pub type Labels = BTreeMap<String, String>;

/// Matches labels; all its parts must hold, and an empty selector matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LabelSelector {
    /// Labels that must have exactly these values.
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    pub match_labels: Labels,
    /// Conditions on single labels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub match_expressions: Vec<Requirement>,
}

/// A condition on one label.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Requirement {
    /// The label.
    pub key: String,
    /// What must hold of it.
    pub operator: Operator,
    /// The values that [`Operator::In`] and [`Operator::NotIn`] speak of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
}

/// What a [`Requirement`] asks of a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Operator {
    /// It is there and has one of the values.
    In,
    /// It is absent or has none of the values.
    NotIn,
    /// It is there.
    Exists,
    /// It is absent.
    DoesNotExist,
}

impl LabelSelector {
    /// Whether these labels are selected.
    #[must_use]
    pub fn matches(&self, labels: &Labels) -> bool {
        self.match_labels.iter().all(|(key, value)| labels.get(key) == Some(value))
            && self.match_expressions.iter().all(|requirement| requirement.holds(labels))
    }
}

impl Requirement {
    fn holds(&self, labels: &Labels) -> bool {
        let value = labels.get(&self.key);
        match self.operator {
            Operator::In => value.is_some_and(|value| self.values.contains(value)),
            Operator::NotIn => value.is_none_or(|value| !self.values.contains(value)),
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_mean_what_kubernetes_means() {
        let labels: Labels = [("env".to_owned(), "prod".to_owned())].into();
        for (selector, expected) in [
            ("{}", true),
            (r#"{"matchLabels":{"env":"prod"}}"#, true),
            (r#"{"matchLabels":{"env":"dev"}}"#, false),
            (r#"{"matchLabels":{"env":"prod","team":"a"}}"#, false),
            (r#"{"matchExpressions":[{"key":"env","operator":"In","values":["dev","prod"]}]}"#, true),
            (r#"{"matchExpressions":[{"key":"team","operator":"In","values":["a"]}]}"#, false),
            (r#"{"matchExpressions":[{"key":"env","operator":"NotIn","values":["prod"]}]}"#, false),
            (r#"{"matchExpressions":[{"key":"team","operator":"NotIn","values":["a"]}]}"#, true),
            (r#"{"matchExpressions":[{"key":"env","operator":"Exists"}]}"#, true),
            (r#"{"matchExpressions":[{"key":"env","operator":"DoesNotExist"}]}"#, false),
            (
                r#"{"matchLabels":{"env":"prod"},"matchExpressions":[{"key":"team","operator":"Exists"}]}"#,
                false,
            ),
        ] {
            let parsed: LabelSelector = serde_json::from_str(selector).unwrap();
            assert_eq!(parsed.matches(&labels), expected, "{selector}");
        }
    }
}
