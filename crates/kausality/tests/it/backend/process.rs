//! A backend as a process.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    process::{Child, ChildStdout, Command, Stdio},
    sync::{Arc, Mutex},
};

use serde_json::Value;

/// A backend, until it is dropped.
pub(crate) struct Backend {
    child: Child,
    address: String,
    pub(crate) stdout: BufReader<ChildStdout>,
    log: Arc<Mutex<String>>,
}

/// `kausality backend …`.
pub(crate) fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kausality"));
    command.arg("backend").args(arguments).stdin(Stdio::null());
    command
}

impl Backend {
    /// One on a free port.
    pub(crate) fn start(arguments: &[&str]) -> Self {
        Self::start_at("127.0.0.1:0", arguments)
    }

    pub(crate) fn start_at(address: &str, arguments: &[&str]) -> Self {
        let mut command = command(arguments);
        command.args(["--bind-address", address]).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let log = Arc::new(Mutex::new(String::new()));
        let kept = log.clone();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        let mut lines = lines.inspect(move |line| kept.lock().unwrap().extend([line.as_str(), "\n"]));
        let address = lines.find_map(|line| {
            let line: Value = serde_json::from_str(&line).ok()?;
            (line["fields"]["message"] == "listening")
                .then(|| line["fields"]["address"].as_str().map(ToOwned::to_owned))?
        });
        // Its log must be read on, or it would block one day.
        std::thread::spawn(move || lines.for_each(drop));
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Self { child, address: address.expect("it says where it listens"), stdout, log }
    }

    /// What it has logged so far.
    pub(crate) fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    pub(crate) fn port(&self) -> &str {
        self.address.rsplit(':').next().unwrap()
    }

    pub(crate) fn ask(&self, method: &str, path: &str, headers: &str, body: &str) -> (u16, Value) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let (host, length) = (&self.address, body.len());
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Type: application/json\r\n\
             Content-Length: {length}\r\n{headers}\r\n{body}"
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
        let body = answer.split_once("\r\n\r\n").unwrap().1;
        (status, serde_json::from_str(body).unwrap_or_default())
    }

    pub(crate) fn post(&self, report: &Value) -> (u16, Value) {
        self.ask("POST", "/webhook", "", &report.to_string())
    }

    /// As `kill -9` does.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Backend {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}
