//! The registration of the webhook with the API server.

use std::sync::Arc;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use kausality_api::{GROUP, policy::Input};
use kube::{
    Api, Client,
    api::{DeleteParams, Patch, PatchParams},
    core::{ApiResource, DynamicObject},
};
use serde_json::{Value, json};

use crate::kinds::Kind;

pub mod excluded;

use excluded::NOT_OF_NODES;

/// The name of the webhook: audit entries begin with it.
pub const WEBHOOK: &str = "drift.kausality.io";

/// The name of the webhook that observes the status of what is watched.
pub const OF_STATUS: &str = "status.kausality.io";

/// The name of the webhook that is asked who decides about drifts, on kinds that are not watched.
pub const OF_DECISIONS: &str = "decisions.kausality.io";

/// The name of the webhook that is asked the same where it is the status that is written.
pub const OF_STATUS_DECISIONS: &str = "decisions-status.kausality.io";

/// The name of the webhook that is asked about policies.
pub const OF_POLICIES: &str = "policies.kausality.io";

/// The policies that it is asked about.
pub const POLICIES: [&str; 3] = ["approvalpolicies", "clusterapprovalpolicies", "kausalities"];

/// What is registered.
#[derive(Clone, Debug)]
pub struct Registration {
    /// The name of the MutatingWebhookConfiguration.
    pub name: String,
    /// Where the API server finds the webhook.
    pub url: String,
    /// The CA that signed the webhook's certificate, as PEM; the API server's own trust, if none.
    pub ca_pem: Option<String>,
    /// The kinds that are watched. Each is reviewed in this one version, whichever a client writes.
    pub kinds: Vec<Arc<Kind>>,
    /// Whether requests fail while the webhook does not answer.
    pub fail_closed: bool,
    /// Namespaces that are left alone.
    pub excluded_namespaces: Vec<String>,
}

/// An update of these groups' kinds that leaves the spec and our annotations alone changes nothing that matters:
/// everything they want is in the spec, unless it changes who owns the object, or a label of one that has an owner, which may
/// select by it. Where a Deployment carries approvals or rejections, other annotations matter too: they bump its generation.
pub const MATTERS: &str = "request.operation != 'UPDATE' || has(request.subResource) \
    || !(request.resource.group in ['apps', 'batch']) \
    || !has(object.spec) || !has(oldObject.spec) || object.spec != oldObject.spec \
    || has(object.metadata.ownerReferences) != has(oldObject.metadata.ownerReferences) \
    || (has(object.metadata.ownerReferences) && object.metadata.ownerReferences != oldObject.metadata.ownerReferences) \
    || (has(oldObject.metadata.ownerReferences) && (has(object.metadata.labels) != has(oldObject.metadata.labels) \
        || (has(object.metadata.labels) && object.metadata.labels != oldObject.metadata.labels))) \
    || (has(object.metadata.annotations) && object.metadata.annotations.exists(k, \
        k in ['kausality.io/approvals', 'kausality.io/rejections'] \
        || (k.startsWith('kausality.io/') && !(has(oldObject.metadata.annotations) \
            && k in oldObject.metadata.annotations \
            && oldObject.metadata.annotations[k] == object.metadata.annotations[k])))) \
    || (has(oldObject.metadata.annotations) && oldObject.metadata.annotations.exists(k, \
        k.startsWith('kausality.io/') && !(has(object.metadata.annotations) && k in object.metadata.annotations)))";

/// An update that changes labels, which matters where a policy selects objects by them.
pub const RELABELS: &str = "has(object.metadata.labels) != has(oldObject.metadata.labels) \
    || (has(object.metadata.labels) && object.metadata.labels != oldObject.metadata.labels)";

/// What of some resources is reviewed and may be denied, where `scope` is `*`, `Cluster` or `Namespaced`: every change of the
/// object and of its scale. Pods change and go by parts of their own, too.
#[must_use]
pub fn rules(group: &str, version: &str, plurals: &[&str], scope: &str) -> Vec<Value> {
    let of =
        |resources: Vec<String>, operations: &[&str]| rule(group, version, &resources, operations, scope);
    let whole = plurals.iter().map(|plural| (*plural).to_owned());
    let mut parts: Vec<String> = plurals.iter().map(|plural| format!("{plural}/scale")).collect();
    let mut rules = vec![of(whole.collect(), &["CREATE", "UPDATE", "DELETE"])];
    if group.is_empty() && plurals.contains(&"pods") {
        parts.extend(["pods/ephemeralcontainers", "pods/resize"].map(ToOwned::to_owned));
        rules.push(of(vec!["pods/eviction".to_owned()], &["CREATE"]));
    }
    rules.insert(1, of(parts, &["UPDATE"]));
    rules
}

/// What of some resources is observed and never denied: their status; and of Pods their bindings, whose annotations end up on
/// them.
#[must_use]
pub fn status_rules(group: &str, version: &str, plurals: &[&str], scope: &str) -> Vec<Value> {
    let parts: Vec<String> = plurals.iter().map(|plural| format!("{plural}/status")).collect();
    let mut rules = vec![rule(group, version, &parts, &["UPDATE"], scope)];
    if group.is_empty() && plurals.contains(&"pods") {
        let bindings = ["bindings", "pods/binding"].map(ToOwned::to_owned);
        rules.push(rule(group, version, &bindings, &["CREATE"], scope));
    }
    rules
}

/// A binding that brings none of our annotations is nobody's business.
const NOT_A_PLAIN_BINDING: &str = "request.operation != 'CREATE' || (has(object.metadata.annotations) \
    && object.metadata.annotations.exists(k, k.startsWith('kausality.io/')))";

fn rule(group: &str, version: &str, resources: &[String], operations: &[&str], scope: &str) -> Value {
    json!({"apiGroups": [group], "apiVersions": [version], "resources": resources, "operations": operations,
        "scope": scope})
}

/// Whether a request changes what people decide about drifts, or what decisions rest on.
#[must_use]
pub fn decides() -> String {
    let keys = Value::from_iter(kausality_core::DECIDING);
    let of = |object: &str| {
        format!(
            "(has({object}.metadata.annotations) && k in {object}.metadata.annotations \
            ? [{object}.metadata.annotations[k]] : [])"
        )
    };
    let (new, old) = (of("object"), of("oldObject"));
    // Facts have names of their own on each object.
    let facts = Value::from_iter(kausality_core::GUARDED.map(|fact| format!("{fact}.")));
    let own = "has(object.metadata.annotations) && object.metadata.annotations.exists(k";
    let kept = "oldObject != null && has(oldObject.metadata.annotations) && k in oldObject.metadata.annotations \
        && oldObject.metadata.annotations[k] == object.metadata.annotations[k]";
    let had =
        "oldObject != null && has(oldObject.metadata.annotations) && oldObject.metadata.annotations.exists(k";
    let still = "has(object.metadata.annotations) && k in object.metadata.annotations";
    format!(
        "{keys}.exists(k, {new} != (oldObject == null ? [] : {old})) \
        || ({own}, {facts}.exists(fact, k.startsWith(fact)) && !({kept}))) \
        || ({had}, {facts}.exists(fact, k.startsWith(fact)) && !({still})))"
    )
}

/// What of some resources is reviewed for decisions about drifts. Their owners may be in no namespace.
#[must_use]
pub fn decision_rule(group: &str, version: &str, plurals: &[&str]) -> Value {
    let resources: Vec<String> = plurals.iter().map(|plural| (*plural).to_owned()).collect();
    rule(group, version, &resources, &["CREATE", "UPDATE"], "*")
}

/// The same of their status, with which some kinds store annotations, too.
#[must_use]
pub fn status_decision_rule(group: &str, version: &str, plurals: &[&str]) -> Value {
    let resources: Vec<String> = plurals.iter().map(|plural| format!("{plural}/status")).collect();
    rule(group, version, &resources, &["UPDATE"], "*")
}

/// Whether a webhook of this name is one of decisions about drifts: of a policy, or [`OF_DECISIONS`].
#[must_use]
pub fn is_of_decisions(name: &str) -> bool {
    let part = name.strip_suffix(GROUP).and_then(|rest| rest.strip_suffix('.'));
    let last = part.and_then(|part| part.rsplit('.').next());
    last.is_some_and(|last| last == "decisions" || last.starts_with("decisions-"))
}

/// The webhook that looks at decisions about drifts where nothing else is looked at, found as `client` says. Only who
/// changes what [`decides`] is about depends on it. `elsewhere` is the condition for what is looked at anyway. Where both
/// may be asked, it must come first, so that it sees what was sent.
#[must_use]
pub fn of_decisions(
    name: &str,
    client: &Value,
    rules: &[Value],
    elsewhere: Option<&str>,
    namespaces: &Value,
    fail_closed: bool,
) -> Value {
    let decides = json!({"name": "decisions", "expression": decides()});
    let elsewhere = elsewhere.map(|it| json!({"name": "not-watched", "expression": format!("!({it})")}));
    let conditions: Vec<Value> = [decides].into_iter().chain(elsewhere).collect();
    json!({
        "name": name,
        "clientConfig": client,
        "rules": rules,
        "matchConditions": conditions,
        "namespaceSelector": namespaces,
        "objectSelector": {},
        "failurePolicy": if fail_closed { "Fail" } else { "Ignore" },
        "reinvocationPolicy": "Never",
        "matchPolicy": "Equivalent",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 10,
    })
}

/// The webhook that observes the status of some resources, found as `client` says. No status is lost, and no controller or
/// kubelet stopped, because nobody answers.
#[must_use]
pub fn of_status(
    name: &str,
    client: &Value,
    rules: &[Value],
    conditions: &[Value],
    namespaces: &Value,
    objects: &Value,
) -> Value {
    let binds = rules.iter().any(|rule| rule["operations"] == json!(["CREATE"]));
    let plain = binds.then(|| json!({"name": "not-a-plain-binding", "expression": NOT_A_PLAIN_BINDING}));
    let conditions: Vec<Value> = plain.into_iter().chain(conditions.iter().cloned()).collect();
    let mut entry = json!({
        "name": name,
        "clientConfig": client,
        "rules": rules,
        "namespaceSelector": namespaces,
        "objectSelector": objects,
        "failurePolicy": "Ignore",
        "reinvocationPolicy": "IfNeeded",
        "matchPolicy": "Equivalent",
        "sideEffects": "NoneOnDryRun",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 5,
    });
    // API servers store no empty list: with one, what is stored would never be what is wanted.
    if !conditions.is_empty() {
        entry["matchConditions"] = conditions.into();
    }
    entry
}

/// What is known that the controllers of a resource act on beside its objects.
pub fn known_inputs<'a>(group: &'a str, plural: &'a str) -> impl Iterator<Item = &'static Input> + use<'a> {
    kausality_core::inputs::known(group, plural)
}

/// What of some resources is observed as inputs of others.
#[must_use]
pub fn input_rule(group: &str, version: &str, plurals: &[&str]) -> Value {
    json!({"apiGroups": [group], "apiVersions": [version], "resources": plurals,
        "operations": ["CREATE", "UPDATE", "DELETE"], "scope": "*"})
}

/// Whether an update changes an input: its intent, its labels, and of `annotated` resources their annotations.
#[must_use]
pub fn changes_input(annotated: &[&str]) -> String {
    let same = |field: &str| {
        format!(
            "(has(object.{field}) == has(oldObject.{field}) \
            && (!has(object.{field}) || object.{field} == oldObject.{field}))"
        )
    };
    let annotations = match annotated {
        [] => String::new(),
        names => {
            let (names, same) = (Value::from_iter(names.iter().copied()), same("metadata.annotations"));
            format!(" && (!(request.resource.resource in {names}) || {same})")
        }
    };
    let parts = ["spec", "data", "binaryData", "metadata.labels"].map(same).join(" && ");
    format!(
        "request.operation != 'UPDATE' || !(has(object.spec) || has(object.data) || has(object.binaryData)) \
        || !({parts}{annotations})"
    )
}

/// What programs do to objects that have an owner is what controllers do: not looked at.
pub const NOT_OF_CONTROLLERS: &str = "!(request.userInfo.username.startsWith('system:') \
    && request.userInfo.username != 'system:admin' \
    && ((object != null && has(object.metadata.ownerReferences) \
        && object.metadata.ownerReferences.exists(o, has(o.controller) && o.controller)) \
    || (oldObject != null && has(oldObject.metadata.ownerReferences) \
        && oldObject.metadata.ownerReferences.exists(o, has(o.controller) && o.controller))))";

/// Whether a webhook of this name only observes inputs.
#[must_use]
pub fn is_of_inputs(name: &str) -> bool {
    let part = name.strip_suffix(GROUP).and_then(|rest| rest.strip_suffix('.'));
    let last = part.and_then(|part| part.rsplit('.').next());
    last.is_some_and(|last| last == "inputs" || last.starts_with("inputs-"))
}

/// The webhook that observes inputs, found as `client` says. It changes and denies nothing, and nobody waits for it for long.
#[must_use]
pub fn of_inputs(
    name: &str,
    client: &Value,
    rules: &[Value],
    annotated: &[&str],
    namespaces: &Value,
) -> Value {
    json!({
        "name": name,
        "clientConfig": client,
        "rules": rules,
        "matchConditions": [
            {"name": "changes-input", "expression": changes_input(annotated)},
            {"name": "not-of-controllers", "expression": NOT_OF_CONTROLLERS},
        ],
        "namespaceSelector": namespaces,
        "objectSelector": {},
        "failurePolicy": "Ignore",
        "reinvocationPolicy": "Never",
        "matchPolicy": "Equivalent",
        "sideEffects": "NoneOnDryRun",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 2,
    })
}

/// The webhook that refuses policies which cannot be understood, found as `client` says. Policies can be written while
/// nobody answers: who relaxes one may do so just because of that.
#[must_use]
pub fn of_policies(client: &Value) -> Value {
    json!({
        "name": OF_POLICIES,
        "clientConfig": client,
        "rules": [{"apiGroups": [GROUP], "apiVersions": ["*"], "resources": POLICIES,
            "operations": ["CREATE", "UPDATE", "DELETE"], "scope": "*"}],
        "namespaceSelector": {},
        "objectSelector": {},
        "failurePolicy": "Ignore",
        "matchPolicy": "Equivalent",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 10,
    })
}

impl Registration {
    fn client(&self, url: &str) -> Value {
        let mut client = json!({"url": url});
        if let (Some(pem), Some(client)) = (&self.ca_pem, client.as_object_mut()) {
            client.insert("caBundle".to_owned(), STANDARD.encode(pem).into());
        }
        client
    }

    /// Another path of the webhook, beside the one where changes are looked at.
    fn beside(&self, path: &str) -> Value {
        self.client(&match self.url.rsplit_once('/') {
            Some((server, _)) => format!("{server}/{path}"),
            None => self.url.clone(),
        })
    }

    /// The webhooks of decisions about drifts, on whatever is not watched.
    fn of_decisions(&self, namespaces: &Value) -> [Value; 2] {
        let watched =
            self.kinds.iter().map(|kind| format!("{}.{}", kind.resource.plural, kind.resource.group));
        let watched = format!(
            "(request.resource.resource + '.' + request.resource.group) in {}",
            Value::from_iter(watched)
        );
        let client = self.beside("decisions");
        let entry = |name: &str, rule: Value, fail_closed: bool| {
            of_decisions(name, &client, &[rule], Some(&watched), namespaces, fail_closed)
        };
        [
            entry(OF_DECISIONS, decision_rule("*", "*", &["*"]), self.fail_closed),
            entry(OF_STATUS_DECISIONS, status_decision_rule("*", "*", &["*"]), false),
        ]
    }

    /// The ValidatingWebhookConfiguration: of policies, which are looked at beside where changes are.
    #[must_use]
    pub fn of_policies(&self) -> Value {
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": self.name, "labels": {"app.kubernetes.io/name": "kausality"}},
            "webhooks": [of_policies(&self.beside("validate"))],
        })
    }

    /// The MutatingWebhookConfiguration.
    #[must_use]
    pub fn manifest(&self) -> Value {
        let client = self.client(&self.url);
        let resources = || self.kinds.iter().map(|kind| &kind.resource);
        let rules = resources()
            .flat_map(|ApiResource { group, version, plural, .. }| rules(group, version, &[plural], "*"));
        let status = resources().flat_map(|ApiResource { group, version, plural, .. }| {
            status_rules(group, version, &[plural], "*")
        });
        let namespaces = excluded::selector(self.excluded_namespaces.iter().map(String::as_str));
        let [decisions, of_status_decisions] = self.of_decisions(&namespaces);
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "MutatingWebhookConfiguration",
            "metadata": {"name": self.name, "labels": {"app.kubernetes.io/name": "kausality"}},
            "webhooks": [{
                "name": WEBHOOK,
                "clientConfig": client,
                "rules": rules.collect::<Vec<Value>>(),
                "matchConditions": [
                    {"name": "intent-or-kausality-annotations", "expression": MATTERS},
                    {"name": "not-of-nodes", "expression": NOT_OF_NODES},
                ],
                "namespaceSelector": namespaces,
                "failurePolicy": if self.fail_closed { "Fail" } else { "Ignore" },
                "reinvocationPolicy": "IfNeeded",
                "matchPolicy": "Equivalent",
                "sideEffects": "NoneOnDryRun",
                "admissionReviewVersions": ["v1"],
                "timeoutSeconds": 10,
            }, of_status(OF_STATUS, &client, &status.collect::<Vec<Value>>(), &[], &namespaces, &json!({})),
            decisions, of_status_decisions],
        })
    }

    /// Registers the webhook, or updates its registration. That of changes comes last: where it is seen, all is done.
    ///
    /// # Errors
    /// If the API server refuses.
    pub async fn apply(&self, client: Client) -> Result<(), kube::Error> {
        let parameters = PatchParams::apply("kausality").force();
        let apply = async |manifest: Value| {
            let api = api(client.clone(), &manifest);
            api.patch(&self.name, &parameters, &Patch::Apply(manifest)).await
        };
        // Policies that make no sense are refused by it. What they say is looked at anyway.
        if let Err(error) = apply(self.of_policies()).await {
            tracing::warn!(%error, "policies are not looked at as they are written: cannot apply \
                validatingwebhookconfiguration/{}", self.name);
        }
        apply(self.manifest()).await?;
        Ok(())
    }

    /// Takes the registration back.
    ///
    /// # Errors
    /// If the API server refuses.
    pub async fn remove(&self, client: Client) -> Result<(), kube::Error> {
        let remove = async |manifest: Value| match api(client.clone(), &manifest)
            .delete(&self.name, &DeleteParams::default())
            .await
        {
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            other => other.map(|_| ()),
        };
        if let Err(error) = remove(self.of_policies()).await {
            tracing::warn!(%error, "delete validatingwebhookconfiguration/{} by hand", self.name);
        }
        remove(self.manifest()).await
    }
}

fn api(client: Client, manifest: &Value) -> Api<DynamicObject> {
    let kind = manifest["kind"].as_str().unwrap_or_default();
    let resource = ApiResource {
        group: "admissionregistration.k8s.io".to_owned(),
        version: "v1".to_owned(),
        api_version: "admissionregistration.k8s.io/v1".to_owned(),
        kind: kind.to_owned(),
        plural: format!("{}s", kind.to_lowercase()),
    };
    Api::all_with(client, &resource)
}
