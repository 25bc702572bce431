//! Against the decisions themselves: every request is reviewed once, for the policy that decides, and what becomes of
//! it without an answer is what its mode asks for.

use std::collections::{BTreeMap, HashMap};

use cel::{
    Context, Program,
    objects::{Key, Map},
};
use kausality_api::{
    mode::Mode,
    policy::Kausality,
    selector::{LabelSelector, Labels},
};
use kausality_core::policy::{Policies, Target};
use serde_json::{Value, json};

use super::super::{Place, Policy, Resource, Target as Webhook, desired};

const OWN: &str = "kausality-system";

/// A namespace that is labelled so that no policy means it which does not name it.
const EDGE: &str = "edge";

/// Policies by their names, none of which speaks of labels.
fn policies() -> Vec<Value> {
    let rules = |groups: &[&str], resources: &[&str]| json!([{"apiGroups": groups, "resources": resources}]);
    let all = rules(&["apps", "batch"], &["*"]);
    let some = rules(&["apps"], &["deployments"]);
    let specs = [
        ("a-all", json!({"resources": all, "mode": "log"})),
        ("b-all", json!({"resources": all, "mode": "enforce", "namespaces": {"excluded": ["test"]}})),
        ("c-some", json!({"resources": some, "mode": "enforce"})),
        ("d-some", json!({"resources": some, "mode": "log", "namespaces": {"excluded": ["prod"]}})),
        (
            "e-prod",
            json!({"resources": all, "mode": "enforce", "namespaces": {"names": ["prod", "kube-system", EDGE]}}),
        ),
        (
            "f-prod",
            json!({"resources": some, "mode": "log", "namespaces": {"names": ["prod", OWN, "test"], "excluded": ["test"]}}),
        ),
        (
            "g-divided",
            json!({"resources": all, "mode": "log", "overrides": [
            {"resources": ["jobs"], "namespaces": ["test"], "mode": "log"}, {"apiGroups": ["batch"], "mode": "enforce"},
            {"namespaces": ["shop"], "mode": "enforce"}]}),
        ),
        (
            "h-divided",
            json!({"resources": rules(&["batch"], &["jobs"]), "mode": "enforce", "namespaces": {"names": ["shop"]},
            "overrides": [{"resources": ["jobs"], "mode": "log"}]}),
        ),
    ];
    specs
        .map(|(name, spec)| {
            json!({"apiVersion": "kausality.io/v1alpha1", "kind": "Kausality",
            "metadata": {"name": name, "generation": 1}, "spec": spec})
        })
        .into()
}

fn served() -> Vec<Resource> {
    [("apps", "deployments"), ("apps", "replicasets"), ("batch", "jobs")]
        .map(|(group, plural)| Resource {
            group: group.to_owned(),
            plural: plural.to_owned(),
            version: "v1".to_owned(),
        })
        .into()
}

#[derive(Default)]
struct Programs(HashMap<String, Program>);

impl Programs {
    fn holds(&mut self, expression: &str, resource: &Resource, namespace: &str) -> bool {
        let compile = || Program::compile(expression).unwrap();
        let program = self.0.entry(expression.to_owned()).or_insert_with(compile);
        let text = |text: &str| cel::Value::String(text.to_owned().into());
        let map = |fields: Vec<(&str, cel::Value)>| {
            let fields = fields.into_iter().map(|(key, value)| (Key::String(key.to_owned().into()), value));
            cel::Value::Map(Map { map: fields.collect::<HashMap<_, _>>().into() })
        };
        let named = map(vec![("group", text(&resource.group)), ("resource", text(&resource.plural))]);
        let mut fields = vec![("resource", named), ("userInfo", map(vec![("username", text("alice"))]))];
        // As the API server has it.
        fields.extend((!namespace.is_empty()).then(|| ("namespace", text(namespace))));
        let mut context = Context::default();
        context.add_variable_from_value("request", map(fields));
        match program.execute(&context) {
            Ok(cel::Value::Bool(holds)) => holds,
            other => panic!("{expression}: {other:?}"),
        }
    }

    /// Whether the API server asks a webhook about a request.
    fn asks(&mut self, webhook: &Value, resource: &Resource, namespace: &str) -> bool {
        let ruled = webhook["rules"].as_array().unwrap().iter().any(|rule| {
            let has = |field: &str, name: &str| rule[field].as_array().unwrap().iter().any(|one| one == name);
            has("apiGroups", &resource.group)
                && has("resources", &resource.plural)
                && (rule["scope"] == "*" || !namespace.is_empty())
        });
        let selector: LabelSelector = serde_json::from_value(webhook["namespaceSelector"].clone()).unwrap();
        let mut labels = Labels::from([("kubernetes.io/metadata.name".to_owned(), namespace.to_owned())]);
        labels.extend((namespace == EDGE).then(|| ("kausality.io/exclude".to_owned(), String::new())));
        let conditions = webhook["matchConditions"].as_array().into_iter().flatten().skip(1);
        let mut expressions = conditions.map(|condition| condition["expression"].as_str().unwrap());
        ruled
            && (namespace.is_empty() || selector.matches(&labels))
            && expressions.all(|expression| self.holds(expression, resource, namespace))
    }
}

#[test]
fn every_request_is_reviewed_once_for_the_policy_that_decides() {
    let all = policies();
    let place = Place {
        namespace: OWN.to_owned(),
        target: Webhook::Url("https://localhost".to_owned()),
        bundle: String::new(),
        anchor: None,
    };
    let mut programs = Programs::default();
    let mut asked = BTreeMap::new();
    for subset in 0_u32..1 << all.len() {
        let chosen =
            all.iter().enumerate().filter(|(place, _)| subset & (1 << place) != 0).map(|(_, policy)| policy);
        let chosen: Vec<&Value> = chosen.collect();
        let read: Vec<Policy> = chosen.iter().map(|policy| Policy::read(policy)).collect();
        let desired = desired(&read, &served().into_iter().collect(), &[], &place, &BTreeMap::new());
        let webhooks =
            desired.mutating.map(|found| found["webhooks"].as_array().cloned().unwrap()).unwrap_or_default();
        for (resource, namespace) in served().iter().flat_map(|resource| {
            ["prod", "test", "shop", "kube-system", EDGE, OWN, ""].map(|namespace| (resource, namespace))
        }) {
            // The namespaces that only a policy which names them means.
            let means = |policy: &&&Value| match namespace {
                OWN => false,
                "kube-system" | EDGE => policy["spec"]["namespaces"]["names"].to_string().contains(namespace),
                _ => true,
            };
            let meant = chosen
                .iter()
                .filter(means)
                .map(|policy| serde_json::from_value::<Kausality>((*policy).clone()).unwrap());
            let decisive = Policies::new(meant.collect());
            let (none, group) = (Labels::new(), resource.group.as_str());
            let target = Target {
                group,
                resource: &resource.plural,
                namespace,
                namespace_labels: Some(&none),
                labels: &none,
            };
            let expected = decisive.mode(&target).map(|(mode, name)| {
                (name.to_owned(), if mode == Mode::Enforce { "Fail" } else { "Ignore" }.to_owned())
            });
            let found = webhooks.iter().filter(|webhook| programs.asks(webhook, resource, namespace));
            let found: Vec<(String, String)> = found
                .map(|webhook| {
                    let name = webhook["name"].as_str().unwrap().split(".drift").next().unwrap().to_owned();
                    (name, webhook["failurePolicy"].as_str().unwrap().to_owned())
                })
                .collect();
            let names: Vec<&Value> = chosen.iter().map(|policy| &policy["metadata"]["name"]).collect();
            assert_eq!(
                found,
                expected.clone().into_iter().collect::<Vec<_>>(),
                "{resource:?} in {namespace:?} with {names:?}"
            );
            *asked.entry(expected.map(|(name, _)| name)).or_insert(0) += 1;
        }
    }
    assert_eq!(asked.len(), all.len() + 1, "each policy wins somewhere: {asked:?}");
}
