//! A certificate made up on the spot.

use std::net::IpAddr;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose, SanType,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

pub(super) struct Made {
    pub(super) ca_pem: String,
    pub(super) chain: Vec<CertificateDer<'static>>,
    pub(super) key: PrivateKeyDer<'static>,
}

/// Makes a CA and a certificate. Neither expires in practice: they live as long as the process.
pub(super) fn make(dns_names: &[String], addresses: &[IpAddr]) -> Result<Made, rcgen::Error> {
    let mut ca = named("kausality-webhook-ca")?;
    ca.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    ca.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    let ca = CertifiedIssuer::self_signed(ca, KeyPair::generate()?)?;

    let mut server = named("kausality-webhook")?;
    server.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    // Says by its key which CA it is of: all of them have one name.
    server.use_authority_key_identifier_extension = true;
    for name in dns_names {
        server.subject_alt_names.push(SanType::DnsName(name.as_str().try_into()?));
    }
    server.subject_alt_names.extend(addresses.iter().copied().map(SanType::IpAddress));
    let key = KeyPair::generate()?;
    let certificate = server.signed_by(&key, &ca)?;
    Ok(Made { ca_pem: ca.pem(), chain: vec![certificate.der().clone()], key: key.into() })
}

fn named(name: &str) -> Result<CertificateParams, rcgen::Error> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.distinguished_name.push(DnType::CommonName, name);
    Ok(params)
}
