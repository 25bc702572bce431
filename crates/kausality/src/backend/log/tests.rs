use std::io;

use super::*;

fn report() -> Received {
    let report = serde_json::json!({
        "apiVersion": "kausality.io/v1alpha1", "kind": "DriftReport", "spec": {
            "id": "a1", "phase": "Detected",
            "parent": {"kind": "Deployment", "name": "web"}, "child": {"kind": "ReplicaSet", "name": "web-1"},
            "request": {"user": "dc", "uid": "u1"},
        },
    });
    Received::read(serde_json::to_string_pretty(&report).unwrap().as_bytes(), Timestamp::UNIX_EPOCH).unwrap()
}

async fn printed(output: Output) -> String {
    let out = Arc::new(Mutex::new(Vec::new()));
    let printer = Printer { output, out: Arc::clone(&out) };
    printer.keep(report()).await.unwrap();
    printer.keep(report()).await.unwrap();
    String::from_utf8(out.lock().unwrap().clone()).unwrap()
}

#[tokio::test]
async fn each_report_is_a_document_or_a_line() {
    let yaml = printed(Output::Yaml).await;
    assert_eq!(yaml.matches("---\n").count(), 2, "{yaml}");
    assert!(yaml.starts_with("---\napiVersion: kausality.io/v1alpha1\n"), "{yaml}");
    let json = printed(Output::Json).await;
    let ids = json
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["spec"]["id"].clone());
    assert_eq!(ids.collect::<Vec<_>>(), ["a1", "a1"]);
}

struct Closed;

impl Write for Closed {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn what_nobody_can_read_is_not_acknowledged() {
    let printer = Printer { output: Output::Json, out: Arc::new(Mutex::new(Closed)) };
    let error = printer.keep(report()).await.unwrap_err();
    assert!(error.to_string().contains("standard output cannot be written: "), "{error}");
}
