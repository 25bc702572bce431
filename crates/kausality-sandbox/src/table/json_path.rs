//! The JSONPath of printer columns: `.status.conditions[?(@.type=="Ready")].status`.

use serde_json::Value;

/// The first value at a path.
pub(super) fn find(object: &Value, path: &str) -> Option<Value> {
    let mut at = object;
    let mut rest = path.trim().trim_start_matches('$');
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('[') {
            let (inside, tail) = after.split_once(']')?;
            at = match inside.strip_prefix("?(@.").and_then(|filter| filter.strip_suffix(')')) {
                Some(filter) => {
                    let (key, value) = filter.split_once("==")?;
                    let wanted = value.trim().trim_matches(['"', '\'']);
                    let key = key.trim();
                    at.as_array()?
                        .iter()
                        .find(|item| item.get(key).and_then(Value::as_str) == Some(wanted))?
                }
                None => match inside.trim_matches(['"', '\'']).parse::<usize>() {
                    Ok(nth) => at.get(nth)?,
                    Err(_) if inside == "*" => at.get(0)?,
                    Err(_) => at.get(inside.trim_matches(['"', '\'']))?,
                },
            };
            rest = tail;
        } else {
            let name = rest.trim_start_matches('.');
            // A dot may be escaped: `.metadata.annotations.example\.com/x`.
            let mut end = name.len();
            let bytes = name.as_bytes();
            for (nth, byte) in bytes.iter().enumerate() {
                if *byte == b'[' || (*byte == b'.' && (nth == 0 || bytes[nth - 1] != b'\\')) {
                    end = nth;
                    break;
                }
            }
            at = at.get(name[..end].replace("\\.", "."))?;
            rest = &name[end..];
        }
    }
    (!at.is_null()).then(|| at.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn paths_are_followed() {
        let object = json!({"a": {"b": [1, 2]}, "c": [{"type": "X", "status": "no"}, {"type": "Y", "status": "yes"}],
            "m": {"x.y/z": 1}});
        for (path, expected) in
            [(".a.b[1]", json!(2)), (".c[?(@.type==\"Y\")].status", json!("yes")), (".m.x\\.y/z", json!(1))]
        {
            assert_eq!(find(&object, path), Some(expected), "{path}");
        }
        assert_eq!(find(&object, ".a.x"), None);
    }
}
