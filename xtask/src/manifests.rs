//! What helm makes of the chart.
//!
//! A test (`crates/kausality/tests/it/install`) has helm make them again, and compares.

use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use anyhow::{Context as _, Result, ensure};

/// Each rendering, with the arguments of helm for it. The tests have the same ones.
const RENDERINGS: [(&str, &[&str]); 2] = [
    // Hooks are for Helm's own upgrades.
    ("deploy/manifests/kausality.yaml", &["--no-hooks"]),
    ("deploy/golden/everything.yaml", &["--values", "deploy/golden/everything.values.yaml"]),
];

/// Writes all renderings.
pub(crate) fn run() -> Result<ExitCode> {
    let helm = helm()?;
    for (file, arguments) in RENDERINGS {
        let output = Command::new(&helm)
            .args(["template", "kausality", "deploy/chart", "--namespace", "kausality-system"])
            .args(arguments)
            .output()
            .with_context(|| format!("starting {}", helm.display()))?;
        ensure!(output.status.success(), "helm template: {}", String::from_utf8_lossy(&output.stderr));
        fs::write(file, &output.stdout).with_context(|| format!("writing {file}"))?;
        writeln!(std::io::stdout(), "{file} written")?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The helm that the tests use: another version may format otherwise.
fn helm() -> Result<PathBuf> {
    let this = std::env::current_exe().context("finding this program")?;
    let output = Command::new(this).args(["control-plane", "--path"]).output().context("asking for helm")?;
    let helm = Path::new(String::from_utf8_lossy(&output.stdout).trim()).join("helm");
    ensure!(
        output.status.success() && helm.is_file(),
        "there is no helm: `cargo xtask control-plane` provides it"
    );
    Ok(helm)
}
