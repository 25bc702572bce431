//! `kausality install`: Kausality on a cluster, without Helm.

use std::{io::Write, process::ExitCode, time::Duration};

use anyhow::{Context, Result, bail};
use clap::{ArgAction, Args, ValueEnum};
use serde_json::{Value, json};

use crate::connect::Connection;

pub(crate) mod bundle;
pub(crate) mod objects;
pub(crate) mod wait;

use bundle::{Bundle, NAMESPACE};
use objects::{Objects, name, text};

/// Install Kausality on a cluster, or bring what is there to this version.
///
/// It watches nothing until there is a policy: see `kubectl get kausalities`.
#[derive(Debug, Args)]
pub struct Install {
    /// The namespace to install into
    #[arg(short, long, value_name = "NAME", default_value = NAMESPACE, value_parser = label)]
    namespace: String,

    /// The image to run [default: that of this version]
    #[arg(long, value_name = "IMAGE")]
    image: Option<String>,

    /// Print what would be applied, and ask no cluster
    #[arg(long)]
    dry_run: bool,

    /// How --dry-run prints it
    #[arg(short, long, value_enum, default_value_t, requires = "dry_run")]
    output: Output,

    /// The CustomResourceDefinitions, and nothing else
    #[arg(long)]
    crds_only: bool,

    /// Take fields that somebody else has set
    #[arg(long)]
    force_conflicts: bool,

    /// Wait until all replicas are available
    #[arg(
        long, action = ArgAction::Set, default_value_t = true, num_args = 0..=1, require_equals = true,
        default_missing_value = "true", value_name = "BOOL"
    )]
    wait: bool,

    /// How long to wait at most
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    timeout: u64,

    #[command(flatten)]
    connection: Connection,
}

/// How manifests are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Output {
    /// One document for each object
    #[default]
    Yaml,
    /// One list
    Json,
}

impl Install {
    /// Runs the command.
    ///
    /// # Errors
    /// If the cluster cannot be reached, refuses something, or does not get it to run in time.
    pub fn run(&self) -> Result<ExitCode> {
        let mut bundle = Bundle::shipped()?;
        bundle.move_to(&self.namespace);
        if let Some(image) = &self.image {
            bundle.run(image);
        }
        if self.crds_only {
            bundle.objects.clear();
        }
        let mut out = anstream::stdout().lock();
        if self.dry_run {
            self.print(&mut out, &bundle)?;
        } else {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(self.apply(&mut out, &bundle))?;
        }
        Ok(ExitCode::SUCCESS)
    }

    fn print(&self, out: &mut impl Write, bundle: &Bundle) -> Result<()> {
        match self.output {
            Output::Yaml => {
                for object in bundle.all() {
                    write!(out, "---\n{}", serde_saphyr::to_string(object)?)?;
                }
            }
            Output::Json => {
                let items: Vec<&Value> = bundle.all().collect();
                let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
                serde_json::to_writer_pretty(&mut *out, &list)?;
                writeln!(out)?;
            }
        }
        Ok(())
    }

    async fn apply(&self, out: &mut impl Write, bundle: &Bundle) -> Result<()> {
        let objects = Objects::new(self.connection.client("install").await?);
        if !self.crds_only {
            self.check(&objects).await?;
        }
        for definition in &bundle.definitions {
            let applied = objects.apply(definition, self.force_conflicts).await?;
            writeln!(out, "{}: {applied}", name(definition))?;
        }
        wait::until_served(&objects, &bundle.definitions).await?;
        for object in &bundle.objects {
            let applied = objects.apply(object, self.force_conflicts).await?;
            writeln!(out, "{}: {applied}", name(object))?;
        }
        if self.wait {
            let patience = Duration::from_secs(self.timeout);
            wait::until_available(out, &objects, &bundle.objects, patience).await?;
        }
        if !self.crds_only {
            writeln!(out, "\nInstalled. It watches what policies say: kubectl get kausalities")?;
        }
        Ok(())
    }

    /// There is one Kausality in a cluster, and one who installs it.
    async fn check(&self, objects: &Objects) -> Result<()> {
        let Some(found) = installed(objects).await.context("cannot tell what is installed")? else {
            return Ok(());
        };
        if let Some(release) = &found.release {
            bail!(
                "Kausality was installed by Helm, as release {release} in {}: bring it up to date with helm upgrade",
                found.namespace
            );
        }
        if found.namespace != self.namespace {
            bail!(
                "Kausality is installed in the namespace {}: give --namespace {}, or remove it first with kausality \
                 uninstall",
                found.namespace,
                found.namespace
            );
        }
        Ok(())
    }
}

/// An installation.
pub(crate) struct Installed {
    pub(crate) namespace: String,
    /// The release, if it is Helm's.
    pub(crate) release: Option<String>,
}

/// What is installed, by the binding of the controller.
pub(crate) async fn installed(objects: &Objects) -> Result<Option<Installed>> {
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": "kausality-controller"},
    });
    Ok(objects.get(&binding).await?.map(|found| {
        let release = text(&found, "/metadata/annotations/meta.helm.sh~1release-name");
        Installed {
            namespace: text(&found, "/subjects/0/namespace").to_owned(),
            release: Some(release.to_owned()).filter(|release| !release.is_empty()),
        }
    }))
}

/// A name that a namespace can have.
pub(crate) fn label(text: &str) -> Result<String, String> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let good = !text.is_empty()
        && text.len() <= 63
        && text.chars().all(|c| plain(c) || c == '-')
        && text.starts_with(plain)
        && text.ends_with(plain);
    good.then(|| text.to_owned())
        .ok_or_else(|| "a namespace has lower-case letters, digits and -, at most 63".to_owned())
}
