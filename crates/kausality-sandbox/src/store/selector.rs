//! Which objects are asked for: by labels and by fields.

use serde_json::Value;

use crate::kinds::{Definition, Shape};
use crate::status::Failure;

/// What an object must have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Selector {
    labels: Vec<Requirement>,
    fields: Vec<Requirement>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Requirement {
    key: String,
    test: Test,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Test {
    In(Vec<String>),
    NotIn(Vec<String>),
    Exists,
    Absent,
}

impl Selector {
    /// From the parameters of a request.
    pub(crate) fn parse(definition: &Definition, labels: &str, fields: &str) -> Result<Self, Failure> {
        let labels_of = parse_labels(labels)
            .map_err(|reason| Failure::bad_request(format!("unable to parse requirement: {reason}")))?;
        let mut selector = Self { labels: labels_of, fields: Vec::new() };
        for part in fields.split(',').filter(|part| !part.is_empty()) {
            let (key, test) = match (part.split_once("!="), part.split_once('=')) {
                (Some((key, value)), _) => (key, Test::NotIn(vec![value.to_owned()])),
                (_, Some((key, value))) => (key, Test::In(vec![value.trim_start_matches('=').to_owned()])),
                _ => {
                    let message = format!("invalid selector: '{fields}'; can't understand '{part}'");
                    return Err(Failure::bad_request(message));
                }
            };
            if !is_selectable(definition, key) {
                let message = format!(
                    "{key:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
                );
                return Err(Failure::bad_request(message));
            }
            // Events are stored as those of the core group.
            let key = key.replacen("regarding.", "involvedObject.", 1);
            selector.fields.push(Requirement { key, test });
        }
        Ok(selector)
    }

    /// From a `labelSelector` object (`matchLabels`, `matchExpressions`), which selects everything if it is empty.
    pub(crate) fn of_object(selector: &Value) -> Self {
        let mut labels = Vec::new();
        for (key, value) in selector["matchLabels"].as_object().into_iter().flatten() {
            let test = Test::In(vec![value.as_str().unwrap_or_default().to_owned()]);
            labels.push(Requirement { key: key.clone(), test });
        }
        for expression in selector["matchExpressions"].as_array().into_iter().flatten() {
            let values = expression["values"].as_array().into_iter().flatten();
            let values = values.filter_map(Value::as_str).map(str::to_owned).collect();
            let test = match expression["operator"].as_str() {
                Some("In") => Test::In(values),
                Some("NotIn") => Test::NotIn(values),
                Some("Exists") => Test::Exists,
                _ => Test::Absent,
            };
            labels.push(Requirement { key: expression["key"].as_str().unwrap_or_default().to_owned(), test });
        }
        Self { labels, fields: Vec::new() }
    }

    /// Whether an object is asked for.
    pub(crate) fn matches(&self, object: &Value) -> bool {
        if self.labels.is_empty() && self.fields.is_empty() {
            return true;
        }
        self.matches_labels(object.pointer("/metadata/labels"))
            && self.fields.iter().all(|field| field.test.holds(Some(&field_of(object, &field.key))))
    }

    /// Whether labels are those that are asked for.
    pub(crate) fn matches_labels(&self, labels: Option<&Value>) -> bool {
        self.labels.iter().all(|requirement| {
            let label = labels.and_then(|labels| labels.get(&requirement.key)).and_then(Value::as_str);
            requirement.test.holds(label)
        })
    }
}

impl Test {
    fn holds(&self, value: Option<&str>) -> bool {
        match self {
            Self::In(values) => value.is_some_and(|value| values.iter().any(|wanted| wanted == value)),
            Self::NotIn(values) => value.is_none_or(|value| values.iter().all(|wanted| wanted != value)),
            Self::Exists => value.is_some(),
            Self::Absent => value.is_none(),
        }
    }
}

/// What is not set counts as empty, or as zero.
fn field_of(object: &Value, key: &str) -> String {
    let value = object.pointer(&format!("/{}", key.replace('.', "/")));
    match (value, key) {
        (Some(Value::String(text)), _) => text.clone(),
        (Some(Value::Object(_)), "source") => {
            object.pointer("/source/component").and_then(Value::as_str).unwrap_or_default().to_owned()
        }
        (Some(value), _) if !value.is_null() => value.to_string(),
        (_, "status.replicas" | "status.successful") => "0".to_owned(),
        (_, "spec.unschedulable") => "false".to_owned(),
        _ => String::new(),
    }
}

fn is_selectable(definition: &Definition, key: &str) -> bool {
    if key == "metadata.name" || (key == "metadata.namespace" && definition.namespaced) {
        return true;
    }
    if let Shape::Custom(custom) = &definition.shape {
        return custom.selectable.iter().any(|field| field == key);
    }
    let known: &[&str] = match definition.kind.as_str() {
        "Pod" => &[
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "status.phase",
            "status.podIP",
        ],
        "Event" => &[
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "involvedObject.resourceVersion",
            "involvedObject.fieldPath",
            "regarding.kind",
            "regarding.namespace",
            "regarding.name",
            "regarding.uid",
            "regarding.apiVersion",
            "reason",
            "reportingComponent",
            "source",
            "type",
        ],
        "Namespace" => &["status.phase"],
        "Secret" => &["type"],
        "Node" => &["spec.unschedulable"],
        "ReplicaSet" | "ReplicationController" => &["status.replicas"],
        "Job" => &["status.successful"],
        _ => &[],
    };
    known.contains(&key)
}

/// `a=b,c!=d,e in (f,g),h,!i`.
fn parse_labels(text: &str) -> Result<Vec<Requirement>, String> {
    let mut all = Vec::new();
    for part in split(text) {
        let part = part.trim();
        if part.is_empty() {
            continue;
        }
        let values = |list: &str| -> Vec<String> {
            list.trim()
                .trim_start_matches('(')
                .trim_end_matches(')')
                .split(',')
                .map(|value| value.trim().to_owned())
                .collect()
        };
        let (key, test) = if let Some((key, list)) = part.split_once(" notin ") {
            (key, Test::NotIn(values(list)))
        } else if let Some((key, list)) = part.split_once(" in ") {
            (key, Test::In(values(list)))
        } else if let Some((key, value)) = part.split_once("!=") {
            (key, Test::NotIn(vec![value.trim().to_owned()]))
        } else if let Some((key, value)) = part.split_once('=') {
            (key, Test::In(vec![value.trim_start_matches('=').trim().to_owned()]))
        } else if let Some(key) = part.strip_prefix('!') {
            (key, Test::Absent)
        } else {
            (part, Test::Exists)
        };
        let key = key.trim();
        if key.is_empty() || key.contains(|letter: char| letter.is_whitespace() || "()<>".contains(letter)) {
            return Err(format!("found '{part}', expected: a key and an operator"));
        }
        all.push(Requirement { key: key.to_owned(), test });
    }
    Ok(all)
}

/// At commas outside of parentheses.
fn split(text: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0_i32, 0);
    for (at, letter) in text.char_indices() {
        match letter {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn labels_are_matched_by_every_operator() {
        let labels = json!({"app": "web", "tier": "front"});
        let check = |text: &str, expected: bool| {
            let selector = Selector { labels: parse_labels(text).unwrap(), fields: Vec::new() };
            assert_eq!(selector.matches_labels(Some(&labels)), expected, "{text}");
        };
        check("app=web,tier==front", true);
        check("app!=web", false);
        check("app in (web,api),!gone", true);
        check("app notin (web, api)", false);
        check("tier", true);
        check("other!=x", true);
        assert!(parse_labels("a b c").is_err());
    }
}
