//! What is found out about a cluster, and what all checks make of it.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use futures::{StreamExt, stream};
use jiff::Timestamp;
use kausality_api::selector::Labels;
use kausality_cluster::{Kinds, UnknownKind};
use serde_json::Value;

use super::{
    CONFIGURATION, CONTROLLER, SECRET, WEBHOOK,
    answering::{self, Tried},
    certificates,
    clients::{self, Knocked},
    clock, controllers, definitions, deployments,
    finding::{Check, Verdict},
    lease::{self, Watched},
    policies, registration,
    registration::{NAMESPACE_NAME, Registered},
    rights::{self, Answers, Right},
    server::{Seen, Server, text},
    version,
};

/// How long a Lease that looks old is given to be renewed: its holder does so every two seconds.
const SECOND_LOOK: Duration = Duration::from_secs(5);

/// How many rights are asked for at once.
const AT_ONCE: usize = 8;

/// How many namespaces are looked through for one to try something in.
const NAMESPACES: &str = "/api/v1/namespaces?limit=500";

/// All that is known.
pub(super) struct Facts {
    /// The namespace of Kausality.
    pub(super) namespace: String,
    /// When all this was found out, by the API server's clock.
    pub(super) now: Timestamp,
    pub(super) version: Value,
    pub(super) clock: clock::Reading,
    pub(super) definitions: Vec<Seen>,
    pub(super) webhook: Seen,
    pub(super) controller: Seen,
    pub(super) lease: Watched,
    /// The labels of the namespace.
    pub(super) labels: Labels,
    pub(super) mutating: Seen,
    pub(super) validating: Seen,
    pub(super) secret: Seen,
    pub(super) policies: Seen<Vec<Value>>,
    pub(super) tried: Option<Tried>,
    /// What the webhook said to somebody without credentials.
    pub(super) knocked: Option<Knocked>,
    pub(super) slices: Seen<Vec<Value>>,
    /// What the webhook may do.
    pub(super) rights: Answers,
    /// What the controller may do.
    pub(super) controller_rights: Answers,
    pub(super) account: Seen,
    pub(super) deployments: Seen<Vec<Value>>,
}

impl Facts {
    /// Finds out everything. `tell` is told what is looked at.
    pub(super) async fn gather(
        server: &Server,
        kinds: &Kinds,
        namespace: &str,
        (version, clock): (Value, clock::Reading),
        tell: impl Fn(&'static str),
    ) -> Self {
        tell("definitions");
        let mut definitions = Vec::new();
        for name in definitions::names() {
            definitions.push(
                server.get(&format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}")).await,
            );
        }
        tell("deployments");
        let deployment = |name: &str| format!("/apis/apps/v1/namespaces/{namespace}/deployments/{name}");
        let webhook = server.get(&deployment(WEBHOOK)).await;
        let controller = server.get(&deployment(CONTROLLER)).await;
        tell("lease");
        let lease = watch(server, namespace, &clock).await;
        tell("registration");
        let configuration =
            |kind: &str| format!("/apis/admissionregistration.k8s.io/v1/{kind}/{CONFIGURATION}");
        let mutating = server.get(&configuration("mutatingwebhookconfigurations")).await;
        let validating = server.get(&configuration("validatingwebhookconfigurations")).await;
        let policies = server.list("/apis/kausality.io/v1alpha1/kausalities").await;
        let labels = labels(namespace, &server.get(&format!("/api/v1/namespaces/{namespace}")).await);
        tell("certificates");
        let secret = server.get(&format!("/api/v1/namespaces/{namespace}/secrets/{SECRET}")).await;
        let secret = certificates::without_keys(secret);
        tell("answering");
        let slices = server
            .list(&format!(
                "/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices?labelSelector=kubernetes.io/service-name={WEBHOOK}"
            ))
            .await;
        let tried = attempt(server, &mutating, &validating).await;
        tell("clients");
        let knocked = clients::knock(server, [&mutating, &validating]).await;
        tell("rights");
        let (rights, controller_rights) = if registration::is_local(&mutating) {
            (Vec::new(), Vec::new())
        } else {
            let named = served(kinds, rights::named(&policies)).await;
            let needed = rights::needed(namespace, &named, &mutating);
            let makes = certificates::are_own(&controller) != Some(false);
            let of_controller = rights::of_controller(namespace, makes);
            let accounts = (rights::account(&webhook, WEBHOOK), rights::account(&controller, CONTROLLER));
            (
                ask_rights(server, namespace, accounts.0, needed).await,
                ask_rights(server, namespace, accounts.1, of_controller).await,
            )
        };
        tell("controllers");
        let account = server.get(controllers::ACCOUNT).await;
        let deployments = server.metadata(controllers::RECONCILED).await;
        Self {
            namespace: namespace.to_owned(),
            now: clock.server_time(Timestamp::now()),
            version,
            clock,
            definitions,
            webhook,
            controller,
            lease,
            labels,
            mutating,
            validating,
            secret,
            policies,
            tried,
            knocked,
            slices,
            rights,
            controller_rights,
            account,
            deployments,
        }
    }

    /// What all checks make of it.
    pub(super) fn judge(&self) -> Vec<Check> {
        let namespace = self.namespace.as_str();
        let is_local = registration::is_local(&self.mutating);
        let registered = Registered {
            namespace,
            labels: &self.labels,
            mutating: &self.mutating,
            validating: &self.validating,
            policies: &self.policies,
            webhook: &self.webhook,
        };
        let installed = |verdict: &dyn Fn() -> Verdict| {
            if is_local {
                Verdict::Skipped("a webhook outside of the cluster has registered itself".to_owned())
            } else {
                verdict()
            }
        };
        let accounts = [
            (rights::account(&self.webhook, WEBHOOK), &self.rights),
            (rights::account(&self.controller, CONTROLLER), &self.controller_rights),
        ];
        let are_own = certificates::are_own(&self.controller);
        let checks = [
            ("api-server", version::judge(&self.version)),
            ("clock", clock::judge(&self.clock, self.lease.ahead())),
            ("definitions", definitions::judge(&self.definitions)),
            ("deployments", installed(&|| deployments::judge(namespace, &self.webhook, &self.controller))),
            ("lease", installed(&|| lease::judge(namespace, &self.lease))),
            ("policies", policies::judge(namespace, &self.policies, is_local)),
            ("registration", registration::judge(&registered)),
            (
                "certificates",
                installed(&|| {
                    let told = [&self.mutating, &self.validating];
                    certificates::judge(namespace, &self.secret, told, are_own, self.now)
                }),
            ),
            ("answering", answering::judge(namespace, self.tried.as_ref(), &self.slices, is_local)),
            ("clients", clients::judge(namespace, self.knocked.as_ref(), &self.webhook)),
            ("rights", installed(&|| rights::judge(&accounts))),
            ("controllers", controllers::judge(&self.account, &self.deployments)),
        ];
        checks.into_iter().map(|(name, verdict)| Check { name, verdict }).collect()
    }
}

/// Looks at the Lease, twice where that tells more.
async fn watch(server: &Server, namespace: &str, clock: &clock::Reading) -> Watched {
    let path = format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{CONTROLLER}");
    let first = server.get(&path).await;
    let at = clock.server_time(Timestamp::now());
    let mut watched = Watched { first, at, again: None };
    if watched.is_doubtful() {
        tokio::time::sleep(SECOND_LOOK).await;
        watched.again = Some(server.get(&path).await);
    }
    watched
}

fn labels(name: &str, namespace: &Seen) -> Labels {
    let found = namespace.found().and_then(|found| found.pointer("/metadata/labels"));
    let mut labels: Labels =
        found.and_then(|labels| serde_json::from_value(labels.clone()).ok()).unwrap_or_default();
    labels.insert(NAMESPACE_NAME.to_owned(), name.to_owned());
    labels
}

/// Tries something that the webhook must be asked about, if there is anything.
async fn attempt(server: &Server, mutating: &Seen, validating: &Seen) -> Option<Tried> {
    let namespaces = server.metadata(NAMESPACES).await;
    let namespaces = namespaces.found().into_iter().flatten().map(|namespace| {
        let name = text(namespace, "/metadata/name");
        (name.to_owned(), labels(name, &Seen::Found(namespace.clone())))
    });
    let probe = answering::plan(mutating, validating, &namespaces.collect::<Vec<_>>())?;
    let begun = Instant::now();
    let answer = server.post(&probe.path, &probe.object).await;
    Some(Tried { probe, answer, took: begun.elapsed() })
}

/// Those that the API server serves: there is no right to what does not exist.
async fn served(kinds: &Kinds, named: BTreeSet<rights::Resource>) -> BTreeSet<rights::Resource> {
    let mut served = BTreeSet::new();
    for (group, plural) in named {
        if !matches!(kinds.of_resource(&group, &plural).await, Err(UnknownKind::NotServed(_))) {
            served.insert((group, plural));
        }
    }
    served
}

async fn ask_rights(server: &Server, namespace: &str, account: &str, needed: Vec<Right>) -> Answers {
    let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
    let ask = async |right: Right| {
        let answer = server.post(path, &rights::question(namespace, account, &right)).await;
        (right, answer)
    };
    stream::iter(needed).map(ask).buffered(AT_ONCE).collect().await
}
