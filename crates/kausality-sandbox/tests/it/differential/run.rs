//! A random program on both sides.

use kube::Client;
use serde_json::{Value, json};

use crate::differential::compare::differences;
use crate::differential::exchange::{Answer, get, object_path, send};

/// Both sides.
pub(crate) struct Sides {
    pub(crate) real: Client,
    pub(crate) ours: Client,
}

/// The first step at which answers differ, and how.
pub(crate) struct Difference {
    pub(crate) step: usize,
    pub(crate) places: Vec<String>,
}

/// Runs a program in a namespace of its own. Says how many requests it took, and where the sides first differ.
pub(crate) async fn run(sides: &Sides, program: &[Value], namespace: &str) -> (usize, Option<Difference>) {
    let mut requests = 0;
    for request in beginning(namespace) {
        for side in [&sides.real, &sides.ours] {
            let answer = send(side, &request).await;
            assert!(answer.0 == 201, "{request}: {answer:?}");
        }
    }
    for (step, request) in program.iter().enumerate() {
        let request = within(request, namespace);
        let places = compare(sides, &request).await;
        requests += 2;
        if !places.is_empty() {
            return (requests, Some(Difference { step, places }));
        }
    }
    (requests, None)
}

/// A request of a program, in its namespace.
pub(crate) fn within(request: &Value, namespace: &str) -> Value {
    serde_json::from_str(&request.to_string().replace("$ns", namespace)).unwrap()
}

/// Pods need the account of their namespace.
fn beginning(namespace: &str) -> [Value; 2] {
    [
        json!({"do": "POST /api/v1/namespaces", "body": {"metadata": {"name": namespace}}}),
        json!({"do": format!("POST /api/v1/namespaces/{namespace}/serviceaccounts"),
            "body": {"metadata": {"name": "default"}, "automountServiceAccountToken": false}}),
    ]
}

/// The answers, and what is stored then, and whether that is what was stored before.
async fn compare(sides: &Sides, request: &Value) -> Vec<String> {
    let (method, path) = request["do"].as_str().unwrap().split_once(' ').unwrap();
    let one = async |client: &Client| -> (Answer, Answer, bool) {
        if method == "GET" {
            let answer = send(client, request).await;
            return (answer.clone(), answer, false);
        }
        let before = if method == "POST" { (0, Value::Null) } else { get(client, path).await };
        let answer = send(client, request).await;
        let created = answer.1["metadata"]["name"].as_str().filter(|_| method == "POST");
        let path = match created {
            Some(name) => format!("{}/{name}", object_path(path)),
            None => path.to_owned(),
        };
        // Nothing is stored, or it is in the answer.
        if method == "POST" && created.is_none() {
            return (answer.clone(), answer, false);
        }
        let after = get(client, &path).await;
        // Others write to collections that are in no namespace.
        if after.1.get("items").is_some() && !path.contains("/namespaces/") {
            return (answer.clone(), answer, false);
        }
        let version = |answer: &Answer| answer.1["metadata"]["resourceVersion"].clone();
        // The version of a list is that of the whole cluster.
        let changed = after.1.get("items").is_none() && version(&before) != version(&after);
        (answer, after, changed)
    };
    let (real, ours) = tokio::join!(one(&sides.real), one(&sides.ours));
    let mut places = differences(&real.0, &ours.0);
    if places.is_empty() {
        places = differences(&real.1, &ours.1).iter().map(|place| format!("stored{place}")).collect();
    }
    if places.is_empty() && real.2 != ours.2 {
        places.push(format!("{} was written: real {} ours {}", object_path(path), real.2, ours.2));
    }
    places
}

/// Leaves out steps as long as the program still fails.
pub(crate) async fn shorten(
    sides: &Sides,
    program: &[Value],
    difference: Difference,
    namespace: &str,
) -> (Vec<Value>, Difference) {
    let mut program = program[..=difference.step].to_vec();
    let mut difference = difference;
    let mut nth = 0;
    let mut attempt = 0;
    while nth < program.len() {
        let mut shorter = program.clone();
        shorter.remove(nth);
        attempt += 1;
        match run(sides, &shorter, &format!("{namespace}-{attempt}")).await.1 {
            Some(found) => {
                shorter.truncate(found.step + 1);
                (program, difference) = (shorter, found);
            }
            None => nth += 1,
        }
    }
    (program, difference)
}
