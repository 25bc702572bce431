use serde_json::json;

use super::{together::Done, *};
use crate::ledger::fixture::{garden, parent};

#[test]
fn only_what_differs_is_written() {
    let live = garden(&json!({"kausality.io/freeze": "true", "kausality.io/mode": "log"}));
    let mut wanted = live.clone();
    assert!(differences(&live, &wanted).is_empty());
    wanted.annotate("kausality.io/freeze", None);
    wanted.annotate("kausality.io/approvals", Some("[]"));
    let expected = [
        ("kausality.io/approvals".to_owned(), Some("[]".to_owned())),
        ("kausality.io/freeze".to_owned(), None),
    ];
    assert_eq!(differences(&live, &wanted), expected.into());
}

#[test]
fn what_the_cluster_puts_back_is_noticed() {
    let name = ParentName {
        api_version: "garden.io/v1".into(),
        kind: "Garden".into(),
        namespace: "park".into(),
        name: "south".into(),
    };
    let written = r#"[{"apiVersion":"v1","kind":"Bed","name":"a","generation":5,"mode":"once"}]"#;
    let restamped = r#"[{"apiVersion":"v1","kind":"Bed","name":"a","generation":6,"mode":"once"}]"#;
    let edits: Edits = [("kausality.io/approvals".to_owned(), Some(written.to_owned()))].into();
    let stored = |text: &str| garden(&json!({"kausality.io/approvals": text}));
    assert!(kept(&name, &edits, &stored(written)).is_ok());
    assert!(kept(&name, &edits, &stored(restamped)).is_ok(), "the generation has moved on");
    assert!(kept(&name, &edits, &stored("[]")).is_err());
    assert!(kept(&name, &edits, &garden(&json!({}))).is_err());
    let removal: Edits = [("kausality.io/freeze".to_owned(), None)].into();
    assert!(kept(&name, &removal, &garden(&json!({}))).is_ok());
    assert!(kept(&name, &removal, &garden(&json!({"kausality.io/freeze": "true"}))).is_err());
}

/// A deed that is never refused for what it does itself.
struct Nod {
    needs_open: bool,
}

impl Deed for Nod {
    fn verb(&self) -> &'static str {
        "nod at"
    }

    fn needs_open(&self) -> bool {
        self.needs_open
    }

    fn apply(&self, _: &mut Summary, _: &crate::ledger::Entry, _: jiff::Timestamp) -> Result<Done, String> {
        Ok(Done::new("nodded at"))
    }
}

#[test]
fn a_drift_must_still_be_about_its_parent_as_it_is() {
    let entry = crate::ledger::fixture::drift(&json!({}));
    let nod = |parent: &mut Summary, needs_open: bool| {
        together::apply(&Nod { needs_open }, parent, &[&entry]).remove(0)
    };
    assert!(nod(&mut garden(&json!({})), true).is_ok());
    let mut other = garden(&json!({}));
    other.uid = "another".into();
    assert!(nod(&mut other, false).unwrap_err().contains("another Garden park/south has its name"));
    let mut changed = parent(&json!({}), &json!({"flowers": "tulips"}));
    assert!(nod(&mut changed, true).unwrap_err().contains("this drift has expired"));
    assert!(nod(&mut changed, false).is_ok(), "entries can be taken back all the same");
    let mut deleting = garden(&json!({}));
    deleting.deleting = true;
    assert!(nod(&mut deleting, true).unwrap_err().contains("is being deleted"));
}
