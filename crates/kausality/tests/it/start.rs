//! Whoever serves others waits for an API server that is not there yet, and not for one that nobody has named.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::json;

struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// An address that nobody listens on.
fn closed() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

fn kubeconfig(folder: &Path, server: &str) -> String {
    let config = json!({"apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "c", "user": {}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}]});
    let file = folder.join("kubeconfig");
    std::fs::write(&file, config.to_string()).unwrap();
    file.to_str().unwrap().to_owned()
}

fn start(command: &str, arguments: &[&str]) -> Running {
    let mut process = Command::new(env!("CARGO_BIN_EXE_kausality"));
    let process = process.arg(command).args(arguments).stdout(Stdio::null()).stderr(Stdio::null());
    Running(process.spawn().unwrap())
}

fn of<'a>(command: &str) -> (&'a str, &'a [&'a str]) {
    match command {
        "webhook" => ("webhook", &["--bind-address", "127.0.0.1:0"]),
        _ => ("controller", &["--service", "kausality-webhook"]),
    }
}

/// What is served there, once anything is.
fn fetch(address: SocketAddr, path: &str) -> String {
    let begun = Instant::now();
    loop {
        let answer = TcpStream::connect(address).and_then(|mut stream| {
            write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
            let mut text = String::new();
            stream.read_to_string(&mut text)?;
            Ok(text)
        });
        match answer {
            Ok(text) if !text.is_empty() => return text,
            other => assert!(begun.elapsed() < Duration::from_secs(30), "{path}: {other:?}"),
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn without_an_api_server_nobody_is_ready_and_nobody_gives_up() {
    let folder = tempfile::tempdir().unwrap();
    let config = kubeconfig(folder.path(), &format!("http://{}", closed()));
    for name in ["webhook", "controller"] {
        let (command, arguments) = of(name);
        let health = closed();
        let address = health.to_string();
        let more = ["--kubeconfig", &config, "--health-address", &address];
        let mut running = start(command, &[arguments, &more].concat());
        assert!(fetch(health, "/healthz").starts_with("HTTP/1.1 200"), "{name}");
        let ready = fetch(health, "/readyz");
        assert!(ready.starts_with("HTTP/1.1 503"), "{name}: {ready}");
        assert!(ready.contains("the API server has not answered yet"), "{name}: {ready}");
        assert_eq!(running.0.try_wait().unwrap(), None, "{name} has given up");
    }
}

#[test]
fn a_wrong_kubeconfig_ends_at_once() {
    for name in ["webhook", "controller"] {
        let (command, arguments) = of(name);
        let mut running = start(command, &[arguments, &["--kubeconfig", "no-such-file"]].concat());
        assert_eq!(running.0.wait().unwrap().code(), Some(2), "{name}");
    }
}

/// An API server that answers, and knows nobody.
#[test]
fn refused_credentials_end_at_once() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut request = [0; 4096];
            let _ = stream.read(&mut request);
            let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 401,
                "reason": "Unauthorized", "message": "Unauthorized"});
            let status = status.to_string();
            let _ = write!(
                stream,
                "HTTP/1.1 401 Unauthorized\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{status}",
                status.len()
            );
        }
    });
    let folder = tempfile::tempdir().unwrap();
    let config = kubeconfig(folder.path(), &server);
    for name in ["webhook", "controller"] {
        let (command, arguments) = of(name);
        let mut running = start(command, &[arguments, &["--kubeconfig", &config]].concat());
        assert_eq!(running.0.wait().unwrap().code(), Some(2), "{name}");
    }
}
