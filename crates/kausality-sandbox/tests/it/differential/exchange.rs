//! Sending one request to both sides.

use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

/// A code and a body.
pub(crate) type Answer = (u16, Value);

/// Sends a request of a program:
///
/// - `do`: method and path,
/// - `body`: an object; or a text, if it is no JSON,
/// - `edit`: a merge patch; the body is the object as it is, changed so,
/// - `type`: the content type,
/// - `as`: who is impersonated, with the right to do all,
/// - `fill`: how many letters `$fill` stands for.
///
/// `$uid` and `$version` stand for those of the object.
pub(crate) async fn send(client: &Client, request: &Value) -> Answer {
    let (method, path) = request["do"].as_str().unwrap().split_once(' ').unwrap();
    let mut body = request["body"].clone();
    if let Some(edit) = request.get("edit") {
        body = get(client, path).await.1;
        json_patch::merge(&mut body, edit);
    }
    let mut body = match body {
        Value::Null => String::new(),
        Value::String(text) => text,
        body => body.to_string(),
    };
    for (place, key) in [("$uid", "uid"), ("$version", "resourceVersion")] {
        if body.contains(place) {
            let (_, live) = get(client, path).await;
            body = body.replace(place, live["metadata"][key].as_str().unwrap_or("1"));
        }
    }
    if let Some(letters) = request["fill"].as_u64() {
        body = body.replace("$fill", &"a".repeat(usize::try_from(letters).unwrap()));
    }
    let mut sent = http::Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", request["type"].as_str().unwrap_or("application/json"))
        .header("user-agent", "dif/1");
    if let Some(user) = request["as"].as_str() {
        sent = sent.header("impersonate-user", user).header("impersonate-group", "system:masters");
    }
    let sent = sent.body(Body::from(body.into_bytes())).unwrap();
    let response = client.send(sent).await.unwrap_or_else(|error| panic!("{request}: {error}"));
    let code = response.status().as_u16();
    let body = response.into_body().collect_bytes().await.unwrap();
    (code, serde_json::from_slice(&body).unwrap_or_else(|_| String::from_utf8_lossy(&body).into()))
}

/// The object that a path is about, whatever part of it the path names.
pub(crate) async fn get(client: &Client, path: &str) -> Answer {
    let path = object_path(path);
    Box::pin(send(client, &json!({"do": format!("GET {path}")}))).await
}

/// Without parameters and subresources.
pub(crate) fn object_path(path: &str) -> &str {
    let path = path.split('?').next().unwrap_or(path);
    let subresources = ["/status", "/scale"];
    subresources.iter().find_map(|part| path.strip_suffix(part)).unwrap_or(path)
}
