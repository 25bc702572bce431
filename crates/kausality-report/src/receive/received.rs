//! A report as it arrives.

use jiff::Timestamp;
use kausality_api::{
    API_VERSION,
    report::{DriftReport, ReportPhase},
};
use serde::Deserialize;
use serde_json::Value;

/// The bytes of the longest id, and of the longest uid of a request.
const LONGEST: usize = 256;

/// A report, and when it arrived.
#[derive(Clone, Debug, PartialEq)]
pub struct Received {
    /// When.
    pub at: Timestamp,
    /// The id of the drift.
    pub id: String,
    /// Whether it appeared or went away.
    pub phase: ReportPhase,
    /// The parent.
    pub parent: Named,
    /// The child.
    pub child: Named,
    /// Who changed the child, or wanted to.
    pub user: String,
    /// The uid of that request.
    pub request: String,
    /// The report as it was sent.
    pub text: String,
}

/// An object, by what people look for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Named {
    /// Its kind.
    pub kind: String,
    /// Its namespace, if it has one.
    #[serde(default)]
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// Why a body is no report.
#[derive(Debug, thiserror::Error)]
pub enum BadReport {
    /// It is not JSON, or lacks what a report has.
    #[error("this is no DriftReport: {0}")]
    Malformed(String),
    /// It is something else.
    #[error("this is no DriftReport of {API_VERSION}, but {kind:?} of {api_version:?}")]
    OtherKind {
        /// The kind it says it is.
        kind: String,
        /// The version it says it is of.
        api_version: String,
    },
}

/// As much as every sender writes: those of the Go project leave out what they do not know.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Outline {
    api_version: String,
    kind: String,
    spec: Spec,
}

#[derive(Deserialize)]
struct Spec {
    id: String,
    phase: ReportPhase,
    parent: Named,
    child: Named,
    request: Sent,
}

#[derive(Deserialize)]
struct Sent {
    user: String,
    uid: String,
}

impl Received {
    /// Reads a report.
    ///
    /// # Errors
    /// If it is none.
    pub fn read(body: &[u8], at: Timestamp) -> Result<Self, BadReport> {
        let malformed = |error: String| BadReport::Malformed(error);
        let text = std::str::from_utf8(body).map_err(|error| malformed(error.to_string()))?.trim();
        let outline: Outline = serde_json::from_str(text).map_err(|error| malformed(error.to_string()))?;
        if outline.api_version != API_VERSION || outline.kind != "DriftReport" {
            return Err(BadReport::OtherKind { kind: outline.kind, api_version: outline.api_version });
        }
        let Spec { id, phase, parent, child, request } = outline.spec;
        if id.is_empty() || id.len() > LONGEST || request.uid.len() > LONGEST {
            return Err(malformed(format!("spec.id and spec.request.uid must have at most {LONGEST} bytes")));
        }
        let (user, request) = (request.user, request.uid);
        Ok(Self { at, id, phase, parent, child, user, request, text: text.to_owned() })
    }

    /// As one line of JSON.
    #[must_use]
    pub fn json(&self) -> String {
        // Line ends in JSON are only ever between tokens.
        self.text.replace(['\n', '\r'], " ")
    }

    /// As YAML, in the order in which the format is documented.
    ///
    /// # Errors
    /// If there is no YAML for it.
    pub fn yaml(&self) -> Result<String, String> {
        let text = match serde_json::from_str::<DriftReport>(&self.text) {
            Ok(report) => serde_saphyr::to_string(&report),
            Err(_) => {
                let value: Value = serde_json::from_str(&self.text).map_err(|error| error.to_string())?;
                serde_saphyr::to_string(&value)
            }
        };
        text.map_err(|error| error.to_string())
    }
}
