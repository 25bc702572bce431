//! Reports, kept in SQLite.
//!
//! One table, one row a report, newest last. A report is acknowledged after its row is on the disk; one that came before,
//! by its id, phase and request, is not kept twice.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use jiff::Timestamp;
use rusqlite::{Connection, ErrorCode, OptionalExtension as _, TransactionBehavior, params};

use crate::{
    metrics::phase_name,
    receive::{Keep, Received, Unkept},
};

mod api;
mod query;

pub use api::router;
pub use query::{BadQuery, Filter, Page, Stored};

/// Marks a file as ours: "kaus".
const APPLICATION: i64 = 0x6b61_7573;

/// The version of the tables.
const VERSION: i64 = 1;

/// How many old reports are deleted at once.
const BATCH: i64 = 500;

/// How many of the oldest make room for one.
const EVICTED: i64 = 16;

/// How often it is looked for reports that are too old.
const TENDING: Duration = Duration::from_secs(600);

const TABLES: &str = "
CREATE TABLE reports (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    received INTEGER NOT NULL,
    id TEXT NOT NULL,
    phase TEXT NOT NULL,
    request TEXT NOT NULL,
    user TEXT NOT NULL,
    parent_kind TEXT NOT NULL,
    parent_namespace TEXT NOT NULL,
    parent_name TEXT NOT NULL,
    child_kind TEXT NOT NULL,
    child_namespace TEXT NOT NULL,
    child_name TEXT NOT NULL,
    report TEXT NOT NULL,
    UNIQUE (id, phase, request)
) STRICT;
CREATE INDEX reports_received ON reports (received);
";

/// What is kept, and for how long.
#[derive(Clone, Debug)]
pub struct Limits {
    /// How old a report gets; for ever, if none.
    pub retention: Option<Duration>,
    /// The bytes that the database takes. The oldest reports make room for new ones.
    pub max_size: Option<u64>,
    /// How long it is waited for another process that has the database locked.
    pub patience: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { retention: None, max_size: None, patience: Duration::from_secs(5) }
    }
}

/// Why a database cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Unusable {
    /// It cannot be opened.
    #[error("cannot open the database {}: {source}", path.display())]
    Unopenable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: rusqlite::Error,
    },
    /// It is somebody else's.
    #[error("{} is a database of something else: give another file", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// It is of a later version.
    #[error("{} was written by a newer version of Kausality (tables {found}, known {VERSION}): update", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// The version of its tables.
        found: i64,
    },
}

/// All reports. Clones share them.
#[derive(Clone)]
pub struct History(Arc<Inner>);

struct Inner {
    writer: Mutex<Connection>,
    /// Another, so that who reads does not wait for who writes.
    reader: Mutex<Connection>,
    /// How many there are: `/healthz` is asked too often to count each time.
    count: AtomicI64,
    limits: Limits,
}

impl History {
    /// Opens a database, and makes it if it is not there.
    ///
    /// # Errors
    /// If it cannot be used.
    pub fn open(path: &Path, limits: Limits) -> Result<Self, Unusable> {
        let failed = |source| Unusable::Unopenable { path: path.to_owned(), source };
        keep_private(path);
        let mut writer = connect(path, &limits).map_err(failed)?;
        let (application, version) = marks(&writer).map_err(failed)?;
        match (application, version) {
            (APPLICATION, VERSION) => {}
            (APPLICATION, found) => return Err(Unusable::Newer { path: path.to_owned(), found }),
            (0, 0) if is_empty(&writer).map_err(failed)? => create(&mut writer).map_err(failed)?,
            _ => return Err(Unusable::Foreign { path: path.to_owned() }),
        }
        let reader = connect(path, &limits).map_err(failed)?;
        let count = writer.query_row("SELECT count(*) FROM reports", [], |row| row.get(0)).map_err(failed)?;
        let inner =
            Inner { writer: writer.into(), reader: reader.into(), count: AtomicI64::new(count), limits };
        Ok(Self(Arc::new(inner)))
    }

    /// Keeps a report. Says whether it had not come before.
    ///
    /// # Errors
    /// If it is not safe.
    pub async fn insert(&self, report: Received) -> Result<bool, Unkept> {
        self.write(move |inner, connection| inner.insert(connection, &report)).await
    }

    /// Deletes all reports of a drift. Says how many there were.
    ///
    /// # Errors
    /// If it cannot.
    pub async fn delete(&self, id: String) -> Result<usize, Unkept> {
        self.write(move |inner, connection| {
            let deleted = connection.execute("DELETE FROM reports WHERE id = ?1", [id])?;
            inner.lose(deleted);
            Ok(deleted)
        })
        .await
    }

    /// Deletes what is too old, and says how much that was.
    ///
    /// # Errors
    /// If it cannot.
    pub async fn expire(&self, now: Timestamp) -> Result<usize, Unkept> {
        let Some(retention) = self.0.limits.retention else { return Ok(0) };
        let oldest =
            now.as_millisecond().saturating_sub(i64::try_from(retention.as_millis()).unwrap_or(i64::MAX));
        let mut all = 0;
        loop {
            // In pieces, so that reports need not wait for long.
            let deleted = self.write(move |inner, connection| inner.expire(connection, oldest)).await?;
            all += deleted;
            if deleted == 0 {
                return Ok(all);
            }
        }
    }

    /// Deletes what is too old, time and again, for ever.
    pub async fn tend(&self) {
        loop {
            match self.expire(Timestamp::now()).await {
                Ok(0) => {}
                Ok(reports) => tracing::info!(reports, "deleted what is older than the retention"),
                Err(error) => tracing::warn!(%error, "what is too old cannot be deleted"),
            }
            tokio::time::sleep(TENDING).await;
        }
    }

    /// How many reports there are.
    #[must_use]
    pub fn count(&self) -> i64 {
        self.0.count.load(Ordering::Relaxed)
    }

    /// A page of reports, newest first.
    ///
    /// # Errors
    /// If they cannot be read.
    pub async fn page(&self, filter: Filter) -> Result<Page, Unkept> {
        self.read(move |connection| query::page(connection, &filter)).await
    }

    /// All reports of a drift, oldest first.
    ///
    /// # Errors
    /// If they cannot be read.
    pub async fn of_drift(&self, id: String) -> Result<Vec<Stored>, Unkept> {
        self.read(move |connection| query::of_drift(connection, &id)).await
    }

    /// Whether reports can be read.
    ///
    /// # Errors
    /// If they cannot.
    pub async fn probe(&self) -> Result<(), Unkept> {
        self.read(|connection| {
            let first = connection.query_row("SELECT seq FROM reports LIMIT 1", [], |row| row.get(0));
            first.optional().map(|_: Option<i64>| ())
        })
        .await
    }

    async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Inner, &mut Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, Unkept> {
        let inner = Arc::clone(&self.0);
        blocking(move || work(&inner, &mut inner.writer.lock().unwrap_or_else(PoisonError::into_inner))).await
    }

    async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, Unkept> {
        let inner = Arc::clone(&self.0);
        blocking(move || work(&inner.reader.lock().unwrap_or_else(PoisonError::into_inner))).await
    }
}

impl Keep for History {
    async fn keep(&self, report: Received) -> Result<(), Unkept> {
        self.insert(report).await.map(drop)
    }
}

impl std::fmt::Debug for History {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("History").field("count", &self.count()).finish_non_exhaustive()
    }
}

impl Inner {
    fn insert(&self, connection: &mut Connection, report: &Received) -> rusqlite::Result<bool> {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let (parent, child) = (&report.parent, &report.child);
        let inserted = transaction.execute(
            "INSERT INTO reports (received, id, phase, request, user, parent_kind, parent_namespace, parent_name,
                child_kind, child_namespace, child_name, report)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12) ON CONFLICT DO NOTHING",
            params![
                report.at.as_millisecond(), report.id, phase_name(report.phase), report.request, report.user,
                parent.kind, parent.namespace, parent.name, child.kind, child.namespace, child.name, report.text,
            ],
        )?;
        let mut evicted = 0;
        while inserted > 0
            && self.limits.max_size.is_some_and(|max| size(&transaction).is_ok_and(|size| size > max))
        {
            let gone = transaction.execute(
                "DELETE FROM reports WHERE seq IN (SELECT seq FROM reports ORDER BY seq LIMIT ?1)
                 AND seq < (SELECT max(seq) FROM reports)",
                [EVICTED],
            )?;
            evicted += gone;
            if gone == 0 {
                break;
            }
        }
        transaction.commit()?;
        self.count.fetch_add(i64::try_from(inserted).unwrap_or(0), Ordering::Relaxed);
        self.lose(evicted);
        Ok(inserted > 0)
    }

    fn expire(&self, connection: &Connection, oldest: i64) -> rusqlite::Result<usize> {
        let deleted = connection.execute(
            "DELETE FROM reports WHERE seq IN (SELECT seq FROM reports WHERE received < ?1 LIMIT ?2)",
            params![oldest, BATCH],
        )?;
        self.lose(deleted);
        // Gives room back to the disk, a bit at a time.
        connection.execute_batch("PRAGMA incremental_vacuum(1000)")?;
        Ok(deleted)
    }

    fn lose(&self, reports: usize) {
        self.count.fetch_sub(i64::try_from(reports).unwrap_or(0), Ordering::Relaxed);
    }
}

/// Makes the file, if there is none, so that nobody else reads it: SQLite gives the files beside it the same permissions. What
/// goes wrong here is told when it is opened.
fn keep_private(path: &Path) {
    let mut options = std::fs::OpenOptions::new();
    options.append(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    drop(options.open(path));
}

fn connect(path: &Path, limits: &Limits) -> rusqlite::Result<Connection> {
    let connection = Connection::open(path)?;
    connection.busy_timeout(limits.patience)?;
    // Has to be there before the first table is.
    connection.execute_batch("PRAGMA auto_vacuum = INCREMENTAL")?;
    connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))?;
    // What is acknowledged outlasts a power cut.
    connection.execute_batch("PRAGMA synchronous = FULL; PRAGMA journal_size_limit = 16777216")?;
    Ok(connection)
}

fn marks(connection: &Connection) -> rusqlite::Result<(i64, i64)> {
    let number = |pragma: &str| connection.query_row(&format!("PRAGMA {pragma}"), [], |row| row.get(0));
    Ok((number("application_id")?, number("user_version")?))
}

fn is_empty(connection: &Connection) -> rusqlite::Result<bool> {
    connection.query_row("SELECT count(*) = 0 FROM sqlite_schema", [], |row| row.get(0))
}

fn create(connection: &mut Connection) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    transaction.execute_batch(TABLES)?;
    let marks = format!("PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {VERSION}");
    transaction.execute_batch(&marks)?;
    transaction.commit()
}

/// The bytes that are in use.
fn size(connection: &Connection) -> rusqlite::Result<u64> {
    let number = |pragma: &str| -> rusqlite::Result<i64> {
        connection.query_row(&format!("PRAGMA {pragma}"), [], |row| row.get(0))
    };
    let pages = number("page_count")?.saturating_sub(number("freelist_count")?);
    Ok(u64::try_from(pages.saturating_mul(number("page_size")?)).unwrap_or(0))
}

/// Does something that waits for a disk where nobody else waits for it.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> rusqlite::Result<T> + Send + 'static,
) -> Result<T, Unkept> {
    match tokio::task::spawn_blocking(work).await {
        Ok(outcome) => outcome.map_err(|error| unkept(&error)),
        Err(_) => Err(Unkept("the database broke off: see the log".to_owned())),
    }
}

fn unkept(error: &rusqlite::Error) -> Unkept {
    Unkept(match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => {
            "the database has no room left: free space on its disk, or keep less (--retention, --max-size)"
                .to_owned()
        }
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            "the database is locked by another process".to_owned()
        }
        Some(ErrorCode::ReadOnly) => "the database cannot be written: its file is read-only".to_owned(),
        _ => format!("the database does not work: {error}"),
    })
}

#[cfg(test)]
mod tests;
