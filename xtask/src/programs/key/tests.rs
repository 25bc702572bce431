use super::super::recipe::Link;
use super::super::tests::Repository;
use super::*;
use crate::programs::{Edit, Module, Value};

/// As in the repository of these tests, with an edit.
static EDITED: Module = Module {
    folder: "modules/one",
    pins: "example.com/one",
    stamps: &[("example.com/one/version.version", Value::Version)],
    edits: &[Edit { file: "main.go", from: "0.0.0.0", to: "127.0.0.1" }],
};

fn key(repository: &Repository) -> Key {
    Key::new(&repository.recipe(), "linux", "x86_64")
}

#[test]
fn a_name_says_the_platform_and_the_go() {
    let name = key(&Repository::new()).with_go("go1.26.8");
    let (print, rest) = name.split_at(16);
    assert!(print.bytes().all(|byte| byte.is_ascii_hexdigit()), "{name}");
    assert_eq!(rest, "-linux-x86_64-go1.26.8");
}

#[test]
fn a_set_of_many_says_its_name_first() {
    let repository = Repository::new();
    let (key, named) = (key(&repository), key(&repository).named("argo-rollouts"));
    assert_eq!(named.with_go("go1.26.8"), format!("argo-rollouts-{}", key.with_go("go1.26.8")));
    assert!(named.is_of(&named.with_go("go1.26.8")) && !key.is_of(&named.with_go("go1.26.8")));
}

#[test]
fn a_strange_go_still_makes_one_folder_name() {
    let name = key(&Repository::new()).with_go("devel go1.28-a/b X:c");
    assert!(name.ends_with("-devel_go1.28_a_b_X_c"), "{name}");
}

#[test]
fn the_same_recipe_has_the_same_key_wherever_the_repository_is() {
    assert_eq!(key(&Repository::new()), key(&Repository::new()));
}

#[test]
fn all_that_changes_the_content_changes_the_key() {
    let repository = Repository::new();
    let recipe = repository.recipe();
    let mut keys = vec![key(&repository)];
    let mut other = |key: Key| {
        assert!(!keys.contains(&key), "{key:?}");
        keys.push(key);
    };

    other(Key::new(&recipe, "macos", "x86_64"));
    other(Key::new(&recipe, "linux", "aarch64"));
    for folder in ["/assets", "/others"] {
        let links = vec![Link { name: "linked", target: folder.into() }];
        other(Key::new(&recipe.clone().with_links(links), "linux", "x86_64"));
    }
    let mut again = recipe.clone();
    again.steps[0].step.revision += 1;
    other(Key::new(&again, "linux", "x86_64"));
    let mut edited = recipe.clone();
    edited.builds[0].binary.module = &EDITED;
    other(Key::new(&edited, "linux", "x86_64"));
    for (file, from, to) in [
        // Another version.
        ("modules/one/go.mod", "v1.2.3", "v1.2.4"),
        ("modules/one/go.sum", "h1:sum", "h1:other"),
        ("modules/other/go.sum", "h1:sum", "h1:other"),
        ("modules/greeting", "hello", "goodbye"),
    ] {
        repository.edit(file, from, to);
        other(Key::new(&repository.recipe(), "linux", "x86_64"));
    }
}

#[test]
fn a_key_knows_its_folders() {
    let key = key(&Repository::new());
    assert!(key.is_of(&key.with_go("go1.26.8")));
    assert!(!key.is_of("0000000000000000-linux-x86_64-go1.26.8"));
    assert!(!key.is_of(&format!(".{}.lock", key.with_go("go1.26.8"))));
}

#[test]
fn the_fingerprint_is_fnv_1a() {
    for (text, print) in
        [("", 0xcbf2_9ce4_8422_2325), ("a", 0xaf63_dc4c_8601_ec8c), ("foobar", 0x8594_4171_f739_67e8)]
    {
        assert_eq!(Fingerprint::new().bytes(text.as_bytes()).0, print, "{text:?}");
    }
}

#[test]
fn where_one_text_ends_makes_a_difference() {
    assert_ne!(Fingerprint::new().add("ab").add("c").0, Fingerprint::new().add("a").add("bc").0);
}
