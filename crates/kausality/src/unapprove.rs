//! `kausality unapprove`: takes approvals and rejections back.

use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Args;
use jiff::Timestamp;
use kausality_api::{
    annotation::{APPROVALS, REJECTIONS},
    approval::{Approval, Entries, Rejection},
    text::plain,
};
use kausality_core::{
    Summary,
    standing::{Standing, Standpoint},
};

use crate::{
    act::{Account, Acting, Change, Deed, Done, DryRun, Editor, Needs, act_on_drifts, confirmed},
    connect::Connection,
    ledger::{Entry, NamedObject, ObjectName, Place, Reference},
    output::count,
};

/// Take approvals and rejections back.
///
/// With drifts, those that name their children go; with --all, also those that name them among others, by `*`. With
/// parents, those of one child go, or all.
#[derive(Debug, Args)]
pub struct Unapprove {
    /// Drifts, by their ids or the beginnings of them; or parents: deployment/web
    #[arg(value_name = "ID|KIND/NAME", required = true)]
    names: Vec<String>,

    /// Of parents that are named: the entries about this child
    #[arg(long, value_name = "KIND/NAME", value_parser = ObjectName::parse)]
    child: Option<ObjectName>,

    /// All entries: of drifts, those about other children too; of parents, every one
    #[arg(long)]
    all: bool,

    #[command(flatten)]
    place: Place,

    #[command(flatten)]
    acting: Acting,

    #[command(flatten)]
    connection: Connection,
}

impl Unapprove {
    /// Runs the command.
    ///
    /// # Errors
    /// If drifts or parents are not found, or nothing may be done.
    pub fn run(&self) -> Result<ExitCode> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(self.unapprove())
    }

    async fn unapprove(&self) -> Result<ExitCode> {
        let editor = Editor::new(self.connection.client("unapprove").await?).await?;
        let (mut entries, mut parents) = (Vec::new(), Vec::new());
        for name in &self.names {
            match Reference::parse(name)? {
                Reference::Id(_) => entries.push(editor.ledger.one(&self.place, name).await?),
                Reference::Object(_) => {
                    parents.push(editor.named(name, self.place.namespace.as_deref()).await?)
                }
            }
        }
        if !parents.is_empty() && !self.all && self.child.is_none() {
            bail!("which entries of {}? Name a child with --child, or say --all", self.names.join(", "));
        }
        // Nothing is done before it is clear that all of it may be.
        for parent in &parents {
            editor.may_decide(&parent.namespace).await?;
        }
        let deed = Unapproving { all: self.all };
        let mut account = Account::new(deed.verb(), &editor.user, &self.acting, anstream::stdout());
        if !entries.is_empty() {
            act_on_drifts(&editor, &deed, &entries, &self.acting, &mut account).await?;
        }
        let deeds: Vec<String> = parents.iter().map(|parent| format!("unapprove {parent}")).collect();
        if self.acting.dry_run == DryRun::None && !confirmed(&deeds, self.acting.yes)? {
            account.decline("Nothing was done to them.");
            return account.end();
        }
        let child = match &self.child {
            Some(child) if !self.all => Some(child.clone().resolve(editor.kinds()).await?),
            _ => None,
        };
        for parent in &parents {
            // A parent without a namespace may have children of one name in several.
            let place = self.place.namespace.as_deref().filter(|_| parent.namespace.is_empty());
            let edit = |summary: &mut Summary| Ok(take_back(summary, child.as_ref(), place));
            let edited = match editor.edit(parent, self.acting.dry_run, edit).await {
                Ok(edited) => edited,
                Err(error) => {
                    account.refuse_parent(parent, &format!("{error:#}"));
                    continue;
                }
            };
            let what = match edited.outcome {
                0 => "has none".to_owned(),
                removed => format!("lost {}", entries_of(removed)),
            };
            account.tell(&parent.full_name(), &format!("{parent} {what}"))?;
            account.keep(Change::of(parent, &edited).that_means(&what, None));
        }
        account.end()
    }
}

/// Removes the entries about a child, in one namespace or in any, or all. Tells how many.
fn take_back(parent: &mut Summary, child: Option<&NamedObject>, namespace: Option<&str>) -> usize {
    fn names<T: kausality_api::approval::Entry>(
        child: &NamedObject,
        namespace: Option<&str>,
        entry: &T,
    ) -> bool {
        let (api_version, kind, name) = entry.subject();
        child.is(api_version, kind, name)
            && namespace.zip(entry.namespace()).is_none_or(|(wanted, bound)| wanted == bound)
    }
    let Some(child) = child else { return clear(parent) };
    remove::<Approval>(parent, APPROVALS, |entry| names(child, namespace, entry))
        + remove::<Rejection>(parent, REJECTIONS, |entry| names(child, namespace, entry))
}

fn entries_of(number: usize) -> String {
    match number {
        1 => "1 entry".to_owned(),
        number => format!("{number} entries"),
    }
}

/// Removes both annotations, whatever they hold. Tells how many entries went; what is no list is one.
fn clear(parent: &mut Summary) -> usize {
    let mut removed = 0;
    for key in [APPROVALS, REJECTIONS] {
        if let Some(text) = parent.annotation(key) {
            removed += serde_json::from_str::<Vec<serde_json::Value>>(text).map_or(1, |list| list.len());
            parent.annotate(key, None);
        }
    }
    removed
}

/// Removes the entries that are meant. Tells how many.
fn remove<T: kausality_api::approval::Entry>(
    parent: &mut Summary,
    key: &str,
    is_meant: impl Fn(&T) -> bool,
) -> usize {
    let Some(entries) = parent.annotation(key).map(Entries::<T>::decode) else { return 0 };
    let places: Vec<usize> =
        entries.valid().filter(|(_, entry)| is_meant(entry)).map(|(place, _)| place).collect();
    if !places.is_empty() {
        parent.annotate(key, entries.without_all(&places).as_deref());
    }
    places.len()
}

/// Entries about drifts, on their way out.
#[derive(Clone, Copy, Debug)]
struct Unapproving {
    /// Those that name other children as well, too.
    all: bool,
}

impl Deed for Unapproving {
    fn verb(&self) -> &'static str {
        "unapprove"
    }

    fn needs(&self) -> Needs {
        Needs::Parent
    }

    fn is_enforced(&self) -> bool {
        false
    }

    fn apply(&self, parent: &mut Summary, entry: &Entry, now: Timestamp) -> Result<Done, String> {
        let standing = Standing::of(&entry.drift.spec, parent, now);
        let approvals = Meant::of(&standing.approvals, self.all);
        let rejections = Meant::of(&standing.rejections, self.all);
        let entries = Entries::<Approval>::decode(parent.annotation(APPROVALS).unwrap_or("[]"));
        if !approvals.places.is_empty() {
            parent.annotate(APPROVALS, entries.without_all(&approvals.places).as_deref());
        }
        let entries = Entries::<Rejection>::decode(parent.annotation(REJECTIONS).unwrap_or("[]"));
        if !rejections.places.is_empty() {
            parent.annotate(REJECTIONS, entries.without_all(&rejections.places).as_deref());
        }
        let what = match (approvals.places.len(), rejections.places.len()) {
            (0, 0) => "has neither approvals nor rejections".to_owned(),
            (approved, 0) => format!("lost {}", count(approved, "approval")),
            (0, rejected) => format!("lost {}", count(rejected, "rejection")),
            (approved, rejected) => {
                format!("lost {} and {}", count(approved, "approval"), count(rejected, "rejection"))
            }
        };
        let mut done = Done::new(what);
        let wide = approvals.wide + rejections.wide;
        if wide > 0 {
            let entries = entries_of(wide);
            let note =
                format!("{entries} about other children too, by *, left in place: say --all to remove");
            done.notes.push(plain(&note).into_owned());
        }
        Ok(done)
    }
}

/// The entries about a drift.
struct Meant {
    /// Where those are that go.
    places: Vec<usize>,
    /// How many stay because they are about other children, too.
    wide: usize,
}

impl Meant {
    fn of<T: kausality_api::approval::Entry>(standpoints: &[Standpoint<T>], all: bool) -> Self {
        let about = || standpoints.iter().filter(|standpoint| standpoint.about_child);
        let is_wide = |standpoint: &&Standpoint<T>| {
            let (api_version, kind, name) = standpoint.entry.subject();
            [api_version, kind, name].contains(&"*")
        };
        let places = about().filter(|it| all || !is_wide(it)).map(|it| it.place).collect();
        let wide = if all { 0 } else { about().filter(is_wide).count() };
        Self { places, wide }
    }
}

#[cfg(test)]
mod tests;
