//! The audit log of the API server, read as it grows.

use std::{
    cell::RefCell,
    collections::BTreeMap,
    fs::File,
    io::{Read as _, Seek as _, SeekFrom},
    path::PathBuf,
    sync::Arc,
};

use serde::Deserialize;

use crate::scenarios::plane::Audited;

/// The audit log. What has been read is kept, so that every line is read once.
pub(crate) struct AuditLog {
    file: PathBuf,
    read: RefCell<Read>,
}

#[derive(Default)]
struct Read {
    bytes: u64,
    calls: Vec<Arc<Audited>>,
}

impl AuditLog {
    pub(crate) fn new(file: PathBuf) -> Self {
        Self { file, read: RefCell::default() }
    }

    /// How many calls there are.
    pub(crate) fn len(&self) -> usize {
        self.catch_up();
        self.read.borrow().calls.len()
    }

    /// The calls from this place on.
    pub(crate) fn from(&self, place: usize) -> Vec<Arc<Audited>> {
        self.catch_up();
        self.read.borrow().calls[place..].to_vec()
    }

    /// Reads what has been written since. A line that is not finished is left for the next time.
    fn catch_up(&self) {
        let mut read = self.read.borrow_mut();
        let Ok(mut file) = File::open(&self.file) else { return };
        file.seek(SeekFrom::Start(read.bytes)).unwrap();
        let mut text = Vec::new();
        file.read_to_end(&mut text).unwrap();
        let Some(end) = text.iter().rposition(|byte| *byte == b'\n') else { return };
        read.bytes += u64::try_from(end).unwrap() + 1;
        let lines = text[..end].split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        for line in lines {
            let line: Line = serde_json::from_slice(line).unwrap();
            if !matches!(line.verb.as_str(), "get" | "list" | "watch") {
                read.calls.push(Arc::new(line.into()));
            }
        }
    }
}

/// An event as it is written, with what we read of it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    #[serde(rename = "auditID")]
    audit_id: String,
    verb: String,
    user: User,
    impersonated_user: Option<User>,
    #[serde(default)]
    object_ref: ObjectRef,
    #[serde(default)]
    response_status: ResponseStatus,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct User {
    #[serde(default)]
    username: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ObjectRef {
    resource: String,
    subresource: String,
    namespace: String,
    name: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ResponseStatus {
    code: u16,
}

impl From<Line> for Audited {
    fn from(line: Line) -> Self {
        Self {
            id: line.audit_id,
            verb: line.verb,
            user: line.impersonated_user.unwrap_or(line.user).username,
            resource: line.object_ref.resource,
            subresource: line.object_ref.subresource,
            namespace: line.object_ref.namespace,
            name: line.object_ref.name,
            code: line.response_status.code,
            annotations: line.annotations,
        }
    }
}
