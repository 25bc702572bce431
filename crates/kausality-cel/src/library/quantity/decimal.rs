//! Decimal numbers of any size, as exact as they are written.

use std::cmp::Ordering;

/// The most digits that a sum may have: `1e1000000000` is a short text.
const MAX_DIGITS: i64 = 4096;

/// Digits times ten to the exponent.
#[derive(Clone, Debug)]
pub(super) struct Decimal {
    negative: bool,
    /// From 0 to 9, the most significant first, which is not 0. None at all is the number 0.
    digits: Vec<u8>,
    exponent: i64,
    /// How many digits after the point an API server would keep: its floats are rounded there, once more than needed.
    places: i64,
}

impl Decimal {
    pub(super) fn new(value: i64, exponent: i64) -> Self {
        let digits = value.unsigned_abs().to_string().into_bytes();
        Self::of(value < 0, digits.iter().map(|digit| digit - b'0').collect(), exponent)
    }

    /// Of digits that may start with zeros.
    pub(super) fn of(negative: bool, mut digits: Vec<u8>, exponent: i64) -> Self {
        let zeros = digits.iter().take_while(|digit| **digit == 0).count();
        digits.drain(..zeros);
        Self { negative, digits, exponent, places: -exponent }
    }

    pub(super) fn sign(&self) -> i64 {
        match (self.digits.is_empty(), self.negative) {
            (true, _) => 0,
            (false, true) => -1,
            (false, false) => 1,
        }
    }

    pub(super) fn negated(&self) -> Self {
        Self { negative: !self.negative, ..self.clone() }
    }

    /// Without its sign.
    pub(super) fn magnitude(&self) -> Self {
        Self { negative: false, ..self.clone() }
    }

    /// Times two to the power of `shift`.
    pub(super) fn shifted(self, shift: u32) -> Self {
        let mut carry = 0_u128;
        let mut digits = Vec::with_capacity(self.digits.len() + 20);
        for digit in self.digits.iter().rev() {
            carry += u128::from(*digit) << shift;
            digits.push((carry % 10) as u8);
            carry /= 10;
        }
        while carry > 0 {
            digits.push((carry % 10) as u8);
            carry /= 10;
        }
        digits.reverse();
        Self { digits, ..self }
    }

    /// Rounded to so many places after the point, away from zero: what is there at all stays there.
    pub(super) fn rounded(mut self, places: i64) -> Self {
        if self.digits.is_empty() {
            return self;
        }
        self.places = places;
        let excess = usize::try_from(-places - self.exponent).unwrap_or(0);
        if excess == 0 {
            return self;
        }
        let kept = self.digits.len().saturating_sub(excess);
        let inexact = self.digits.iter().skip(kept).any(|digit| *digit != 0);
        self.digits.truncate(kept);
        self.exponent = -places;
        if inexact {
            self.increment();
        }
        self
    }

    fn increment(&mut self) {
        for digit in self.digits.iter_mut().rev() {
            if *digit < 9 {
                *digit += 1;
                return;
            }
            *digit = 0;
        }
        self.digits.insert(0, 1);
    }

    /// How far above the point the first digit is.
    fn top(&self) -> i64 {
        self.exponent.saturating_add(self.digits.len() as i64)
    }

    fn compare_magnitude(&self, other: &Self) -> Ordering {
        match (self.digits.is_empty(), other.digits.is_empty()) {
            (true, true) => return Ordering::Equal,
            (true, false) => return Ordering::Less,
            (false, true) => return Ordering::Greater,
            (false, false) => {}
        }
        let digit = |digits: &[u8], at| digits.get(at).copied().unwrap_or(0);
        self.top().cmp(&other.top()).then_with(|| {
            let digits = 0..self.digits.len().max(other.digits.len());
            let mut compared = digits.map(|at| digit(&self.digits, at).cmp(&digit(&other.digits, at)));
            compared.find(|ordering| ordering.is_ne()).unwrap_or(Ordering::Equal)
        })
    }

    /// The sum.
    pub(super) fn plus(&self, other: &Self) -> Result<Self, String> {
        let places = self.places.max(other.places);
        if self.digits.is_empty() || other.digits.is_empty() {
            let sum = if self.digits.is_empty() { other } else { self };
            return Ok(Self { places, ..sum.clone() });
        }
        let (low, high) = (self.exponent.min(other.exponent), self.top().max(other.top()));
        if high.saturating_sub(low) > MAX_DIGITS {
            return Err(format!("the sum would have more than {MAX_DIGITS} digits"));
        }
        let (larger, smaller) =
            if self.compare_magnitude(other).is_lt() { (other, self) } else { (self, other) };
        let (one, two) = (larger.aligned(low, high), smaller.aligned(low, high));
        let mut carry = 0;
        let mut digits = Vec::with_capacity(one.len() + 1);
        for (one, two) in one.into_iter().zip(two).rev() {
            let sum = if larger.negative == smaller.negative { one + two + carry } else { one - two + carry };
            carry = sum.div_euclid(10);
            digits.push(sum.rem_euclid(10) as u8);
        }
        digits.push(carry as u8);
        digits.reverse();
        Ok(Self { places, ..Self::of(larger.negative, digits, low) })
    }

    /// The digits from one place to another, with zeros where it has none.
    fn aligned(&self, low: i64, high: i64) -> Vec<i8> {
        let zeros = |count: i64| std::iter::repeat_n(0, usize::try_from(count).unwrap_or(0));
        let digits = self.digits.iter().map(|digit| *digit as i8);
        zeros(high - self.top()).chain(digits).chain(zeros(self.exponent - low)).collect()
    }

    /// As an API server computes it: the digits as one integer, times a power of ten.
    pub(super) fn float(&self) -> f64 {
        let digits: String = self.digits.iter().map(|digit| char::from(b'0' + digit)).collect();
        let shifted = self.exponent.saturating_add(self.places);
        let base = if digits.is_empty() { 0.0 } else { format!("{digits}e{shifted}").parse().unwrap_or(0.0) };
        let base: f64 = if self.negative { -base } else { base };
        if self.places == 0 { base } else { base * power(-self.places) }
    }
}

/// Ten to the exponent, in two steps, as Go's `math.Pow10`: the last bit of the result depends on it.
pub(super) fn power(exponent: i64) -> f64 {
    let power = |exponent: i64| format!("1e{exponent}").parse().unwrap_or(f64::INFINITY);
    match exponent {
        ..-323 => 0.0,
        -323..0 => power(-(-exponent / 32 * 32)) / power(-exponent % 32),
        0..=308 => power(exponent / 32 * 32) * power(exponent % 32),
        309.. => f64::INFINITY,
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        self.sign().cmp(&other.sign()).then_with(|| {
            let magnitude = self.compare_magnitude(other);
            if self.negative { magnitude.reverse() } else { magnitude }
        })
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Eq for Decimal {}

impl PartialEq for Decimal {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
