//! Moments, as an input: nothing here asks a clock.

/// A moment: milliseconds since the epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub u64);

const DAY: u64 = 86_400;

impl Time {
    /// This many milliseconds later.
    #[must_use]
    pub fn after(self, milliseconds: u64) -> Self {
        Self(self.0.saturating_add(milliseconds))
    }

    /// This many seconds later.
    #[must_use]
    pub fn after_seconds(self, seconds: u64) -> Self {
        self.after(seconds.saturating_mul(1000))
    }

    /// As Kubernetes writes it: RFC 3339, in whole seconds, in UTC.
    pub fn rfc3339(self) -> String {
        let seconds = self.0 / 1000;
        let (year, month, day) = civil(seconds / DAY);
        let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
        format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
    }

    /// Reads what [`Time::rfc3339`] writes; fractions of a second are dropped.
    pub fn parse(text: &str) -> Option<Self> {
        let number = |from: usize, to: usize| text.get(from..to)?.parse::<u64>().ok();
        let utc = text.ends_with('Z') && text.as_bytes().get(10) == Some(&b'T');
        let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
        if !utc || year < 1970 || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
            return None;
        }
        let seconds =
            days(year, month, day) * DAY + number(11, 13)? * 3600 + number(14, 16)? * 60 + number(17, 19)?;
        Some(Self(seconds * 1000))
    }

    /// Minutes since the epoch.
    pub(super) fn minutes(self) -> u64 {
        self.0 / 60_000
    }
}

/// Year, month and day of a day since the epoch. Years are counted from March, so that leap days come last.
pub(super) fn civil(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (year_of_era + era * 400 + u64::from(month <= 2), month, day)
}

/// Days since the epoch of a day of 1970 or later.
fn days(year: u64, month: u64, day: u64) -> u64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (year / 400, year % 400);
    let from_march = if month > 2 { month - 3 } else { month + 9 };
    let day_of_year = (153 * from_march + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

#[cfg(test)]
mod tests;
