//! Acting on parents: their annotations are edited as a person would, but never over somebody else's edit.
//!
//! ```text
//!  may I? (SelfSubjectAccessReview) ──▶ read ──▶ change a copy ──▶ write what differs, if nobody wrote since
//!                                        ▲                              │ conflict
//!                                        └──────────────────────────────┘
//! ```

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use kausality_api::{
    GROUP,
    report::ParentReference,
    text::{plain, shorten},
};
use kausality_cluster::{Cluster, Kind, Kinds, UnknownKind};
use kausality_core::{Summary, review::Object, summary::ObjectId};
use kube::{
    Api, Client,
    api::{Patch, PatchParams, PostParams},
    core::{ApiResource, DynamicObject},
};
use serde_json::json;

use crate::{
    ledger::{Ledger, refused, within},
    output::{DeedOutput, program},
    target::{Target, api},
};

mod account;
mod choice;
mod confirm;
mod enforced;
mod parents;
mod together;

pub(crate) use account::{Account, Change, Covered, outcome};
pub(crate) use choice::{Choice, Found};
pub(crate) use confirm::{agreed, confirmed};
pub(crate) use enforced::{Coverage, Subject};
pub(crate) use parents::{ParentChange, Parents};
pub(crate) use together::{Deed, Done, Needs, act_on_drifts};

/// How often an edit is tried while others write to the same object.
const ATTEMPTS: u32 = 10;

/// How long to wait after the first attempt; a little longer after each.
const PAUSE: Duration = Duration::from_millis(20);

/// The field manager of edits.
const MANAGER: &str = "kausality";

/// How a command acts.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Acting {
    /// Only say what would be done: as this program sees it, or as the API server does
    #[arg(long, value_enum, value_name = "HOW", num_args = 0..=1, require_equals = true, default_value_t, default_missing_value = "client")]
    pub(crate) dry_run: DryRun,

    /// Do not ask, even if several objects are meant
    #[arg(short, long)]
    pub(crate) yes: bool,

    /// How it is shown what was done
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: DeedOutput,
}

/// Whether anything is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum DryRun {
    /// It is written
    #[default]
    None,
    /// Nothing is sent
    Client,
    /// It is sent, checked, and not stored
    Server,
}

impl DryRun {
    /// What is said after each deed.
    pub(crate) fn note(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Client => " (dry run)",
            Self::Server => " (server dry run)",
        }
    }
}

/// The object whose annotations are edited.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ParentName {
    pub(crate) api_version: String,
    pub(crate) kind: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl From<&ParentReference> for ParentName {
    fn from(parent: &ParentReference) -> Self {
        Self {
            api_version: parent.api_version.clone(),
            kind: parent.kind.clone(),
            namespace: parent.namespace.clone(),
            name: parent.name.clone(),
        }
    }
}

impl ParentName {
    /// `deployment.apps/web`, as kubectl names objects: no other kind is called so.
    pub(crate) fn full_name(&self) -> String {
        let kind = self.kind.to_lowercase();
        let group = self.api_version.split_once('/').map(|(group, _)| format!(".{group}"));
        plain(&format!("{kind}{}/{}", group.unwrap_or_default(), self.name)).into_owned()
    }
}

impl std::fmt::Display for ParentName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let separator = if self.namespace.is_empty() { "" } else { "/" };
        f.write_str(&plain(&format!("{} {}{separator}{}", self.kind, self.namespace, self.name)))
    }
}

/// Somebody who edits annotations.
pub(crate) struct Editor {
    client: Client,
    pub(crate) ledger: Ledger,
    /// Who they are to the API server.
    pub(crate) user: String,
}

/// Longer names than this are no names.
const MAX_USER: usize = 256;

impl Editor {
    /// Finds out who they are.
    ///
    /// # Errors
    /// If the API server does not tell.
    pub(crate) async fn new(client: Client) -> Result<Self> {
        let user = within("the API server does not say who you are", Cluster::own_user(&client)).await?;
        if user.is_empty() {
            bail!("the API server does not say who you are: decisions need a name");
        }
        Ok(Self { ledger: Ledger::new(client.clone()), client, user: shorten(&user, MAX_USER) })
    }

    pub(crate) fn kinds(&self) -> &Kinds {
        &self.ledger.kinds
    }

    /// Makes sure that they may decide about drifts of a namespace; of the whole cluster, if it is empty.
    ///
    /// # Errors
    /// If they may not, or that cannot be found out.
    pub(crate) async fn may_decide(&self, namespace: &str) -> Result<()> {
        let resource = ApiResource {
            group: "authorization.k8s.io".to_owned(),
            version: "v1".to_owned(),
            api_version: "authorization.k8s.io/v1".to_owned(),
            kind: "SelfSubjectAccessReview".to_owned(),
            plural: "selfsubjectaccessreviews".to_owned(),
        };
        let attributes =
            json!({"verb": "approve", "group": GROUP, "resource": "drifts", "namespace": namespace});
        let question = json!({"apiVersion": resource.api_version, "kind": resource.kind,
            "spec": {"resourceAttributes": attributes}});
        let question: DynamicObject = serde_json::from_value(question)?;
        let reviews: Api<DynamicObject> = Api::all_with(self.client.clone(), &resource);
        let asked = "the API server does not say whether you may do this";
        let answer = within(asked, reviews.create(&PostParams::default(), &question)).await?;
        if answer.data.pointer("/status/allowed").and_then(serde_json::Value::as_bool) == Some(true) {
            return Ok(());
        }
        let (place, binding) = match namespace {
            "" => ("in all namespaces".to_owned(), "ClusterRoleBinding"),
            namespace => (format!("in namespace {namespace}"), "RoleBinding"),
        };
        let why =
            answer.data.pointer("/status/reason").and_then(serde_json::Value::as_str).unwrap_or_default();
        let why = if why.is_empty() { String::new() } else { format!(" ({})", shorten(why, 200)) };
        bail!(
            "{} may not decide about drifts {place}{why}: ask for a {binding} of the ClusterRole kausality-approver, or of \
             another with the rule {{apiGroups: [\"{GROUP}\"], resources: [\"drifts\"], verbs: [\"approve\"]}}",
            self.user
        )
    }

    /// The object that somebody calls `KIND/NAME`, which there must be.
    ///
    /// # Errors
    /// If there is none.
    pub(crate) async fn named(&self, name: &str, namespace: Option<&str>) -> Result<ParentName> {
        let target = Target::parse(self.kinds(), &[name.to_owned()]).await?;
        let namespace = namespace.unwrap_or(self.client.default_namespace());
        target.get(&self.client, namespace).await?;
        let resource = &target.kind.resource;
        Ok(ParentName {
            api_version: resource.api_version.clone(),
            kind: resource.kind.clone(),
            namespace: if target.kind.namespaced { namespace.to_owned() } else { String::new() },
            name: target.name,
        })
    }

    /// An object as it is; nothing, if it is gone.
    ///
    /// # Errors
    /// If it cannot be read.
    pub(crate) async fn read(&self, parent: &ParentName) -> Result<Option<Live>> {
        Live::read(&self.client, self.kinds(), parent).await
    }

    /// Whether anything enforces what is decided about these.
    pub(crate) async fn coverage(&self, subjects: impl IntoIterator<Item = Subject>) -> Coverage {
        enforced::coverage(&self.client, self.kinds(), subjects).await
    }

    /// Edits the annotations of an object: `change` gets a copy, and what it changes there is written, unless somebody
    /// else has written in between; then it is asked again.
    ///
    /// # Errors
    /// If the object is gone, cannot be read or written, or `change` fails.
    pub(crate) async fn edit<T>(
        &self,
        parent: &ParentName,
        dry_run: DryRun,
        mut change: impl FnMut(&mut Summary) -> Result<T>,
    ) -> Result<Edited<T>> {
        for attempt in 1..=ATTEMPTS {
            let live = self.read(parent).await?.with_context(|| format!("{parent} is gone"))?;
            let mut wanted = live.summary.clone();
            let outcome = change(&mut wanted)?;
            let edits = differences(&live.summary, &wanted);
            if edits.is_empty() || dry_run == DryRun::Client {
                return Ok(Edited { outcome, object: wanted, edits });
            }
            match live.write(&edits, dry_run).await {
                Ok(stored) => {
                    kept(parent, &edits, &stored)?;
                    return Ok(Edited { outcome, object: stored, edits });
                }
                Err(error) if refused(&error) == Some(409) => tokio::time::sleep(PAUSE * attempt).await,
                Err(error) => return Err(error.context(format!("cannot write to {parent}"))),
            }
        }
        bail!("others wrote to {parent} {ATTEMPTS} times in a row: nothing was changed, try again")
    }
}

/// What has become of an object.
pub(crate) struct Edited<T> {
    /// What the change gave.
    pub(crate) outcome: T,
    /// The object as it is then.
    pub(crate) object: Summary,
    edits: Edits,
}

impl<T> Edited<T> {
    /// The annotations that were written, as they are then; those without a value went.
    pub(crate) fn written(&self) -> Edits {
        let stored = |key: &String| (key.clone(), self.object.annotation(key).map(str::to_owned));
        self.edits.keys().map(stored).collect()
    }
}

/// An object as it was read, and how it is reached.
pub(crate) struct Live {
    pub(crate) summary: Summary,
    kind: Arc<Kind>,
    api: Api<DynamicObject>,
}

impl Live {
    /// An object as it is; nothing, if it is gone.
    ///
    /// # Errors
    /// If it cannot be read.
    pub(crate) async fn read(client: &Client, kinds: &Kinds, parent: &ParentName) -> Result<Option<Self>> {
        let kind = match kinds.of_kind(&parent.api_version, &parent.kind).await {
            Ok(kind) => kind,
            Err(UnknownKind::NotServed(_)) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let api = api(client, &kind, &parent.namespace);
        let found = within(&format!("cannot read {parent}"), api.get_opt(&parent.name)).await?;
        let Some(object) = found else { return Ok(None) };
        let mut summary = summarise(&object, &kind)?;
        summary.whole = Some(Arc::new(serde_json::to_value(&object)?));
        Ok(Some(Self { summary, kind, api }))
    }

    async fn write(&self, edits: &Edits, dry_run: DryRun) -> Result<Summary> {
        let patch = json!({"metadata": {
            "resourceVersion": self.summary.resource_version, "annotations": edits,
        }});
        let parameters = PatchParams {
            dry_run: dry_run == DryRun::Server,
            field_manager: Some(MANAGER.to_owned()),
            ..PatchParams::default()
        };
        let patch = Patch::Merge(patch);
        let written = self.api.patch(&self.summary.id.name, &parameters, &patch);
        summarise(&within("the API server says no", written).await?, &self.kind)
    }
}

fn summarise(object: &DynamicObject, kind: &Kind) -> Result<Summary> {
    let text = serde_json::to_string(object)?;
    let mut object = Object::parse(&text)?;
    object.api_version = kind.resource.api_version.as_str().into();
    object.kind = kind.resource.kind.as_str().into();
    Ok(Summary::of(&object))
}

/// The command that removes all decisions from a parent, whatever they are.
pub(crate) fn remedy(parent: &Summary) -> String {
    let ObjectId { kind, namespace, name, .. } = &parent.id;
    let place = if namespace.is_empty() { String::new() } else { format!(" -n {namespace}") };
    format!("`{} unapprove {}/{name}{place} --all`", program(), kind.to_lowercase())
}

/// Annotations to write; those without a value go.
pub(crate) type Edits = BTreeMap<String, Option<String>>;

fn differences(live: &Summary, wanted: &Summary) -> Edits {
    let changed = (wanted.annotations())
        .filter(|(key, value)| live.annotation(key) != Some(value))
        .map(|(key, value)| (key.to_owned(), Some(value.to_owned())));
    let gone = (live.annotations())
        .filter(|(key, _)| wanted.annotation(key).is_none())
        .map(|(key, _)| (key.to_owned(), None));
    changed.chain(gone).collect()
}

/// Makes sure that the cluster has kept what was written: Kausality puts back what a controller writes. Entries may have
/// got another generation on their way.
fn kept(parent: &ParentName, edits: &Edits, stored: &Summary) -> Result<()> {
    let is_kept = |(key, value): (&String, &Option<String>)| {
        let stored = stored.annotation(key);
        match (value, stored) {
            (None, None) => true,
            (Some(value), Some(stored)) => ungenerated(value) == ungenerated(stored),
            _ => false,
        }
    };
    if edits.iter().all(is_kept) {
        return Ok(());
    }
    bail!(
        "the cluster did not keep the annotations of {parent}: who reconciles it, or is its parent's controller, cannot \
         decide about its drifts"
    )
}

fn ungenerated(text: &str) -> serde_json::Value {
    let mut value = serde_json::from_str(text).unwrap_or_else(|_| json!(text));
    for entry in value.as_array_mut().into_iter().flatten() {
        if let Some(entry) = entry.as_object_mut() {
            entry.remove("generation");
        }
    }
    value
}

#[cfg(test)]
mod tests;
