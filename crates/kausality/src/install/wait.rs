//! Waiting for what was installed, and for what goes.

use std::{
    io::Write,
    time::{Duration, Instant},
};

use anyhow::{Result, bail};
use serde_json::Value;

use super::objects::{Objects, holds, name, text};

/// How long to wait between two looks.
const INTERVAL: Duration = Duration::from_millis(500);

/// How long the API server may take to serve a kind that was defined.
const DEFINED: Duration = Duration::from_secs(60);

/// Waits until the kinds are served.
pub(crate) async fn until_served(objects: &Objects, definitions: &[Value]) -> Result<()> {
    let since = Instant::now();
    for definition in definitions {
        loop {
            let found = objects.get(definition).await?;
            if found.is_some_and(|found| holds(&found, "Established")) {
                break;
            }
            if since.elapsed() > DEFINED {
                bail!(
                    "{} is not served after {} s. What is wrong with it: kubectl describe crd {}",
                    name(definition),
                    DEFINED.as_secs(),
                    text(definition, "/metadata/name")
                );
            }
            tokio::time::sleep(INTERVAL).await;
        }
    }
    Ok(())
}

/// Waits until all Deployments among the manifests are rolled out, and tells about each.
pub(crate) async fn until_available(
    out: &mut impl Write,
    objects: &Objects,
    manifests: &[Value],
    patience: Duration,
) -> Result<()> {
    let since = Instant::now();
    for deployment in manifests.iter().filter(|manifest| manifest["kind"] == "Deployment") {
        let mut told = String::new();
        loop {
            let found = objects.get(deployment).await?.unwrap_or_default();
            let (done, progress) = rollout(&found);
            if progress != told {
                writeln!(out, "{}: {progress}", name(deployment))?;
                told = progress;
            }
            if done {
                break;
            }
            if since.elapsed() > patience {
                let namespace = text(deployment, "/metadata/namespace");
                bail!(
                    "{} is not available after {} s ({told}).\nIts Pods say why: kubectl -n {namespace} describe pods \
                     -l app.kubernetes.io/name=kausality\nThis waits longer with --timeout, and not at all with \
                     --wait=false",
                    name(deployment),
                    patience.as_secs()
                );
            }
            tokio::time::sleep(INTERVAL).await;
        }
    }
    Ok(())
}

/// Whether a Deployment is rolled out, and how far it is.
fn rollout(deployment: &Value) -> (bool, String) {
    let number = |pointer: &str| deployment.pointer(pointer).and_then(Value::as_i64).unwrap_or(0);
    let observed = number("/status/observedGeneration") >= number("/metadata/generation");
    let wanted = number("/spec/replicas");
    let (all, updated) = (number("/status/replicas"), number("/status/updatedReplicas"));
    // Old replicas may be available while none of the new ones is.
    let fresh = (number("/status/availableReplicas") - (all - updated)).clamp(0, wanted);
    let done = observed && updated >= wanted && all == updated && fresh >= wanted;
    (done, format!("{fresh} of {wanted} replicas available"))
}

/// Waits until all of these are gone.
pub(crate) async fn until_gone(objects: &Objects, manifests: &[Value], patience: Duration) -> Result<()> {
    let since = Instant::now();
    for manifest in manifests {
        while let Some(found) = objects.get(manifest).await? {
            if since.elapsed() > patience {
                let finalizers = found.pointer("/metadata/finalizers").cloned().unwrap_or_default();
                bail!(
                    "{} is still there after {} s (finalizers: {finalizers}). It is being deleted; nothing else is left \
                     to do",
                    name(manifest),
                    patience.as_secs()
                );
            }
            tokio::time::sleep(INTERVAL).await;
        }
    }
    Ok(())
}

/// How long something must have been away to stay away.
const AWAY: Duration = Duration::from_secs(2);

/// Deletes these until nobody puts them back any more.
pub(crate) async fn until_away(objects: &Objects, manifests: &[Value], patience: Duration) -> Result<()> {
    let since = Instant::now();
    let mut away = Instant::now();
    while away.elapsed() < AWAY {
        for manifest in manifests {
            if objects.delete(manifest).await? {
                away = Instant::now();
            }
            if since.elapsed() > patience {
                bail!(
                    "{} is put back again and again. Find out who does: kubectl get {} -o yaml --show-managed-fields",
                    name(manifest),
                    name(manifest)
                );
            }
        }
        tokio::time::sleep(INTERVAL).await;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_roll_out_is_done_when_only_new_replicas_are_left_and_available() {
        let deployment = |generation: i64, all: i64, updated: i64, available: i64| {
            json!({
                "metadata": {"generation": 2},
                "spec": {"replicas": 2},
                "status": {
                    "observedGeneration": generation, "replicas": all, "updatedReplicas": updated,
                    "availableReplicas": available,
                },
            })
        };
        for (found, done, available) in [
            (json!({"spec": {"replicas": 2}}), false, 0),
            (deployment(1, 2, 2, 2), false, 2),
            (deployment(2, 3, 1, 2), false, 0),
            (deployment(2, 3, 2, 3), false, 2),
            (deployment(2, 2, 2, 1), false, 1),
            (deployment(2, 2, 2, 2), true, 2),
        ] {
            let expected = (done, format!("{available} of 2 replicas available"));
            assert_eq!(rollout(&found), expected, "{found}");
        }
    }
}
