//! Policies, as JSON and as YAML.

use std::time::Duration;

use kausality_api::{policy::Kausality, selector::Labels};
use kausality_core::policy::{Policies, Target};

use crate::fuzz::{corpus, reviews::said};

/// Those that are golden elsewhere.
pub(crate) fn seeds() -> Vec<Vec<u8>> {
    vec![corpus::file("crates/kausality-api/src/policy/full.json"), corpus::file("docs/examples/policy.yaml")]
}

/// Reads a policy, and asks what it means.
pub(crate) fn run(input: &[u8]) -> String {
    let json = serde_json::from_slice::<Kausality>(input);
    let yaml = std::str::from_utf8(input).ok().map(serde_saphyr::from_str::<Kausality>);
    let mut ways = match &json {
        Ok(_) => "json ".to_owned(),
        Err(error) => said(&error.to_string()),
    };
    ways.push_str(&match &yaml {
        Some(Ok(_)) => "yaml ".to_owned(),
        Some(Err(error)) => said(error.to_string().lines().next().unwrap_or_default()),
        None => String::new(),
    });
    let read: Vec<Kausality> = json.ok().into_iter().chain(yaml.and_then(Result::ok)).collect();
    for policy in &read {
        ways.push_str(&policy.fault().map(|fault| said(&fault)).unwrap_or_default());
        let written = serde_json::to_string(policy).unwrap();
        assert_eq!(
            &serde_json::from_str::<Kausality>(&written).unwrap(),
            policy,
            "what is written is read back"
        );
    }
    if !read.is_empty() {
        ways.push_str(&matching(read));
    }
    ways
}

/// What the policies say about what they name, and about what nobody does.
fn matching(policies: Vec<Kausality>) -> String {
    let named = policies.iter().flat_map(|policy| &policy.spec.resources).flat_map(|rule| {
        rule.api_groups
            .iter()
            .take(3)
            .flat_map(|group| rule.resources.iter().take(3).map(move |name| (group.clone(), name.clone())))
    });
    let mut named: Vec<(String, String)> = named.take(20).collect();
    named.push(("apps".to_owned(), "deployments".to_owned()));
    let spaces = policies
        .iter()
        .filter_map(|policy| policy.spec.namespaces.as_ref())
        .flat_map(|spaces| spaces.names.iter().take(3).cloned());
    let mut spaces: Vec<String> = spaces.collect();
    spaces.extend([String::new(), "default".to_owned()]);
    let policies = Policies::new(policies);
    let labels: Labels = [("env".to_owned(), "prod".to_owned())].into();
    let mut ways = String::new();
    for (group, resource) in &named {
        for namespace in &spaces {
            let target =
                Target { group, resource, namespace, namespace_labels: Some(&labels), labels: &labels };
            ways.push_str(policies.mode(&target).map_or("-", |(mode, _)| mode.as_str()));
        }
        ways.push_str(&format!("{:?}", policies.settling(group, resource, Duration::ZERO)));
    }
    ways.truncate(80);
    ways
}
