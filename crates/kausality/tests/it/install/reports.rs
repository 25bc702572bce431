//! What the chart makes of the endpoints of drift reports, and what the controller makes of that.

use std::{collections::BTreeSet, path::Path};

use kausality_report::{
    endpoint::{Endpoint, check, read as read_endpoints},
    sender::Sender,
};
use serde_json::Value;

use crate::install::stage::*;

const FOLDER: &str = "/etc/kausality/reports";

/// The endpoints of a rendering, and what the volume of the controller holds: a key of which Secret, and where it is.
fn reports(objects: &[Value]) -> (String, Vec<(String, String, String)>) {
    let of = |kind: &str, name: &str| {
        let is_it = |object: &&Value| object["kind"] == kind && object["metadata"]["name"] == name;
        objects.iter().find(is_it).unwrap_or_else(|| panic!("no {kind} {name}"))
    };
    let endpoints = of("ConfigMap", "kausality-report-endpoints")["data"]["endpoints.yaml"].clone();
    let pod = &of("Deployment", "kausality-controller")["spec"]["template"]["spec"];
    let mount = &pod["containers"][0]["volumeMounts"][0];
    assert_eq!((&mount["mountPath"], &mount["readOnly"]), (&FOLDER.into(), &true.into()));
    // What is mounted by subPath does not rotate.
    assert!(mount.get("subPath").is_none());
    assert_eq!(pod["volumes"][0]["name"], mount["name"]);
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let mut files = Vec::new();
    let sources = pod["volumes"][0]["projected"]["sources"].as_array().unwrap();
    assert_eq!(sources[0]["configMap"]["name"], "kausality-report-endpoints");
    for secret in sources.iter().skip(1).map(|source| &source["secret"]) {
        for item in secret["items"].as_array().unwrap() {
            files.push((text(&secret["name"]), text(&item["key"]), text(&item["path"])));
        }
    }
    (text(&endpoints), files)
}

/// The endpoints as the controller reads them, with the volume in this folder.
fn parsed(folder: &Path, endpoints: &str) -> Vec<Endpoint> {
    let file = folder.join("endpoints.yaml");
    std::fs::write(&file, endpoints.replace(FOLDER, folder.to_str().unwrap())).unwrap();
    check(read_endpoints(&file).unwrap()).unwrap()
}

#[test]
fn the_controller_takes_the_endpoints_that_the_chart_gives() {
    let (text, files) = reports(&objects(&read("deploy/golden/everything.yaml")));
    let folder = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(vec!["pager.example.com".to_owned()]).unwrap();
    for (_, key, path) in &files {
        let content = match key.as_str() {
            "ca.crt" | "tls.crt" => made.cert.pem(),
            "tls.key" => made.signing_key.serialize_pem(),
            _ => "0123456789abcdef".to_owned(),
        };
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
    let endpoints = parsed(folder.path(), &text);
    let said: Vec<(&str, u64)> =
        endpoints.iter().map(|endpoint| (endpoint.name.as_str(), endpoint.timeout.as_secs())).collect();
    assert_eq!(said, [("pager", 5), ("history", 10)]);

    // Each file is read, and each file that is read is there.
    let mut wanted = BTreeSet::new();
    for endpoint in &endpoints {
        let files = endpoint.files.clone();
        let identity = files.identity.into_iter().flat_map(|(certificate, key)| [certificate, key]);
        wanted.extend([files.ca, files.token, files.hmac_key].into_iter().flatten().chain(identity));
    }
    assert_eq!(wanted, files.iter().map(|(_, _, path)| folder.path().join(path)).collect());
    let keys: Vec<(&str, &str)> =
        files.iter().map(|(secret, key, _)| (secret.as_str(), key.as_str())).collect();
    assert!(keys.contains(&("pager", "signature")) && keys.contains(&("pager", "token")), "{keys:?}");
    for endpoint in endpoints {
        Sender::new(endpoint).unwrap();
    }
}

#[tokio::test]
async fn endpoints_that_make_no_sense_are_refused_and_none_is_as_before() {
    let Some(helm) = Helm::find().await else { return };
    let with = |value: &str| format!("reports.endpoints[0].name=a,reports.endpoints[0].{value}");
    let good = with("url=https://a.example.com/");
    for (values, named) in [
        (with("timeout=5s"), "url"),
        (with("url=ftp://a"), "url"),
        (with("url=http://a.example.com/"), "allowInsecure"),
        (with("url=https://user:password@a/"), "url"),
        (with("url=http://localhost/") + ",reports.endpoints[0].caSecret.name=a", "caSecret"),
        // What is secret has no place in values.
        (format!("{good},reports.endpoints[0].token=s3cret"), "token"),
        (format!("{good},reports.endpoints[0].tokenSecret.value=s3cret"), "value"),
        (format!("{good},reports.endpoints[0].tokenSecret.key=token"), "name"),
        (format!("{good},reports.endpoints[1].name=a,reports.endpoints[1].url=https://b/"), "twice"),
    ] {
        let (accepted, said) = helm.run(&["template", "deploy/chart", "--set", &values]);
        assert!(!accepted && said.contains(named), "{values}: {said}");
    }
    let (bare, one) = (objects(&helm.template(&[])), objects(&helm.template(&["--set", &good])));
    assert_eq!(one.len(), bare.len() + 1);
    assert!(!helm.template(&[]).contains("report-endpoints"));
    let (text, files) = reports(&one);
    assert_eq!(parsed(tempfile::tempdir().unwrap().path(), &text).len(), 1);
    assert_eq!(files, []);
}

#[tokio::test]
async fn the_controller_alone_may_reach_its_endpoints() {
    let Some(helm) = Helm::find().await else { return };
    let urls = [
        "https://a.example.com/x",
        "https://b.example.com:8443",
        "http://127.0.0.1/",
        "https://[::1]:9443/x:1",
    ];
    let entries: Vec<Value> = urls
        .iter()
        .enumerate()
        .map(|(nth, url)| serde_json::json!({"name": format!("e{nth}"), "url": url}))
        .collect();
    let values = format!("reports.endpoints={}", Value::Array(entries));
    let egress = |arguments: &[&str], name: &str| {
        let made = objects(&helm.template(arguments));
        let is_it = |one: &&Value| one["kind"] == "NetworkPolicy" && one["metadata"]["name"] == name;
        made.iter().find(is_it).unwrap()["spec"]["egress"].as_array().unwrap().clone()
    };
    let more = ["--set-json", &values, "--set", "networkPolicy.reports.ports={10443}"];
    let [before, after] = [&[][..], &more].map(|arguments| egress(arguments, "kausality-controller"));
    let (rule, rest) = after.split_last().unwrap();
    assert_eq!(rest, before);
    let ports: Vec<u64> =
        rule["ports"].as_array().unwrap().iter().map(|port| port["port"].as_u64().unwrap()).collect();
    assert_eq!((ports, rule.get("to")), (vec![10443, 443, 8443, 80, 9443], None));
    assert_eq!(egress(&more, "kausality-webhook"), egress(&[], "kausality-webhook"));
}
