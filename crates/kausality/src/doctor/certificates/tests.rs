use rcgen::{BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use serde_json::json;

use super::*;
use crate::doctor::finding::Outcome;

const HOST: &str = "kausality-webhook.there.svc";

/// A CA that is one for these days, counted from 2026-01-01.
struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

fn term(params: &mut CertificateParams, days: (u8, u8)) {
    params.not_before = rcgen::date_time_ymd(2026, 1, days.0);
    params.not_after = rcgen::date_time_ymd(2026, 1, days.1);
}

fn authority(name: &str, days: (u8, u8)) -> Authority {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    term(&mut params, days);
    let key = KeyPair::generate().unwrap();
    let pem = params.self_signed(&key).unwrap().pem();
    Authority { pem, issuer: Issuer::new(params, key) }
}

fn secret(host: &str, days: (u8, u8), by: &Authority) -> Seen {
    let mut params = CertificateParams::new([host.to_owned()]).unwrap();
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    term(&mut params, days);
    let key = KeyPair::generate().unwrap();
    let certificate = params.signed_by(&key, &by.issuer).unwrap();
    Seen::Found(json!({"data": {"tls.crt": STANDARD.encode(certificate.pem()), "tls.key": "c2VjcmV0"}}))
}

fn trusting(pem: &str) -> Seen {
    Seen::Found(
        json!({"webhooks": [{"name": "p.drift.kausality.io", "clientConfig": {"caBundle": STANDARD.encode(pem)}}]}),
    )
}

fn check(secret: &Seen, registration: &Seen, day: &str, outcome: Outcome, said: &str) {
    let now: Timestamp = format!("2026-01-{day}T00:00:00Z").parse().unwrap();
    let verdict = judge("there", secret, [registration, &Seen::Absent], None, now);
    assert_eq!(verdict.outcome(), outcome, "on {day}: {verdict:?}");
    assert!(verdict.summary().contains(said), "{said}: {verdict:?}");
}

#[test]
fn a_certificate_is_trusted_for_its_life() {
    let ours = authority("ours", (1, 31));
    let good = secret(HOST, (1, 13), &ours);
    let bundle = trusting(&ours.pem);
    check(&good, &bundle, "02", Outcome::Ok, "trusted, and has 11 days left");
    check(&good, &bundle, "09", Outcome::Ok, "4 days left");
    check(&good, &bundle, "10", Outcome::Warning, "ends in 3 days");
    check(&good, &bundle, "12", Outcome::Warning, "ends in 24 hours");
    check(&good, &bundle, "13", Outcome::Failed, "is over since 2026-01-13T00:00:00Z");
    check(&good, &bundle, "14", Outcome::Failed, "is over since");
    let future = secret(HOST, (5, 13), &ours);
    check(&future, &bundle, "04", Outcome::Failed, "is not valid before 2026-01-05T00:00:00Z");
    check(&future, &bundle, "05", Outcome::Ok, "trusted");
    // Nothing is registered yet.
    check(&good, &Seen::Absent, "02", Outcome::Ok, "trusted");
}

#[test]
fn a_certificate_is_for_the_service_and_of_the_bundle() {
    let (ours, theirs) = (authority("ours", (1, 31)), authority("theirs", (1, 31)));
    let good = secret(HOST, (1, 13), &ours);
    let other = secret("example.com", (1, 13), &ours);
    check(&other, &trusting(&ours.pem), "02", Outcome::Failed, "not for kausality-webhook.there.svc");
    check(
        &good,
        &trusting(&theirs.pem),
        "02",
        Outcome::Failed,
        "no CA in the caBundle of p.drift.kausality.io",
    );
    check(&good, &trusting(&[&*theirs.pem, &ours.pem].concat()), "02", Outcome::Ok, "trusted");
    check(&good, &trusting("no PEM"), "02", Outcome::Failed, "cannot be read: it holds no certificate");
    check(&good, &trusting(""), "02", Outcome::Failed, "has no caBundle");
    let empty = Seen::Found(json!({"data": {"tls.crt": ""}}));
    check(&empty, &Seen::Absent, "02", Outcome::Failed, "has no certificate");
    let noise = Seen::Found(json!({"data": {"tls.crt": "%%%"}}));
    check(&noise, &Seen::Absent, "02", Outcome::Failed, "no base64");
    check(&Seen::Absent, &Seen::Absent, "02", Outcome::Failed, "does not exist");
    check(&Seen::Hidden("no".to_owned()), &Seen::Absent, "02", Outcome::Skipped, "no");
}

#[test]
fn a_ca_that_ends_has_a_successor() {
    let (old, new) = (authority("old", (1, 13)), authority("new", (9, 31)));
    let serving = secret(HOST, (1, 31), &old);
    check(&serving, &trusting(&old.pem), "09", Outcome::Ok, "trusted");
    check(&serving, &trusting(&old.pem), "10", Outcome::Warning, "the CA CN=old ends in 3 days");
    // In the middle of a rotation all is well: the next CA is in the bundle, and the old one still signs.
    check(&serving, &trusting(&[&*old.pem, &new.pem].concat()), "10", Outcome::Ok, "trusted");
    check(
        &serving,
        &trusting(&[&*old.pem, &new.pem].concat()),
        "14",
        Outcome::Failed,
        "the CA CN=old of the caBundle",
    );
    let early = secret(HOST, (1, 31), &new);
    check(
        &early,
        &trusting(&new.pem),
        "02",
        Outcome::Failed,
        "the CA CN=new of the caBundle of p.drift.kausality.io is not valid before 2026-01-09",
    );
    // What has retired does not matter.
    let serving = secret(HOST, (9, 31), &new);
    check(&serving, &trusting(&[&*old.pem, &new.pem].concat()), "14", Outcome::Ok, "trusted");
}

#[test]
fn keys_are_not_kept() {
    let kept = without_keys(secret(HOST, (1, 13), &authority("ours", (1, 31))));
    let shown = format!("{kept:?}");
    assert!(
        shown.contains("tls.crt") && !shown.contains("tls.key") && !shown.contains("c2VjcmV0"),
        "{shown}"
    );
}

/// Whoever does not write the Secret is not told to be waited for.
#[test]
fn what_to_do_depends_on_who_makes_the_certificate() {
    let run = |arguments: &[&str]| {
        Seen::Found(json!({"spec": {"template": {"spec": {"containers": [{"args": arguments}]}}}}))
    };
    assert_eq!(are_own(&run(&["controller", "--certificates=own"])), Some(true));
    assert_eq!(are_own(&run(&["controller"])), Some(true));
    assert_eq!(are_own(&run(&["controller", "--certificates=external"])), Some(false));
    assert_eq!(are_own(&run(&[])), None);
    assert_eq!(are_own(&Seen::Absent), None);
    let (ours, theirs) = (authority("ours", (1, 31)), authority("theirs", (1, 31)));
    let foreign = secret(HOST, (1, 13), &theirs);
    let now: Timestamp = "2026-01-02T00:00:00Z".parse().unwrap();
    for (secret, are_own, said) in [
        (&foreign, Some(true), "the controller makes both, and mends them"),
        (&foreign, Some(false), "let ca.crt be the CA that has signed tls.crt"),
        (&foreign, None, "let ca.crt of Secret there/kausality-webhook-tls be"),
        (&Seen::Absent, Some(true), "the controller makes it: kubectl"),
        (&Seen::Absent, Some(false), "put tls.crt, tls.key and ca.crt into Secret there/"),
    ] {
        let verdict = judge("there", secret, [&trusting(&ours.pem), &Seen::Absent], are_own, now);
        let todo = &verdict.findings()[0].todo;
        assert!(todo.starts_with(said), "{are_own:?}: {todo}");
        assert_eq!(todo.contains("logs"), are_own != Some(false), "{todo}");
    }
}
