use super::*;

#[test]
fn required_unless_unset_empty_or_zero() {
    let required = |value: &str| is_required(Some(OsStr::new(value)));
    assert!(required("1") && required("true"));
    assert!(!required("") && !required("0"));
    assert!(!is_required(None));
}
