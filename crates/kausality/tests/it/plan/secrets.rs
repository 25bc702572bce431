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
const PLANTED: [&str; 9] = [
    "planted-user",
    "cGxhbnRlZC11c2Vy",
    "planted-password",
    "cGxhbnRlZC1wYXNzd29yZA",
    "4711",
    "NDcxMQ",
    "planted-new",
    "cGxhbnRlZC1uZXc",
    "planted-bad",
];

#[track_caller]
fn is_clean(output: &Output) {
    for planted in PLANTED {
        for text in [&output.stdout, &output.stderr] {
            assert!(!text.contains(planted), "{planted} is shown: {output:#?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn secret_values_appear_nowhere() {
    let Some(stage) = stage().await else { return };
    let outputs = |manifests: &str, code: i32| {
        for arguments in [&[][..], &["-o", "json"], &["-o", "json", "--force-conflicts"]] {
            let output = stage.plan(manifests, arguments);
            assert_eq!(output.code, code, "{output:#?}");
            is_clean(&output);
        }
        stage.plan(manifests, &["-o", "json"]).json()
    };
    let document = outputs(SECRET, 1);
    let password = field(only(&document), "data.password")["after"].as_str().unwrap().to_owned();
    assert!(password.starts_with("redacted:"), "{password}");
    // Another run, another salt: digests cannot be collected.
    let again = outputs(SECRET, 1);
    assert_ne!(field(only(&again), "data.password")["after"], password.as_str());

    // What client-side apply keeps is a copy of it all.
    stage.kubectl_with(&["apply", "-f", "-"], SECRET);
    outputs(&SECRET.replace("planted-password", "planted-new"), 1);
    stage.must(&["delete", "secret", "db"]);

    stage.apply("ci", SECRET);
    outputs(SECRET, 0);
    let changed =
        SECRET.replace("cGxhbnRlZC11c2Vy", "cGxhbnRlZC1uZXc=").replace("planted-password", "planted-new");
    let document = outputs(&changed, 1);
    let user = field(only(&document), "data.user");
    assert_ne!(user["before"], user["after"]);

    stage.apply("other", &SECRET.replace("'4711'", "'4712'"));
    let document = outputs(&changed, 1);
    assert_eq!(only(&document)["action"], "conflict", "{document:#}");

    for bad in [
        SECRET.replace("cGxhbnRlZC11c2Vy", "planted-bad!"),
        SECRET.replace("cGxhbnRlZC11c2Vy", "[planted-bad]"),
        SECRET.replace("password: planted-password", "password: {planted-bad: planted-password}"),
        SECRET.replace("'4711'", "4711"),
        SECRET.replace("user: ", "bad key: "),
        SECRET.replace("metadata: {name: db}", "metadata: {name: db}\ntype: planted-bad/other"),
        SECRET.replace("metadata: {name: db}", "metadata: {name: db}\nplanted: planted-password"),
        SECRET
            .replace("stringData: {", "stringData: {.dockerconfigjson: 'planted-bad', ")
            .replace("metadata: {name: db}", "metadata: {name: other}\ntype: kubernetes.io/dockerconfigjson"),
    ] {
        for arguments in [&["--force-conflicts"][..], &["--force-conflicts", "-o", "json"]] {
            let output = stage.plan(&bad, arguments);
            // The type of a Secret is no secret.
            if !bad.contains("type: planted-bad") {
                is_clean(&output);
            }
            assert_eq!(output.code, 2, "{output:#?}");
        }
    }
}
