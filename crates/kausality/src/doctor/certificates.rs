//! Whether API servers trust the webhook, and for how long.

use std::sync::Arc;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use jiff::{SignedDuration, Timestamp};
use kausality_api::text::plain;
use rustls::{
    RootCertStore,
    client::{WebPkiServerVerifier, danger::ServerCertVerifier},
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject},
};
use serde_json::Value;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::{
    CONFIGURATION, SECRET, WEBHOOK,
    finding::{Findings, Verdict},
    logs,
    registration::entries,
    server::{Seen, list, text, texts},
};

/// A certificate, as far as it matters.
#[derive(Clone, Debug)]
struct Certificate {
    der: CertificateDer<'static>,
    subject: String,
    from: Timestamp,
    until: Timestamp,
}

impl Certificate {
    fn read(der: CertificateDer<'static>) -> Result<Self, String> {
        let (_, read) = X509Certificate::from_der(&der).map_err(|error| error.to_string())?;
        let time = |seconds| Timestamp::from_second(seconds).map_err(|error| error.to_string());
        let validity = read.validity();
        let (from, until) = (time(validity.not_before.timestamp())?, time(validity.not_after.timestamp())?);
        let subject = plain(&read.subject().to_string()).into_owned();
        Ok(Self { subject, from, until, der })
    }

    fn is_over(&self, now: Timestamp) -> bool {
        self.until <= now
    }

    /// Whether less than a third of its life is left: by then it should have been renewed.
    fn is_ending(&self, now: Timestamp) -> bool {
        self.until.duration_since(now) < self.until.duration_since(self.from) / 3
    }

    fn left(&self, now: Timestamp) -> String {
        let left = self.until.duration_since(now);
        let (hours, days) = (left.as_hours(), left.as_hours() / 24);
        if days >= 3 { format!("{days} days") } else { format!("{hours} hours") }
    }
}

/// The certificates of a PEM text.
fn read(pem: &[u8]) -> Result<Vec<Certificate>, String> {
    let found: Vec<Certificate> = CertificateDer::pem_slice_iter(pem)
        .map(|der| der.map_err(|error| error.to_string()).and_then(Certificate::read))
        .collect::<Result<_, _>>()?;
    if found.is_empty() { Err("it holds no certificate".to_owned()) } else { Ok(found) }
}

/// A field of a Secret or a bundle, as it is written: base64 of PEM.
fn decoded(text: &str) -> Result<Vec<Certificate>, String> {
    let pem = STANDARD.decode(text).map_err(|_| "it is no base64".to_owned())?;
    read(&pem)
}

/// What API servers are told: which CAs to trust, and whom to call.
struct Told {
    /// The first entry that says so.
    entry: String,
    bundle: String,
    host: String,
}

/// All that API servers are told, each once. `service` is the name of the Service.
fn told(configurations: [&Seen; 2], service: &str) -> Vec<Told> {
    let mut found: Vec<Told> = Vec::new();
    for entry in configurations.into_iter().flat_map(entries) {
        let bundle = text(entry, "/clientConfig/caBundle");
        let host = match text(entry, "/clientConfig/url").parse::<http::Uri>() {
            Ok(url) => url.host().unwrap_or(service).to_owned(),
            Err(_) => service.to_owned(),
        };
        if !found.iter().any(|known| known.bundle == bundle && known.host == host) {
            found.push(Told { entry: text(entry, "/name").to_owned(), bundle: bundle.to_owned(), host });
        }
    }
    found
}

/// Whether the controller makes the certificate itself, by the arguments of its Deployment; none, if that is not known.
pub(super) fn are_own(controller: &Seen) -> Option<bool> {
    let containers = list(controller.found()?, "/spec/template/spec/containers");
    let mut arguments = containers.iter().flat_map(|container| texts(container, "/args")).peekable();
    arguments.peek()?;
    Some(!arguments.any(|argument| argument == "--certificates=external"))
}

/// Judges the certificate in the Secret, and whether the registration, which is `told`, trusts it. `are_own` says whether
/// the controller makes it.
pub(super) fn judge(
    namespace: &str,
    secret: &Seen,
    configurations: [&Seen; 2],
    are_own: Option<bool>,
    now: Timestamp,
) -> Verdict {
    let mut findings = Findings::default();
    let place = format!("Secret {namespace}/{SECRET}");
    let logs = logs(namespace);
    // Who can mend what is in the Secret.
    let (renew, make, match_up) = match are_own {
        Some(true) => (
            format!("the controller should have renewed it: {logs}"),
            format!("the controller makes it: {logs}"),
            format!("the controller makes both, and mends them within minutes; if it does not: {logs}"),
        ),
        Some(false) => {
            let place = format!("{place}, which is not the controller's to write");
            (
                format!("renew it in {place}: look at cert-manager, or at whoever writes it"),
                format!("put tls.crt, tls.key and ca.crt into {place}; cert-manager does, if it is set up"),
                format!(
                    "let ca.crt be the CA that has signed tls.crt, in {place}; the controller publishes ca.crt"
                ),
            )
        }
        None => (
            format!("whoever makes it should have renewed it: {logs}, or look at cert-manager"),
            format!("{logs}; or put tls.crt, tls.key and ca.crt there"),
            format!(
                "let ca.crt of {place} be the CA that has signed tls.crt; the controller publishes it: {logs}"
            ),
        ),
    };
    let chain = match secret {
        Seen::Hidden(why) => return Verdict::Skipped(format!("{place} cannot be read: {why}")),
        Seen::Absent => Err("does not exist".to_owned()),
        Seen::Found(secret) => match text(secret, "/data/tls.crt") {
            "" => Err("has no certificate".to_owned()),
            encoded => decoded(encoded).map_err(|why| format!("cannot be read: {why}")),
        },
    };
    let chain = match chain {
        Ok(chain) => chain,
        Err(why) => {
            findings.fail(format!("{place} {why}: the webhook has no certificate to serve"), &make);
            return findings.or_fine("");
        }
    };
    let Some((serving, between)) = chain.split_first() else { return findings.or_fine("") };
    if serving.is_over(now) {
        findings.fail(format!("the certificate of the webhook is over since {}", serving.until), &renew);
    } else if serving.from > now {
        findings.fail(
            format!("the certificate of the webhook is not valid before {}", serving.from),
            format!("compare the clocks of whoever made it and of API servers (see the check clock), or wait; {make}"),
        );
    } else if serving.is_ending(now) {
        findings.warn(
            format!("the certificate of the webhook ends in {} ({})", serving.left(now), serving.until),
            &renew,
        );
    }
    let service = format!("{WEBHOOK}.{namespace}.svc");
    let told = told(configurations, &service);
    for told in &told {
        trust(told, serving, between, now, &match_up, &mut findings);
    }
    let host = told.first().map_or(service.as_str(), |told| &told.host);
    findings.or_fine(format!("the certificate for {host} is trusted, and has {} left", serving.left(now)))
}

/// Whether a bundle makes API servers trust the certificate, and for how long.
fn trust(
    told: &Told,
    serving: &Certificate,
    between: &[Certificate],
    now: Timestamp,
    match_up: &str,
    findings: &mut Findings,
) {
    let Told { entry, bundle, host } = told;
    let mend = format!(
        "the controller writes it: see that it runs, and that nobody else edits configuration {CONFIGURATION}"
    );
    if bundle.is_empty() {
        return findings.fail(format!("{entry} has no caBundle: API servers trust no webhook of ours"), mend);
    }
    let authorities = match decoded(bundle) {
        Ok(authorities) => authorities,
        Err(why) => return findings.fail(format!("the caBundle of {entry} cannot be read: {why}"), mend),
    };
    let mut signers = Vec::new();
    let mut wrong_name = None;
    for authority in &authorities {
        match verify(authority, serving, between, host, now) {
            Trust::Yes => signers.push(authority),
            Trust::OtherName(why) => {
                signers.push(authority);
                wrong_name = Some(why);
            }
            Trust::No => {}
        }
    }
    if signers.is_empty() {
        return findings.fail(
            format!("no CA in the caBundle of {entry} has signed the certificate of the webhook: API servers refuse it"),
            match_up,
        );
    }
    if let Some(why) = wrong_name {
        findings.fail(
            format!("the certificate of the webhook is not for {host}: {why}"),
            format!("issue one with {host} among its subject alternative names"),
        );
    }
    let Some(lasting) = signers.iter().max_by_key(|signer| signer.until) else { return };
    let newest = authorities.iter().map(|authority| authority.until).max();
    let renew = "whoever makes it should have made the next one: see the controller's logs, or cert-manager";
    if lasting.is_over(now) {
        findings.fail(
            format!("the CA {} of the caBundle of {entry} is over since {}", lasting.subject, lasting.until),
            renew,
        );
    } else if lasting.from > now {
        findings.fail(
            format!(
                "the CA {} of the caBundle of {entry} is not valid before {}",
                lasting.subject, lasting.from
            ),
            "compare the clocks of whoever made it and of API servers (see the check clock), or wait",
        );
    } else if lasting.is_ending(now) && newest == Some(lasting.until) {
        let left = lasting.left(now);
        findings.warn(
            format!(
                "the CA {} ends in {left} ({}), and there is no next one",
                lasting.subject, lasting.until
            ),
            renew,
        );
    }
}

enum Trust {
    Yes,
    /// Signed, but for somebody else.
    OtherName(String),
    No,
}

/// Whether a CA vouches for a certificate. Whether that is over is another question.
fn verify(
    authority: &Certificate,
    serving: &Certificate,
    between: &[Certificate],
    host: &str,
    now: Timestamp,
) -> Trust {
    let mut roots = RootCertStore::empty();
    let Ok(name) = ServerName::try_from(host.to_owned()) else { return Trust::No };
    if roots.add(authority.der.clone()).is_err() {
        return Trust::No;
    }
    let provider = Arc::new(aws_lc_rs::default_provider());
    let Ok(verifier) = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build() else {
        return Trust::No;
    };
    let last = serving.until - SignedDuration::from_secs(1);
    let at = now.min(last).max(serving.from).as_second();
    let at = UnixTime::since_unix_epoch(std::time::Duration::from_secs(u64::try_from(at).unwrap_or(0)));
    let between: Vec<CertificateDer<'_>> = between.iter().map(|one| one.der.clone()).collect();
    match verifier.verify_server_cert(&serving.der, &between, &name, &[], at) {
        Ok(_) => Trust::Yes,
        Err(rustls::Error::InvalidCertificate(
            error @ (rustls::CertificateError::NotValidForName
            | rustls::CertificateError::NotValidForNameContext { .. }),
        )) => Trust::OtherName(error.to_string()),
        Err(_) => Trust::No,
    }
}

/// What is kept of the Secret: its keys are nobody's business.
pub(super) fn without_keys(secret: Seen) -> Seen {
    secret.map(|secret| {
        let certificate = secret.pointer("/data/tls.crt").cloned().unwrap_or(Value::Null);
        serde_json::json!({"data": {"tls.crt": certificate}})
    })
}

#[cfg(test)]
mod tests;
