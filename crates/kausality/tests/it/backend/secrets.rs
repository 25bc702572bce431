//! A Secret drifts, and no value of it is anywhere on the way of its report.

use std::{
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use kausality_testbed::eventually;
use serde_json::{Value, json};

use crate::backend::{
    garden::{Garden, PATIENCE, Plot},
    machinery::Machinery,
};

const BEFORE: &str = "hunter2-planted-before";
const AFTER: &str = "hunter2-planted-after";

/// What must not be found: what both values share, as it is and in base64, wherever in the encoded text it begins.
fn planted() -> Vec<String> {
    let shared = "hunter2-planted";
    let encoded = (0..3).map(|skipped| {
        let text = STANDARD.encode(format!("{}{shared}", "?".repeat(skipped)));
        // The first and the last letters depend on the neighbours.
        text[4..text.len() - 4].to_owned()
    });
    encoded.chain([shared.to_owned()]).collect()
}

/// An endpoint that keeps every byte it is sent.
struct Recorder {
    url: String,
    heard: Arc<Mutex<Vec<u8>>>,
}

impl Recorder {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let heard = Arc::new(Mutex::new(Vec::new()));
        let keeping = heard.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let request = request(stream).unwrap_or_default();
                keeping.lock().unwrap().extend(request);
            }
        });
        Self { url, heard }
    }

    fn heard(&self) -> String {
        String::from_utf8(self.heard.lock().unwrap().clone()).unwrap()
    }
}

/// Reads one request to its end, and takes it over.
fn request(mut stream: TcpStream) -> std::io::Result<Vec<u8>> {
    let (mut request, mut part) = (Vec::new(), [0; 4096]);
    loop {
        let text = String::from_utf8_lossy(&request).to_lowercase();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            if body.len() >= length.and_then(|length| length.parse().ok()).unwrap_or(0) {
                break;
            }
        }
        match stream.read(&mut part)? {
            0 => break,
            read => request.extend_from_slice(&part[..read]),
        }
    }
    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")?;
    Ok(request)
}

/// Annotations that quote a Secret, as tools and people leave them behind.
fn annotations(value: &str) -> Value {
    let copy = json!({"apiVersion": "v1", "kind": "Secret", "stringData": {"password": value}}).to_string();
    json!({
        "kubectl.kubernetes.io/last-applied-configuration": copy,
        "objectset.rio.cattle.io/applied": copy,
        "kapp.k14s.io/original": copy,
        "banzaicloud.com/last-applied": copy,
        "example.com/note": format!("the password is {value}, do not tell"),
        "example.com/encoded": format!("[{}]", STANDARD.encode(value)),
        "example.com/rotated": format!("from {BEFORE}"),
        "example.com/team": "flowers",
    })
}

fn environment(value: &str) -> String {
    format!("USER=rose\nPASSWORD={value}\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn no_value_of_a_secret_is_told_or_kept() {
    let garden = Garden::new().await;
    let (changed, deleted, spare) = (Plot(0), Plot(1), Plot(2));
    garden.namespace(&changed.namespace()).await;
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"annotations": annotations(BEFORE)},
        "data": {"password": STANDARD.encode(BEFORE), "env": STANDARD.encode(environment(BEFORE))}});
    for plot in [changed, deleted, spare] {
        garden.plant(plot, serde_json::from_value(secret.clone()).unwrap()).await;
    }
    let recorder = Recorder::new();
    let endpoint = json!({"name": "recorder", "url": recorder.url});
    let machinery = Machinery::new(&garden, "debug", &[endpoint]);
    garden.guarded(spare, "Secret").await;

    let patch = json!({"metadata": {"annotations": annotations(AFTER)}, "data": {"key": STANDARD.encode(AFTER)},
        "stringData": {"password": AFTER, "env": environment(AFTER)}});
    let update = garden.drift(changed, "Secret", &patch).await.drift.unwrap();
    // A deletion has no field manager to know the operator by.
    garden.settle(deleted).await;
    let delete = garden.drift_away(deleted, "Secret").await.drift.unwrap();
    for plot in [changed, deleted] {
        assert_eq!(garden.change(plot).await.drift, None);
    }
    let arrived = async || match machinery.ask("/healthz")["driftCount"].as_u64() {
        Some(4) if recorder.heard().matches("DriftReport").count() == 4 => Ok(()),
        reports => Err(format!("{reports:?} reports. {}", machinery.last_words())),
    };
    eventually(PATIENCE, "both are told, and that they are over", arrived).await.unwrap();

    // That something is told is to be seen, too.
    let report = machinery.ask(&format!("/api/v1/drifts/{update}"))["report"]["spec"].clone();
    for side in ["oldObject", "newObject"] {
        for field in ["password", "env"] {
            let digest = report[side]["data"][field].as_str().unwrap();
            assert!(digest.starts_with("redacted:"), "{side} {field}: {digest}");
        }
        let annotations = &report[side]["metadata"]["annotations"];
        assert_eq!(annotations["example.com/team"], "flowers", "what quotes nothing stays");
        for quoting in ["note", "encoded", "rotated"] {
            let digest = annotations[format!("example.com/{quoting}")].as_str().unwrap();
            assert!(digest.starts_with("redacted:"), "{side} {quoting}: {digest}");
        }
    }
    assert_ne!(report["oldObject"]["data"]["password"], report["newObject"]["data"]["password"]);

    let mut places = vec![
        ("what was sent".to_owned(), recorder.heard()),
        ("the log of webhook and controller".to_owned(), machinery.logs()),
        ("the log of the backend".to_owned(), machinery.backend.log()),
        ("the ledger".to_owned(), serde_json::to_string(&garden.ledger().await).unwrap()),
        ("an event".to_owned(), garden.events().await),
        ("an audit entry".to_owned(), garden.audit()),
    ];
    let one = |id: &str| format!("/api/v1/drifts/{id}");
    for path in ["/api/v1/drifts".to_owned(), one(&update), one(&delete), "/healthz".to_owned()] {
        places.push((path.clone(), machinery.ask(&path).to_string()));
    }
    for file in machinery.database() {
        let bytes = std::fs::read(&file).unwrap();
        places.push((file.display().to_string(), String::from_utf8_lossy(&bytes).into_owned()));
    }
    assert!(places.iter().any(|(place, _)| place.ends_with(".db")), "the database was looked at");
    for (place, text) in &places {
        assert!(!text.is_empty() || place.contains("reports.db-"), "{place} is empty");
        for planted in planted() {
            let found = text.find(&planted).map(|at| text.get(at.saturating_sub(200)..at + 60));
            assert_eq!(found, None, "{planted} is in {place}");
        }
    }
}
