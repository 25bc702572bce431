//! `kausality trace`: how an object came to be as it is, and what follows from it.

use std::{
    io::{self, Write},
    process::ExitCode,
};

use anstyle::Style;
use anyhow::Result;
use clap::Args;
use jiff::Timestamp;
use kausality_api::{
    annotation::{Suffix, TRACE},
    text::plain,
    trace::{Hop, Trace as Chain},
};
use kausality_cluster::Kinds;
use kausality_core::summary::group;
use kube::core::ObjectMeta;
use serde::Serialize;

use crate::{
    connect::Connection,
    output::{self, ThingOutput},
    target::Target,
};

mod children;
pub(crate) mod hops;

use children::Family;

/// Show the causal chain of an object: who asked for what, when, and how it came to this object.
#[derive(Debug, Args)]
pub struct Trace {
    /// The object, as kubectl names it: replicaset/web-5d4f
    #[arg(value_name = "KIND/NAME", num_args = 1..=2, required = true)]
    object: Vec<String>,

    /// Go down as well: objects that it controls, and those that they control
    #[arg(long)]
    children: bool,

    /// The namespace of the object [default: that of the context]
    #[arg(short, long, value_name = "NAME")]
    namespace: Option<String>,

    /// How it is shown
    #[arg(short, long, value_enum, default_value_t)]
    output: ThingOutput,

    #[command(flatten)]
    connection: Connection,
}

impl Trace {
    /// Runs the command.
    ///
    /// # Errors
    /// If the object cannot be read.
    pub fn run(&self) -> Result<ExitCode> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let tree = runtime.block_on(self.tree())?;
        let mut out = anstream::stdout().lock();
        match self.output {
            ThingOutput::Table => print(&mut out, &tree, Timestamp::now())?,
            ThingOutput::Json => output::json(&mut out, &tree)?,
            ThingOutput::Yaml => output::yaml(&mut out, &tree)?,
        }
        Ok(ExitCode::SUCCESS)
    }

    async fn tree(&self) -> Result<Node> {
        let client = self.connection.client("trace").await?;
        let kinds = Kinds::new(client.clone());
        let target = Target::parse(&kinds, &self.object).await?;
        let namespace = self.namespace.as_deref().unwrap_or(client.default_namespace());
        let object = target.get(&client, namespace).await?;
        let resource = &target.kind.resource;
        let mut node = Node::new(&resource.api_version, &resource.kind, &object.metadata);
        if self.children {
            let place = if target.kind.namespaced { Some(namespace) } else { None };
            let family = Family::gather(&client, &kinds, place).await?;
            for note in family.notes() {
                anstream::eprintln!("note: {}", plain(&note));
            }
            node.children = Some(family.children(&node.uid));
        }
        Ok(node)
    }
}

/// An object, how it came to be as it is, and what it controls.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Node {
    pub(crate) api_version: String,
    pub(crate) kind: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) uid: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) generation: Option<i64>,
    /// Origin first.
    pub(crate) trace: Vec<Hop>,
    /// Why there is no trace, where there should be one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) fault: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) children: Option<Vec<Node>>,
}

impl Node {
    pub(crate) fn new(api_version: &str, kind: &str, metadata: &ObjectMeta) -> Self {
        let (name, namespace) = (metadata.name.as_deref(), metadata.namespace.as_deref().unwrap_or_default());
        let name = metadata.generate_name.as_deref().or(name).unwrap_or_default();
        let key = Suffix::of(group(api_version), kind, namespace, name).key(TRACE);
        let text = metadata.annotations.as_ref().and_then(|annotations| annotations.get(&key));
        let (trace, fault) = match text.map(|text| Chain::decode(text)) {
            Some(Ok(trace)) => (trace.hops().to_vec(), None),
            Some(Err(fault)) => (Vec::new(), Some(fault.to_string())),
            None => (Vec::new(), None),
        };
        Self {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            namespace: metadata.namespace.clone().unwrap_or_default(),
            name: metadata.name.clone().unwrap_or_default(),
            uid: metadata.uid.clone().unwrap_or_default(),
            generation: metadata.generation,
            trace,
            fault,
            children: None,
        }
    }
}

fn print(out: &mut impl Write, node: &Node, now: Timestamp) -> io::Result<()> {
    let bold = Style::new().bold();
    let separator = if node.namespace.is_empty() { "" } else { "/" };
    let name = format!("{} {}{separator}{}", node.kind, node.namespace, node.name);
    writeln!(out, "{bold}{}{bold:#}", plain(&name))?;
    for (depth, hop) in node.trace.iter().enumerate() {
        writeln!(out, "{}└─ {}", "   ".repeat(depth), hops::hop(hop, now))?;
    }
    if node.trace.is_empty() {
        writeln!(out, "└─ {}", none(node))?;
    }
    match node.children.as_deref() {
        None => Ok(()),
        Some([]) => writeln!(out, "\nIt controls nothing."),
        Some(children) => {
            writeln!(out, "\n{bold}What it controls{bold:#}")?;
            below(out, children, "", now)
        }
    }
}

/// The objects that one controls, and those that they control.
fn below(out: &mut impl Write, nodes: &[Node], indent: &str, now: Timestamp) -> io::Result<()> {
    for (place, node) in nodes.iter().enumerate() {
        let last = place + 1 == nodes.len();
        let (branch, rest) = if last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
        let bold = Style::new().bold();
        let name = plain(&format!("{} {}", node.kind, node.name)).into_owned();
        let deed = match node.trace.last() {
            Some(hop) => hops::deed(hop, now),
            None => none(node),
        };
        writeln!(out, "{indent}{branch}{bold}{name}{bold:#}, {deed}")?;
        below(out, node.children.as_deref().unwrap_or_default(), &format!("{indent}{rest}"), now)?;
    }
    Ok(())
}

fn none(node: &Node) -> String {
    match &node.fault {
        Some(fault) => format!("its trace cannot be read: {}", plain(fault)),
        None => "no trace: Kausality has not seen it change".to_owned(),
    }
}

#[cfg(test)]
mod tests;
