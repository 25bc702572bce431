//! The loop against an API server that refuses, forbids and forgets as it is told.

use std::sync::Arc;

use http::{Method, Request, Response};
use kube::client::Body;

use super::*;

const MUTATING: &str = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/kausality";
const VALIDATING: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/kausality";
const POLICIES: &str = "/apis/kausality.io/v1alpha1/kausalities";
const SECRET: &str = "/api/v1/namespaces/kausality-system/secrets/kausality-webhook-tls";
const SALT: &str = "/api/v1/namespaces/kausality-system/secrets/kausality-salt";
const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
const DISCOVERY: &str = "/apis";
const HOME: &str = "/api/v1/namespaces/kausality-system";

/// Objects by their paths, and what is done to those who ask.
#[derive(Default)]
struct Fake {
    objects: BTreeMap<String, Value>,
    /// Paths that begin so may not be touched.
    forbidden: Vec<&'static str>,
    /// A configuration with this in it is invalid.
    invalid: Option<&'static str>,
    /// What is served is not told.
    is_silent: bool,
    /// What is served is told once somebody says so, who hears that it is asked for.
    stalled: Option<[Arc<Notify>; 2]>,
}

type Shared = Arc<Mutex<Fake>>;

impl Fake {
    fn answer(&mut self, method: &Method, path: &str, query: &str, body: &Value) -> (u16, Value) {
        let status = |code: u16, message: &str| {
            (
                code,
                json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code,
                "reason": if code == 404 { "NotFound" } else { "Testing" }, "message": message}),
            )
        };
        if self.forbidden.iter().any(|prefix| path.starts_with(prefix)) {
            return status(403, &format!("{path} is forbidden"));
        }
        match *method {
            Method::GET if path == "/api" || path == DISCOVERY => match self.is_silent {
                true => status(503, "not now"),
                false => (200, discovery(path)),
            },
            Method::GET if [POLICIES, ROLES].contains(&path) => {
                let under = format!("{path}/");
                let items = self.objects.iter().filter(|(place, _)| place.starts_with(&under));
                let items: Vec<&Value> = items.map(|(_, object)| object).collect();
                (200, json!({"apiVersion": "v1", "kind": "List", "metadata": {}, "items": items}))
            }
            Method::GET => match self.objects.get(path) {
                Some(object) => (200, object.clone()),
                None => status(404, "not found"),
            },
            Method::DELETE => {
                self.objects.remove(path);
                status(200, "")
            }
            Method::PATCH if path.ends_with("/status") => {
                let place = path.trim_end_matches("/status");
                let object = self.objects.get_mut(place).unwrap();
                object["status"] = body["status"].clone();
                (200, object.clone())
            }
            Method::PATCH | Method::POST | Method::PUT => {
                let invalid = self.invalid.filter(|text| body.to_string().contains(text));
                if let Some(text) = invalid.filter(|_| path == MUTATING) {
                    return status(422, &format!("{text} is invalid"));
                }
                let name = body["metadata"]["name"].as_str().unwrap();
                let place = if *method == Method::POST { format!("{path}/{name}") } else { path.to_owned() };
                if !query.contains("dryRun=All") {
                    self.objects.insert(place, body.clone());
                }
                (200, body.clone())
            }
            _ => status(405, "what?"),
        }
    }

    /// The entries for changes of objects, with what happens without an answer.
    fn entries(&self) -> Vec<String> {
        let webhooks = self.objects.get(MUTATING).map(|found| found["webhooks"].as_array().cloned().unwrap());
        let webhooks = webhooks.unwrap_or_default();
        let gates = webhooks.iter().filter(|entry| entry["name"].to_string().contains(".drift."));
        gates.map(|entry| format!("{} {}", entry["name"], entry["failurePolicy"])).collect()
    }

    fn ready(&self, policy: &str) -> (String, String, String) {
        let found = &self.objects[&format!("{POLICIES}/{policy}")]["status"]["conditions"][0];
        let part = |field: &str| found[field].as_str().unwrap_or_default().to_owned();
        (part("status"), part("reason"), part("message"))
    }

    fn policy(&mut self, name: &str, resource: &str, mode: &str) {
        let policy = json!({"apiVersion": "kausality.io/v1alpha1", "kind": "Kausality",
            "metadata": {"name": name, "generation": 1},
            "spec": {"resources": [{"apiGroups": ["apps"], "resources": [resource]}], "mode": mode}});
        self.objects.insert(format!("{POLICIES}/{name}"), policy);
    }
}

fn discovery(path: &str) -> Value {
    let resource = |plural: &str, kind: &str| {
        json!({"resource": plural, "scope": "Namespaced", "verbs": ["get"], "singularResource": "",
            "responseKind": {"group": "apps", "version": "v1", "kind": kind}})
    };
    let items = match path {
        "/api" => json!([]),
        _ => json!([{"metadata": {"name": "apps"}, "versions": [{"version": "v1", "freshness": "Current",
            "resources": [resource("deployments", "Deployment"), resource("replicasets", "ReplicaSet")]}]}]),
    };
    json!({"apiVersion": "apidiscovery.k8s.io/v2", "kind": "APIGroupDiscoveryList", "metadata": {}, "items": items})
}

fn controller(fake: &Shared, certificates: Source) -> Controller {
    let fake = fake.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        let fake = fake.clone();
        async move {
            let (head, body) = request.into_parts();
            let body = body.collect_bytes().await.unwrap();
            let body = serde_json::from_slice(&body).unwrap_or_default();
            let (path, query) = (head.uri.path(), head.uri.query().unwrap_or_default());
            let stalled = fake.lock().unwrap().stalled.clone().filter(|_| path == DISCOVERY);
            if let Some([asked, go]) = stalled {
                asked.notify_one();
                go.notified().await;
            }
            let (code, answer) = fake.lock().unwrap().answer(&head.method, path, query, &body);
            let answer = Response::builder().status(code).body(Body::from(answer.to_string().into_bytes()));
            Ok::<_, std::convert::Infallible>(answer.unwrap())
        }
    });
    let settings = Settings {
        namespace: "kausality-system".to_owned(),
        target: Target::Url("https://webhook".to_owned()),
        secret: "kausality-webhook-tls".to_owned(),
        certificates,
        anchor: None,
    };
    Controller::new(Client::new(service, "default"), settings, Metrics::default())
}

fn external() -> Source {
    Source::External { settling: SignedDuration::ZERO }
}

fn secret() -> Value {
    let authority =
        STANDARD.encode(rcgen::generate_simple_self_signed(["ca".to_owned()]).unwrap().cert.pem());
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "kausality-webhook-tls"},
        "data": {"ca.crt": authority}})
}

fn two_policies() -> Shared {
    let mut fake = Fake::default();
    fake.policy("a", "deployments", "enforce");
    fake.policy("b", "replicasets", "enforce");
    fake.objects.insert(SECRET.to_owned(), secret());
    fake.objects.insert(HOME.to_owned(), home(Value::Null));
    Arc::new(Mutex::new(fake))
}

/// The namespace of Kausality.
fn home(deleted: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": "kausality-system", "uid": "home-1", "deletionTimestamp": deleted}})
}

const BOTH: [&str; 2] = [r#""a.drift.kausality.io" "Fail""#, r#""b.drift.kausality.io" "Fail""#];

/// One policy that the API server does not take keeps what it had, and no other suffers.
#[tokio::test]
async fn a_refused_policy_is_found_and_the_others_go_ahead() {
    let fake = two_policies();
    let controller = controller(&fake, external());
    controller.reconcile().await.unwrap();
    assert_eq!(fake.lock().unwrap().entries(), BOTH);
    {
        let mut fake = fake.lock().unwrap();
        fake.policy("a", "replicasets", "log");
        fake.policy("b", "deployments", "log");
        fake.policy("c", "deployments", "log");
        // Nothing that was there before, nothing of any other.
        fake.invalid = Some("c.drift.kausality.io");
    }
    let failure = controller.reconcile().await.unwrap_err().to_string();
    assert!(failure.contains("policy c: c.drift.kausality.io is invalid"), "{failure}");
    let fake = fake.lock().unwrap();
    assert_eq!(fake.entries(), [r#""a.drift.kausality.io" "Ignore""#, r#""b.drift.kausality.io" "Ignore""#]);
    assert_eq!(fake.ready("a").1, "Configured");
    let (status, reason, message) = fake.ready("c");
    assert_eq!((&*status, &*reason), ("False", "ConfigurationFailed"));
    assert!(message.ends_with("c.drift.kausality.io is invalid"), "{message}");
}

/// Whoever relaxes or deletes a policy need not wait for a certificate, for rights to it, or for discovery.
#[tokio::test]
async fn policies_are_relaxed_without_a_certificate_and_without_discovery() {
    for (what, harm) in [
        ("no Secret", (|fake: &mut Fake| drop(fake.objects.remove(SECRET))) as fn(&mut Fake)),
        ("no right to it", |fake: &mut Fake| fake.forbidden.push(SECRET)),
        ("no discovery", |fake: &mut Fake| fake.is_silent = true),
    ] {
        let fake = two_policies();
        let controller = controller(&fake, external());
        controller.reconcile().await.unwrap();
        let bundle = |fake: &Fake| fake.objects[MUTATING]["webhooks"][0]["clientConfig"].clone();
        let before = bundle(&fake.lock().unwrap());
        {
            let mut fake = fake.lock().unwrap();
            fake.policy("a", "deployments", "log");
            fake.objects.remove(&format!("{POLICIES}/b"));
            harm(&mut fake);
        }
        controller.reconcile().await.unwrap_err();
        let fake = fake.lock().unwrap();
        assert_eq!(fake.entries(), [r#""a.drift.kausality.io" "Ignore""#], "{what}");
        assert_eq!(bundle(&fake), before, "{what}");
        assert_eq!(fake.ready("a").0, "False", "{what}");
    }
}

/// What was on its way when the namespace began to go does not bring the registration back.
#[tokio::test]
async fn a_registration_that_was_taken_away_meanwhile_is_not_written() {
    let fake = two_policies();
    let controller = controller(&fake, external());
    let [asked, go] = [(); 2].map(|()| Arc::new(Notify::new()));
    fake.lock().unwrap().stalled = Some([asked.clone(), go.clone()]);
    let leave = async {
        asked.notified().await;
        controller.leave().await.unwrap();
        fake.lock().unwrap().stalled = None;
        go.notify_one();
    };
    let (reconciled, ()) = tokio::join!(controller.reconcile(), leave);
    reconciled.unwrap();
    let written = |fake: &Shared| fake.lock().unwrap().objects.contains_key(MUTATING);
    assert!(!written(&fake));
    controller.reconcile().await.unwrap();
    assert!(written(&fake), "the namespace is there after all");
}

/// All replicas have one salt, nobody can guess it, and it is made once.
#[tokio::test]
async fn the_salt_is_random_and_made_once_and_nothing_waits_for_it() {
    let made = async || {
        let fake = two_policies();
        controller(&fake, external()).reconcile().await.unwrap();
        let first = fake.lock().unwrap().objects[SALT].clone();
        controller(&fake, external()).reconcile().await.unwrap();
        assert_eq!(fake.lock().unwrap().objects[SALT], first);
        STANDARD.decode(first["data"]["salt"].as_str().unwrap()).unwrap()
    };
    let (one, other) = (made().await, made().await);
    assert_eq!((one.len(), other.len()), (32, 32));
    assert_ne!(one, other);

    let fake = two_policies();
    controller(&fake, external()).reconcile().await.unwrap();
    fake.lock().unwrap().objects.get_mut(SALT).unwrap()["data"] = json!({"salt": "", "other": "eA=="});
    controller(&fake, external()).reconcile().await.unwrap();
    let filled = fake.lock().unwrap().objects[SALT]["data"].clone();
    assert_eq!(STANDARD.decode(filled["salt"].as_str().unwrap()).unwrap().len(), 32);
    assert_eq!(filled["other"], "eA==");

    let fake = two_policies();
    fake.lock().unwrap().forbidden.push(SALT);
    controller(&fake, external()).reconcile().await.unwrap();
    assert_eq!(fake.lock().unwrap().entries(), BOTH);
}

/// Where nobody was ever trusted, nothing is registered.
#[tokio::test]
async fn nothing_is_registered_that_nobody_trusts() {
    let fake = two_policies();
    fake.lock().unwrap().objects.remove(SECRET);
    controller(&fake, external()).reconcile().await.unwrap_err();
    let fake = fake.lock().unwrap();
    assert!(!fake.objects.contains_key(MUTATING) && !fake.objects.contains_key(VALIDATING));
    assert_eq!(fake.ready("a").1, "NoCertificate");
}

/// A right that is missing is named where people look: in the policies.
#[tokio::test]
async fn whatever_is_forbidden_is_said_in_the_conditions() {
    for path in [MUTATING, ROLES, SECRET, VALIDATING] {
        let fake = two_policies();
        fake.lock().unwrap().forbidden.push(path);
        let failure = controller(&fake, external()).reconcile().await.unwrap_err().to_string();
        assert!(failure.contains("is forbidden"), "{failure}");
        let fake = fake.lock().unwrap();
        for policy in ["a", "b"] {
            let (status, reason, message) = fake.ready(policy);
            assert_eq!((&*status, &*reason), ("False", "ConfigurationFailed"), "{path}");
            assert!(message.contains(path) && message.contains("is forbidden"), "{path}: {message}");
            assert_eq!(message.matches("is forbidden").count(), 1, "{message}");
        }
    }
}

/// What somebody else has written into our Secret does not stay there.
#[tokio::test]
async fn a_foreign_bundle_in_the_secret_is_written_over() {
    let fake = two_policies();
    fake.lock().unwrap().objects.remove(SECRET);
    let hour = SignedDuration::from_hours(1);
    let lifetimes =
        crate::certificates::Lifetimes { authority: hour * 300, serving: hour * 90, settling: hour };
    let own = Source::Own(Wanted { hosts: vec!["webhook".to_owned()], lifetimes });
    let controller = controller(&fake, own);
    controller.reconcile().await.unwrap();
    let before = fake.lock().unwrap().objects[SECRET].clone();
    fake.lock().unwrap().objects.get_mut(SECRET).unwrap()["data"]["ca.crt"] =
        secret()["data"]["ca.crt"].clone();
    controller.reconcile().await.unwrap();
    assert_eq!(fake.lock().unwrap().objects[SECRET]["data"], before["data"]);
}

/// Who would answer is being deleted: nobody is asked any more, and nothing is put back.
#[tokio::test]
async fn the_registration_goes_with_the_namespace() {
    for (what, gone) in [("being deleted", false), ("gone", true)] {
        let fake = two_policies();
        let controller = controller(&fake, external());
        controller.reconcile().await.unwrap();
        let registered = |fake: &Fake| [MUTATING, VALIDATING].map(|path| fake.objects.contains_key(path));
        assert_eq!(registered(&fake.lock().unwrap()), [true; 2]);
        match gone {
            false => {
                fake.lock().unwrap().objects.insert(HOME.to_owned(), home("2026-01-24T10:30:00Z".into()))
            }
            true => fake.lock().unwrap().objects.remove(HOME),
        };
        for _ in 0..2 {
            controller.reconcile().await.unwrap();
            assert_eq!(registered(&fake.lock().unwrap()), [false; 2], "{what}");
        }
        fake.lock().unwrap().objects.insert(HOME.to_owned(), home(Value::Null));
        controller.reconcile().await.unwrap();
        assert_eq!(registered(&fake.lock().unwrap()), [true; 2]);
    }
}
