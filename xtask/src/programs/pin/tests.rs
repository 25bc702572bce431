use super::*;

#[track_caller]
fn parse(go_mod: &str) -> Option<Pin> {
    Pin::parse("k8s.io/kubernetes", go_mod.to_owned(), String::new())
}

#[test]
fn a_pin_is_found_alone_and_in_a_block() {
    for require in
        ["require k8s.io/kubernetes v1.35.8 // indirect", "require (\n\tk8s.io/kubernetes v1.35.8\n)"]
    {
        let pin = parse(&format!("module m\n\n// why\ngo 1.25.0\n\n{require}\n")).unwrap();
        assert_eq!((pin.version.to_string().as_str(), pin.go.as_str()), ("v1.35.8", "1.25.0"), "{require}");
    }
}

#[test]
fn a_replacement_a_tool_and_a_comment_are_no_pin() {
    for line in [
        "replace k8s.io/kubernetes => ../kubernetes",
        "tool k8s.io/kubernetes/cmd/kubectl",
        "// k8s.io/kubernetes v1.35.8",
        "require k8s.io/kubernetes/other v1.35.8",
    ] {
        assert!(parse(&format!("go 1.25.0\n{line}\n")).is_none(), "{line}");
    }
}

#[test]
fn a_version_has_three_parts() {
    let version = Version::parse("v1.35.8").unwrap();
    assert_eq!((version.major(), version.minor()), ("1", "35"));
    for wrong in ["1.35.8", "v1.35", "latest", "v1.x.8"] {
        assert_eq!(Version::parse(wrong), None, "{wrong}");
    }
}

#[test]
fn releases_of_go() {
    assert_eq!(release("1.26.0"), [1, 26, 0]);
    assert_eq!(release("go1.26.8-X:nodwarf5"), [1, 26, 8]);
    assert_eq!(release("go1.27rc1"), [1, 27]);
    assert_eq!(release("devel go1.28-0123abc"), [1, 28]);
}
