//! The leader's loop: looks at everything whenever anything has changed, and makes it as it should be.

use std::{collections::BTreeSet, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use jiff::Timestamp;
use k8s_openapi::{api::core::v1::Secret, apimachinery::pkg::apis::meta::v1::OwnerReference};
use kausality_cluster::{Kinds, UnknownKind, Which, alarm};
use kube::{
    Api, Client,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
    core::{ApiResource, DynamicObject},
};
use serde_json::{Value, json};
use tokio::{
    sync::Notify,
    time::{Instant, sleep, sleep_until, timeout},
};

use crate::{
    certificates::{self, Action, Unmakeable, Wanted},
    desired::{
        AGGREGATED, Anchor, Desired, MANAGED, NAME, Place, Policy, Target,
        conditions::{self, Trouble},
        desired, known, role_name,
    },
    metrics::Metrics,
};

mod kinds;

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

/// How much is done to certificates at once.
const MAX_ACTIONS: usize = 8;

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
    /// The certificate to make; none, if somebody else does.
    pub certificates: Option<Wanted>,
    /// The ClusterRole with which everything goes.
    pub anchor: Option<String>,
}

/// Why things are not as they should be.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The API server refused.
    #[error("{0}: {1}")]
    Refused(String, #[source] Box<kube::Error>),
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
}

impl Controller {
    /// A controller of the cluster behind `client`, which should use each connection once.
    #[must_use]
    pub fn new(client: Client, settings: Settings, metrics: Metrics) -> Self {
        Self { kinds: Kinds::new(client.clone()), client, settings, metrics }
    }

    /// Leads, for ever. Dropped, it stops at once: whatever was half done, the next leader finishes.
    pub async fn lead(&self) {
        let (changed, defined) = (Notify::new(), Notify::new());
        let named = || Which::named(NAME);
        let ours = Which::labelled(&format!("app.kubernetes.io/managed-by={MANAGED}"));
        let all = |resource: &ApiResource| Api::all_with(self.client.clone(), resource);
        let secrets = Api::namespaced_with(self.client.clone(), &self.settings.namespace, &kinds::secret());
        tokio::select! {
            () = alarm(all(&kinds::policy()), Which::default(), "policies", &changed) => {}
            () = alarm(all(&kinds::mutating()), named(), "the mutating configuration", &changed) => {}
            () = alarm(all(&kinds::validating()), named(), "the validating configuration", &changed) => {}
            () = alarm(all(&kinds::role()), ours, "roles", &changed) => {}
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
    /// If something could not be done.
    pub async fn reconcile(&self) -> Result<Duration, Failure> {
        let anchor = match &self.settings.anchor {
            None => None,
            Some(name) => match self.anchor(name).await? {
                None => {
                    tracing::info!(anchor = name, "the anchor is gone: Kausality is being uninstalled");
                    return Ok(RESYNC);
                }
                found => found,
            },
        };
        let policies = self.policies().await?;
        let configured =
            ask("reading the webhook configuration", self.api(&kinds::mutating()).get_opt(NAME)).await?;
        let stored = webhooks(configured.as_ref());
        let certified = self.certify(trusted(&stored).as_deref(), anchor.as_ref()).await?;
        let served = known(&self.kinds.all().await?, &stored);
        let (bundle, due) = match &certified {
            Ok((bundle, due)) => (bundle.clone(), *due),
            Err(_) => (String::new(), RESYNC),
        };
        let Settings { namespace, target, .. } = &self.settings;
        let place = Place { namespace: namespace.clone(), target: target.clone(), bundle, anchor };
        let desired = desired(&policies, &served, &stored, &place);
        let written = match certified {
            Ok(_) => self.write(&policies, &desired, configured.is_some()).await,
            Err(trouble) => self.write_roles(&desired).await.map(|()| Some(trouble)),
        };
        let trouble = match &written {
            Ok(trouble) => trouble.clone(),
            Err(failure) => Some(Trouble::Refused(failure.to_string())),
        };
        self.tell(&policies, &desired, trouble.as_ref()).await?;
        written.map(|_| due)
    }

    /// Applies what there should be, and removes what should not. Rights come first and go last, so that nobody is
    /// ever asked about what it may not read.
    async fn write(
        &self,
        policies: &[Policy],
        desired: &Desired,
        was_configured: bool,
    ) -> Result<Option<Trouble>, Failure> {
        self.write_roles(desired).await?;
        for (resource, wanted) in
            [(kinds::mutating(), &desired.mutating), (kinds::validating(), &desired.validating)]
        {
            match wanted {
                Some(wanted) => self.configure(&resource, wanted).await?,
                None => self.remove(&resource, NAME).await?,
            }
        }
        if desired.mutating.is_some() && !was_configured {
            tracing::info!(policies = policies.len(), "registered");
        }
        let wanted: BTreeSet<String> = policies.iter().map(|policy| role_name(&policy.name)).collect();
        let selector = format!("app.kubernetes.io/managed-by={MANAGED},{AGGREGATED}=true");
        let list = ListParams::default().labels(&selector);
        for role in ask("listing roles", self.api(&kinds::role()).list(&list)).await? {
            let name = role.metadata.name.unwrap_or_default();
            if !wanted.contains(&name) {
                self.remove(&kinds::role(), &name).await?;
            }
        }
        Ok(None)
    }

    async fn write_roles(&self, desired: &Desired) -> Result<(), Failure> {
        for role in &desired.roles {
            self.apply(&kinds::role(), role).await?;
        }
        Ok(())
    }

    /// Applies a webhook configuration. What others have added to it would outlive that: one more condition that never
    /// holds, and nobody is asked. So it is written over where anything is left that should not be there.
    async fn configure(&self, resource: &ApiResource, wanted: &Value) -> Result<(), Failure> {
        let applied = self.apply(resource, wanted).await?;
        let unlike = |object: &DynamicObject| object.data.get("webhooks") != wanted.get("webhooks");
        if unlike(&applied) {
            tracing::warn!(kind = resource.kind, "somebody has changed the configuration: it is repaired");
            let parameters =
                PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
            let patch = Patch::Merge(json!({"webhooks": wanted["webhooks"]}));
            let what = format!("repairing {}", resource.kind);
            ask(&what, self.api(resource).patch(NAME, &parameters, &patch)).await?;
        }
        Ok(())
    }

    async fn apply(&self, resource: &ApiResource, wanted: &Value) -> Result<DynamicObject, Failure> {
        let name = wanted["metadata"]["name"].as_str().unwrap_or_default();
        let parameters = PatchParams::apply(MANAGER).force();
        let what = format!("applying {} {name}", resource.kind);
        ask(&what, self.api(resource).patch(name, &parameters, &Patch::Apply(wanted))).await
    }

    async fn remove(&self, resource: &ApiResource, name: &str) -> Result<(), Failure> {
        let what = format!("deleting {} {name}", resource.kind);
        match ask(&what, self.api(resource).delete(name, &DeleteParams::default())).await {
            Err(Failure::Refused(_, error)) if is(&error, 404) => Ok(()),
            other => other.map(drop),
        }
    }

    /// Writes what people are told about policies, where it is anything new.
    async fn tell(
        &self,
        policies: &[Policy],
        desired: &Desired,
        trouble: Option<&Trouble>,
    ) -> Result<(), Failure> {
        for policy in policies {
            let Some(finding) = desired.findings.get(&policy.name) else { continue };
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
                other => drop(other?),
            }
        }
        Ok(())
    }

    async fn anchor(&self, name: &str) -> Result<Option<Anchor>, Failure> {
        let found = ask("reading the anchor", self.api(&kinds::role()).get_opt(name)).await?;
        let living = found.filter(|found| found.metadata.deletion_timestamp.is_none());
        Ok(living.and_then(|found| Some(Anchor { name: name.to_owned(), uid: found.metadata.uid? })))
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

    /// The bundle that API servers are to trust, and when to look again.
    async fn certify(
        &self,
        trusted: Option<&str>,
        anchor: Option<&Anchor>,
    ) -> Result<Result<(String, Duration), Trouble>, Failure> {
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), &self.settings.namespace);
        let name = &self.settings.secret;
        let read = async || ask("reading the certificate", secrets.get_opt(name)).await;
        let Some(wanted) = &self.settings.certificates else {
            let bundle = read().await?.and_then(|secret| secret.data?.remove("ca.crt"));
            let bundle = bundle.and_then(|bundle| String::from_utf8(bundle.0).ok());
            let place = format!("{}/{name}", self.settings.namespace);
            return Ok(bundle.map(|bundle| (bundle, RESYNC)).ok_or_else(|| {
                Trouble::NoCertificate(format!("Secret {place} has no ca.crt, and is for others to write"))
            }));
        };
        for _ in 0..MAX_ACTIONS {
            let secret = read().await?;
            let stored = secret.as_ref().map(certificates::read).unwrap_or_default();
            let now = Timestamp::now();
            let action = certificates::step(now, &stored, trusted, wanted);
            if let Action::Wait(until) = action {
                self.metrics.certified(&stored);
                let left = Duration::try_from(until.duration_since(now)).unwrap_or_default();
                return Ok(Ok((stored.bundle(), left)));
            }
            tracing::info!(action = action.name(), "certificates");
            let stored = certificates::perform(&action, now, &stored, wanted)?;
            let (is_new, mut secret) = (secret.is_none(), secret.unwrap_or_default());
            certificates::write(&stored, &mut secret);
            secret.metadata.managed_fields = None;
            secret.metadata.name = Some(name.clone());
            secret.metadata.owner_references = anchor.map(|anchor| vec![owner(anchor)]);
            let parameters = PostParams { field_manager: Some(MANAGER.to_owned()), ..PostParams::default() };
            // At the version that was read: two never rotate at once.
            if is_new {
                ask("creating the certificate", secrets.create(&parameters, &secret)).await?;
            } else {
                ask("writing the certificate", secrets.replace(name, &parameters, &secret)).await?;
            }
        }
        Ok(Err(Trouble::NoCertificate(
            "certificates are over as soon as they are made: give longer lifetimes".to_owned(),
        )))
    }

    fn api(&self, resource: &ApiResource) -> Api<DynamicObject> {
        Api::all_with(self.client.clone(), resource)
    }
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

fn owner(anchor: &Anchor) -> OwnerReference {
    let resource = kinds::role();
    OwnerReference {
        api_version: resource.api_version,
        kind: resource.kind,
        name: anchor.name.clone(),
        uid: anchor.uid.clone(),
        ..OwnerReference::default()
    }
}

fn is(error: &kube::Error, code: u16) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == code)
}
