//! What is special about Secrets: texts that are stored under another name.

use crate::path::{Path, Step};
use crate::set::{FieldSet, Node};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Map, Value};
use std::borrow::Cow;

const DATA: &str = "data";
const TEXTS: &str = "stringData";

/// What is declared, as it is stored: the API server keeps the texts of `stringData` in base64 under `data`.
pub(super) fn stored(declared: &Value) -> Cow<'_, Value> {
    let Some(texts) = declared.get(TEXTS).and_then(Value::as_object) else { return Cow::Borrowed(declared) };
    let mut stored = declared.clone();
    if let Value::Object(fields) = &mut stored {
        fields.remove(TEXTS);
        let data = fields.entry(DATA).or_insert_with(|| Value::Object(Map::new()));
        if data.is_null() {
            *data = Value::Object(Map::new());
        }
        if let Value::Object(data) = data {
            let encoded =
                |text: &Value| text.as_str().map_or(Value::Null, |text| STANDARD.encode(text).into());
            data.extend(texts.iter().map(|(name, text)| (name.clone(), encoded(text))));
        }
    }
    Cow::Owned(stored)
}

/// Owned fields as they are stored.
pub(super) fn stored_fields(fields: &FieldSet) -> FieldSet {
    let [texts, data] = [TEXTS, DATA].map(|name| Path::from_iter([Step::Field(name.to_owned())]));
    let others = |node: &&Node| !matches!(&node.step, Step::Field(name) if name == TEXTS);
    let others = FieldSet::of_nodes(fields.nodes().iter().filter(others).cloned().collect());
    others.union(&fields.without_prefix(&texts).with_prefix(&data))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn texts_are_stored_in_base64() {
        let declared = json!({"kind": "Secret", "data": {"a": "eA=="}, "stringData": {"b": "foo"}});
        assert_eq!(*stored(&declared), json!({"kind": "Secret", "data": {"a": "eA==", "b": "Zm9v"}}));
        let fields =
            FieldSet::from_fields_v1(r#"{"f:data":{"f:a":{}},"f:stringData":{"f:b":{}},"f:type":{}}"#);
        assert_eq!(stored_fields(&fields.unwrap()).to_string(), "data.a\ndata.b\ntype");
    }
}
