//! Webhook, controller and endpoint are killed at random moments, and every drift still arrives.
//!
//! `KAUSALITY_ROUNDS` and `KAUSALITY_DRIFTS` say how many kills there are, and how many drifts; `KAUSALITY_SEED` repeats one run.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use kausality_testbed::eventually;
use serde_json::{Value, json};
use tokio::{sync::Semaphore, task::JoinSet};

use crate::backend::{
    garden::{Garden, PATIENCE, Plot},
    machinery::{Machinery, TOKEN, VICTIMS},
};

/// How many requests are under way at once.
const AT_ONCE: usize = 16;

fn number(name: &str, usual: u64) -> u64 {
    std::env::var(name).ok().map_or(usual, |text| text.parse().unwrap())
}

/// Random numbers that can be repeated.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// What happened on a plot.
struct Story {
    plot: Plot,
    /// Under which it was denied.
    id: String,
    undecided: u64,
}

/// Its operator drifts and is denied; after a pause somebody changes the stack, and the drift is over.
async fn story(garden: Arc<Garden>, places: Arc<Semaphore>, plot: Plot, pause: Duration) -> Story {
    let turn = places.acquire().await.unwrap();
    let drifted = garden.drift(plot, "ConfigMap", &json!({"data": {"colour": plot.colour()}})).await;
    drop(turn);
    let id = drifted.drift.unwrap_or_else(|| panic!("{plot:?} drifted, and nobody minded"));
    // How long it is open is what is random here.
    tokio::time::sleep(pause).await;
    let _turn = places.acquire().await.unwrap();
    let changed = garden.change(plot).await;
    assert_eq!(changed.drift, None, "who changes a stack does not drift");
    Story { plot, id, undecided: drifted.undecided + changed.undecided }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_drift_arrives_whoever_is_killed() {
    let (rounds, count) = (number("KAUSALITY_ROUNDS", 6), number("KAUSALITY_DRIFTS", 120));
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let seed = number("KAUSALITY_SEED", now);
    println!("KAUSALITY_SEED={seed} KAUSALITY_ROUNDS={rounds} KAUSALITY_DRIFTS={count}");
    let mut dice = Dice(seed);
    let garden = Arc::new(Garden::new().await);
    let plots: Vec<Plot> = (0..count).map(Plot).collect();
    let spare = Plot(count);
    let mut namespaces: Vec<String> = plots.iter().chain([&spare]).map(|plot| plot.namespace()).collect();
    namespaces.dedup();
    for namespace in &namespaces {
        garden.namespace(namespace).await;
    }
    for plot in plots.iter().chain([&spare]) {
        garden.plant(*plot, Garden::config_map()).await;
    }
    let mut machinery = Machinery::new(&garden, "info", &[]);
    garden.guarded(spare, "ConfigMap").await;

    let begun = Instant::now();
    let places = Arc::new(Semaphore::new(AT_ONCE));
    let mut stories = JoinSet::new();
    let share = plots.len().div_ceil(usize::try_from(rounds).unwrap());
    for (plots, round) in plots.chunks(share).zip(0..) {
        for plot in plots {
            let pause = Duration::from_millis(dice.below(2000));
            stories.spawn(story(garden.clone(), places.clone(), *plot, pause));
        }
        // When the blow falls is what is random here; whom it hits goes round, so that it hits everybody.
        tokio::time::sleep(Duration::from_millis(dice.below(700))).await;
        machinery.kill(VICTIMS[(seed as usize + round) % VICTIMS.len()]).await;
    }
    let stories = stories.join_all().await;
    let undecided: u64 = stories.iter().map(|story| story.undecided).sum();
    println!("{count} drifts denied in {:?}; {undecided} requests found no webhook", begun.elapsed());

    // Asked of the endpoint first: to list all drifts time and again would be most of the work.
    let arrived = async || match machinery.backend.ask("GET", "/healthz", "", "").1["driftCount"].as_u64() {
        Some(reports) if reports == 2 * count => Ok(()),
        reports => Err(format!("{reports:?} reports. {}", machinery.last_words())),
    };
    eventually(PATIENCE, "all has arrived", arrived).await.unwrap();
    let recorded = async || {
        let all = garden.ledger().await;
        let is_untold =
            |drift: &&kube::core::DynamicObject| drift.data["status"]["deliveries"][0]["resolved"].is_null();
        match all.iter().filter(is_untold).count() {
            0 => Ok(all),
            left => Err(format!("{left} are left. {}", machinery.last_words())),
        }
    };
    let ledger = eventually(PATIENCE, "all is recorded", recorded).await.unwrap();
    println!("all has arrived and is recorded after {:?}", begun.elapsed());
    assert_eq!(ledger.len(), stories.len(), "one entry for each");

    let mut heard: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for report in machinery.reports() {
        heard.entry(report["id"].as_str().unwrap().to_owned()).or_default().push(report);
    }
    let denied: BTreeMap<&str, Plot> = stories.iter().map(|story| (story.id.as_str(), story.plot)).collect();
    assert_eq!(
        heard.keys().map(String::as_str).collect::<Vec<_>>(),
        denied.keys().copied().collect::<Vec<_>>(),
        "all that was denied, and none is made up"
    );
    for (id, reports) in &heard {
        let plot = denied[id.as_str()];
        let phases: Vec<&Value> = reports.iter().map(|report| &report["phase"]).collect();
        assert_eq!(phases, ["Detected", "Resolved"], "{id}");
        for report in reports {
            assert_eq!(report["child"]["name"], plot.name(), "{report}");
            assert_eq!(report["newObject"]["data"]["colour"], plot.colour(), "{report}");
        }
    }
    let ledger = serde_json::to_string(&ledger).unwrap();
    for (place, text) in [("a log", machinery.logs()), ("the ledger", ledger)] {
        assert!(!text.contains(TOKEN), "{place} has the token");
        assert!(!text.contains("/webhook"), "{place} has the URL");
    }
}
