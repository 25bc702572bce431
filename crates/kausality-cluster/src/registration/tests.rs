use super::*;

fn kind(group: &str, plural: &str) -> Arc<Kind> {
    let resource = ApiResource {
        group: group.to_owned(),
        version: "v1".to_owned(),
        api_version: "v1".to_owned(),
        kind: "K".to_owned(),
        plural: plural.to_owned(),
    };
    Arc::new(Kind { resource, namespaced: true, names: Vec::new() })
}

/// The entries for these kinds and parents: names, how many conditions they have, and the resources of their rules.
fn entries(kinds: &[(&str, &str)], parents: &[(&str, &str)]) -> Vec<(String, usize, String)> {
    let of = |kinds: &[(&str, &str)]| kinds.iter().map(|(group, plural)| kind(group, plural)).collect();
    let registration = Registration {
        name: "kausality".to_owned(),
        url: "https://127.0.0.1/admit".to_owned(),
        ca_pem: None,
        kinds: of(kinds),
        parents: of(parents),
        fail_closed: true,
        excluded_namespaces: Vec::new(),
    };
    let manifest = registration.manifest();
    let entry = |entry: &Value| {
        let name = entry["name"].as_str().unwrap().replace(".kausality.io", "");
        let resources = entry["rules"].as_array().unwrap().iter().flat_map(|rule| {
            rule["resources"].as_array().unwrap().iter().map(|it| it.as_str().unwrap().to_owned())
        });
        let conditions = entry["matchConditions"].as_array().map_or(0, Vec::len);
        (name, conditions, resources.collect::<Vec<String>>().join(" "))
    };
    manifest["webhooks"].as_array().unwrap().iter().map(entry).collect()
}

fn entry(name: &str, conditions: usize, resources: &str) -> (String, usize, String) {
    (name.to_owned(), conditions, resources.to_owned())
}

/// An API server looks into no object that it need not look into, and at no write of anything else.
#[test]
fn nobody_is_asked_about_what_is_not_covered() {
    let plain = entries(&[("", "configmaps"), ("", "secrets")], &[]);
    assert_eq!(plain[0], entry("drift", 0, "configmaps secrets"));
    let mixed = entries(&[("", "configmaps"), ("apps", "deployments")], &[("example.com", "stacks")]);
    let of = |name: &str| mixed.iter().find(|(found, ..)| found == name);
    assert_eq!(of("drift"), Some(&entry("drift", 3, "deployments deployments/scale")));
    assert_eq!(of("drift-plain"), Some(&entry("drift-plain", 0, "configmaps")));
    assert_eq!(of("decisions"), Some(&entry("decisions", 2, "stacks")));
    assert_eq!(of("decisions-status"), Some(&entry("decisions-status", 2, "stacks/status")));
    for (name, _, resources) in plain.iter().chain(&mixed) {
        assert!(!resources.contains('*') && !resources.is_empty(), "{name}: {resources}");
    }
    assert!(!plain.iter().any(|(name, ..)| name.starts_with("decisions") && name != "decisions-namespaces"));
}

/// Namespaces have an entry of their own, unless they are watched.
#[test]
fn namespaces_are_asked_about_once() {
    let of_namespaces = |kinds: &[(&str, &str)]| {
        let entries = entries(kinds, &[("", "namespaces")]);
        entries.into_iter().filter(|(_, _, it)| it.split(' ').any(|it| it == "namespaces")).count()
    };
    assert_eq!(of_namespaces(&[("", "configmaps")]), 1);
    assert_eq!(of_namespaces(&[("", "namespaces")]), 1);
}
