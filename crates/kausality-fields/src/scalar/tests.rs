use super::Scalar;
use serde_json::{Value, json};

#[test]
fn numbers_are_equal_by_value() {
    let same = |a: Value, b: Value| Scalar::of(&a) == Scalar::of(&b);
    assert!(same(json!(1), json!(1.0)));
    assert!(same(json!(-3), json!(-3.0)));
    assert!(same(json!(1u64 << 63), json!((1u64 << 63) as f64)));
    assert!(!same(json!(u64::MAX), json!(u64::MAX as f64)));
    assert!(!same(json!(1e300), json!(1e301)));
    assert!(!same(json!(0.1), json!(0.2)));
    assert_eq!(Scalar::of(&json!(null)), None);
    assert_eq!(Scalar::or_null(&json!(null)), Some(Scalar::Null));
    assert_eq!(Scalar::or_null(&json!([])), None);
}

#[test]
fn the_order_is_that_of_the_api_server() {
    let ordered = [
        json!(-1e300),
        json!(-2),
        json!(-1.5),
        json!(0),
        json!(0.5),
        json!(1),
        json!(9),
        json!(10),
        json!(10.25),
        json!(u64::MAX),
        json!(1e300),
        json!(""),
        json!("10"),
        json!("9"),
        json!("B"),
        json!("a"),
        json!("ä"),
        json!(false),
        json!(true),
        json!(null),
    ];
    let scalars: Vec<_> = ordered.iter().map(|value| Scalar::or_null(value).unwrap()).collect();
    assert!(scalars.is_sorted_by(|a, b| a < b), "{scalars:?}");
}
