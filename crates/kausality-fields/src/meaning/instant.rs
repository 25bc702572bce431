//! Points in time, exactly.

/// A point in time as RFC 3339 writes it, in whatever zone: `2026-01-01T01:00:00+01:00` is `2026-01-01T00:00:00Z`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Instant {
    /// Seconds since the year 1970 began in UTC.
    seconds: i64,
    nanoseconds: u32,
}

impl Instant {
    /// Reads a time; `None` if it is none, or is finer than a billionth of a second.
    pub fn parse(text: &str) -> Option<Self> {
        let mut left = Left(text);
        let year = left.number(4)?;
        let month = left.after("-")?.number(2).filter(|month| (1..=12).contains(month))?;
        let day = left.after("-")?.number(2).filter(|day| (1..=days_in(year, month)).contains(day))?;
        let hour = left.after("T")?.number(2).filter(|hour| *hour < 24)?;
        let minute = left.after(":")?.number(2).filter(|minute| *minute < 60)?;
        let second = left.after(":")?.number(2).filter(|second| *second < 60)?;
        let nanoseconds = left.fraction()?;
        let offset = left.offset()?;
        let seconds = ((days_before(year, month, day) * 24 + hour) * 60 + minute - offset) * 60 + second;
        Some(Self { seconds, nanoseconds })
    }
}

/// What is left to read of a text.
struct Left<'a>(&'a str);

impl Left<'_> {
    fn after(&mut self, mark: &str) -> Option<&mut Self> {
        self.0 = self.0.strip_prefix(mark)?;
        Some(self)
    }

    /// A number of exactly this many digits.
    fn number(&mut self, digits: usize) -> Option<i64> {
        let (number, rest) = self.0.split_at_checked(digits)?;
        self.0 = rest;
        number.bytes().all(|byte| byte.is_ascii_digit()).then(|| number.parse().ok())?
    }

    /// Billionths of a second; zero if there are none.
    fn fraction(&mut self) -> Option<u32> {
        let Some(rest) = self.0.strip_prefix('.') else { return Some(0) };
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let (digits, rest) = rest.split_at(end);
        self.0 = rest;
        let significant = digits.trim_end_matches('0');
        let missing = 9u32.checked_sub(u32::try_from(significant.len()).ok()?)?;
        match (digits, significant) {
            ("", _) => None,
            (_, "") => Some(0),
            _ => significant.parse::<u32>().ok()?.checked_mul(10u32.pow(missing)),
        }
    }

    /// Minutes by which local time is ahead of UTC. It ends the text.
    fn offset(&mut self) -> Option<i64> {
        let sign = match self.0.as_bytes().first()? {
            b'Z' => return (self.0 == "Z").then_some(0),
            b'+' => 1,
            b'-' => -1,
            _ => return None,
        };
        self.0 = &self.0[1..];
        let hours = self.number(2).filter(|hours| *hours < 24)?;
        let minutes = self.after(":")?.number(2).filter(|minutes| *minutes < 60)?;
        self.0.is_empty().then_some(sign * (hours * 60 + minutes))
    }
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_in(year: i64, month: i64) -> i64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from the beginning of 1970 to this one.
fn days_before(year: i64, month: i64, day: i64) -> i64 {
    let leap_years = |year: i64| year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    let years = (year - 1970) * 365 + leap_years(year - 1) - leap_years(1969);
    years + (1..month).map(|month| days_in(year, month)).sum::<i64>() + day - 1
}
