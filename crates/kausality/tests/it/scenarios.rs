//! Plays every scenario in `scenarios/*.yaml` on a real control plane and on the sandbox: what comes out differently there
//! is a fault of the sandbox.
//!
//! `KAUSALITY_SCENARIO=substring` plays those whose name contains it. What a scenario may say is in
//! `scenarios/format.rs`; the objects it starts from are in `scenarios/bases`. All share one control plane and one
//! webhook; each has a namespace of its own, named after it.
#![allow(clippy::print_stdout, reason = "so many scenarios show how far they have got")]

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    time::Instant,
};

use futures::{StreamExt as _, stream};
use kausality_testbed::{eventually, start_or_skip};
use serde_json::{Value, json};

mod format;
mod kinds;
mod log;
mod observe;
mod plane;
mod play;
mod real;
mod value;

use format::Scenario;
use kinds::{Kind, Target};
use plane::{Action, Call, PATIENCE, Plane};
use play::{Bases, Player};
use real::{Host, Real};

/// How many scenarios are played at once.
const AT_ONCE: usize = 8;

#[tokio::test(flavor = "multi_thread")]
async fn on_a_real_control_plane() {
    if let Some(plane) = start_or_skip().await.unwrap() {
        all_on(Host::cluster(plane).await, "a real control plane").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn on_the_sandbox() {
    all_on(Host::sandbox().await, "the sandbox").await;
}

async fn all_on(host: Host, name: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let scenarios = load(&folder);
    let bases: Bases = yaml_files(&folder.join("bases"))
        .into_iter()
        .chain(yaml_files(&folder.join("../deploy/crds")))
        .map(|(file, text)| (file.trim_end_matches(".yaml").to_owned(), yaml(&file, &text)))
        .collect();
    let starts: Starts = yaml_files(&folder.join("starts"))
        .into_iter()
        .map(|(file, text)| (file.trim_end_matches(".yaml").to_owned(), yaml(&file, &text)))
        .collect();
    let begun = Instant::now();
    let mut real = Real::new(host);
    prepare(&real, &bases, &scenarios).await;

    let mut players: Vec<_> = scenarios.iter().map(|one| (one, Player::new(&real, &bases, one))).collect();
    let before =
        stream::iter(&mut players).map(async |(scenario, player)| player.play(&scenario.before).await);
    let before: Vec<_> = before.buffered(AT_ONCE).collect().await;
    let learned: Vec<_> = players.into_iter().map(|(_, player)| player.learned()).collect();
    real.install().await;

    let played = scenarios.iter().zip(before).zip(learned).map(async |((scenario, before), learned)| {
        let begun = Instant::now();
        let outcome = match before {
            Ok(()) => play(Player::new(&real, &bases, scenario).knowing(learned), scenario, &starts).await,
            Err(wrong) => Err(format!("before: {wrong}")),
        };
        let word = if outcome.is_ok() { "ok" } else { "FAILED" };
        println!("{:48} {word:6} {:5.1} s", scenario.name, begun.elapsed().as_secs_f64());
        outcome.err().map(|wrong| format!("scenarios/{}.yaml, {wrong}", scenario.name))
    });
    let mut failures: Vec<String> =
        stream::iter(played).buffer_unordered(AT_ONCE).filter_map(std::future::ready).collect().await;
    failures.extend(unanswered(&real));
    println!("{} scenarios on {name} in {:.0} s", scenarios.len(), begun.elapsed().as_secs_f64());
    let (failed, all) = (failures.len(), scenarios.len());
    assert!(failures.is_empty(), "{failed} of {all} fail\n\n{}\n", failures.join("\n\n"));
}

/// Steps that many scenarios begin with, by name.
type Starts = BTreeMap<String, Vec<Value>>;

async fn play(mut player: Player<'_, Real>, scenario: &Scenario, starts: &Starts) -> Result<(), String> {
    if let Some(start) = &scenario.start {
        let steps = starts.get(start).ok_or_else(|| format!("there is no start {start:?}"))?;
        player.play(steps).await.map_err(|wrong| format!("start {start}: {wrong}"))?;
    }
    player.play(&scenario.steps).await
}

/// Reads all scenarios, and gives those that are asked for.
fn load(folder: &Path) -> Vec<Scenario> {
    let filter = std::env::var("KAUSALITY_SCENARIO").unwrap_or_default();
    let mut scenarios: Vec<Scenario> = Vec::new();
    for (file, text) in yaml_files(folder) {
        let mut scenario: Scenario = yaml(&file, &text);
        let policies: Vec<Value> = scenario
            .policies
            .iter()
            .map(|name| curated(&folder.join("../policies"), name, &scenario.name))
            .collect();
        scenario.before.extend(policies);
        if let Some(fault) = scenario.fault(&file) {
            panic!("scenarios/{file}: {fault}");
        }
        scenarios.push(scenario);
    }
    scenarios.retain(|scenario| scenario.name.contains(&filter));
    assert!(!scenarios.is_empty(), "no scenario matches {filter:?}");
    scenarios
}

/// A step that creates one of the policies that come with Kausality, for one namespace. What is in none, is in none.
fn curated(folder: &Path, name: &str, namespace: &str) -> Value {
    let file = format!("{name}.yaml");
    let text = fs::read_to_string(folder.join(&file)).unwrap_or_else(|error| panic!("{file}: {error}"));
    let mut policy: Value = yaml(&file, &text);
    policy["metadata"]["name"] = format!("{namespace}-{name}").into();
    for rule in policy["spec"]["rules"].as_array_mut().unwrap() {
        let named = |field: &str| rule[field].as_str().unwrap();
        if !Kind::without_namespace(named("apiVersion"), named("kind")) {
            rule["namespace"] = namespace.into();
        }
    }
    json!({"as": "alice", "create": policy, "expect": "allowed"})
}

fn yaml_files(folder: &Path) -> Vec<(String, String)> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    files.sort();
    let read = files.iter().map(|path| {
        (path.file_name().unwrap().to_string_lossy().into_owned(), fs::read_to_string(path).unwrap())
    });
    read.collect()
}

/// Reads YAML in which `no` is a word.
fn yaml<T: serde::de::DeserializeOwned>(file: &str, text: &str) -> T {
    let options = serde_saphyr::options! { strict_booleans: true };
    serde_saphyr::from_str_with_options(text, options).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// Makes the kinds and the namespaces that scenarios need, and waits until Pods can be created in them.
async fn prepare(real: &Real, bases: &Bases, scenarios: &[Scenario]) {
    let lists = bases.values().filter_map(|base| base["items"].as_array()).flatten();
    let definitions = bases.values().chain(lists);
    for definition in definitions.filter(|base| base["kind"] == "CustomResourceDefinition") {
        create(real, definition).await;
        let kind = Kind::named(definition["spec"]["names"]["kind"].as_str().unwrap()).unwrap();
        eventually(PATIENCE, kind.plural, async || real.served(kind).await).await.unwrap();
    }
    let namespaces = scenarios.iter().map(async |scenario| {
        let mode = scenario.mode.map(|mode| json!({ "kausality.io/mode": mode.to_string() }));
        let metadata = json!({ "name": scenario.name, "annotations": mode });
        create(real, &json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": metadata })).await;
        let account = Target::parse("ServiceAccount/default", &scenario.name).unwrap();
        eventually(PATIENCE, "a service account", async || {
            real.get(account).await?.ok_or_else(|| "none".to_owned())
        })
        .await
        .unwrap();
    });
    stream::iter(namespaces).buffer_unordered(AT_ONCE).collect::<()>().await;
}

async fn create(real: &Real, object: &Value) {
    let kind = Kind::named(object["kind"].as_str().unwrap()).unwrap();
    let target = Target { kind, namespace: "", name: object["metadata"]["name"].as_str().unwrap() };
    let call = Call { action: Action::Create(object.clone()), dry_run: false, field_manager: None };
    let answer = real.call("scenarios", target, &call).await.unwrap();
    assert!(answer.is_allowed(), "{}: {}", target.path(), answer.body);
}

/// Requests that the webhook did not answer: the API server let them pass, so nothing else shows it.
fn unanswered(real: &Real) -> Option<String> {
    let open = |call: &plane::Audited| call.annotations.keys().any(|key| key.starts_with("failed-open."));
    let calls: Vec<_> = real.audit(0).into_iter().filter(|call| open(call)).collect();
    (!calls.is_empty())
        .then(|| format!("the webhook did not answer {} calls: {:#?}", calls.len(), calls.first()))
}
