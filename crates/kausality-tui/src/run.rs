//! The loop: reads the terminal, draws, and does what is decided.

use std::{io, time::Duration};

use crossterm::{
    event::{self, DisableMouseCapture, EnableMouseCapture, Event},
    execute,
};
use jiff::Timestamp;
use kausality_api::drift::Drift;
use ratatui::DefaultTerminal;
use tokio::sync::mpsc;

use crate::{
    app::{App, Command, Deed, Input},
    view::draw,
};

/// How often ages are drawn anew.
const TICK: Duration = Duration::from_secs(1);

/// How long the terminal is listened to at once, so that listening can end.
const LISTEN: Duration = Duration::from_millis(100);

/// Where what the person wants goes.
#[derive(Clone, Debug)]
pub struct Wishes {
    /// What is decided.
    pub deeds: mpsc::Sender<Deed>,
    /// Drifts that are looked at: what rules say about them now is to be found out.
    pub looks: mpsc::Sender<Drift>,
}

/// Runs until the person quits. `inputs` brings drifts, what rules say about them, and what became of deeds.
///
/// # Errors
/// If the terminal does not do what it is told.
pub async fn run(place: &str, mouse: bool, inputs: mpsc::Receiver<Input>, wishes: Wishes) -> io::Result<()> {
    let terminal = ratatui::try_init()?;
    if mouse {
        execute!(io::stdout(), EnableMouseCapture)?;
    }
    let ended = turn(terminal, App::new(place, Timestamp::now()), inputs, wishes).await;
    if mouse {
        execute!(io::stdout(), DisableMouseCapture)?;
    }
    ratatui::try_restore()?;
    ended
}

async fn turn(
    mut terminal: DefaultTerminal,
    mut app: App,
    mut inputs: mpsc::Receiver<Input>,
    wishes: Wishes,
) -> io::Result<()> {
    let (sender, mut events) = mpsc::channel(64);
    // A terminal is read by waiting for it.
    let listening = tokio::task::spawn_blocking(move || listen(&sender));
    let mut ticks = tokio::time::interval(TICK);
    loop {
        terminal.draw(|frame| draw(frame, &mut app))?;
        let input = tokio::select! {
            event = events.recv() => match event {
                Some(Event::Key(key)) => Input::Key(key),
                Some(Event::Mouse(mouse)) => Input::Mouse(mouse),
                Some(_) => continue,
                // The terminal is gone.
                None => break,
            },
            Some(input) = inputs.recv() => input,
            _ = ticks.tick() => Input::Time(Timestamp::now()),
        };
        match app.take(input) {
            Some(Command::Quit) => break,
            Some(Command::Act(deed)) => {
                if let Err(error) = wishes.deeds.try_send(deed) {
                    let why = format!("cannot be done now: {error}");
                    app.take(Input::Done(error.into_inner(), Err(why)));
                }
            }
            Some(Command::Look(_)) => {
                if let Some(drift) = app.looked_at() {
                    // Where many wait, the last of them is answered.
                    drop(wishes.looks.try_send(drift.clone()));
                }
            }
            None => {}
        }
    }
    drop(events);
    let _ = listening.await;
    Ok(())
}

fn listen(events: &mpsc::Sender<Event>) {
    while !events.is_closed() {
        match event::poll(LISTEN) {
            Ok(false) => {}
            Ok(true) => match event::read() {
                Ok(event) => {
                    if events.blocking_send(event).is_err() {
                        return;
                    }
                }
                Err(_) => return,
            },
            Err(_) => return,
        }
    }
}
