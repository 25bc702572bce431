//! No value of a Secret is on a screen, or in what a command says.

use base64::Engine as _;
use kausality::embedded::{Embedded, Setup};
use kausality_api::{mode::Mode, policy::QuietTime};
use kausality_sandbox::User;
use kausality_testbed::{MASTERS, eventually};
use kube::Client;
use serde_json::{Value, json};

use crate::cli::{stage::*, terminal::Terminal};

const SECRETS: &str = "/api/v1/namespaces/park/secrets";

/// What nobody is to see: before, and as a controller wants it.
const WORDS: [&str; 2] = ["hunter2-first-long-enough", "hunter2-second-long-enough"];

/// A word as it is, and in base64: in full, and as the beginning that both share.
fn forms() -> Vec<String> {
    let encode = |text: &str| base64::engine::general_purpose::STANDARD_NO_PAD.encode(text);
    let whole = WORDS.iter().map(|word| encode(word));
    ["hunter2".to_owned(), encode("hunter2")[..8].to_owned()].into_iter().chain(whole).collect()
}

async fn send(client: &Client, method: &str, path: &str, body: &Value) -> Result<Value, kube::Error> {
    let kind = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    let request = http::Request::builder().method(method).uri(path).header("content-type", kind);
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    client.request(request.body(body).unwrap()).await
}

/// A garden whose gardener has changed one Secret, made another and removed a third, which nobody asked for. Gives the ids
/// of the drifts.
async fn drifted(embedded: &Embedded) -> (Stage, Vec<String>) {
    let stage = Stage::on(&embedded.sandbox).await;
    let gardener = embedded.sandbox.client(&User::new(GARDENER, &[MASTERS]));
    let south = stage.garden("south", &json!({})).await;
    let secret = |name: &str, word: &str| {
        // As `kubectl apply` leaves them, and in a text that is no Secret's.
        let applied =
            json!({"apiVersion": "v1", "kind": "Secret", "stringData": {"password": word}}).to_string();
        json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "stringData": {"password": word},
            "metadata": {"name": name,
                "annotations": {"kubectl.kubernetes.io/last-applied-configuration": applied},
                "ownerReferences": [{"apiVersion": "garden.io/v1", "kind": "Garden", "name": "south",
                    "uid": south["metadata"]["uid"], "controller": true}]}})
    };
    for name in ["shed", "well"] {
        send(&gardener, "POST", SECRETS, &secret(name, WORDS[0])).await.unwrap();
    }
    let ready = json!({"status": {"observedGeneration": 1, "conditions": [{"type": "Ready", "status": "True",
        "reason": "Ready", "message": "", "lastTransitionTime": "2026-01-25T11:00:00Z"}]}});
    send(&gardener, "PATCH", &format!("{GARDENS}/south/status"), &ready).await.unwrap();
    eventually(PATIENCE, "a garden that has settled", async || {
        let garden = stage.get(&format!("{GARDENS}/south")).await;
        settled(&garden)
    })
    .await
    .unwrap();
    let change = json!({"stringData": {"password": WORDS[1]}});
    let denied = [
        send(&gardener, "PATCH", &format!("{SECRETS}/shed"), &change).await,
        send(&gardener, "POST", SECRETS, &secret("cellar", WORDS[1])).await,
        send(&gardener, "DELETE", &format!("{SECRETS}/well"), &Value::Null).await,
    ];
    for answer in denied {
        let error = answer.unwrap_err().to_string();
        assert!(error.contains("drift"), "{error}");
        holds_nothing("a denial", &error);
    }
    let drifts = stage.get("/apis/kausality.io/v1alpha1/namespaces/park/drifts").await;
    let name = |drift: &Value| drift["metadata"]["name"].as_str().unwrap().to_owned();
    let ids: Vec<String> = drifts["items"].as_array().unwrap().iter().map(name).collect();
    assert_eq!(ids.len(), 3, "{drifts}");
    (stage, ids)
}

fn holds_nothing(what: &str, text: &str) {
    for form in forms() {
        assert!(!text.contains(&form), "{what} shows {form:?}:\n{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_command_and_no_screen_shows_a_secret() {
    let setup = Setup { default_mode: Mode::Enforce, quiet_time: QuietTime::NONE, ..Setup::default() };
    let embedded = Embedded::set_up(setup).await.unwrap();
    let (stage, ids) = drifted(&embedded).await;
    // That it is there to be seen.
    let shed = stage.get(&format!("{SECRETS}/shed")).await.to_string();
    assert!(forms().iter().any(|form| shed.contains(form)), "{shed}");

    let mut commands: Vec<Vec<&str>> = Vec::new();
    for output in ["table", "wide", "json", "yaml", "name"] {
        commands.push(vec!["drifts", "--all", "-o", output]);
        commands.push(vec!["drifts", "--all", "--group", "-o", output]);
    }
    for id in &ids {
        for output in ["table", "json", "yaml"] {
            commands.push(vec!["show", id, "-o", output]);
            commands.push(vec!["why", id, "-o", output]);
        }
        commands.push(vec!["approve", id, "--exact", "--dry-run=server"]);
    }
    for output in ["table", "json", "yaml"] {
        commands.push(vec!["trace", "secret/shed", "-o", output]);
        commands.push(vec!["trace", "garden/south", "--children", "-o", output]);
    }
    commands.push(vec!["reject", &ids[0], "--reason", "no"]);
    commands.push(vec!["approve", &ids[0]]);
    let mut redacted = 0;
    for command in commands {
        let said = stage.run(&[&command[..], &["-n", "park"]].concat());
        let refused = command == ["approve", &ids[0]];
        assert_eq!(said.code, i32::from(refused), "{said:?}");
        holds_nothing(&format!("{command:?}"), &format!("{}{}", said.out, said.err));
        redacted += usize::from(said.out.contains("redacted:"));
    }
    assert!(redacted >= 6, "only {redacted} commands say that there is something to see");

    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    std::fs::write(&kubeconfig, stage.kubeconfig_at(&stage.address().to_string())).unwrap();
    let Some(terminal) = Terminal::open(&kubeconfig) else { return };
    terminal.runs("kausality tui -n park").await;
    let list = terminal.shows(&["live", "Secret/shed", "Secret/cellar", "Secret/well"]).await;
    holds_nothing("the list", &list);
    let mut seen = String::new();
    for _ in &ids {
        terminal.presses("Down");
        terminal.presses("Enter");
        let detail = terminal.shows(&["Changes", "Who last asked"]).await;
        holds_nothing("a drift", &detail);
        seen += &detail;
        terminal.presses("Escape");
        terminal.shows(&["STATE"]).await;
    }
    for name in ["shed", "cellar", "well", "redacted:"] {
        assert!(seen.contains(name), "{name} was not looked at:\n{seen}");
    }
}
