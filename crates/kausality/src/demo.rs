//! `kausality demo`: the story of a drift, told on a control plane in this process.

use std::{io::IsTerminal, path::PathBuf, process::ExitCode, time::Duration};

use anyhow::Result;
use clap::Args;
use kausality_api::{mode::Mode, policy::QuietTime};
use serde_json::json;

use crate::{
    embedded::Embedded,
    up::{Kubeconfig, Open},
    webhook::interrupted,
};

mod teller;

use teller::{Teller, line};

/// See Kausality at work: a roll-out passes, a drift is caught, a person approves. No cluster is needed.
///
/// On a terminal, the control plane stays there afterwards to be played with.
#[derive(Debug, Args)]
pub struct Demo {
    /// Where to write a kubeconfig for playing; it is removed at the end
    #[arg(long, default_value = "kausality.kubeconfig", value_name = "FILE")]
    write_kubeconfig: PathBuf,

    /// Tell the story without pauses, and end with it
    #[arg(long)]
    fast: bool,
}

/// Between the steps of the story, on a terminal.
const PAUSE: Duration = Duration::from_millis(1500);

impl Demo {
    /// Runs the command.
    ///
    /// # Errors
    /// If something in the story goes otherwise than it should.
    pub fn run(&self) -> Result<ExitCode> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        runtime.block_on(async {
            let stays = std::io::stdout().is_terminal() && !self.fast;
            // A story that cannot be played with at its end need not be told.
            let kubeconfig = stays.then(|| Kubeconfig::claim(&self.write_kubeconfig)).transpose()?;
            tokio::select! {
                ended = self.tell(kubeconfig) => ended?,
                () = interrupted() => {}
            }
            Ok(ExitCode::SUCCESS)
        })
    }

    /// Tells the story, and stays if there is a kubeconfig to play with.
    async fn tell(&self, kubeconfig: Option<Kubeconfig>) -> Result<()> {
        let embedded = Embedded::start(Mode::Enforce, QuietTime::NONE).await?;
        let pause = if kubeconfig.is_some() { PAUSE } else { Duration::ZERO };
        let teller = Teller::new(&embedded, pause);
        let current = story(&teller).await?;
        // As it was called, so that it can be called so again.
        let program = std::env::args_os().next().unwrap_or_else(|| "kausality".into());
        let program = program.to_string_lossy();
        match kubeconfig {
            Some(kubeconfig) => {
                let _open = Open::new(&embedded, ([127, 0, 0, 1], 0).into(), kubeconfig).await?;
                line("\nYour turn, in another terminal, in the same folder. Ctrl-C here ends it.\n")?;
                line(&self.to_try(&program, &current))?;
                std::future::pending().await
            }
            None => {
                line(&format!(
                    "\nYour turn: run `{program} demo` on a terminal, where it stays. Then, in another terminal, in the \
                     same folder:\n"
                ))?;
                line(&self.to_try(&program, &current))
            }
        }
    }

    fn to_try(&self, program: &str, current: &str) -> String {
        format!(
            "  export KUBECONFIG={}\
             \n  kubectl get deployments,replicasets,pods\
             \n  kubectl scale replicaset/{current} --replicas=4 --as carol   # its correction is denied\
             \n  kubectl events --for deployment/shop\
             \n  {program} own deployment/shop\
             \n  kubectl set image deployment/shop shop=shop:3 --as bob   # a roll-out passes\
             \n  kubectl annotate deployment/shop kausality.io/freeze=true   # nothing below it changes",
            self.write_kubeconfig.display()
        )
    }
}

/// Returns the name of the ReplicaSet that has Pods at its end.
async fn story(teller: &Teller<'_>) -> Result<String> {
    teller.say("Alice deploys a shop.").await?;
    teller.command("alice", "kubectl create deployment shop --image=shop:1 --replicas=3").await?;
    let shop = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "shop"}, "spec": {
        "replicas": 3, "selector": {"matchLabels": {"app": "shop"}},
        "template": {"metadata": {"labels": {"app": "shop"}},
            "spec": {"containers": [{"name": "shop", "image": "shop:1"}]}}}});
    teller.create("alice", "Deployment", shop).await?;
    teller.rolled_out("shop").await?;
    teller.show_replica_sets().await?;

    teller.say("Bob updates the image. His change is the cause of all that follows, so it passes.").await?;
    teller.command("bob", "kubectl set image deployment/shop shop=shop:2").await?;
    let image =
        json!({"spec": {"template": {"spec": {"containers": [{"name": "shop", "image": "shop:2"}]}}}});
    teller.patch("bob", "Deployment", "shop", image).await?;
    teller.rolled_out("shop").await?;
    teller.show_replica_sets().await?;
    let current = teller.current_replica_set().await?;
    teller.say("Who caused the new ReplicaSet? It says so itself.").await?;
    teller.show_trace("ReplicaSet", &current).await?;

    teller.say("Carol scales that ReplicaSet by hand, at night, because the shop is slow.").await?;
    teller.command("carol", &format!("kubectl scale replicaset/{current} --replicas=5")).await?;
    teller.scale("carol", "ReplicaSet", &current, 5).await?;
    teller
        .say("Its controller wants to undo that at once, although nobody changed the Deployment: drift. It is denied.")
        .await?;
    teller.show_event("shop", "DriftDenied").await?;
    teller.show_replica_sets().await?;

    teller.say("In the morning Dave looks at it and lets the controller have its way, once.").await?;
    let approval = teller.approval("shop", &current, "dave").await?;
    teller
        .command("dave", &format!("kubectl annotate deployment/shop kausality.io/approvals='{approval}'"))
        .await?;
    let annotations = json!({"metadata": {"annotations": {"kausality.io/approvals": approval}}});
    teller.patch("dave", "Deployment", "shop", annotations).await?;
    teller.replicas_of(&current, 3).await?;
    teller.show_replica_sets().await?;
    teller.say("The approval is used up, and the trace tells of it.").await?;
    teller.show_trace("ReplicaSet", &current).await?;
    Ok(current)
}
