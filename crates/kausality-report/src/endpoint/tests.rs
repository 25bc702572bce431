use super::*;

fn parsed(text: &str) -> Result<Vec<Endpoint>, BadEndpoints> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("endpoints.yaml");
    std::fs::write(&path, text).unwrap();
    read(&path).and_then(check)
}

/// An endpoint with these lines beside a name and a URL.
fn with(lines: &str) -> Result<Vec<Endpoint>, BadEndpoints> {
    parsed(&format!("endpoints: [{{name: pager, url: 'https://pager.example.com/x', {lines}}}]"))
}

#[test]
fn everything_can_be_said() {
    let all = parsed(
        "endpoints:\n- name: pager\n  url: https://pager.example.com:8443/hooks/drift?a=b\n  timeout: 2500ms\n  \
         caFile: /ca\n  certFile: /cert\n  keyFile: /key\n  tokenFile: /token\n  hmacKeyFile: /hmac\n\
         - name: local\n  url: http://localhost:8080/webhook\n",
    )
    .unwrap();
    let [pager, local] = all.as_slice() else { panic!("{all:?}") };
    assert_eq!(pager.timeout, Duration::from_millis(2500));
    assert_eq!(
        pager.files,
        Files {
            ca: Some("/ca".into()),
            identity: Some(("/cert".into(), "/key".into())),
            token: Some("/token".into()),
            hmac_key: Some("/hmac".into()),
        }
    );
    assert_eq!((local.timeout, &local.files), (TIMEOUT, &Files::default()));
    assert_eq!(local.url, "http://localhost:8080/webhook");
    let json = parsed(r#"{"endpoints": [{"name": "a", "url": "https://b"}]}"#).unwrap();
    assert_eq!(json.len(), 1);
}

#[test]
fn http_is_for_this_machine_or_on_demand() {
    let url = |url: &str| parsed(&format!("endpoints: [{{name: a, url: '{url}'}}]"));
    for loopback in ["http://127.0.0.1:1/", "http://127.8.8.8/", "http://[::1]:8080", "http://LOCALHOST"] {
        assert!(url(loopback).is_ok(), "{loopback}");
    }
    for other in ["http://10.0.0.1/", "http://localhost.example.com/", "http://pager/"] {
        assert!(url(other).unwrap_err().to_string().contains("must be https"), "{other}");
    }
    assert!(parsed("endpoints: [{name: a, url: 'http://pager/', allowInsecure: true}]").is_ok());
}

#[test]
fn faults_name_the_endpoint_and_the_field() {
    let entry = |text: &str| parsed(&format!("endpoints: [{{{text}}}]"));
    let same = "endpoints: [{name: a, url: 'https://b'}, {name: a, url: 'https://c'}]";
    let many = format!("endpoints: [{}]", "{name: a, url: 'https://b'},".repeat(33));
    let cases = [
        (entry("url: 'https://b'"), "endpoint #1: name: must be"),
        (entry("name: Pager, url: 'https://b'"), "endpoint Pager: name: must be"),
        (entry("name: -a, url: 'https://b'"), "endpoint -a: name: must be"),
        (entry("name: a_b, url: 'https://b'"), "endpoint a_b: name: must be"),
        (entry("name: a"), "endpoint a: url: is missing"),
        (entry("name: a, url: 'ftp://b'"), "endpoint a: url: must begin with https://"),
        (entry("name: a, url: /b"), "endpoint a: url: must be absolute"),
        (entry("name: a, url: 'https://u:pw@b/'"), "endpoint a: url: must not hold a user"),
        (entry("name: a, url: 'https://b c'"), "endpoint a: url: is no URL"),
        (entry("name: a, url: 'http://127.0.0.1', caFile: /ca"), "endpoint a: caFile: has no meaning"),
        (with("certFile: /c"), "endpoint pager: keyFile: is missing"),
        (with("keyFile: /c"), "endpoint pager: certFile: is missing"),
        (with("timeout: soon"), "endpoint pager: timeout: must be a time"),
        (with("timeout: 0s"), "endpoint pager: timeout: must be a time"),
        (with("timeout: -1s"), "endpoint pager: timeout: must be a time"),
        (with("timeout: 121s"), "endpoint pager: timeout: must be a time"),
        (with("tokenfile: /t"), "tokenfile"),
        (parsed(same), "endpoint a: name: another endpoint has the same"),
        (parsed(&many), "there are 33 endpoints, and may be 32"),
        (parsed("endpoint: []"), "endpoint"),
        (parsed("endpoints: {"), "endpoints.yaml"),
        (read(Path::new("/nowhere/at/all")).and_then(check), "cannot read /nowhere/at/all"),
    ];
    for (outcome, expected) in cases {
        let error = outcome.expect_err(expected).to_string();
        assert!(error.contains(expected), "{error}\nshould say {expected}");
    }
}

#[test]
fn neither_faults_nor_debugging_show_what_may_be_secret() {
    let secret = "T0KEN";
    let shown =
        format!("{:?}", parsed(&format!("endpoints: [{{name: a, url: 'https://b/{secret}?k={secret}'}}]")));
    assert!(shown.contains("\"a\"") && !shown.contains(secret), "{shown}");
    for text in [
        format!("endpoints: [{{name: a, url: 'https://u:{secret}@b/'}}]"),
        format!("endpoints: [{{name: a, url: 'http://b/{secret}'}}]"),
        format!("endpoints: [{{name: a, url: 'https://b/{secret}', more: 1}}]"),
        format!("endpoints: [{{name: a, url: ['https://b/{secret}'"),
    ] {
        let error = parsed(&text).unwrap_err();
        assert!(!format!("{error} {error:?}").contains(secret), "{error:?}");
    }
}

#[test]
fn the_example_in_the_documentation_is_right() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples/endpoints.yaml");
    let endpoints = read(&file).and_then(check).unwrap();
    assert_eq!(
        endpoints.iter().map(|endpoint| endpoint.name.as_str()).collect::<Vec<_>>(),
        ["pager", "history"]
    );
    assert!(endpoints[0].files.identity.is_some() && endpoints[1].files.token.is_some());
}
