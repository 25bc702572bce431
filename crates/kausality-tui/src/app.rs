//! What is on the screen, and how it changes.

use std::collections::{BTreeMap, BTreeSet};

use crossterm::event::{KeyEvent, MouseEvent};
use jiff::Timestamp;
use kausality_api::drift::{
    Drift, DriftStep,
    cause::{Cause, DriftKey},
};

use crate::rows::{self, CauseKey, Row};

/// Something that happened.
#[derive(Clone, Debug)]
pub enum Input {
    /// A key was pressed.
    Key(KeyEvent),
    /// The mouse was used.
    Mouse(MouseEvent),
    /// All drifts there are, as they are now.
    Drifts(Vec<Drift>),
    /// How the connection to the cluster is.
    Link(Link),
    /// What a deed that was tried would do, in lines: it is done if that is meant.
    Tried(Deed, Vec<String>),
    /// What rules say now about a drift that was to be looked at.
    Present(DriftKey, Vec<DriftStep>),
    /// What became of a deed: what to tell about it.
    Done(Deed, Result<String, String>),
    /// What time it is.
    Time(Timestamp),
}

/// The connection to the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Link {
    /// It is being made.
    #[default]
    Connecting,
    /// What is shown is what there is.
    Live,
    /// It is broken, for this reason. What is shown may be old.
    Broken(String),
}

/// Something to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// The end.
    Quit,
    /// A decision of the person at the terminal.
    Act(Deed),
    /// A drift is looked at: what rules say about it now is to be found out.
    Look(DriftKey),
}

/// A decision about some drifts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deed {
    /// What is decided.
    pub action: Action,
    /// About which drifts.
    pub drifts: Vec<DriftKey>,
    /// Why; or for how long, of a snooze.
    pub text: String,
    /// Whether it is only to be seen what it would do.
    pub trial: bool,
}

/// What can be decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// It may happen, once.
    ApproveOnce,
    /// It may happen while the parent stays as it is.
    ApproveGeneration,
    /// It may always happen.
    ApproveAlways,
    /// It must not happen.
    Reject,
    /// Nothing below the parent may change.
    Freeze,
    /// It may again.
    Unfreeze,
    /// Nobody wants to hear of it for a while.
    Snooze,
    /// What was approved or rejected is taken back.
    Unapprove,
    /// The like of it passes from now on, by a policy.
    Except,
}

impl Action {
    /// What it is called where it is asked about.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::ApproveOnce => "approve once",
            Self::ApproveGeneration => "approve for this generation",
            Self::ApproveAlways => "approve always",
            Self::Reject => "reject",
            Self::Freeze => "freeze the parent",
            Self::Unfreeze => "unfreeze the parent",
            Self::Snooze => "snooze the parent",
            Self::Unapprove => "take approvals and rejections back",
            Self::Except => "except by policy",
        }
    }

    /// Whether it is shown before it is done what it would do: a policy outlasts the drift.
    pub(crate) fn is_tried(self) -> bool {
        self == Self::Except
    }

    /// What must be said beside it, if anything.
    pub(crate) fn question(self) -> Option<&'static str> {
        match self {
            Self::Reject | Self::Freeze | Self::Except => Some("Why?"),
            Self::Snooze => Some("For how long? (30m, 2h, 1d)"),
            _ => None,
        }
    }
}

/// What takes up the screen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Screen {
    #[default]
    List,
    /// One drift, from this line on.
    Detail(DriftKey, u16),
    Help,
}

/// What is asked over the screen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Asking {
    #[default]
    Nothing,
    /// The filter is being typed.
    Filter,
    /// How long an approval is to last.
    Approval,
    /// Why, or for how long.
    Text(Action, String),
    /// Whether it is meant, since it is about several drifts.
    Sure(Deed),
    /// Nothing yet: what this would do is being found out.
    Waiting(Deed),
    /// Whether that is meant which a deed would do: these lines, shown from the one of this number on.
    Shown(Deed, Vec<String>, usize),
}

/// All there is to know.
#[derive(Clone, Debug, Default)]
pub struct App {
    /// Where the drifts come from, for the title.
    pub(crate) place: String,
    pub(crate) now: Timestamp,
    pub(crate) link: Link,
    pub(crate) drifts: BTreeMap<DriftKey, Drift>,
    pub(crate) causes: Vec<Cause>,
    pub(crate) rows: Vec<Row>,
    /// The causes whose drifts are not shown.
    pub(crate) folded: BTreeSet<CauseKey>,
    pub(crate) selected: usize,
    pub(crate) filter: String,
    /// Whether those that are over are shown, too.
    pub(crate) all: bool,
    pub(crate) screen: Screen,
    pub(crate) asking: Asking,
    /// What was last told, and whether it is bad news.
    pub(crate) message: Option<(String, bool)>,
    /// What rules say now about the drift that was last looked at.
    pub(crate) present: Option<(DriftKey, Vec<DriftStep>)>,
    /// How many deeds are under way.
    pub(crate) working: usize,
    /// The lines of the list that fit on the screen, as last drawn: for keys that move by a page.
    pub(crate) page: usize,
}

impl App {
    /// Nothing yet, from a place that is named in the title.
    #[must_use]
    pub fn new(place: &str, now: Timestamp) -> Self {
        Self { place: place.to_owned(), now, page: 10, ..Self::default() }
    }

    /// Takes in what happened. What to do, if anything.
    pub fn take(&mut self, input: Input) -> Option<Command> {
        match input {
            Input::Key(key) => return self.press(key),
            Input::Mouse(mouse) => self.point(mouse),
            Input::Drifts(drifts) => {
                let before = self.looked_at().cloned();
                self.drifts = drifts.into_iter().map(|drift| (DriftKey::of(&drift), drift)).collect();
                self.arrange();
                if self.looked_at() != before.as_ref() {
                    return self.look();
                }
            }
            Input::Present(key, steps) => self.present = Some((key, steps)),
            Input::Link(link) => self.link = link,
            Input::Time(now) => self.now = now,
            Input::Tried(deed, lines) => {
                self.working = self.working.saturating_sub(1);
                // Whoever has turned to something else is not asked.
                if self.asking == Asking::Waiting(deed.clone()) {
                    self.asking = Asking::Shown(Deed { trial: false, ..deed }, lines, 0);
                }
            }
            Input::Done(deed, done) => {
                self.working = self.working.saturating_sub(1);
                if self.asking == Asking::Waiting(deed) {
                    self.asking = Asking::Nothing;
                }
                self.message = Some(match done {
                    Ok(told) => (told, false),
                    Err(why) => (why, true),
                });
                return self.look();
            }
        }
        None
    }

    /// The drift that takes up the screen.
    pub(crate) fn looked_at(&self) -> Option<&Drift> {
        let Screen::Detail(key, _) = &self.screen else { return None };
        self.drifts.get(key)
    }

    /// Asks what rules say now about the drift that is looked at.
    pub(crate) fn look(&self) -> Option<Command> {
        self.looked_at().map(|drift| Command::Look(DriftKey::of(drift)))
    }

    /// Puts the rows in order again, and keeps the selection on what it was on.
    pub(crate) fn arrange(&mut self) {
        let selected = self.rows.get(self.selected).cloned();
        let shown = self
            .drifts
            .values()
            .filter(|drift| (self.all || drift.status.state.is_open()) && rows::matches(drift, &self.filter));
        (self.causes, self.rows) = rows::arrange(shown, &self.folded);
        let found = selected.and_then(|row| self.rows.iter().position(|other| *other == row));
        self.selected = found.unwrap_or(self.selected).min(self.rows.len().saturating_sub(1));
    }

    /// The drift that is looked at, or those of the selected cause.
    pub(crate) fn meant(&self) -> Vec<DriftKey> {
        if let Screen::Detail(key, _) = &self.screen {
            return vec![key.clone()];
        }
        match self.rows.get(self.selected) {
            Some(Row::Drift(key)) => vec![key.clone()],
            Some(Row::Cause(key)) => {
                let cause = self.causes.iter().find(|cause| CauseKey::of(cause) == *key);
                cause.map(|cause| cause.drifts.clone()).unwrap_or_default()
            }
            None => Vec::new(),
        }
    }

    /// Decides something about what is meant, once all is known that must be.
    pub(crate) fn decide(&mut self, action: Action, text: String) -> Option<Command> {
        let drifts = self.meant();
        if drifts.is_empty() {
            self.message = Some(("There is no drift to decide about.".to_owned(), true));
            return None;
        }
        let deed = Deed { action, drifts, text, trial: action.is_tried() };
        if deed.trial {
            let command = self.act(deed.clone());
            self.asking = Asking::Waiting(deed);
            return command;
        }
        if deed.drifts.len() > 1 {
            self.asking = Asking::Sure(deed);
            return None;
        }
        self.act(deed)
    }

    pub(crate) fn act(&mut self, deed: Deed) -> Option<Command> {
        self.asking = Asking::Nothing;
        self.working += 1;
        self.message = None;
        Some(Command::Act(deed))
    }
}
