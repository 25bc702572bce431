//! Secret values are compared, and never shown.

use crate::stage::*;

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
