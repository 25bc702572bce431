//! Questions about reports.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use jiff::{SignedDuration, Timestamp};
use kausality_api::report::ReportPhase;
use rusqlite::{Connection, Row, params_from_iter, types::Value};

use crate::metrics::phase_name;

/// How many reports a page holds, unless it is said.
const USUAL: usize = 100;

/// How many reports a page holds at most.
const MOST: usize = 1000;

/// After how many bytes a page ends.
const LARGEST: usize = 8 << 20;

/// Which reports are asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    phase: Option<ReportPhase>,
    parent_kind: Option<String>,
    child_kind: Option<String>,
    namespace: Option<String>,
    name: Option<String>,
    user: Option<String>,
    id: Option<String>,
    since: Option<Timestamp>,
    until: Option<Timestamp>,
    limit: usize,
    before: Option<i64>,
    /// What was asked, apart from the page.
    mark: String,
}

/// Why a question cannot be answered.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadQuery {
    /// There is no such parameter.
    #[error(
        "unknown parameter {0:?}; there are phase, parentKind, childKind, namespace, name, user, id, since, until, \
         limit and continue"
    )]
    Unknown(String),
    /// A parameter is given more than once.
    #[error("{0} is given more than once")]
    Twice(String),
    /// A parameter makes no sense.
    #[error("{0}: {1}")]
    Malformed(&'static str, String),
}

/// A report with the time at which it was received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// When, in milliseconds since 1970.
    pub received: i64,
    /// The report as it was sent.
    pub report: String,
    seq: i64,
}

/// Some reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// Newest first.
    pub reports: Vec<Stored>,
    /// What asks for the next page, if there is more.
    pub more: Option<String>,
}

impl Filter {
    /// The question in the query of a URL.
    ///
    /// # Errors
    /// If it makes no sense.
    pub fn parse(query: &str, now: Timestamp) -> Result<Self, BadQuery> {
        let mut filter = Self { limit: USUAL, ..Self::default() };
        let (mut seen, mut asked, mut token) = (Vec::new(), Vec::new(), None);
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            if seen.contains(&name) {
                return Err(BadQuery::Twice(name.into_owned()));
            }
            seen.push(name.clone());
            let value = value.into_owned();
            if !matches!(name.as_ref(), "limit" | "continue") {
                asked.push(format!("{name}={value}"));
            }
            match name.as_ref() {
                "phase" => filter.phase = Some(phase(&value)?),
                "parentKind" => filter.parent_kind = Some(value),
                "childKind" => filter.child_kind = Some(value),
                "namespace" => filter.namespace = Some(value),
                "name" => filter.name = Some(value),
                "user" => filter.user = Some(value),
                "id" => filter.id = Some(value),
                "since" => filter.since = Some(time("since", &value, now)?),
                "until" => filter.until = Some(time("until", &value, now)?),
                "limit" => filter.limit = limit(&value)?,
                "continue" => token = Some(value),
                _ => return Err(BadQuery::Unknown(name.into_owned())),
            }
        }
        asked.sort();
        filter.mark = mark(&asked.join("&"));
        filter.before = token.map(|token| filter.continued(&token)).transpose()?;
        Ok(filter)
    }

    /// Where a page that was continued begins.
    fn continued(&self, token: &str) -> Result<i64, BadQuery> {
        let bad = |why: &str| BadQuery::Malformed("continue", why.to_owned());
        let text = URL_SAFE_NO_PAD.decode(token).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        let text = text.ok_or_else(|| bad("is not one that was given out"))?;
        let (mark, seq) = text.split_once('.').ok_or_else(|| bad("is not one that was given out"))?;
        if mark != self.mark {
            return Err(bad("is of another question: leave the other parameters as they were"));
        }
        seq.parse().map_err(|_| bad("is not one that was given out"))
    }

    fn token(&self, seq: i64) -> String {
        URL_SAFE_NO_PAD.encode(format!("{}.{seq}", self.mark))
    }

    /// The conditions, and what they speak of.
    fn conditions(&self) -> (String, Vec<Value>) {
        let mut conditions = vec!["1"];
        let mut values = Vec::new();
        let mut add = |condition, value: Option<Value>| {
            if let Some(value) = value {
                conditions.push(condition);
                values.push(value);
            }
        };
        let text = |text: &Option<String>| text.clone().map(Value::Text);
        let millis = |time: Option<Timestamp>| time.map(|time| Value::Integer(time.as_millisecond()));
        add("phase = ?", self.phase.map(|phase| Value::Text(phase_name(phase).to_owned())));
        add("parent_kind = ?", text(&self.parent_kind));
        add("child_kind = ?", text(&self.child_kind));
        // Who looks for a name does not know yet whose it is.
        for (columns, value) in [
            ("? IN (parent_namespace, child_namespace)", &self.namespace),
            ("? IN (parent_name, child_name)", &self.name),
        ] {
            add(columns, text(value));
        }
        add("user = ?", text(&self.user));
        add("instr(id, ?) = 1", text(&self.id).filter(|id| *id != Value::Text(String::new())));
        add("received >= ?", millis(self.since));
        add("received < ?", millis(self.until));
        add("seq < ?", self.before.map(Value::Integer));
        (conditions.join(" AND "), values)
    }
}

fn phase(value: &str) -> Result<ReportPhase, BadQuery> {
    match value {
        "Detected" => Ok(ReportPhase::Detected),
        "Resolved" => Ok(ReportPhase::Resolved),
        _ => Err(BadQuery::Malformed("phase", "must be Detected or Resolved".to_owned())),
    }
}

/// A time, or how long ago.
fn time(name: &'static str, value: &str, now: Timestamp) -> Result<Timestamp, BadQuery> {
    let ago = || now.checked_sub(value.parse::<SignedDuration>().ok()?).ok();
    let wrong = || "must be a time like 2026-01-25T00:00:00Z, or how long ago, like 24h".to_owned();
    value.parse().ok().or_else(ago).ok_or_else(|| BadQuery::Malformed(name, wrong()))
}

fn limit(value: &str) -> Result<usize, BadQuery> {
    let limit = value.parse().ok().filter(|limit| (1..=MOST).contains(limit));
    limit.ok_or_else(|| BadQuery::Malformed("limit", format!("must be a number from 1 to {MOST}")))
}

fn mark(asked: &str) -> String {
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, asked.as_bytes());
    URL_SAFE_NO_PAD.encode(digest.as_ref().get(..9).unwrap_or_default())
}

fn stored(row: &Row<'_>) -> rusqlite::Result<Stored> {
    Ok(Stored { seq: row.get(0)?, received: row.get(1)?, report: row.get(2)? })
}

/// A page of reports, newest first.
pub(super) fn page(connection: &Connection, filter: &Filter) -> rusqlite::Result<Page> {
    let (conditions, mut values) = filter.conditions();
    // One more than is shown says whether there is more.
    values.push(Value::Integer(i64::try_from(filter.limit.saturating_add(1)).unwrap_or(i64::MAX)));
    let mut statement = connection.prepare(&format!(
        "SELECT seq, received, report FROM reports WHERE {conditions} ORDER BY seq DESC LIMIT ?"
    ))?;
    let mut rows = statement.query(params_from_iter(values))?;
    let (mut reports, mut bytes): (Vec<Stored>, usize) = (Vec::new(), 0);
    while let Some(row) = rows.next()? {
        if let Some(last) = reports.last().filter(|_| reports.len() == filter.limit || bytes >= LARGEST) {
            let more = Some(filter.token(last.seq));
            return Ok(Page { reports, more });
        }
        let report = stored(row)?;
        bytes = bytes.saturating_add(report.report.len());
        reports.push(report);
    }
    Ok(Page { reports, more: None })
}

/// The latest reports of a drift, oldest first.
pub(super) fn of_drift(connection: &Connection, id: &str) -> rusqlite::Result<Vec<Stored>> {
    let mut statement = connection
        .prepare("SELECT seq, received, report FROM reports WHERE id = ?1 ORDER BY seq DESC LIMIT ?2")?;
    let mut rows = statement.query(rusqlite::params![id, i64::try_from(MOST).unwrap_or(i64::MAX)])?;
    let (mut reports, mut bytes): (Vec<Stored>, usize) = (Vec::new(), 0);
    while let Some(row) = rows.next()?
        && bytes < LARGEST
    {
        let report = stored(row)?;
        bytes = bytes.saturating_add(report.report.len());
        reports.push(report);
    }
    reports.reverse();
    Ok(reports)
}
