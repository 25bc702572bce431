use std::fs;

use tempfile::TempDir;

use super::*;

struct Dir {
    dir: TempDir,
    files: Files,
}

fn pem() -> (String, String) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    (made.cert.pem(), made.signing_key.serialize_pem())
}

impl Dir {
    fn new() -> Self {
        let dir = TempDir::new().unwrap();
        let (certificate, key) = pem();
        let paths = (dir.path().join("tls.crt"), dir.path().join("tls.key"));
        fs::write(&paths.0, certificate).unwrap();
        fs::write(&paths.1, key).unwrap();
        let files = Files::open(paths.0, paths.1).unwrap();
        Self { dir, files }
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.dir.path().join(name), text).unwrap();
    }

    /// The certificate after a look at the files, as if the pause were over.
    fn look(&self) -> Vec<u8> {
        self.files.0.look().cert[0].to_vec()
    }
}

#[test]
fn half_of_a_pair_waits_for_the_other_half() {
    let dir = Dir::new();
    let old = dir.look();
    let (certificate, key) = pem();
    dir.write("tls.crt", &certificate);
    assert_eq!(dir.look(), old, "a certificate without its key");
    dir.write("tls.key", &key);
    assert_ne!(dir.look(), old, "the pair");
}

#[test]
fn a_broken_or_missing_pair_leaves_the_old_one_in_use() {
    let dir = Dir::new();
    let old = dir.look();
    dir.write("tls.crt", "no certificate");
    assert_eq!(dir.look(), old);
    fs::remove_file(dir.dir.path().join("tls.crt")).unwrap();
    assert_eq!(dir.look(), old);
    let (certificate, key) = pem();
    dir.write("tls.crt", &certificate);
    dir.write("tls.key", &key);
    assert_ne!(dir.look(), old);
}

#[test]
fn files_are_left_alone_during_the_pause() {
    let dir = Dir::new();
    let old = dir.look();
    let (certificate, key) = pem();
    dir.write("tls.crt", &certificate);
    dir.write("tls.key", &key);
    assert_eq!(dir.files.0.during_the_pause().cert[0].to_vec(), old);
}

#[test]
fn errors_do_not_quote_the_key() {
    let dir = Dir::new();
    let one_line = pem().1.replace('\n', "").trim_end_matches('-').to_owned();
    dir.write("tls.key", &one_line);
    let error = Files::open(dir.dir.path().join("tls.crt"), dir.dir.path().join("tls.key")).unwrap_err();
    assert!(matches!(error, CertificateError::NoKey { .. }), "{error:?}");
    assert!(!format!("{error} {error:?}").contains(&one_line[30..60]));
}
