use super::{Redaction, redact, redact_both};
use crate::{Diff, Leaf, intent, object};
use serde_json::{Value, json};

fn salt() -> Redaction {
    Redaction::new("salt")
}

fn secret(data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "data": data})
}

/// Masks the digests, which other tests look at.
fn masked(text: &str) -> String {
    let mut parts = text.split("redacted:");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |masked, part| {
        let (digest, rest) = part.split_at(12);
        assert!(digest.chars().all(|c| c.is_ascii_hexdigit()), "{digest}");
        masked + "#" + rest
    })
}

fn check(old: Value, new: Value, expected: &str) {
    let diff = object(Some(&old), Some(&new), &salt());
    assert_eq!(masked(&diff.to_string()), expected, "from {old} to {new}");
    for text in [format!("{diff:?}"), serde_json::to_string(&diff).unwrap(), diff.to_string()] {
        assert!(!text.contains("plain"), "{text}");
    }
    for side in [old, new] {
        let text = redact(&side, &salt()).to_string();
        assert!(side.get("kind").is_none() || !text.contains("plain"), "{text}");
    }
}

#[test]
fn values_are_digests() {
    check(secret(json!({"a": "plain1"})), secret(json!({"a": "plain2"})), "data.a: # → #");
    check(secret(json!({"a": "plain"})), secret(json!({"a": "plain", "b": "plain"})), "data.b: + #");
    check(secret(json!({"a": "plain"})), secret(json!({})), "data.a: - #");
    check(secret(json!({"a": {"b": "plain"}})), secret(json!({"a": ["plain"]})), "data.a: # → #");
    check(secret(json!({"a": null})), secret(json!({"a": "plain"})), "data.a: # → #");
    let with = |name: &str, value| json!({"apiVersion": "v1", "kind": "Secret", name: value});
    check(
        with("x", json!(1)),
        with("stringData", json!({"a": "plain"})),
        "stringData: + {\"a\":\"#\"}\nx: - 1",
    );
    check(
        with("stringData", json!({"a": "plain"})),
        with("stringData", json!({"a": "plain2"})),
        "stringData.a: # → #",
    );
}

#[test]
fn what_stands_in_the_place_of_a_map_is_a_digest() {
    check(secret(json!("plain1")), secret(json!("plain2")), "data: # → #");
    check(secret(json!(["plain1"])), secret(json!(["plain2"])), "data: # → #");
    check(secret(json!([{"name": "plain1"}])), secret(json!([])), "data: # → #");
    check(secret(json!(null)), secret(json!({"a": "plain"})), r##"data: null → {"a":"#"}"##);
}

#[test]
fn copies_of_the_object_are_digests() {
    let bare = json!({"apiVersion": "v1", "kind": "Secret"});
    for name in super::COPIES {
        let annotations = |copy: &Value| json!({"annotations": {"a": "b", name: copy}});
        let with = |copy| json!({"apiVersion": "v1", "kind": "Secret", "metadata": annotations(&copy)});
        check(
            with(json!("plain1")),
            with(json!("plain2")),
            &format!(r#"metadata.annotations["{name}"]: # → #"#),
        );
        let removed = object(Some(&with(json!("plain"))), Some(&bare), &salt());
        let digest = salt().marker(&json!("plain"));
        assert_eq!(json!(removed), json!([{"path": "metadata", "old": annotations(&digest)}]));
    }
}

#[test]
fn one_side_that_is_a_secret_is_enough() {
    let (kind, data) = (json!({"kind": "Secret"}), json!({"data": {"a": "plain"}}));
    check(
        data.clone(),
        kind.clone(),
        r##"data: - {"a":"#"}
kind: + Secret"##,
    );
    check(
        kind.clone(),
        data,
        r##"data: + {"a":"#"}
kind: - Secret"##,
    );
    check(kind, json!("plain"), r##".: {"kind":"Secret"} → #"##);
}

#[test]
fn only_secrets_are_redacted() {
    let text = |api: &str, kind: &str| {
        let with = |value| json!({"apiVersion": api, "kind": kind, "data": {"a": value}});
        assert_eq!(redact(&with("x"), &salt()) == with("x"), kind != "Secret" || api == "x.io/v1");
        masked(&intent(Some(&with("x")), Some(&with("y")), &salt()).to_string())
    };
    assert_eq!(text("v1", "ConfigMap"), "data.a: x → y");
    assert_eq!(text("x.io/v1", "Secret"), "data.a: x → y");
    assert_eq!(text("v1", "Secret"), "data.a: # → #");
}

#[test]
fn a_missing_api_version_is_taken_for_v1() {
    let with = |value| json!({"kind": "Secret", "data": {"a": value}});
    assert_eq!(redact(&with(json!("plain")), &salt()), with(salt().marker(&json!("plain"))));
}

#[test]
fn the_rest_of_a_secret_stays() {
    let with = |data: Value, copy: &str| {
        json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "immutable": true, "data": data,
            "metadata": {"name": "s", "annotations": {"a": "b", "kubectl.kubernetes.io/last-applied-configuration": copy}}})
    };
    let safe = redact(&with(json!({"k": "v"}), "{}"), &salt());
    let digests = |pointer: &str| safe.pointer(pointer).cloned().unwrap();
    let copy = digests("/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration");
    assert_eq!(safe, with(json!({"k": digests("/data/k")}), copy.as_str().unwrap()));
}

#[test]
fn annotations_and_labels_that_quote_a_value_are_digests() {
    let with = |data: Value, text: &str| {
        json!({"kind": "Secret", "metadata": {"annotations": {"note": text}, "labels": {"note": text}},
            "data": data["data"], "stringData": data["stringData"]})
    };
    // "s3cret", "ab" and "other".
    let data =
        json!({"data": {"a": "czNjcmV0", "b": "YWI=", "c": "", "d": "IA=="}, "stringData": {"e": "other"}});
    let is_shown = |text: &str| {
        let object = with(data.clone(), text);
        let metadata = &redact(&object, &salt())["metadata"];
        let shown = &metadata["annotations"]["note"];
        assert!(shown == text || *shown == salt().marker(&json!(text)), "{shown}");
        assert_eq!(metadata["labels"]["note"], *shown);
        shown == text
    };
    for quoting in ["s3cret", "it was s3cret!", "czNjcmV0", "x=czNjcmV0;", "ab", "YWI", "another", "b3RoZXI="]
    {
        assert!(!is_shown(quoting), "{quoting}");
    }
    for harmless in ["", " ", "s3cre", "a", "abc", "stable"] {
        assert!(is_shown(harmless), "{harmless}");
    }
    let (old, new) = (
        with(json!({"data": {"a": "czNjcmV0"}}), "new is other"),
        with(json!({"stringData": {"a": "other"}}), "old was s3cret"),
    );
    let (safe_old, safe_new) = redact_both(Some(&old), Some(&new), &salt());
    for (object, alone, both) in [(old, 2, safe_old), (new, 2, safe_new)] {
        let quotes = |object: &Value| {
            object.to_string().matches(" is ").count() + object.to_string().matches(" was ").count()
        };
        assert_eq!((quotes(&redact(&object, &salt())), quotes(&both.unwrap())), (alone, 0));
    }
    assert_eq!(redact_both(None, None, &salt()), (None, None));
    let other = json!({"kind": "ConfigMap", "metadata": {"annotations": {"note": "s3cret"}}, "data": {"a": "s3cret"}});
    assert_eq!(redact_both(None, Some(&other), &salt()), (None, Some(other.clone())));
}

fn digests(old: &str, new: &str, salt: &str) -> [String; 2] {
    let Diff { changes } =
        intent(Some(&secret(json!({"a": old}))), Some(&secret(json!({"a": new}))), &Redaction::new(salt));
    let leaves = [changes[0].old.clone(), changes[0].new.clone()];
    leaves.map(|leaf| match leaf {
        Some(Leaf::Redacted(digest)) => digest,
        other => panic!("not redacted: {other:?}"),
    })
}

#[test]
fn digests_tell_values_apart_and_depend_on_the_salt() {
    let [x, y] = digests("x", "y", "salt");
    assert_ne!(x, y);
    assert_eq!(digests("y", "x", "salt"), [y, x.clone()]);
    assert_ne!(digests("x", "y", "pepper")[0], x);
    let safe = redact(&secret(json!({"b": "x"})), &salt());
    assert_eq!(safe["data"]["b"], format!("redacted:{x}"));
}

#[test]
fn the_hash_of_a_change_depends_on_the_salt() {
    let hash = |salt: &str| {
        intent(Some(&secret(json!({"a": "x"}))), Some(&secret(json!({"a": "y"}))), &Redaction::new(salt))
            .hash()
    };
    assert_eq!(hash("salt"), "a368e26c8dcd3918");
    assert_ne!(hash("salt"), hash("pepper"));
}

#[test]
fn the_salt_is_not_shown() {
    assert_eq!(format!("{:?}", Redaction::new("pepper")), "Redaction { .. }");
}

#[test]
fn a_literal_that_looks_like_a_digest_is_told_apart() {
    let config = |value| json!({"kind": "ConfigMap", "data": {"a": value}});
    let diff = intent(Some(&config("redacted:0")), Some(&config("x")), &salt());
    assert_eq!(diff.to_string(), r#"data.a: "redacted:0" → x"#);
}

/// Two versions of an object that is no Secret: neither its diff nor itself shows what is secret, and both show the rest.
#[track_caller]
fn kind(old: Value, new: Value, redaction: &Redaction, expected: &str) {
    let diff = object(Some(&old), Some(&new), redaction);
    assert_eq!(masked(&diff.to_string()), expected, "from {old} to {new}");
    let (old, new) = redact_both(Some(&old), Some(&new), redaction);
    let shown = [format!("{diff:?}"), json!(diff).to_string(), json!([old, new]).to_string()];
    for text in shown {
        assert!(!text.contains("plain"), "{text}");
    }
}

/// Cluster API keeps the token by which machines join in the spec of a KubeadmConfig.
#[test]
fn a_token_in_any_kind_is_a_digest() {
    let config = |token: &str| {
        json!({"apiVersion": "bootstrap.cluster.x-k8s.io/v1beta2", "kind": "KubeadmConfig", "metadata": {"name": "c"}, "spec": {
            "joinConfiguration": {"discovery": {"bootstrapToken": {"token": token, "apiServerEndpoint": "10.0.0.1:6443",
                "caCertHashes": ["sha256:ab"]}}}}})
    };
    kind(
        config("plain1.0123456789abcdef"),
        config("plain2.0123456789abcdef"),
        &salt(),
        "spec.joinConfiguration.discovery.bootstrapToken.token: # → #",
    );
    let shown = redact(&config("plain"), &salt());
    let discovery = &shown["spec"]["joinConfiguration"]["discovery"]["bootstrapToken"];
    assert_eq!(discovery["token"], salt().marker(&json!("plain")));
    assert_eq!(
        (&discovery["apiServerEndpoint"], &discovery["caCertHashes"]),
        (&json!("10.0.0.1:6443"), &json!(["sha256:ab"]))
    );
    let added = intent(None, Some(&config("plain")), &salt());
    assert!(!format!("{added:?}").contains("plain"), "{added:?}");
}

#[test]
fn variables_lists_and_private_keys_are_digests() {
    let pod = |value: &str| {
        json!({"kind": "Pod", "spec": {"containers": [{"name": "app", "env": [
            {"name": "DB_PASSWORD", "value": value}, {"name": "DB_HOST", "value": "db"}]}]}})
    };
    kind(
        pod("plain1"),
        pod("plain2"),
        &salt(),
        "spec.containers[name=app].env[name=DB_PASSWORD].value: # → #",
    );
    let spec = |spec: Value| json!({"kind": "Thing", "spec": spec});
    kind(
        spec(json!({"tokens": ["plain1"]})),
        spec(json!({"tokens": ["plain1", "plain2"]})),
        &salt(),
        r##"spec.tokens: ["#"] → ["#","#"]"##,
    );
    let key = |text: &str| format!("-----BEGIN RSA PRIVATE KEY-----\n{text}\n-----END RSA PRIVATE KEY-----");
    let file = |text: &str| spec(json!({"files": [{"path": "/etc/key", "content": key(text)}]}));
    kind(file("plain1"), file("plain2"), &salt(), "spec.files[0].content: # → #");
}

/// References say where a secret is: they stay, and so does what is no text.
#[test]
fn references_to_secrets_stay() {
    let object = json!({"kind": "Thing", "metadata": {"name": "t"}, "imagePullSecrets": [{"name": "pull"}], "spec": {
        "secretName": "tls", "tokenSecretRef": {"name": "t", "key": "token"}, "passwordSecretRef": {"name": "p", "key": "password"},
        "privateKey": {"algorithm": "RSA", "size": 2048}, "keyAlgorithm": "rsa", "automountServiceAccountToken": true,
        "token": {"secretKeyRef": {"name": "t", "key": "token"}}, "password": "$(DB_PASSWORD)", "secrets": ["a", "b"],
        "env": [{"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "t", "key": "token"}}}, {"name": "TOKEN_FILE", "value": "/t"}],
        "maxTokens": 5, "volumes": [{"name": "token", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}]}});
    assert_eq!(redact(&object, &salt()), object);
}

/// A copy of the object, or a quote, says the same as the field.
#[test]
fn copies_and_quotes_of_what_is_covered_are_digests() {
    let object = |token: &str| {
        json!({"kind": "Thing", "metadata": {"annotations": {"note": format!("was {token}"), "other": "x",
            "kubectl.kubernetes.io/last-applied-configuration": format!("{{\"token\":\"{token}\"}}")}}, "spec": {"token": token}})
    };
    let shown = redact(&object("plain-enough"), &salt());
    assert!(!shown.to_string().contains("plain"), "{shown}");
    assert_eq!(shown["metadata"]["annotations"]["other"], "x");
    let diff = crate::object(Some(&object("plain-1")), Some(&json!({"kind": "Thing"})), &salt());
    assert!(!format!("{diff:?}").contains(r#"\"token\":\"plain"#), "{diff:?}");
}

#[test]
fn named_fields_are_digests() {
    let named = |fields: &[&str]| {
        let fields: Vec<crate::Path> = fields.iter().map(|field| crate::parse_path(field).unwrap()).collect();
        salt().with_fields(&fields)
    };
    let users =
        |pin: Value| json!({"kind": "Thing", "spec": {"users": [{"name": "a", "pin": pin}], "pin": "open"}});
    kind(
        users(json!("plain1")),
        users(json!("plain2")),
        &named(&["spec.users[0].pin"]),
        "spec.users[name=a].pin: # → #",
    );
    let shown = redact(&users(json!(1234)), &named(&["spec.users.pin"]));
    assert_eq!(
        shown["spec"],
        json!({"users": [{"name": "a", "pin": salt().marker(&json!(1234))}], "pin": "open"})
    );
    let map = |value: &str| json!({"kind": "ConfigMap", "data": {"a.conf": value}, "other": "open"});
    kind(map("plain1"), map("plain2"), &named(&["data"]), r#"data["a.conf"]: # → #"#);
}
