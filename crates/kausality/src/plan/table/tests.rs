use kausality_fields::{Scalar, managed::Operation};
use serde_json::json;

use super::*;
use crate::plan::{
    document,
    planned::{Conflict, Why},
};

fn path(text: &str) -> Path {
    text.split('.').map(|name| Step::Field(name.to_owned())).collect()
}

fn owner(manager: &str) -> Owner {
    Owner { manager: manager.to_owned(), operation: Operation::Apply, subresource: String::new() }
}

fn scaler() -> Owner {
    Owner { manager: "hpa".to_owned(), operation: Operation::Update, subresource: "scale".to_owned() }
}

fn field(name: &str, change: Change, before: &[Owner], after: &[Owner]) -> Field {
    let owners = Owners { before: before.to_vec(), after: after.to_vec() };
    Field { path: path(name), change, owners, conflict: None }
}

fn object(kind: &str, name: &str) -> Name {
    Name {
        file: "app.yaml".to_owned(),
        api_version: "v1".to_owned(),
        kind: kind.to_owned(),
        namespace: "shop".to_owned(),
        name: name.to_owned(),
    }
}

fn sample() -> Vec<Planned> {
    let ci = [owner("ci")];
    let known = |value: Value| Future::Known(value);
    let conflict = |forced| Some(Conflict { with: vec![scaler()], forced });
    let replicas = Change::Changed(5.into(), known(3.into()));
    let items = |names: [&str; 2]| {
        names.map(|name| Step::Key(vec![("name".into(), Scalar::Text(name.to_owned()))])).to_vec()
    };
    let mut created = Planned::foreseen(
        object("Service", "lb"),
        false,
        vec![
            field("spec.clusterIP", Change::Added(Future::KnownAfterApply), &[], &[]),
            field("spec.type", Change::Added(known("LoadBalancer".into())), &[], &ci),
        ],
    );
    created.notes.push("it is\nnew".to_owned());
    let changed = vec![
        field("data.gone", Change::Removed("x".into()), &ci, &[]),
        field("data.secret", Change::Changed("redacted:0a".into(), known("redacted:0b".into())), &ci, &ci),
        field("data.shared", Change::Kept(Some(json!({"a": [1]}))), &[scaler()], &[owner("ci"), scaler()]),
        field("data.time", Change::Changed("t".into(), Future::KnownAfterApply), &[], &[]),
        field("spec.containers", Change::Reordered(items(["a", "b"]), items(["b", "a"])), &[], &[]),
        Field { conflict: conflict(true), ..field("spec.replicas", replicas.clone(), &[scaler()], &ci) },
    ];
    let contested =
        vec![Field { conflict: conflict(false), ..field("spec.replicas", replicas, &[scaler()], &ci) }];
    let immutable = Problem {
        field: Some(path("spec.selector")),
        wanted: vec![(path("spec.selector"), Some("a".into()), Some("b".into()))],
        ..Problem::new(Why::Immutable, "cannot change")
    };
    vec![
        created,
        Planned::foreseen(object("Thing", "one"), true, changed),
        Planned::foreseen(object("Deployment", "web"), true, contested),
        Planned::refused(object("Job", "once"), vec![immutable]),
        Planned::foreseen(object("ConfigMap", "same"), true, Vec::new()),
    ]
}

#[test]
fn the_table_is_golden() {
    let mut out = anstream::StripStream::new(Vec::new());
    table(&mut out, &sample()).unwrap();
    insta::assert_snapshot!("plan-table", String::from_utf8(out.into_inner()).unwrap());
}

#[test]
fn the_document_is_golden() {
    insta::assert_json_snapshot!("plan-document", document::document("ci", &sample()));
}

#[test]
fn the_exit_code_is_that_of_the_worst() {
    let sample = sample();
    let code = |which: &[usize]| {
        let planned: Vec<Planned> = which.iter().map(|nth| sample[*nth].clone()).collect();
        Summary::of(&planned).exit_code()
    };
    assert_eq!(
        [code(&[4]), code(&[4, 0]), code(&[1]), code(&[2, 4]), code(&[0, 3]), code(&[])],
        [0, 1, 1, 1, 2, 0]
    );
}
