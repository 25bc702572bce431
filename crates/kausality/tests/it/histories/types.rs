//! The types of the kinds that histories are about.

use std::sync::Arc;

use kausality_cluster::Schemas;
use kausality_fields::{
    schema::{self, GroupVersionKind, TypeRef},
    typed::Type,
};
use kube::Client;

use crate::ownership::kinds::{KINDS, Kind};

pub(crate) struct Types(Vec<(Arc<schema::Kinds>, TypeRef)>);

impl Types {
    pub(crate) async fn learn(client: &Client) -> Result<Self, String> {
        let schemas = Schemas::new(client.clone());
        let mut types = Vec::new();
        for kind in KINDS {
            let known = schemas.of(kind.api_version()).await.map_err(|error| format!("{error:#}"))?;
            let of = known.type_of(&GroupVersionKind::new(kind.api_version(), kind.name()));
            types.push((known, of.ok_or_else(|| format!("no type of {kind:?}"))?));
        }
        Ok(Self(types))
    }

    pub(crate) fn of(&self, kind: Kind) -> Type<'_> {
        let (kinds, of) = &self.0[KINDS.iter().position(|other| *other == kind).unwrap()];
        Type::new(&kinds.schema, of)
    }
}
