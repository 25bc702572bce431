//! Values of annotations: valid, stale, malformed and hostile.

use kausality_api::{
    annotation::{
        APPROVALS, CONTROLLERS, FREEZE, INITIALIZED, MODE, OBSERVED_GENERATION, PHASE, REJECTIONS, SETTLED,
        SNOOZE, SNOOZE_UNTIL, TRACE, UPDATERS,
    },
    identity::UserHash,
};
use proptest::{
    collection::{btree_map, vec},
    option,
    prelude::*,
    sample::select,
    string::string_regex,
};
use serde_json::{Map, Value, json};

use crate::properties::world::{CHILD, GENERATION, USERS};

/// Text of this form. A bare pattern would be compiled for every value.
fn matching(pattern: &str) -> BoxedStrategy<String> {
    string_regex(pattern).unwrap().boxed()
}

/// A text, up to `most` times.
fn long(text: &'static str, most: usize) -> BoxedStrategy<String> {
    (1..most).prop_map(|times| text.repeat(times)).boxed()
}

fn odd_name() -> BoxedStrategy<String> {
    (matching("[a-z~/é\u{1}]{0,6}"), 1_usize..50).prop_map(|(part, times)| part.repeat(times)).boxed()
}

/// Text that nobody in their right mind would write.
pub(crate) fn hostile() -> BoxedStrategy<String> {
    prop_oneof![
        select(vec![
            "",
            " ",
            "null",
            "0",
            "-1",
            "[]",
            "{}",
            "[[]]",
            "[null]",
            "[1,2]",
            "\"",
            "True",
            "yes",
            "nope",
            "*",
            "18446744073709551616",
            "\u{0}",
            "\u{7f}\u{1b}[31m",
            "🦀🦀",
            "~0~1/",
            "a,b,c,,",
            "2026-13-45T99:99:99Z",
        ])
        .prop_map(str::to_owned),
        matching(".{0,30}"),
        (prop_oneof![any::<char>(), select(vec!['\u{1}', '"', '🦀'])], 1_usize..9000)
            .prop_map(|(char, times)| char.to_string().repeat(times)),
        (1_usize..3000).prop_map(|depth| "[".repeat(depth)),
        (1_usize..3000).prop_map(|count| json!(vec![1; count]).to_string()),
        (1_usize..9000).prop_map(|long| json!("x".repeat(long)).to_string()),
        (1_usize..9000).prop_map(|long| json!([{ "y".repeat(long): 1 }]).to_string()),
    ]
    .boxed()
}

/// Freezes of all sorts; most of them freeze.
pub(crate) fn freeze() -> BoxedStrategy<String> {
    prop_oneof![
        4 => Just("true".to_owned()),
        4 => Just(r#"{"user":"alice","message":"incident","at":"2026-01-01T00:00:00Z"}"#.to_owned()),
        2 => Just("false".to_owned()),
        2 => (matching("[a-z é🦀\u{1}]{0,8}"), 1_usize..2000).prop_map(|(user, times)| json!({
            "user": user.repeat(times), "message": "because ".repeat(times),
        }).to_string()),
        1 => hostile(),
    ]
    .boxed()
}

pub(crate) fn mode() -> BoxedStrategy<String> {
    prop_oneof![
        4 => Just("enforce".to_owned()),
        4 => Just("log".to_owned()),
        1 => Just(" Enforce ".to_owned()),
        1 => hostile(),
    ]
    .boxed()
}

fn snooze() -> BoxedStrategy<String> {
    prop_oneof![
        Just(r#"{"expiry":"2030-01-01T00:00:00Z","user":"alice"}"#.to_owned()),
        Just("2020-01-01T00:00:00Z".to_owned()),
        Just("2030-01-01T00:00:00Z".to_owned()),
        hostile(),
    ]
    .boxed()
}

/// `"name": value` or nothing.
fn put(entry: &mut Map<String, Value>, name: &str, value: Option<Value>) {
    value.into_iter().for_each(|value| {
        entry.insert(name.to_owned(), value);
    });
}

fn subject() -> BoxedStrategy<Map<String, Value>> {
    let part = |exact: &'static str| {
        prop_oneof![5 => Just("*"), 4 => Just(exact), 1 => Just("other")].prop_map(Value::from)
    };
    let exact = Just(CHILD).prop_map(Value::from);
    (part("apps/v1"), part("ReplicaSet"), prop_oneof![part(CHILD), exact])
        .prop_map(|(api_version, kind, name)| {
            let parts = [("apiVersion", api_version), ("kind", kind), ("name", name)];
            parts.map(|(key, value)| (key.to_owned(), value)).into_iter().collect()
        })
        .boxed()
}

/// The parent's generation mostly, or another one.
fn generation() -> BoxedStrategy<Option<Value>> {
    prop_oneof![
        6 => Just(Some(json!(GENERATION))),
        2 => Just(None),
        1 => (-2_i64..9).prop_map(|number| Some(json!(number))),
        1 => select(vec![i64::MIN, i64::MAX]).prop_map(|number| Some(json!(number))),
    ]
    .boxed()
}

fn expires() -> BoxedStrategy<Option<Value>> {
    prop_oneof![
        6 => Just(None),
        1 => Just(Some(json!("2020-01-01T00:00:00Z"))),
        1 => Just(Some(json!("2030-01-01T00:00:00Z"))),
    ]
    .boxed()
}

/// `$diff` stands for the hash of the very change that a sample makes.
fn diff() -> BoxedStrategy<Option<Value>> {
    prop_oneof![
        6 => Just(None),
        1 => Just(Some(json!("$diff"))),
        1 => Just(Some(json!("0123456789abcdef"))),
    ]
    .boxed()
}

/// An approval that can be understood, be it stale, expired or for something else.
fn approval() -> BoxedStrategy<Value> {
    let mode = prop_oneof![4 => Just(Some("once")), 2 => Just(Some("generation")), 3 => Just(Some("always")),
        1 => Just(None)];
    let fields = prop_oneof![
        6 => Just(None),
        1 => Just(Some(json!(["spec", "data", "rules"]))),
        1 => Just(Some(json!(["spec.unrelated"]))),
    ];
    (subject(), generation(), mode, fields, expires(), diff(), option::of(long("why é ", 60)))
        .prop_map(|(mut entry, generation, mode, fields, expires, diff, reason)| {
            // Only what lasts can do without a generation.
            let generation = generation.or_else(|| (mode != Some("always")).then(|| json!(GENERATION)));
            put(&mut entry, "generation", generation);
            put(&mut entry, "mode", mode.map(Value::from));
            put(&mut entry, "fields", fields);
            put(&mut entry, "expires", expires);
            put(&mut entry, "diff", diff);
            put(&mut entry, "reason", reason.map(Value::from));
            entry.into()
        })
        .boxed()
}

fn rejection() -> BoxedStrategy<Value> {
    (
        subject(),
        generation(),
        expires(),
        diff(),
        prop_oneof![4 => matching("[a-z]{1,9}"), 1 => long("because ", 3000)],
    )
        .prop_map(|(mut entry, generation, expires, diff, reason)| {
            put(&mut entry, "generation", generation);
            put(&mut entry, "expires", expires);
            put(&mut entry, "diff", diff);
            entry.insert("reason".to_owned(), reason.into());
            entry.into()
        })
        .boxed()
}

/// What is no entry of a list of approvals, nor of rejections, although it may look like one.
fn no_entry() -> BoxedStrategy<Value> {
    let star = json!({"apiVersion": "*", "kind": "*", "name": "*"});
    let with = move |name: &str, value: Value| {
        let mut entry = star.clone();
        entry["mode"] = json!("always");
        entry["reason"] = json!("because");
        entry[name] = value;
        entry
    };
    prop_oneof![
        Just(with("apiVersion", json!(""))),
        Just(with("kind", json!(1))),
        Just(with("name", Value::Null)),
        Just(with("generation", json!("4"))),
        Just(with("generation", json!(1.5))),
        Just(with("expires", json!("tomorrow"))),
        Just(with("diff", json!(["x"]))),
        Just(json!(["*", "*", "*", GENERATION, "always"])),
        Just(json!(["*", "*", "*", GENERATION, "because", null, null, null])),
        Just(json!("*")),
        Just(Value::Null),
        Just(json!({})),
        long("x", 5000).prop_map(|text| json!({ text: true })),
    ]
    .boxed()
}

/// What voids an approval only: a rejection blocks all the same.
fn no_approval() -> BoxedStrategy<Value> {
    let star = json!({"apiVersion": "*", "kind": "*", "name": "*"});
    let with = move |name: &str, value: Value| {
        let mut entry = star.clone();
        entry["mode"] = json!("always");
        entry[name] = value;
        entry
    };
    prop_oneof![
        no_entry(),
        Just(with("mode", json!("forever"))),
        Just(with("mode", json!("once"))),
        Just(with("field", json!(["spec"]))),
        Just(with("fields", json!("spec"))),
    ]
    .boxed()
}

fn list(entries: impl Strategy<Value = Value> + 'static) -> BoxedStrategy<String> {
    vec(entries, 1..4).prop_map(|entries| Value::from(entries).to_string()).boxed()
}

/// Approvals of which no entry can be understood.
pub(crate) fn bad_approvals() -> BoxedStrategy<String> {
    prop_oneof![3 => list(no_approval()), 1 => hostile()].boxed()
}

/// Rejections of which no entry can be understood.
pub(crate) fn bad_rejections() -> BoxedStrategy<String> {
    prop_oneof![3 => list(no_entry()), 1 => hostile()].boxed()
}

pub(crate) fn approvals() -> BoxedStrategy<String> {
    prop_oneof![
        8 => list(approval()),
        1 => list(prop_oneof![approval(), no_approval()]),
        1 => bad_approvals(),
    ]
    .boxed()
}

pub(crate) fn rejections() -> BoxedStrategy<String> {
    prop_oneof![
        8 => list(rejection()),
        1 => list(prop_oneof![rejection(), no_entry()]),
        1 => bad_rejections(),
    ]
    .boxed()
}

fn hashes() -> BoxedStrategy<String> {
    prop_oneof![
        8 => vec(select(USERS.to_vec()), 0..6).prop_map(|users| {
            let hashes: Vec<_> = users.iter().map(|user| UserHash::of(user, "").to_string()).collect();
            hashes.join(",")
        }),
        1 => hostile(),
    ]
    .boxed()
}

fn hop() -> BoxedStrategy<Value> {
    let text = || prop_oneof![4 => matching("[a-z]{1,9}"), 1 => hostile()];
    let labels = prop_oneof![
        4 => Just(json!({})),
        1 => btree_map(odd_name(), text(), 0..6).prop_map(|labels| json!(labels)),
    ];
    (text(), text(), text(), option::of(text()), labels, any::<bool>(), option::of(any::<i64>()))
        .prop_map(|(kind, name, user, uid, labels, drift, generation)| {
            json!({
                "apiVersion": name, "kind": kind, "name": name, "user": user, "uid": uid, "generation": generation,
                "timestamp": "2026-01-01T00:00:00Z", "labels": labels, "drift": drift,
                "approval": {"mode": "once", "by": user, "reason": name, "policy": kind}, "requestUID": name,
            })
        })
        .boxed()
}

/// Traces of any length.
pub(crate) fn trace() -> BoxedStrategy<String> {
    prop_oneof![
        6 => vec(hop(), 0..4),
        1 => (hop(), 1_usize..80).prop_map(|(hop, times)| vec![hop; times]),
        1 => vec(hop(), 0..40),
    ]
    .prop_map(|hops| Value::from(hops).to_string())
    .boxed()
}

/// An annotation that only Kausality writes, with a value that it might have or not.
pub(crate) fn system() -> BoxedStrategy<(String, String)> {
    prop_oneof![
        3 => (select(vec![UPDATERS, CONTROLLERS]), hashes()),
        2 => (Just(TRACE), prop_oneof![trace(), hostile()]),
        1 => (Just(PHASE), prop_oneof![Just("initialized".to_owned()), hostile()]),
        1 => (Just(INITIALIZED), prop_oneof![Just("true".to_owned()), hostile()]),
        1 => (Just(SETTLED), prop_oneof![matching("[0-9a-f]{16}"), hostile()]),
        1 => (Just(OBSERVED_GENERATION), prop_oneof![any::<i64>().prop_map(|it| it.to_string()).boxed(), hostile()]),
    ]
    .prop_map(|(key, value)| (key.to_owned(), value))
    .boxed()
}

/// An annotation that people write.
pub(crate) fn user() -> BoxedStrategy<(String, String)> {
    prop_oneof![
        4 => (Just(APPROVALS.to_owned()), approvals()),
        3 => (Just(REJECTIONS.to_owned()), rejections()),
        2 => (Just(FREEZE.to_owned()), freeze()),
        2 => (Just(MODE.to_owned()), mode()),
        1 => (select(vec![SNOOZE, SNOOZE_UNTIL]).prop_map(str::to_owned), snooze()),
        1 => trace_label(),
    ]
    .boxed()
}

/// An annotation that becomes a label of a hop.
pub(crate) fn trace_label() -> BoxedStrategy<(String, String)> {
    let name = prop_oneof![4 => matching("[a-z]{1,8}"), 1 => odd_name()];
    (name, prop_oneof![3 => matching("[A-Z]{3}-[0-9]{1,3}"), 1 => hostile()])
        .prop_map(|(name, value)| (format!("kausality.io/trace-{name}"), value))
        .boxed()
}
