//! Regular expressions that cannot stall who evaluates them.
//!
//! `regex-automata` takes time in proportion to the text times the states of an expression, at worst: nothing grows
//! exponentially, but both factors can be large. Where their product is small, it is asked. Where it is not, an
//! automaton is built while searching, which takes a step per byte of the text as long as few of its states are needed.
//! It gives up when that turns out to be otherwise, and then the search is an error.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use regex_automata::hybrid::{dfa, regex as lazy};
use regex_automata::meta::{self, Regex};
use regex_automata::nfa::thompson::{self, NFA, WhichCaptures};
use regex_automata::util::{iter::Searcher, syntax};
use regex_automata::{Input, MatchError};

/// The most memory that a compiled expression may take, and again what it may take to be matched.
pub(crate) const MAX_SIZE: usize = 1 << 20;
/// The same for all that are written in one expression of CEL: enough for `.{1,1000}`.
pub(crate) const MAX_WRITTEN: usize = 5 << 18;
/// The longest expression.
const MAX_PATTERN: usize = 16 << 10;
/// The deepest expression.
const MAX_NESTING: u32 = 128;
/// The longest text that is searched.
const MAX_TEXT: usize = 4 << 20;
/// The most steps, of a byte and a state each, that are taken without asking whether they are needed.
pub(crate) const MAX_STEPS: usize = 4_000_000;
/// The most bytes that are looked at for all matches, should each search go on to the end of the text.
const MAX_BYTES: usize = 2_000_000;
/// How often the automaton may start over before it is asked how many bytes each of its states was good for, and how
/// many that should be.
const RESTARTS: usize = 1;
const BYTES_PER_STATE: usize = 10;

/// Tells expressions apart.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// The most memory that a thread keeps for searches to come.
const MAX_CACHED: usize = 4 << 20;

/// What searches take beside their expressions. It may be far more than these, so that it is kept as long as there is room for it, and not
/// as long as they are.
#[derive(Default)]
struct Caches {
    by_id: BTreeMap<u64, meta::Cache>,
    size: usize,
}

impl Caches {
    fn lend<T>(&mut self, pattern: &Pattern, search: impl FnOnce(&mut meta::Cache) -> T) -> T {
        let kept = self.by_id.get(&pattern.id).map_or(0, size_of_cache);
        let cache = self.by_id.entry(pattern.id).or_insert_with(|| pattern.regex.create_cache());
        let found = search(cache);
        self.size = (self.size + size_of_cache(cache)).saturating_sub(kept);
        if self.size > MAX_CACHED {
            *self = Self::default();
        }
        found
    }
}

fn size_of_cache(cache: &meta::Cache) -> usize {
    size_of::<meta::Cache>() + cache.memory_usage()
}

thread_local! {
    static CACHES: RefCell<Caches> = RefCell::default();
}

/// A compiled expression.
#[derive(Debug)]
pub(crate) struct Pattern {
    id: u64,
    regex: Regex,
    /// As Rust writes it.
    translated: String,
    states: usize,
    size: usize,
    /// For where it would take too many steps: made when it is first needed.
    lazy: OnceLock<Option<lazy::Regex>>,
}

/// Why there is no pattern.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// It is none: in words for who wrote it.
    Illegal(String),
    /// It would be larger than it may be. Making it took about as much as if it were as large as that.
    TooLarge,
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Illegal(why) => write!(f, "illegal regex: {why}"),
            Self::TooLarge => f.write_str("illegal regex: it is too large"),
        }
    }
}

impl Pattern {
    /// Compiles an expression in Go's syntax, of no more than a size.
    ///
    /// # Errors
    /// If it is none, or too large.
    pub(crate) fn compile(pattern: &str, most: usize) -> Result<Self, Refused> {
        if pattern.len() > MAX_PATTERN {
            let why = format!("more than {MAX_PATTERN} bytes are not supported");
            return Err(Refused::Illegal(why));
        }
        let (translated, weight) = super::syntax::translated(pattern).map_err(Refused::Illegal)?;
        // Nothing below is begun unless it may take something, and all of it ends where that is used up.
        let left = most.checked_sub(weight).ok_or(Refused::TooLarge)?;
        let parsed = syntax::parse_with(&translated, &syntax::Config::new().nest_limit(MAX_NESTING));
        // The last line says what is wrong, those before it draw where in the translation.
        let illegal = |error: String| {
            let why = error.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
            Refused::Illegal(why)
        };
        let parsed = parsed.map_err(|error| illegal(error.to_string()))?;
        let too_large = |_| Refused::TooLarge;
        let nfa = NFA::compiler().configure(size(left)).build_from_hir(&parsed).map_err(too_large)?;
        let bounds = meta::Config::new()
            .nfa_size_limit(Some(left))
            .hybrid_cache_capacity(MAX_SIZE)
            .which_captures(WhichCaptures::Implicit)
            .onepass(false);
        let regex = meta::Builder::new().configure(bounds).build_from_hir(&parsed);
        let regex = regex.map_err(|_| Refused::TooLarge)?;
        let took = nfa.memory_usage().max(regex.memory_usage());
        if took > left {
            return Err(Refused::TooLarge);
        }
        let (states, size) = (nfa.states().len(), weight + took);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        Ok(Self { id, regex, translated, states, size, lazy: OnceLock::new() })
    }

    /// The memory that it takes, and what it took to make it.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// The memory that it may come to take: as much again, once a long text has been searched.
    pub(crate) fn kept(&self) -> usize {
        self.size.saturating_mul(2)
    }

    /// The most steps that a search may take.
    pub(crate) fn steps(&self, text: &str) -> u64 {
        (self.states as u64).saturating_mul(text.len() as u64)
    }

    /// Whether it is found in a text.
    ///
    /// # Errors
    /// If that would take too long.
    pub(crate) fn is_match(&self, text: &str) -> Result<bool, String> {
        if self.is_cheap(text)? {
            let input = Input::new(text).earliest(true);
            let search = |cache: &mut _| self.regex.search_half_with(cache, &input).is_some();
            Ok(CACHES.with_borrow_mut(|caches| caches.lend(self, search)))
        } else {
            Ok(!self.ranges(text, 1)?.is_empty())
        }
    }

    /// The first match, or an empty text.
    ///
    /// # Errors
    /// If that would take too long.
    pub(crate) fn find(&self, text: &str) -> Result<String, String> {
        Ok(self.find_all(text, 1)?.pop().unwrap_or_default())
    }

    /// As many matches as asked for.
    ///
    /// # Errors
    /// If that would take too long.
    pub(crate) fn find_all(&self, text: &str, limit: usize) -> Result<Vec<String>, String> {
        let ranges = self.ranges(text, limit)?;
        Ok(ranges.into_iter().filter_map(|range| text.get(range)).map(str::to_owned).collect())
    }

    fn is_cheap(&self, text: &str) -> Result<bool, String> {
        if text.len() > MAX_TEXT {
            return Err(format!("texts of more than {MAX_TEXT} bytes are not searched"));
        }
        Ok(self.states.saturating_mul(text.len()) <= MAX_STEPS)
    }

    fn ranges(&self, text: &str, limit: usize) -> Result<Vec<Range<usize>>, String> {
        if self.is_cheap(text)? {
            let mut searcher = Searcher::new(Input::new(text));
            let search = |cache: &mut _| {
                gathered(text, limit, || {
                    let found = searcher.advance(|input| Ok(self.regex.search_with(cache, input)));
                    found.map(|found| Ok(found.range()))
                })
            };
            return CACHES.with_borrow_mut(|caches| caches.lend(self, search));
        }
        let too_costly =
            || format!("it takes too long to search {} bytes for the regular expression", text.len());
        let lazy = self.lazy.get_or_init(|| self.lazily()).as_ref().ok_or_else(too_costly)?;
        let mut cache = lazy.create_cache();
        let mut searcher = Searcher::new(Input::new(text));
        gathered(text, limit, || {
            let found: Result<_, MatchError> =
                searcher.try_advance(|input| lazy.try_search(&mut cache, input));
            found.map(|found| found.map(|found| found.range())).map_err(|_| too_costly()).transpose()
        })
    }

    fn lazily(&self) -> Option<lazy::Regex> {
        let bounds = dfa::Config::new()
            .cache_capacity(MAX_SIZE)
            .minimum_cache_clear_count(Some(RESTARTS))
            .minimum_bytes_per_state(Some(BYTES_PER_STATE));
        let mut builder = lazy::Regex::builder();
        builder.syntax(syntax::Config::new().nest_limit(MAX_NESTING)).thompson(size(MAX_WRITTEN)).dfa(bounds);
        builder.build(&self.translated).ok()
    }
}

fn size(most: usize) -> thompson::Config {
    thompson::Config::new().nfa_size_limit(Some(most)).which_captures(WhichCaptures::Implicit)
}

/// Matches up to a limit, as long as they are found soon enough.
fn gathered(
    text: &str,
    limit: usize,
    mut next: impl FnMut() -> Option<Result<Range<usize>, String>>,
) -> Result<Vec<Range<usize>>, String> {
    let (mut found, mut bytes) = (Vec::new(), 0);
    while found.len() < limit {
        let Some(range) = next().transpose()? else { break };
        bytes += text.len() - range.start;
        if bytes > MAX_BYTES {
            return Err(format!(
                "more than {} matches in {} bytes: give it a limit",
                found.len(),
                text.len()
            ));
        }
        found.push(range);
    }
    Ok(found)
}
