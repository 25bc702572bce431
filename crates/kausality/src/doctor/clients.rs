//! Whether anybody who reaches the webhook can post reviews, or only the API server.
//!
//! An empty review is posted without credentials to where the webhook is registered: to its URL, or through the API server to
//! its Service. A webhook that takes it from strangers says that it is no review; one that does not refuses them first.

use serde_json::{Value, json};

use super::{
    WEBHOOK,
    finding::{Findings, Verdict},
    registration::entries,
    server::{Refusal, Seen, Server, list, number, text, texts},
};

/// The flags that have the webhook ask who posts.
const FLAGS: [&str; 2] = ["--client-ca", "--client-token-file"];

/// Where a review can be posted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Door {
    /// At the webhook itself.
    Url(String),
    /// At this path of the API server, which passes it on to the Service.
    Proxy(String),
}

/// What a stranger was told.
#[derive(Clone, Debug)]
pub(super) struct Knocked {
    pub(super) door: Door,
    pub(super) answer: Result<Value, Refusal>,
}

/// Where the webhook is registered, if it is.
fn door(configurations: [&Seen; 2]) -> Option<Door> {
    let entry = configurations.into_iter().flat_map(entries).next()?;
    let client = &entry["clientConfig"];
    match text(client, "/url") {
        "" => {
            let (namespace, name) = (text(client, "/service/namespace"), text(client, "/service/name"));
            let port = number(client, "/service/port").unwrap_or(443);
            let path = text(client, "/service/path");
            Some(Door::Proxy(format!(
                "/api/v1/namespaces/{namespace}/services/https:{name}:{port}/proxy{path}"
            )))
        }
        url => Some(Door::Url(url.to_owned())),
    }
}

/// Posts an empty review, without credentials.
pub(super) async fn knock(server: &Server, configurations: [&Seen; 2]) -> Option<Knocked> {
    let door = door(configurations)?;
    let review = json!({});
    let answer = match &door {
        Door::Proxy(path) => server.post(path, &review).await,
        Door::Url(url) => match Server::stranger(url) {
            Ok((stranger, path)) => stranger.post(&path, &review).await,
            Err(error) => Err(Refusal::Silent(format!("{error:#}"))),
        },
    };
    Some(Knocked { door, answer })
}

/// Judges what a stranger was told, or else the flags of the webhook.
pub(super) fn judge(namespace: &str, knocked: Option<&Knocked>, webhook: &Seen) -> Verdict {
    let untold = match knocked {
        None => "the webhook is not registered".to_owned(),
        Some(Knocked { door, answer }) => match answer {
            Err(Refusal::Status { code: 401 | 403, message }) if message.contains("kausality:") => {
                return Verdict::Fine("reviews of anybody but the API server are refused".to_owned());
            }
            Err(Refusal::Status { code: 400, message }) if message.contains("kausality:") => {
                return open(namespace, Some(door));
            }
            Ok(_) => return open(namespace, Some(door)),
            Err(refusal) => format!("it could not be tried: {}", refusal.text()),
        },
    };
    let Some(found) = webhook.found() else {
        return Verdict::Skipped(untold);
    };
    let containers = list(found, "/spec/template/spec/containers");
    let arguments: Vec<&str> = containers.iter().flat_map(|container| texts(container, "/args")).collect();
    let is_given = |flag: &&str| arguments.iter().any(|argument| argument.starts_with(flag));
    match FLAGS.iter().find(|flag| is_given(flag)) {
        Some(flag) => {
            Verdict::Fine(format!("{WEBHOOK} asks who posts reviews, by its flag {flag} ({untold})"))
        }
        None => open(namespace, None),
    }
}

/// Anybody can post reviews; which is no matter where nobody else is.
fn open(namespace: &str, door: Option<&Door>) -> Verdict {
    if let Some(Door::Url(url)) = door
        && is_loopback(url)
    {
        return Verdict::Fine(format!("{url} is reached from its own machine only"));
    }
    let mut findings = Findings::default();
    findings.warn(
        "the webhook takes reviews from anybody who reaches its port, not only from the API server",
        format!(
            "give API servers a client certificate or a token for it, and set webhook.clientAuthentication of the chart \
            (docs/install.md, Client authentication); where you cannot configure them, let networkPolicy.apiServer.from name \
            who may reach namespace {namespace}"
        ),
    );
    findings.or_fine("")
}

fn is_loopback(url: &str) -> bool {
    let host = url.parse::<http::Uri>().ok().and_then(|url| url.host().map(ToOwned::to_owned));
    host.is_some_and(|host| {
        host == "localhost"
            || host
                .trim_matches(['[', ']'])
                .parse::<std::net::IpAddr>()
                .is_ok_and(|address| address.is_loopback())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Outcome;

    fn service() -> Seen {
        Seen::Found(json!({"webhooks": [{"name": "a.drift.kausality.io", "clientConfig": {"service":
            {"namespace": "there", "name": "kausality-webhook", "path": "/admit"}}}]}))
    }

    fn url(url: &str) -> Seen {
        Seen::Found(json!({"webhooks": [{"clientConfig": {"url": url}}]}))
    }

    fn status(code: u16, message: &str) -> Result<Value, Refusal> {
        Err(Refusal::Status { code, message: message.to_owned() })
    }

    fn run(arguments: &[&str]) -> Seen {
        Seen::Found(json!({"spec": {"template": {"spec": {"containers": [{"args": arguments}]}}}}))
    }

    #[test]
    fn a_review_is_posted_where_the_webhook_is_registered() {
        let path = "/api/v1/namespaces/there/services/https:kausality-webhook:443/proxy/admit";
        assert_eq!(door([&service(), &Seen::Absent]), Some(Door::Proxy(path.to_owned())));
        let at = "https://10.0.0.1:9443/admit";
        assert_eq!(door([&Seen::Absent, &url(at)]), Some(Door::Url(at.to_owned())));
        assert_eq!(door([&Seen::Absent, &Seen::Absent]), None);
    }

    #[test]
    fn what_a_stranger_is_told_counts_and_then_the_flags() {
        let no = || status(401, "kausality: reviews are taken from the API server alone");
        let other = || status(403, "kausality: the client certificate is not for");
        let open = || status(400, "kausality: not an AdmissionReview");
        let forbidden = || status(403, "services \"https:kausality-webhook:443\" is forbidden");
        let gone = || status(503, "no endpoints available");
        let (bare, guarded) = (run(&["webhook"]), run(&["webhook", "--client-ca=/etc/ca.crt"]));
        let token = run(&["webhook", "--client-token-file=/etc/token"]);
        for (answer, webhook, outcome, said) in [
            (no(), &bare, Outcome::Ok, "refused"),
            (other(), &bare, Outcome::Ok, "refused"),
            (open(), &guarded, Outcome::Warning, "takes reviews from anybody"),
            (Ok(json!({})), &guarded, Outcome::Warning, "takes reviews from anybody"),
            (forbidden(), &guarded, Outcome::Ok, "by its flag --client-ca (it could not be tried"),
            (gone(), &token, Outcome::Ok, "--client-token-file"),
            (forbidden(), &bare, Outcome::Warning, "takes reviews from anybody"),
            (forbidden(), &Seen::Absent, Outcome::Skipped, "is forbidden"),
        ] {
            let door = Door::Proxy(String::new());
            let verdict = judge("there", Some(&Knocked { door, answer }), webhook);
            assert_eq!(verdict.outcome(), outcome, "{verdict:?}");
            assert!(verdict.summary().contains(said), "{said}: {verdict:?}");
        }
        assert_eq!(judge("there", None, &Seen::Absent).outcome(), Outcome::Skipped);
        assert_eq!(judge("there", None, &bare).outcome(), Outcome::Warning);
    }

    #[test]
    fn nobody_else_reaches_loopback() {
        for (url, outcome) in [
            ("https://127.0.0.1:9443/admit", Outcome::Ok),
            ("https://localhost:9443/admit", Outcome::Ok),
            ("https://[::1]:9443/admit", Outcome::Ok),
            ("https://0.0.0.0:9443/admit", Outcome::Warning),
            ("https://example.com/admit", Outcome::Warning),
        ] {
            let answer = status(400, "kausality: not an AdmissionReview");
            let knocked = Knocked { door: Door::Url(url.to_owned()), answer };
            assert_eq!(judge("there", Some(&knocked), &Seen::Absent).outcome(), outcome, "{url}");
        }
    }
}
