//! The Secret that all of it is in.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::{ByteString, api::core::v1::Secret};
use serde::{Deserialize, Serialize};

use super::{
    Authority, Retired, Serving, Stored, Term,
    ours::{can_sign, is_ours},
};

/// The annotation that says what the PEM texts are.
pub const STATE: &str = "kausality.io/certificates";

const SERVING: &str = "tls.crt";
const SERVING_KEY: &str = "tls.key";
const BUNDLE: &str = "ca.crt";
const AUTHORITY: &str = "ca-signing.crt";
const AUTHORITY_KEY: &str = "ca.key";
const NEXT: &str = "ca-next.crt";
const NEXT_KEY: &str = "ca-next.key";
const RETIRED: &str = "ca-retired.crt";

/// All that the texts do not say themselves.
#[derive(Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct State {
    #[serde(skip_serializing_if = "Option::is_none")]
    authority: Option<Term>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<Term>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retired_until: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    serving: Option<Term>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    hosts: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    published: Option<Timestamp>,
}

/// What is in a Secret. What cannot be understood is not there; nor is what was not made here, as when cert-manager has
/// written into it.
#[must_use]
pub fn read(secret: &Secret) -> Stored {
    let text = |key: &str| {
        let bytes = secret.data.as_ref()?.get(key)?;
        String::from_utf8(bytes.0.clone()).ok().filter(|text| text.contains("-----BEGIN"))
    };
    let annotations = secret.metadata.annotations.as_ref();
    let state = annotations.and_then(|annotations| annotations.get(STATE));
    let state: State = state.and_then(|state| serde_json::from_str(state).ok()).unwrap_or_default();
    let authority = |term: Option<Term>, certificate: &str, key: &str| {
        let found = Authority { term: term?, certificate: text(certificate)?, key: text(key)? };
        Some(found).filter(can_sign)
    };
    let signing = authority(state.authority, AUTHORITY, AUTHORITY_KEY);
    let serving = |term: Option<Term>| {
        let (certificate, key) = (text(SERVING)?, text(SERVING_KEY)?);
        let found = Serving { term: term?, hosts: state.hosts.clone(), certificate, key };
        Some(found).filter(|found| signing.as_ref().is_some_and(|signing| is_ours(found, signing)))
    };
    Stored {
        next: authority(state.next, NEXT, NEXT_KEY),
        retired: state.retired_until.and_then(|until| Some(Retired { until, certificates: text(RETIRED)? })),
        serving: serving(state.serving),
        authority: signing,
        published: state.published,
    }
}

/// Whether a Secret holds what is stored, and nothing else.
#[must_use]
pub fn is_written(stored: &Stored, secret: &Secret) -> bool {
    let mut wanted = secret.clone();
    write(stored, &mut wanted);
    wanted.data == secret.data && wanted.metadata.annotations == secret.metadata.annotations
}

/// Puts what is stored into a Secret, and takes everything else that was in it out.
pub fn write(stored: &Stored, secret: &mut Secret) {
    let state = State {
        authority: stored.authority.as_ref().map(|authority| authority.term),
        next: stored.next.as_ref().map(|authority| authority.term),
        retired_until: stored.retired.as_ref().map(|retired| retired.until),
        serving: stored.serving.as_ref().map(|serving| serving.term),
        hosts: stored.serving.as_ref().map(|serving| serving.hosts.clone()).unwrap_or_default(),
        published: stored.published,
    };
    let mut data = BTreeMap::new();
    let mut put = |key: &str, text: &str| {
        data.insert(key.to_owned(), ByteString(text.as_bytes().to_vec()));
    };
    put(BUNDLE, &stored.bundle());
    // The type of the Secret asks for both, even while there is no certificate.
    put(SERVING, stored.serving.as_ref().map_or("", |serving| &serving.certificate));
    put(SERVING_KEY, stored.serving.as_ref().map_or("", |serving| &serving.key));
    if let Some(authority) = &stored.authority {
        put(AUTHORITY, &authority.certificate);
        put(AUTHORITY_KEY, &authority.key);
    }
    if let Some(next) = &stored.next {
        put(NEXT, &next.certificate);
        put(NEXT_KEY, &next.key);
    }
    if let Some(retired) = &stored.retired {
        put(RETIRED, &retired.certificates);
    }
    secret.data = Some(data);
    // Cannot be changed where there is one.
    secret.type_.get_or_insert_with(|| "kubernetes.io/tls".to_owned());
    let annotations = secret.metadata.annotations.get_or_insert_default();
    annotations.insert(STATE.to_owned(), serde_json::to_string(&state).unwrap_or_default());
}
