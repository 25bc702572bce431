//! The CAs of client certificates.

use std::{path::PathBuf, sync::Arc};

use kausality_api::text::{plain, shorten};
use rustls::{
    RootCertStore,
    pki_types::{CertificateDer, UnixTime, pem::PemObject},
    server::{WebPkiClientVerifier, danger::ClientCertVerifier},
};
use x509_parser::prelude::{FromDer, GeneralName, X509Certificate};

use super::Denied;
use crate::certificates::{CertificateError, provider};

/// Characters of a subject that answers and logs show: a stranger chose it.
const MAX_SUBJECT: usize = 200;

/// Judges client certificates.
#[derive(Debug)]
pub(super) struct Authority(Arc<dyn ClientCertVerifier>);

impl Authority {
    pub(super) fn parse(files: &[PathBuf], texts: &[Vec<u8>]) -> Result<Self, CertificateError> {
        let path = files.first().cloned().unwrap_or_default();
        let text = texts.first().map_or(&[][..], Vec::as_slice);
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(text) {
            // The errors of the PEM parser are not passed on, for they quote lines.
            let Ok(certificate) = certificate else { return Err(CertificateError::NoCertificate { path }) };
            roots.add(certificate)?;
        }
        let verifier =
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::new(provider())).build();
        // It fails for want of a root alone.
        verifier.map(Self).map_err(|_| CertificateError::NoCertificate { path })
    }

    /// Whether this chain is one of ours, and for one of these names if there are any.
    pub(super) fn judge(
        &self,
        chain: &[CertificateDer<'static>],
        names: &[String],
        now: UnixTime,
    ) -> Result<(), Denied> {
        let Some((own, between)) = chain.split_first() else {
            return Err(Denied::Nothing { certificate: true, token: false });
        };
        let parsed = X509Certificate::from_der(own).map(|(_, parsed)| parsed);
        let subject = parsed.as_ref().map_or_else(|_| String::new(), |parsed| parsed.subject().to_string());
        let subject = format!("{:?}", shorten(&plain(&subject), MAX_SUBJECT));
        if let Err(error) = self.0.verify_client_cert(own, between, now) {
            return Err(Denied::Certificate { subject, reason: reason(&error) });
        }
        let is_meant = |name: &str| names.iter().any(|wanted| wanted.eq_ignore_ascii_case(name));
        if names.is_empty() || parsed.is_ok_and(|parsed| self::names(&parsed).any(is_meant)) {
            Ok(())
        } else {
            Err(Denied::Name { subject })
        }
    }
}

/// Why a certificate is not accepted, for people.
fn reason(error: &rustls::Error) -> String {
    use rustls::CertificateError::{
        BadSignature, Expired, ExpiredContext, InvalidPurpose, InvalidPurposeContext, NotValidYet,
        NotValidYetContext, UnknownIssuer,
    };
    let rustls::Error::InvalidCertificate(fault) = error else { return error.to_string() };
    match fault {
        UnknownIssuer | BadSignature => "no CA that is trusted has signed it".to_owned(),
        Expired | ExpiredContext { .. } => "it has expired".to_owned(),
        NotValidYet | NotValidYetContext { .. } => "it is not valid yet".to_owned(),
        InvalidPurpose | InvalidPurposeContext { .. } => "it is not for client authentication".to_owned(),
        other => other.to_string(),
    }
}

/// The common names of a certificate, and its DNS names.
fn names<'a>(certificate: &'a X509Certificate<'a>) -> impl Iterator<Item = &'a str> {
    let common = certificate.subject().iter_common_name().filter_map(|name| name.as_str().ok());
    let alternatives = certificate.subject_alternative_name().ok().flatten();
    let alternatives = alternatives.map(|it| it.value.general_names.iter()).into_iter().flatten();
    common.chain(alternatives.filter_map(|name| match name {
        GeneralName::DNSName(name) => Some(*name),
        _ => None,
    }))
}
