//! The kinds that the controller reads and writes.

use kausality_api::{API_VERSION, GROUP};
use kube::core::ApiResource;

pub(super) fn policy() -> ApiResource {
    resource(GROUP, API_VERSION, "Kausality", "kausalities")
}

pub(super) fn mutating() -> ApiResource {
    let plural = "mutatingwebhookconfigurations";
    resource(ADMISSION, "admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", plural)
}

pub(super) fn validating() -> ApiResource {
    let plural = "validatingwebhookconfigurations";
    resource(ADMISSION, "admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", plural)
}

pub(super) fn role() -> ApiResource {
    resource("rbac.authorization.k8s.io", "rbac.authorization.k8s.io/v1", "ClusterRole", "clusterroles")
}

pub(super) fn definition() -> ApiResource {
    let plural = "customresourcedefinitions";
    resource("apiextensions.k8s.io", "apiextensions.k8s.io/v1", "CustomResourceDefinition", plural)
}

pub(super) fn namespace() -> ApiResource {
    resource("", "v1", "Namespace", "namespaces")
}

pub(super) fn secret() -> ApiResource {
    resource("", "v1", "Secret", "secrets")
}

const ADMISSION: &str = "admissionregistration.k8s.io";

fn resource(group: &str, api_version: &str, kind: &str, plural: &str) -> ApiResource {
    ApiResource {
        group: group.to_owned(),
        version: api_version.rsplit('/').next().unwrap_or_default().to_owned(),
        api_version: api_version.to_owned(),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
    }
}
