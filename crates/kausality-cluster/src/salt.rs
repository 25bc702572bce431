//! What goes into the digests of secrets: the same in all replicas, and for nobody else to know.

use std::{sync::Arc, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use kube::{
    Api, Client,
    core::{ApiResource, DynamicObject},
};
use tokio::time::sleep;

use crate::{cluster::Cluster, namespaces};

/// The Secret of the salt, in the namespace of Kausality. The controller makes it, once.
pub const SECRET: &str = "kausality-salt";

/// The field of that Secret.
pub const FIELD: &str = "salt";

/// How soon the Secret is looked for again while it is not there.
const MISSING: Duration = Duration::from_secs(5);

/// How often it is read once it is there: whoever deletes it has replicas disagree until then.
const AGAIN: Duration = Duration::from_secs(60);

/// How long the API server may take to answer.
const ANSWER: Duration = Duration::from_secs(10);

impl Cluster {
    /// The salt where nobody has made one: the uid of the namespace that every cluster has. It differs between clusters, and not
    /// between replicas, but many may read it.
    ///
    /// # Errors
    /// If the API server does not tell.
    pub async fn public_salt(client: &Client) -> Result<Vec<u8>, kube::Error> {
        let api: Api<DynamicObject> = Api::all_with(client.clone(), &namespaces::resource());
        let namespace = api.get("kube-system").await?;
        Ok(namespace.metadata.uid.unwrap_or_default().into_bytes())
    }

    /// The salt of an installation in this namespace; nothing, if it is not made yet, or may not be read: digests that more
    /// people can guess are better than no admission.
    ///
    /// # Errors
    /// If the API server does not tell.
    pub async fn salt(client: &Client, namespace: &str) -> Result<Option<Vec<u8>>, kube::Error> {
        let resource = ApiResource {
            group: String::new(),
            version: "v1".to_owned(),
            api_version: "v1".to_owned(),
            kind: "Secret".to_owned(),
            plural: "secrets".to_owned(),
        };
        let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &resource);
        let secret = match api.get_opt(SECRET).await {
            Err(kube::Error::Api(status)) if status.code == 403 => None,
            read => read?,
        };
        let text = secret.as_ref().and_then(|secret| secret.data.get("data")?.get(FIELD)?.as_str());
        Ok(text.and_then(|text| STANDARD.decode(text).ok()).filter(|salt| !salt.is_empty()))
    }

    /// Takes over the salt of an installation as soon as it is there, for ever.
    pub async fn follow_salt(self: Arc<Self>, namespace: String) {
        loop {
            let read = tokio::time::timeout(ANSWER, Self::salt(&self.fresh, &namespace)).await;
            let is_there = match read {
                Ok(Ok(Some(salt))) => {
                    if self.settings().salt != salt {
                        tracing::info!(secret = SECRET, "digests of secrets have another salt");
                        self.set_salt(&salt);
                    }
                    true
                }
                Ok(Ok(None)) => false,
                // It is asked again soon, and what is known holds on.
                Ok(Err(_)) | Err(_) => true,
            };
            sleep(if is_there { AGAIN } else { MISSING }).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use http::{Request, Response};
    use kube::client::Body;
    use serde_json::{Value, json};

    use super::*;

    fn client(code: u16, answer: Value) -> Client {
        let service = tower::service_fn(move |request: Request<Body>| {
            assert_eq!(request.uri().path(), "/api/v1/namespaces/kausality-system/secrets/kausality-salt");
            let answer = Response::builder().status(code).body(Body::from(answer.to_string().into_bytes()));
            async move { Ok::<_, std::convert::Infallible>(answer.unwrap()) }
        });
        Client::new(service, "default")
    }

    #[tokio::test]
    async fn a_salt_that_is_not_there_or_may_not_be_read_is_none() {
        let secret = |data: Value| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": SECRET}, "data": data});
        let failure = |code: u16| {
            let reason = if code == 404 { "NotFound" } else { "Testing" };
            json!({"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": ""})
        };
        for (code, answer, expected) in [
            (200, secret(json!({FIELD: STANDARD.encode("sea")})), Ok(Some(b"sea".to_vec()))),
            (200, secret(json!({FIELD: ""})), Ok(None)),
            (200, secret(json!({})), Ok(None)),
            (404, failure(404), Ok(None)),
            (403, failure(403), Ok(None)),
            (503, failure(503), Err(())),
        ] {
            let salt = Cluster::salt(&client(code, answer.clone()), "kausality-system").await;
            assert_eq!(salt.map_err(drop), expected, "{answer}");
        }
    }
}
