//! JSON as CEL has it.

use cel::common::types::{CelBool, CelDouble, CelInt, CelList, CelMap, CelMapKey, CelNull, CelString};
use cel::common::value::Val;
use serde_json::Value;

/// Something that expressions can be about: made of JSON once, and lent to any number of evaluations.
#[derive(Debug)]
pub struct Object(Box<dyn Val>);

impl Object {
    /// Whole numbers are `int`, as in objects that an API server reads.
    #[must_use]
    pub fn of(value: &Value) -> Self {
        Self(converted(value))
    }

    /// What stands for an object that there is not.
    #[must_use]
    pub fn null() -> Self {
        Self(Box::new(CelNull))
    }

    pub(crate) fn value(&self) -> &(dyn Val + 'static) {
        &*self.0
    }
}

/// A map of these entries, the last of which counts where a key is there twice.
pub(crate) fn map(entries: impl IntoIterator<Item = (CelMapKey<'static>, Box<dyn Val>)>) -> CelMap<'static> {
    // Its order is random, and nothing is told from it: loops go by the order of keys.
    let mut map = CelMap::default().into_inner();
    map.extend(entries);
    CelMap::from(map)
}

#[cfg(test)]
impl From<Box<dyn Val>> for Object {
    fn from(value: Box<dyn Val>) -> Self {
        Self(value)
    }
}

fn converted(value: &Value) -> Box<dyn Val> {
    match value {
        Value::Null => Box::new(CelNull),
        Value::Bool(it) => Box::new(CelBool::from(*it)),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => Box::new(CelInt::from(whole)),
            None => Box::new(CelDouble::from(number.as_f64().unwrap_or_default())),
        },
        Value::String(text) => Box::new(CelString::from(text.clone())),
        Value::Array(items) => {
            Box::new(CelList::from(items.iter().map(converted).collect::<Vec<Box<dyn Val>>>()))
        }
        Value::Object(fields) => {
            let fields = fields.iter().map(|(key, value)| (CelMapKey::from(key.clone()), converted(value)));
            Box::new(map(fields))
        }
    }
}
