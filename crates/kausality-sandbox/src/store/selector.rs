//! Which objects are asked for: by labels and by fields.

use serde_json::Value;

use crate::kinds::Definition;
use crate::status::Failure;

mod fields;
mod labels;

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
    Above(i64),
    Below(i64),
}

impl Selector {
    /// From the parameters of a request.
    pub(crate) fn parse(definition: &Definition, labels: &str, fields: &str) -> Result<Self, Failure> {
        let labels = labels::parse(labels).map_err(Failure::bad_request)?;
        Ok(Self { labels, fields: fields::parse(definition, fields)? })
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
            && self.fields.iter().all(|field| field.test.holds(Some(&fields::of(object, &field.key))))
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
            Self::Above(limit) => value.and_then(number).is_some_and(|value| value > *limit),
            Self::Below(limit) => value.and_then(number).is_some_and(|value| value < *limit),
        }
    }
}

fn number(value: &str) -> Option<i64> {
    value.parse().ok()
}
