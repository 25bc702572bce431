//! A terminal in which somebody types, and of which pictures can be taken: a session of tmux.

use std::{
    path::Path,
    process::{Command, Output},
};

use kausality_testbed::eventually;

use crate::cli::stage::PATIENCE;

/// A terminal with a shell in it. It ends when this is dropped.
pub(crate) struct Terminal {
    /// Where the socket of its own tmux is.
    folder: tempfile::TempDir,
}

const SIZE: (u16, u16) = (110, 30);

/// What the shell says when it waits for a command.
const PROMPT: &str = "ready>";

impl Terminal {
    /// A terminal whose shell knows a kubeconfig; none where there is no tmux, and that is said.
    pub(crate) fn open(kubeconfig: &Path) -> Option<Self> {
        if !Command::new("tmux").arg("-V").output().is_ok_and(|said| said.status.success()) {
            use std::io::Write;
            let line = "\n==> SKIPPED: there is no `tmux`, which gives a terminal to a program.\n";
            std::io::stderr().write_all(line.as_bytes()).unwrap();
            return None;
        }
        let terminal = Self { folder: tempfile::tempdir().unwrap() };
        let (width, height) = (SIZE.0.to_string(), SIZE.1.to_string());
        let prompt = format!("PS1={PROMPT} ");
        let mut command =
            terminal.command(&["new-session", "-d", "-x", &width, "-y", &height, "env", &prompt, "sh"]);
        // What the shell inherits is what the server is started with.
        command.env("KUBECONFIG", kubeconfig).env("HOME", terminal.folder.path());
        let program = Path::new(env!("CARGO_BIN_EXE_kausality")).parent().unwrap();
        command.env("PATH", format!("{}:{}", program.display(), std::env::var("PATH").unwrap()));
        command.env_remove("ENV").env_remove("NO_COLOR");
        let said = command.output().unwrap();
        assert!(said.status.success(), "{said:?}");
        Some(terminal)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("tmux");
        command.args(["-u", "-L", "kausality", "-f", "/dev/null"]).args(arguments);
        command.env("TMUX_TMPDIR", self.folder.path()).env("LC_ALL", "C.UTF-8").env_remove("TMUX");
        command
    }

    fn tmux(&self, arguments: &[&str]) -> Output {
        let said = self.command(arguments).output().unwrap();
        assert!(said.status.success(), "{arguments:?}: {said:?}");
        said
    }

    /// Types this.
    pub(crate) fn types(&self, text: &str) {
        self.tmux(&["send-keys", "-l", text]);
    }

    /// Presses a key, as tmux names it.
    pub(crate) fn presses(&self, key: &str) {
        self.tmux(&["send-keys", key]);
    }

    /// Makes the window as large as this.
    pub(crate) fn resize(&self, width: u16, height: u16) {
        self.tmux(&["resize-window", "-x", &width.to_string(), "-y", &height.to_string()]);
    }

    /// What tmux knows of the terminal: `#{alternate_on}`.
    pub(crate) fn property(&self, name: &str) -> String {
        let said = self.tmux(&["display-message", "-p", name]);
        String::from_utf8(said.stdout).unwrap().trim().to_owned()
    }

    /// What is on the screen.
    pub(crate) fn screen(&self) -> String {
        String::from_utf8(self.tmux(&["capture-pane", "-p"]).stdout).unwrap()
    }

    /// The screen, once it is as it must be and stays so for a moment.
    pub(crate) async fn until(&self, what: &str, is_it: impl Fn(&str) -> bool) -> String {
        let mut before = String::new();
        eventually(PATIENCE, what, async || {
            let screen = self.screen();
            let same = ageless(&screen) == ageless(&before);
            before.clone_from(&screen);
            if same && is_it(&screen) { Ok(screen) } else { Err(format!("\n{screen}")) }
        })
        .await
        .unwrap()
    }

    /// The screen, once the shell waits for a command.
    pub(crate) async fn shell(&self) -> String {
        self.until("the shell", |screen| screen.trim_end().ends_with(PROMPT)).await
    }

    /// Runs a command in the shell, once that waits for it.
    pub(crate) async fn runs(&self, command: &str) {
        self.shell().await;
        self.types(command);
        self.presses("Enter");
    }

    /// The screen, once all of this is on it.
    pub(crate) async fn shows(&self, texts: &[&str]) -> String {
        let what = format!("a screen with {texts:?}");
        self.until(&what, |screen| texts.iter().all(|text| screen.contains(text))).await
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.command(&["kill-server"]).output();
    }
}

/// A screen with its ages and times taken out, each as wide as it was.
pub(crate) fn ageless(screen: &str) -> String {
    let letters: Vec<char> = screen.chars().collect();
    let digit = |place: usize| letters.get(place).is_some_and(char::is_ascii_digit);
    let mut ageless = String::new();
    let mut place = 0;
    while let Some(letter) = letters.get(place) {
        if !digit(place) || place.checked_sub(1).and_then(|it| letters.get(it)).is_some_and(is_in_word) {
            ageless.push(*letter);
            place += 1;
            continue;
        }
        let length = (place..).take_while(|place| digit(*place)).count();
        let after = |from: usize| letters.get(place + length + from);
        let is_age = after(0).is_some_and(|unit| "smhd".contains(*unit)) && !after(1).is_some_and(is_in_word);
        let is_year = length == 4 && after(0) == Some(&'-');
        if is_age {
            ageless.extend(std::iter::repeat_n('#', length));
        } else if is_year {
            let rest = letters[place..].iter().take_while(|letter| **letter != 'Z');
            let masked = rest.map(|letter| if letter.is_ascii_digit() { '#' } else { *letter });
            ageless.extend(masked);
            place += letters[place..].iter().take_while(|letter| **letter != 'Z').count();
            continue;
        } else {
            ageless.extend(&letters[place..place + length]);
        }
        place += length;
    }
    ageless
}

fn is_in_word(letter: &char) -> bool {
    letter.is_alphanumeric() || matches!(letter, '-' | '_' | '.' | '/')
}

#[test]
fn ages_and_times_differ_from_run_to_run_and_nothing_else_does() {
    let screen = "│ south-5m  12m  seen 3 times, last 5m ago (2026-01-25T11:59:30Z) 5 → 3, 90s: 2d";
    let expected = "│ south-5m  ##m  seen 3 times, last #m ago (####-##-##T##:##:##Z) 5 → 3, ##s: #d";
    assert_eq!(ageless(screen), expected);
}
