use super::{Claim, Convert, Filter, Force, Managers, NotConverted, OwnershipError, Rules, Typed};
use crate::path::{Path, Step};
use crate::schema::{Schema, TypeRef};
use crate::set::FieldSet;
use crate::typed::Type;
use crate::typed::sample::{OBJECT, make_atomic, schema};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// An object that several managers work on. Only its spec is spoken of.
struct Scene {
    schema: Schema,
    of: TypeRef,
    rules: Rules,
    live: Value,
    managers: Managers<&'static str>,
}

impl Scene {
    fn new() -> Self {
        let of = TypeRef::Named(OBJECT.to_owned(), None);
        Self {
            schema: schema(),
            of,
            rules: Rules::new(),
            live: json!({"spec": {}}),
            managers: Managers::new(),
        }
    }

    fn typed<'a>(&'a self, value: &'a Value) -> Typed<'a, 'a> {
        Typed::new(value, Type::new(&self.schema, &self.of))
    }

    fn try_apply(&mut self, manager: &'static str, spec: Value, force: &Force) -> Result<bool, String> {
        let config = json!({ "spec": spec });
        let (live, config) = (self.typed(&self.live), self.typed(&config));
        let done = self.rules.apply(&live, &config, "v1", self.managers.clone(), &manager, force);
        let done = done.map_err(|error| error.to_string())?;
        let changed = done.object.is_some();
        self.live = done.object.unwrap_or_else(|| self.live.clone());
        self.managers = done.managers;
        Ok(changed)
    }

    #[track_caller]
    fn apply(&mut self, manager: &'static str, spec: Value) -> &mut Self {
        self.try_apply(manager, spec, &Force::No).unwrap();
        self
    }

    fn update(&mut self, manager: &'static str, spec: Value) -> &mut Self {
        let new = json!({ "spec": spec });
        let managers = self.managers.clone();
        self.managers =
            self.rules.update(&self.typed(&self.live), &self.typed(&new), "v1", managers, &manager).unwrap();
        self.live = new;
        self
    }

    #[track_caller]
    fn check(&mut self, spec: Value, managers: &[(&str, &[&str])]) -> &mut Self {
        assert_eq!(self.live["spec"], spec);
        let paths = |claim: &Claim| -> Vec<String> {
            claim.fields.iter().map(|path| path.to_string().replacen("spec.", "", 1)).collect()
        };
        let found: Vec<_> = self.managers.iter().map(|(name, claim)| (*name, paths(claim))).collect();
        let owned = |paths: &[&str]| paths.iter().map(|path| (*path).to_owned()).collect::<Vec<_>>();
        assert_eq!(found, managers.iter().map(|(name, paths)| (*name, owned(paths))).collect::<Vec<_>>());
        self
    }
}

fn paths(paths: &[&[&str]]) -> FieldSet {
    let path = |names: &&[&str]| names.iter().map(|name| Step::Field((*name).to_owned())).collect::<Path>();
    paths.iter().map(path).collect()
}

#[test]
fn who_applies_owns_what_it_applied() {
    let mut scene = Scene::new();
    scene.apply("a", json!({"replicas": 1})).check(json!({"replicas": 1}), &[("a", &["replicas"])]);
    assert!(scene.managers["a"].applied);
}

#[test]
fn two_may_apply_the_same() {
    Scene::new()
        .apply("a", json!({"replicas": 1}))
        .apply("b", json!({"replicas": 1}))
        .check(json!({"replicas": 1}), &[("a", &["replicas"]), ("b", &["replicas"])]);
}

#[test]
fn to_change_what_others_own_is_a_conflict() {
    let mut scene = Scene::new();
    scene.apply("a", json!({"replicas": 1, "options": {"a": "x"}})).apply("b", json!({"replicas": 1}));
    let other = json!({"replicas": 2, "options": {"a": "y"}});
    let conflicts =
        "conflict with a: spec.options.a\nconflict with a: spec.replicas\nconflict with b: spec.replicas";
    assert_eq!(scene.try_apply("c", other.clone(), &Force::No).unwrap_err(), conflicts);
    // Nothing has happened.
    scene.check(
        json!({"replicas": 1, "options": {"a": "x"}}),
        &[("a", &["options.a", "replicas"]), ("b", &["replicas"])],
    );
}

#[test]
fn force_takes_what_others_own() {
    let mut scene = Scene::new();
    scene.apply("a", json!({"replicas": 1, "options": {"a": "x"}})).apply("b", json!({"replicas": 1}));
    scene.try_apply("c", json!({"replicas": 2}), &Force::Yes).unwrap();
    // Who owns nothing any more is gone.
    scene
        .check(json!({"replicas": 2, "options": {"a": "x"}}), &[("a", &["options.a"]), ("c", &["replicas"])]);
}

#[test]
fn force_may_be_bound_to_paths() {
    let mut scene = Scene::new();
    scene.apply("a", json!({"replicas": 1, "options": {"a": "x"}}));
    let other = json!({"replicas": 2, "options": {"a": "y"}});
    let force = Force::Paths(paths(&[&["spec", "replicas"]]));
    let refused = scene.try_apply("b", other.clone(), &force).unwrap_err();
    assert_eq!(refused, "conflict with a: spec.options.a");
    let force = Force::Paths(paths(&[&["spec", "replicas"], &["spec", "options"]]));
    scene.try_apply("b", other.clone(), &force).unwrap();
    scene.check(other, &[("b", &["options.a", "replicas"])]);
}

#[test]
fn what_is_not_applied_any_more_is_removed() {
    Scene::new()
        .apply("a", json!({"replicas": 1, "options": {"a": "x", "b": "y"}, "config": {"k": {"l": 1}}}))
        .apply("a", json!({"options": {"a": "x"}}))
        .check(json!({"options": {"a": "x"}}), &[("a", &["options.a"])])
        .apply("a", json!({"replicas": 1}))
        .check(json!({"replicas": 1}), &[("a", &["replicas"])]);
}

#[test]
fn what_others_own_is_not_removed() {
    Scene::new()
        .apply("a", json!({"replicas": 1, "options": {"a": "x", "b": "y"}}))
        .apply("b", json!({"options": {"b": "y"}}))
        .apply("a", json!({"replicas": 1}))
        .check(json!({"replicas": 1, "options": {"b": "y"}}), &[("a", &["replicas"]), ("b", &["options.b"])]);
}

#[test]
fn an_item_goes_with_those_who_own_it_as_such() {
    let app = json!({"name": "app", "image": "x"});
    let more = json!({"name": "app", "image": "x", "args": ["1"]});
    let mut scene = Scene::new();
    scene.apply("a", json!({"containers": [app]})).update("b", json!({"containers": [more]}));
    // The updater owns the arguments only, the other applier the item too.
    scene
        .apply("a", json!({"replicas": 1}))
        .check(json!({"replicas": 1, "containers": null}), &[("a", &["replicas"])]);

    let mut scene = Scene::new();
    scene
        .apply("a", json!({"containers": [app]}))
        .apply("b", json!({"containers": [{"name": "app", "args": ["1"]}]}));
    scene.apply("a", json!({"replicas": 1})).check(
        json!({"replicas": 1, "containers": [{"name": "app", "args": ["1"]}]}),
        &[
            ("a", &["replicas"]),
            ("b", &["containers[name=app]", "containers[name=app].args", "containers[name=app].name"]),
        ],
    );
}

#[test]
fn an_item_that_nobody_owns_stays_while_its_list_does() {
    let mut scene = Scene::new();
    scene.apply("a", json!({"numbers": [1, 2]}));
    scene.live = json!({"spec": {"numbers": [9, 1, 2]}});
    scene.apply("a", json!({"numbers": [1]})).check(json!({"numbers": [9, 1]}), &[("a", &["numbers[=1]"])]);
    scene.apply("a", json!({"replicas": 1})).check(json!({"replicas": 1}), &[("a", &["replicas"])]);
}

#[test]
fn an_item_is_removed_from_a_set() {
    Scene::new()
        .apply("a", json!({"numbers": [1, 2, 3]}))
        .apply("b", json!({"numbers": [3]}))
        .apply("a", json!({"numbers": [1]}))
        .check(json!({"numbers": [1, 3]}), &[("a", &["numbers[=1]"]), ("b", &["numbers[=3]"])]);
}

#[test]
fn a_label_with_dots_is_removed_from_a_map() {
    let mut scene = Scene::new();
    let apply = |scene: &mut Scene, labels: Value| {
        let config = json!({"metadata": {"labels": labels}});
        let (live, config) = (scene.typed(&scene.live), scene.typed(&config));
        let managers = scene.managers.clone();
        let done = scene.rules.apply(&live, &config, "v1", managers, &"a", &Force::No).unwrap();
        (scene.live, scene.managers) = (done.object.unwrap(), done.managers);
    };
    apply(&mut scene, json!({"app.kubernetes.io/name": "x", "app": "y"}));
    apply(&mut scene, json!({"app": "y"}));
    assert_eq!(scene.live["metadata"], json!({"labels": {"app": "y"}}));
    assert_eq!(scene.managers["a"].fields.to_string(), "metadata.labels.app");
}

#[test]
fn ports_53_of_both_protocols_are_two() {
    Scene::new()
        .apply("a", json!({"ports": [{"port": 53}, {"port": 53, "protocol": "UDP"}]}))
        .apply("a", json!({"ports": [{"port": 53, "protocol": "TCP"}]}))
        .check(
            json!({"ports": [{"port": 53, "protocol": "TCP"}]}),
            &[(
                "a",
                &[
                    "ports[port=53,protocol=TCP]",
                    "ports[port=53,protocol=TCP].port",
                    "ports[port=53,protocol=TCP].protocol",
                ],
            )],
        );
}

#[test]
fn a_foreign_container_that_is_inserted_first_changes_nobody() {
    let app = json!({"name": "app", "image": "x"});
    Scene::new()
        .apply("a", json!({"containers": [app]}))
        .update("injector", json!({"containers": [{"name": "proxy"}, app]}))
        .apply("a", json!({"containers": [app]}))
        .check(
            json!({"containers": [{"name": "proxy"}, app]}),
            &[
                ("a", &["containers[name=app]", "containers[name=app].image", "containers[name=app].name"]),
                ("injector", &["containers[name=proxy]", "containers[name=proxy].name"]),
            ],
        );
}

#[test]
fn what_is_atomic_changes_hands_as_a_whole() {
    let mut scene = Scene::new();
    scene.apply("a", json!({"selector": {"a": "b"}}));
    let refused = scene.try_apply("b", json!({"selector": {"a": "b", "c": "d"}}), &Force::No).unwrap_err();
    assert_eq!(refused, "conflict with a: spec.selector");
    scene
        .update("b", json!({"selector": {"a": "b", "c": "d"}}))
        .check(json!({"selector": {"a": "b", "c": "d"}}), &[("b", &["selector"])]);
}

#[test]
fn without_a_schema_lists_are_atomic_and_objects_are_not() {
    Scene::new()
        .apply("a", json!({"config": {"list": [1], "x": 1}}))
        .update("b", json!({"config": {"list": [1, 2], "x": 1, "y": 2}}))
        .check(
            json!({"config": {"list": [1, 2], "x": 1, "y": 2}}),
            &[("a", &["config.x"]), ("b", &["config.list", "config.y"])],
        );
}

#[test]
fn null_and_empty_objects_have_an_owner() {
    Scene::new()
        .apply("a", json!({"replicas": null, "options": {}}))
        .check(json!({"replicas": null, "options": {}}), &[("a", &["options", "replicas"])])
        .apply("a", json!({"options": {}}))
        .check(json!({"options": {}}), &[("a", &["options"])]);
}

#[test]
fn an_update_takes_what_it_changes_and_no_more() {
    let mut scene = Scene::new();
    scene
        .apply("a", json!({"replicas": 1, "options": {"a": "x"}}))
        .update("b", json!({"replicas": 2, "options": {"a": "x", "b": "y"}}))
        .check(
            json!({"replicas": 2, "options": {"a": "x", "b": "y"}}),
            &[("a", &["options.a"]), ("b", &["options.b", "replicas"])],
        );
    assert!(!scene.managers["b"].applied);
}

#[test]
fn an_update_takes_from_all_what_it_removes() {
    Scene::new()
        .apply("a", json!({"replicas": 1}))
        .apply("b", json!({"replicas": 1, "options": {"a": "x"}}))
        .update("c", json!({"options": {"a": "x"}}))
        .check(json!({"options": {"a": "x"}}), &[("b", &["options.a"])]);
}

#[test]
fn an_update_lets_go_of_what_it_removes() {
    Scene::new()
        .update("a", json!({"replicas": 1, "numbers": [1, 2]}))
        .update("a", json!({"replicas": 1, "numbers": [2]}))
        .check(json!({"replicas": 1, "numbers": [2]}), &[("a", &["numbers", "numbers[=2]", "replicas"])])
        .update("a", json!({}))
        .check(json!({}), &[]);
}

#[test]
fn an_update_that_changes_nothing_owns_nothing() {
    Scene::new()
        .apply("a", json!({"replicas": 1}))
        .update("b", json!({"replicas": 1.0}))
        .check(json!({"replicas": 1.0}), &[("a", &["replicas"])]);
}

#[test]
fn duplicates_are_owned_together_until_they_are_one() {
    let item = "ports[port=1,protocol=TCP]";
    Scene::new()
        .update("a", json!({"ports": [{"port": 1, "name": "x"}, {"port": 1, "name": "y"}]}))
        .check(
            json!({"ports": [{"port": 1, "name": "x"}, {"port": 1, "name": "y"}]}),
            &[("a", &["ports", item])],
        )
        .update("b", json!({"ports": [{"port": 1, "name": "x"}]}))
        .check(
            json!({"ports": [{"port": 1, "name": "x"}]}),
            &[("a", &["ports"]), ("b", &[item, &format!("{item}.name"), &format!("{item}.port")])],
        );
}

#[test]
fn ignored_fields_have_no_owner() {
    let mut scene = Scene::new();
    let filter = Filter::Except(paths(&[&["spec", "options"]]));
    scene.rules.ignored = BTreeMap::from([("v1".to_owned(), filter)]);
    scene
        .apply("a", json!({"replicas": 1, "options": {"a": "x"}}))
        .update("b", json!({"replicas": 1, "options": {"a": "y"}, "numbers": [1]}))
        .check(
            json!({"replicas": 1, "options": {"a": "y"}, "numbers": [1]}),
            &[("a", &["replicas"]), ("b", &["numbers", "numbers[=1]"])],
        )
        // Nor is it a conflict to change them.
        .apply("c", json!({"options": {"a": "z"}}))
        .check(
            json!({"replicas": 1, "options": {"a": "z"}, "numbers": [1]}),
            &[("a", &["replicas"]), ("b", &["numbers", "numbers[=1]"])],
        );
}

/// As with the status of an object: a request that cannot write it takes it from nobody.
#[test]
fn ignored_fields_are_not_taken_from_who_owns_them() {
    let mut scene = Scene::new();
    scene
        .apply("a", json!({"options": {"a": "x"}}))
        .update("b", json!({"options": {"a": "x"}, "replicas": 1}));
    let filter = Filter::Except(paths(&[&["spec", "options"]]));
    scene.rules.ignored = BTreeMap::from([("v1".to_owned(), filter)]);
    scene
        .update("b", json!({"options": {"a": "y"}, "replicas": 2}))
        .check(json!({"options": {"a": "y"}, "replicas": 2}), &[("a", &["options.a"]), ("b", &["replicas"])])
        // Its own claim is of what it may own.
        .update("a", json!({"options": {"a": "y"}, "replicas": 3}))
        .check(json!({"options": {"a": "y"}, "replicas": 3}), &[("a", &["replicas"])]);
}

#[test]
fn only_fields_of_a_pattern_may_have_an_owner() {
    let step = |name: &str| Some(Step::Field(name.to_owned()));
    let pattern = vec![step("spec"), step("containers"), None, step("image")];
    let set = FieldSet::from_fields_v1(
        r#"{"f:spec":{".":{},"f:containers":{"k:{\"name\":\"a\"}":{".":{},"f:args":{},"f:image":{}}},"f:replicas":{}},"f:status":{}}"#,
    );
    assert_eq!(
        Filter::Only(vec![pattern]).of(&set.unwrap()).to_fields_v1(),
        r#"{"f:spec":{".":{},"f:containers":{"k:{\"name\":\"a\"}":{".":{},"f:image":{}}}}}"#
    );
}

#[test]
fn an_apply_that_changes_nothing_says_so() {
    let mut scene = Scene::new();
    scene.apply("a", json!({"replicas": 1}));
    assert_eq!(scene.try_apply("b", json!({"replicas": 1}), &Force::No), Ok(false));
    scene.rules.return_unchanged = true;
    assert_eq!(scene.try_apply("b", json!({"replicas": 1}), &Force::No), Ok(true));
}

#[test]
fn who_owned_parts_of_what_became_atomic_owns_all_of_it() {
    let mut scene = Scene::new();
    scene.apply("a", json!({"options": {"a": "x"}, "numbers": [1]}));
    make_atomic(&mut scene.schema, ["spec", "options"]);
    make_atomic(&mut scene.schema, ["spec", "numbers"]);
    scene.update("b", json!({"options": {"a": "x"}, "numbers": [1], "replicas": 1})).check(
        json!({"options": {"a": "x"}, "numbers": [1], "replicas": 1}),
        &[("a", &["numbers", "options"]), ("b", &["replicas"])],
    );
}

/// Knows only one version, and cannot convert another.
struct Only(&'static str, &'static str);

impl<'s> Convert<'s> for Only {
    fn convert<'v>(&self, object: &Typed<'s, 'v>, version: &str) -> Result<Typed<'s, 'v>, NotConverted> {
        match version {
            version if version == self.0 => Ok(object.clone()),
            version if version == self.1 => Err(NotConverted::Failed("no".to_owned())),
            _ => Err(NotConverted::MissingVersion),
        }
    }
}

#[test]
fn claims_of_a_version_that_is_gone_are_dropped() {
    let mut scene = Scene::new();
    scene.apply("a", json!({"replicas": 1}));
    let rules = Rules { versions: Only("v2", ""), ignored: BTreeMap::new(), return_unchanged: false };
    let config = json!({"spec": {"replicas": 2}});
    let (live, config) = (scene.typed(&scene.live), scene.typed(&config));
    let done = rules.apply(&live, &config, "v2", scene.managers.clone(), &"b", &Force::No).unwrap();
    assert_eq!(done.managers.into_keys().collect::<Vec<_>>(), ["b"]);

    let rules = Rules { versions: Only("v2", "v1"), ignored: BTreeMap::new(), return_unchanged: false };
    let failed = rules.apply(&live, &config, "v2", scene.managers.clone(), &"b", &Force::No);
    assert!(matches!(failed, Err(OwnershipError::Conversion { version, .. }) if version == "v1"));
}
