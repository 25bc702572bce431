//! What runs beside a cluster, each in a process of its own: webhook, controller, endpoint.

use std::{
    fs::File,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use kausality_testbed::free_port;
use kube::{Api, Client, api::DeleteParams, core::DynamicObject};
use serde_json::{Value, json};

use crate::backend::{
    garden::{Garden, resource},
    process::Backend,
};

/// Not to be found anywhere.
pub(crate) const TOKEN: &str = "planted-token-3141592653";

/// Who can be killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Victim {
    Webhook,
    Controller,
    Endpoint,
}

pub(crate) const VICTIMS: [Victim; 3] = [Victim::Webhook, Victim::Controller, Victim::Endpoint];

/// All that runs, and how to start it.
pub(crate) struct Machinery {
    places: Places,
    client: Client,
    pub(crate) backend: Backend,
    controller: Process,
    webhook: Process,
}

/// Where everything is.
struct Places {
    folder: tempfile::TempDir,
    endpoint: String,
    webhook: String,
    /// As `RUST_LOG` says it.
    verbosity: &'static str,
}

/// A process that ends when this is dropped.
struct Process(Child);

impl Process {
    /// As `kill -9` does.
    fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

impl Machinery {
    /// Starts everything, so verbose. Beside the endpoint that can be killed, these are told.
    pub(crate) fn new(garden: &Garden, verbosity: &'static str, others: &[Value]) -> Self {
        let address = || format!("127.0.0.1:{}", free_port().unwrap());
        let folder = tempfile::tempdir().unwrap();
        let places = Places { folder, endpoint: address(), webhook: address(), verbosity };
        for user in ["kausality-webhook", "kausality-controller"] {
            std::fs::write(places.file(user), garden.kubeconfig(user)).unwrap();
        }
        std::fs::write(places.file("token"), TOKEN).unwrap();
        let mut endpoints =
            vec![json!({"name": "history", "url": format!("http://{}/webhook", places.endpoint),
            "timeout": "2s", "tokenFile": places.file("token")})];
        endpoints.extend(others.iter().cloned());
        std::fs::write(places.file("endpoints"), json!({"endpoints": endpoints}).to_string()).unwrap();
        let backend = places.start_backend();
        let (controller, webhook) = (places.start_controller(), places.start_webhook());
        Self { places, client: garden.admin.clone(), backend, controller, webhook }
    }

    /// Kills one of them, and starts it anew.
    pub(crate) async fn kill(&mut self, victim: Victim) {
        match victim {
            Victim::Webhook => {
                self.webhook.kill();
                self.webhook = self.places.start_webhook();
            }
            Victim::Endpoint => {
                self.backend.kill();
                self.backend = self.places.start_backend();
            }
            Victim::Controller => {
                self.controller.kill();
                // Nobody has to wait here until its lease is over: it is dead for certain.
                let leases: Api<DynamicObject> = Api::namespaced_with(
                    self.client.clone(),
                    "kausality-system",
                    &resource("coordination.k8s.io", "v1", "Lease", "leases"),
                );
                _ = leases.delete("kausality-controller", &DeleteParams::default()).await;
                self.controller = self.places.start_controller();
            }
        }
    }

    /// What is asked of the endpoint.
    pub(crate) fn ask(&self, path: &str) -> Value {
        let headers = format!("Authorization: Bearer {TOKEN}\r\n");
        let (status, answer) = self.backend.ask("GET", path, &headers, "");
        assert_eq!(status, 200, "{path}: {answer}");
        answer
    }

    /// All reports that the endpoint has, oldest first.
    pub(crate) fn reports(&self) -> Vec<Value> {
        let (mut reports, mut more) = (Vec::new(), String::new());
        loop {
            let page = self.ask(&format!("/api/v1/drifts?limit=300{more}"));
            reports
                .extend(page["items"].as_array().unwrap().iter().map(|item| item["report"]["spec"].clone()));
            match page["continue"].as_str() {
                Some(token) => more = format!("&continue={token}"),
                None => break,
            }
        }
        reports.reverse();
        reports
    }

    /// The files of the endpoint's database.
    pub(crate) fn database(&self) -> Vec<PathBuf> {
        let files = self.places.folder.path().read_dir().unwrap().map(|file| file.unwrap().path());
        files.filter(|file| file.file_name().unwrap().to_str().unwrap().starts_with("reports.db")).collect()
    }

    /// What webhook and controller have said.
    pub(crate) fn logs(&self) -> String {
        let read = |name: &str| std::fs::read_to_string(self.places.file(name)).unwrap();
        read("webhook.log") + &read("controller.log")
    }

    /// What the controller last said.
    pub(crate) fn last_words(&self) -> String {
        let log = self.logs();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(20)..].join("\n")
    }
}

impl Places {
    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.file(name).to_str().unwrap().to_owned()
    }

    fn start_backend(&self) -> Backend {
        let (database, token) = (self.text("reports.db"), self.text("token"));
        Backend::start_at(&self.endpoint, &["serve", "--database", &database, "--token-file", &token])
    }

    fn start_controller(&self) -> Process {
        let url = format!("https://{}", self.webhook);
        let arguments = ["controller", "--webhook-url", &url, "--report-endpoints", &self.text("endpoints")];
        self.start(&arguments, "kausality-controller", "controller.log")
    }

    /// It denies even before it knows the policy: no Service is here that would ask it only once it is ready.
    fn start_webhook(&self) -> Process {
        let secret = "kausality-system/kausality-webhook-tls";
        let arguments =
            ["webhook", "--quiet-time", "0s", "--bind-address", &self.webhook, "--tls-secret", secret];
        self.start(
            &[&arguments[..], &["--default-mode", "enforce"]].concat(),
            "kausality-webhook",
            "webhook.log",
        )
    }

    fn start(&self, arguments: &[&str], user: &str, log: &str) -> Process {
        let append = |path: &Path| File::options().create(true).append(true).open(path).unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_kausality"))
            .args(arguments)
            .arg("--kubeconfig")
            .arg(self.file(user))
            .env("RUST_LOG", self.verbosity)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(append(&self.file(log)))
            .spawn()
            .unwrap();
        Process(child)
    }
}
