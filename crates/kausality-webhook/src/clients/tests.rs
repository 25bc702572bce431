use std::fs;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, SanType,
};
use tempfile::TempDir;

use super::*;

struct Ca {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

fn ca() -> Ca {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    Ca { pem: params.self_signed(&key).unwrap().pem(), issuer: Issuer::new(params, key) }
}

fn client(ca: &Ca, common: &str, dns: &str, adjust: impl FnOnce(&mut CertificateParams)) -> Peer {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, common);
    params.subject_alt_names = vec![SanType::DnsName(dns.try_into().unwrap())];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    adjust(&mut params);
    let made = params.signed_by(&KeyPair::generate().unwrap(), &ca.issuer).unwrap();
    Peer::new(&[made.der().clone()])
}

fn apiserver(ca: &Ca) -> Peer {
    client(ca, "kube-apiserver", "apiserver.example.com", |_| {})
}

struct Dir(TempDir);

impl Dir {
    fn new(files: &[(&str, &str)]) -> Self {
        let dir = Self(TempDir::new().unwrap());
        files.iter().for_each(|(name, text)| dir.write(name, text));
        dir
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn by_certificate(&self, names: &[&str]) -> Clients {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        Clients::default().with_authority(self.path("ca.crt"), &names).unwrap()
    }

    fn by_token(&self) -> Clients {
        Clients::default().with_token(self.path("token")).unwrap()
    }
}

fn bearer(token: &str) -> HeaderMap {
    HeaderMap::from_iter([(header::AUTHORIZATION, format!("Bearer {token}").parse().unwrap())])
}

/// The reason of the refusal; empty, if there is none.
fn refused(clients: &Clients, peer: Option<&Peer>, headers: &HeaderMap) -> &'static str {
    clients.check(peer, headers).err().map_or("", |denied| denied.reason())
}

#[test]
fn anybody_may_unless_something_is_asked_for() {
    assert!(Clients::default().are_anybody());
    assert_eq!(refused(&Clients::default(), None, &HeaderMap::new()), "");
}

#[test]
fn a_certificate_must_be_signed_by_the_ca_for_clients_and_valid() {
    let (ours, theirs) = (ca(), ca());
    let dir = Dir::new(&[("ca.crt", &ours.pem)]);
    let clients = dir.by_certificate(&[]);
    assert_eq!(refused(&clients, Some(&apiserver(&ours)), &HeaderMap::new()), "");
    assert_eq!(refused(&clients, Some(&Peer::default()), &HeaderMap::new()), "none");
    assert_eq!(refused(&clients, None, &HeaderMap::new()), "none");
    let server = |params: &mut CertificateParams| {
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    };
    let of = |adjust: fn(&mut CertificateParams)| client(&ours, "a", "a.example.com", adjust);
    for (peer, said) in [
        (
            apiserver(&theirs),
            r#""CN=kube-apiserver" is not accepted: no CA that is trusted has signed it; the CAs"#,
        ),
        (of(|params| params.not_after = rcgen::date_time_ymd(2020, 1, 1)), "it has expired"),
        (of(|params| params.not_before = rcgen::date_time_ymd(2999, 1, 1)), "it is not valid yet"),
        (of(server), "it is not for client authentication"),
    ] {
        let denied = clients.check(Some(&peer), &HeaderMap::new()).unwrap_err();
        assert!(denied.reason() == "certificate" && denied.to_string().contains(said), "{said}: {denied}");
    }
}

#[test]
fn a_name_is_the_common_name_or_a_dns_name() {
    let ours = ca();
    let dir = Dir::new(&[("ca.crt", &ours.pem)]);
    for (names, expected) in [
        (&["kube-apiserver"][..], ""),
        (&["apiserver.EXAMPLE.com"], ""),
        (&["other", "kube-apiserver"], ""),
        (&["other"], "name"),
        (&["example.com"], "name"),
    ] {
        let clients = dir.by_certificate(names);
        assert_eq!(refused(&clients, Some(&apiserver(&ours)), &HeaderMap::new()), expected, "{names:?}");
    }
}

#[test]
fn other_cas_hold_for_connections_that_are_open() {
    let (old, new) = (ca(), ca());
    let dir = Dir::new(&[("ca.crt", &old.pem)]);
    let clients = dir.by_certificate(&[]);
    let (before, after) = (apiserver(&old), apiserver(&new));
    let check = |peer: &Peer| refused(&clients, Some(peer), &HeaderMap::new());
    assert_eq!((check(&before), check(&after)), ("", "certificate"));
    dir.write("ca.crt", &[&*old.pem, &new.pem].concat());
    clients.authority.as_ref().unwrap().look();
    assert_eq!((check(&before), check(&after)), ("", ""));
    dir.write("ca.crt", &new.pem);
    clients.authority.as_ref().unwrap().look();
    assert_eq!((check(&before), check(&after)), ("certificate", ""));
    dir.write("ca.crt", "nothing");
    clients.authority.as_ref().unwrap().look();
    assert_eq!((check(&before), check(&after)), ("certificate", ""), "the last good ones stay");
}

/// Requests on one connection do not pay for it again and again, but a certificate that expires is noticed.
#[test]
fn a_certificate_is_judged_again_after_a_while() {
    let ours = ca();
    let dir = Dir::new(&[("ca.crt", &ours.pem)]);
    let (clients, mut peer) = (dir.by_certificate(&[]), apiserver(&ours));
    let check = |peer: &Peer| refused(&clients, Some(peer), &HeaderMap::new());
    assert_eq!(check(&peer), "");
    // As if it were over by now.
    peer.chain = apiserver(&ca()).chain;
    assert_eq!(check(&peer), "");
    peer.checked.lock().unwrap().as_mut().unwrap().until -= RECHECK;
    assert_eq!(check(&peer), "certificate");
}

#[test]
fn a_token_is_compared_as_a_whole() {
    let dir = Dir::new(&[("token", "s3cret\n")]);
    let clients = dir.by_token();
    let check = |headers: &HeaderMap| refused(&clients, None, headers);
    assert_eq!(check(&bearer("s3cret")), "");
    for wrong in ["s3cre", "s3cret3", "", "S3CRET"] {
        assert_eq!(check(&bearer(wrong)), "token", "{wrong:?}");
    }
    assert_eq!(check(&HeaderMap::new()), "none");
    let basic = HeaderMap::from_iter([(header::AUTHORIZATION, "Basic s3cret".parse().unwrap())]);
    assert_eq!(check(&basic), "none");
    dir.write("token", "another");
    clients.token.as_ref().unwrap().look();
    assert_eq!((check(&bearer("s3cret")), check(&bearer("another"))), ("token", ""));
}

#[test]
fn either_is_enough_where_both_would_do() {
    let (ours, theirs) = (ca(), ca());
    let dir = Dir::new(&[("ca.crt", &ours.pem), ("token", "s3cret")]);
    let clients = dir.by_certificate(&[]).with_token(dir.path("token")).unwrap();
    let (ours, theirs) = (apiserver(&ours), apiserver(&theirs));
    assert_eq!(refused(&clients, Some(&ours), &HeaderMap::new()), "");
    assert_eq!(refused(&clients, Some(&ours), &bearer("wrong")), "");
    assert_eq!(refused(&clients, Some(&theirs), &bearer("s3cret")), "");
    assert_eq!(refused(&clients, Some(&theirs), &bearer("wrong")), "certificate");
    assert_eq!(refused(&clients, None, &bearer("wrong")), "token");
    assert_eq!(refused(&clients, None, &HeaderMap::new()), "none");
}

#[test]
fn files_without_anything_to_check_by_are_refused() {
    let dir = Dir::new(&[("ca.crt", "nothing"), ("token", " \n")]);
    let error = Clients::default().with_authority(dir.path("ca.crt"), &[]).unwrap_err();
    assert!(error.to_string().ends_with("ca.crt holds no certificate in PEM form"), "{error}");
    let error = Clients::default().with_token(dir.path("token")).unwrap_err();
    assert!(error.to_string().ends_with("token holds no token"), "{error}");
    let error = Clients::default().with_token(dir.path("none")).unwrap_err();
    assert!(error.to_string().starts_with("cannot read "), "{error}");
}

#[test]
fn a_token_is_shown_to_nobody() {
    let dir = Dir::new(&[("token", "s3cret")]);
    assert!(!format!("{:?}", dir.by_token()).contains("s3cret"));
}
