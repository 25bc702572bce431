//! Secret values are compared, and never shown.

use crate::plan::stage::*;

const SECRET: &str = "
apiVersion: v1
kind: Secret
metadata: {name: db}
data: {user: cGxhbnRlZC11c2Vy}
stringData: {password: planted-password, pin: '4711'}
";

/// In plain and in base64.
const PLANTED: [&str; 7] =
    ["planted", "cGxhbnRlZC", "cGxhbnRlZC1wYXNzd29yZA", "4711", "NDcxMQ", "cGxhbnRlZC1uZXc", "4712"];

#[tokio::test(flavor = "multi_thread")]
async fn secret_values_appear_in_no_output() {
    let Some(stage) = stage().await else { return };
    let code = |manifests: &str| {
        let codes = ["table", "json", "sarif", "junit"].map(|format| {
            let output = stage.diff(manifests, &["--all", "-o", format]);
            for planted in PLANTED {
                let shown = [&output.stdout, &output.stderr].iter().any(|text| text.contains(planted));
                assert!(!shown, "{planted} is shown in {format}: {output:#?}");
            }
            output.code
        });
        assert!(codes.iter().all(|code| *code == codes[0]), "{codes:?}");
        codes[0]
    };
    assert_eq!(code(SECRET), 1, "it does not exist");
    stage.kubectl_with(&["apply", "-f", "-"], SECRET);
    code(SECRET);
    code(&SECRET.replace("planted-password", "planted-new"));
    stage.must(&["delete", "secret", "db"]);

    stage.apply("ci", SECRET);
    assert_eq!(code(SECRET), 0);
    assert_eq!(code(&SECRET.replace("planted-password", "planted-new")), 1);
    assert_eq!(code(&SECRET.replace("password: planted-password, ", "")), 1);
    stage.apply("other", &SECRET.replace("'4711'", "'4712'"));
    assert_eq!(code(SECRET), 1);
    stage.must(&["patch", "secret", "db", "--type=merge", "-p", r#"{"metadata":{"managedFields":[{}]}}"#]);
    assert_eq!(code(SECRET), 1);

    for bad in [
        SECRET.replace("cGxhbnRlZC11c2Vy", "planted-bad!"),
        SECRET.replace("cGxhbnRlZC11c2Vy", "[planted-bad]"),
        SECRET.replace("password: planted-password", "password: {planted-bad: planted-password}"),
        SECRET.replace("'4711'", "4711"),
        SECRET
            .replace("metadata: {name: db}", "metadata: {name: db}\nplanted: planted-password")
            .replace("\nplanted: ", "\nunknown: "),
    ] {
        assert_ne!(code(&bad), 0, "{bad}");
    }
}

const POLICY: &str = r#"
apiVersion: kausality.io/v1alpha1
kind: Kausality
metadata: {name: pins}
spec:
  resources: [{apiGroups: [""], resources: [configmaps]}]
  mode: log
  redact: [data.code]
"#;

const CODES: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: codes}
data: {code: planted-code, color: blue}
";

#[tokio::test(flavor = "multi_thread")]
async fn fields_that_a_policy_names_appear_in_no_output() {
    let Some(stage) = alone().await else { return };
    let crds = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/crds");
    let shows = |text: &str| text.contains("planted");
    let new = CODES.replace("planted-code", "planted-new").replace("blue", "green");
    stage.apply("ci", CODES);
    let all = || {
        let own = stage.own("configmap/codes").to_string();
        let diff = stage.diff(&new, &["--all", "-o", "json"]).stdout;
        let plan = stage.plan(&new, &["-o", "json"]).stdout;
        [own, diff, plan]
    };
    let before = all();
    assert!(before.iter().all(|text| shows(text)), "{before:#?}");
    stage.must(&["apply", "-f", crds]);
    stage.must(&["wait", "--for=condition=Established", "crd/kausalities.kausality.io", "--timeout=30s"]);
    stage.kubectl_with(&["apply", "-f", "-"], POLICY);
    let after = all();
    assert!(after.iter().all(|text| !shows(text) && text.contains("redacted")), "{after:#?}");
    assert!(after.iter().all(|text| text.contains("blue") || text.contains("green")), "{after:#?}");
}
