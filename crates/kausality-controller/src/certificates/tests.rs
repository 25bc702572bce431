use k8s_openapi::api::core::v1::Secret;

use super::*;

const HOUR: SignedDuration = SignedDuration::from_hours(1);

fn wanted() -> Wanted {
    let lifetimes = Lifetimes { authority: HOUR * 300, serving: HOUR * 90, settling: HOUR };
    Wanted { hosts: vec!["webhook.kausality.svc".to_owned(), "127.0.0.1".to_owned()], lifetimes }
}

/// The Secret, the stored configuration, and a clock that goes as fast as needed.
#[derive(Default)]
struct World {
    hours: i32,
    secret: Secret,
    configured: Option<String>,
}

impl World {
    fn now(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH + HOUR * 1000 + HOUR * self.hours
    }

    fn stored(&self) -> Stored {
        read(&self.secret)
    }

    fn next(&self) -> Action {
        step(self.now(), &self.stored(), self.configured.as_deref(), &wanted())
    }

    /// Does everything that is to be done now, but for the configuration.
    fn act(&mut self) -> Vec<Action> {
        let mut done = Vec::new();
        loop {
            let action = self.next();
            if matches!(action, Action::Wait(_)) {
                return done;
            }
            assert!(done.len() < 10, "no end: {done:?}");
            let stored = perform(&action, self.now(), &self.stored(), &wanted()).unwrap();
            write(&stored, &mut self.secret);
            done.push(action);
        }
    }

    fn configure(&mut self) {
        self.configured = Some(self.stored().bundle());
    }

    #[track_caller]
    fn at(&mut self, hours: i32, expected: &[Action]) {
        self.hours = hours;
        assert_eq!(self.act(), expected, "after {hours} hours");
    }
}

fn blocks(bundle: &str) -> usize {
    bundle.matches("BEGIN CERTIFICATE").count()
}

/// A year in the life of certificates: nothing is served that the stored configuration does not trust.
#[test]
fn a_certificate_is_never_served_before_its_authority_is_trusted() {
    let mut world = World::default();
    world.at(0, &[Action::Begin { trusted: None }]);
    let first = world.stored();
    world.configure();
    world.at(59, &[]);
    world.at(60, &[Action::Renew]);
    assert_eq!(world.stored().bundle(), first.bundle());
    world.at(120, &[Action::Renew]);
    world.at(180, &[Action::Renew]);

    world.at(200, &[Action::Prepare]);
    let prepared = world.stored();
    assert_eq!(blocks(&prepared.bundle()), 2);
    assert_eq!(prepared.authority, first.authority);
    // As long as the configuration does not have it, nothing happens.
    world.at(210, &[]);
    world.configure();
    world.at(211, &[Action::Publish]);
    assert_eq!(world.next(), Action::Wait(world.now() + HOUR));
    world.at(212, &[Action::Switch]);
    let switched = world.stored();
    assert_eq!(blocks(&switched.bundle()), 2);
    assert_eq!(switched.authority, prepared.next);
    assert_ne!(switched.serving, prepared.serving);
    world.configure();

    // What the first one has signed at 180 is over at 270.
    world.at(269, &[]);
    world.at(270, &[Action::Retire]);
    assert_eq!(blocks(&world.stored().bundle()), 1);
}

#[test]
fn somebody_who_takes_the_bundle_back_delays_the_switch() {
    let mut world = World::default();
    world.at(0, &[Action::Begin { trusted: None }]);
    world.configure();
    let before = world.configured.clone();
    world.at(199, &[Action::Renew]);
    world.at(200, &[Action::Prepare]);
    world.configure();
    world.at(201, &[Action::Publish]);
    world.configured = before;
    world.at(205, &[]);
}

#[test]
fn a_lost_secret_is_made_anew_and_what_is_trusted_stays_trusted() {
    let mut world = World::default();
    world.at(0, &[Action::Begin { trusted: None }]);
    world.configure();
    let (trusted, lost) = (world.configured.clone(), world.stored());
    world.secret = Secret::default();
    world.at(10, &[Action::Begin { trusted }]);
    assert_eq!(world.stored().serving, None, "nobody trusts it yet");
    assert!(world.stored().bundle().contains(&lost.bundle()));
    world.configure();
    world.at(11, &[Action::Publish]);
    world.at(12, &[Action::Renew]);
    world.at(100, &[Action::Renew, Action::Retire]);
    assert_eq!(blocks(&world.stored().bundle()), 1);
}

/// Where nobody is asked, nobody need be waited for.
#[test]
fn without_a_configuration_a_rotation_takes_no_time() {
    let mut world = World::default();
    world.at(0, &[Action::Begin { trusted: None }]);
    world.at(200, &[Action::Renew, Action::Prepare, Action::Switch]);
    world.at(261, &[Action::Renew]);
    world.at(290, &[Action::Retire]);
}

/// A configuration that never has the new CA: certificates last as long as the old one, and are not made without end.
#[test]
fn an_authority_near_its_end_issues_no_certificates_that_last_no_longer() {
    let mut world = World::default();
    world.at(0, &[Action::Begin { trusted: None }]);
    world.configure();
    world.at(200, &[Action::Renew, Action::Prepare]);
    world.at(260, &[Action::Renew]);
    for hours in [287, 299] {
        world.at(hours, &[]);
        assert!(matches!(world.next(), Action::Wait(until) if until > world.now()));
    }
    let trusted = world.configured.clone();
    world.at(300, &[Action::Begin { trusted }]);
}

#[test]
fn other_hosts_need_another_certificate() {
    let mut world = World::default();
    world.at(0, &[Action::Begin { trusted: None }]);
    let other = Wanted { hosts: vec!["elsewhere".to_owned()], ..wanted() };
    assert_eq!(step(world.now(), &world.stored(), None, &other), Action::Renew);
}

#[test]
fn a_secret_keeps_everything_and_prints_no_key() {
    let mut world = World::default();
    world.at(0, &[Action::Begin { trusted: None }]);
    world.configure();
    world.at(200, &[Action::Renew, Action::Prepare]);
    let stored = world.stored();
    let mut secret = Secret::default();
    write(&stored, &mut secret);
    assert_eq!(read(&secret), stored);
    assert!(stored.next.is_some() && stored.serving.is_some());
    assert!(!format!("{stored:?}").contains("PRIVATE"));
}

/// TLS itself is asked whether certificates are what they should be.
#[test]
fn the_certificate_is_trusted_by_whoever_trusts_the_bundle_and_by_nobody_else() {
    use rustls::{
        RootCertStore,
        client::{WebPkiServerVerifier, danger::ServerCertVerifier},
        pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject},
    };
    let verify = |bundle: &str, stored: &Stored, host: &str, now: Timestamp| {
        let mut roots = RootCertStore::empty();
        for root in CertificateDer::pem_slice_iter(bundle.as_bytes()) {
            roots.add(root.unwrap()).unwrap();
        }
        let provider = std::sync::Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let verifier = WebPkiServerVerifier::builder_with_provider(roots.into(), provider).build().unwrap();
        let pem = &stored.serving.as_ref().unwrap().certificate;
        let served = CertificateDer::from_pem_slice(pem.as_bytes()).unwrap();
        let name = ServerName::try_from(host.to_owned()).unwrap();
        let seconds = u64::try_from(now.as_second()).unwrap();
        let now = UnixTime::since_unix_epoch(std::time::Duration::from_secs(seconds));
        verifier.verify_server_cert(&served, &[], &name, &[], now).is_ok()
    };
    let mut world = World::default();
    world.at(0, &[Action::Begin { trusted: None }]);
    let first = world.stored();
    for host in wanted().hosts {
        assert!(verify(&first.bundle(), &first, &host, world.now()));
    }
    assert!(!verify(&first.bundle(), &first, "other.svc", world.now()));
    assert!(verify(&first.bundle(), &first, "127.0.0.1", world.now() + HOUR * 89));
    assert!(!verify(&first.bundle(), &first, "127.0.0.1", world.now() + HOUR * 91));

    world.configure();
    world.at(200, &[Action::Renew, Action::Prepare]);
    let prepared = world.stored();
    world.configure();
    world.at(201, &[Action::Publish]);
    world.at(202, &[Action::Switch]);
    let switched = world.stored();
    assert!(verify(&switched.bundle(), &switched, "127.0.0.1", world.now()));
    assert!(verify(&switched.bundle(), &prepared, "127.0.0.1", world.now()));
    assert!(!verify(&first.bundle(), &switched, "127.0.0.1", world.now()));
    assert_eq!(prepared.bundle().len(), switched.bundle().len());
}

/// Somebody else's pair, as cert-manager writes it.
fn foreign() -> (String, String) {
    let made = rcgen::generate_simple_self_signed(wanted().hosts).unwrap();
    (made.cert.pem(), made.signing_key.serialize_pem())
}

fn put(secret: &mut Secret, key: &str, text: &str) {
    let text = k8s_openapi::ByteString(text.as_bytes().to_vec());
    secret.data.as_mut().unwrap().insert(key.to_owned(), text);
}

/// What was not made here is not served on, whatever the annotation says.
#[test]
fn what_others_have_written_into_the_secret_is_made_anew() {
    let mut world = World::default();
    world.at(0, &[Action::Begin { trusted: None }]);
    world.configure();
    let (before, good) = (world.stored(), world.secret.clone());
    assert!(before.serving.is_some() && is_written(&before, &good));
    let (certificate, key) = foreign();
    let other_term = good.metadata.annotations.as_ref().unwrap()[STATE].replace("until", "til");
    for (what, change) in [
        (
            "another pair",
            Box::new(|secret: &mut Secret| {
                put(secret, "tls.crt", &certificate);
                put(secret, "tls.key", &key);
            }) as Box<dyn Fn(&mut Secret)>,
        ),
        ("another certificate", Box::new(|secret: &mut Secret| put(secret, "tls.crt", &certificate))),
        ("another key", Box::new(|secret: &mut Secret| put(secret, "tls.key", &key))),
    ] {
        world.secret = good.clone();
        change(&mut world.secret);
        assert_eq!(world.stored(), Stored { serving: None, ..before.clone() }, "{what}");
        // API servers trust the CA since nobody knows when.
        world.at(1, &[Action::Publish]);
        world.at(2, &[Action::Renew]);
        assert!(world.stored().serving.is_some_and(|serving| Some(serving) != before.serving), "{what}");
    }
    world.secret = good.clone();
    put(&mut world.secret, "ca.crt", &certificate);
    assert_eq!(world.stored(), before);
    assert!(!is_written(&before, &world.secret), "another bundle is written over");
    // One whose annotation says something else of it is none of ours, either.
    for state in [
        other_term,
        good.metadata.annotations.as_ref().unwrap()[STATE].replace("webhook.kausality.svc", "else.svc"),
    ] {
        let mut secret = good.clone();
        secret.metadata.annotations.as_mut().unwrap().insert(STATE.to_owned(), state.clone());
        assert_eq!(read(&secret).serving, None, "{state}");
    }
    // A CA without its key cannot sign.
    let mut secret = good;
    put(&mut secret, "ca.key", &key);
    assert_eq!(read(&secret).authority, None);
}

/// From own to cert-manager and back: what is served meanwhile stays trusted.
#[test]
fn a_secret_that_was_others_for_a_while_begins_anew() {
    let mut world = World::default();
    world.at(0, &[Action::Begin { trusted: None }]);
    let (certificate, key) = foreign();
    put(&mut world.secret, "tls.crt", &certificate);
    put(&mut world.secret, "tls.key", &key);
    world.configured = Some(certificate.clone());
    world.at(1, &[Action::Begin { trusted: Some(certificate.clone()) }]);
    assert!(world.stored().bundle().contains(&certificate));
    assert_eq!(world.stored().serving, None);
    world.configure();
    world.at(2, &[Action::Publish]);
    world.at(3, &[Action::Renew]);
}

/// When somebody else's CA is followed by another, API servers trust both until every webhook serves the new one.
#[test]
fn authorities_of_others_overlap() {
    let now = |hours: i32| Timestamp::UNIX_EPOCH + HOUR * hours;
    let ((old, _), (new, _)) = (foreign(), foreign());
    let mut overlap = external::Overlap::default();
    // The first one has nothing before it.
    assert_eq!(overlap.bundle(now(0), None, &old, HOUR * 2), (old.clone(), None));
    assert_eq!(overlap.bundle(now(1), Some(&old), &old, HOUR * 2), (old.clone(), None));
    let (both, until) = overlap.bundle(now(2), Some(&old), &new, HOUR * 2);
    assert_eq!((blocks(&both), until), (2, Some(now(4))));
    assert!(both.starts_with(&new) && both.contains(old.trim()));
    // Once it is stored, it is as it should be.
    assert_eq!(overlap.bundle(now(3), Some(&both), &new, HOUR * 2), (both.clone(), Some(now(4))));
    // Another leader counts anew, and then takes the old one out all the same.
    let mut other = external::Overlap::default();
    assert_eq!(other.bundle(now(3), Some(&both), &new, HOUR * 2).1, Some(now(5)));
    assert_eq!(overlap.bundle(now(4), Some(&both), &new, HOUR * 2), (new.clone(), None));
    assert_eq!(overlap.bundle(now(5), Some(&new), &new, HOUR * 2), (new.clone(), None));
    // A file without a line break at its end is joined all the same.
    let (joined, _) = overlap.bundle(now(6), Some(&old), new.trim(), HOUR);
    assert!(!joined.contains("----------"), "{joined}");
    assert_eq!(external::expiry("nothing"), None);
    assert!(external::expiry(&new).is_some_and(|until| until > now(0)));
}
