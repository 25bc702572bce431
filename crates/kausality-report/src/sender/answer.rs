//! What an endpoint's answer says: only a clear yes counts.

use http::StatusCode;
use kausality_api::API_VERSION;
use serde::Deserialize;

use super::{About, Failure, Patience, is_passing};

/// A `DriftReportResponse` that may lack its kind: backends of the Go project leave it out.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    #[serde(default)]
    api_version: Option<String>,
    #[serde(default)]
    kind: Option<String>,
    acknowledged: bool,
    #[serde(default)]
    error: Option<String>,
}

impl Answer {
    fn read(body: &[u8]) -> Option<Self> {
        let answer: Self = serde_json::from_slice(body).ok()?;
        let says = |said: &Option<String>, expected| said.as_deref().is_none_or(|said| said == expected);
        (says(&answer.api_version, API_VERSION) && says(&answer.kind, "DriftReportResponse"))
            .then_some(answer)
    }

    fn error(self) -> String {
        self.error.filter(|error| !error.is_empty()).unwrap_or_else(|| "it does not say why".to_owned())
    }
}

/// Whether a report was taken over.
pub(super) fn judge(status: StatusCode, body: &[u8]) -> Result<(), Failure> {
    let body = body.trim_ascii();
    let answer = Answer::read(body);
    if status.is_success() {
        return match answer {
            Some(answer) if answer.acknowledged => Ok(()),
            Some(answer) => {
                Err(Failure::of_report(format!("the endpoint did not take it over: {}", answer.error())))
            }
            None if body.is_empty() => Ok(()),
            None => Err(something_else(&format!("{} bytes that are no DriftReportResponse", body.len()))),
        };
    }
    let mut text = format!("the endpoint answered {status}");
    if status.is_redirection() {
        text += ": reports are not sent on to where it points; configure that URL";
    } else if let Some(answer) = answer {
        text = format!("{text}: {}", answer.error());
    }
    let patience = if is_passing(status) { Patience::Growing } else { Patience::Longest };
    let about = if status.is_server_error() || (status.is_client_error() && is_passing(status)) {
        About::Endpoint
    } else {
        About::Report
    };
    Err(Failure { about, patience, asked: None, text })
}

/// The failure of one that answers, but not as an endpoint does.
pub(super) fn something_else(what: &str) -> Failure {
    Failure::of_report(format!("the endpoint answered something else ({what}): is it the right URL?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(status: u16, body: &str) -> String {
        match judge(StatusCode::from_u16(status).unwrap(), body.as_bytes()) {
            Ok(()) => "taken over".to_owned(),
            Err(Failure { about, patience, text, .. }) => format!("{about:?} {patience:?}: {text}"),
        }
    }

    #[test]
    fn only_a_clear_yes_counts() {
        for (status, body) in [
            (
                200,
                r#"{"apiVersion":"kausality.io/v1alpha1","kind":"DriftReportResponse","acknowledged":true}"#,
            ),
            (202, r#"{"acknowledged":true}"#),
            (200, "{\"acknowledged\":true}\n"),
            (204, ""),
            (200, " \n"),
        ] {
            assert_eq!(text(status, body), "taken over", "{status} {body}");
        }
        for body in [
            "ok",
            "<html>sign in</html>",
            "{}",
            "[]",
            "true",
            r#"{"acknowledged":"true"}"#,
            r#"{"acknowledged":true"#,
            r#"{"kind":"Status","acknowledged":true}"#,
            r#"{"apiVersion":"other/v1","acknowledged":true}"#,
        ] {
            let answer = text(200, body);
            assert!(
                answer.starts_with("Report Growing: the endpoint answered something else"),
                "{body}: {answer}"
            );
        }
    }

    #[test]
    fn failures_say_why_and_how_soon_it_is_worth_a_try() {
        let cases = [
            (200, r#"{"acknowledged":false,"error":"queue is full"}"#),
            (200, r#"{"acknowledged":false}"#),
            (301, ""),
            (307, r#"{"acknowledged":true}"#),
            (400, "what?"),
            (401, ""),
            (408, ""),
            (413, r#"{"acknowledged":false,"error":"too large"}"#),
            (429, ""),
            (500, "<html>"),
            (503, r#"{"acknowledged":false,"error":"the disk is full"}"#),
        ];
        let all: Vec<String> = cases.iter().map(|(status, body)| text(*status, body)).collect();
        insta::assert_snapshot!(all.join("\n"), @r"
        Report Growing: the endpoint did not take it over: queue is full
        Report Growing: the endpoint did not take it over: it does not say why
        Report Growing: the endpoint answered 301 Moved Permanently: reports are not sent on to where it points; configure that URL
        Report Growing: the endpoint answered 307 Temporary Redirect: reports are not sent on to where it points; configure that URL
        Report Longest: the endpoint answered 400 Bad Request
        Report Longest: the endpoint answered 401 Unauthorized
        Endpoint Growing: the endpoint answered 408 Request Timeout
        Report Longest: the endpoint answered 413 Payload Too Large: too large
        Endpoint Growing: the endpoint answered 429 Too Many Requests
        Endpoint Growing: the endpoint answered 500 Internal Server Error
        Endpoint Growing: the endpoint answered 503 Service Unavailable: the disk is full
        ");
    }
}
