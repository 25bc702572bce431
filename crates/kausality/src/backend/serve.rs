//! `kausality backend serve`: keeps reports, and answers questions about them.

use std::{path::PathBuf, time::Duration};

use anyhow::{Result, bail};
use clap::Args;
use jiff::SignedDuration;
use kausality_report::history::{History, Limits, router};

use super::{reception::Reception, size::Size};

/// The smallest database: a few of the largest reports.
const SMALLEST: u64 = 8 << 20;

/// Keep drift reports in a database, and answer questions about them.
#[derive(Debug, Args)]
pub(super) struct Serve {
    #[command(flatten)]
    reception: Reception,

    /// The SQLite database; made, if it is not there
    #[arg(long, value_name = "FILE")]
    database: PathBuf,

    /// How long reports are kept; for ever, if 0s
    #[arg(long, value_name = "TIME", default_value = "720h")]
    retention: SignedDuration,

    /// How big the database gets, as 500MiB; then the oldest reports make room [default: no limit]
    #[arg(long, value_name = "SIZE")]
    max_size: Option<Size>,
}

impl Serve {
    pub(super) async fn run(&self) -> Result<()> {
        let guard = self.reception.guard()?;
        let history = History::open(&self.database, self.limits()?)?;
        tracing::info!(database = %self.database.display(), reports = history.count(), "opened");
        tokio::select! {
            served = self.reception.serve(router(&history, &guard)) => served,
            () = history.tend() => Ok(()),
        }
    }

    fn limits(&self) -> Result<Limits> {
        if self.retention.is_negative() {
            bail!("--retention must not be negative: 720h keeps reports for 30 days, 0s for ever");
        }
        let retention = Duration::try_from(self.retention).ok().filter(|retention| !retention.is_zero());
        let max_size = self.max_size.map(|size| size.0);
        if max_size.is_some_and(|size| size < SMALLEST) {
            bail!("--max-size must be at least {} MiB", SMALLEST >> 20);
        }
        Ok(Limits { retention, max_size, ..Limits::default() })
    }
}
