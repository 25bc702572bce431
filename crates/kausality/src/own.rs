//! `kausality own`: who owns which field of an object.

use std::{
    io::{self, Write},
    path::PathBuf,
    process::ExitCode,
};

use anstyle::{AnsiColor, Style};
use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use jiff::Timestamp;
use kausality_api::text::{plain, shorten};
use kausality_cluster::Kinds;
use kausality_fields::{
    FieldSet, Redaction, Step,
    managed::{self, Entry, Operation},
    owned::{self, Owned},
    redact,
};
use serde_json::{Value, json};

use crate::{
    connect::Connection,
    live::{Secrets, age, salt},
    manifests,
    target::Target,
};

/// Show who owns which field of an object, and what nobody owns.
#[derive(Debug, Args)]
pub struct Own {
    /// The object, as kubectl names it: deployment/web
    #[arg(value_name = "KIND/NAME", num_args = 1..=2, required_unless_present = "file", conflicts_with = "file")]
    object: Vec<String>,

    /// A file with the object as a cluster gave it, managed fields included; `-` for standard input
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,

    /// Only what this manager owns
    #[arg(long, value_name = "NAME")]
    manager: Option<String>,

    /// The namespace of the object [default: that of the context]
    #[arg(short, long, value_name = "NAME")]
    namespace: Option<String>,

    /// How fields are shown
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,

    #[command(flatten)]
    connection: Connection,
}

/// How fields are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Output {
    /// A tree, for people
    #[default]
    Table,
    /// One JSON document
    Json,
}

impl Own {
    /// Runs the command.
    ///
    /// # Errors
    /// If the object cannot be read, or its owners make no sense.
    pub fn run(&self) -> Result<ExitCode> {
        let (object, redaction) = match &self.file {
            Some(file) => (saved(file)?, Redaction::new(salt())),
            None => {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
                runtime.block_on(self.live())?
            }
        };
        let managed = object.pointer("/metadata/managedFields");
        let Some(managed) = managed.filter(|managed| managed.as_array().is_some_and(|list| !list.is_empty()))
        else {
            bail!(
                "{} says nothing about owners: its metadata.managedFields are empty. kubectl leaves them out \
                unless it is called with --show-managed-fields",
                name(&object)
            );
        };
        let entries = managed::decode_value(managed).context("metadata.managedFields make no sense")?;
        // Values of Secrets are not shown, and nobody compares them here.
        let object = redact(&object, &redaction);
        let fields = owned::fields(&object, &entries);
        let fields = fields.into_iter().filter(|field| !is_bookkeeping(field)).collect::<Vec<_>>();
        let fields = match &self.manager {
            Some(manager) => of_manager(fields, manager)?,
            None => fields,
        };
        let mut out = anstream::stdout().lock();
        match self.output {
            Output::Table => table(&mut out, &name(&object), &fields, Timestamp::now())?,
            Output::Json => {
                let fields: Vec<Value> = fields.iter().filter(|field| is_field(field)).map(as_json).collect();
                let id = ["apiVersion", "kind"].map(|key| object.get(key).cloned().unwrap_or_default());
                let [api_version, kind] = id;
                let metadata = |key: &str| object["metadata"].get(key).cloned().unwrap_or_default();
                let document = json!({"apiVersion": api_version, "kind": kind, "namespace": metadata("namespace"),
                    "name": metadata("name"), "fields": fields});
                serde_json::to_writer_pretty(&mut out, &document)?;
                writeln!(out)?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    /// The object, and how its secrets are hidden.
    async fn live(&self) -> Result<(Value, Redaction)> {
        let client = self.connection.client("own").await?;
        let target = Target::parse(&Kinds::new(client.clone()), &self.object).await?;
        let namespace = self.namespace.as_deref().unwrap_or(client.default_namespace());
        let mut object = serde_json::to_value(target.get(&client, namespace).await?)?;
        let resource = &target.kind.resource;
        if let Some(object) = object.as_object_mut() {
            object.insert("apiVersion".to_owned(), resource.api_version.as_str().into());
            object.insert("kind".to_owned(), resource.kind.as_str().into());
        }
        let redaction = Secrets::of(&client).await.redaction(resource);
        Ok((object, redaction))
    }
}

fn saved(file: &std::path::Path) -> Result<Value> {
    let mut found = manifests::load(&[file.to_owned()])?;
    match (found.pop(), found.is_empty()) {
        (Some(manifest), true) => Ok(manifest.object),
        _ => bail!("{} holds several objects: give one at a time", file.display()),
    }
}

fn name(object: &Value) -> String {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let namespace = text("/metadata/namespace");
    let separator = if namespace.is_empty() { "" } else { "/" };
    plain(&format!("{} {namespace}{separator}{}", text("/kind"), text("/metadata/name"))).into_owned()
}

/// What the API server alone writes: it has no owners, and nobody could be one.
fn is_bookkeeping(field: &Owned<'_>) -> bool {
    const METADATA: [&str; 9] = [
        "creationTimestamp",
        "deletionGracePeriodSeconds",
        "deletionTimestamp",
        "generation",
        "managedFields",
        "name",
        "namespace",
        "resourceVersion",
        "uid",
    ];
    match field.path.steps() {
        [Step::Field(top)] => matches!(top.as_str(), "apiVersion" | "kind"),
        [Step::Field(top), Step::Field(name), ..] => top == "metadata" && METADATA.contains(&name.as_str()),
        _ => false,
    }
}

/// Whether it is a field in its own right, and not only the place of others.
fn is_field(field: &Owned<'_>) -> bool {
    field.value.is_some() || !field.owners.is_empty()
}

/// What a manager owns, with the way to it.
fn of_manager<'a>(fields: Vec<Owned<'a>>, manager: &str) -> Result<Vec<Owned<'a>>> {
    let is_owner = |field: &Owned<'_>| field.owners.iter().any(|owner| owner.manager == manager);
    let owned: FieldSet =
        fields.iter().filter(|field| is_owner(field)).map(|field| field.path.clone()).collect();
    if owned.is_empty() {
        bail!("{manager:?} owns nothing here");
    }
    let leads = |field: &Owned<'_>| {
        let mut steps = field.path.steps().iter();
        owned.has(&field.path) || steps.try_fold(&owned, |set, step| set.below(step)).is_some()
    };
    Ok(fields.into_iter().filter(leads).collect())
}

fn as_json(field: &Owned<'_>) -> Value {
    let owners = field.owners.iter().map(|owner| {
        json!({"manager": owner.manager, "operation": owner.operation.as_str(), "subresource": owner.subresource,
            "apiVersion": owner.api_version, "time": owner.time})
    });
    let mut line = json!({"path": field.path, "owners": owners.collect::<Vec<Value>>()});
    if let (Some(value), Some(line)) = (field.value, line.as_object_mut()) {
        line.insert("value".to_owned(), value.clone());
    }
    line
}

/// Characters of a value that are shown.
const MAX_VALUE: usize = 40;

fn table(out: &mut impl Write, name: &str, fields: &[Owned<'_>], now: Timestamp) -> io::Result<()> {
    let lines: Vec<(String, String)> = fields.iter().map(|field| (label(field), value(field))).collect();
    let width = |column: fn(&(String, String)) -> &String| {
        lines.iter().map(|line| column(line).chars().count()).max().unwrap_or_default()
    };
    let (labels, values) = (width(|line| &line.0).max(5), width(|line| &line.1).max(5));
    let bold = Style::new().bold();
    writeln!(out, "{bold}{name}{bold:#}")?;
    writeln!(out, "{bold}{:labels$}  {:values$}  OWNERS{bold:#}", "FIELD", "VALUE")?;
    for (field, (label, value)) in fields.iter().zip(&lines) {
        let line = format!("{label:labels$}  {value:values$}  ");
        if !is_field(field) {
            writeln!(out, "{}", line.trim_end())?;
            continue;
        }
        let owners: Vec<String> = field.owners.iter().map(|owner| shown(owner, now)).collect();
        match owners.as_slice() {
            [] => {
                let dim = Style::new().dimmed();
                writeln!(out, "{line}{dim}nobody{dim:#}")?;
            }
            [owner] => writeln!(out, "{line}{owner}")?,
            several => {
                let shared = AnsiColor::Yellow.on_default();
                writeln!(out, "{line}{shared}{}{shared:#}", several.join(" + "))?;
            }
        }
    }
    Ok(())
}

/// The last step, indented by how deep it is.
fn label(field: &Owned<'_>) -> String {
    let steps = field.path.steps();
    let indent = "  ".repeat(steps.len().saturating_sub(1));
    let last: kausality_fields::Path = steps.last().cloned().into_iter().collect();
    format!("{indent}{last}")
}

fn value(field: &Owned<'_>) -> String {
    match field.value {
        Some(value) => shorten(&kausality_fields::Leaf::Value(value.clone()).to_string(), MAX_VALUE),
        None => String::new(),
    }
}

/// `kubectl (apply, 5m)`, `hpa (update scale, 3d)`.
fn shown(owner: &Entry, now: Timestamp) -> String {
    let operation = match owner.operation {
        Operation::Apply => "apply",
        Operation::Update => "update",
    };
    let mut how = vec![[operation, &owner.subresource].join(" ").trim_end().to_owned()];
    how.extend(owner.time.as_deref().and_then(|time| age(time, now)));
    plain(&format!("{} ({})", owner.manager, how.join(", "))).into_owned()
}
