//! Objects in another version than the one they are stored in, where a webhook is to convert them.
//!
//! The sandbox calls no conversion webhooks. It looks whether one is there, so that one that is not is missed in the words
//! of a real API server, and refuses whatever needs a conversion.

use http::{Method, Uri};
use serde_json::Value;

use crate::admission::webhook;
use crate::call::Call;
use crate::kinds::{Definition, Shape};
use crate::sandbox::Sandbox;
use crate::status::Failure;

/// How long a conversion may take, as the webhook is told.
const SECONDS: u32 = 30;

impl Sandbox {
    /// Refuses a call that needs an object to be converted by a webhook.
    pub(crate) async fn check_conversion(&self, method: &Method, call: &Call) -> Result<(), Failure> {
        match self.to_convert(method, call) {
            Some(from) => Err(refusal(&call.definition, &from).await),
            None => Ok(()),
        }
    }

    /// The version of the first object that a call needs to be converted.
    fn to_convert(&self, method: &Method, call: &Call) -> Option<String> {
        let definition = &call.definition;
        let Shape::Custom(custom) = &definition.shape else { return None };
        custom.converter.as_ref()?;
        let state = self.state();
        let other = |object: &Value| needed(definition, object);
        if call.name.is_empty() && *method != Method::POST {
            let namespace = (!call.namespace.is_empty()).then_some(call.namespace.as_str());
            let all = state.store.list(&definition.collection, namespace);
            return all.iter().find_map(|(_, object)| other(object));
        }
        let stored = state.store.get(&definition.collection, &call.place());
        let creates = *method == Method::POST;
        let writes = creates || (stored.is_some() && matches!(*method, Method::PUT | Method::PATCH));
        let sent = (writes && custom.stored != definition.version).then(|| definition.api_version());
        stored.and_then(|object| other(object)).or(sent)
    }
}

/// The version of a stored object that only a webhook can convert to this one.
pub(crate) fn needed(definition: &Definition, stored: &Value) -> Option<String> {
    let Shape::Custom(custom) = &definition.shape else { return None };
    custom.converter.as_ref()?;
    let version = stored["apiVersion"].as_str().unwrap_or_default();
    (version != definition.api_version()).then(|| version.to_owned())
}

async fn refusal(definition: &Definition, from: &str) -> Failure {
    let converter = match &definition.shape {
        Shape::Custom(custom) => custom.converter.as_ref(),
        Shape::BuiltIn(_) => None,
    };
    refused(definition, from, &reach(converter.unwrap_or(&Value::Null)).await)
}

/// The refusal, in the words of the API server, for this reason.
pub(crate) fn refused(definition: &Definition, from: &str, why: &str) -> Failure {
    let message = format!("conversion webhook for {from}, Kind={} failed: {why}", definition.kind);
    Failure::new(500, "", message)
}

/// Why a webhook does not convert.
async fn reach(client: &Value) -> String {
    let Some(url) = client["url"].as_str() else {
        return "the sandbox has no network: a webhook needs a url, a service cannot be reached".to_owned();
    };
    let Ok(uri) = url.parse::<Uri>() else { return format!("the url {url:?} is invalid") };
    let (host, port) = (uri.host().unwrap_or_default(), uri.port_u16().unwrap_or(443));
    match webhook::connect(host, port, client["caBundle"].as_str().unwrap_or_default()).await {
        Ok(_) => NO_CONVERSION.to_owned(),
        Err(why) => format!("Post {:?}: {why}", format!("{url}?timeout={SECONDS}s")),
    }
}

/// What there is to say of a webhook that could be reached.
pub(crate) const NO_CONVERSION: &str = "the sandbox calls no conversion webhooks";
