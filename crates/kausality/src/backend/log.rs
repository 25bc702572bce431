//! `kausality backend log`: prints reports.

use std::{
    io::Write,
    sync::{Arc, Mutex, PoisonError},
};

use anyhow::Result;
use axum::{http::header, routing::get};
use clap::{Args, ValueEnum};
use jiff::Timestamp;
use kausality_report::receive::{Keep, Received, Unkept, router};

use super::reception::Reception;

/// Print each drift report that arrives to standard output.
#[derive(Debug, Args)]
pub(super) struct Log {
    #[command(flatten)]
    reception: Reception,

    /// How to print: a YAML document, or a line of JSON, for each report
    #[arg(short, long, value_enum, default_value_t = Output::Yaml)]
    output: Output,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    /// A document each
    Yaml,
    /// A line each
    Json,
}

impl Log {
    pub(super) async fn run(&self) -> Result<()> {
        let printer = Arc::new(Printer { output: self.output, out: Arc::new(Mutex::new(std::io::stdout())) });
        let health = async || {
            let health = serde_json::json!({"status": "ok", "time": Timestamp::now()});
            ([(header::CONTENT_TYPE, "application/json")], health.to_string())
        };
        let router = router(printer, self.reception.guard()?)
            .route("/healthz", get(health))
            .route("/readyz", get(async || "ok\n"));
        self.reception.serve(router).await
    }
}

/// Prints reports.
struct Printer<W> {
    output: Output,
    out: Arc<Mutex<W>>,
}

impl<W: Write + Send + 'static> Keep for Printer<W> {
    async fn keep(&self, report: Received) -> Result<(), Unkept> {
        let text = match self.output {
            Output::Yaml => format!("---\n{}", report.yaml().map_err(Unkept)?),
            Output::Json => report.json() + "\n",
        };
        let out = Arc::clone(&self.out);
        // Whoever reads our output may take its time.
        let printed = tokio::task::spawn_blocking(move || {
            let mut out = out.lock().unwrap_or_else(PoisonError::into_inner);
            out.write_all(text.as_bytes())?;
            out.flush()
        });
        match printed.await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(Unkept(format!("standard output cannot be written: {error}"))),
            Err(_) => Err(Unkept("printing broke off".to_owned())),
        }
    }
}

#[cfg(test)]
mod tests;
