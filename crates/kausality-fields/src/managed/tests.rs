use super::{
    Entry, Identity, Operation, Request, Served, Server, ServerError, Wire, decode, decode_value, encode,
};
use crate::ownership::{Filter, Force, Rules};
use crate::path::{Path, Step};
use crate::schema::{Schema, TypeRef};
use crate::set::FieldSet;
use crate::typed::Type;
use crate::typed::sample::{OBJECT, schema};
use serde_json::{Value, json};

const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// An API server with one object, whose clock goes one second further with each request.
struct Cluster {
    schema: Schema,
    of: TypeRef,
    live: Option<Value>,
    seconds: usize,
}

impl Cluster {
    fn new() -> Self {
        let of = TypeRef::Named(OBJECT.to_owned(), None);
        Self { schema: schema(), of, live: None, seconds: 0 }
    }

    fn run(
        &mut self,
        manager: &str,
        subresource: &str,
        work: impl Fn(&Server<'_>, Option<&Value>, &Request<'_>) -> Result<Served, ServerError>,
    ) -> Result<(), ServerError> {
        let others: &[&str] = if subresource == "status" { &["spec", "metadata"] } else { &["status"] };
        let path = |name: &&str| Path::from_iter([Step::Field((*name).to_owned())]);
        let mut rules = Rules::new();
        rules.ignored.insert("v1".to_owned(), Filter::Except(others.iter().map(path).collect()));
        let empty = json!({"apiVersion": "v1", "kind": "Thing"});
        let server = Server { of: Type::new(&self.schema, &self.of), rules, empty };
        let time = format!("2026-01-01T00:00:{:02}Z", self.seconds);
        let request = Request { manager, api_version: "v1", subresource, time: &time };
        let mut served = work(&server, self.live.as_ref(), &request)?;
        served.object["metadata"]["uid"] = json!("u");
        self.live = Some(served.to_value());
        self.seconds += 1;
        Ok(())
    }

    fn try_apply(&mut self, manager: &str, spec: Value, force: &Force) -> Result<(), ServerError> {
        let config = json!({"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "x"}, "spec": spec});
        self.run(manager, "", |server, live, request| server.apply(live, &config, request, force))
    }

    #[track_caller]
    fn apply(&mut self, manager: &str, spec: Value) -> &mut Self {
        self.try_apply(manager, spec, &Force::No).unwrap();
        self
    }

    /// Writes the object with this done to it.
    #[track_caller]
    fn update(&mut self, manager: &str, subresource: &str, change: impl Fn(&mut Value)) -> &mut Self {
        let mut new = self.live.clone().unwrap_or_else(
            || json!({"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "x"}, "spec": {}}),
        );
        change(&mut new);
        self.run(manager, subresource, |server, live, request| server.update(live, &new, request)).unwrap();
        self
    }

    fn entries(&self) -> Vec<Entry> {
        let entries = self.live.as_ref().and_then(|live| live.pointer("/metadata/managedFields"));
        entries.map(|entries| decode_value(entries).unwrap()).unwrap_or_default()
    }

    /// Manager, operation, subresource, second and fields of each entry.
    #[track_caller]
    fn check(&mut self, expected: &[&str]) -> &mut Self {
        let show = |entry: &Entry| {
            let second = entry.time.as_deref().map_or("-", |time| &time[17..19]);
            let fields: Vec<_> = entry.fields.iter().map(|path| path.to_string()).collect();
            let Entry { manager, operation, subresource, .. } = entry;
            format!("{manager} {}{subresource} {second}: {}", operation.as_str(), fields.join(" "))
        };
        assert_eq!(self.entries().iter().map(show).collect::<Vec<_>>(), expected);
        self
    }
}

fn entry(manager: &str, operation: Operation, time: Option<&str>) -> Entry {
    Entry {
        manager: manager.to_owned(),
        operation,
        api_version: "v1".to_owned(),
        time: time.map(str::to_owned),
        fields: FieldSet::from_fields_v1(r#"{"f:a<":{},"f:l":{"k:{\"n\":9}":{},"k:{\"n\":10}":{}}}"#)
            .unwrap(),
        subresource: String::new(),
    }
}

#[test]
fn entries_are_written_as_the_api_server_does() {
    let status = Entry {
        subresource: "status".to_owned(),
        ..entry("b<", Operation::Update, Some("2026-01-01T00:00:01Z"))
    };
    let fields = r#"{"f:a\u003c":{},"f:l":{"k:{\"n\":9}":{},"k:{\"n\":10}":{}}}"#;
    assert_eq!(
        encode(std::slice::from_ref(&status), Wire::BuiltIn),
        format!(
            r#"[{{"manager":"b\u003c","operation":"Update","apiVersion":"v1","time":"2026-01-01T00:00:01Z","fieldsType":"FieldsV1","fieldsV1":{fields},"subresource":"status"}}]"#
        )
    );
    let fields = r#"{"f:a\u003c":{},"f:l":{"k:{\"n\":10}":{},"k:{\"n\":9}":{}}}"#;
    assert_eq!(
        encode(std::slice::from_ref(&status), Wire::Custom),
        format!(
            r#"[{{"apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{fields},"manager":"b\u003c","operation":"Update","subresource":"status","time":"2026-01-01T00:00:01Z"}}]"#
        )
    );
    for wire in [Wire::BuiltIn, Wire::Custom] {
        assert_eq!(
            decode(&encode(std::slice::from_ref(&status), wire)).unwrap().as_slice(),
            std::slice::from_ref(&status)
        );
    }
    assert_eq!(serde_json::from_value::<Entry>(json!(status)).unwrap(), status);
}

#[test]
fn entries_are_ordered_by_operation_time_and_name() {
    let [early, late] = ["2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"].map(Some);
    let ordered = [
        entry("z", Operation::Apply, None),
        entry("y", Operation::Apply, early),
        entry("a", Operation::Apply, late),
        entry("b", Operation::Update, early),
        entry("c", Operation::Update, early),
        Entry { subresource: "status".to_owned(), ..entry("c", Operation::Update, early) },
        Entry { api_version: "v2".to_owned(), ..entry("c", Operation::Update, early) },
        entry("a", Operation::Update, late),
    ];
    let mut turned = ordered.clone();
    turned.reverse();
    super::sort(&mut turned);
    assert_eq!(turned, ordered);
}

#[test]
fn an_apply_is_the_same_entry_in_every_version() {
    let id = |operation| entry("m", operation, None).identity();
    assert_eq!(id(Operation::Apply).api_version, None);
    assert_eq!(id(Operation::Update).api_version.as_deref(), Some("v1"));
    let status = Identity { subresource: "status".to_owned(), ..id(Operation::Update) };
    assert_ne!(status, id(Operation::Update));
    assert_eq!(status.to_string(), r#""m" (Update, v1, status)"#);
    assert_eq!(
        status.text(),
        r#"{"manager":"m","operation":"Update","apiVersion":"v1","subresource":"status"}"#
    );
}

#[test]
fn entries_that_say_too_little_are_not_read() {
    let check = |entries: Value, expected: &str| {
        let error = decode_value(&entries).unwrap_err().to_string();
        assert_eq!(error, format!("the managedFields cannot be read: {expected}"));
        assert!(decode(&entries.to_string()).is_err());
    };
    let good = json!({"manager": "m", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1"});
    let with = |name: &str, value: Value| {
        let mut entry = good.clone();
        entry[name] = value;
        json!([good, entry])
    };
    assert_eq!(decode_value(&json!([good])).unwrap()[0].fields, FieldSet::new());
    check(
        with("operation", json!("Patch")),
        r#"entry 1: the operation must be Apply or Update, not "Patch""#,
    );
    check(with("apiVersion", json!("")), "entry 1: the apiVersion is missing");
    check(
        with("fieldsType", json!("FieldsV2")),
        r#"entry 1: the fieldsType must be FieldsV1, not "FieldsV2""#,
    );
    check(
        with("fieldsV1", json!({"f:spec": {"x:y": {}}})),
        r#"the set of fields cannot be read: at spec: "x:y" is of an unknown kind (known are f:, k:, v:, i:)"#,
    );
    check(json!([1]), "invalid type: integer `1`, expected struct Raw");
    assert!(decode("[{").is_err());
}

#[test]
fn what_names_an_object_has_no_owner() {
    Cluster::new()
        .apply("a", json!({"replicas": 1}))
        .check(&["a Apply 00: spec.replicas"])
        .update("b", "", |object| {
            object["metadata"]["labels"] = json!({"app.kubernetes.io/name": "x"});
            object["metadata"]["resourceVersion"] = json!("7");
        })
        .check(&[
            "a Apply 00: spec.replicas",
            r#"b Update 01: metadata.labels metadata.labels["app.kubernetes.io/name"]"#,
        ]);
}

#[test]
fn who_creates_by_an_update_owns_the_object() {
    Cluster::new()
        .update("b", "", |object| object["spec"]["replicas"] = json!(1))
        .check(&["b Update 00: spec spec.replicas"]);
}

#[test]
fn an_update_adds_to_the_entry_of_its_manager() {
    Cluster::new()
        .update("b", "", |object| object["spec"]["replicas"] = json!(1))
        .update("b", "", |object| object["spec"]["options"] = json!({"a": "x"}))
        .check(&["b Update 01: spec spec.options spec.options.a spec.replicas"])
        .update("", "", |object| object["spec"]["options"]["a"] = json!("y"))
        .check(&["b Update 01: spec spec.options spec.replicas", "unknown Update 02: spec.options.a"]);
}

#[test]
fn an_entry_keeps_its_time_if_nothing_changes() {
    Cluster::new()
        .apply("a", json!({"replicas": 1}))
        .apply("a", json!({"replicas": 1}))
        .update("b", "", |_| {})
        .check(&["a Apply 00: spec.replicas"])
        // Who only joins an owner has changed nothing, and has no time.
        .apply("c", json!({"replicas": 1}))
        .check(&["c Apply -: spec.replicas", "a Apply 00: spec.replicas"]);
}

#[test]
fn conflicts_name_the_entry() {
    let mut cluster = Cluster::new();
    cluster.apply("a", json!({"replicas": 1}));
    let refused = cluster.try_apply("b", json!({"replicas": 2}), &Force::No).unwrap_err();
    assert_eq!(refused.to_string(), r#"conflict with "a" (Apply): spec.replicas"#);
    cluster.try_apply("b", json!({"replicas": 2}), &Force::Yes).unwrap();
    cluster.check(&["b Apply 01: spec.replicas"]);
}

#[test]
fn a_subresource_has_an_entry_of_its_own_and_cannot_own_the_rest() {
    let mut cluster = Cluster::new();
    cluster
        .apply("a", json!({"replicas": 1}))
        .update("a", "status", |object| {
            object["status"] = json!({"phase": "Ready", "conditions": [{"type": "Up", "status": "True"}]});
            object["spec"]["options"] = json!({"a": "x"});
            object["metadata"]["managedFields"] = json!([{}]);
        })
        .check(&[
            "a Apply 00: spec.replicas",
            "a Updatestatus 01: status status.conditions status.conditions[type=Up] \
             status.conditions[type=Up].status status.conditions[type=Up].type status.phase",
        ])
        .update("b", "", |object| object["status"]["phase"] = json!("Gone"));
    assert_eq!(cluster.entries().len(), 2);
    assert!(cluster.entries()[1].fields.to_string().ends_with("status.phase"));
}

#[test]
fn entries_are_forgotten_when_asked_until_the_next_apply() {
    for reset in [json!([{}]), json!([])] {
        let mut cluster = Cluster::new();
        cluster
            .apply("a", json!({"replicas": 1}))
            .update("b", "", |object| object["metadata"]["managedFields"] = reset.clone())
            .check(&[])
            .update("b", "", |object| object["spec"]["replicas"] = json!(2))
            .check(&[])
            .apply("c", json!({"options": {"a": "x"}}))
            .check(&["c Apply 03: spec.options.a", "before-first-apply Update 03: spec spec.replicas"]);
    }
}

#[test]
fn a_client_may_correct_entries_but_not_lose_them() {
    let mut cluster = Cluster::new();
    cluster.apply("a", json!({"replicas": 1})).apply("b", json!({"replicas": 1}));
    let [joined, first] = &cluster.entries()[..] else { panic!() };
    let (joined, first) = (joined.clone(), first.clone());
    cluster.update("c", "", |object| object["metadata"]["managedFields"] = json!([first.clone()]));
    cluster.check(&["a Apply 00: spec.replicas"]);
    for unreadable in [Value::Null, json!([{"manager": "x"}]), json!([joined, {}])] {
        cluster.update("c", "", |object| object["metadata"]["managedFields"] = unreadable.clone());
        cluster.check(&["a Apply 00: spec.replicas"]);
    }
}

#[test]
fn the_oldest_of_too_many_updaters_are_merged() {
    let mut cluster = Cluster::new();
    for n in 0..10 {
        cluster.update(&format!("m{n}"), "", |object| object["spec"]["config"][format!("k{n}")] = json!(n));
    }
    assert_eq!(cluster.entries().len(), 10);
    cluster.apply("a", json!({"replicas": 1}));
    assert_eq!(cluster.entries().len(), 11, "appliers do not count");
    cluster.update("m10", "", |object| object["spec"]["config"]["k10"] = json!(1));
    let entries = cluster.entries();
    assert_eq!(entries.len(), 11);
    assert_eq!(entries[1].manager, "ancient-changes");
    assert_eq!(entries[1].time.as_deref(), Some("2026-01-01T00:00:01Z"));
    assert_eq!(entries[1].fields.to_string(), "spec\nspec.config\nspec.config.k0\nspec.config.k1");
}

#[test]
fn kubectl_takes_over_what_it_applied_on_the_client() {
    let applied =
        json!({"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "x"}, "spec": {"replicas": 1}});
    let create = |cluster: &mut Cluster| {
        cluster.update("kubectl-client-side-apply", "", |object| {
            object["spec"]["replicas"] = json!(1);
            object["spec"]["options"] = json!({"a": "x"});
            object["metadata"]["annotations"] = json!({LAST_APPLIED: applied.to_string()});
        });
    };
    let mut cluster = Cluster::new();
    create(&mut cluster);
    let refused = cluster.try_apply("other", json!({"replicas": 2}), &Force::No).unwrap_err();
    assert!(refused.to_string().ends_with("spec.replicas"));
    let refused =
        cluster.try_apply("kubectl", json!({"replicas": 2, "options": {"a": "y"}}), &Force::No).unwrap_err();
    assert!(refused.to_string().ends_with("spec.options.a") && !refused.to_string().contains("replicas"));
    cluster.apply("kubectl", json!({"replicas": 2}));
    let live = cluster.live.clone().unwrap();
    assert_eq!(
        live["metadata"]["annotations"][LAST_APPLIED],
        "{\"apiVersion\":\"v1\",\"kind\":\"Thing\",\"metadata\":{\"name\":\"x\"},\"spec\":{\"replicas\":2}}\n"
    );
    assert_eq!(cluster.entries()[0].fields.to_string(), "spec.replicas");
}

/// Found by comparison with an API server: null, which is no annotations, is not written, unlike an empty object.
#[test]
fn what_kubectl_applied_is_kept_without_null_annotations() {
    for (annotations, kept) in [(Value::Null, ""), (json!({}), r#""annotations":{},"#)] {
        let mut cluster = Cluster::new();
        cluster.update("kubectl-client-side-apply", "", |object| {
            object["metadata"]["annotations"] = json!({LAST_APPLIED: "{}"});
        });
        let config = json!({"apiVersion": "v1", "kind": "Thing",
            "metadata": {"name": "x", "annotations": annotations}, "spec": {"replicas": 1}});
        cluster
            .run("kubectl", "", |server, live, request| server.apply(live, &config, request, &Force::No))
            .unwrap();
        let metadata = format!(r#"{{{kept}"name":"x"}}"#);
        let text = format!(
            "{{\"apiVersion\":\"v1\",\"kind\":\"Thing\",\"metadata\":{metadata},\"spec\":{{\"replicas\":1}}}}\n"
        );
        assert_eq!(cluster.live.as_ref().unwrap()["metadata"]["annotations"][LAST_APPLIED], json!(text));
    }
}

/// What somebody changed since is not what kubectl applied.
#[test]
fn kubectl_does_not_take_over_what_changed_since() {
    let applied = json!({"apiVersion": "v1", "kind": "Thing", "spec": {"replicas": 1}});
    let mut cluster = Cluster::new();
    cluster
        .update("kubectl-client-side-apply", "", |object| {
            object["spec"]["replicas"] = json!(1);
            object["metadata"]["annotations"] = json!({LAST_APPLIED: applied.to_string()});
        })
        .update("autoscaler", "", |object| object["spec"]["replicas"] = json!(5));
    let refused = cluster.try_apply("kubectl", json!({"replicas": 2}), &Force::No).unwrap_err();
    assert_eq!(refused.to_string(), r#"conflict with "autoscaler" (Update, v1): spec.replicas"#);
}

/// The annotation that kubectl sends is replaced by what it applies, so that the object stays as it was.
#[test]
fn a_write_that_comes_to_nothing_leaves_no_trace() {
    let mut cluster = Cluster::new();
    let config = json!({
        "apiVersion": "v1", "kind": "Thing",
        "metadata": {"name": "x", "annotations": {LAST_APPLIED: "whatever"}}, "spec": {"replicas": 1},
    });
    for _ in 0..2 {
        cluster
            .run("kubectl", "", |server, live, request| server.apply(live, &config, request, &Force::No))
            .unwrap();
        assert_eq!(cluster.entries()[0].time.as_deref(), Some("2026-01-01T00:00:00Z"));
        assert_eq!(
            cluster.live.as_ref().unwrap()["metadata"]["annotations"][LAST_APPLIED],
            concat!(
                r#"{"apiVersion":"v1","kind":"Thing","metadata":{"annotations":{},"name":"x"},"spec":{"replicas":1}}"#,
                "\n"
            )
        );
    }
}

#[test]
fn what_cannot_be_applied_is_refused() {
    let mut cluster = Cluster::new();
    let mut check = |config: Value, expected: ServerError| {
        let refused =
            cluster.run("a", "", |server, live, request| server.apply(live, &config, request, &Force::No));
        assert_eq!(refused.unwrap_err(), expected);
    };
    check(json!({"apiVersion": "v2"}), ServerError::WrongVersion("v2".to_owned()));
    check(json!({}), ServerError::WrongVersion(String::new()));
    check(json!({"apiVersion": "v1", "metadata": {"managedFields": []}}), ServerError::HasManagedFields);
    let twice =
        cluster.try_apply("a", json!({"ports": [{"port": 1}, {"port": 1, "protocol": "TCP"}]}), &Force::Yes);
    assert_eq!(
        twice.unwrap_err().to_string(),
        "the object does not fit its type: spec.ports: more than one item is [port=1,protocol=TCP]"
    );
    cluster.apply("a", json!({"replicas": 1}));
    cluster.live.as_mut().unwrap()["metadata"]["managedFields"] = json!([{"manager": "x"}]);
    let unreadable = cluster.try_apply("a", json!({"replicas": 1}), &Force::Yes).unwrap_err();
    assert!(matches!(unreadable, ServerError::ManagedFields(_)));
}
