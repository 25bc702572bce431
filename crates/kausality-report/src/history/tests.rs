use std::sync::Arc;

use axum::{
    body::Body,
    http::{Method, Request},
};
use serde_json::{Value, json};
use tower::ServiceExt as _;

use super::*;
use crate::{receive::Guard, signature::Key};

fn report(id: &str, phase: &str, request: &str) -> Value {
    json!({"apiVersion": "kausality.io/v1alpha1", "kind": "DriftReport", "spec": {
        "id": id, "phase": phase,
        "parent": {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "shop", "name": "web"},
        "child": {"apiVersion": "apps/v1", "kind": "ReplicaSet", "namespace": "shop", "name": format!("web-{id}")},
        "newObject": {}, "request": {"user": "dc", "uid": request, "operation": "UPDATE"},
    }})
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn received(report: &Value, second: i64) -> Received {
    Received::read(report.to_string().as_bytes(), at(second)).unwrap()
}

struct Desk {
    folder: tempfile::TempDir,
    history: History,
    guard: Arc<Guard>,
}

impl Desk {
    fn new(limits: Limits) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let history = History::open(&folder.path().join("reports.db"), limits).unwrap();
        Self { folder, history, guard: Arc::new(Guard::Open) }
    }

    async fn keep(&self, id: &str, phase: &str, request: &str, second: i64) -> bool {
        self.history.insert(received(&report(id, phase, request), second)).await.unwrap()
    }

    async fn call(&self, request: Request<Body>) -> (u16, Value) {
        let response = router(&self.history, &self.guard).oneshot(request).await.unwrap();
        let status = response.status().as_u16();
        let body = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
        (status, serde_json::from_slice(&body).unwrap_or_default())
    }

    async fn get(&self, path: &str) -> (u16, Value) {
        self.call(Request::get(path).body(Body::empty()).unwrap()).await
    }

    async fn post(&self, report: &Value) -> (u16, Value) {
        let request = Request::post("/webhook").header("content-type", "application/json");
        self.call(request.body(Body::from(report.to_string())).unwrap()).await
    }

    /// `id/phase` of what a question is answered with.
    async fn ids(&self, query: &str) -> Vec<String> {
        let (status, answer) = self.get(&format!("/api/v1/drifts{query}")).await;
        assert_eq!(status, 200, "{answer}");
        assert_eq!(answer["count"], answer["items"].as_array().unwrap().len());
        ids(&answer)
    }
}

fn ids(answer: &Value) -> Vec<String> {
    let text = |item: &Value, field: &str| item["report"]["spec"][field].as_str().unwrap().to_owned();
    let items = answer["items"].as_array().unwrap().iter();
    items.map(|item| format!("{}/{}", text(item, "id"), text(item, "phase"))).collect()
}

#[tokio::test]
async fn a_report_is_kept_once_however_often_it_comes() {
    let desk = Desk::new(Limits::default());
    for _ in 0..2 {
        for (phase, request) in [("Detected", "u1"), ("Resolved", "u1"), ("Detected", "u2")] {
            let (status, answer) = desk.post(&report("a", phase, request)).await;
            assert_eq!((status, &answer["acknowledged"]), (200, &json!(true)));
        }
    }
    assert_eq!(desk.ids("").await, ["a/Detected", "a/Resolved", "a/Detected"], "seen again is another");
    let (_, health) = desk.get("/healthz").await;
    assert_eq!((&health["status"], &health["driftCount"]), (&json!("ok"), &json!(3)));
    assert_eq!(desk.get("/readyz").await.0, 200);
}

#[tokio::test]
async fn one_drift_is_shown_as_the_go_project_does_and_whole() {
    let desk = Desk::new(Limits::default());
    desk.keep("a", "Detected", "u1", 10).await;
    desk.keep("a", "Resolved", "u1", 20).await;
    desk.keep("ab", "Detected", "u1", 30).await;
    let (status, shown) = desk.get("/api/v1/drifts/a").await;
    assert_eq!((status, &shown["count"]), (200, &json!(2)));
    assert_eq!(ids(&shown), ["a/Detected", "a/Resolved"]);
    assert_eq!(shown["report"], report("a", "Resolved", "u1"));
    assert_eq!(shown["receivedAt"], "1970-01-01T00:00:20Z");
    assert_eq!(desk.get("/api/v1/drifts/b").await.0, 404);

    let delete =
        || Request::builder().method(Method::DELETE).uri("/api/v1/drifts/a").body(Body::empty()).unwrap();
    assert_eq!(desk.call(delete()).await.0, 204);
    assert_eq!(desk.call(delete()).await.0, 204);
    assert_eq!(desk.ids("").await, ["ab/Detected"]);
    assert_eq!(desk.history.count(), 1);
}

#[tokio::test]
async fn filters_narrow_down() {
    let desk = Desk::new(Limits::default());
    desk.keep("aa1", "Detected", "u1", 100).await;
    desk.keep("aa1", "Resolved", "u1", 200).await;
    let mut other = report("bb%1", "Detected", "u2");
    other["spec"]["parent"] = json!({"kind": "Cluster", "name": "prod"});
    other["spec"]["child"] = json!({"kind": "ConfigMap", "namespace": "infra", "name": "settings"});
    other["spec"]["request"]["user"] = json!("system:serviceaccount:infra:eks");
    desk.history.insert(received(&other, 300)).await.unwrap();
    let all = ["bb%1/Detected", "aa1/Resolved", "aa1/Detected"];
    for (query, expected) in [
        ("", &all[..]),
        ("?phase=Resolved", &all[1..2]),
        ("?phase=Detected&parentKind=Deployment", &all[2..]),
        ("?childKind=ConfigMap", &all[..1]),
        ("?namespace=shop", &all[1..]),
        ("?namespace=infra", &all[..1]),
        ("?name=web", &all[1..]),
        ("?name=settings", &all[..1]),
        ("?user=system:serviceaccount:infra:eks", &all[..1]),
        ("?id=aa", &all[1..]),
        ("?id=bb%25", &all[..1]),
        ("?id=a1", &[]),
        ("?id=%25", &[]),
        ("?id=", &all[..]),
        ("?since=1970-01-01T00:03:20Z", &all[..2]),
        ("?until=1970-01-01T00:03:20Z", &all[2..]),
        ("?since=24h", &[]),
        ("?limit=3", &all[..]),
    ] {
        assert_eq!(desk.ids(query).await, expected, "{query}");
    }
    for (query, why) in [
        ("?phase=detected", "phase: must be"),
        ("?since=yesterday", "since: must be a time"),
        ("?limit=0", "limit: must be a number"),
        ("?limit=1001", "limit: must be a number"),
        ("?kind=Deployment", "unknown parameter \"kind\""),
        ("?name=a&name=b", "name is given more than once"),
        ("?continue=nonsense", "continue: is not one"),
    ] {
        let (status, answer) = desk.get(&format!("/api/v1/drifts{query}")).await;
        assert_eq!(status, 400, "{query}");
        assert!(answer["error"].as_str().unwrap().contains(why), "{answer}");
    }
}

#[tokio::test]
async fn pages_are_stable_while_more_arrives() {
    let desk = Desk::new(Limits::default());
    for number in 0..5 {
        desk.keep(&format!("d{number}"), "Detected", "u", number).await;
    }
    let mut seen = Vec::new();
    let mut more = String::new();
    loop {
        let (status, page) = desk.get(&format!("/api/v1/drifts?phase=Detected&limit=2{more}")).await;
        assert_eq!(status, 200, "{page}");
        seen.push(ids(&page));
        desk.keep(&format!("later{}", seen.len()), "Detected", "u", 10).await;
        match page["continue"].as_str() {
            Some(token) => more = format!("&continue={token}"),
            None => break,
        }
        let (status, other) = desk.get(&format!("/api/v1/drifts?phase=Resolved{more}")).await;
        assert_eq!((status, other["error"].as_str().unwrap().contains("another question")), (400, true));
    }
    let names = |names: &[&str]| names.iter().map(|name| format!("{name}/Detected")).collect::<Vec<_>>();
    assert_eq!(seen, [names(&["d4", "d3"]), names(&["d2", "d1"]), names(&["d0"])]);
}

#[tokio::test]
async fn pages_end_before_they_are_too_large() {
    let desk = Desk::new(Limits::default());
    for number in 0..11 {
        let mut large = report(&format!("d{number}"), "Detected", "u");
        large["spec"]["newObject"] = json!("x".repeat(1_000_000));
        desk.history.insert(received(&large, number)).await.unwrap();
    }
    let (_, page) = desk.get("/api/v1/drifts").await;
    assert_eq!(page["count"], 9, "8 MiB and what brings it above that");
    let (_, rest) =
        desk.get(&format!("/api/v1/drifts?continue={}", page["continue"].as_str().unwrap())).await;
    assert_eq!(ids(&rest), ["d1/Detected", "d0/Detected"]);
}

#[tokio::test]
async fn what_is_too_old_goes() {
    let retention = Some(Duration::from_secs(100));
    let desk = Desk::new(Limits { retention, ..Limits::default() });
    for number in 0..1200 {
        desk.keep(&format!("old{number}"), "Detected", "u", 10).await;
    }
    desk.keep("young", "Detected", "u", 900).await;
    assert_eq!(desk.history.expire(at(1000)).await, Ok(1200));
    assert_eq!(desk.ids("").await, ["young/Detected"], "just as old as may be");
    assert_eq!((desk.history.expire(at(1000)).await, desk.history.count()), (Ok(0), 1));
    assert_eq!(desk.history.expire(at(1001)).await, Ok(1));
    let for_ever = Desk::new(Limits::default());
    for_ever.keep("old", "Detected", "u", 0).await;
    assert_eq!(for_ever.history.expire(at(i64::from(u32::MAX))).await, Ok(0));
}

#[tokio::test]
async fn the_oldest_make_room() {
    let max = 1 << 20;
    let desk = Desk::new(Limits { max_size: Some(max), ..Limits::default() });
    for number in 0..300 {
        let mut report = report(&format!("d{number}"), "Detected", "u");
        report["spec"]["newObject"] = json!("x".repeat(20_000));
        assert_eq!(desk.post(&report).await.0, 200);
    }
    let bytes = std::fs::metadata(desk.folder.path().join("reports.db")).unwrap().len();
    assert!(bytes < max + (max / 4), "{bytes}");
    let kept = desk.ids("?limit=1000").await;
    assert_eq!(kept.len(), usize::try_from(desk.history.count()).unwrap());
    assert!((30..60).contains(&kept.len()), "{}", kept.len());
    let newest: Vec<String> = (0..kept.len()).map(|back| format!("d{}/Detected", 299 - back)).collect();
    assert_eq!(kept, newest);
}

#[tokio::test]
async fn a_full_disk_refuses_and_loses_nothing() {
    let desk = Desk::new(Limits::default());
    desk.keep("before", "Detected", "u", 0).await;
    let pages = |limit: i64| {
        let writer = desk.history.0.writer.lock().unwrap();
        let limit = if limit == 0 {
            writer.query_row("PRAGMA page_count", [], |row| row.get(0)).unwrap()
        } else {
            limit
        };
        writer
            .query_row(&format!("PRAGMA max_page_count = {limit}"), [], |row| row.get::<_, i64>(0))
            .unwrap();
    };
    pages(0);
    let mut large = report("large", "Detected", "u");
    large["spec"]["newObject"] = json!("x".repeat(100_000));
    let (status, answer) = desk.post(&large).await;
    assert_eq!((status, &answer["acknowledged"]), (503, &json!(false)));
    assert!(answer["error"].as_str().unwrap().contains("no room left: free space"), "{answer}");
    assert_eq!(desk.post(&report("before", "Detected", "u")).await.0, 200, "it is safe already");
    assert_eq!((desk.ids("").await, desk.history.count()), (vec!["before/Detected".to_owned()], 1));
    pages(1_000_000);
    assert_eq!(desk.post(&large).await.0, 200, "the sender tries again");
    assert_eq!(desk.ids("").await, ["large/Detected", "before/Detected"]);
}

#[tokio::test]
async fn a_locked_database_refuses_but_can_be_read() {
    let desk = Desk::new(Limits { patience: Duration::from_millis(20), ..Limits::default() });
    desk.keep("a", "Detected", "u", 0).await;
    let other = Connection::open(desk.folder.path().join("reports.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let (status, answer) = desk.post(&report("b", "Detected", "u")).await;
    assert_eq!((status, &answer["error"]), (503, &json!("the database is locked by another process")));
    assert_eq!(desk.ids("").await, ["a/Detected"]);
    other.execute_batch("COMMIT").unwrap();
    assert_eq!(desk.post(&report("b", "Detected", "u")).await.0, 200);
}

#[tokio::test]
async fn questions_need_what_reports_need() {
    let mut desk = Desk::new(Limits::default());
    let (token, key) = (desk.folder.path().join("token"), desk.folder.path().join("key"));
    std::fs::write(&token, "s3cr3t").unwrap();
    std::fs::write(&key, "0123456789abcdef").unwrap();
    desk.guard = Arc::new(Guard::Locked { token: Some(token), key: Some(key) });
    desk.keep("a", "Detected", "u", 0).await;
    let paths = ["/api/v1/drifts?limit=1", "/api/v1/drifts/a"];
    for path in paths {
        assert_eq!(desk.get(path).await.0, 401, "{path}");
        let bearer = Request::get(path).header("authorization", "Bearer s3cr3t");
        assert_eq!(desk.call(bearer.body(Body::empty()).unwrap()).await.0, 200, "{path}");
        let signed = |what: &str| {
            let key = Key::new(b"0123456789abcdef").unwrap().sign(Timestamp::now(), what.as_bytes());
            let request = Request::get(path).header("kausality-timestamp", key.timestamp);
            request.header("kausality-signature", key.signature).body(Body::empty()).unwrap()
        };
        assert_eq!(desk.call(signed(&format!("GET {path}"))).await.0, 200, "{path}");
        for other in [format!("DELETE {path}"), "GET /".to_owned(), String::new()] {
            assert_eq!(desk.call(signed(&other)).await.0, 401, "{other}");
        }
    }
    let delete =
        Request::builder().method(Method::DELETE).uri("/api/v1/drifts/a").body(Body::empty()).unwrap();
    assert_eq!(desk.call(delete).await.0, 401);
    for open in ["/healthz", "/readyz"] {
        assert_eq!(desk.get(open).await.0, 200, "{open}");
    }
}

#[tokio::test]
async fn what_was_kept_is_there_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("reports.db");
    let history = History::open(&path, Limits::default()).unwrap();
    history.insert(received(&report("a", "Detected", "u"), 0)).await.unwrap();
    // As after a kill: nothing is closed.
    std::mem::forget(history);
    let again = History::open(&path, Limits::default()).unwrap();
    assert_eq!(again.count(), 1);
    assert_eq!(again.insert(received(&report("a", "Detected", "u"), 9)).await, Ok(false));
}

#[test]
#[cfg(unix)]
fn nobody_else_reads_the_history() {
    use std::os::unix::fs::PermissionsExt as _;

    let desk = Desk::new(Limits::default());
    let files: Vec<_> = std::fs::read_dir(desk.folder.path()).unwrap().map(Result::unwrap).collect();
    assert!(files.len() > 1, "the file and what SQLite keeps beside it: {files:?}");
    for file in files {
        let mode = file.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{}", file.path().display());
    }
}

#[test]
fn other_databases_are_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("other.db");
    let open = || History::open(&path, Limits::default());
    Connection::open(&path).unwrap().execute_batch("CREATE TABLE t (c)").unwrap();
    assert!(matches!(open(), Err(Unusable::Foreign { .. })));
    std::fs::remove_file(&path).unwrap();
    drop(open().unwrap());
    Connection::open(&path).unwrap().execute_batch("PRAGMA user_version = 7").unwrap();
    assert!(matches!(open(), Err(Unusable::Newer { found: 7, .. })));
    std::fs::write(folder.path().join("text"), "x".repeat(5000)).unwrap();
    let text = History::open(&folder.path().join("text"), Limits::default());
    assert!(text.unwrap_err().to_string().contains("file is not a database"));
    assert!(History::open(&folder.path().join("no/such/folder/db"), Limits::default()).is_err());
}
