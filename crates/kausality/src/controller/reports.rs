//! Who is told of drifts, from the flags of the controller.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use kausality_report::{
    endpoint::{self, Endpoint, Entry},
    sender::Sender,
};

/// The name of the endpoint that flags describe.
const DEFAULT: &str = "default";

/// Who is told of drifts.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct Reports {
    /// A file of endpoints to which drift reports are sent, YAML or JSON (docs/reports.md)
    #[arg(long, value_name = "FILE")]
    report_endpoints: Option<PathBuf>,

    /// An endpoint to which drift reports are sent, known as "default"
    #[arg(long, value_name = "URL")]
    drift_webhook_url: Option<String>,

    /// How long that endpoint may take [default: 10s]
    #[arg(long, value_name = "TIME", requires = "drift_webhook_url")]
    drift_webhook_timeout: Option<String>,

    /// The CAs that may have signed that endpoint's certificate, PEM [default: those of the system]
    #[arg(long, value_name = "FILE", requires = "drift_webhook_url")]
    drift_webhook_ca_file: Option<PathBuf>,

    /// A file with the bearer token for that endpoint
    #[arg(long, value_name = "FILE", requires = "drift_webhook_url")]
    drift_webhook_token_file: Option<PathBuf>,
}

impl Reports {
    /// Senders to all of them.
    ///
    /// # Errors
    /// If one cannot be used.
    pub(super) fn senders(&self) -> Result<Vec<Sender>> {
        self.endpoints()?.into_iter().map(|endpoint| Ok(Sender::new(endpoint)?)).collect()
    }

    fn endpoints(&self) -> Result<Vec<Endpoint>> {
        let mut entries = match &self.report_endpoints {
            Some(file) => endpoint::read(file)?,
            None => Vec::new(),
        };
        entries.extend(self.drift_webhook_url.as_ref().map(|url| Entry {
            name: DEFAULT.to_owned(),
            url: url.clone(),
            timeout: self.drift_webhook_timeout.clone(),
            ca_file: self.drift_webhook_ca_file.clone(),
            token_file: self.drift_webhook_token_file.clone(),
            ..Entry::default()
        }));
        Ok(endpoint::check(entries)?)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn flags_and_a_file_add_up() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("endpoints.yaml");
        let endpoints = |name: &str, reports: Reports| {
            std::fs::write(&file, format!("endpoints: [{{name: {name}, url: 'https://pager/'}}]")).unwrap();
            let reports = Reports { report_endpoints: Some(file.clone()), ..reports };
            reports.endpoints().map_err(|error| error.to_string())
        };
        let flags = Reports {
            drift_webhook_url: Some("http://localhost:8080/webhook".to_owned()),
            drift_webhook_timeout: Some("3s".to_owned()),
            drift_webhook_token_file: Some("/token".into()),
            ..Reports::default()
        };
        let both = endpoints("pager", flags.clone()).unwrap();
        let names: Vec<&str> = both.iter().map(|endpoint| endpoint.name.as_str()).collect();
        assert_eq!(names, ["pager", "default"]);
        assert_eq!((both[1].timeout, &both[1].files.token), (Duration::from_secs(3), &Some("/token".into())));
        let error = endpoints("default", flags).unwrap_err();
        assert!(error.starts_with("endpoint default: name: another endpoint has the same"), "{error}");
        assert!(Reports::default().senders().unwrap().is_empty());
    }
}
