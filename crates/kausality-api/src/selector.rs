//! Label selectors, with Kubernetes' meaning.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

mod words;

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
    /// The labels that it asks for.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        let of_expressions = self.match_expressions.iter().map(|requirement| requirement.key.as_str());
        self.match_labels.keys().map(String::as_str).chain(of_expressions)
    }

    /// Reads a selector as kubectl takes it: `app=web,tier!=db,env in (a,b),!old`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let selector = Self { match_labels: Labels::new(), match_expressions: words::parse(text)? };
        match selector.fault("") {
            // Who writes words knows no fields.
            Some(fault) => Err(fault.split_once(": ").map_or(fault.clone(), |(_, what)| what.to_owned())),
            None => Ok(selector),
        }
    }

    /// What the API server would not take of it; `place` is where it is written.
    #[must_use]
    pub fn fault(&self, place: &str) -> Option<String> {
        for (key, value) in &self.match_labels {
            if !is_key(key) {
                return Some(format!("{place}.matchLabels: {key:?} is no name of a label"));
            }
            if !is_value(value) {
                return Some(format!("{place}.matchLabels[{key}]: {value:?} is no value of a label"));
            }
        }
        for (number, requirement) in self.match_expressions.iter().enumerate() {
            let place = format!("{place}.matchExpressions[{number}]");
            let Requirement { key, operator, values } = requirement;
            if !is_key(key) {
                return Some(format!("{place}.key: {key:?} is no name of a label"));
            }
            let needs_values = matches!(operator, Operator::In | Operator::NotIn);
            if needs_values == values.is_empty() {
                let say = if needs_values { "needs" } else { "has no" };
                return Some(format!("{place}.values: {operator:?} {say} values"));
            }
            if let Some(value) = values.iter().find(|value| !is_value(value)) {
                return Some(format!("{place}.values: {value:?} is no value of a label"));
            }
        }
        None
    }

    /// Whether these labels are selected.
    #[must_use]
    pub fn matches(&self, labels: &Labels) -> bool {
        self.match_labels.iter().all(|(key, value)| labels.get(key) == Some(value))
            && self.match_expressions.iter().all(|requirement| requirement.holds(labels))
    }
}

/// Whether this can be the name of a label: a name, after a domain and a slash if it has one.
fn is_key(key: &str) -> bool {
    let (domain, name) = key.rsplit_once('/').map_or((None, key), |(domain, name)| (Some(domain), name));
    let is_domain = |domain: &str| domain.len() <= 253 && domain.split('.').all(is_plain);
    !name.is_empty() && is_value(name) && domain.is_none_or(is_domain)
}

/// Whether this is a DNS label, as names of namespaces are.
pub(crate) fn is_label(name: &str) -> bool {
    name.len() <= 63 && is_plain(name)
}

/// Whether a text is of small letters, digits and dashes, none of these at an end.
fn is_plain(text: &str) -> bool {
    is_framed(text) && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
}

fn is_value(value: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    value.is_empty() || (value.len() <= 63 && value.chars().all(is_plain) && is_framed(value))
}

/// Whether a text begins and ends with a letter or a digit.
fn is_framed(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.ends_with(|c: char| c.is_ascii_alphanumeric())
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
