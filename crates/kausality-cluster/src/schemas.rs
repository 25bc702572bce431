//! The types of objects, as the API server serves them.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use kausality_fields::schema::{self, SchemaError, openapi};
use kube::Client;
use serde::Deserialize;

/// The types of the API versions that have been asked for. Each is fetched once.
pub struct Schemas {
    client: Client,
    known: Mutex<BTreeMap<String, Arc<schema::Kinds>>>,
    places: tokio::sync::OnceCell<BTreeMap<String, Place>>,
}

/// Why types are not known.
#[derive(Debug, thiserror::Error)]
pub enum NoSchema {
    /// The API server could not be asked.
    #[error("the types of {0} cannot be read: {1}")]
    Failed(String, String),
    /// The API server does not serve this version.
    #[error("the API server does not serve {0}")]
    NotServed(String),
    /// The API server's description makes no sense.
    #[error("the types of {0} make no sense: {1}")]
    Bad(String, SchemaError),
}

#[derive(Debug, Deserialize)]
struct Index {
    paths: BTreeMap<String, Place>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Place {
    #[serde(rename = "serverRelativeURL")]
    url: String,
}

impl Schemas {
    /// The types of the cluster behind `client`.
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self { client, known: Mutex::default(), places: tokio::sync::OnceCell::new() }
    }

    /// The types of this API version.
    ///
    /// # Errors
    /// If it is not served, cannot be asked for, or makes no sense.
    pub async fn of(&self, api_version: &str) -> Result<Arc<schema::Kinds>, NoSchema> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).get(api_version).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let failed = |error: kube::Error| NoSchema::Failed(api_version.to_owned(), error.to_string());
        let places = self.places.get_or_try_init(|| self.places()).await.map_err(failed)?;
        let path = if api_version.contains('/') {
            format!("apis/{api_version}")
        } else {
            format!("api/{api_version}")
        };
        let place = places.get(&path).ok_or_else(|| NoSchema::NotServed(api_version.to_owned()))?;
        let text = self.get(&place.url).await.map_err(failed)?;
        let kinds = openapi::parse(&text).map_err(|error| NoSchema::Bad(api_version.to_owned(), error))?;
        let kinds = Arc::new(kinds);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(api_version.to_owned(), kinds.clone());
        Ok(kinds)
    }

    async fn places(&self) -> Result<BTreeMap<String, Place>, kube::Error> {
        let text = self.get("/openapi/v3").await?;
        Ok(serde_json::from_str::<Index>(&text).map_err(kube::Error::SerdeError)?.paths)
    }

    async fn get(&self, url: &str) -> Result<String, kube::Error> {
        let request = http::Request::get(url).body(Vec::new()).map_err(kube::Error::HttpError)?;
        self.client.request_text(request).await
    }
}
