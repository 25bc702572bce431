//! Whether certificates are the ones that were made here: what somebody else has put in their place is none of ours.

use std::{sync::Arc, time::Duration};

use jiff::{SignedDuration, Timestamp};
use rcgen::{KeyPair, PublicKeyData as _};
use rustls::{
    RootCertStore,
    client::{WebPkiServerVerifier, danger::ServerCertVerifier},
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject},
};

use super::{Authority, Serving};

/// Whether a CA can sign: its key is the one of its certificate.
pub(super) fn can_sign(authority: &Authority) -> bool {
    certificate(&authority.certificate).is_some_and(|certificate| belongs(&authority.key, &certificate))
}

/// Whether a certificate is what is said about it: this CA has signed it, for these hosts and this term, and the key is
/// its own.
pub(super) fn is_ours(serving: &Serving, authority: &Authority) -> bool {
    let (Some(served), Some(root)) = (certificate(&serving.certificate), certificate(&authority.certificate))
    else {
        return false;
    };
    let mut roots = RootCertStore::empty();
    let provider = Arc::new(aws_lc_rs::default_provider());
    if roots.add(root).is_err() || !belongs(&serving.key, &served) {
        return false;
    }
    let Ok(verifier) = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build() else {
        return false;
    };
    let holds = |host: &str, at: Timestamp| {
        let at = UnixTime::since_unix_epoch(Duration::from_secs(u64::try_from(at.as_second()).unwrap_or(0)));
        ServerName::try_from(host.to_owned())
            .is_ok_and(|name| verifier.verify_server_cert(&served, &[], &name, &[], at).is_ok())
    };
    let second = SignedDuration::from_secs(1);
    let (last, over) = (serving.term.until - second, super::add(serving.term.until, second));
    !serving.hosts.is_empty()
        && serving
            .hosts
            .iter()
            .all(|host| holds(host, serving.term.from) && holds(host, last) && !holds(host, over))
}

/// The first certificate of a text.
fn certificate(pem: &str) -> Option<CertificateDer<'static>> {
    CertificateDer::from_pem_slice(pem.as_bytes()).ok()
}

/// Whether a certificate has the public half of a key.
fn belongs(key: &str, certificate: &CertificateDer<'_>) -> bool {
    KeyPair::from_pem(key).is_ok_and(|key| {
        let public = key.subject_public_key_info();
        certificate.windows(public.len()).any(|part| part == public)
    })
}
