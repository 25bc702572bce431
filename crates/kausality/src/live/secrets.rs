//! Which fields commands must not show.

use kausality_api::{API_VERSION, GROUP, policy::Kausality};
use kausality_core::policy::Policies;
use kausality_fields::Redaction;
use kube::{
    Api, Client,
    api::{DynamicObject, ListParams},
    core::ApiResource,
};

use super::salt;
use crate::ledger::within;

/// Hides secrets: those of any cluster, and the fields that its `Kausality` policies name (`spec.redact`).
pub(crate) struct Secrets {
    salt: Vec<u8>,
    policies: Policies,
}

impl Secrets {
    /// Policies that this user may not read, or that are not installed, hide nothing: the user may read the objects themselves.
    pub(crate) async fn of(client: &Client) -> Self {
        let resource = policy_resource();
        let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
        let found = within("cannot list policies", api.list(&ListParams::default())).await;
        let policies = found.map(|list| list.items).unwrap_or_default().into_iter().filter_map(|policy| {
            serde_json::from_value::<Kausality>(serde_json::to_value(policy).ok()?).ok()
        });
        Self { salt: salt(), policies: Policies::new(policies.collect()) }
    }

    /// How secrets in objects of a resource are hidden.
    pub(crate) fn redaction(&self, resource: &ApiResource) -> Redaction {
        let fields = self.policies.redacted(&resource.group, &resource.plural);
        Redaction::new(self.salt.as_slice()).with_fields(fields)
    }
}

/// The resource of `Kausality` policies.
pub(crate) fn policy_resource() -> ApiResource {
    ApiResource {
        group: GROUP.to_owned(),
        version: API_VERSION.rsplit('/').next().unwrap_or_default().to_owned(),
        api_version: API_VERSION.to_owned(),
        kind: "Kausality".to_owned(),
        plural: "kausalities".to_owned(),
    }
}
