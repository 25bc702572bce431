//! Objects of the cluster, by their manifests.

use std::{fmt, time::Duration};

use anyhow::{Context, Result, bail};
use kausality_cluster::{Kinds, UnknownKind};
use kube::{
    Api, Client,
    api::{DeleteParams, Patch, PatchParams, ValidationDirective},
    core::{ApiResource, DynamicObject},
};
use serde_json::Value;

/// How long one answer may take. Webhooks of others are asked in between, and each may take 30 s.
const DEADLINE: Duration = Duration::from_secs(60);

/// Who applies: the field manager.
const MANAGER: &str = "kausality-install";

/// The cluster, and what it serves.
pub(crate) struct Objects {
    pub(crate) client: Client,
    kinds: Kinds,
}

/// What an apply did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Applied {
    Created,
    Changed,
    Unchanged,
}

impl fmt::Display for Applied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Created => "created",
            Self::Changed => "changed",
            Self::Unchanged => "unchanged",
        })
    }
}

impl Objects {
    pub(crate) fn new(client: Client) -> Self {
        Self { kinds: Kinds::new(client.clone()), client }
    }

    /// Applies a manifest. What others hold is taken from them only by force.
    pub(crate) async fn apply(&self, manifest: &Value, force: bool) -> Result<Applied> {
        let what = || format!("cannot apply {}", name(manifest));
        let api = self.api(manifest).await.with_context(what)?;
        let of = text(manifest, "/metadata/name");
        let before = explained(in_time(api.get_opt(of)).await).with_context(what)?;
        let parameters = PatchParams {
            force,
            field_manager: Some(MANAGER.to_owned()),
            field_validation: Some(ValidationDirective::Strict),
            ..PatchParams::default()
        };
        let after = in_time(api.patch(of, &parameters, &Patch::Apply(manifest))).await;
        let after = explained(after).with_context(what)?;
        Ok(match before {
            None => Applied::Created,
            Some(before) if written(&before)? == written(&after)? => Applied::Unchanged,
            Some(_) => Applied::Changed,
        })
    }

    /// The object of a manifest as it is, if it is there. Only its kind, name and namespace are looked at.
    pub(crate) async fn get(&self, manifest: &Value) -> Result<Option<Value>> {
        let what = || format!("cannot read {}", name(manifest));
        let Some(api) = served(self.api(manifest).await).with_context(what)? else { return Ok(None) };
        let found = match in_time(api.get_opt(text(manifest, "/metadata/name"))).await {
            // Its kind has gone since.
            Err(kube::Error::Api(status)) if status.code == 404 => None,
            found => explained(found).with_context(what)?,
        };
        Ok(found.map(serde_json::to_value).transpose()?)
    }

    /// Deletes the object of a manifest; false if it is not there.
    pub(crate) async fn delete(&self, manifest: &Value) -> Result<bool> {
        let what = || format!("cannot delete {}", name(manifest));
        let Some(api) = served(self.api(manifest).await).with_context(what)? else { return Ok(false) };
        let parameters = DeleteParams::background();
        match in_time(api.delete(text(manifest, "/metadata/name"), &parameters)).await {
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(false),
            answer => explained(answer).map(|_| true).with_context(what),
        }
    }

    /// How objects of the manifest's kind are reached, in the version that it is written in.
    async fn api(&self, manifest: &Value) -> Result<Api<DynamicObject>> {
        let (version, kind) = (text(manifest, "/apiVersion"), text(manifest, "/kind"));
        let known = self.kinds.of_kind(version, kind).await?;
        let (group, short) = version.split_once('/').unwrap_or(("", version));
        let resource = ApiResource {
            group: group.to_owned(),
            version: short.to_owned(),
            api_version: version.to_owned(),
            kind: kind.to_owned(),
            plural: known.resource.plural.clone(),
        };
        Ok(if known.namespaced {
            Api::namespaced_with(self.client.clone(), text(manifest, "/metadata/namespace"), &resource)
        } else {
            Api::all_with(self.client.clone(), &resource)
        })
    }
}

/// What people write of an object. Controllers write its status at any time.
fn written(object: &DynamicObject) -> Result<Value> {
    let mut object = serde_json::to_value(object)?;
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
    }
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.retain(|field, _| !matches!(field.as_str(), "managedFields" | "resourceVersion"));
    }
    Ok(object)
}

/// An object as people name it.
pub(crate) fn name(manifest: &Value) -> String {
    format!("{} {}", text(manifest, "/kind"), text(manifest, "/metadata/name"))
}

pub(crate) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// Whether a condition of an object is true.
pub(crate) fn holds(object: &Value, condition: &str) -> bool {
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
    conditions.is_some_and(|all| all.iter().any(|one| one["type"] == condition && one["status"] == "True"))
}

async fn in_time<T>(answer: impl Future<Output = Result<T, kube::Error>>) -> Result<T, kube::Error> {
    tokio::time::timeout(DEADLINE, answer).await.unwrap_or_else(|_| {
        let silence = format!("no answer within {} s", DEADLINE.as_secs());
        Err(kube::Error::Service(std::io::Error::other(silence).into()))
    })
}

/// An answer, or what to do about it.
fn explained<T>(answer: Result<T, kube::Error>) -> Result<T> {
    match answer {
        Ok(value) => Ok(value),
        Err(kube::Error::Api(status)) if status.code == 403 => bail!(
            "{}\nThis takes an administrator of the cluster: choose another user with --context or --as",
            status.message
        ),
        Err(kube::Error::Api(status)) if status.code == 409 => bail!(
            "{}\nSomebody else holds these fields: take them with --force-conflicts, or leave the object to them",
            status.message
        ),
        Err(kube::Error::Api(status)) => bail!("{}", status.message),
        Err(error) => Err(error).context("no answer: is the cluster reachable, the kubeconfig right?"),
    }
}

/// How objects are reached; nothing, where their kind is not served, so that there are none.
fn served(api: Result<Api<DynamicObject>>) -> Result<Option<Api<DynamicObject>>> {
    match api {
        Ok(api) => Ok(Some(api)),
        Err(error) if matches!(error.downcast_ref(), Some(UnknownKind::NotServed(_))) => Ok(None),
        Err(error) => Err(error),
    }
}
