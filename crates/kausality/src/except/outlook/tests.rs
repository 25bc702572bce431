#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use kausality_api::{
    annotation::{EXCEPTED, Suffix},
    approval::ApprovalMode,
};
use serde_json::{Value, json};

use super::{
    super::{
        fixture::{bed, policy, rule, wish},
        rules::Wish,
    },
    *,
};
use crate::ledger::fixture::{drift, noon};

fn covered_by(wish: &Wish<'_>, entry: &Entry, known: &Known) -> Result<Vec<String>> {
    covered(&rule(wish, entry), std::slice::from_ref(entry), known, noon())
}

#[test]
fn a_rule_matches_what_it_is_made_of_or_is_refused() {
    let one = bed("south-1", "roses", "thistles");
    let known = Known::default();
    assert_eq!(covered_by(&wish(), &one, &known).unwrap(), [""; 0]);
    let holds = Wish { cel: Some("object.spec.flowers == 'thistles'"), ..wish() };
    assert_eq!(covered_by(&holds, &one, &known).unwrap(), [""; 0]);
    for (cel, why) in [
        ("object.spec.flowers == 'tulips'", "drift/south-1-thistles: match.cel does not hold"),
        ("object.spec.soil == 'wet'", "drift/south-1-thistles: match.cel cannot be told: "),
    ] {
        let error = covered_by(&Wish { cel: Some(cel), ..wish() }, &one, &known).unwrap_err().to_string();
        assert!(error.contains(why) && error.contains("nothing was written"), "{error}");
    }
    let lost = drift(&json!({}));
    assert_eq!(
        covered_by(&wish(), &lost, &known).unwrap(),
        [
            "It cannot be told whether it matches drift/e675380dcb6f9bf1: the ledger does not hold the objects."
        ]
    );
}

#[test]
fn of_several_drifts_each_must_be_matched() {
    let (one, two) = (bed("south-1", "roses", "thistles"), bed("south-2", "roses", "tulips"));
    let wish = Wish { cel: Some("object.spec.flowers == 'thistles'"), ..wish() };
    let both = [&one, &two].map(|entry| wish.rule(&entry.drift.spec).unwrap());
    let error =
        covered(&policy(&json!(both)), &[one, two], &Known::default(), noon()).unwrap_err().to_string();
    assert!(error.contains("drift/south-2-tulips: match.cel does not hold"), "{error}");
    assert!(!error.contains("drift/south-1"), "{error}");
}

#[test]
fn parents_are_asked_as_they_are_now() {
    let one = bed("south-1", "roses", "thistles");
    let parent = |used: &str| {
        let annotations = json!({Suffix::of("", "Garden", "", "").key(EXCEPTED): used});
        let parent = json!({"kind": "Garden", "metadata": {"uid": "uid-south", "annotations": annotations},
            "spec": {"flowers": "roses"}});
        Known::these(&one.drift.spec, parent, [].into())
    };
    let asks = Wish { cel: Some("parent.spec.flowers == 'roses'"), ..wish() };
    assert_eq!(covered_by(&asks, &one, &parent("[]")).unwrap(), [""; 0]);
    let asks = Wish { cel: Some("parent.spec.flowers == 'tulips'"), ..wish() };
    assert!(covered_by(&asks, &one, &parent("[]")).is_err());
    // What is recorded there cannot be understood, so that such a rule lets nothing pass.
    let once = Wish { mode: ApprovalMode::Once, ..wish() };
    assert_eq!(covered_by(&once, &one, &parent("[]")).unwrap(), [""; 0]);
    assert!(covered_by(&once, &one, &parent("oops")).is_err());
}

#[test]
fn what_denies_is_named() {
    let chosen = [bed("south-1", "roses", "thistles")];
    let deny = |says: Value| {
        let mut rule = json!({"action": "deny", "apiVersion": "*", "kind": "Bed", "reason": "weeds",
            "subjects": [{"kind": "ServiceAccount", "name": "*", "namespace": "*"}]});
        json_patch::merge(&mut rule, &says);
        let rules = policy(&json!([{"apiVersion": "*", "kind": "Bed"}, rule]));
        denied(&rules, &chosen, &Known::default(), noon())
    };
    assert_eq!(
        deny(json!({})),
        [
            "CAUTION: drift/south-1-thistles will not pass: ApprovalPolicy/park/exceptions rules[1] (weeds) denies it, and what \
          denies wins."
        ]
    );
    assert_eq!(
        deny(json!({"match": {"cel": "parent.spec.flowers == 'roses'"}})),
        [
            "CAUTION: drift/south-1-thistles may not pass: whether ApprovalPolicy/park/exceptions rules[1] (weeds) denies it cannot \
          be told, since there are too many parents to read them all."
        ]
    );
    for other in [
        json!({"dryRun": true}),
        json!({"kind": "Path"}),
        json!({"match": {"cel": "object.spec.flowers == 'nettles'"}}),
        json!({"causes": ["origin"]}),
    ] {
        assert_eq!(deny(other.clone()), [""; 0], "{other}");
    }
}
