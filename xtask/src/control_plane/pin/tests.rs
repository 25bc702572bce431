use super::super::binary::{CONTROL_PLANE, HELM};
use super::*;

fn repository() -> Pins {
    Pins::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../control-plane")).unwrap()
}

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

#[test]
fn the_newest_go_that_a_module_asks_for_is_needed() {
    let pin = |go: &str| Pin {
        version: Version::parse("v1.0.0").unwrap(),
        go: go.to_owned(),
        go_mod: String::new(),
        go_sum: String::new(),
    };
    for (kubernetes, etcd, helm) in
        [("1.9.0", "1.8.0", "1.26.0"), ("1.26.0", "1.9.0", "1.9.0"), ("1.9.0", "1.26.0", "1.9.0")]
    {
        let pins = Pins { kubernetes: pin(kubernetes), etcd: pin(etcd), helm: pin(helm) };
        assert_eq!(pins.go(), "1.26.0");
    }
}

#[test]
fn each_package_is_a_tool_of_its_module() {
    let pins = repository();
    for binary in CONTROL_PLANE.iter().chain([&HELM]) {
        let go_mod = &pins.of(binary.module).go_mod;
        let mut last_words = go_mod.lines().map(|line| line.rsplit([' ', '\t']).next().unwrap_or_default());
        assert!(last_words.any(|word| word == binary.package), "`go mod tidy` would drop {}", binary.package);
    }
}

#[test]
fn every_staging_module_has_the_version_of_kubernetes() {
    let pins = repository();
    let kubernetes = &pins.of(Module::Kubernetes);
    let staging = kubernetes.version.to_string().replacen("v1.", "v0.", 1);
    let replaced: Vec<_> = kubernetes.go_mod.lines().filter_map(|line| line.split_once(" => ")).collect();
    assert!(replaced.len() > 20, "{replaced:?}");
    for (old, new) in replaced {
        assert_eq!(new, format!("{} {staging}", old.trim()));
    }
}
