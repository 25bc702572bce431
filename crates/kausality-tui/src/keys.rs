//! What keys and the mouse do.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseEvent, MouseEventKind};

use crate::{
    app::{Action, App, Asking, Command, Screen},
    rows::Row,
};

/// Lines that the wheel of a mouse moves.
const WHEEL: usize = 3;

/// What keys do, for the page that says so.
pub(crate) const HELP: &[(&str, &str)] = &[
    ("↑ ↓  j k", "move"),
    ("PgUp PgDn  g G", "move by a page; to the top, to the end"),
    ("Enter", "look at a drift; fold or unfold a cause"),
    ("Space", "fold or unfold a cause"),
    ("Esc", "back; clear the filter"),
    ("/", "filter: all words must be in a line"),
    ("R", "show those that are over, too"),
    ("a", "approve once"),
    ("A", "approve: choose how long it lasts"),
    ("r", "reject, with a reason"),
    ("u", "take approvals and rejections back"),
    ("e", "except: a policy lets the like of it pass; it is shown first"),
    ("f  F", "freeze the parent; unfreeze it"),
    ("s", "snooze the parent: no reports for a while"),
    ("?", "this page"),
    ("q  Ctrl-C", "quit"),
];

impl App {
    pub(crate) fn press(&mut self, key: KeyEvent) -> Option<Command> {
        if key.kind == KeyEventKind::Release {
            return None;
        }
        if key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c') {
            return Some(Command::Quit);
        }
        match std::mem::take(&mut self.asking) {
            Asking::Nothing => self.command(key.code),
            Asking::Filter => self.type_filter(key.code),
            Asking::Approval => match key.code {
                KeyCode::Char('o') | KeyCode::Enter => self.decide(Action::ApproveOnce, String::new()),
                KeyCode::Char('g') => self.decide(Action::ApproveGeneration, String::new()),
                KeyCode::Char('a') => self.decide(Action::ApproveAlways, String::new()),
                _ => None,
            },
            Asking::Text(action, text) => self.type_text(key.code, action, text),
            Asking::Sure(deed) => match key.code {
                KeyCode::Char('y' | 'Y') => self.act(deed),
                _ => None,
            },
            Asking::Waiting(deed) => {
                match key.code {
                    KeyCode::Esc => self.leave(),
                    _ => self.asking = Asking::Waiting(deed),
                }
                None
            }
            Asking::Shown(deed, lines, from) => match key.code {
                KeyCode::Char('y' | 'Y') | KeyCode::Enter => self.act(deed),
                KeyCode::Esc | KeyCode::Char('n' | 'N' | 'q') => {
                    self.leave();
                    None
                }
                code => {
                    self.asking = Asking::Shown(deed, lines, from);
                    self.step(code).into_iter().for_each(|lines| self.move_by(lines));
                    None
                }
            },
        }
    }

    fn leave(&mut self) {
        self.message = Some(("Nothing was written.".to_owned(), false));
    }

    /// By how many lines a key moves, if it does.
    fn step(&self, key: KeyCode) -> Option<isize> {
        let page = isize::try_from(self.page).unwrap_or(10);
        match key {
            KeyCode::Down | KeyCode::Char('j') => Some(1),
            KeyCode::Up | KeyCode::Char('k') => Some(-1),
            KeyCode::PageDown => Some(page),
            KeyCode::PageUp => Some(-page),
            KeyCode::Home | KeyCode::Char('g') => Some(isize::MIN),
            KeyCode::End | KeyCode::Char('G') => Some(isize::MAX),
            _ => None,
        }
    }

    fn command(&mut self, key: KeyCode) -> Option<Command> {
        self.message = None;
        match key {
            KeyCode::Char('q') => return Some(Command::Quit),
            KeyCode::Char('?') => {
                self.screen = if self.screen == Screen::Help { Screen::List } else { Screen::Help };
            }
            KeyCode::Esc | KeyCode::Backspace | KeyCode::Left | KeyCode::Char('h') => self.back(),
            KeyCode::Enter | KeyCode::Right | KeyCode::Char('l') => return self.open(),
            KeyCode::Char(' ') => self.fold(),
            KeyCode::Char('/') => {
                self.screen = Screen::List;
                self.asking = Asking::Filter;
            }
            KeyCode::Char('R') => {
                self.all = !self.all;
                self.arrange();
            }
            KeyCode::Char('a') => return self.decide(Action::ApproveOnce, String::new()),
            KeyCode::Char('A') if !self.meant().is_empty() => self.asking = Asking::Approval,
            KeyCode::Char('u') => return self.decide(Action::Unapprove, String::new()),
            KeyCode::Char('F') => return self.decide(Action::Unfreeze, String::new()),
            KeyCode::Char('r') => self.ask(Action::Reject),
            KeyCode::Char('f') => self.ask(Action::Freeze),
            KeyCode::Char('s') => self.ask(Action::Snooze),
            KeyCode::Char('e') => self.ask(Action::Except),
            key => self.step(key).into_iter().for_each(|lines| self.move_by(lines)),
        }
        None
    }

    fn ask(&mut self, action: Action) {
        if !self.meant().is_empty() {
            self.asking = Asking::Text(action, String::new());
        }
    }

    fn back(&mut self) {
        match self.screen {
            Screen::List => {
                self.filter.clear();
                self.arrange();
            }
            Screen::Detail(..) | Screen::Help => self.screen = Screen::List,
        }
    }

    fn move_by(&mut self, lines: isize) {
        if let Asking::Shown(_, _, from) = &mut self.asking {
            *from = from.saturating_add_signed(lines);
            return;
        }
        if let Screen::Detail(_, from) = &mut self.screen {
            let lines = i16::try_from(lines).unwrap_or(if lines < 0 { i16::MIN } else { i16::MAX });
            *from = from.saturating_add_signed(lines);
            return;
        }
        let last = self.rows.len().saturating_sub(1);
        self.selected = self.selected.saturating_add_signed(lines).min(last);
    }

    fn open(&mut self) -> Option<Command> {
        match self.rows.get(self.selected) {
            Some(Row::Drift(key)) if self.screen == Screen::List => {
                self.screen = Screen::Detail(key.clone(), 0);
                return self.look();
            }
            Some(Row::Cause(_)) => self.fold(),
            _ => {}
        }
        None
    }

    fn fold(&mut self) {
        if let (Screen::List, Some(Row::Cause(key))) = (&self.screen, self.rows.get(self.selected)) {
            let key = key.clone();
            if !self.folded.remove(&key) {
                self.folded.insert(key);
            }
            self.arrange();
        }
    }

    fn type_filter(&mut self, key: KeyCode) -> Option<Command> {
        match key {
            KeyCode::Enter => return None,
            KeyCode::Esc => self.filter.clear(),
            KeyCode::Backspace => {
                self.filter.pop();
                self.asking = Asking::Filter;
            }
            KeyCode::Char(letter) => {
                self.filter.push(letter);
                self.asking = Asking::Filter;
            }
            _ => self.asking = Asking::Filter,
        }
        self.arrange();
        None
    }

    fn type_text(&mut self, key: KeyCode, action: Action, mut text: String) -> Option<Command> {
        match key {
            KeyCode::Esc => return None,
            KeyCode::Enter if !text.trim().is_empty() => return self.decide(action, text.trim().to_owned()),
            KeyCode::Backspace => drop(text.pop()),
            KeyCode::Char(letter) => text.push(letter),
            _ => {}
        }
        self.asking = Asking::Text(action, text);
        None
    }

    pub(crate) fn point(&mut self, mouse: MouseEvent) {
        let wheel = isize::try_from(WHEEL).unwrap_or(1);
        match mouse.kind {
            MouseEventKind::ScrollDown => self.move_by(wheel),
            MouseEventKind::ScrollUp => self.move_by(-wheel),
            _ => {}
        }
    }
}
