//! The leader's loop: looks at everything whenever anything has changed, and makes it as it should be.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Mutex,
    time::Duration,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use jiff::{SignedDuration, Timestamp};
use kausality_cluster::{Kinds, UnknownKind, Which, alarm, follow};
use kube::{
    Api, Client,
    api::{ListParams, Patch, PatchParams},
    core::{ApiResource, DynamicObject},
};
use serde_json::{Value, json};
use tokio::{
    sync::Notify,
    time::{Instant, sleep, sleep_until, timeout},
};

use crate::{
    certificates::{Unmakeable, Wanted, external::Overlap},
    desired::{
        Anchor, Finding, MANAGED, NAME, Place, Policy, Resource, Target,
        conditions::{self, Trouble},
        desired, known, watched,
    },
    metrics::Metrics,
};

mod certify;
mod home;
mod kinds;
mod register;
mod salt;

use home::{Home, Watchman};

/// Under which name everything is applied.
const MANAGER: &str = "kausality-controller";

/// How long it is waited for more changes before they are looked at.
const GATHER: Duration = Duration::from_millis(200);

/// How often everything is looked at although nothing has changed.
const RESYNC: Duration = Duration::from_secs(60);

/// How soon it is tried again after a failure, the first time and at most.
const PAUSES: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(20));

/// When it is looked again after definitions have changed: what is served is listed a while later.
const LATER: [Duration; 3] = [Duration::from_secs(1), Duration::from_secs(3), Duration::from_secs(10)];

/// How long the API server may take to answer.
const ANSWER: Duration = Duration::from_secs(10);

/// What a controller is told.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The namespace of Kausality.
    pub namespace: String,
    /// Where the webhook is.
    pub target: Target,
    /// The Secret with the webhook's certificate, in that namespace.
    pub secret: String,
    /// Who makes the certificate.
    pub certificates: Source,
    /// The ClusterRole with which everything goes.
    pub anchor: Option<String>,
}

/// Who makes the certificate.
#[derive(Clone, Debug)]
pub enum Source {
    /// The controller: this one.
    Own(Wanted),
    /// Somebody else.
    External {
        /// How long the CA before is trusted beside the one that has followed it.
        settling: SignedDuration,
    },
}

/// Why things are not as they should be.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The API server refused.
    #[error("{0}: {why}", why = reason(.1))]
    Refused(String, #[source] Box<kube::Error>),
    /// As much as was possible is as it should be.
    #[error("{0}")]
    Incomplete(String),
    /// The API server did not answer.
    #[error("{0}: no answer within {seconds} s", seconds = ANSWER.as_secs())]
    Late(String),
    /// What is served cannot be found out.
    #[error(transparent)]
    Unknown(#[from] UnknownKind),
    /// A certificate cannot be made.
    #[error(transparent)]
    Unmakeable(#[from] Unmakeable),
}

/// The one who makes things as they should be, while it leads.
pub struct Controller {
    client: Client,
    kinds: Kinds,
    settings: Settings,
    metrics: Metrics,
    overlap: Mutex<Overlap>,
    /// How often the registration was taken away, since its namespace goes. Held while it is written.
    left: tokio::sync::Mutex<u64>,
}

impl Controller {
    /// A controller of the cluster behind `client`, which should use each connection once.
    #[must_use]
    pub fn new(client: Client, settings: Settings, metrics: Metrics) -> Self {
        let (overlap, left) = (Mutex::default(), tokio::sync::Mutex::default());
        Self { kinds: Kinds::new(client.clone()), client, settings, metrics, overlap, left }
    }

    /// Leads, for ever. Dropped, it stops at once: whatever was half done, the next leader finishes.
    pub async fn lead(&self) {
        let (changed, defined, going) = (Notify::new(), Notify::new(), Notify::new());
        let (own, watchman) =
            (Which::named(&self.settings.namespace), Watchman { going: &going, changed: &changed });
        let named = || Which::named(NAME);
        let ours = Which::labelled(&format!("app.kubernetes.io/managed-by={MANAGED}"));
        let all = |resource: &ApiResource| Api::all_with(self.client.clone(), resource);
        let secrets = Api::namespaced_with(self.client.clone(), &self.settings.namespace, &kinds::secret());
        tokio::select! {
            () = alarm(all(&kinds::policy()), Which::default(), "policies", &changed) => {}
            () = alarm(all(&kinds::mutating()), named(), "the mutating configuration", &changed) => {}
            () = alarm(all(&kinds::validating()), named(), "the validating configuration", &changed) => {}
            () = alarm(all(&kinds::role()), ours, "roles", &changed) => {}
            () = follow(all(&kinds::namespace()), &own, "the namespace", &watchman) => {}
            () = self.guard(&going) => {}
            () = alarm(secrets, Which::named(&self.settings.secret), "the certificate", &changed) => {}
            () = alarm(all(&kinds::definition()), Which::default(), "definitions", &defined) => {}
            () = self.keep(&changed, &defined) => {}
        }
    }

    async fn keep(&self, changed: &Notify, defined: &Notify) {
        let mut pause = PAUSES.0;
        let mut later: BTreeSet<Instant> = BTreeSet::new();
        loop {
            later = later.split_off(&Instant::now());
            let next = match self.reconcile().await {
                Ok(next) => {
                    self.metrics.reconciled(true);
                    pause = PAUSES.0;
                    next.min(RESYNC)
                }
                Err(error) => {
                    self.metrics.reconciled(false);
                    tracing::warn!(%error, "not everything is as it should be: trying again");
                    let next = pause;
                    pause = (pause * 2).min(PAUSES.1);
                    next
                }
            };
            let mut next = Instant::now() + next;
            next = later.first().copied().unwrap_or(next).min(next);
            tokio::select! {
                () = changed.notified() => sleep(GATHER).await,
                () = defined.notified() => {
                    sleep(GATHER).await;
                    later.extend(LATER.iter().map(|pause| Instant::now() + *pause));
                }
                () = sleep_until(next) => {}
            }
        }
    }

    /// Makes everything as it should be. When to look again at the latest.
    ///
    /// # Errors
    /// If something could not be done. Policies say so, too, as far as that can be written.
    pub async fn reconcile(&self) -> Result<Duration, Failure> {
        let policies = self.policies().await?;
        let outcome = self.arrange(&policies).await;
        let (findings, trouble, due) = match outcome {
            Ok(None) => return Ok(RESYNC),
            Ok(Some(Arranged { findings, trouble, due })) => (findings, trouble, Ok(due)),
            Err(failure) => {
                let found = |policy: &Policy| {
                    let fault = policy.spec.as_ref().err().cloned();
                    (policy.name.clone(), Finding { fault, ..Finding::default() })
                };
                let trouble = Trouble::Refused(failure.to_string());
                (policies.iter().map(found).collect(), Some(trouble), Err(failure))
            }
        };
        let told = self.tell(&policies, &findings, trouble.as_ref()).await;
        let refused = findings.iter().find_map(|(name, finding)| {
            let why = finding.refused.as_ref()?;
            Some(format!("the API server does not take what follows from policy {name}: {why}"))
        });
        match trouble.map(|trouble| trouble.to_string()).or(refused) {
            Some(why) => due.and(Err(Failure::Incomplete(why))),
            None => told.and(due),
        }
    }

    /// Makes everything as it should be but for what people are told; nothing, where Kausality is being uninstalled, or its
    /// namespace deleted.
    /// Without a certificate, or without knowing what is served, it goes on with what is stored: nobody who relaxes or
    /// deletes a policy has to wait for either.
    async fn arrange(&self, policies: &[Policy]) -> Result<Option<Arranged>, Failure> {
        let left = *self.left.lock().await;
        let Home::There(home) = self.home().await? else {
            self.leave().await?;
            return Ok(None);
        };
        let anchor = match &self.settings.anchor {
            None => None,
            Some(name) => match self.anchor(name, &home).await? {
                None => {
                    tracing::info!(anchor = name, "the anchor is gone: Kausality is being uninstalled");
                    return Ok(None);
                }
                found => found,
            },
        };
        self.keep_salt(anchor.as_ref()).await;
        let configured =
            ask("reading the webhook configuration", self.api(&kinds::mutating()).get_opt(NAME)).await?;
        let stored = webhooks(configured.as_ref());
        let trusted = trusted(&stored);
        let (bundle, due, mut trouble) = match self.certify(trusted.as_deref(), anchor.as_ref()).await {
            Ok(Ok((bundle, due))) => (Some(bundle), due, None),
            Ok(Err(trouble)) => (trusted, RESYNC, Some(trouble)),
            Err(failure) => (trusted, RESYNC, Some(Trouble::Refused(failure.to_string()))),
        };
        let served: Result<BTreeSet<Resource>, UnknownKind> =
            self.kinds.all().await.map(|listing| known(&listing, &stored));
        let Settings { namespace, target, .. } = &self.settings;
        let place = Place {
            namespace: namespace.clone(),
            target: target.clone(),
            bundle: bundle.clone().unwrap_or_default(),
            anchor,
        };
        let follow = |refused: &BTreeMap<String, String>| match &served {
            Ok(served) => desired(policies, served, &stored, &place, refused),
            Err(_) => desired(policies, &watched(&stored), &stored, &place, refused),
        };
        let mut wanted = follow(&BTreeMap::new());
        // What is not known narrows no rights.
        if let Err(error) = &served {
            trouble.get_or_insert_with(|| Trouble::Refused(error.to_string()));
        } else {
            self.write_roles(&wanted).await?;
        }
        if bundle.is_some() {
            if let Err(failure) = self.register(&wanted, left).await {
                let refused = self.offenders(policies, &wanted, failure).await?;
                wanted = follow(&refused);
                self.register(&wanted, left).await?;
            }
            if wanted.mutating.is_some() && configured.is_none() {
                tracing::info!(policies = policies.len(), "registered");
            }
        }
        if served.is_ok() {
            self.remove_roles(policies).await?;
        }
        Ok(Some(Arranged { findings: wanted.findings, trouble, due }))
    }

    /// Writes what people are told about policies, where it is anything new.
    async fn tell(
        &self,
        policies: &[Policy],
        findings: &BTreeMap<String, Finding>,
        trouble: Option<&Trouble>,
    ) -> Result<(), Failure> {
        let mut failed = Ok(());
        for policy in policies {
            let Some(finding) = findings.get(&policy.name) else { continue };
            let outcome = trouble.map_or(Ok(()), Err);
            let status = conditions::status(policy, finding, outcome, Timestamp::now());
            let before = &policy.status;
            if (&before.conditions, before.observed_generation)
                == (&status.conditions, status.observed_generation)
            {
                continue;
            }
            let resource = kinds::policy();
            let patch = json!({"apiVersion": resource.api_version, "kind": resource.kind,
                "metadata": {"name": policy.name}, "status": status});
            let parameters = PatchParams::apply(MANAGER).force();
            let what = format!("writing the status of policy {}", policy.name);
            let told = self.api(&resource);
            match ask(&what, told.patch_status(&policy.name, &parameters, &Patch::Apply(&patch))).await {
                // It is gone.
                Err(Failure::Refused(_, error)) if is(&error, 404) => {}
                // The others are told all the same.
                other => failed = failed.and(other.map(drop)),
            }
        }
        failed
    }

    /// The anchor, if it lives. `home` is the uid of the namespace, with which it is to go.
    async fn anchor(&self, name: &str, home: &str) -> Result<Option<Anchor>, Failure> {
        let found = ask("reading the anchor", self.api(&kinds::role()).get_opt(name)).await?;
        let Some(found) = found.filter(|found| found.metadata.deletion_timestamp.is_none()) else {
            return Ok(None);
        };
        self.tie(&found, home).await;
        Ok(found.metadata.uid.map(|uid| Anchor { name: name.to_owned(), uid }))
    }

    /// All policies. There are certainly none where their kind is not defined; where it is, but is not served for a
    /// moment, nothing is known.
    async fn policies(&self) -> Result<Vec<Policy>, Failure> {
        match ask("listing policies", self.api(&kinds::policy()).list(&ListParams::default())).await {
            Ok(list) => {
                let read =
                    |object: DynamicObject| serde_json::to_value(object).map(|object| Policy::read(&object));
                Ok(list.items.into_iter().filter_map(|object| read(object).ok()).collect())
            }
            Err(Failure::Refused(what, error)) if is(&error, 404) => {
                let resource = kinds::policy();
                let name = format!("{}.{}", resource.plural, resource.group);
                let defined =
                    ask("reading a definition", self.api(&kinds::definition()).get_opt(&name)).await?;
                if defined.is_some() { Err(Failure::Refused(what, error)) } else { Ok(Vec::new()) }
            }
            Err(failure) => Err(failure),
        }
    }

    fn api(&self, resource: &ApiResource) -> Api<DynamicObject> {
        Api::all_with(self.client.clone(), resource)
    }
}

/// What was made of everything.
struct Arranged {
    findings: BTreeMap<String, Finding>,
    /// What all policies suffer from.
    trouble: Option<Trouble>,
    /// When to look again.
    due: Duration,
}

/// The webhooks of a configuration.
fn webhooks(configuration: Option<&DynamicObject>) -> Vec<Value> {
    let webhooks = configuration.and_then(|configuration| configuration.data.get("webhooks")?.as_array());
    webhooks.cloned().unwrap_or_default()
}

/// The CAs that webhooks have API servers trust; none, if nobody is asked.
fn trusted(webhooks: &[Value]) -> Option<String> {
    let bundles: BTreeSet<String> = webhooks
        .iter()
        .map(|webhook| webhook.pointer("/clientConfig/caBundle").and_then(Value::as_str).unwrap_or_default())
        .map(|bundle| String::from_utf8(STANDARD.decode(bundle).unwrap_or_default()).unwrap_or_default())
        .collect();
    (!bundles.is_empty()).then(|| bundles.into_iter().collect())
}

async fn ask<T>(what: &str, question: impl Future<Output = Result<T, kube::Error>>) -> Result<T, Failure> {
    let answer = timeout(ANSWER, question).await.map_err(|_| Failure::Late(what.to_owned()))?;
    answer.map_err(|error| Failure::Refused(what.to_owned(), Box::new(error)))
}

/// What the API server says, in its own words and once.
fn reason(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) if !status.message.is_empty() => status.message.clone(),
        other => other.to_string(),
    }
}

fn is(error: &kube::Error, code: u16) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == code)
}

#[cfg(test)]
mod tests;
