use std::path::Path;

use super::super::recipe::Build;
use super::*;

fn pins() -> Pins {
    Pins::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../control-plane")).unwrap()
}

fn key(recipe: &Recipe) -> Key {
    Key::new(recipe, &pins(), "linux", "x86_64")
}

#[test]
fn a_name_says_the_platform_and_the_go() {
    let recipe = Recipe::new(None, &pins());
    let name = key(&recipe).with_go("go1.26.8");
    let (print, rest) = name.split_at(16);
    assert!(print.bytes().all(|byte| byte.is_ascii_hexdigit()), "{name}");
    assert_eq!(rest, "-linux-x86_64-go1.26.8");
}

#[test]
fn a_strange_go_still_makes_one_folder_name() {
    let name = key(&Recipe::new(None, &pins())).with_go("devel go1.28-a/b X:c");
    assert!(name.ends_with("-devel_go1.28_a_b_X_c"), "{name}");
}

#[test]
fn the_same_recipe_has_the_same_key() {
    assert_eq!(key(&Recipe::new(None, &pins())), key(&Recipe::new(None, &pins())));
}

#[test]
fn all_that_changes_a_binary_changes_the_key() {
    let pins = pins();
    let recipe = Recipe::new(None, &pins);
    let mut keys = vec![key(&recipe)];
    let mut other = |recipe: &Recipe, os, arch| {
        let key = Key::new(recipe, &pins, os, arch);
        assert!(!keys.contains(&key), "{key:?}");
        keys.push(key);
    };

    other(&recipe, "macos", "x86_64");
    other(&recipe, "linux", "aarch64");
    other(&Recipe::new(Some(Path::new("/assets")), &pins), "linux", "x86_64");
    other(&Recipe::new(Some(Path::new("/others")), &pins), "linux", "x86_64");
    // Another version changes the flags, even where the files were the same.
    let mut moved = recipe.clone();
    let build = moved.builds[0].clone();
    moved.builds[0] = Build { version: super::super::pin::Version::parse("v1.99.0").unwrap(), ..build };
    other(&moved, "linux", "x86_64");
}

#[test]
fn a_changed_checksum_changes_the_key() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../control-plane");
    let copy = tempfile::tempdir().unwrap();
    for module in ["kubernetes", "etcd", "helm"] {
        std::fs::create_dir(copy.path().join(module)).unwrap();
        for file in ["go.mod", "go.sum"] {
            std::fs::copy(root.join(module).join(file), copy.path().join(module).join(file)).unwrap();
        }
    }
    let of_copy = || {
        let pins = Pins::read(copy.path()).unwrap();
        Key::new(&Recipe::new(None, &pins), &pins, "linux", "x86_64")
    };
    assert_eq!(of_copy(), key(&Recipe::new(None, &pins())));
    for module in ["kubernetes", "etcd", "helm"] {
        let before = of_copy();
        let file = copy.path().join(module).join("go.sum");
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::write(&file, text.replacen("h1:", "h1:x", 1)).unwrap();
        assert_ne!(of_copy(), before, "{module}");
    }
}

#[test]
fn a_key_knows_its_folders() {
    let key = key(&Recipe::new(None, &pins()));
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
