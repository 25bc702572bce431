//! `kausality approve`: lets drifts pass.

use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use jiff::Timestamp;
use kausality_api::{
    annotation::{APPROVALS, FREEZE, REJECTIONS},
    approval::{Approval, ApprovalMode, Entries, Rejection},
    drift::{Drift, DriftState},
    freeze::Frozen,
    text::shorten,
};
use kausality_core::{Summary, entries, exceptions::Ruled, standing::Standing, summary::ObjectId};

use crate::{
    act::{Account, Acting, Choice, Deed, Done, Editor, Found, Needs, act_on_drifts, remedy},
    connect::Connection,
    ledger::{Entry, rules::Rules},
    span,
};

mod ahead;
mod others;

use others::Others;

/// Let drifts pass: once, while their parent's generation stays, or always.
///
/// An entry is added to the annotation kausality.io/approvals of the parent, in your name. You need the verb "approve" on
/// drifts.kausality.io in its namespace, and must be allowed to patch it.
#[derive(Debug, Args)]
pub struct Approve {
    #[command(flatten)]
    choice: Choice,

    /// How long the approval lasts
    #[arg(long, value_enum, default_value_t)]
    mode: ModeArgument,

    /// Approve exactly the change that was seen, and no other of the same child
    #[arg(long)]
    exact: bool,

    /// Approve changes of these fields only, and of what lies below them: spec.replicas,spec.template
    #[arg(long, value_name = "FIELD", value_delimiter = ',', value_parser = field)]
    fields: Vec<String>,

    /// When the approval becomes void: in 2h, 7d, or at 2026-01-25T12:00:00Z
    #[arg(long, value_name = "TIME", value_parser = span::until)]
    expires: Option<Timestamp>,

    /// Why, for those who read the trace later
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    reason: Option<String>,

    /// Approve what is resolved already, too, and remove rejections that stand against it
    #[arg(long)]
    force: bool,

    #[command(flatten)]
    acting: Acting,

    #[command(flatten)]
    connection: Connection,
}

/// How long an approval lasts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ModeArgument {
    /// For one change
    #[default]
    Once,
    /// While the parent has its present generation
    Generation,
    /// Until somebody removes it
    Always,
}

impl From<ModeArgument> for ApprovalMode {
    fn from(mode: ModeArgument) -> Self {
        match mode {
            ModeArgument::Once => Self::Once,
            ModeArgument::Generation => Self::Generation,
            ModeArgument::Always => Self::Always,
        }
    }
}

/// Characters of a reason.
const MAX_REASON: usize = 1000;

/// Reads a reason.
pub(crate) fn reason(text: &str) -> Result<String> {
    let text = text.trim();
    if text.is_empty() {
        bail!("say why");
    }
    if text.chars().count() > MAX_REASON {
        bail!("at most {MAX_REASON} characters, please");
    }
    Ok(text.to_owned())
}

/// Reads a field.
fn field(text: &str) -> Result<String> {
    let text = text.trim();
    if text.is_empty() {
        bail!("name a field, as spec.replicas");
    }
    Ok(text.to_owned())
}

impl Approve {
    /// Runs the command.
    ///
    /// # Errors
    /// If drifts are not found, or nothing may be done.
    pub fn run(&self) -> Result<ExitCode> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(self.approve())
    }

    async fn approve(&self) -> Result<ExitCode> {
        let editor = Editor::new(self.connection.client("approve").await?).await?;
        let Found { chosen: entries, all } = self.choice.look(&editor).await?;
        let namespaces = entries.iter().map(|entry| entry.drift.spec.child.namespace.as_str()).collect();
        let deed = Approving {
            rules: Rules::of(&editor.ledger.client, &namespaces).await,
            mode: self.mode.into(),
            exact: self.exact,
            fields: self.fields.clone(),
            expires: self.expires,
            reason: self.reason.clone(),
            by: editor.user.clone(),
            force: self.force,
            others: Others::of(&entries, all, self.force),
        };
        let mut account = Account::new(deed.verb(), &editor.user, &self.acting, anstream::stdout());
        if entries.is_empty() {
            if !self.choice.names_child_and_parent() {
                bail!("there is no such open drift {}", self.choice.place.scope(&editor.ledger.client));
            }
            ahead::approve(&editor, &deed, &self.choice, self.acting.dry_run, &mut account).await?;
        } else {
            act_on_drifts(&editor, &deed, &entries, &self.acting, &mut account).await?;
        }
        account.end()
    }
}

/// An approval in the making.
#[derive(Clone, Debug)]
pub(crate) struct Approving {
    /// What policies say.
    rules: Rules,
    mode: ApprovalMode,
    exact: bool,
    fields: Vec<String>,
    expires: Option<Timestamp>,
    reason: Option<String>,
    by: String,
    force: bool,
    /// What else there is to know of the children.
    others: Others,
}

impl Deed for Approving {
    fn verb(&self) -> &'static str {
        "approve"
    }

    fn needs(&self) -> Needs {
        if self.force { Needs::Current } else { Needs::Open }
    }

    fn apply(&self, parent: &mut Summary, entry: &Entry, now: Timestamp) -> Result<Done, String> {
        let spec = &entry.drift.spec;
        let before = parent.clone();
        // One that is used up by the first change would leave none for the second.
        let bound = !self.exact && self.mode == ApprovalMode::Once && self.others.has_chosen(entry);
        let mut done = Done::new(format!("approved {}", duration(self.mode)));
        let standing = Standing::of(spec, parent, now);
        let is_rejected = standing.rejection().is_some();
        done.notes.extend(self.lift(parent, &standing)?);
        let approval = self.entry(parent, &ObjectId::of(&spec.child))?;
        // What a policy denies is approved by somebody who has seen it, and nothing else with it.
        let exact = self.exact || bound || spec.denied_by.is_some();
        let approval = Approval { diff: exact.then(|| spec.diff.clone()), ..approval };
        if !self.add(parent, &approval)? {
            done.what = format!("is already approved {}", duration(self.mode));
        }
        // An approval that does not hold would only look like one.
        let standing = Standing::of(spec, parent, now);
        if standing.approval().is_none() {
            let why = standing.approvals.last().and_then(|last| last.void.clone()).unwrap_or_default();
            return Err(format!("the approval would not let it pass: it {why}"));
        }
        if bound {
            done.notes.push(format!(
                "it is bound to exactly this change, as by --exact: another drift of {} is approved once, too",
                spec.summary.child
            ));
        }
        done.notes.extend(self.others.covered(entry, [&before, parent], self.mode, now));
        done.notes.extend(passed(entry, exact));
        done.notes.extend(frozen(parent));
        let denial = self.rules.denial(spec, parent.whole.as_deref(), now);
        match &spec.denied_by {
            Some(rule) => done.notes.push(lifted(rule, denial)),
            None => done.notes.extend(forbidden(denial, &entry.drift, is_rejected)),
        }
        Ok(done)
    }
}

impl Approving {
    /// The entry for a child.
    fn entry(&self, parent: &Summary, child: &ObjectId) -> Result<Approval, String> {
        if self.mode != ApprovalMode::Always && parent.generation.is_none() {
            return Err(format!("{} has no generation: only --mode always can hold", parent.id));
        }
        Ok(Approval {
            api_version: child.api_version.clone(),
            kind: child.kind.clone(),
            namespace: entries::bound(&parent.id, &child.namespace),
            name: child.name.clone(),
            generation: parent.generation.filter(|_| self.mode != ApprovalMode::Always),
            mode: self.mode,
            diff: None,
            fields: self.fields.clone(),
            expires: self.expires,
            by: Some(self.by.clone()),
            reason: self.reason.clone(),
        })
    }

    /// Adds an entry, unless there is one that says the same. Tells whether it was added.
    fn add(&self, parent: &mut Summary, approval: &Approval) -> Result<bool, String> {
        let entries = Entries::<Approval>::decode(parent.annotation(APPROVALS).unwrap_or("[]"));
        if !entries.is_list() {
            return Err(format!(
                "{APPROVALS} of {} is no JSON list: correct it, or remove it with {}",
                parent.id,
                remedy(parent)
            ));
        }
        let says = |entry: &Approval| Approval { by: None, reason: None, ..entry.clone() };
        if entries.valid().any(|(_, entry)| says(entry) == says(approval)) {
            return Ok(false);
        }
        parent.annotate(APPROVALS, Some(&entries.with(approval)));
        Ok(true)
    }

    /// Deals with rejections: they win over any approval.
    fn lift(&self, parent: &mut Summary, standing: &Standing) -> Result<Option<String>, String> {
        if let Some(fault) = standing.rejection_faults.first() {
            return Err(format!(
                "rejections on {} that cannot be understood block every drift ({fault}): correct {REJECTIONS}, or remove \
                 all entries with {}",
                parent.id,
                remedy(parent)
            ));
        }
        let Some(rejection) = standing.rejection() else { return Ok(None) };
        let by = rejection.by.as_deref().unwrap_or("an unnamed user");
        let said = format!("{}: {}", shorten(by, 100), shorten(&rejection.reason, 200));
        if !self.force {
            return Err(format!(
                "it was rejected by {said}. That wins over any approval: say --force to remove it"
            ));
        }
        let places: Vec<usize> =
            standing.rejections.iter().filter(|it| it.holds()).map(|it| it.place).collect();
        let entries = Entries::<Rejection>::decode(parent.annotation(REJECTIONS).unwrap_or("[]"));
        parent.annotate(REJECTIONS, entries.without_all(&places).as_deref());
        Ok(Some(format!("the rejection by {said} was removed")))
    }
}

fn duration(mode: ApprovalMode) -> &'static str {
    match mode {
        ApprovalMode::Once => "once",
        ApprovalMode::Generation => "for this generation",
        ApprovalMode::Always => "always",
    }
}

/// That the approval is for exactly what a rule denied to somebody, whoever tries it.
fn lifted(rule: &str, now: Option<Option<Ruled>>) -> String {
    match now {
        Some(None) => "no rule denies it any more: it passes with or without an approval".to_owned(),
        _ => format!("{rule} denies it, and the approval lets exactly this change pass"),
    }
}

/// That a rule of a policy denies it, which wins over any approval: one of those that there are, or, where these are not
/// known, the one that did when it was last seen. Of older entries that is not known for certain: what somebody rejected
/// was denied for that.
fn forbidden(now: Option<Option<Ruled>>, drift: &Drift, is_rejected: bool) -> Option<String> {
    const BARRED: &str = "no approval lets it pass while that rule stands";
    if let Some(ruled) = now {
        return ruled.map(|ruled| format!("{} denies it: {BARRED}", shorten(&ruled.to_string(), MAX_REASON)));
    }
    let deciding = drift.status.deciding();
    if !drift.is_barred() || deciding.is_none() && is_rejected {
        return None;
    }
    let how = deciding.map_or("denied by a rule of a policy", |step| step.finding.as_str());
    let how = shorten(how, MAX_REASON);
    Some(format!("when it was last seen, it was {how}: {BARRED}"))
}

/// That a change has happened, so that it is the next one that an approval is for.
fn passed(entry: &Entry, exact: bool) -> Option<String> {
    if entry.drift.status.state != DriftState::Passed {
        return None;
    }
    let next = match exact {
        true => "the same change pass if it comes again".to_owned(),
        false => format!("the next change of {} pass", entry.drift.spec.summary.child),
    };
    Some(format!("this change has passed already: the approval lets {next}"))
}

/// That a parent is frozen, which wins over any approval.
fn frozen(parent: &Summary) -> Option<String> {
    let how = match Frozen::decode(parent.annotation(FREEZE)?) {
        Frozen::No => return None,
        Frozen::Yes(freeze) => freeze.to_string(),
        Frozen::Unclear(fault) => format!("by an annotation that cannot be understood ({fault})"),
    };
    Some(format!("{} is frozen {how}: nothing passes until it is unfrozen", parent.id))
}

#[cfg(test)]
mod tests;
