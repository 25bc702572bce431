//! Memory for each watched parent, and the time until all are known.

use std::{collections::BTreeMap, time::Instant};

use anyhow::{Context, Result, ensure};
use kausality_core::Settings;
use kube::{
    Api,
    api::ListParams,
    core::{ApiResource, DynamicObject, GroupVersionKind},
};
use serde_json::{Value, json};

use crate::{
    Plan,
    api::CannedApi,
    contestant::{self, Process, Role},
    deployments,
    figures::{Report, Rounds, print_table},
    machine,
};

/// How many objects a page of a list holds, as the webhook asks for them.
const PAGE: u32 = 500;

/// The budget: bytes for each parent.
const MAX_BYTES: f64 = 1024.0;

/// The budget: seconds at so many parents, beyond what their list takes.
const MAX_START: (usize, f64) = (10_000, 1.0);

/// What a process says that watches so many parents. One that watches none has read a page of them before, so that the
/// difference is what is kept, and not what reading takes.
pub(crate) async fn watched(count: usize) -> Result<Value> {
    if count == 0 {
        list(&CannedApi::new(vec![deployments::shelf(usize::try_from(PAGE)?)])).await?;
    }
    let shelves = vec![deployments::shelf(count), deployments::namespaces(), contestant::no_policies()];
    let api = CannedApi::new(shelves);
    let begun = Instant::now();
    let cluster = contestant::cluster(&api, Settings::default()).await?;
    let ready = begun.elapsed();
    let known = cluster.health().into_iter().find(|watch| watch.kind == "Deployment");
    let known = known.map_or(0, |watch| watch.health.objects);
    ensure!(known == count, "{known} of {count} parents are known");
    Ok(json!({"resident": machine::resident()?, "seconds": ready.as_secs_f64()}))
}

/// What a process says that lists so many, and keeps none.
pub(crate) async fn listed(count: usize) -> Result<Value> {
    let api = CannedApi::new(vec![deployments::shelf(count)]);
    let begun = Instant::now();
    let listed = list(&api).await?;
    ensure!(listed == count, "{listed} of {count} parents were listed");
    Ok(json!({"seconds": begun.elapsed().as_secs_f64()}))
}

/// Lists all Deployments, page by page; how many there are.
async fn list(api: &CannedApi) -> Result<usize> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("apps", "v1", "Deployment"));
    let api: Api<DynamicObject> = Api::all_with(api.client(), &resource);
    let mut parameters = ListParams::default().limit(PAGE);
    let mut count = 0;
    loop {
        let page = api.list(&parameters).await?;
        count += page.items.len();
        parameters.continue_token = page.metadata.continue_.filter(|token| !token.is_empty());
        if parameters.continue_token.is_none() {
            return Ok(count);
        }
    }
}

#[derive(Default)]
struct Figures {
    /// Bytes for each parent.
    memory: Rounds,
    ready: Rounds,
    list: Rounds,
    /// What of the start is not the list.
    beyond: Rounds,
}

/// Measures all of it, each in a fresh process.
pub(crate) fn measure(plan: &Plan, report: &mut Report) -> Result<Value> {
    let mut all: BTreeMap<usize, Figures> = BTreeMap::new();
    for round in 0..plan.rounds {
        eprintln!("round {} of {}: processes with {:?} parents", round + 1, plan.rounds, plan.parents);
        let none = number(&Process::start(Role::Parents, 0)?.hear()?, "resident")?;
        for count in &plan.parents {
            let watched = Process::start(Role::Parents, *count)?.hear()?;
            let list = number(&Process::start(Role::List, *count)?.hear()?, "seconds")?;
            let figures = all.entry(*count).or_default();
            #[allow(clippy::cast_precision_loss, reason = "there are not that many")]
            let parents = *count as f64;
            let ready = number(&watched, "seconds")?;
            figures.memory.push((number(&watched, "resident")? - none) / parents);
            figures.ready.push(ready);
            figures.list.push(list);
            figures.beyond.push(ready - list);
        }
    }
    let row = |(count, figures): (&usize, &Figures)| {
        vec![
            count.to_string(),
            figures.memory.show(0),
            figures.ready.show(3),
            figures.list.show(3),
            figures.beyond.show(3),
        ]
    };
    let header = ["parents", "bytes each", "until ready, s", "a bare list, s", "difference, s"];
    print_table("Watched parents, each number in a fresh process", &header, all.iter().map(row).collect());
    for (count, figures) in &all {
        report.at_most(&format!("memory per parent at {count}"), figures.memory.median(), MAX_BYTES, "bytes");
        if *count == MAX_START.0 {
            let what = format!("start-up beyond the list at {count} parents");
            report.at_most(&what, figures.beyond.median(), MAX_START.1, "s");
        }
    }
    let figures = all.iter().map(|(count, figures)| {
        let figures = json!({"bytes": figures.memory.json(), "ready": figures.ready.json(), "list": figures.list.json()});
        (count.to_string(), figures)
    });
    Ok(Value::Object(figures.collect()))
}

fn number(told: &Value, name: &str) -> Result<f64> {
    told[name].as_f64().with_context(|| format!("the process does not tell {name}"))
}
