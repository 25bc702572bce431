//! Schedules: five fields of minute, hour, day of the month, month and day of the week.

use super::super::{Time, time::civil};

const MINUTE: u64 = 60_000;
/// A day, in minutes.
const DAY: u64 = 24 * 60;
/// How far to look for a time, in minutes: four years and a day, so that 29 February is found.
const HORIZON: u64 = (4 * 365 + 2) * DAY;

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const WEEKDAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// When to act: a bit for each value of each field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Schedule {
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    weekdays: u64,
    /// Whether both kinds of days are given, so that either is enough.
    either_day: bool,
}

impl Schedule {
    /// Reads the five fields, or `@hourly` and its like, in UTC.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let text = match text.trim() {
            "@hourly" => "0 * * * *",
            "@daily" | "@midnight" => "0 0 * * *",
            "@weekly" => "0 0 * * 0",
            "@monthly" => "0 0 1 * *",
            "@yearly" | "@annually" => "0 0 1 1 *",
            other => other,
        };
        let fields: Vec<_> = text.split_whitespace().collect();
        let &[minutes, hours, days, months, weekdays] = fields.as_slice() else { return None };
        Some(Self {
            minutes: set(minutes, 0, 59, &[])?,
            hours: set(hours, 0, 23, &[])?,
            days: set(days, 1, 31, &[])?,
            months: set(months, 1, 12, &MONTHS)?,
            weekdays: set(weekdays, 0, 6, &WEEKDAYS)?,
            either_day: !days.starts_with('*') && !weekdays.starts_with('*'),
        })
    }

    /// Whether a text is a schedule. One that counts from when it is read (`@every 5m`) is, too, and never due here.
    pub(crate) fn is_one(text: &str) -> bool {
        let every = text.strip_prefix("@every ");
        every.map_or_else(|| Self::parse(text).is_some(), is_duration)
    }

    /// The first time after a moment.
    pub(super) fn next(&self, after: Time) -> Option<Time> {
        let first = after.0 / MINUTE + 1;
        let days = first / DAY..=(first + HORIZON) / DAY;
        let minutes = |day: u64| (day * DAY).max(first)..(day + 1) * DAY;
        let minute = days
            .filter(|day| self.has_day(*day))
            .find_map(|day| minutes(day).find(|it| self.has_minute(*it)));
        minute.map(|minute| Time(minute * MINUTE))
    }

    /// The last time after a moment, and not after another.
    pub(super) fn last(&self, after: Time, until: Time) -> Option<Time> {
        let (first, last) = (after.0 / MINUTE + 1, until.0 / MINUTE);
        let first = first.max(last.saturating_sub(HORIZON));
        let mut days = (first / DAY..=last / DAY).rev().filter(|day| self.has_day(*day));
        let minutes = |day: u64| ((day * DAY).max(first)..((day + 1) * DAY).min(last + 1)).rev();
        let minute = days.find_map(|day| minutes(day).find(|it| self.has_minute(*it)));
        minute.map(|minute| Time(minute * MINUTE))
    }

    fn has_minute(&self, minute: u64) -> bool {
        bit(self.minutes, minute % 60) && bit(self.hours, minute / 60 % 24)
    }

    fn has_day(&self, day: u64) -> bool {
        let (_, month, of_month) = civil(day);
        // The epoch began on a Thursday.
        let (day_fits, weekday_fits) = (bit(self.days, of_month), bit(self.weekdays, (day + 4) % 7));
        let fits = if self.either_day { day_fits || weekday_fits } else { day_fits && weekday_fits };
        bit(self.months, month) && fits
    }
}

fn bit(set: u64, value: u64) -> bool {
    set >> value & 1 == 1
}

/// `1h30m`, `2.5s`.
fn is_duration(text: &str) -> bool {
    let units = ["ns", "us", "µs", "ms", "s", "m", "h"];
    let mut rest = text;
    while !rest.is_empty() {
        let unit = rest.trim_start_matches(|letter: char| letter.is_ascii_digit() || letter == '.');
        let number = &rest[..rest.len() - unit.len()];
        let end = unit.find(|letter: char| letter.is_ascii_digit() || letter == '.').unwrap_or(unit.len());
        if number.parse::<f64>().is_err() || !units.contains(&&unit[..end]) {
            return false;
        }
        rest = &unit[end..];
    }
    !text.is_empty()
}

/// A field: `*`, numbers or their names, ranges, steps, and lists of them.
fn set(field: &str, least: u64, most: u64, names: &[&str]) -> Option<u64> {
    field.split(',').try_fold(0, |set, part| {
        let (range, step) = match part.split_once('/') {
            Some((range, step)) => (range, Some(step.parse::<u64>().ok().filter(|step| *step > 0)?)),
            None => (part, None),
        };
        let number = |text: &str| {
            let named = names.iter().zip(least..).find(|(name, _)| name.eq_ignore_ascii_case(text));
            let number = named.map(|(_, number)| number).or_else(|| text.parse::<u64>().ok());
            number.filter(|it| (least..=most).contains(it))
        };
        let (from, to) = match range.split_once('-') {
            _ if range == "*" || range == "?" => (least, most),
            Some((from, to)) => (number(from)?, number(to).filter(|to| Some(*to) >= number(from))?),
            None => (number(range)?, if step.is_some() { most } else { number(range)? }),
        };
        let steps = (from..=to).step_by(usize::try_from(step.unwrap_or(1)).ok()?);
        Some(steps.fold(set, |set, value| set | 1 << value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(schedule: &str, now: &str, next: &str) {
        let next = Time::parse(next).unwrap();
        let schedule = Schedule::parse(schedule).unwrap();
        assert_eq!(schedule.next(Time::parse(now).unwrap()).unwrap().rfc3339(), next.rfc3339());
        assert_eq!(schedule.last(Time(0), next), Some(next), "the last time is found where the next is");
    }

    #[test]
    fn the_next_time_is_found() {
        check("0 * * * *", "2026-11-15T08:12:12Z", "2026-11-15T09:00:00Z");
        check("*/15 * * * *", "2026-11-15T08:12:12Z", "2026-11-15T08:15:00Z");
        check("0 3 * * *", "2026-11-15T08:12:12Z", "2026-11-16T03:00:00Z");
        check("0 3 * * 1-5", "2026-11-14T08:12:12Z", "2026-11-16T03:00:00Z");
        check("30 4 1,15 * 5", "2026-11-02T08:12:12Z", "2026-11-06T04:30:00Z");
        check("0 0 29 2 *", "2026-11-15T08:12:12Z", "2028-02-29T00:00:00Z");
        check("0 0 * * SUN", "2026-11-14T08:12:12Z", "2026-11-15T00:00:00Z");
        check("0 3 * feb-mar mon", "2026-11-14T08:12:12Z", "2027-02-01T03:00:00Z");
        check("@hourly", "2026-11-15T08:59:59Z", "2026-11-15T09:00:00Z");
    }

    #[test]
    fn what_is_no_schedule_is_none() {
        assert!(Schedule::is_one("@every 1h30m") && Schedule::is_one("@daily"));
        for text in [
            "",
            "* * * *",
            "60 * * * *",
            "a * * * *",
            "*/0 * * * *",
            "5-70 * * * *",
            "@often",
            "0 0 * * 7",
            "9-5 * * * *",
            "@every",
            "@every x",
            "@every 5",
        ] {
            assert!(!Schedule::is_one(text), "{text}");
        }
    }
}
