//! The registration of the webhook with the API server.

use std::sync::Arc;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use kausality_api::{
    GROUP,
    annotation::{APPROVALS, FREEZE, PREFIX, REJECTIONS, SYSTEM, TRACE, UPDATERS},
    policy::Input,
};
use kausality_core::class::status_stores_metadata;
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

/// The name of the webhook of what is not looked into before it is asked about, where there is something else.
pub const OF_PLAIN: &str = "drift-plain.kausality.io";

/// The name of the webhook that observes the status of what is watched.
pub const OF_STATUS: &str = "status.kausality.io";

/// The name of the webhook that is asked about metadata that is written by way of a status.
pub const OF_STATUS_METADATA: &str = "status-metadata.kausality.io";

/// The name of the webhook that is asked who decides about drifts, on parents that are not watched.
pub const OF_DECISIONS: &str = "decisions.kausality.io";

/// The name of the webhook that is asked the same where it is the status that is written.
pub const OF_STATUS_DECISIONS: &str = "decisions-status.kausality.io";

/// The name of the webhook that is asked the same about namespaces, whose modes hold for all that is in them.
pub const OF_NAMESPACES: &str = "decisions-namespaces.kausality.io";

/// The name of the webhook that is asked about policies.
pub const OF_POLICIES: &str = "policies.kausality.io";

/// The policies that it is asked about.
pub const POLICIES: [&str; 3] = ["approvalpolicies", "clusterapprovalpolicies", "kausalities"];

/// What is registered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registration {
    /// The name of the MutatingWebhookConfiguration.
    pub name: String,
    /// Where the API server finds the webhook.
    pub url: String,
    /// The CA that signed the webhook's certificate, as PEM; the API server's own trust, if none.
    pub ca_pem: Option<String>,
    /// The kinds that are watched. Each is reviewed in this one version, whichever a client writes.
    pub kinds: Vec<Arc<Kind>>,
    /// Other kinds whose objects own some of those that are watched.
    pub parents: Vec<Arc<Kind>>,
    /// Whether requests fail while the webhook does not answer.
    pub fail_closed: bool,
    /// Namespaces that are left alone.
    pub excluded_namespaces: Vec<String>,
}

/// An update that changes owners.
const REOWNS: &str = "has(object.metadata.ownerReferences) != has(oldObject.metadata.ownerReferences) \
    || (has(object.metadata.ownerReferences) \
        && object.metadata.ownerReferences != oldObject.metadata.ownerReferences)";

/// Whether a request may matter. An update of some groups' kinds that leaves the spec and our annotations alone changes nothing
/// that does: everything they want is in the spec, unless it gives the object another owner, or changes labels of one that has an
/// owner, which may select by them. Where a Deployment carries approvals or rejections, other annotations matter too: they bump its
/// generation.
#[must_use]
pub fn matters() -> String {
    let entries = Value::from_iter([APPROVALS, REJECTIONS]);
    let ours = changes_ours(&[]);
    format!(
        "request.operation != 'UPDATE' || has(request.subResource) \
        || !(request.resource.group in ['apps', 'batch']) \
        || !has(object.spec) || !has(oldObject.spec) || object.spec != oldObject.spec || {REOWNS} \
         || (has(oldObject.metadata.ownerReferences) && ({RELABELS})) \
        || (has(object.metadata.annotations) && {entries}.exists(k, k in object.metadata.annotations)) || {ours}"
    )
}

/// Resources of the core group of which every change is asked about, without a look into it: no node writes them, the API server
/// itself only in `kube-system`, and all that they want may matter. A look at a large object costs an API server half as much as
/// to ask.
const PLAIN: [&str; 3] = ["configmaps", "persistentvolumeclaims", "secrets"];

/// Whether API servers are to ask about every change of a resource, instead of finding out before whether it
/// [may matter](matters). That pays where many changes do not, and is needed where a node may have to write while nobody answers.
#[must_use]
pub fn is_plain(group: &str, plural: &str) -> bool {
    group.is_empty() && PLAIN.contains(&plural)
}

/// Whether annotations of ours are added, changed or removed, but for those whose names begin so.
fn changes_ours(but: &[&str]) -> String {
    let but = match but {
        [] => String::new(),
        names => {
            format!(" && !{}.exists(name, k.startsWith(name))", Value::from_iter(names.iter().copied()))
        }
    };
    let ours = format!("k.startsWith('{PREFIX}'){but}");
    format!(
        "(has(object.metadata.annotations) && object.metadata.annotations.exists(k, {ours} \
            && !(oldObject != null && has(oldObject.metadata.annotations) && k in oldObject.metadata.annotations \
            && oldObject.metadata.annotations[k] == object.metadata.annotations[k]))) \
        || (oldObject != null && has(oldObject.metadata.annotations) \
            && oldObject.metadata.annotations.exists(k, {ours} \
            && !(has(object.metadata.annotations) && k in object.metadata.annotations)))"
    )
}

/// An update that changes labels, which matters where a policy selects objects by them.
pub const RELABELS: &str = "has(object.metadata.labels) != has(oldObject.metadata.labels) \
    || (has(object.metadata.labels) && object.metadata.labels != oldObject.metadata.labels)";

/// What of some resources is reviewed and may be denied, where `scope` is `*`, `Cluster` or `Namespaced`: every change of the
/// object. Pods change by parts of their own, too.
#[must_use]
pub fn rules(group: &str, version: &str, plurals: &[&str], scope: &str) -> Vec<Value> {
    let whole: Vec<String> = plurals.iter().map(|plural| (*plural).to_owned()).collect();
    let mut rules = vec![rule(group, version, &whole, &["CREATE", "UPDATE", "DELETE"], scope)];
    if has_pods(group, plurals) {
        let parts = ["pods/ephemeralcontainers", "pods/resize"].map(ToOwned::to_owned);
        rules.push(rule(group, version, &parts, &["UPDATE"], scope));
    }
    rules
}

/// What is done to some resources by objects of other kinds, which do not have their labels: their scale; and Pods are evicted,
/// and bound to nodes, where annotations of the Binding end up on them.
#[must_use]
pub fn part_rules(group: &str, version: &str, plurals: &[&str], scope: &str) -> Vec<Value> {
    let scales: Vec<String> = plurals.iter().map(|plural| format!("{plural}/scale")).collect();
    let mut rules = vec![rule(group, version, &scales, &["UPDATE"], scope)];
    if has_pods(group, plurals) {
        let parts = ["bindings", "pods/binding", "pods/eviction"].map(ToOwned::to_owned);
        rules.push(rule(group, version, &parts, &["CREATE"], scope));
    }
    rules
}

/// What of some resources is observed and never denied: their status.
#[must_use]
pub fn status_rules(group: &str, version: &str, plurals: &[&str], scope: &str) -> Vec<Value> {
    let parts: Vec<String> = plurals.iter().map(|plural| format!("{plural}/status")).collect();
    vec![rule(group, version, &parts, &["UPDATE"], scope)]
}

/// Whether Pods are among these.
#[must_use]
pub fn has_pods(group: &str, plurals: &[&str]) -> bool {
    group.is_empty() && plurals.contains(&"pods")
}

/// A binding that brings none of our annotations is nobody's business.
pub const NOT_A_PLAIN_BINDING: &str = "!(request.resource.group == '' && (request.resource.resource == 'bindings' \
    || (has(request.subResource) && request.subResource == 'binding'))) || (has(object.metadata.annotations) \
    && object.metadata.annotations.exists(k, k.startsWith('kausality.io/')))";

/// Whether an update of a status changes metadata that is stored: owners, annotations of ours other than facts, or what `more`
/// says. Who reports on an object leaves them alone.
#[must_use]
pub fn changes_metadata(more: Option<&str>) -> String {
    let facts = SYSTEM.map(|fact| format!("{fact}."));
    let ours = changes_ours(&facts.each_ref().map(String::as_str));
    let more = more.map(|more| format!(" || {more}")).unwrap_or_default();
    format!(
        "(!request.resource.group.contains('.') || request.resource.group.endsWith('.k8s.io')) \
        && ({REOWNS} || {ours}{more})"
    )
}

fn rule(group: &str, version: &str, resources: &[String], operations: &[&str], scope: &str) -> Value {
    json!({"apiGroups": [group], "apiVersions": [version], "resources": resources, "operations": operations,
        "scope": scope})
}

/// Whether a request changes what people write, or what decisions rest on; or deletes what people have decided with its object.
/// Traces are nobody's business here.
#[must_use]
pub fn decides() -> String {
    let orders = Value::from_iter([FREEZE, REJECTIONS]);
    let ours = changes_ours(&[TRACE, UPDATERS]);
    let ordered = format!(
        "oldObject != null && has(oldObject.metadata.annotations) && {orders}.exists(k, k in oldObject.metadata.annotations)"
    );
    format!("request.operation == 'DELETE' ? ({ordered}) : ({ours} || ({ordered} && ({REOWNS})))")
}

/// What of some resources is reviewed for decisions about drifts. Their owners may be in no namespace.
#[must_use]
pub fn decision_rule(group: &str, version: &str, plurals: &[&str]) -> Value {
    let resources: Vec<String> = plurals.iter().map(|plural| (*plural).to_owned()).collect();
    rule(group, version, &resources, &["CREATE", "UPDATE", "DELETE"], "*")
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
/// changes what [`decides`] is about depends on it, and no kubelet. `elsewhere` is the condition for what is looked at
/// anyway. Where both may be asked, it must come first, so that it sees what was sent.
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
    let not_of_nodes = json!({"name": "not-of-nodes", "expression": NOT_OF_NODES});
    let elsewhere = elsewhere.map(|it| json!({"name": "not-watched", "expression": format!("!({it})")}));
    let conditions: Vec<Value> = [decides, not_of_nodes].into_iter().chain(elsewhere).collect();
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

/// The webhook that tells who writes annotations onto a namespace what is wrong with them, found as `client` says. No write of
/// a namespace waits for an answer: where approvals take a right, a mode passes without it while nobody answers.
#[must_use]
pub fn of_namespaces(client: &Value, namespaces: &Value) -> Value {
    let rule = rule("", "v1", &["namespaces".to_owned()], &["CREATE", "UPDATE"], "Cluster");
    of_decisions(OF_NAMESPACES, client, &[rule], None, namespaces, false)
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
    set_conditions(&mut entry, conditions);
    entry
}

/// Gives a webhook its conditions. API servers store no empty list: with one, what is stored would never be what is wanted.
pub fn set_conditions(entry: &mut Value, conditions: &[Value]) {
    if !conditions.is_empty() {
        entry["matchConditions"] = conditions.into();
    }
}

/// The webhook that is asked about metadata that is written by way of a status, found as `client` says. What is denied to
/// whoever writes the object must not pass there because nobody answers.
#[must_use]
pub fn of_status_metadata(
    name: &str,
    client: &Value,
    rules: &[Value],
    conditions: &[Value],
    namespaces: &Value,
    objects: &Value,
) -> Value {
    let mut entry = of_status(name, client, rules, conditions, namespaces, objects);
    entry["failurePolicy"] = "Fail".into();
    entry["timeoutSeconds"] = 10.into();
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

    /// The webhooks of decisions about drifts, on parents that are not watched.
    fn of_decisions(&self, namespaces: &Value) -> Vec<Value> {
        let client = self.beside("decisions");
        let is_namespace = |it: &ApiResource| it.group.is_empty() && it.plural == "namespaces";
        let parents = || self.parents.iter().map(|kind| &kind.resource).filter(|it| !is_namespace(it));
        let entry = |name: &str, rule: fn(&str, &str, &[&str]) -> Value, fail_closed: bool| {
            let rules: Vec<Value> = parents().map(|it| rule(&it.group, &it.version, &[&it.plural])).collect();
            of_decisions(name, &client, &rules, None, namespaces, fail_closed)
        };
        let mut entries = Vec::new();
        if parents().next().is_some() {
            entries.push(entry(OF_DECISIONS, decision_rule, self.fail_closed));
            entries.push(entry(OF_STATUS_DECISIONS, status_decision_rule, false));
        }
        if !self.kinds.iter().any(|kind| is_namespace(&kind.resource)) {
            entries.push(of_namespaces(&client, namespaces));
        }
        entries
    }

    /// The webhooks of the status of what is watched. What changes metadata is left to the second.
    fn of_status(&self, client: &Value, namespaces: &Value) -> Vec<Value> {
        let resources = || self.kinds.iter().map(|kind| &kind.resource);
        let rules = |it: &ApiResource| status_rules(&it.group, &it.version, &[&it.plural], "*");
        let all: Vec<Value> = resources().flat_map(rules).collect();
        let stored: Vec<Value> =
            resources().filter(|it| status_stores_metadata(&it.group)).flat_map(rules).collect();
        let condition = |name: &str, expression: String| json!({"name": name, "expression": expression});
        let entry =
            |conditions: &[Value]| of_status(OF_STATUS, client, &all, conditions, namespaces, &json!({}));
        if !self.fail_closed || stored.is_empty() {
            return vec![entry(&[])];
        }
        let changes = changes_metadata(None);
        let conditions = [
            condition("metadata-changes", changes.clone()),
            condition("not-of-nodes", NOT_OF_NODES.to_owned()),
        ];
        vec![
            entry(&[condition("metadata-unchanged", format!("!({changes})"))]),
            of_status_metadata(OF_STATUS_METADATA, client, &stored, &conditions, namespaces, &json!({})),
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
        let namespaces = excluded::selector(self.excluded_namespaces.iter().map(String::as_str));
        let mut webhooks = self.of_changes(&client, &namespaces);
        webhooks.extend(self.of_status(&client, &namespaces));
        webhooks.extend(self.of_decisions(&namespaces));
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "MutatingWebhookConfiguration",
            "metadata": {"name": self.name, "labels": {"app.kubernetes.io/name": "kausality"}},
            "webhooks": webhooks,
        })
    }

    /// The webhooks of changes: of what is looked into before, and of what is not.
    fn of_changes(&self, client: &Value, namespaces: &Value) -> Vec<Value> {
        let conditions = [
            json!({"name": "intent-or-kausality-annotations", "expression": matters()}),
            json!({"name": "not-of-nodes", "expression": NOT_OF_NODES}),
            json!({"name": "not-a-plain-binding", "expression": NOT_A_PLAIN_BINDING}),
        ];
        let resources = self.kinds.iter().map(|kind| &kind.resource);
        let (plain, others): (Vec<&ApiResource>, Vec<&ApiResource>) =
            resources.partition(|it| is_plain(&it.group, &it.plural));
        let entry = |name: &str, resources: &[&ApiResource], conditions: &[Value]| {
            let rules = resources.iter().flat_map(|ApiResource { group, version, plural, .. }| {
                let parts = match is_plain(group, plural) {
                    true => Vec::new(),
                    false => part_rules(group, version, &[plural], "*"),
                };
                [rules(group, version, &[plural], "*"), parts].concat()
            });
            let mut entry = json!({
                "name": name,
                "clientConfig": client,
                "rules": rules.collect::<Vec<Value>>(),
                "namespaceSelector": namespaces,
                "failurePolicy": if self.fail_closed { "Fail" } else { "Ignore" },
                "reinvocationPolicy": "IfNeeded",
                "matchPolicy": "Equivalent",
                "sideEffects": "NoneOnDryRun",
                "admissionReviewVersions": ["v1"],
                "timeoutSeconds": 10,
            });
            set_conditions(&mut entry, conditions);
            entry
        };
        match (&*others, &*plain) {
            ([], plain) => vec![entry(WEBHOOK, plain, &[])],
            (others, []) => vec![entry(WEBHOOK, others, &conditions)],
            (others, plain) => vec![entry(WEBHOOK, others, &conditions), entry(OF_PLAIN, plain, &[])],
        }
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

#[cfg(test)]
mod tests;
