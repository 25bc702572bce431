//! The registration of the webhook with the API server.

use std::sync::Arc;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use kausality_api::GROUP;
use kube::{
    Api, Client,
    api::{DeleteParams, Patch, PatchParams},
    core::{ApiResource, DynamicObject},
};
use serde_json::{Value, json};

use crate::kinds::Kind;

/// The name of the webhook: audit entries begin with it.
pub const WEBHOOK: &str = "drift.kausality.io";

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
/// everything they want is in the spec, unless it takes the object from its owner. Where a Deployment carries approvals
/// or rejections, other annotations matter too: they bump its generation.
pub const MATTERS: &str = "request.operation != 'UPDATE' || has(request.subResource) \
    || !(request.resource.group in ['apps', 'batch']) \
    || !has(object.spec) || !has(oldObject.spec) || object.spec != oldObject.spec \
    || (has(oldObject.metadata.ownerReferences) && !(has(object.metadata.ownerReferences) \
        && object.metadata.ownerReferences == oldObject.metadata.ownerReferences)) \
    || (has(object.metadata.annotations) && object.metadata.annotations.exists(k, \
        k in ['kausality.io/approvals', 'kausality.io/rejections'] \
        || (k.startsWith('kausality.io/') && !(has(oldObject.metadata.annotations) \
            && k in oldObject.metadata.annotations \
            && oldObject.metadata.annotations[k] == object.metadata.annotations[k])))) \
    || (has(oldObject.metadata.annotations) && oldObject.metadata.annotations.exists(k, \
        k.startsWith('kausality.io/') && !(has(object.metadata.annotations) && k in object.metadata.annotations)))";

/// What of some resources is reviewed, where `scope` is `*`, `Cluster` or `Namespaced`: every change of the object, of
/// its status, and of its scale.
#[must_use]
pub fn rules(group: &str, version: &str, plurals: &[&str], scope: &str) -> [Value; 2] {
    let of = |resources: Vec<String>, operations: &[&str]| {
        json!({"apiGroups": [group], "apiVersions": [version], "resources": resources, "operations": operations,
            "scope": scope})
    };
    let whole = plurals.iter().map(|plural| (*plural).to_owned());
    let parts = plurals.iter().flat_map(|plural| [format!("{plural}/status"), format!("{plural}/scale")]);
    [of(whole.collect(), &["CREATE", "UPDATE", "DELETE"]), of(parts.collect(), &["UPDATE"])]
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

    /// The ValidatingWebhookConfiguration: of policies, which are looked at beside where changes are.
    #[must_use]
    pub fn of_policies(&self) -> Value {
        let url = match self.url.rsplit_once('/') {
            Some((server, _)) => format!("{server}/validate"),
            None => self.url.clone(),
        };
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": self.name, "labels": {"app.kubernetes.io/name": "kausality"}},
            "webhooks": [of_policies(&self.client(&url))],
        })
    }

    /// The MutatingWebhookConfiguration.
    #[must_use]
    pub fn manifest(&self) -> Value {
        let client = self.client(&self.url);
        let rules = self.kinds.iter().flat_map(|kind| {
            let ApiResource { group, version, plural, .. } = &kind.resource;
            rules(group, version, &[plural], "*")
        });
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "MutatingWebhookConfiguration",
            "metadata": {"name": self.name, "labels": {"app.kubernetes.io/name": "kausality"}},
            "webhooks": [{
                "name": WEBHOOK,
                "clientConfig": client,
                "rules": rules.collect::<Vec<Value>>(),
                "matchConditions": [{"name": "intent-or-kausality-annotations", "expression": MATTERS}],
                "namespaceSelector": {"matchExpressions": [{
                    "key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": self.excluded_namespaces,
                }]},
                "failurePolicy": if self.fail_closed { "Fail" } else { "Ignore" },
                "reinvocationPolicy": "IfNeeded",
                "matchPolicy": "Equivalent",
                "sideEffects": "NoneOnDryRun",
                "admissionReviewVersions": ["v1"],
                "timeoutSeconds": 10,
            }],
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
