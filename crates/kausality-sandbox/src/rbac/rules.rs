//! The rules of a role.

use serde::Serialize;
use serde_json::Value;

use super::access::{Access, Target};

/// What may be done to what.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Rule {
    verbs: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    api_groups: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) resources: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    resource_names: Vec<String>,
    #[serde(rename = "nonResourceURLs", skip_serializing_if = "Vec::is_empty")]
    pub(super) paths: Vec<String>,
}

/// The rules of a stored role.
pub(super) fn of(role: &Value) -> Vec<Rule> {
    let texts = |rule: &Value, key: &str| -> Vec<String> {
        rule[key].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let rules = role["rules"].as_array().into_iter().flatten();
    rules
        .map(|rule| Rule {
            verbs: texts(rule, "verbs"),
            api_groups: texts(rule, "apiGroups"),
            resources: texts(rule, "resources"),
            resource_names: texts(rule, "resourceNames"),
            paths: texts(rule, "nonResourceURLs"),
        })
        .collect()
}

impl Rule {
    /// Whether it allows something.
    pub(super) fn allows(&self, access: &Access<'_>) -> bool {
        let names = |list: &[String], wanted: &str| list.iter().any(|it| it == "*" || it == wanted);
        names(&self.verbs, &access.verb)
            && match &access.target {
                Target::Path(path) => self.paths.iter().any(|allowed| {
                    allowed == path || allowed.strip_suffix('*').is_some_and(|start| path.starts_with(start))
                }),
                Target::Resource(target) => {
                    names(&self.api_groups, &target.group)
                        && self
                            .resources
                            .iter()
                            .any(|allowed| covers(allowed, &target.resource, &target.subresource))
                        && (self.resource_names.is_empty()
                            || self.resource_names.iter().any(|it| *it == target.name))
                }
            }
    }
}

/// `*` is everything, subresources too; `pods` is not `pods/log`; `*/scale` is that of all.
fn covers(allowed: &str, resource: &str, subresource: &str) -> bool {
    match allowed.split_once('/') {
        None => allowed == "*" || (allowed == resource && subresource.is_empty()),
        Some((of, part)) => !subresource.is_empty() && part == subresource && (of == "*" || of == resource),
    }
}
