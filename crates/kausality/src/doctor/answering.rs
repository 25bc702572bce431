//! Whether the webhook answers the API server.
//!
//! No Pod is called from here: the API server is asked to do something without doing it (a dry run), which it has to ask
//! the webhook about. What it says then shows whether the webhook was there.

use std::time::Duration;

use kausality_api::{
    API_VERSION,
    annotation::{Suffix, TRACE},
    selector::Labels,
};
use kausality_cluster::registration::{is_of_decisions, is_of_inputs};
use serde_json::{Value, json};

use super::{
    CONFIGURATION, WEBHOOK,
    finding::{Findings, Verdict},
    registration::{OF_POLICIES, entries, selects},
    server::{Refusal, Seen, list, text, texts},
};

/// What the objects of a dry run would be called.
const NAME: &str = "kausality-doctor-";

/// Something to try.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Probe {
    /// Where to send it.
    pub(super) path: String,
    /// What to send.
    pub(super) object: Value,
    /// What it is, for people.
    what: String,
    sign: Sign,
}

/// What shows that the webhook was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sign {
    /// It has put a trace onto the object.
    Trace,
    /// It has refused the object, which makes no sense.
    Refusal,
}

/// What became of a probe.
#[derive(Clone, Debug)]
pub(super) struct Tried {
    pub(super) probe: Probe,
    pub(super) answer: Result<Value, Refusal>,
    pub(super) took: Duration,
}

/// Kinds that can be written without knowing anything about the cluster.
const SAMPLES: [(&str, &str, &str); 6] = [
    ("", "configmaps", "ConfigMap"),
    ("", "serviceaccounts", "ServiceAccount"),
    ("apps", "deployments", "Deployment"),
    ("apps", "replicasets", "ReplicaSet"),
    ("apps", "daemonsets", "DaemonSet"),
    ("batch", "jobs", "Job"),
];

/// Something that the API server has to ask the webhook about. `namespaces` are those of the cluster, with their labels.
pub(super) fn plan(mutating: &Seen, validating: &Seen, namespaces: &[(String, Labels)]) -> Option<Probe> {
    // Those of decisions about drifts and of inputs answer with nothing that could be seen.
    let is_silent = |name: &str| is_of_decisions(name) || is_of_inputs(name);
    let telling = || entries(mutating).iter().filter(|entry| !is_silent(text(entry, "/name")));
    let writes =
        SAMPLES.iter().find_map(|sample| telling().find_map(|entry| write(entry, *sample, namespaces)));
    writes.or_else(|| {
        let is_asked = entries(validating).iter().any(|entry| text(entry, "/name") == OF_POLICIES);
        is_asked.then(senseless)
    })
}

fn write(
    entry: &Value,
    (group, plural, kind): (&str, &str, &str),
    namespaces: &[(String, Labels)],
) -> Option<Probe> {
    let has =
        |rule: &Value, field: &str, wanted: &str| texts(rule, field).any(|it| it == wanted || it == "*");
    let is_named = list(entry, "/rules").iter().any(|rule| {
        has(rule, "/apiGroups", group)
            && has(rule, "/apiVersions", "v1")
            && has(rule, "/resources", plural)
            && has(rule, "/operations", "CREATE")
    });
    if !is_named {
        return None;
    }
    let labels = labels(&entry["objectSelector"])?;
    let mut meant = namespaces.iter().filter(|(_, labels)| selects(&entry["namespaceSelector"], labels));
    let first = meant.next()?;
    // Nobody minds that one.
    let (namespace, _) =
        std::iter::once(first).chain(meant).find(|(name, _)| name == "default").unwrap_or(first);
    let (prefix, api_version) = match group {
        "" => ("/api/v1".to_owned(), "v1".to_owned()),
        group => (format!("/apis/{group}/v1"), format!("{group}/v1")),
    };
    let mut object = json!({"apiVersion": api_version, "kind": kind,
        "metadata": {"generateName": NAME, "namespace": namespace, "labels": labels}});
    if !group.is_empty() {
        let named = json!({"app": "kausality-doctor"});
        let mut pod = json!({"containers": [{"name": "none", "image": "none"}]});
        if plural == "jobs" {
            pod["restartPolicy"] = "Never".into();
            object["spec"] = json!({"template": {"spec": pod}});
        } else {
            object["spec"] = json!({"selector": {"matchLabels": named}, "template": {"metadata": {"labels": named}, "spec": pod}});
        }
    }
    Some(Probe {
        path: format!("{prefix}/namespaces/{namespace}/{plural}?dryRun=All&fieldManager=kausality-doctor"),
        object,
        what: format!("a dry run of a {kind} in namespace {namespace}"),
        sign: Sign::Trace,
    })
}

/// Labels that a selector means, where some can be made up.
fn labels(selector: &Value) -> Option<Labels> {
    let labels: Labels = serde_json::from_value(selector["matchLabels"].clone()).unwrap_or_default();
    selects(selector, &labels).then_some(labels)
}

/// A policy that the schema lets pass and the webhook does not: no label has such a name.
fn senseless() -> Probe {
    Probe {
        path: "/apis/kausality.io/v1alpha1/kausalities?dryRun=All&fieldManager=kausality-doctor".to_owned(),
        object: json!({"apiVersion": API_VERSION, "kind": "Kausality", "metadata": {"generateName": NAME},
            "spec": {"mode": "log", "resources": [{"apiGroups": ["apps"], "resources": ["deployments"]}],
                "objectSelector": {"matchLabels": {"no name of a label": "x"}}}}),
        what: "a dry run of a policy that makes no sense".to_owned(),
        sign: Sign::Refusal,
    }
}

/// How many Pods of the webhook are ready behind its Service.
pub(super) fn ready(slices: &Seen<Vec<Value>>) -> Seen<usize> {
    slices.clone().map(|slices| {
        let endpoints = slices.iter().flat_map(|slice| list(slice, "/endpoints"));
        // Not to know counts as ready, by the definition of the field.
        endpoints
            .filter(|endpoint| endpoint.pointer("/conditions/ready") != Some(&Value::Bool(false)))
            .count()
    })
}

/// Judges what became of the probe, or else what the Service says.
pub(super) fn judge(
    namespace: &str,
    tried: Option<&Tried>,
    slices: &Seen<Vec<Value>>,
    is_local: bool,
) -> Verdict {
    let ready = ready(slices);
    let behind = match &ready {
        Seen::Found(count) if !is_local => {
            format!("; {count} Pods are ready behind Service {namespace}/{WEBHOOK}")
        }
        _ => String::new(),
    };
    let todo = if is_local {
        format!(
            "start it again, or delete mutatingwebhookconfiguration/{CONFIGURATION}. If it runs as the user that you are, that is why: \
            its own writes pass; ask as somebody else (--as)"
        )
    } else {
        format!(
            "kubectl -n {namespace} get endpointslices,pods; can the API server reach port 9443 of the Pods (NetworkPolicy, firewall)?"
        )
    };
    let mut findings = Findings::default();
    let Some(Tried { probe, answer, took }) = tried else {
        return match ready {
            _ if is_local => Verdict::Skipped("nothing that is registered can be tried".to_owned()),
            Seen::Found(0) => {
                findings.fail(format!("no Pod is ready behind Service {namespace}/{WEBHOOK}"), todo);
                findings.or_fine("")
            }
            Seen::Found(count) => Verdict::Fine(format!(
                "{count} Pods are ready behind Service {namespace}/{WEBHOOK}; there is nothing to ask them about"
            )),
            Seen::Absent | Seen::Hidden(_) => {
                Verdict::Skipped("nothing that is registered can be tried".to_owned())
            }
        };
    };
    let what = &probe.what;
    let asked = format!("it answered {what} in {} ms", took.as_millis());
    match (answer, probe.sign) {
        (Ok(object), Sign::Trace)
            if !text(object, &pointer(&Suffix::of_object(object).key(TRACE))).is_empty() =>
        {
            Verdict::Fine(asked)
        }
        (Ok(_), _) => {
            findings.fail(
                format!("the API server did {what} without the webhook, which did not answer{behind}"),
                todo,
            );
            findings.or_fine("")
        }
        (Err(refusal), _) if refusal.text().contains("failed calling webhook") => {
            let todo = if refusal.text().contains("x509") {
                "the API server reaches the webhook, and does not trust its certificate: see the check certificates, \
                and give webhooks a minute to serve what is in the Secret"
                    .to_owned()
            } else {
                todo
            };
            findings.fail(
                format!("the API server did not reach the webhook in {what}: {}{behind}", refusal.text()),
                todo,
            );
            findings.or_fine("")
        }
        (Err(refusal), Sign::Refusal) if refusal.text().contains(OF_POLICIES) => Verdict::Fine(asked),
        (Err(refusal), Sign::Trace) if refusal.text().contains("kausality:") => Verdict::Fine(asked),
        (Err(refusal), _) => Verdict::Skipped(format!("{what} is refused: {}{behind}", refusal.text())),
    }
}

fn pointer(annotation: &str) -> String {
    format!("/metadata/annotations/{}", annotation.replace('~', "~0").replace('/', "~1"))
}

#[cfg(test)]
mod tests;
