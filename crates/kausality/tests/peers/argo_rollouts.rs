//! Argo Rollouts: one life of a canary, without Kausality and with it.
//!
//! Kausality must not cause extra writes. The controller copies all annotations of a Rollout to its ReplicaSets, ours
//! included; if the copies are undone, it copies them again, without end.

mod controller;
mod life;
mod writes;

use kausality_testbed::{AuditEvent, Component, Peer, peer_or_skip, start_or_skip};

use crate::{agreement, stage::Webhook};
use life::{IDLE, Life};

/// Where the API server notes what Kausality took for the cause of a change.
const CAUSE: &str = "drift.kausality.io/cause";

/// Whether Kausality is there.
#[derive(Clone, Copy, PartialEq)]
enum Kausality {
    Absent,
    Logs,
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_rollout_is_left_alone() {
    let Some(peer) = peer_or_skip("argo-rollouts").await.unwrap() else { return };
    let Some(without) = play(&peer, Kausality::Absent).await else { return };
    let Some(with) = play(&peer, Kausality::Logs).await else { return };
    println!("without Kausality:\n{without}\nwith Kausality:\n{with}");

    let (without, with) = (without.of("idle").total(), with.of("idle").total());
    assert_eq!(without, 0, "the controller writes although nothing happens");
    assert_eq!(with, without, "writes by the controller in {IDLE:?} while paused");
}

/// One life of a Rollout on a control plane of its own. `None` where there is no control plane.
async fn play(peer: &Peer, kausality: Kausality) -> Option<Life> {
    let mut plane = start_or_skip().await.unwrap()?;
    controller::install(&plane, peer);
    // The garbage collector looks for new kinds every 30 s: this way it knows Rollouts from the start.
    plane.restart(Component::ControllerManager).await.unwrap();
    let _kubelet = plane.play_kubelet().await.unwrap();
    let mut controller = controller::start(&plane, peer).await;
    let _webhook = match kausality {
        Kausality::Absent => None,
        Kausality::Logs => Some(Webhook::start(&plane, "rollouts.argoproj.io,replicasets.apps,pods").await),
    };
    let life = life::play(&plane, kausality == Kausality::Logs).await;
    controller.is_running().unwrap();
    if kausality == Kausality::Logs {
        // Somebody asked for all of it: the canary's steps after its promotion, too.
        let is_drift =
            |event: &AuditEvent| event.annotations.get(CAUSE).is_some_and(|cause| cause == "Drift");
        let drifts: Vec<_> = plane.audit().unwrap().into_iter().filter(is_drift).collect();
        assert!(drifts.is_empty(), "{drifts:#?}");
        agreement::check(&plane, &[]);
    }
    Some(life)
}
