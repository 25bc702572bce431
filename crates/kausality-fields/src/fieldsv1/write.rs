//! From sets to text.

use crate::gojson::{self, Escape};
use crate::path::Step;
use crate::set::{FieldSet, Node};
use serde::ser::{Serialize, SerializeMap, Serializer};

/// Who wrote the text. All forms mean the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// The API server, for itself.
    Stored,
    /// The API server, in an answer about an object of a kind it was built with.
    Served,
    /// The API server, in an answer about a custom resource, which it holds as plain JSON: keys are sorted as text.
    ServedCustom,
}

pub(crate) fn text(set: &FieldSet, form: Form) -> String {
    let mut writer = Writer { form, out: String::new(), key: String::new() };
    writer.object(set.nodes(), false);
    writer.out
}

/// As FieldsV1, in any format. [`FieldSet::to_fields_v1`] has the bytes of the API server.
impl Serialize for FieldSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Marked { set: self, member: false }.serialize(serializer)
    }
}

/// What is below a step, and whether the step itself is a member.
struct Marked<'a> {
    set: &'a FieldSet,
    member: bool,
}

impl Serialize for Marked<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if self.member && !self.set.is_empty() {
            map.serialize_entry(".", &Marked { set: &FieldSet::new(), member: false })?;
        }
        let mut key = String::new();
        for node in self.set.nodes() {
            key.clear();
            element(&mut key, &node.step);
            map.serialize_entry(&key, &Marked { set: &node.below, member: node.member })?;
        }
        map.end()
    }
}

struct Writer {
    form: Form,
    out: String,
    /// The key in the making, kept to save allocations.
    key: String,
}

impl Writer {
    fn object(&mut self, nodes: &[Node], member: bool) {
        self.out.push('{');
        if member && !nodes.is_empty() {
            self.out.push_str("\".\":{},");
        }
        if self.form == Form::ServedCustom {
            let mut nodes: Vec<_> = nodes.iter().collect();
            nodes.sort_by_cached_key(|node| {
                let mut key = String::new();
                element(&mut key, &node.step);
                key
            });
            self.nodes(nodes.into_iter());
        } else {
            self.nodes(nodes.iter());
        }
        self.out.push('}');
    }

    fn nodes<'a>(&mut self, nodes: impl Iterator<Item = &'a Node>) {
        let escape = if self.form == Form::Stored { Escape::Least } else { Escape::Html };
        for (nth, node) in nodes.enumerate() {
            self.out.push_str(if nth == 0 { "" } else { "," });
            self.key.clear();
            element(&mut self.key, &node.step);
            gojson::string(&mut self.out, &self.key, escape);
            self.out.push(':');
            self.object(node.below.nodes(), node.member);
        }
    }
}

/// A step as a key, before it is quoted.
fn element(out: &mut String, step: &Step) {
    match step {
        Step::Field(name) => {
            out.push_str("f:");
            out.push_str(name);
        }
        Step::Key(parts) => {
            out.push_str("k:{");
            for (nth, (name, value)) in parts.iter().enumerate() {
                out.push_str(if nth == 0 { "" } else { "," });
                gojson::string(out, name, Escape::Least);
                out.push(':');
                gojson::scalar(out, value);
            }
            out.push('}');
        }
        Step::Value(value) => {
            out.push_str("v:");
            gojson::scalar(out, value);
        }
        Step::Index(index) => {
            out.push_str("i:");
            out.push_str(&index.to_string());
        }
    }
}
