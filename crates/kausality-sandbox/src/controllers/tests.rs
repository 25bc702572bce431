//! Stories played by the controllers on a small API, in an order that a seed decides.

use serde_json::{Value, json};

mod api;
mod deletions;
mod recording;
mod rollouts;
mod workloads;
mod world;

use world::World;

/// A Deployment of a size.
fn deployment(replicas: i64) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": { "name": "web", "namespace": "default" },
        "spec": {
            "replicas": replicas,
            "selector": { "matchLabels": { "app": "web" } },
            "template": {
                "metadata": { "labels": { "app": "web" } },
                "spec": { "containers": [{ "name": "main", "image": "web:1" }] }
            }
        }
    })
}

/// A patch to another image.
fn image(image: &str) -> Value {
    json!({ "spec": { "template": { "spec": { "containers": [{ "name": "main", "image": image }] } } } })
}

/// Plays a story with many seeds; whatever goes wrong names its seed.
fn for_seeds(seeds: u64, story: impl Fn(&mut World)) {
    for seed in 1..=seeds {
        let mut world = World::new(seed);
        let played = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| story(&mut world)));
        if let Err(panic) = played {
            eprintln!("seed {seed}:");
            std::panic::resume_unwind(panic);
        }
    }
}
