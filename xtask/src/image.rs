//! `cargo xtask image`: the container image, made without a container engine.
//!
//! The image holds one binary, the shared libraries that it needs, certificate authorities and the user it runs as.
//! It has no shell and no package manager. The same binary on the same machine gives the same bytes: see [`layer`].
//!
//! | module | what it knows |
//! |---|---|
//! | [`libraries`] | the shared libraries of a binary |
//! | [`contents`] | the files of the image |
//! | [`layer`] | how files become a tar archive, always the same one |
//! | [`archive`] | configuration, manifest and index: an OCI image layout in one file |

mod archive;
mod contents;
mod layer;
mod libraries;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result, bail, ensure};

use crate::programs::repository;
use archive::Image;
use contents::Program;

/// Where the certificate authorities are, on Debian, Alpine and Arch, on Fedora, and on openSUSE.
const AUTHORITIES: [&str; 3] =
    ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem"];

/// How `cargo xtask image` is called.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The file to write [default: target/kausality-image.tar].
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The name of the image.
    #[arg(long, value_name = "NAME:TAG", default_value = concat!("ghcr.io/kausality-io/kausality:", env!("CARGO_PKG_VERSION")))]
    tag: String,
    /// The binary to put into it. Without it, the release binary is built.
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
}

/// Writes the image, and prints its name and digest.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let (output, image) = write(options)?;
    let megabytes = image.archive.len() / 1_000_000;
    writeln!(std::io::stderr(), "wrote {} ({megabytes} MB)", output.display())?;
    writeln!(std::io::stdout(), "{}@{}", options.tag, image.digest)?;
    Ok(ExitCode::SUCCESS)
}

/// Makes the image, writes it, and says where.
fn write(options: &Options) -> Result<(PathBuf, Image)> {
    let architecture = architecture()?;
    let target = target();
    let binary = match &options.binary {
        Some(binary) => binary.clone(),
        None => build(&target)?,
    };
    let image = archive::image(&read(&binary)?, &options.tag, architecture)?;
    let output = options.output.clone().unwrap_or_else(|| target.join("kausality-image.tar"));
    if let Some(folder) = output.parent() {
        fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))?;
    }
    fs::write(&output, &image.archive).with_context(|| format!("writing {}", output.display()))?;
    Ok((output, image))
}

/// The architecture of this machine, as images name it.
fn architecture() -> Result<&'static str> {
    ensure!(
        cfg!(target_os = "linux"),
        "the image holds a binary of this machine, and containers need one for Linux: use the Dockerfile instead"
    );
    match std::env::consts::ARCH {
        "x86_64" => Ok("amd64"),
        "aarch64" => Ok("arm64"),
        other => bail!("no image for {other}: amd64 and arm64 are supported"),
    }
}

/// The target folder of cargo.
fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| repository().join("target"), PathBuf::from)
}

/// Builds the release binary.
fn build(target: &Path) -> Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["build", "--locked", "--release", "--package", "kausality"])
        .current_dir(repository())
        .status()
        .context("starting `cargo build`")?;
    ensure!(status.success(), "`cargo build --release` failed ({status})");
    Ok(target.join("release/kausality"))
}

/// Reads everything that goes into the image.
fn read(binary: &Path) -> Result<Program> {
    let name = binary.file_name().and_then(|name| name.to_str());
    let name = name.with_context(|| format!("{} has no file name", binary.display()))?.to_owned();
    let libraries = libraries::of(binary)?
        .into_iter()
        .map(|path| {
            let bytes = fs::read(&path).with_context(|| format!("reading the library {path}"))?;
            Ok((path, bytes))
        })
        .collect::<Result<_>>()?;
    let authorities = AUTHORITIES.iter().find_map(|path| fs::read(path).ok());
    if authorities.is_none() {
        writeln!(
            std::io::stderr(),
            "warning: this machine has no certificate authorities, so drift reports over HTTPS will need a caSecret \
             (install ca-certificates and run this again)"
        )?;
    }
    let binary = fs::read(binary).with_context(|| format!("reading {}", binary.display()))?;
    Ok(Program { name, binary, libraries, authorities })
}

#[cfg(test)]
mod tests;
