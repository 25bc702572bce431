//! A client certificate, as an API server shows it to webhooks.

use anyhow::{Context, Result};
use rcgen::{BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use serde_json::{Value, json};

/// The name that it is for.
pub(crate) const NAME: &str = "kube-apiserver";

/// A certificate, its key and its CA, in PEM form.
#[derive(Clone, Debug)]
pub(crate) struct Passport {
    pub(crate) ca: String,
    pub(crate) certificate: String,
    pub(crate) key: String,
}

impl Passport {
    pub(crate) fn make() -> Result<Self> {
        let mut authority = CertificateParams::default();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate()?;
        let ca = authority.self_signed(&key)?.pem();
        let issuer = Issuer::new(authority, key);
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, NAME);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &issuer)?.pem();
        Ok(Self { ca, certificate, key: key.serialize_pem() })
    }

    /// To tell it to the process that shows it.
    pub(crate) fn json(&self) -> Value {
        json!({"ca": self.ca, "certificate": self.certificate, "key": self.key})
    }

    /// What was told; none, if that is nothing.
    pub(crate) fn read(told: &Value) -> Result<Option<Self>> {
        if told.is_null() {
            return Ok(None);
        }
        let text = |key: &str| told[key].as_str().map(ToOwned::to_owned).with_context(|| format!("no {key}"));
        Ok(Some(Self { ca: text("ca")?, certificate: text("certificate")?, key: text("key")? }))
    }
}
