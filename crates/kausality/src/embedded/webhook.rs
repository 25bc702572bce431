//! Kausality beside a sandbox, as beside a cluster: a webhook that is registered, and everything over HTTPS.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use anyhow::{Context, Result};
use futures::{StreamExt, future, pin_mut, stream};
use kausality_api::mode::Mode;
use kausality_cluster::{
    Cluster, Kind, Kinds, UnknownKind,
    registration::{Registration, excluded},
};
use kausality_sandbox::{Sandbox, Served, User};
use kausality_webhook::{Certificates, Config, Metrics, Server};
use kube::{
    Api, Client,
    config::{KubeConfigOptions, Kubeconfig},
    core::{ApiResource, DynamicObject},
    runtime::{WatchStreamExt, watcher},
};
use prometheus_client::registry::Registry;
use tokio::task::JoinSet;

use super::SELF;
use crate::webhook::OnCluster;

/// What is looked at beside custom resources.
const RESOURCES: [(&str, &str); 10] = [
    ("", "configmaps"),
    ("", "secrets"),
    ("", "services"),
    ("apps", "controllerrevisions"),
    ("apps", "daemonsets"),
    ("apps", "deployments"),
    ("apps", "replicasets"),
    ("apps", "statefulsets"),
    ("batch", "cronjobs"),
    ("batch", "jobs"),
];

const LOCAL: [u8; 4] = [127, 0, 0, 1];

/// How soon a registration that failed is tried again.
const RETRY: Duration = Duration::from_secs(1);

const DEFINITION: [&str; 3] =
    ["apiextensions.k8s.io", "CustomResourceDefinition", "customresourcedefinitions"];
const CONFIGURATIONS: [[&str; 3]; 2] = [
    ["admissionregistration.k8s.io", "MutatingWebhookConfiguration", "mutatingwebhookconfigurations"],
    ["admissionregistration.k8s.io", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations"],
];

/// A webhook and its registration, which end with it.
pub(super) struct Beside {
    _served: Served,
    _tasks: JoinSet<()>,
}

/// The way into a sandbox over HTTPS: a client, and one that uses each connection once.
pub(super) async fn connect(sandbox: &Sandbox) -> Result<(Served, Client, Client)> {
    let served = sandbox.serve(SocketAddr::from((LOCAL, 0))).await?;
    let kubeconfig = Kubeconfig::from_yaml(&served.kubeconfig(&User::admin(SELF)))?;
    let mut config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    // Watches are long-lived; everything else has a deadline of its own.
    config.read_timeout = None;
    let mut fresh = config.clone();
    fresh.headers.push((http::header::CONNECTION, http::HeaderValue::from_static("close")));
    Ok((served, Client::try_from(config)?, Client::try_from(fresh)?))
}

impl Beside {
    /// Serves a webhook and registers it.
    pub(super) async fn start(
        served: Served,
        client: Client,
        cluster: Arc<Cluster>,
        default_mode: Mode,
    ) -> Result<Self> {
        let certificates = Certificates::self_signed(&["localhost".to_owned()], &[LOCAL.into()])?;
        let ca_pem = certificates.ca_pem().map(ToOwned::to_owned);
        let config = Config::new(SocketAddr::from((LOCAL, 0)), certificates);
        let metrics = Metrics::new(Registry::default());
        let server = Server::new(config, OnCluster(cluster), metrics).listen().await?;
        let mut registration = Registration {
            name: "kausality".to_owned(),
            url: format!("https://{}/admit", server.address()),
            ca_pem,
            kinds: Vec::new(),
            parents: Vec::new(),
            fail_closed: default_mode == Mode::Enforce,
            excluded_namespaces: excluded::names().map(ToOwned::to_owned).collect(),
        };
        let mut tasks = JoinSet::new();
        tasks.spawn(async move { server.run(future::pending()).await });
        register(&mut registration, &client).await.context("cannot register the webhook")?;
        tasks.spawn(follow(registration, client));
        Ok(Self { _served: served, _tasks: tasks })
    }
}

/// Registers again whenever there are other custom resources, or somebody has taken the registration away or changed
/// it, for ever: nobody would be asked about anything any more, and nobody would notice.
async fn follow(mut registration: Registration, client: Client) {
    let own = watcher::Config::default().fields(&format!("metadata.name={}", registration.name));
    let own = CONFIGURATIONS
        .map(|kind| watcher(cluster_wide(&client, kind), own.clone()).default_backoff().boxed());
    let own = stream::select_all(own);
    let custom = watcher(definitions(&client), watcher::Config::default()).default_backoff();
    let changes = stream::select(own, custom);
    pin_mut!(changes);
    while let Some(change) = changes.next().await {
        if let Err(error) = change {
            tracing::debug!(%error, "a watch broke");
            continue;
        }
        while let Err(error) = register(&mut registration, &client).await {
            tracing::error!(%error, "cannot register the webhook: trying again");
            tokio::time::sleep(RETRY).await;
        }
    }
}

/// Registers the webhook for all that is served. Where that is so already, the API server stores nothing.
async fn register(registration: &mut Registration, client: &Client) -> Result<()> {
    let served = Kinds::new(client.clone());
    registration.kinds = kinds(&served, client).await?;
    // Nobody pays for a look at whatever else may own something here.
    let is_other =
        |kind: &Arc<Kind>| !registration.kinds.contains(kind) && kind.resource.group != kausality_api::GROUP;
    registration.parents = served.all().await?.kinds.into_iter().filter(is_other).collect();
    Ok(registration.apply(client.clone()).await?)
}

async fn kinds(served: &Kinds, client: &Client) -> Result<Vec<Arc<Kind>>> {
    let custom = definitions(client).list(&kube::api::ListParams::default()).await?;
    let text = |object: &DynamicObject, at: &str| {
        object.data.pointer(at).and_then(serde_json::Value::as_str).unwrap_or_default().to_owned()
    };
    let custom = custom
        .iter()
        .map(|it| (text(it, "/spec/group"), text(it, "/spec/names/plural")))
        .filter(|(group, _)| super::is_custom(group));
    let known = RESOURCES.iter().map(|(group, plural)| ((*group).to_owned(), (*plural).to_owned()));
    let mut kinds = Vec::new();
    for (group, plural) in known.chain(custom) {
        match served.of_resource(&group, &plural).await {
            Ok(kind) => kinds.push(kind),
            // It has gone since.
            Err(UnknownKind::NotServed(_)) => {}
            Err(error @ UnknownKind::Failed(..)) => return Err(error.into()),
        }
    }
    Ok(kinds)
}

fn definitions(client: &Client) -> Api<DynamicObject> {
    cluster_wide(client, DEFINITION)
}

fn cluster_wide(client: &Client, [group, kind, plural]: [&str; 3]) -> Api<DynamicObject> {
    let resource = ApiResource {
        group: group.to_owned(),
        version: "v1".to_owned(),
        api_version: format!("{group}/v1"),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
    };
    Api::all_with(client.clone(), &resource)
}
