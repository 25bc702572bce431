//! What must hold of verdicts after any history of applies and updates by three managers.

use crate::verdict_world::World;
use kausality_fields::FieldSet;
use kausality_fields::attribution::{Claims, attribute};
use kausality_fields::managed::{Entry, Operation, Wire, encode};
use kausality_fields::verdict::{Class, Report, Verdict, project};
use proptest::collection::{btree_map, btree_set, vec};
use proptest::option;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

const MANAGERS: [&str; 3] = ["argo", "helm", "hpa"];

/// Something that a manager wants of a Deployment: few names and values, so that managers meet. No list that is owned
/// item by item is empty: nobody would own it.
fn wish() -> impl Strategy<Value = Value> {
    let amount = prop_oneof![Just(json!("1")), Just(json!("1000m")), Just(json!(2))];
    let container = (
        option::of("[ab]"),
        option::of(vec("[ab]", 0..2)),
        option::of(btree_map("(cpu|memory)", amount, 0..2)),
        option::of(btree_map("[XY]", "[ab]?", 1..2)),
    )
        .prop_map(|(image, args, limits, env)| {
            let variable = |(name, value)| json!({"name": name, "value": value});
            let env: Option<Vec<Value>> = env.map(|env| env.into_iter().map(variable).collect());
            present([
                ("image", image.map(Value::from)),
                ("args", args.map(Value::from)),
                ("resources", limits.map(|limits| json!({"limits": limits}))),
                ("env", env.map(Value::from)),
            ])
        });
    (
        option::of(0..3i64),
        option::of(Just(json!({}))),
        option::of(btree_map("[ab]", "[xy]", 0..2)),
        option::of(btree_map("(a[.]b/c|d)", "[xy]", 0..3)),
        option::of(btree_set("[fg]", 1..3)),
        option::of(btree_map("[mn]", container, 1..3)),
    )
        .prop_map(|(replicas, strategy, selector, labels, finalizers, containers)| {
            let container = |(name, mut container): (String, Value)| {
                container["name"] = json!(name);
                container
            };
            let containers: Option<Vec<Value>> =
                containers.map(|containers| containers.into_iter().map(container).collect());
            let template = containers.map(|containers| json!({"spec": {"containers": containers}}));
            let metadata = present([
                ("name", Some(json!("web"))),
                ("labels", labels.map(|labels| json!(labels))),
                ("finalizers", finalizers.map(|finalizers| json!(finalizers))),
            ]);
            let spec = present([
                ("replicas", replicas.map(Value::from)),
                ("strategy", strategy),
                ("selector", selector.map(|labels| json!({"matchLabels": labels}))),
                ("template", template),
            ]);
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec})
        })
}

fn present<const N: usize>(fields: [(&str, Option<Value>); N]) -> Value {
    let field = |(name, value): (&str, Option<Value>)| Some((name.to_owned(), value?));
    Value::Object(fields.into_iter().filter_map(field).collect::<Map<_, _>>())
}

/// Who writes what, and whether by apply.
fn history() -> impl Strategy<Value = Vec<(usize, bool, Value)>> {
    vec((0..MANAGERS.len(), any::<bool>(), wish()), 1..6)
}

fn after(history: &[(usize, bool, Value)]) -> World {
    let mut world = World::new("apps/v1", "Deployment");
    for (manager, applies, wish) in history {
        match applies {
            true => world.apply(MANAGERS[*manager], wish),
            false => world.update(MANAGERS[*manager], "", |live| *live = wish.clone()),
        };
    }
    world
}

fn owned(world: &World, manager: &str) -> FieldSet {
    let own = world.managers.iter().filter(|((name, _, _), _)| name == manager);
    own.fold(FieldSet::new(), |all, (_, claim)| all.union(&claim.fields))
}

fn text(world: &World, second: usize) -> String {
    let entry = |((manager, operation, _), claim): (
        &crate::verdict_world::Id,
        &kausality_fields::ownership::Claim,
    )| Entry {
        manager: manager.clone(),
        operation: *operation,
        api_version: claim.api_version.clone(),
        time: Some(format!("2026-01-01T00:00:{second:02}Z")),
        fields: claim.fields.clone(),
        subresource: String::new(),
    };
    let entries: Vec<Entry> = world.managers.iter().map(entry).collect();
    encode(&entries, Wire::BuiltIn)
}

fn drift(report: &Report) -> bool {
    report.class() == Class::Drift
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn only_what_is_declared_or_owned_is_reported(history in history(), wish in wish()) {
        let world = after(&history);
        let report = world.report("helm", &wish, &[]);
        let business = world.of().field_set(&wish).unwrap().union(&owned(&world, "helm"));
        for finding in &report.findings {
            prop_assert!(business.has(&finding.path), "{}", finding.path);
        }
        for path in report.unowned.iter().chain(&report.foreign) {
            prop_assert!(!owned(&world, "helm").has(&path), "{path}");
        }
        prop_assert!(report.findings.is_sorted_by(|a, b| a.path < b.path));
        prop_assert_eq!(&report, &world.report("helm", &wish, &[]));
        prop_assert_eq!(json!(report), json!(world.report("helm", &wish, &[])));
    }

    /// The oracle is what a forced apply would do.
    #[test]
    fn drift_is_reported_exactly_if_an_apply_would_not_leave_all_as_it_is(history in history(), wish in wish()) {
        let mut world = after(&history);
        let report = world.report("helm", &wish, &[]);
        prop_assume!(report.class() != Class::Unknown);
        let (live, before) = (world.live.clone(), world.managers.clone());
        world.apply("helm", &wish);
        let apply = ("helm".to_owned(), Operation::Apply, String::new());
        // An amount that is written in another way is no change to the API server, which reads both alike.
        let amounts = |value: &Value| value.to_string().replace("\"1000m\"", "\"1\"");
        if amounts(&live) != amounts(&world.live) {
            prop_assert!(drift(&report), "{live} -> {}: {report:?}", world.live);
        }
        let is_takeover = |verdict: &Verdict| matches!(verdict, Verdict::Takeover { .. });
        if drift(&report) && amounts(&live) == amounts(&world.live) {
            // Then somebody owns alone what helm declares.
            prop_assert!(report.findings.iter().any(|finding| is_takeover(&finding.verdict)), "{report:?}");
            prop_assert_ne!(before.get(&apply), world.managers.get(&apply));
        }
        let again = world.report("helm", &wish, &[]);
        prop_assert!(!drift(&again), "{again:?}");
    }

    #[test]
    fn to_project_twice_is_to_project_once(history in history(), wish in wish()) {
        let world = after(&history);
        for manager in MANAGERS {
            let owned = owned(&world, manager);
            for value in [&world.live, &wish] {
                let once = project(world.of(), value, &owned).unwrap();
                prop_assert_eq!(&project(world.of(), &once, &owned).unwrap(), &once);
            }
        }
    }

    /// What is attributed is what the sets say.
    #[test]
    fn moves_are_the_differences_of_sets(history in history(), one_more in history()) {
        let old = after(&history);
        let new = after(&[history, one_more].concat());
        let (before, after) = (text(&old, 0), text(&new, 0));
        let attribution = attribute(Some(&before), Some(&after)).unwrap();
        for moved in attribution.written.iter().chain(&attribution.reduced) {
            let id = (moved.owner.manager.clone(), moved.owner.operation, String::new());
            let [before, after] = [&old, &new].map(|world| {
                world.managers.get(&id).map_or(FieldSet::new(), |claim| claim.fields.clone())
            });
            let moves = moved.moves().unwrap();
            prop_assert_eq!(&moves.gained, &after.difference(&before));
            prop_assert_eq!(&moves.lost, &before.difference(&after));
            prop_assert!(!moves.gained.is_empty() || !moves.lost.is_empty());
        }
        let moved = attribution.written.len() + attribution.reduced.len();
        let ids = old.managers.keys().chain(new.managers.keys()).collect::<std::collections::BTreeSet<_>>();
        let differ = ids.iter().filter(|id| {
            let fields = |world: &World| world.managers.get(**id).map(|claim| claim.fields.clone());
            fields(&old) != fields(&new)
        });
        prop_assert_eq!(moved, differ.count());
    }

    #[test]
    fn claims_are_read_as_they_are_written(history in history()) {
        let world = after(&history);
        let mut read = Claims::read(Some(&text(&world, 0))).unwrap();
        let mut kept = world.claims();
        for claims in [&mut read, &mut kept] {
            claims.0.sort_by(|a, b| a.owner.cmp(&b.owner));
        }
        prop_assert_eq!(read, kept);
    }
}
