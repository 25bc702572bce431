//! Keys and certificates, made.

use std::net::IpAddr;

use jiff::{SignedDuration, Timestamp};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType,
};
use time::OffsetDateTime;

use super::{Action, Authority, Retired, Serving, Stored, Term, Wanted};

/// How long before they were made certificates begin to hold: clocks differ.
const EARLIER: SignedDuration = SignedDuration::from_hours(1);

/// Why a certificate cannot be made. Never quotes a key.
#[derive(Debug, thiserror::Error)]
pub enum Unmakeable {
    /// The key of the CA, or a name, cannot be used.
    #[error("cannot make a certificate: {0}")]
    Refused(#[from] rcgen::Error),
    /// A time is out of range.
    #[error("cannot make a certificate: its lifetime is out of range")]
    Time,
    /// There is no CA to sign with.
    #[error("cannot make a certificate: there is no CA to sign it")]
    NoAuthority,
}

/// What is stored after an action.
///
/// # Errors
/// If a certificate cannot be made.
pub fn perform(
    action: &Action,
    now: Timestamp,
    stored: &Stored,
    wanted: &Wanted,
) -> Result<Stored, Unmakeable> {
    let lifetimes = &wanted.lifetimes;
    let mut stored = stored.clone();
    match action {
        Action::Begin { trusted } => {
            stored = Stored { authority: Some(authority(now, wanted)?), ..Stored::default() };
            match trusted {
                // Whoever serves something that these CAs have signed goes on until it is over.
                Some(certificates) => {
                    let until = super::add(now, lifetimes.serving);
                    stored.retired = Some(Retired { until, certificates: certificates.clone() });
                }
                None => stored.serving = Some(serving(now, &stored, wanted)?),
            }
        }
        Action::Prepare => {
            stored.next = Some(authority(now, wanted)?);
            stored.published = None;
        }
        Action::Publish => stored.published = Some(now),
        Action::Switch => {
            let until = stored.serving.as_ref().map_or(now, |serving| serving.term.until);
            if let Some(before) = stored.authority.take() {
                stored.retired = Some(Retired { until, certificates: before.certificate });
            }
            stored.authority = stored.next.take();
            stored.published = None;
            stored.serving = Some(serving(now, &stored, wanted)?);
        }
        Action::Renew => stored.serving = Some(serving(now, &stored, wanted)?),
        Action::Retire => {
            stored.retired = None;
            stored.published = None;
        }
        Action::Wait(_) => {}
    }
    Ok(stored)
}

fn authority(now: Timestamp, wanted: &Wanted) -> Result<Authority, Unmakeable> {
    let term = Term::new(now, wanted.lifetimes.authority);
    let key = KeyPair::generate()?;
    let certificate = authority_params(term)?.self_signed(&key)?;
    Ok(Authority { term, certificate: certificate.pem(), key: key.serialize_pem() })
}

/// A CA is made again from its term and its key wherever it signs: nothing of it is read from its certificate.
fn authority_params(term: Term) -> Result<CertificateParams, Unmakeable> {
    let mut params = params(&format!("kausality-ca {}", term.from), term)?;
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    Ok(params)
}

fn serving(now: Timestamp, stored: &Stored, wanted: &Wanted) -> Result<Serving, Unmakeable> {
    let authority = stored.authority.as_ref().ok_or(Unmakeable::NoAuthority)?;
    let mut term = Term::new(now, wanted.lifetimes.serving);
    term.until = term.until.min(authority.term.until);
    let mut params = params("kausality-webhook", term)?;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    for host in &wanted.hosts {
        params.subject_alt_names.push(match host.parse::<IpAddr>() {
            Ok(address) => SanType::IpAddress(address),
            Err(_) => SanType::DnsName(host.as_str().try_into()?),
        });
    }
    let key = KeyPair::generate()?;
    let issuer = Issuer::new(authority_params(authority.term)?, KeyPair::from_pem(&authority.key)?);
    let certificate = params.signed_by(&key, &issuer)?.pem();
    Ok(Serving { term, hosts: wanted.hosts.clone(), certificate, key: key.serialize_pem() })
}

fn params(name: &str, term: Term) -> Result<CertificateParams, Unmakeable> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.distinguished_name.push(DnType::CommonName, name);
    params.not_before = date(term.from - EARLIER)?;
    params.not_after = date(term.until)?;
    Ok(params)
}

fn date(time: Timestamp) -> Result<OffsetDateTime, Unmakeable> {
    OffsetDateTime::from_unix_timestamp(time.as_second()).map_err(|_| Unmakeable::Time)
}
