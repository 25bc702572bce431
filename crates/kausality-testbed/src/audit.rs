//! The audit log: every call that the API server answered.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{ErrorKind, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde::Deserialize;
use serde_json::Value;

/// What the API server writes: bodies of writes, but not of reads, and managedFields among them.
///
/// RequestReceived is left out, so that one call is one event, except for a watch: ResponseStarted when it begins, and
/// ResponseComplete when it ends.
pub(crate) const POLICY: &str = r#"{
  "apiVersion": "audit.k8s.io/v1",
  "kind": "Policy",
  "omitStages": ["RequestReceived"],
  "omitManagedFields": false,
  "rules": [
    { "level": "Metadata", "verbs": ["get", "list", "watch"] },
    { "level": "RequestResponse" }
  ]
}
"#;

/// One call of the API, or one stage of a watch.
#[derive(Debug, Clone, PartialEq)]
pub struct AuditEvent {
    /// ResponseComplete, or ResponseStarted where a watch begins.
    pub stage: String,
    /// `create`, `update`, `patch`, `delete`, `deletecollection`, `get`, `list` or `watch`.
    pub verb: String,
    /// Who acted: the impersonated user, if there is one.
    pub user: String,
    /// The groups of that user.
    pub groups: Vec<String>,
    /// What the client called itself. Empty if it did not.
    pub user_agent: String,
    /// The path with its query, as in `/api/v1/namespaces?limit=500`.
    pub uri: String,
    /// The API group. Empty for the core group.
    pub group: String,
    /// The plural, as in `deployments`. Empty for a path that is no resource, such as `/readyz`.
    pub resource: String,
    /// `status`, `scale`, … Empty for the object itself.
    pub subresource: String,
    /// Empty for what is in no namespace.
    pub namespace: String,
    /// Also where the server made it up from `generateName`. Empty for a list.
    pub name: String,
    /// The HTTP status.
    pub code: u16,
    /// Audit annotations, with the keys that the API server gives them: `<webhook name>/<key>`.
    pub annotations: BTreeMap<String, String>,
    /// The body of a write: an object, a patch, or the options of a delete.
    pub request: Option<Value>,
    /// The answer to a write: the object as stored, or a Status.
    pub response: Option<Value>,
}

/// All events in an audit log. A last line that is not finished is left for the next time.
pub(crate) fn read(log: &Path) -> Result<Vec<AuditEvent>> {
    let text = match std::fs::read(log) {
        Ok(text) => text,
        // The API server makes the file with its first event.
        Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(error).with_context(|| format!("reading {}", log.display())),
    };
    parse(&text).with_context(|| format!("reading {}", log.display()))
}

/// Removes a last line that was never finished. An API server that was killed may leave one, and the next would write its
/// first event onto the same line.
pub(crate) fn drop_torn_line(log: &Path) -> Result<()> {
    let drop = || {
        let file = File::options().read(true).write(true).open(log)?;
        let mut text = Vec::new();
        (&file).read_to_end(&mut text)?;
        file.set_len(finished(&text) as u64)
    };
    match drop() {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| format!("dropping the torn line of {}", log.display()))
        }
        _ => Ok(()),
    }
}

/// How many bytes are finished lines.
fn finished(text: &[u8]) -> usize {
    text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1)
}

/// An audit log from some point on, as it grows. Each event is parsed once, which matters in a log of many megabytes.
#[derive(Debug)]
pub struct AuditTail {
    log: PathBuf,
    /// Where the next event begins.
    offset: u64,
}

impl AuditTail {
    /// The events that come after all that is in the log.
    pub(crate) fn new(log: PathBuf) -> Result<Self> {
        let mut tail = Self { log, offset: 0 };
        tail.advance()?;
        Ok(tail)
    }

    /// The events since the last call, oldest first.
    pub fn read(&mut self) -> Result<Vec<AuditEvent>> {
        let text = self.advance()?;
        parse(&text).with_context(|| format!("reading {}", self.log.display()))
    }

    /// The lines that have been finished since the last call.
    fn advance(&mut self) -> Result<Vec<u8>> {
        let mut text = Vec::new();
        let read = File::open(&self.log).and_then(|mut file| {
            file.seek(SeekFrom::Start(self.offset))?;
            file.read_to_end(&mut text)
        });
        match read {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(error).with_context(|| format!("reading {}", self.log.display()));
            }
            _ => {}
        }
        text.truncate(finished(&text));
        self.offset += text.len() as u64;
        Ok(text)
    }
}

fn parse(text: &[u8]) -> Result<Vec<AuditEvent>> {
    let lines =
        text[..finished(text)].split(|byte| *byte == b'\n').enumerate().filter(|(_, line)| !line.is_empty());
    lines
        .map(|(index, line)| {
            let line = serde_json::from_slice::<Line>(line).with_context(|| format!("line {}", index + 1))?;
            Ok(line.into())
        })
        .collect()
}

/// An event as it is written, with what we read of it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    stage: String,
    verb: String,
    #[serde(rename = "requestURI")]
    uri: String,
    user: User,
    impersonated_user: Option<User>,
    #[serde(default)]
    user_agent: String,
    #[serde(default)]
    object_ref: ObjectRef,
    #[serde(default)]
    response_status: ResponseStatus,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
    request_object: Option<Value>,
    response_object: Option<Value>,
}

#[derive(Deserialize)]
struct User {
    #[serde(default)]
    username: String,
    #[serde(default)]
    groups: Vec<String>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct ObjectRef {
    api_group: String,
    resource: String,
    subresource: String,
    namespace: String,
    name: String,
}

#[derive(Deserialize, Default)]
struct ResponseStatus {
    #[serde(default)]
    code: u16,
}

impl From<Line> for AuditEvent {
    fn from(line: Line) -> Self {
        let User { username, groups } = line.impersonated_user.unwrap_or(line.user);
        let generated = || {
            let object = line.response_object.as_ref().filter(|object| object["kind"] != "Status")?;
            Some(object["metadata"]["name"].as_str()?.to_owned())
        };
        let name = Some(line.object_ref.name).filter(|name| !name.is_empty());
        Self {
            stage: line.stage,
            verb: line.verb,
            user: username,
            groups,
            user_agent: line.user_agent,
            uri: line.uri,
            group: line.object_ref.api_group,
            resource: line.object_ref.resource,
            subresource: line.object_ref.subresource,
            namespace: line.object_ref.namespace,
            name: name.or_else(generated).unwrap_or_default(),
            code: line.response_status.code,
            annotations: line.annotations,
            request: line.request_object,
            response: line.response_object,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn create() -> Value {
        json!({
            "kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "RequestResponse",
            "stage": "ResponseComplete", "verb": "create", "requestURI": "/api/v1/namespaces/team/pods",
            "user": { "username": "testbed:admin", "groups": ["system:masters"] },
            "impersonatedUser": { "username": "alice", "groups": ["system:authenticated"] },
            "userAgent": "kubectl/v1.35",
            "objectRef": { "resource": "pods", "namespace": "team", "apiVersion": "v1" },
            "responseStatus": { "metadata": {}, "code": 201 },
            "requestObject": { "kind": "Pod", "metadata": { "generateName": "web-" } },
            "responseObject": { "kind": "Pod", "metadata": { "name": "web-abcde" } },
            "annotations": { "authorization.k8s.io/decision": "allow" },
        })
    }

    #[test]
    fn the_impersonated_user_is_the_user() {
        let events = parse(format!("{}\n", create()).as_bytes()).unwrap();
        let [event] = &events[..] else { panic!("{events:?}") };
        assert_eq!((&*event.user, &*event.groups), ("alice", &["system:authenticated".to_owned()][..]));
        assert_eq!((&*event.verb, &*event.resource, event.code), ("create", "pods", 201));
        assert_eq!(event.annotations["authorization.k8s.io/decision"], "allow");
        assert_eq!(event.request.as_ref().unwrap()["metadata"]["generateName"], "web-");
    }

    #[test]
    fn a_generated_name_is_found_in_the_answer() {
        let events = parse(format!("{}\n", create()).as_bytes()).unwrap();
        assert_eq!(events[0].name, "web-abcde");
        let mut refused = create();
        refused["responseObject"] = json!({ "kind": "Status", "metadata": { "name": "no" } });
        assert_eq!(parse(format!("{refused}\n").as_bytes()).unwrap()[0].name, "");
    }

    #[test]
    fn a_line_that_is_being_written_is_left_out() {
        let line = create().to_string();
        let half = format!("{line}\n{}", &line[..line.len() / 2]);
        assert_eq!(parse(half.as_bytes()).unwrap().len(), 1);
        assert_eq!(parse(&line.as_bytes()[..20]).unwrap(), []);
        assert_eq!(parse(b"").unwrap(), []);
    }

    #[test]
    fn a_broken_line_before_the_last_is_an_error_with_its_number() {
        let error = parse(format!("{}\n{{\n{}\n", create(), create()).as_bytes()).unwrap_err();
        assert_eq!(error.to_string(), "line 2");
    }

    #[test]
    fn what_is_no_resource_has_none() {
        let line = json!({ "stage": "ResponseComplete", "verb": "get", "requestURI": "/readyz", "user": {} });
        let events = parse(format!("{line}\n").as_bytes()).unwrap();
        assert_eq!((&*events[0].resource, &*events[0].uri, events[0].code), ("", "/readyz", 0));
    }

    #[test]
    fn a_tail_gives_each_finished_event_once() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("audit.log");
        let line = format!("{}\n", create());
        let (begin, rest) = line.split_at(line.len() / 2);
        let write = |text: &str| {
            let file = File::options().create(true).append(true).open(&log);
            std::io::Write::write_all(&mut file.unwrap(), text.as_bytes()).unwrap();
        };
        let mut early = AuditTail::new(log.clone()).unwrap();
        assert_eq!(early.read().unwrap(), [], "there is no log");
        write(&line);
        write(begin);
        let mut late = AuditTail::new(log.clone()).unwrap();
        assert_eq!((early.read().unwrap().len(), late.read().unwrap().len()), (1, 0));
        write(rest);
        write(&line);
        assert_eq!((early.read().unwrap().len(), late.read().unwrap().len()), (2, 2));
        assert_eq!((early.read().unwrap().len(), late.read().unwrap().len()), (0, 0));
    }

    #[test]
    fn a_torn_line_does_not_spoil_the_one_after_it() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("audit.log");
        let line = format!("{}\n", create());
        std::fs::write(&log, format!("{line}{}", &line[..line.len() / 2])).unwrap();
        drop_torn_line(&log).unwrap();
        std::io::Write::write_all(&mut File::options().append(true).open(&log).unwrap(), line.as_bytes())
            .unwrap();
        assert_eq!(read(&log).unwrap().len(), 2);
        drop_torn_line(&folder.path().join("none")).unwrap();
    }

    #[test]
    fn no_log_is_no_event() {
        assert_eq!(read(Path::new("/nonexistent/audit.log")).unwrap(), []);
    }

    #[test]
    fn the_policy_is_json() {
        assert_eq!(serde_json::from_str::<Value>(POLICY).unwrap()["kind"], "Policy");
    }
}
