//! `kausality freeze`, `unfreeze`, `snooze` and `unsnooze`.

use serde_json::{Value, json};

use crate::cli::stage::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_parent_is_frozen_and_thawed() {
    let stage = Stage::new().await;
    stage.garden("south", &json!({})).await;
    stage.golden("freeze", &["freeze", "garden/south", "-n", "park", "--reason", "storm"]);
    let freeze = stage.annotation("south", "freeze").await;
    assert_eq!((&freeze["user"], &freeze["message"]), (&json!("alice"), &json!("storm")));
    assert!(freeze["at"].as_str().unwrap().ends_with('Z'), "{freeze}");
    // Who froze it first is still the one to ask.
    let again = [
        "freeze",
        "garden/south",
        "-n",
        "park",
        "--reason",
        "calm",
        "--as",
        "erin",
        "--as-group",
        "system:masters",
    ];
    stage.golden("freeze-again", &again);
    assert_eq!(stage.annotation("south", "freeze").await, freeze);
    stage.golden("unfreeze", &["unfreeze", "garden/south", "-n", "park"]);
    assert_eq!(stage.annotation("south", "freeze").await, Value::Null);
    stage.golden("unfreeze-again", &["unfreeze", "garden/south", "-n", "park"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_parent_is_snoozed_by_the_id_of_a_drift_too() {
    let stage = Stage::new().await;
    let south = stage.garden("south", &json!({"kausality.io/snooze-until": "2020-01-01T00:00:00Z"})).await;
    stage.drift(&Plot::new("aaa1000000000000", &south, "south-1")).await;
    let until = "2099-01-01T00:00:00Z";
    let said = stage.run(&["snooze", "aaa", "-n", "park", "--until", until, "--reason", "holiday"]);
    assert_eq!(said.out, format!("Garden park/south snoozed until {until}\n"), "{said:?}");
    let expected = json!({"expiry": until, "user": "alice", "message": "holiday"});
    assert_eq!(stage.annotation("south", "snooze").await, expected);
    assert_eq!(stage.annotation("south", "snooze-until").await, Value::Null);
    let said = stage.run(&["snooze", "garden/south", "-n", "park", "--for", "2h"]);
    assert_eq!(said.code, 0, "{said:?}");
    let snooze = stage.annotation("south", "snooze").await;
    let expiry: jiff::Timestamp = snooze["expiry"].as_str().unwrap().parse().unwrap();
    assert!((7_000..=7_200).contains(&expiry.duration_since(jiff::Timestamp::now()).as_secs()), "{snooze}");
    stage.golden("unsnooze", &["unsnooze", "garden/south", "-n", "park"]);
    assert_eq!(stage.annotation("south", "snooze").await, Value::Null);
    stage.golden("unsnooze-again", &["unsnooze", "garden/south", "-n", "park"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn several_parents_need_a_yes() {
    let stage = Stage::new().await;
    stage.garden("south", &json!({})).await;
    stage.garden("north", &json!({})).await;
    let both = ["freeze", "garden/south", "garden/north", "-n", "park", "--reason", "storm"];
    stage.golden("freeze-several-unasked", &both);
    assert_eq!(stage.annotation("south", "freeze").await, Value::Null);
    assert_eq!(stage.run(&[&both[..], &["--yes"]].concat()).code, 0);
    assert_ne!(stage.annotation("north", "freeze").await, Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_parent_without_a_namespace_is_found_by_its_drift() {
    let stage = Stage::new().await;
    let city =
        json!({"apiVersion": "garden.io/v1", "kind": "Park", "metadata": {"name": "city"}, "spec": {}});
    let city = stage.post("/apis/garden.io/v1/parks", &city).await;
    stage.drift(&Plot::new("ddd1000000000000", &city, "city-1")).await;
    stage.garden("south", &json!({})).await;
    let path = "/apis/garden.io/v1/parks/city";
    let until = "2099-01-01T00:00:00Z";
    for (arguments, key, expected) in [
        (&["freeze", "ddd1", "--reason", "storm"][..], "freeze", "storm"),
        (&["freeze", "park/city", "--reason", "storm"], "freeze", "storm"),
        (&["unfreeze", "ddd1"], "freeze", ""),
        (&["snooze", "ddd1", "--until", until, "--reason", "holiday"], "snooze", "holiday"),
        (&["unsnooze", "ddd1"], "snooze", ""),
    ] {
        let said = stage.run(&[arguments, &["--cluster"]].concat());
        assert!(said.code == 0 && said.out.starts_with("Park city "), "{said:?}");
        let message = stage.annotation_of(path, key).await["message"].clone();
        assert_eq!(message.as_str().unwrap_or_default(), expected, "{said:?}");
    }
    stage.golden("freeze-no-cluster", &["freeze", "garden/south", "--cluster", "--reason", "storm"]);
    // One of a namespace is not found where there is none.
    let south = stage.get(&format!("{GARDENS}/south")).await;
    stage.drift(&Plot::new("aaa1000000000000", &south, "south-1")).await;
    stage.golden("freeze-no-cluster-drift", &["freeze", "aaa1", "--cluster", "--reason", "storm"]);
    assert_eq!(stage.annotation("south", "freeze").await, Value::Null);
    let both = stage.run(&["unfreeze", "ddd1", "--cluster", "-n", "park"]);
    assert_eq!(both.code, 2, "{both:?}");
}
