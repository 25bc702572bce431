use super::{FieldsV1Problem, Form, MAX_DEPTH, write};
use crate::set::FieldSet;

/// Reads and writes the same bytes, and shows the paths.
#[track_caller]
fn check(json: &str, paths: &[&str]) {
    let set = FieldSet::from_fields_v1(json).unwrap();
    assert_eq!(set.to_string(), paths.join("\n"));
    assert_eq!(set.to_fields_v1(), json);
    assert_eq!(serde_json::from_str::<FieldSet>(json).unwrap(), set);
}

#[track_caller]
fn check_rewritten(json: &str, expected: &str) {
    assert_eq!(FieldSet::from_fields_v1(json).unwrap().to_fields_v1(), expected);
}

#[track_caller]
fn check_fault(json: &str, expected: &str) {
    let error = FieldSet::from_fields_v1(json).unwrap_err().to_string();
    assert_eq!(error, format!("the set of fields cannot be read: at {expected}"));
}

#[test]
fn every_kind_of_step_is_read_and_written() {
    check("{}", &[]);
    check(r#"{"f:spec":{"f:replicas":{}}}"#, &["spec.replicas"]);
    check(r#"{"f:data":{".":{},"f:a":{}}}"#, &["data", "data.a"]);
    check(
        r#"{"f:ports":{"k:{\"port\":53,\"protocol\":\"TCP\"}":{".":{},"f:port":{}},"k:{\"port\":53,\"protocol\":\"UDP\"}":{}}}"#,
        &["ports[port=53,protocol=TCP]", "ports[port=53,protocol=TCP].port", "ports[port=53,protocol=UDP]"],
    );
    check(
        r#"{"f:l":{"v:1":{},"v:1.5":{},"v:\"a\"":{},"v:false":{},"v:true":{},"v:null":{},"i:2":{},"i:10":{}}}"#,
        &["l[=1]", "l[=1.5]", r#"l["a"]"#, "l[=false]", "l[=true]", "l[=null]", "l[2]", "l[10]"],
    );
    check(r#"{"k:{\"a\":null,\"b\":true}":{}}"#, &["[a=null,b=true]"]);
}

#[test]
fn numbers_are_read_to_the_last_digit() {
    check(
        r#"{"v:-1e+21":{},"v:1.5130999720786602e-52":{},"v:0.1":{},"v:53":{},"v:9223372036854775807":{}}"#,
        &[
            "[=-1000000000000000000000]",
            &format!("[={}]", 1.5130999720786602e-52),
            "[=0.1]",
            "[=53]",
            "[=9223372036854775807]",
        ],
    );
    check_fault(r#"{"v:1e400":{}}"#, r#".: "v:1e400" is no step: the number is out of range"#);
}

#[test]
fn a_label_key_with_dots_is_one_field() {
    check(
        r#"{"f:metadata":{"f:labels":{"f:app.kubernetes.io/name":{}}}}"#,
        &[r#"metadata.labels["app.kubernetes.io/name"]"#],
    );
}

#[test]
fn strings_are_escaped_twice_in_keys_and_once_in_fields() {
    check(r#"{"f:a\"b\\<&>":{}}"#, &[r#"["a\"b\\<&>"]"#]);
    check(r#"{"v:\"\\u003c\\u0026\\\"\\\\\"":{}}"#, &[r#"["<&\"\\"]"#]);
    check(r#"{"k:{\"<\":\"\\u003e\"}":{}}"#, &[r#"[<=">"]"#]);
}

#[test]
fn answers_of_the_server_are_escaped_for_pages() {
    let set = FieldSet::from_fields_v1(r#"{"f:a<b":{},"v:\"<\"":{}}"#).unwrap();
    assert_eq!(write::text(&set, Form::Served), r#"{"f:a\u003cb":{},"v:\"\\u003c\"":{}}"#);
}

#[test]
fn custom_resources_are_served_in_the_order_of_text() {
    let json = r#"{"f:l":{".":{},"k:{\"n\":9}":{},"k:{\"n\":10}":{},"v:1":{},"i:0":{}}}"#;
    let set = FieldSet::from_fields_v1(json).unwrap();
    assert_eq!(set.to_fields_v1(), json);
    assert_eq!(
        write::text(&set, Form::ServedCustom),
        r#"{"f:l":{".":{},"i:0":{},"k:{\"n\":10}":{},"k:{\"n\":9}":{},"v:1":{}}}"#
    );
}

#[test]
fn any_order_is_read() {
    check_rewritten(r#"{"f:b":{},"f:a":{"f:c":{},".":{}}}"#, r#"{"f:a":{".":{},"f:c":{}},"f:b":{}}"#);
    check_rewritten(
        r#"{"k:{\"protocol\":\"TCP\",\"port\":53.0}":null}"#,
        r#"{"k:{\"port\":53,\"protocol\":\"TCP\"}":{}}"#,
    );
    check_rewritten(r#"{"f:a":{"f:b":{},".":{}},"f:a":{"f:c":{}}}"#, r#"{"f:a":{".":{},"f:c":{}}}"#);
    check_rewritten(r#"{"f:a":{"f:b":{}},"f:a":{}}"#, r#"{"f:a":{".":{},"f:b":{}}}"#);
    check_rewritten(r#" { "f:a" : { "." : 1 } } "#, r#"{"f:a":{}}"#);
}

#[test]
fn faults_name_their_place() {
    check_fault(
        r#"{"f:spec":{"replicas":{}}}"#,
        r#"spec: "replicas" is no step: it must begin with f:, k:, v: or i:"#,
    );
    check_fault(
        r#"{"f:spec":{"x:y":{}}}"#,
        r#"spec: "x:y" is of an unknown kind (known are f:, k:, v:, i:)"#,
    );
    check_fault(r#"{"f:spec":{"i:-1":{}}}"#, r#"spec: "i:-1" is no step: invalid digit found in string"#);
    check_fault(
        r#"{"f:a":{"v:[1]":{}}}"#,
        r#"a: "v:[1]" is no step: a list or an object is no member of a set"#,
    );
    check_fault(
        r#"{"f:a":{"k:[1]":{}}}"#,
        r#"a: "k:[1]" is no step: invalid type: sequence, expected an object of keys at line 1 column 0"#,
    );
    check_fault(
        r#"{"f:a":{"f:b":1}}"#,
        "a.b: invalid type: integer `1`, expected an object of fields at line 1 column 15",
    );
    check_fault(r#"{"f:a":{"f:b":{}}"#, ".: EOF while parsing an object at line 1 column 17");
    check_fault(r#"{"f:a":{}} {}"#, ".: trailing characters at line 1 column 12");
    check_fault("", ".: EOF while parsing a value at line 1 column 0");
    check_fault("[]", ".: invalid type: sequence, expected an object of fields at line 1 column 2");
    for json in
        [r#"{"":{}}"#, r#"{"f":{}}"#, r#"{"ff:a":{}}"#, r#"{"v:":{}}"#, r#"{"v:1 2":{}}"#, r#"{"k:{}x":{}}"#]
    {
        let error = FieldSet::from_fields_v1(json).unwrap_err();
        assert!(matches!(error.problem, FieldsV1Problem::BadElement(_)), "{error}");
    }
}

#[test]
fn a_fault_is_located_inside_other_formats_too() {
    let error = serde_json::from_str::<Vec<FieldSet>>(r#"[{},{"f:a":{"y":{}}}]"#).unwrap_err().to_string();
    assert!(error.contains("at a: \"y\" is no step"), "{error}");
}

#[test]
fn depth_is_bounded() {
    let nested = |depth: usize| format!("{}{{}}{}", "{\"f:a\":".repeat(depth), "}".repeat(depth));
    assert_eq!(FieldSet::from_fields_v1(&nested(MAX_DEPTH)).unwrap().len(), 1);
    for depth in [MAX_DEPTH + 1, 1000, 100_000] {
        let error = FieldSet::from_fields_v1(&nested(depth)).unwrap_err();
        assert_eq!(error.problem, FieldsV1Problem::TooDeep);
        assert_eq!(error.place.steps().len(), MAX_DEPTH);
    }
}

/// Either would take minutes, not milliseconds, if it were quadratic: falling keys inserted each in its place, and
/// repeated keys joined each with all before.
#[test]
fn a_megabyte_in_the_worst_order_is_read() {
    let read = |keys: Vec<String>| FieldSet::from_fields_v1(&format!("{{{}}}", keys.join(","))).unwrap();
    let falling = (0..100_000).rev().map(|n| format!("\"f:{n:06}\":{{}}"));
    assert_eq!(read(falling.collect()).len(), 100_000);
    let repeated = (0..60_000).map(|n| format!("\"f:a\":{{\"f:{n:06}\":{{}}}}"));
    assert_eq!(read(repeated.collect()).len(), 1);
}
