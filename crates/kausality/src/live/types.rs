//! The types of the objects of manifests, each found once.

use std::{collections::HashMap, sync::Arc};

use kausality_cluster::{Kind, Schemas};
use kausality_fields::{
    schema::{self, GroupVersionKind, TypeRef, structural},
    typed::Type,
};
use tokio::sync::OnceCell;

use super::server::Server;
use crate::manifests::Manifest;

/// Types of kinds, and of the API versions that they are in.
pub(crate) struct Types {
    schemas: Schemas,
    versions: HashMap<String, OnceCell<Option<Arc<schema::Kinds>>>>,
    kinds: HashMap<GroupVersionKind, OnceCell<Option<KindType>>>,
}

/// The type of a kind.
#[derive(Clone, Debug)]
pub(crate) struct KindType {
    kinds: Arc<schema::Kinds>,
    of: TypeRef,
}

impl KindType {
    fn new(kinds: Arc<schema::Kinds>, gvk: &GroupVersionKind) -> Option<Self> {
        let of = kinds.type_of(gvk)?;
        Some(Self { kinds, of })
    }

    pub(crate) fn get(&self) -> Type<'_> {
        Type::new(&self.kinds.schema, &self.of)
    }
}

impl Types {
    /// Of these manifests.
    pub(crate) fn of_manifests(schemas: Schemas, manifests: &[Manifest]) -> Self {
        let version = |manifest: &Manifest| manifest.text("/apiVersion").to_owned();
        let kind =
            |manifest: &Manifest| GroupVersionKind::new(manifest.text("/apiVersion"), manifest.text("/kind"));
        Self {
            schemas,
            versions: manifests.iter().map(|manifest| (version(manifest), OnceCell::new())).collect(),
            kinds: manifests.iter().map(|manifest| (kind(manifest), OnceCell::new())).collect(),
        }
    }

    /// The type of a kind of the manifests; `None` if the API server does not describe it.
    pub(crate) async fn of(&self, server: &Server, kind: &Kind, gvk: &GroupVersionKind) -> Option<KindType> {
        let find = async || match self.defined(server, kind, gvk).await {
            Some(found) => Some(found),
            None => KindType::new(self.version(&kind.resource.api_version).await?, gvk),
        };
        self.kinds.get(gvk)?.get_or_init(find).await.clone()
    }

    async fn version(&self, api_version: &str) -> Option<Arc<schema::Kinds>> {
        let find = async || self.schemas.of(api_version).await.ok();
        self.versions.get(api_version)?.get_or_init(find).await.clone()
    }

    /// From the CustomResourceDefinition, if there is one and it may be read: what the API server publishes of custom
    /// resources lags behind by seconds.
    async fn defined(&self, server: &Server, kind: &Kind, gvk: &GroupVersionKind) -> Option<KindType> {
        if !gvk.group.contains('.') {
            return None;
        }
        let name = format!("{}.{}", kind.resource.plural, gvk.group);
        let url = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        let definition = server.get(url, &name).await.ok()?;
        KindType::new(Arc::new(structural::custom_resource(&definition).ok()?), gvk)
    }
}
