use super::super::set::Module;
use super::*;

static MODULE: Module = Module { folder: "m", pins: "example.com/m", stamps: &[], edits: &[] };

fn build(name: &'static str, version: &str, go: &str) -> Build {
    let go_mod = format!("go {go}\nrequire example.com/m {version}\n");
    let pin = Pin::parse("example.com/m", go_mod, String::new()).unwrap();
    Build { binary: Binary { name, module: &MODULE, package: "example.com/m" }, pin }
}

fn recipe(builds: Vec<Build>) -> Recipe {
    Recipe { links: Vec::new(), builds, copies: Vec::new(), steps: Vec::new() }
}

#[test]
fn the_newest_go_that_a_module_asks_for_is_needed() {
    for [a, b, c] in
        [["1.9.0", "1.8.0", "1.26.0"], ["1.26.0", "1.9.0", "1.9.0"], ["1.9.0", "1.26.0", "1.9.0"]]
    {
        let recipe = recipe(vec![build("a", "v1.0.0", a), build("b", "v1.0.0", b), build("c", "v1.0.0", c)]);
        assert_eq!(recipe.go(), "1.26.0");
    }
}

#[test]
fn the_first_binary_gives_the_version() {
    let recipe = recipe(vec![build("a", "v1.2.3", "1.26.0"), build("b", "v4.5.6", "1.26.0")]);
    assert_eq!(recipe.version().unwrap().as_str(), "v1.2.3");
}

#[test]
fn a_folder_holds_links_binaries_copies_and_what_steps_make() {
    let mut recipe = recipe(vec![build("binary", "v1.0.0", "1.26.0")]);
    recipe.links.push(Link { name: "link", target: "/elsewhere".into() });
    let what = Copied { module: &MODULE, from: "manifests/crds", to: "crds" };
    recipe.copies.push(PinnedCopy { what, pin: recipe.builds[0].pin.clone() });
    let step = Step { name: "step", revision: 1, inputs: &[], outputs: &["a", "b"], run: |_| Ok(()) };
    recipe.steps.push(Work { step, inputs: Vec::new() });
    assert_eq!(recipe.files().collect::<Vec<_>>(), ["link", "binary", "crds", "a", "b"]);
}

#[test]
fn a_step_whose_input_is_missing_is_an_error_that_names_it() {
    static SET: Set = Set {
        name: "s",
        binaries: &[],
        copies: &[],
        steps: &[Step { name: "step", revision: 1, inputs: &["no/such"], outputs: &[], run: |_| Ok(()) }],
    };
    let error = Recipe::read(&SET, Path::new("/nonexistent")).unwrap_err();
    assert_eq!(error.to_string(), "reading /nonexistent/no/such");
}
