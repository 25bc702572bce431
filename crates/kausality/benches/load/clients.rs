//! What client certificates cost, with the client that shows them: a real API server asks two webhooks, one of which takes reviews
//! from it alone, and the other from anybody.

use std::{
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use kausality_testbed::{Component, ControlPlane, MASTERS, free_port};
use kube::{
    Api, Client,
    api::PostParams,
    core::{ApiResource, DynamicObject, GroupVersionKind},
};
use rcgen::CertifiedKey;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::{
    Plan,
    figures::{Report, Rounds, print_table},
    machine,
    passport::{NAME, Passport},
    writes::{AT_ONCE, TURN, control_plane, is_asked, prepare, write_all},
};

/// The namespaces: each has a webhook of its own.
const SIDES: [&str; 2] = ["guarded", "open"];

/// How much of the throughput without client certificates there is to be with them.
const SHARE: f64 = 0.95;

/// Measures both; nothing where there is no control plane.
pub(crate) fn measure(plan: &Plan, report: &mut Report) -> Result<Value> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        match control_plane("Client certificates of an API server").await? {
            Some(plane) => run(plane, plan, report).await,
            None => Ok(Value::Null),
        }
    })
}

async fn run(mut plane: ControlPlane, plan: &Plan, report: &mut Report) -> Result<Value> {
    // Not loopback: API servers talk to it as they do to a Service.
    let addresses = [format!("0.0.0.0:{}", free_port()?), format!("0.0.0.0:{}", free_port()?)];
    let flag = configure(plane.folder(), &Passport::make()?, &addresses[0])?;
    plane.restart_with(Component::ApiServer, &[&flag]).await?;
    let client = plane.client("alice", &[MASTERS])?;
    let pair = rcgen::generate_simple_self_signed(["0.0.0.0".to_owned()])?;
    let mut webhooks = Vec::new();
    for (side, address) in SIDES.iter().zip(&addresses) {
        prepare(&client, side).await?;
        webhooks.push(Webhook::start(plane.folder(), &plane.kubeconfig(), side, address, &pair)?);
        register(&client, side, address, &pair).await?;
        is_asked(&client, side).await?;
    }

    let (mut rates, mut costs) =
        ([Rounds::default(), Rounds::default()], [Rounds::default(), Rounds::default()]);
    let mut ratios = [Rounds::default(), Rounds::default()];
    for round in 0..plan.rounds {
        eprintln!("round {} of {}: client certificates", round + 1, plan.rounds);
        let taken = one_round(&client, &webhooks, plan.writes.div_ceil(TURN)).await?;
        for (nth, Taken { writes, wall, busy }) in taken.iter().enumerate() {
            rates[nth].push(writes / wall.as_secs_f64());
            costs[nth].push(busy.as_secs_f64() * 1e6 / writes);
        }
        let [guarded, open] = &taken;
        ratios[0].push(open.wall.as_secs_f64() / guarded.wall.as_secs_f64());
        ratios[1].push(open.busy.as_secs_f64() / guarded.busy.as_secs_f64());
    }
    let row = |nth: usize| vec![SIDES[nth].to_owned(), rates[nth].show(0), costs[nth].show(1)];
    let ratio = vec!["guarded to open".to_owned(), ratios[0].show(3), ratios[1].show(3)];
    print_table(
        "Updates of owned ConfigMaps at a real API server, reviewed with its client certificate (guarded) and without (open)",
        &["webhook", "reviews/s", "µs of a processor a review"],
        vec![row(0), row(1), ratio],
    );
    report.at_least("reviews/s with an API server's client certificate", ratios[0].median(), SHARE, "x");
    report.at_least("reviews for a second of a processor, the same", ratios[1].median(), SHARE, "x");
    let [guarded, open] = [0, 1].map(|nth| json!({"rate": rates[nth].json(), "us": costs[nth].json()}));
    Ok(json!({"guarded": guarded, "open": open, "rate": ratios[0].json(), "cost": ratios[1].json()}))
}

/// What one side took in a round.
#[derive(Default)]
struct Taken {
    writes: f64,
    wall: Duration,
    /// What its webhook took of processors.
    busy: Duration,
}

/// One round, in short turns, of which either side begins every other one.
async fn one_round(client: &Client, webhooks: &[Webhook], turns: usize) -> Result<[Taken; 2]> {
    let mut taken = [Taken::default(), Taken::default()];
    for turn in 0..turns {
        for nth in [turn % 2, 1 - turn % 2] {
            let process = webhooks[nth].0.id();
            let (begun, before) = (Instant::now(), machine::busy(process));
            let mut writers = JoinSet::new();
            for child in 0..AT_ONCE {
                writers.spawn(write_all(client.clone(), SIDES[nth], child, turn));
            }
            while let Some(written) = writers.join_next().await {
                #[allow(clippy::cast_precision_loss, reason = "there are not that many")]
                let written = written??.len() as f64;
                taken[nth].writes += written;
            }
            taken[nth].wall += begun.elapsed();
            taken[nth].busy += machine::busy(process).saturating_sub(before);
        }
    }
    Ok(taken)
}

/// Files by which an API server shows a certificate at one address and nothing elsewhere. The flag for them.
fn configure(folder: &Path, passport: &Passport, address: &str) -> Result<String> {
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        std::fs::write(&path, text)?;
        anyhow::Ok(path.display().to_string())
    };
    write("client-ca.crt", &passport.ca)?;
    let user = json!({"client-certificate": write("client.crt", &passport.certificate)?,
        "client-key": write("client.key", &passport.key)?});
    let kubeconfig =
        json!({"apiVersion": "v1", "kind": "Config", "users": [{"name": address, "user": user}]});
    let kubeconfig = write("webhooks.kubeconfig", &kubeconfig.to_string())?;
    let plugin = json!({"name": "MutatingAdmissionWebhook", "configuration": {
        "apiVersion": "apiserver.config.k8s.io/v1", "kind": "WebhookAdmissionConfiguration",
        "kubeConfigFile": kubeconfig}});
    let admission = json!({"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration",
        "plugins": [plugin]});
    Ok(format!("--admission-control-config-file={}", write("admission.json", &admission.to_string())?))
}

/// Has the API server ask the webhook at an address about ConfigMaps in its namespace.
async fn register(
    client: &Client,
    side: &str,
    address: &str,
    pair: &CertifiedKey<rcgen::KeyPair>,
) -> Result<()> {
    let rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"],
        "operations": ["CREATE", "UPDATE", "DELETE"]});
    let configuration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": side},
        "webhooks": [{
            "name": format!("{side}.drift.kausality.io"), "rules": [rule], "failurePolicy": "Fail",
            "clientConfig": {"url": format!("https://{address}/admit"),
                "caBundle": BASE64_STANDARD.encode(pair.cert.pem())},
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": side}},
            "sideEffects": "NoneOnDryRun", "admissionReviewVersions": ["v1"],
        }],
    });
    let kind = GroupVersionKind::gvk("admissionregistration.k8s.io", "v1", "MutatingWebhookConfiguration");
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &ApiResource::from_gvk(&kind));
    api.create(&PostParams::default(), &serde_json::from_value(configuration)?).await?;
    Ok(())
}

/// `kausality webhook`. Ends when dropped.
struct Webhook(Child);

impl Webhook {
    fn start(
        folder: &Path,
        kubeconfig: &Path,
        side: &str,
        address: &str,
        pair: &CertifiedKey<rcgen::KeyPair>,
    ) -> Result<Self> {
        let (certificate, key) = (folder.join("webhook.crt"), folder.join("webhook.key"));
        std::fs::write(&certificate, pair.cert.pem())?;
        std::fs::write(&key, pair.signing_key.serialize_pem())?;
        let mut command = Command::new(env!("CARGO_BIN_EXE_kausality"));
        command.args(["webhook", "--quiet-time", "0s", "--resources", "configmaps"]);
        command.args(["--bind-address", address]).arg("--kubeconfig").arg(kubeconfig);
        command.arg("--tls-cert-file").arg(certificate).arg("--tls-private-key-file").arg(key);
        if side == SIDES[0] {
            command.arg("--client-ca").arg(folder.join("client-ca.crt")).args(["--client-names", NAME]);
        }
        let log = std::fs::File::create(folder.join(format!("{side}.log")))?;
        Ok(Self(command.stderr(Stdio::from(log)).spawn().context("cannot start kausality webhook")?))
    }
}

impl Drop for Webhook {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
