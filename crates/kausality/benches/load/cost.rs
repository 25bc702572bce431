//! One decision, with few and with many policies, and with few and with many watched objects.

use std::{sync::Arc, time::Duration};

use anyhow::{Result, ensure};
use kausality_cluster::Cluster;
use kausality_core::{Decision, Settings, cause::Cause};
use kausality_webhook::Bytes;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::{
    Plan,
    api::{CannedApi, Shelf},
    contestant,
    deployments::{self, Deployment},
    figures::{Report, Rounds, print_table},
    machine::{self, Seat},
    reviews::Recorded,
};

/// How many policies match, however many there are.
const MATCHING: usize = 10;

/// How many different requests there are, each about the child of another parent.
const REQUESTS: usize = 1000;

/// How much more a decision may cost where there is more of what it is not about. Flat, but for memory that is further
/// away.
const FLAT: f64 = 1.2;

/// How many watched objects there are where policies are counted.
const FEW: usize = 1000;

/// What the policies that do not match are about.
#[derive(Clone, Copy)]
enum Others {
    /// Other resources.
    Resources,
    /// The same resources, in other namespaces.
    Namespaces,
}

/// One thing that is measured.
struct Case {
    what: String,
    /// The case that it is compared with.
    base: usize,
    cluster: Arc<Cluster>,
    reviews: Vec<Bytes>,
    /// Microseconds of a processor for one decision.
    cost: Rounds,
}

/// Measures all of it.
pub(crate) fn measure(plan: &Plan, report: &mut Report) -> Result<Value> {
    let cases = machine::seated(Seat::Server, || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(run(plan))
    })?;
    let ratio = |case: &Case| {
        let base = cases.get(case.base).map_or(f64::NAN, |base| base.cost.median());
        case.cost.median() / base
    };
    let row = |case: &Case| vec![case.what.clone(), case.cost.show(2), format!("{:.2} x", ratio(case))];
    print_table(
        "One decision, in µs of a processor",
        &["with", "µs", "ratio"],
        cases.iter().map(row).collect(),
    );
    for (place, case) in cases.iter().enumerate() {
        if case.base != place {
            report.at_most(&format!("cost of a decision with {}", case.what), ratio(case), FLAT, "x");
        }
    }
    let figures =
        cases.iter().map(|case| (case.what.clone(), json!({"us": case.cost.json(), "ratio": ratio(case)})));
    Ok(Value::Object(figures.collect()))
}

async fn run(plan: &Plan) -> Result<Vec<Case>> {
    let recorded = Recorded::read()?;
    let many = plan.parents.last().copied().unwrap_or(FEW);
    let mut cases = Vec::new();
    let settings: [(usize, usize, Others, usize, String); 7] = [
        (0, MATCHING, Others::Resources, FEW, format!("{MATCHING} policies")),
        (0, 1_000, Others::Resources, FEW, "1000 policies, most for other resources".to_owned()),
        (0, 10_000, Others::Resources, FEW, "10000 policies, most for other resources".to_owned()),
        (0, 1_000, Others::Namespaces, FEW, "1000 policies, most for other namespaces".to_owned()),
        (0, 10_000, Others::Namespaces, FEW, "10000 policies, most for other namespaces".to_owned()),
        (5, MATCHING, Others::Resources, FEW, format!("{FEW} watched objects")),
        (5, MATCHING, Others::Resources, many, format!("{many} watched objects")),
    ];
    for (base, policies, others, objects, what) in settings {
        eprintln!("preparing a cluster with {what}");
        let shelves =
            vec![deployments::shelf(objects), deployments::namespaces(), policies_shelf(policies, others)];
        let cluster = contestant::cluster(&CannedApi::new(shelves), Settings::default()).await?;
        let reviews = reviews(&recorded, objects)?;
        let mut case = Case { what, base, cluster, reviews, cost: Rounds::default() };
        case.check().await?;
        cases.push(case);
    }
    for round in 0..plan.rounds {
        eprintln!("round {} of {}: decisions", round + 1, plan.rounds);
        for case in &mut cases {
            let took = case.decide(plan.decisions).await?;
            #[allow(clippy::cast_precision_loss, reason = "there are not that many")]
            case.cost.push(took.as_secs_f64() * 1e6 / plan.decisions as f64);
        }
    }
    Ok(cases)
}

impl Case {
    /// Makes every decision once.
    async fn check(&mut self) -> Result<()> {
        for review in &self.reviews {
            let decision = self.admit(review).await?;
            ensure!(
                decision.verdict.is_allowed() && decision.cause != Some(Cause::Drift),
                "with {}: {:?} ({:?})",
                self.what,
                decision.cause,
                decision.resolution
            );
        }
        Ok(())
    }

    /// How long processors work for so many decisions.
    async fn decide(&self, count: usize) -> Result<Duration> {
        let before = machine::busy(std::process::id());
        for review in self.reviews.iter().cycle().take(count) {
            std::hint::black_box(self.admit(review).await?);
        }
        Ok(machine::busy(std::process::id()).saturating_sub(before))
    }

    async fn admit(&self, review: &Bytes) -> Result<Decision> {
        let until = Instant::now() + Duration::from_secs(5);
        Ok(self.cluster.admit(review, until, |_| ()).await?.1)
    }
}

/// Changes of children, each of another Deployment, from the first to the last of so many.
fn reviews(recorded: &Recorded, objects: usize) -> Result<Vec<Bytes>> {
    let recorded = recorded.change_of_child()?;
    let review = |nth: usize| {
        let Deployment { namespace, name, uid } = Deployment::of(nth * objects / REQUESTS);
        let mut review = recorded.clone();
        let request = &mut review["request"];
        request["namespace"] = namespace.as_str().into();
        for side in ["object", "oldObject"] {
            let metadata = &mut request[side]["metadata"];
            metadata["namespace"] = namespace.as_str().into();
            metadata["ownerReferences"][0]["name"] = name.as_str().into();
            metadata["ownerReferences"][0]["uid"] = uid.as_str().into();
        }
        Ok(Bytes::from(serde_json::to_vec(&review)?))
    };
    (0..REQUESTS).map(review).collect()
}

/// So many policies, the first of which match.
fn policies_shelf(count: usize, others: Others) -> Shelf {
    let policy = move |nth: usize| {
        let apps = json!([{"apiGroups": ["apps"], "resources": ["deployments", "replicasets"]}]);
        let spec = match (nth < MATCHING, others) {
            (true, _) => json!({"resources": apps, "mode": "log", "settle": "steady"}),
            (false, Others::Resources) => {
                let group = format!("team-{nth}.example.com");
                json!({"resources": [{"apiGroups": [group], "resources": ["things"]}], "mode": "log"})
            }
            (false, Others::Namespaces) => {
                json!({"resources": apps, "namespaces": {"names": [format!("other-{nth}")]}, "mode": "log"})
            }
        };
        json!({"apiVersion": "kausality.io/v1alpha1", "kind": "Kausality",
            "metadata": {"name": format!("policy-{nth:05}"), "uid": format!("{nth}"), "resourceVersion": "1000000000"},
            "spec": spec})
        .to_string()
    };
    Shelf::new(kausality_api::GROUP, "v1alpha1", "kausalities", "Kausality")
        .cluster_scoped()
        .making(count, policy)
}
