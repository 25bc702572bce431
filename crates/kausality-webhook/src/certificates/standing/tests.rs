use rcgen::{CertificateParams, KeyPair};

use super::*;

/// A certificate of January 2026, from the 5th to the 10th.
fn certificates(names: &[&str]) -> Certificates {
    let mut params =
        CertificateParams::new(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()).unwrap();
    params.not_before = rcgen::date_time_ymd(2026, 1, 5);
    params.not_after = rcgen::date_time_ymd(2026, 1, 10);
    let key = KeyPair::generate().unwrap();
    let made = params.self_signed(&key).unwrap();
    let certificates = Certificates::handed_over("Secret a/b");
    certificates.set(made.pem().as_bytes(), key.serialize_pem().as_bytes()).unwrap();
    certificates
}

fn on(day: &str) -> Timestamp {
    format!("2026-01-{day}T12:00:00Z").parse().unwrap()
}

#[track_caller]
fn check(certificates: &Certificates, names: &[&str], day: &str, expected: &str) {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let fault = certificates.fault(&names, on(day)).map(|fault| fault.to_string()).unwrap_or_default();
    if expected.is_empty() {
        assert_eq!(fault, "", "on {day}");
    } else {
        assert!(fault.contains(expected), "on {day}: {fault:?}");
    }
}

#[test]
fn a_certificate_is_for_its_time() {
    let certificates = certificates(&["a.b.svc"]);
    check(&certificates, &[], "04", "(Secret a/b) is not valid before 2026-01-05T00:00:00Z");
    check(&certificates, &[], "05", "");
    check(&certificates, &[], "09", "");
    check(&certificates, &[], "10", "(Secret a/b) expired at 2026-01-10T00:00:00Z; renew it");
    assert!(certificates.fault(&[], on("10")).unwrap().is_for_everybody());
}

#[test]
fn a_certificate_is_for_a_name() {
    let certificates = certificates(&["a.b.svc", "10.0.0.1"]);
    check(&certificates, &["a.b.svc"], "06", "");
    check(&certificates, &["10.0.0.1"], "06", "");
    check(&certificates, &["other.b.svc", "a.b.svc"], "06", "");
    check(&certificates, &["other.b.svc", "10.0.0.2"], "06", "is not for other.b.svc or 10.0.0.2; issue one");
    assert!(!certificates.fault(&["c".to_owned()], on("06")).unwrap().is_for_everybody());
}

#[test]
fn no_certificate_has_no_fault() {
    assert_eq!(Certificates::handed_over("Secret a/b").fault(&[], on("06")), None);
}

#[test]
fn a_fault_is_told_once_and_so_is_its_end() {
    let certificates = certificates(&["a.b.svc"]);
    let fault = |day| certificates.fault(&["c".to_owned()], on(day));
    let mut said = None;
    assert!(!tell(&mut said, None), "all is well");
    assert!(tell(&mut said, fault("06")), "another name");
    assert!(!tell(&mut said, fault("07")), "the same");
    assert!(tell(&mut said, fault("10")), "expired");
    assert!(!tell(&mut said, fault("11")), "the same");
    assert!(tell(&mut said, None), "mended");
}
