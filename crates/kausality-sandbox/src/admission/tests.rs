use std::net::SocketAddr;
use std::sync::Mutex;

use futures::FutureExt as _;
use http::{Method, Request};
use http_body_util::{BodyExt as _, Full};
use serde_json::json;

use super::*;
use crate::User;
use crate::sandbox::lock;

/// Records what it is asked, and answers with this.
struct Recorder {
    asked: Mutex<Vec<Value>>,
    answer: Box<dyn Fn(&Value) -> Verdict + Send + Sync>,
}

impl Recorder {
    fn new(answer: impl Fn(&Value) -> Verdict + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self { asked: Mutex::default(), answer: Box::new(answer) })
    }

    fn requests(&self) -> Vec<Value> {
        lock(&self.asked).iter().map(|review| review["request"].clone()).collect()
    }
}

impl Admission for Recorder {
    fn name(&self) -> &str {
        "drift.kausality.io"
    }

    fn review(&self, review: Bytes) -> BoxFuture<'_, Result<Verdict, String>> {
        let review: Value = serde_json::from_slice(&review).unwrap();
        let verdict = (self.answer)(&review["request"]);
        lock(&self.asked).push(review);
        async move { Ok(verdict) }.boxed()
    }
}

async fn send(sandbox: &Sandbox, method: Method, path: &str, kind: &str, body: &Value) -> (u16, Value) {
    let mut request = Request::builder().method(method).uri(path).header("content-type", kind);
    request = request.header("user-agent", "tests/1");
    let mut request = request.body(Bytes::from(body.to_string())).unwrap();
    request.extensions_mut().insert(User::admin("alice"));
    let response = sandbox.handle(request).await;
    let code = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (code, serde_json::from_slice(&body).unwrap())
}

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const MERGE: &str = "application/merge-patch+json";
const JSON: &str = "application/json";

fn deployment() -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {
        "selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}},
        "spec": {"containers": [{"name": "c", "image": "i:1"}]}}}})
}

fn annotate(key: &'static str) -> impl Fn(&Value) -> Verdict {
    move |request| {
        let object = &request["object"];
        let annotations = object["metadata"]["annotations"].as_object().cloned().unwrap_or_default();
        if object.is_null() || request["kind"]["kind"] == "Scale" || annotations.contains_key(key) {
            return Verdict::allow();
        }
        let mut annotations = annotations;
        annotations.insert(key.to_owned(), "x".into());
        let patch = json!([{"op": "add", "path": "/metadata/annotations", "value": annotations}]);
        Verdict { patch: Some(patch), ..Verdict::allow() }
    }
}

/// Facts 1 to 6.
#[tokio::test]
async fn reviews_are_those_of_a_real_api_server() {
    let sandbox = Sandbox::default();
    let recorder = Recorder::new(|_| Verdict::allow());
    sandbox.add_admission(recorder.clone());
    let web = format!("{DEPLOYMENTS}/web");
    send(&sandbox, Method::POST, DEPLOYMENTS, JSON, &deployment()).await;
    send(&sandbox, Method::PATCH, &web, MERGE, &json!({"spec": {"replicas": 3}})).await;
    let stale = json!({"spec": {"replicas": 9}, "status": {"observedGeneration": 1}});
    send(&sandbox, Method::PATCH, &format!("{web}/status"), MERGE, &stale).await;
    send(&sandbox, Method::PATCH, &format!("{web}/scale"), MERGE, &json!({"spec": {"replicas": 4}})).await;
    let map = json!({"metadata": {"generateName": "m-"}});
    send(&sandbox, Method::POST, "/api/v1/namespaces/default/configmaps", JSON, &map).await;
    send(&sandbox, Method::DELETE, &web, JSON, &json!({})).await;

    let [create, update, status, scale, generated, delete] = &recorder.requests()[..] else { panic!() };
    assert_eq!(create["operation"], "CREATE");
    assert_eq!(create["oldObject"], Value::Null);
    for absent in ["uid", "generation", "resourceVersion", "creationTimestamp"] {
        assert!(create["object"]["metadata"].get(absent).is_none(), "{absent}");
    }
    assert_eq!(create["object"]["metadata"]["managedFields"][0]["manager"], "tests");
    assert_eq!(create["object"]["spec"]["replicas"], 1, "defaults are set");
    assert_eq!(create["options"], json!({"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"}));
    assert_eq!(create["userInfo"]["username"], "alice");

    assert_eq!(update["object"]["metadata"]["generation"], 1, "the generation is the old one");
    assert_eq!(update["options"]["kind"], "UpdateOptions", "also of a patch");
    assert_eq!(
        (&update["object"]["spec"]["replicas"], &update["oldObject"]["spec"]["replicas"]),
        (&json!(3), &json!(1))
    );

    assert_eq!((&status["subResource"], &status["requestSubResource"]), (&json!("status"), &json!("status")));
    assert_eq!(status["object"]["spec"]["replicas"], 9, "the spec is the client's");

    assert_eq!(scale["kind"], json!({"group": "autoscaling", "version": "v1", "kind": "Scale"}));
    assert_eq!(scale["resource"]["resource"], "deployments");
    assert!(scale["object"]["metadata"].get("generation").is_none());

    assert!(generated.get("name").is_none(), "the name is not known yet");
    assert_eq!(
        (&delete["object"], delete["oldObject"]["spec"]["replicas"].clone()),
        (&Value::Null, json!(4))
    );
}

/// Fact 10.
#[tokio::test]
async fn annotations_of_a_status_update_stay_on_built_in_kinds_only() {
    let sandbox = Sandbox::default();
    let definition = json!({"metadata": {"name": "beds.garden.io"}, "spec": {"group": "garden.io",
        "scope": "Namespaced", "names": {"plural": "beds", "kind": "Bed"}, "versions": [{"name": "v1", "served": true,
        "storage": true, "subresources": {"status": {}}, "schema": {"openAPIV3Schema": {"type": "object",
        "x-kubernetes-preserve-unknown-fields": true}}}]}});
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    assert_eq!(send(&sandbox, Method::POST, definitions, JSON, &definition).await.0, 201);
    let beds = "/apis/garden.io/v1/namespaces/default/beds";
    let bed = json!({"apiVersion": "garden.io/v1", "kind": "Bed", "metadata": {"name": "web"}, "spec": {}});
    assert_eq!(send(&sandbox, Method::POST, beds, JSON, &bed).await.0, 201);
    send(&sandbox, Method::POST, DEPLOYMENTS, JSON, &deployment()).await;

    sandbox.add_admission(Recorder::new(annotate("kausality.io/x")));
    for (path, stays) in [(DEPLOYMENTS, true), (beds, false)] {
        let status = json!({"status": {"observedGeneration": 1}});
        let (code, object) =
            send(&sandbox, Method::PATCH, &format!("{path}/web/status"), MERGE, &status).await;
        assert_eq!((code, &object["status"]["observedGeneration"]), (200, &json!(1)));
        assert_eq!(object["metadata"]["annotations"].get("kausality.io/x").is_some(), stays, "{path}");
        assert_eq!(object["metadata"]["generation"], 1);
    }
}

#[tokio::test]
async fn who_was_asked_before_a_change_is_asked_again() {
    let sandbox = Sandbox::default();
    let first = Recorder::new(|_| Verdict::allow());
    let second = Recorder::new(annotate("x"));
    sandbox.add_admission(first.clone());
    sandbox.add_admission(second.clone());
    let (code, object) = send(&sandbox, Method::POST, DEPLOYMENTS, JSON, &deployment()).await;
    assert_eq!((code, &object["metadata"]["annotations"]["x"]), (201, &json!("x")));
    assert_eq!((first.requests().len(), second.requests().len()), (2, 1));
}

#[tokio::test]
async fn a_denial_is_told_and_audited() {
    let sandbox = Sandbox::default();
    sandbox.add_admission(Recorder::new(|_| Verdict {
        reason: "Forbidden".to_owned(),
        warnings: vec!["careful".to_owned()],
        audit: BTreeMap::from([
            ("decision".to_owned(), "deny".to_owned()),
            ("a/b".to_owned(), String::new()),
        ]),
        ..Verdict::deny(403, "it is drift")
    }));
    let (code, status) = send(&sandbox, Method::POST, DEPLOYMENTS, JSON, &deployment()).await;
    let message = "admission webhook \"drift.kausality.io\" denied the request: it is drift";
    assert_eq!((code, &status["message"], &status["reason"]), (403, &json!(message), &json!("Forbidden")));
    let entry = &sandbox.audit(0)[0];
    assert_eq!((entry.verb.as_str(), entry.user.as_str(), entry.code), ("create", "alice", 403));
    assert_eq!(
        entry.annotations,
        BTreeMap::from([("drift.kausality.io/decision".to_owned(), "deny".to_owned())])
    );
}

/// A webhook over HTTPS that answers with this, and its registration.
async fn webhook(answer: Value, policy: &str) -> (Value, tokio::task::JoinHandle<()>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address: SocketAddr = listener.local_addr().unwrap();
    let (ca, config) = crate::serve::tls(address).unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let task = tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let Ok(stream) = acceptor.accept(stream).await else { continue };
            let answer = answer.clone();
            let service = hyper::service::service_fn(move |request: Request<hyper::body::Incoming>| {
                let answer = answer.clone();
                async move {
                    let body = request.into_body().collect().await.unwrap().to_bytes();
                    let review: Value = serde_json::from_slice(&body).unwrap();
                    let mut response = answer;
                    response["uid"] = review["request"]["uid"].clone();
                    let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response});
                    Ok::<_, std::convert::Infallible>(http::Response::new(Full::new(Bytes::from(
                        review.to_string(),
                    ))))
                }
            });
            let io = hyper_util::rt::TokioIo::new(stream);
            tokio::spawn(hyper::server::conn::http1::Builder::new().serve_connection(io, service));
        }
    });
    use base64::Engine as _;
    let ca = base64::engine::general_purpose::STANDARD.encode(ca);
    let configuration = json!({"metadata": {"name": "w"}, "webhooks": [{"name": "a.example.com", "sideEffects": "None",
        "admissionReviewVersions": ["v1"], "failurePolicy": policy, "timeoutSeconds": 2,
        "clientConfig": {"url": format!("https://{address}/admit"), "caBundle": ca},
        "namespaceSelector": {"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system"]}]},
        "rules": [{"apiGroups": ["apps"], "apiVersions": ["*"], "resources": ["deployments"], "operations": ["CREATE"]}]}]});
    (configuration, task)
}

const MUTATING_PATH: &str = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";

#[tokio::test]
async fn webhooks_are_asked_over_https() {
    use base64::Engine as _;
    let sandbox = Sandbox::default();
    let patch = json!([{"op": "add", "path": "/metadata/labels", "value": {"by": "webhook"}}]).to_string();
    let patch = base64::engine::general_purpose::STANDARD.encode(patch);
    let answer =
        json!({"allowed": true, "patch": patch, "patchType": "JSONPatch", "auditAnnotations": {"k": "v"}});
    let (configuration, _task) = webhook(answer, "Fail").await;
    assert_eq!(send(&sandbox, Method::POST, MUTATING_PATH, JSON, &configuration).await.0, 201);

    let (code, object) = send(&sandbox, Method::POST, DEPLOYMENTS, JSON, &deployment()).await;
    assert_eq!((code, &object["metadata"]["labels"]["by"]), (201, &json!("webhook")), "{object}");
    assert_eq!(sandbox.audit(1)[0].annotations["a.example.com/k"], "v");

    let elsewhere = DEPLOYMENTS.replace("default", "kube-system");
    let (code, object) = send(&sandbox, Method::POST, &elsewhere, JSON, &deployment()).await;
    assert_eq!((code, object["metadata"].get("labels")), (201, None), "the namespace is not selected");
}

#[tokio::test]
async fn a_webhook_that_fails_is_ignored_only_if_it_says_so() {
    for (policy, expected) in [("Fail", 500), ("Ignore", 201)] {
        let sandbox = Sandbox::default();
        let (configuration, task) = webhook(json!({}), policy).await;
        task.abort();
        _ = task.await;
        send(&sandbox, Method::POST, MUTATING_PATH, JSON, &configuration).await;
        let (code, object) = send(&sandbox, Method::POST, DEPLOYMENTS, JSON, &deployment()).await;
        assert_eq!(code, expected, "{object}");
        if expected == 500 {
            let message = object["message"].as_str().unwrap();
            assert!(message.starts_with(
                "Internal error occurred: failed calling webhook \"a.example.com\": failed to call webhook: "
            ));
        }
    }
}

/// The webhook behind the conditions is gone: a write fails if it is asked.
#[tokio::test]
async fn conditions_say_whether_a_webhook_is_asked() {
    for (policy, conditions, expected) in [
        ("Fail", vec!["request.operation == 'CREATE'"], 500),
        ("Fail", vec!["request.operation == 'CREATE'", "object.spec.replicas > 100"], 201),
        ("Fail", vec!["object.spec.missing == 1"], 403),
        ("Ignore", vec!["object.spec.missing == 1"], 201),
        ("Fail", vec!["object.spec.missing == 1", "false"], 201),
        ("Fail", vec!["oldObject == null && request.userInfo.username == 'alice'"], 500),
    ] {
        let sandbox = Sandbox::default();
        let (mut configuration, task) = webhook(json!({}), policy).await;
        task.abort();
        _ = task.await;
        let named = conditions.iter().enumerate();
        configuration["webhooks"][0]["matchConditions"] =
            named.map(|(nth, it)| json!({"name": format!("c{nth}"), "expression": it})).collect();
        assert_eq!(send(&sandbox, Method::POST, MUTATING_PATH, JSON, &configuration).await.0, 201);
        let (code, object) = send(&sandbox, Method::POST, DEPLOYMENTS, JSON, &deployment()).await;
        assert_eq!(code, expected, "{policy} {conditions:?} {object}");
        if code == 403 {
            let message = "deployments.apps \"web\" is forbidden: expression 'object.spec.missing == 1' resulted in error: \
                no such key: missing";
            assert_eq!(object["message"], message);
        }
    }
    let (mut configuration, _task) = webhook(json!({}), "Fail").await;
    configuration["webhooks"][0]["matchConditions"] = json!([{"name": "c", "expression": "what"}]);
    let (code, status) = send(&Sandbox::default(), Method::POST, MUTATING_PATH, JSON, &configuration).await;
    assert_eq!((code, &status["reason"]), (422, &json!("Invalid")), "{status}");
}

#[test]
fn webhooks_are_made_once_for_each_version_of_a_configuration() {
    let known = super::rules::Known::default();
    let listed = |name: &str, it: &Arc<Value>| vec![((String::new(), name.to_owned()), Arc::clone(it))];
    let configuration = || Arc::new(json!({"webhooks": [{"name": "w"}]}));
    let (one, two) = (configuration(), configuration());
    let first = known.of("x", &listed("a", &one));
    assert!(Arc::ptr_eq(&first[0], &known.of("x", &listed("a", &one))[0]));
    known.of("y", &listed("a", &one));
    assert!(Arc::ptr_eq(&first[0], &known.of("x", &listed("a", &one))[0]), "of another collection");
    assert!(!Arc::ptr_eq(&first[0], &known.of("x", &listed("a", &two))[0]), "it has changed");
}

/// What admission adds to an object in annotations costs nothing of what a client's object costs.
#[tokio::test]
async fn an_object_is_read_once_even_if_it_gets_annotations() {
    use crate::types::decode::READ;
    let sandbox = Sandbox::default();
    let count = async |name: &str| {
        let mut deployment = deployment();
        deployment["metadata"]["name"] = name.into();
        let before = READ.get();
        let (code, created) = send(&sandbox, Method::POST, DEPLOYMENTS, JSON, &deployment).await;
        assert_eq!(code, 201, "{created}");
        (READ.get() - before, created["metadata"]["annotations"].clone())
    };
    let (alone, _) = count("alone").await;
    sandbox.add_admission(Recorder::new(annotate("noted")));
    assert_eq!(count("noted").await, (alone, json!({"noted": "x"})));
    // What is not text is no annotation.
    sandbox.add_admission(Recorder::new(|_| {
        let patch = json!([{"op": "add", "path": "/metadata/annotations/number", "value": 1}]);
        Verdict { patch: Some(patch), ..Verdict::allow() }
    }));
    let (code, failure) = send(&sandbox, Method::POST, DEPLOYMENTS, JSON, &deployment()).await;
    assert_eq!(code, 400, "{failure}");
}
