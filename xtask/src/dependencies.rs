//! `cargo xtask dependencies`: licenses, sources and version requirements, as deny.toml wants them.
//!
//! The same rules as `cargo deny check bans licenses sources`, from what cargo tells about each package. cargo-deny
//! takes minutes to compile; it stays the tool for advisories (`make advisories`), and reads the same file.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::Write as _,
    process::{Command, ExitCode},
};

use anyhow::{Context as _, Result, bail, ensure};
use serde::Deserialize;
use spdx::{Expression, ParseMode};
use toml_edit::{Document, Item};

const RULES: &str = "deny.toml";

/// What deny.toml says, as far as it is checked here.
#[derive(Debug)]
struct Rules {
    licenses: Vec<String>,
    registries: Vec<String>,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Debug, Default, Deserialize)]
struct Package {
    name: String,
    version: String,
    license: Option<String>,
    /// `None` for a package of this workspace.
    source: Option<String>,
    dependencies: Vec<Dependency>,
}

#[derive(Debug, Default, Deserialize)]
struct Dependency {
    name: String,
    req: String,
    path: Option<String>,
}

/// Checks all dependencies, for every platform and with every feature.
pub(crate) fn run() -> Result<ExitCode> {
    let text = fs::read_to_string(RULES).with_context(|| format!("reading {RULES}"))?;
    let rules = Rules::parse(&text)?;
    let packages = packages()?;
    let faults = faults(&rules, &packages)?;
    if faults.is_empty() {
        writeln!(std::io::stdout(), "{} packages checked", packages.len())?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut err = std::io::stderr().lock();
    for fault in &faults {
        writeln!(err, "{fault}")?;
    }
    writeln!(err, "cargo xtask dependencies: {} fault(s), by the rules of {RULES}", faults.len())?;
    Ok(ExitCode::FAILURE)
}

fn packages() -> Result<Vec<Package>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let arguments = ["metadata", "--locked", "--all-features", "--format-version", "1"];
    let output = Command::new(cargo).args(arguments).output().context("running cargo metadata")?;
    ensure!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr).trim());
    let metadata: Metadata = serde_json::from_slice(&output.stdout).context("reading cargo metadata")?;
    Ok(metadata.packages)
}

impl Rules {
    fn parse(text: &str) -> Result<Self> {
        let document = Document::parse(text).with_context(|| format!("reading {RULES}"))?;
        let list = |section: &str, key: &str| -> Result<Vec<String>> {
            let items = document.get(section).and_then(|section| section.get(key)).and_then(Item::as_array);
            let items = items.with_context(|| format!("{RULES} has no list {key} in [{section}]"))?;
            Ok(items.iter().filter_map(|item| item.as_str()).map(str::to_owned).collect())
        };
        // What is checked here is the strict reading; a laxer file would not be heard.
        for (section, key, wanted) in [
            ("licenses", "unused-allowed-license", "deny"),
            ("bans", "wildcards", "deny"),
            ("sources", "unknown-registry", "deny"),
            ("sources", "unknown-git", "deny"),
        ] {
            let said = document.get(section).and_then(|section| section.get(key)).and_then(Item::as_str);
            ensure!(said == Some(wanted), "{RULES}: [{section}] {key} must be \"{wanted}\"");
        }
        if !list("sources", "allow-git")?.is_empty() {
            bail!("{RULES}: allow-git must be empty: dependencies come from registries");
        }
        Ok(Self { licenses: list("licenses", "allow")?, registries: list("sources", "allow-registry")? })
    }
}

/// All that is wrong, one line each.
fn faults(rules: &Rules, packages: &[Package]) -> Result<Vec<String>> {
    let mut faults = BTreeSet::new();
    let mut licenses: BTreeMap<&str, Expression> = BTreeMap::new();
    for package in packages {
        let Package { name, version, .. } = package;
        match package.license.as_deref() {
            None => drop(faults.insert(format!("{name} {version}: names no license"))),
            Some(license) => {
                let parsed = Expression::parse_mode(license, ParseMode::LAX);
                let parsed = parsed.with_context(|| format!("{name} {version}: license {license:?}"))?;
                if !allowed(&parsed, &rules.licenses) {
                    faults.insert(format!("{name} {version}: license {license} is not allowed"));
                }
                licenses.insert(license, parsed);
            }
        }
        match package.source.as_deref().map(|source| source.split_once('+').unwrap_or(("", source))) {
            None => {
                let loose = package.dependencies.iter().filter(|it| it.req == "*" && it.path.is_none());
                faults.extend(loose.map(|it| format!("{name}: takes any version of {}", it.name)));
            }
            Some(("registry", index)) if rules.registries.iter().any(|registry| registry == index) => {}
            Some((kind, place)) => {
                faults.insert(format!("{name} {version}: comes from {kind} {place}"));
            }
        }
    }
    for license in &rules.licenses {
        let others: Vec<_> = rules.licenses.iter().filter(|other| *other != license).cloned().collect();
        if licenses.values().all(|expression| allowed(expression, &others)) {
            faults.insert(format!("{RULES}: no package needs the license {license}"));
        }
    }
    Ok(faults.into_iter().collect())
}

/// Whether the licenses on the list are enough for a package.
fn allowed(expression: &Expression, licenses: &[String]) -> bool {
    expression.evaluate(|requirement| {
        // With an exception (`WITH …`) it is another license.
        requirement.addition.is_none()
            && requirement.license.id().is_some_and(|id| licenses.iter().any(|license| license == id.name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const CRATES_IO: &str = "https://github.com/rust-lang/crates.io-index";

    fn package(name: &str, license: &str, source: &str) -> Package {
        Package {
            name: name.into(),
            version: "1.0.0".into(),
            license: Some(license.into()),
            source: Some(source.into()),
            ..Package::default()
        }
    }

    fn check(mut packages: Vec<Package>) -> Vec<String> {
        let rules = Rules { licenses: vec!["MIT".into()], registries: vec![CRATES_IO.into()] };
        packages.push(package("fine", "MIT", &format!("registry+{CRATES_IO}")));
        faults(&rules, &packages).unwrap()
    }

    #[test]
    fn one_license_of_a_choice_is_enough_and_all_of_several_are_needed() {
        let source = format!("registry+{CRATES_IO}");
        assert_eq!(check(vec![package("a", "GPL-3.0 OR MIT", &source)]), [""; 0]);
        assert_eq!(check(vec![package("a", "GPL-3.0/MIT", &source)]), [""; 0]);
        assert_eq!(
            check(vec![
                package("a", "GPL-3.0-only AND MIT", &source),
                package("b", "MIT WITH LLVM-exception", &source),
                Package { license: None, ..package("c", "", &source) },
            ]),
            [
                "a 1.0.0: license GPL-3.0-only AND MIT is not allowed",
                "b 1.0.0: license MIT WITH LLVM-exception is not allowed",
                "c 1.0.0: names no license",
            ]
        );
    }

    #[test]
    fn other_registries_and_git_are_refused() {
        let found = check(vec![
            package("a", "MIT", "registry+https://example.com/index"),
            package("b", "MIT", "git+https://example.com/b#1234"),
        ]);
        let wanted = [
            "a 1.0.0: comes from registry https://example.com/index",
            "b 1.0.0: comes from git https://example.com/b#1234",
        ];
        assert_eq!(found, wanted);
    }

    #[test]
    fn any_version_will_not_do_unless_it_is_ours() {
        let dependency = |name: &str, path: Option<&str>| Dependency {
            name: name.into(),
            req: "*".into(),
            path: path.map(Into::into),
        };
        let ours = Package {
            source: None,
            dependencies: vec![dependency("serde", None), dependency("kausality-core", Some("/src"))],
            ..package("kausality", "MIT", "")
        };
        assert_eq!(check(vec![ours]), ["kausality: takes any version of serde"]);
    }

    #[test]
    fn a_license_that_nobody_needs_is_told() {
        let rules = Rules { licenses: vec!["MIT".into(), "ISC".into()], registries: vec![CRATES_IO.into()] };
        let packages = [
            package("a", "MIT OR ISC", &format!("registry+{CRATES_IO}")),
            package("b", "MIT", &format!("registry+{CRATES_IO}")),
        ];
        assert_eq!(faults(&rules, &packages).unwrap(), ["deny.toml: no package needs the license ISC"]);
    }

    #[test]
    fn a_laxer_file_is_refused() {
        let text = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../deny.toml")).unwrap();
        Rules::parse(&text).unwrap();
        let laxer = text.replace("unknown-git = \"deny\"", "unknown-git = \"warn\"");
        assert!(Rules::parse(&laxer).unwrap_err().to_string().contains("unknown-git must be"));
    }
}
