//! `kausality plan`: what a server-side apply would do, to values and to owners.
//!
//! ```text
//!  manifests ──▶ predict (8 at once) ──▶ Planned ──▶ table, document
//!                  │ the live object, dry-runs of the apply
//!                  ├─▶ changes: what differs, and what the server chooses anew each time
//!                  ├─▶ conflict, force: who holds what, and what may be taken from them
//!                  └─▶ refusal, mask: why not, in words that help and give nothing away
//! ```

use std::{
    collections::{HashMap, HashSet},
    io::Write,
    path::PathBuf,
    process::ExitCode,
    sync::Arc,
};

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use kausality_api::text::plain;
use kausality_cluster::{Kinds, Schemas};
use kausality_fields::schema::GroupVersionKind;

use crate::{
    connect::Connection,
    live::{Secrets, Server, Types, in_order},
    manifests::{self, Manifest},
};

mod allocated;
mod changes;
mod conflict;
mod document;
mod force;
mod made;
mod mask;
mod order;
mod owner;
mod place;
mod planned;
mod predict;
mod refusal;
mod summary;
mod table;

use force::{ForcePath, Taking};
use made::Made;
use planned::{Action, Planned};
use predict::Oracle;
use summary::Summary;

/// Show what a server-side apply would do to values and owners, without doing it.
///
/// Exits with 0 if there is nothing to do, with 1 if there is (conflicts included), and with 2 if something cannot be
/// read or applied.
#[derive(Debug, Args)]
pub struct Plan {
    /// Files or folders with manifests; `-` for standard input; may be given several times
    #[arg(short, long = "filename", alias = "file", value_name = "DIR|FILE|-", required = true)]
    files: Vec<PathBuf>,

    /// The manager to apply as
    #[arg(long, value_name = "NAME")]
    manager: String,

    /// A field to take from whoever holds it, with all below it, such as spec.replicas or
    /// spec.ports[port=53,protocol=UDP]; may be given several times
    #[arg(long = "force-path", value_name = "PATH", conflicts_with = "force_conflicts")]
    force_paths: Vec<ForcePath>,

    /// Take all fields in conflict from whoever holds them
    #[arg(long)]
    force_conflicts: bool,

    /// The namespace of objects that name none [default: that of the context]
    #[arg(short, long, value_name = "NAME")]
    namespace: Option<String>,

    /// How the plan is shown
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,

    #[command(flatten)]
    connection: Connection,
}

/// How the plan is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Output {
    /// The objects that change, field by field, for people
    #[default]
    Table,
    /// One JSON document
    Json,
}

/// As long as the API server allows.
const LONGEST_MANAGER: usize = 128;

impl Plan {
    /// Runs the command.
    ///
    /// # Errors
    /// If manifests cannot be read, or no cluster is found.
    pub fn run(&self) -> Result<ExitCode> {
        if self.manager.is_empty() || self.manager.chars().count() > LONGEST_MANAGER {
            bail!("--manager must have 1 to {LONGEST_MANAGER} characters");
        }
        let manifests = manifests::load(&self.files)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let planned = runtime.block_on(self.plan(manifests))?;
        self.name_idle_paths(&planned);
        let mut out = anstream::stdout().lock();
        match self.output {
            Output::Table => table::table(&mut out, &planned)?,
            Output::Json => {
                serde_json::to_writer_pretty(&mut out, &document::document(&self.manager, &planned))?;
                writeln!(out)?;
            }
        }
        Ok(ExitCode::from(Summary::of(&planned).exit_code()))
    }

    async fn plan(&self, manifests: Vec<Manifest>) -> Result<Vec<Planned>> {
        let client = self.connection.client("plan").await?;
        let twice = repeated(&manifests);
        let oracle = Arc::new(Oracle {
            kinds: Kinds::new(client.clone()),
            types: Types::of_manifests(Schemas::new(client.clone()), &manifests),
            made: Made::by(&manifests),
            namespace: self.namespace.clone().unwrap_or_else(|| client.default_namespace().to_owned()),
            force: if self.force_conflicts {
                Taking::Everything
            } else {
                Taking::Only(self.force_paths.clone())
            },
            secrets: Secrets::of(&client).await,
            server: Server { client, manager: self.manager.clone() },
        });
        let tasks = manifests.into_iter().map(|manifest| {
            let oracle = oracle.clone();
            async move { oracle.predict(&manifest).await }
        });
        let mut planned = in_order(tasks.collect()).await?;
        note_definitions(&oracle.made, &mut planned);
        for (planned, other) in planned.iter_mut().zip(twice) {
            planned.notes.extend(other.map(|file| {
                format!("the same object is declared in {file}, too: each is compared with what is live")
            }));
        }
        Ok(planned)
    }

    /// A path that nothing is taken at may be a mistake.
    fn name_idle_paths(&self, planned: &[Planned]) {
        let contested =
            || planned.iter().flat_map(|planned| &planned.fields).filter(|f| f.conflict.is_some());
        for path in &self.force_paths {
            if !contested().any(|field| path.covers(&field.path)) {
                anstream::eprintln!("note: --force-path {}: there is no conflict", plain(&path.text));
            }
        }
    }
}

/// What is refused now may be fine once the plan has changed its definition.
fn note_definitions(made: &Made, planned: &mut [Planned]) {
    let changes = |planned: &&Planned| {
        planned.object.kind == "CustomResourceDefinition"
            && matches!(planned.action, Action::Create | Action::Change)
    };
    let changed: HashSet<String> =
        planned.iter().filter(changes).map(|planned| planned.object.name.clone()).collect();
    for planned in planned.iter_mut().filter(|planned| planned.action == Action::Error) {
        let kind = GroupVersionKind::new(&planned.object.api_version, &planned.object.kind);
        if let Some(name) = made.definition(&kind).filter(|name| changed.contains(*name)) {
            planned.notes.push(format!("{name} is changed by this plan: once that is applied, plan again"));
        }
    }
}

/// For each manifest, the file of another that declares the same object.
fn repeated(manifests: &[Manifest]) -> Vec<Option<String>> {
    let key = |manifest: &Manifest| {
        let group = manifest.text("/apiVersion").rsplit_once('/').map_or("", |(group, _)| group).to_owned();
        let rest =
            ["/kind", "/metadata/namespace", "/metadata/name"].map(|part| manifest.text(part).to_owned());
        (group, rest)
    };
    let mut by_object: HashMap<_, Vec<usize>> = HashMap::new();
    for (nth, manifest) in manifests.iter().enumerate() {
        by_object.entry(key(manifest)).or_default().push(nth);
    }
    let other = |(nth, manifest): (usize, &Manifest)| {
        let other = by_object.get(&key(manifest))?.iter().find(|other| **other != nth)?;
        manifests.get(*other).map(|other| other.file.clone())
    };
    manifests.iter().enumerate().map(other).collect()
}
