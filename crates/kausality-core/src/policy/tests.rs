use super::*;

/// Policies in short: name, spec in JSON.
fn policies(specs: &[(&str, &str)]) -> Policies {
    let read = |(name, spec): &(&str, &str)| {
        let text = format!(
            r#"{{"apiVersion":"kausality.io/v1alpha1","kind":"Kausality","metadata":{{"name":"{name}"}},"spec":{spec}}}"#
        );
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"))
    };
    Policies::new(specs.iter().map(read).collect())
}

fn spec(resources: &str, rest: &str) -> String {
    let comma = if rest.is_empty() { "" } else { "," };
    format!(
        r#"{{"resources":[{{"apiGroups":["apps"],"resources":{resources}}}],"mode":"enforce"{comma}{rest}}}"#
    )
}

fn labels(pairs: &[(&str, &str)]) -> Labels {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

/// The policy that is best for Deployments in namespace `shop`, which has label `env: prod`.
#[track_caller]
fn best(specs: &[(&str, String)], expected: Option<&str>) {
    best_in("shop", specs, expected);
}

#[track_caller]
fn best_in(namespace: &str, specs: &[(&str, String)], expected: Option<&str>) {
    let namespace_labels = labels(&[("env", "prod")]);
    let target = Target {
        group: "apps",
        resource: "deployments",
        namespace,
        namespace_labels: (!namespace.is_empty()).then_some(&namespace_labels),
        labels: &labels(&[("tier", "web")]),
    };
    let specs: Vec<(&str, &str)> = specs.iter().map(|(name, spec)| (*name, spec.as_str())).collect();
    for order in [specs.clone(), specs.iter().rev().copied().collect()] {
        let policies = policies(&order);
        let found = policies.mode(&target).map(|(_, name)| name);
        assert_eq!(found, expected, "of {order:?}");
    }
}

const NAMED: &str = r#""namespaces":{"names":["shop","other"]}"#;
const SELECTED: &str = r#""namespaces":{"selector":{"matchLabels":{"env":"prod"}}}"#;
const ELSEWHERE: &str = r#""namespaces":{"names":["other"]}"#;
const UNSELECTED: &str = r#""namespaces":{"selector":{"matchLabels":{"env":"dev"}}}"#;
const EXPLICIT: &str = r#"["deployments"]"#;
const STAR: &str = r#"["*"]"#;

#[test]
fn nothing_matches_nothing() {
    best(&[], None);
    best(&[("a", spec(r#"["replicasets"]"#, ""))], None);
    best(&[("a", spec("[]", ""))], None);
    best(&[("a", spec(EXPLICIT, ELSEWHERE))], None);
    best(&[("a", spec(EXPLICIT, UNSELECTED))], None);
    best(&[("a", spec(STAR, "").replace("apps", "batch"))], None);
    // Groups have no wildcard.
    best(&[("a", spec(STAR, "").replace("apps", "*"))], None);
}

#[test]
fn names_beat_selectors_beat_all() {
    best(&[("z", spec(STAR, NAMED)), ("a", spec(EXPLICIT, SELECTED)), ("b", spec(EXPLICIT, ""))], Some("z"));
    best(&[("z", spec(STAR, SELECTED)), ("b", spec(EXPLICIT, ""))], Some("z"));
    best(&[("z", spec(STAR, r#""namespaces":{}"#)), ("b", spec(EXPLICIT, SELECTED))], Some("b"));
    let both = r#""namespaces":{"names":["other"],"selector":{"matchLabels":{"env":"prod"}}}"#;
    best(&[("a", spec(EXPLICIT, both))], Some("a"));
    best(&[("z", spec(EXPLICIT, both)), ("y", spec(STAR, NAMED))], Some("y"));
}

#[test]
fn explicit_resources_beat_the_star_and_then_the_name_decides() {
    best(&[("a", spec(STAR, "")), ("z", spec(EXPLICIT, ""))], Some("z"));
    best(&[("b", spec(EXPLICIT, "")), ("a", spec(EXPLICIT, "")), ("c", spec(EXPLICIT, ""))], Some("a"));
    best(&[("b", spec(STAR, NAMED)), ("a", spec(STAR, NAMED))], Some("a"));
    // A policy that names a resource both ways names it.
    best(&[("a", spec(STAR, "")), ("b", spec(r#"["*","deployments"]"#, ""))], Some("b"));
}

#[test]
fn what_is_excluded_is_excluded() {
    best(&[("a", spec(EXPLICIT, r#""namespaces":{"excluded":["shop"]}"#))], None);
    best(&[("a", spec(EXPLICIT, r#""namespaces":{"names":["shop"],"excluded":["shop"]}"#))], None);
    best(&[("a", spec(EXPLICIT, r#""namespaces":{"excluded":["other"]}"#))], Some("a"));
    let star = |excluded: &str| {
        format!(
            r#"{{"resources":[{{"apiGroups":["apps"],"resources":["*"],"excluded":{excluded}}}],"mode":"log"}}"#
        )
    };
    best(&[("a", star(r#"["deployments"]"#))], None);
    best(&[("a", star(r#"["daemonsets"]"#))], Some("a"));
    // Another rule of the same policy may mean it all the same.
    let two = r#"{"resources":[{"apiGroups":["apps"],"resources":["*"],"excluded":["deployments"]},
        {"apiGroups":["apps"],"resources":["*"]}],"mode":"log"}"#;
    best(&[("a", two.to_owned())], Some("a"));
}

#[test]
fn objects_are_selected_by_label() {
    best(&[("a", spec(EXPLICIT, r#""objectSelector":{"matchLabels":{"tier":"web"}}"#))], Some("a"));
    best(&[("a", spec(EXPLICIT, r#""objectSelector":{"matchLabels":{"tier":"db"}}"#))], None);
    best(
        &[("a", spec(EXPLICIT, r#""objectSelector":{"matchLabels":{"tier":"db"}}"#)), ("z", spec(STAR, ""))],
        Some("z"),
    );
}

#[test]
fn cluster_scoped_objects_are_in_no_namespace() {
    best_in("", &[("a", spec(EXPLICIT, ""))], Some("a"));
    best_in("", &[("a", spec(EXPLICIT, r#""namespaces":{}"#))], Some("a"));
    best_in("", &[("a", spec(EXPLICIT, r#""namespaces":{"excluded":["kube-system"]}"#))], Some("a"));
    best_in("", &[("a", spec(EXPLICIT, NAMED))], None);
    best_in("", &[("a", spec(EXPLICIT, r#""namespaces":{"names":[""]}"#))], None);
    best_in("", &[("a", spec(EXPLICIT, r#""namespaces":{"selector":{}}"#))], None);
}

#[test]
fn a_namespace_that_is_not_known_is_not_selected() {
    let policies = policies(&[("a", &spec(EXPLICIT, r#""namespaces":{"selector":{}}"#))]);
    let target = Target {
        group: "apps",
        resource: "deployments",
        namespace: "shop",
        namespace_labels: None,
        labels: &Labels::new(),
    };
    assert_eq!(policies.mode(&target), None);
}

#[track_caller]
fn overridden(overrides: &str, expected: Mode) {
    let rest = format!(r#""overrides":{overrides}"#);
    let policies = policies(&[("a", &spec(EXPLICIT, &rest))]);
    let target = Target {
        group: "apps",
        resource: "deployments",
        namespace: "shop",
        namespace_labels: None,
        labels: &Labels::new(),
    };
    assert_eq!(policies.mode(&target), Some((expected, "a")), "{overrides}");
}

#[test]
fn the_first_override_that_matches_wins() {
    overridden("[]", Mode::Enforce);
    overridden(r#"[{"mode":"log"}]"#, Mode::Log);
    overridden(r#"[{"mode":"log"},{"mode":"enforce"}]"#, Mode::Log);
    overridden(r#"[{"namespaces":["other"],"mode":"enforce"},{"mode":"log"}]"#, Mode::Log);
    overridden(r#"[{"namespaces":["shop"],"mode":"enforce"},{"mode":"log"}]"#, Mode::Enforce);
    overridden(r#"[{"apiGroups":["batch"],"mode":"log"}]"#, Mode::Enforce);
    overridden(r#"[{"apiGroups":["*"],"resources":["*"],"namespaces":["*"],"mode":"log"}]"#, Mode::Log);
    overridden(r#"[{"resources":["replicasets"],"mode":"log"}]"#, Mode::Enforce);
    // All that an override says must hold.
    overridden(r#"[{"resources":["deployments"],"namespaces":["other"],"mode":"log"}]"#, Mode::Enforce);
}

#[track_caller]
fn settles(specs: &[(&str, String)], expected: Settle) {
    let specs: Vec<(&str, &str)> = specs.iter().map(|(name, spec)| (*name, spec.as_str())).collect();
    for order in [specs.clone(), specs.iter().rev().copied().collect()] {
        assert_eq!(
            policies(&order).settling("apps", "deployments", Duration::ZERO).rule,
            expected,
            "{order:?}"
        );
    }
}

#[test]
fn settle_holds_for_the_kinds_that_a_policy_names() {
    let literal = r#""settle":"observedGeneration""#;
    let steady = r#""settle":"steady""#;
    settles(&[], Settle::Steady);
    settles(&[("a", spec(EXPLICIT, ""))], Settle::Steady);
    settles(&[("a", spec(EXPLICIT, literal))], Settle::ObservedGeneration);
    settles(&[("a", spec(STAR, literal))], Settle::ObservedGeneration);
    settles(&[("a", spec(r#"["replicasets"]"#, literal))], Settle::Steady);
    // What says nothing leaves it to others.
    settles(&[("a", spec(EXPLICIT, "")), ("b", spec(STAR, literal))], Settle::ObservedGeneration);
    settles(&[("b", spec(EXPLICIT, steady)), ("a", spec(STAR, literal))], Settle::Steady);
    settles(&[("a", spec(EXPLICIT, steady)), ("b", spec(EXPLICIT, literal))], Settle::Steady);
    let excluded = r#"{"resources":[{"apiGroups":["apps"],"resources":["*"],"excluded":["deployments"]}],"mode":"log","settle":"observedGeneration"}"#;
    settles(&[("a", excluded.to_owned())], Settle::Steady);
}

#[test]
fn a_policy_covers_the_parents_that_it_certainly_means() {
    let covers = |spec: &str, namespaced: bool| {
        let spec = serde_json::from_str(spec).unwrap();
        covers_parents(&spec, "apps", "deployments", namespaced)
    };
    let shop = r#""namespaces":{"names":["shop"]}"#;
    let labelled = r#""objectSelector":{"matchLabels":{"a":"b"}}"#;
    let excluded = r#""namespaces":{"excluded":["legacy"]}"#;
    for (spec, in_a_namespace, in_none) in [
        (spec(EXPLICIT, ""), true, true),
        (spec(STAR, ""), true, true),
        (spec(r#"["replicasets"]"#, ""), false, false),
        (spec(EXPLICIT, excluded), true, true),
        (spec(EXPLICIT, shop), true, false),
        (spec(EXPLICIT, labelled), false, false),
    ] {
        assert_eq!((covers(&spec, true), covers(&spec, false)), (in_a_namespace, in_none), "{spec}");
    }
}
