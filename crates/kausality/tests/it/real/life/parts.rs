//! The parts, which are restarted in turn.

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use kausality_testbed::{Component, ControlPlane, MASTERS};

use super::{Installation, Webhook, World, watch::Memory};

/// Certificates are replaced after two thirds of this.
const LIFETIMES: [&str; 6] =
    ["--certificate-lifetime", "90s", "--ca-lifetime", "270s", "--ca-settling", "3s"];

/// Whose turn it is.
#[derive(Clone, Copy, Debug)]
enum Turn {
    Webhook,
    /// Killed.
    Controller,
    ApiServer,
    Certificate,
    ControllerManager,
    /// Told to stop.
    LeavingController,
    Etcd,
}

const TURNS: [Turn; 8] = [
    Turn::Webhook,
    Turn::ApiServer,
    Turn::Controller,
    Turn::Webhook,
    Turn::ControllerManager,
    Turn::Certificate,
    Turn::Etcd,
    Turn::LeavingController,
];

/// How often everybody has a turn in all.
const ROUNDS: u32 = 3;

/// No more often than this.
const PACE: Duration = Duration::from_secs(4);

pub(super) struct Parts<'a> {
    installation: &'a mut Installation,
    /// With their logs.
    controllers: Vec<(Webhook, PathBuf)>,
    /// How many processes of ours were started.
    started: usize,
}

impl<'a> Parts<'a> {
    /// Two controllers beside the webhooks.
    pub(super) fn start(installation: &'a mut Installation) -> Self {
        let mut parts = Self { installation, controllers: Vec::new(), started: 2 };
        parts.add_controller();
        parts.add_controller();
        parts
    }

    fn add_controller(&mut self) {
        let log = format!("controller-{}.log", self.started);
        let controller = self.installation.spawn_controller(&log, &LIFETIMES);
        self.controllers.push((controller, self.installation.folder().join(log)));
        self.started += 1;
    }

    pub(super) async fn ready(&self) {
        self.installation.ready().await;
    }

    /// Restarts one part after the other.
    pub(super) async fn take_turns(
        &mut self,
        plane: &mut ControlPlane,
        world: &World,
        memory: &Memory,
        length: Duration,
    ) {
        let begun = Instant::now();
        let pace = (length / (ROUNDS * TURNS.len() as u32)).max(PACE);
        let mut pace = tokio::time::interval(pace);
        pace.tick().await;
        memory.follow(self.processes());
        for turn in TURNS.iter().cycle() {
            if begun.elapsed() > length {
                break;
            }
            pace.tick().await;
            self.take_turn(*turn, plane, world).await;
            world.note(&format!("{turn:?}"));
            memory.follow(self.processes());
        }
    }

    async fn take_turn(&mut self, turn: Turn, plane: &mut ControlPlane, world: &World) {
        match turn {
            Turn::Webhook => {
                self.installation.replace_webhook().await;
                self.started += 1;
            }
            Turn::Controller => {
                let (mut killed, _) = self.controllers.remove(0);
                killed.0.kill().unwrap();
                killed.0.wait().unwrap();
                self.add_controller();
            }
            Turn::LeavingController => {
                self.controllers.remove(0).0.terminate().await;
                self.add_controller();
            }
            Turn::Certificate => {
                let secret = ["delete", "secret", "kausality-webhook-tls", "-n", "kausality-system"];
                let deleted = plane.kubectl("mallory", &[MASTERS]).args(secret).output().unwrap();
                assert!(deleted.status.success(), "{deleted:?}");
            }
            Turn::ApiServer => restart(plane, Component::ApiServer, world).await,
            Turn::Etcd => restart(plane, Component::Etcd, world).await,
            // Nobody but its own work waits for it.
            Turn::ControllerManager => plane.restart(Component::ControllerManager).await.unwrap(),
        }
    }

    /// The processes of ours that run, by what they are, with their logs.
    fn processes(&self) -> Vec<(&'static str, u32, PathBuf)> {
        let webhooks = self.installation.webhooks().map(|id| ("webhook", id, PathBuf::new()));
        let controllers = self.controllers.iter();
        webhooks.chain(controllers.map(|(it, log)| ("controller", it.0.id(), log.clone()))).collect()
    }

    /// Tells all of ours to stop. How many there were in all.
    pub(super) async fn stop(mut self) -> usize {
        for (controller, _) in &mut self.controllers {
            controller.terminate().await;
        }
        self.installation.stop().await;
        self.started
    }
}

async fn restart(plane: &mut ControlPlane, component: Component, world: &World) {
    world.outage_begins();
    plane.restart(component).await.unwrap();
    world.outage_ends();
}
