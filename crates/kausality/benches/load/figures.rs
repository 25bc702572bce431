//! Figures of several rounds, and how people read them.

use comfy_table::{CellAlignment, Table, presets};
use hdrhistogram::Histogram;
use serde_json::{Value, json};

/// A figure of each round.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rounds(Vec<f64>);

impl Rounds {
    pub(crate) fn push(&mut self, figure: f64) {
        self.0.push(figure);
    }

    fn sorted(&self) -> Vec<f64> {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        sorted
    }

    /// The one in the middle; that between the two in the middle, if there are two.
    pub(crate) fn median(&self) -> f64 {
        let sorted = self.sorted();
        let of = |nth: usize| sorted.get(nth).copied().unwrap_or_default();
        let length = sorted.len();
        (of(length.saturating_sub(1) / 2) + of(length / 2)) / 2.0
    }

    pub(crate) fn least(&self) -> f64 {
        self.sorted().first().copied().unwrap_or_default()
    }

    pub(crate) fn most(&self) -> f64 {
        self.sorted().last().copied().unwrap_or_default()
    }

    /// The ratio of each round to the same one of another.
    pub(crate) fn against(&self, other: &Self) -> Self {
        self.0.iter().zip(&other.0).map(|(mine, its)| mine / its).collect()
    }

    /// `median (least–most)`.
    pub(crate) fn show(&self, digits: usize) -> String {
        format!("{:.digits$} ({:.digits$}–{:.digits$})", self.median(), self.least(), self.most())
    }

    pub(crate) fn json(&self) -> Value {
        json!({"median": self.median(), "least": self.least(), "most": self.most(), "rounds": self.0})
    }
}

impl FromIterator<f64> for Rounds {
    fn from_iter<T: IntoIterator<Item = f64>>(figures: T) -> Self {
        Self(figures.into_iter().collect())
    }
}

/// The latencies of a histogram that are told of, in microseconds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Latencies {
    pub(crate) p50: Rounds,
    pub(crate) p99: Rounds,
    pub(crate) p999: Rounds,
}

impl Latencies {
    /// Adds a round of nanoseconds.
    pub(crate) fn push(&mut self, round: &Histogram<u64>) {
        #[allow(clippy::cast_precision_loss, reason = "far less than a day")]
        let at = |quantile| round.value_at_quantile(quantile) as f64 / 1000.0;
        self.p50.push(at(0.5));
        self.p99.push(at(0.99));
        self.p999.push(at(0.999));
    }

    pub(crate) fn json(&self) -> Value {
        json!({"p50": self.p50.json(), "p99": self.p99.json(), "p99.9": self.p999.json(), "unit": "us"})
    }
}

/// A histogram of nanoseconds, up to a minute.
pub(crate) fn histogram() -> anyhow::Result<Histogram<u64>> {
    Ok(Histogram::new_with_bounds(1000, 60_000_000_000, 3)?)
}

/// A table whose columns but the first are numbers.
pub(crate) fn print_table(title: &str, header: &[&str], rows: Vec<Vec<String>>) {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(header.to_vec());
    for row in rows {
        table.add_row(row);
    }
    for (place, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        if place > 0 {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    println!("\n{title}\n{table}");
}

/// The budgets that were looked at.
#[derive(Debug, Default)]
pub(crate) struct Report(Vec<Budget>);

#[derive(Debug)]
struct Budget {
    what: String,
    limit: String,
    measured: String,
    met: bool,
}

impl Report {
    /// Says whether a figure is within its budget, in the unit of both.
    pub(crate) fn at_most(&mut self, what: &str, measured: f64, limit: f64, unit: &str) {
        self.add(what, "at most", measured, limit, unit, measured <= limit);
    }

    /// The same for what should be much.
    pub(crate) fn at_least(&mut self, what: &str, measured: f64, limit: f64, unit: &str) {
        self.add(what, "at least", measured, limit, unit, measured >= limit);
    }

    fn add(&mut self, what: &str, sort: &str, measured: f64, limit: f64, unit: &str, met: bool) {
        let limit = format!("{sort} {limit:.2} {unit}").trim_end().to_owned();
        let measured = format!("{measured:.2} {unit}").trim_end().to_owned();
        self.0.push(Budget { what: what.to_owned(), limit, measured, met });
    }

    pub(crate) fn print_budgets(&self) {
        let row = |budget: &Budget| {
            let met = if budget.met { "met" } else { "MISSED" };
            vec![budget.what.clone(), budget.limit.clone(), budget.measured.clone(), met.to_owned()]
        };
        let rows = self.0.iter().map(row).collect();
        print_table("Budgets", &["what", "budget", "measured", ""], rows);
    }

    pub(crate) fn budgets(&self) -> Value {
        let budget = |budget: &Budget| json!({"what": budget.what, "budget": budget.limit, "measured": budget.measured, "met": budget.met});
        self.0.iter().map(budget).collect()
    }
}
