//! Certificates and keys of one control plane.

use anyhow::{Context as _, Result};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};

/// An authority of its own for each control plane.
///
/// So nobody talks to the wrong one: if another process took the port of our etcd or our API server, the handshake fails.
#[derive(Debug)]
pub(crate) struct Certificates {
    pub(crate) ca_pem: String,
    pub(crate) ca_der: Vec<u8>,
    /// Serves under the given names, and identifies the API server to etcd.
    pub(crate) certificate_pem: String,
    pub(crate) key_pem: String,
    /// Signs the tokens of service accounts.
    pub(crate) service_account_key_pem: String,
    pub(crate) service_account_public_pem: String,
}

impl Certificates {
    /// `names` are the host names and addresses of the API server and of etcd.
    pub(crate) fn generate(names: Vec<String>) -> Result<Self> {
        generate(names).context("making the certificates of the control plane")
    }
}

fn generate(names: Vec<String>) -> Result<Certificates, rcgen::Error> {
    let mut authority = CertificateParams::default();
    authority.distinguished_name.push(DnType::CommonName, "testbed authority");
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyCertSign];
    let authority_key = KeyPair::generate()?;
    let authority_certificate = authority.self_signed(&authority_key)?;
    let issuer = Issuer::new(authority, authority_key);

    let mut params = CertificateParams::new(names)?;
    params.distinguished_name.push(DnType::CommonName, "testbed");
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages =
        vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    let key = KeyPair::generate()?;
    let certificate = params.signed_by(&key, &issuer)?;

    let service_account_key = KeyPair::generate()?;
    Ok(Certificates {
        ca_pem: authority_certificate.pem(),
        ca_der: authority_certificate.der().to_vec(),
        certificate_pem: certificate.pem(),
        key_pem: key.serialize_pem(),
        service_account_key_pem: service_account_key.serialize_pem(),
        // kube-apiserver reads EC keys in PKCS #8 only where they sign, not where they verify.
        service_account_public_pem: service_account_key.public_key_pem(),
    })
}
