//! Tells a story, and does what it tells.

use std::{
    io::Write,
    time::{Duration, Instant},
};

use anstyle::{AnsiColor, Style};
use anyhow::{Context, Result, bail};
use kausality_api::{
    annotation::{self, Suffix},
    text::plain,
    trace::Trace,
};
use kausality_sandbox::User;
use kube::{
    Api,
    api::{ListParams, Patch, PatchParams, PostParams},
    core::{ApiResource, DynamicObject, GroupVersionKind},
};
use serde_json::{Value, json};

use crate::embedded::Embedded;

/// What the commands that are shown would call themselves.
const MANAGER: &str = "kubectl";

/// Nothing in the story takes longer.
const PATIENCE: Duration = Duration::from_secs(30);

pub(super) struct Teller<'a> {
    embedded: &'a Embedded,
    pause: Duration,
}

impl<'a> Teller<'a> {
    pub(super) fn new(embedded: &'a Embedded, pause: Duration) -> Self {
        Self { embedded, pause }
    }

    /// Says what happens next.
    pub(super) async fn say(&self, text: &str) -> Result<()> {
        tokio::time::sleep(self.pause).await;
        let bold = Style::new().bold();
        line(&format!("\n{bold}{text}{bold:#}"))
    }

    /// Shows what somebody types.
    pub(super) async fn command(&self, user: &str, command: &str) -> Result<()> {
        let green = AnsiColor::Green.on_default();
        line(&format!("{green}{user} $ {command}{green:#}"))?;
        tokio::time::sleep(self.pause).await;
        Ok(())
    }

    pub(super) async fn create(&self, user: &str, kind: &str, object: Value) -> Result<()> {
        let object = serde_json::from_value(object)?;
        let parameters = PostParams { field_manager: Some(MANAGER.to_owned()), ..PostParams::default() };
        self.api(user, kind).create(&parameters, &object).await?;
        Ok(())
    }

    pub(super) async fn patch(&self, user: &str, kind: &str, name: &str, patch: Value) -> Result<()> {
        let parameters = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
        self.api(user, kind).patch(name, &parameters, &Patch::Strategic(patch)).await?;
        Ok(())
    }

    /// As `kubectl scale` does it.
    pub(super) async fn scale(&self, user: &str, kind: &str, name: &str, replicas: i64) -> Result<()> {
        let parameters = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
        let patch = json!({"spec": {"replicas": replicas}});
        self.api(user, kind).patch_scale(name, &parameters, &Patch::Merge(patch)).await?;
        Ok(())
    }

    pub(super) async fn rolled_out(&self, name: &str) -> Result<()> {
        self.until("a roll-out", async || {
            let deployment = self.api("admin", "Deployment").get(name).await?;
            let (spec, status) = (&deployment.data["spec"], &deployment.data["status"]);
            let key = Suffix::of_object(&serde_json::to_value(&deployment)?).key(annotation::SETTLED);
            let settled = deployment.metadata.annotations.unwrap_or_default().contains_key(&key);
            let arrived = ["replicas", "updatedReplicas", "availableReplicas"]
                .iter()
                .all(|count| status[*count] == spec["replicas"]);
            let observed = status["observedGeneration"].as_i64() == deployment.metadata.generation;
            Ok((settled && arrived && observed).then_some(()))
        })
        .await
    }

    pub(super) async fn replicas_of(&self, name: &str, replicas: i64) -> Result<()> {
        self.until("a correction", async || {
            let set = self.api("admin", "ReplicaSet").get(name).await?;
            Ok((set.data["spec"]["replicas"] == replicas).then_some(()))
        })
        .await
    }

    /// The ReplicaSet that has Pods.
    pub(super) async fn current_replica_set(&self) -> Result<String> {
        let sets = self.api("admin", "ReplicaSet").list(&ListParams::default()).await?.items;
        let current = sets.into_iter().find(|set| set.data["spec"]["replicas"] != 0);
        current.and_then(|set| set.metadata.name).context("no ReplicaSet has Pods")
    }

    pub(super) async fn show_replica_sets(&self) -> Result<()> {
        let mut sets = self.api("admin", "ReplicaSet").list(&ListParams::default()).await?.items;
        sets.sort_by_key(|set| set.metadata.creation_timestamp.clone());
        for set in sets {
            let image = &set.data["spec"]["template"]["spec"]["containers"][0]["image"];
            let (name, wanted) = (set.metadata.name.unwrap_or_default(), &set.data["spec"]["replicas"]);
            line(&format!(
                "  replicaset/{name}  {}  {wanted} Pods wanted",
                image.as_str().unwrap_or_default()
            ))?;
        }
        Ok(())
    }

    pub(super) async fn show_trace(&self, kind: &str, name: &str) -> Result<()> {
        let object = self.api("admin", kind).get(name).await?;
        let key = Suffix::of_object(&serde_json::to_value(&object)?).key(annotation::TRACE);
        let trace = object.metadata.annotations.unwrap_or_default().remove(&key);
        let trace = Trace::decode(&trace.context("there is no trace")?)?;
        for (depth, hop) in trace.hops().iter().enumerate() {
            let approved = hop.approval.as_ref().map(|approval| {
                let by = approval.by.as_deref().map(|by| format!(" of {by}")).unwrap_or_default();
                format!(", with an approval{by}")
            });
            let approved = approved.unwrap_or_default();
            let text = format!("{} {} by {}{approved}", hop.kind, hop.name, hop.user);
            line(&format!("  {}{}", "  ".repeat(depth), plain(&text)))?;
        }
        Ok(())
    }

    pub(super) async fn show_event(&self, about: &str, reason: &str) -> Result<()> {
        let yellow = AnsiColor::Yellow.on_default();
        let note = self.until("an event", async || {
            let events = self.api("admin", "Event").list(&ListParams::default()).await?.items;
            let fits = |event: &&DynamicObject| {
                event.data["reason"] == reason && event.data["involvedObject"]["name"] == about
            };
            Ok(events
                .iter()
                .find(fits)
                .and_then(|event| event.data["message"].as_str().map(ToOwned::to_owned)))
        });
        line(&format!("  {yellow}{}{yellow:#}", plain(&note.await?)))
    }

    /// An approval for once, as somebody would write it.
    pub(super) async fn approval(&self, parent: &str, child: &str, by: &str) -> Result<String> {
        let generation =
            self.api("admin", "Deployment").get(parent).await?.metadata.generation.unwrap_or_default();
        Ok(format!(
            r#"[{{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"{child}","generation":{generation},"mode":"once","by":"{by}"}}]"#
        ))
    }

    async fn until<T>(&self, what: &str, mut look: impl AsyncFnMut() -> Result<Option<T>>) -> Result<T> {
        let deadline = Instant::now() + PATIENCE;
        let mut ticks = tokio::time::interval(Duration::from_millis(20));
        loop {
            if let Some(found) = look().await? {
                return Ok(found);
            }
            if Instant::now() > deadline {
                bail!("{what} did not come within {} s: please report this", PATIENCE.as_secs());
            }
            ticks.tick().await;
        }
    }

    fn api(&self, user: &str, kind: &str) -> Api<DynamicObject> {
        let group = if kind == "Event" { "" } else { "apps" };
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1", kind));
        Api::namespaced_with(self.embedded.sandbox.client(&User::admin(user)), "default", &resource)
    }
}

pub(super) fn line(text: &str) -> Result<()> {
    writeln!(anstream::stdout(), "{text}")?;
    Ok(())
}
