//! A line to a control plane that can be cut.

use std::{net::SocketAddr, pin::pin};

use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
};

/// A line. It ends when this is dropped.
pub(crate) struct Line {
    pub(crate) address: SocketAddr,
    state: watch::Sender<State>,
    accepting: tokio::task::AbortHandle,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    /// Nothing is carried, and nobody is told.
    Silent,
    Cut,
}

impl Line {
    /// A line to there, which is open.
    pub(crate) async fn to(there: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (state, seen) = watch::channel(State::Open);
        let accepting = tokio::spawn(async move {
            while let Ok((here, _)) = listener.accept().await {
                // Who calls while it is cut is hung up on.
                tokio::spawn(carry(here, there, seen.clone()));
            }
        });
        Self { address, state, accepting: accepting.abort_handle() }
    }

    /// Ends all connections, and lets none be made.
    pub(crate) fn cut(&self) {
        self.state.send_replace(State::Cut);
    }

    /// Carries nothing any more, as if whoever is there had stopped in the middle of a word.
    pub(crate) fn silence(&self) {
        self.state.send_replace(State::Silent);
    }

    pub(crate) fn mend(&self) {
        self.state.send_replace(State::Open);
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn carry(mut here: TcpStream, there: SocketAddr, mut state: watch::Receiver<State>) {
    let Ok(mut there) = TcpStream::connect(there).await else { return };
    let mut carrying = pin!(tokio::io::copy_bidirectional(&mut here, &mut there));
    loop {
        let now = *state.borrow_and_update();
        let is_over = match now {
            State::Cut => true,
            State::Silent => state.changed().await.is_err(),
            State::Open => tokio::select! {
                _ = &mut carrying => true,
                changed = state.changed() => changed.is_err(),
            },
        };
        if is_over {
            return;
        }
    }
}
