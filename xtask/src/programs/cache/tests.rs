use super::super::recipe::Link;
use super::super::tests::Repository;
use super::super::toolchain::Reason;
use super::*;

/// A cache in a folder of its own, and a recipe with its key.
struct World {
    cache: Cache,
    recipe: Recipe,
    key: Key,
    _home: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let recipe = Repository::new().recipe();
        let key = Key::new(&recipe, "linux", "x86_64");
        let cache = Cache::at(None, Some(home.path().into()), "programs").unwrap();
        Self { cache, recipe, key, _home: home }
    }

    /// Puts a folder of programs into the cache, as if this Go had built it.
    fn put(&self, go: &str) -> PathBuf {
        let folder = self.cache.0.join(self.key.with_go(go));
        fs::create_dir_all(&folder).unwrap();
        for file in self.recipe.files().map(|file| folder.join(file)) {
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, "").unwrap();
        }
        folder
    }

    fn find(&self, toolchain: &Toolchain) -> Option<PathBuf> {
        self.cache.find(&self.key, toolchain, &self.recipe).unwrap()
    }
}

fn go(version: &str) -> Toolchain {
    Toolchain::Usable { version: version.to_owned() }
}

fn no_go() -> Toolchain {
    Toolchain::Unusable(Reason::Missing)
}

#[test]
fn the_cache_is_where_xdg_says_else_below_home() {
    let at = |xdg: Option<&str>, home: Option<&str>| {
        let (xdg, home) = (xdg.map(OsString::from), home.map(OsString::from));
        Cache::at(xdg, home, "control-plane").map(|cache| cache.0).ok()
    };
    assert_eq!(at(Some("/xdg"), Some("/home")), Some("/xdg/kausality/control-plane".into()));
    for ignored in [None, Some(""), Some("relative")] {
        assert_eq!(at(ignored, Some("/home")), Some("/home/.cache/kausality/control-plane".into()));
    }
    assert_eq!(at(None, None), None);
}

#[test]
fn an_empty_cache_has_nothing() {
    let world = World::new();
    assert_eq!(world.find(&go("go1.26.8")), None);
    assert_eq!(world.find(&no_go()), None);
}

#[test]
fn the_folder_of_this_go_is_found_and_no_other() {
    let world = World::new();
    let folder = world.put("go1.26.8");
    assert_eq!(world.find(&go("go1.26.8")), Some(folder));
    assert_eq!(world.find(&go("go1.26.9")), None);
}

#[test]
fn without_go_the_folder_of_any_go_will_do() {
    let world = World::new();
    let folder = world.put("go1.26.8");
    assert_eq!(world.find(&no_go()), Some(folder));
}

#[test]
fn a_folder_that_lacks_a_file_does_not_count() {
    let world = World::new();
    for file in ["one", "made/greeting"] {
        let folder = world.put("go1.26.8");
        fs::remove_file(folder.join(file)).unwrap();
        assert_eq!(world.find(&go("go1.26.8")), None, "{file}");
        assert_eq!(world.find(&no_go()), None, "{file}");
    }
}

#[test]
fn whoever_waits_for_the_lock_finds_what_the_other_run_made() {
    let world = World::new();
    fs::create_dir_all(&world.cache.0).unwrap();
    let name = world.key.with_go("go1.26.8");
    let held = world.cache.lock(&name, Progress::Log).unwrap();
    std::thread::scope(|scope| {
        // Building would fail: there are no modules in that folder.
        let waiting = scope.spawn(|| world.cache.fill(&name, &world.recipe, Path::new("/nonexistent")));
        let folder = world.put("go1.26.8");
        drop(held);
        assert_eq!(waiting.join().unwrap().unwrap(), folder);
    });
}

#[test]
fn what_fails_leaves_no_folder_and_the_next_run_clears_up() {
    let world = World::new();
    let name = world.key.with_go("go1.26.8");
    let stale = world.cache.0.join(format!(".{name}.partial-0"));
    fs::create_dir_all(&stale).unwrap();
    world.cache.fill(&name, &world.recipe, Path::new("/nonexistent")).unwrap_err();
    assert!(!stale.exists());
    assert!(!world.cache.0.join(&name).exists());
}

#[test]
fn links_and_steps_fill_a_folder() {
    let repository = Repository::new();
    let mut recipe = repository.recipe();
    recipe.builds.clear();
    recipe.copies.clear();
    recipe.links.push(Link { name: "linked", target: repository.path().join("modules/greeting") });
    let world = World { recipe, ..World::new() };
    let folder = world.cache.fill("name", &world.recipe, repository.path()).unwrap();
    for file in ["linked", "made/greeting"] {
        assert_eq!(fs::read_to_string(folder.join(file)).unwrap(), "hello\n", "{file}");
    }
}

#[test]
fn a_step_that_fails_says_which_and_leaves_no_folder() {
    let repository = Repository::new();
    let mut recipe = repository.recipe();
    recipe.builds.clear();
    recipe.copies.clear();
    let world = World { recipe, ..World::new() };
    let error = world.cache.fill("name", &world.recipe, Path::new("/nonexistent")).unwrap_err();
    assert!(format!("{error:#}").starts_with("making greeting: "), "{error:#}");
    assert!(!world.cache.0.join("name").exists());
}
