//! Values that have types of their own.

use alloc::string::String;
use core::fmt;

/// A position in the WAL (XLogRecPtr).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lsn(pub u64);

impl fmt::Display for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:X}/{:X}", self.0 >> 32, self.0 & 0xFFFF_FFFF)
    }
}

/// Microseconds since 2000-01-01 00:00 UTC (TimestampTz).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub i64);

impl fmt::Display for Timestamp {
    /// ISO 8601 in UTC; `infinity`; the number itself if its year is not in the range 1 to 9999.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const DAY: i64 = 86_400_000_000;
        match self.0 {
            i64::MAX => return f.write_str("infinity"),
            i64::MIN => return f.write_str("-infinity"),
            -63_082_281_600_000_000..=252_455_615_999_999_999 => {}
            _ => return write!(f, "{}", self.0),
        }
        let (days, left) = (self.0.div_euclid(DAY), self.0.rem_euclid(DAY));
        // Days since 0000-03-01, in eras of 400 years; years begin in March, so that a leap day is their last.
        let shifted = days + 730_425;
        let (era, day) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
        let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
        let of_year = day - (365 * year + year / 4 - year / 100);
        let month = (5 * of_year + 2) / 153;
        let date = of_year - (153 * month + 2) / 5 + 1;
        let (year, month) = (year + 400 * era + month / 10, (month + 2) % 12 + 1);
        let (seconds, micros) = (left / 1_000_000, left % 1_000_000);
        let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
        write!(
            f,
            "{year:04}-{month:02}-{date:02}T{hour:02}:{minute:02}:{second:02}"
        )?;
        if micros != 0 {
            write!(f, ".{micros:06}")?;
        }
        f.write_str("+00:00")
    }
}

/// A number in floating point (float8). NaN equals NaN, whatever its bits, as in PostgreSQL.
#[derive(Clone, Copy, Debug, Default)]
pub struct Float(pub f64);

impl PartialEq for Float {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0 || self.0.is_nan() && other.0.is_nan()
    }
}

impl Eq for Float {}

impl From<f64> for Float {
    fn from(value: f64) -> Self {
        Self(value)
    }
}

/// A byte that stands for a letter.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Letter(pub u8);

impl fmt::Debug for Letter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", char::from(self.0))
    }
}

/// Text without its NUL; it need not be UTF-8.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Text<'a>(pub &'a [u8]);

impl<'a> Text<'a> {
    /// Return it as a str, if it is UTF-8.
    pub fn as_str(&self) -> Option<&'a str> {
        core::str::from_utf8(self.0).ok()
    }
}

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(self.0))
    }
}

impl fmt::Debug for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", String::from_utf8_lossy(self.0))
    }
}

impl<'a> From<&'a str> for Text<'a> {
    fn from(text: &'a str) -> Self {
        Self(text.as_bytes())
    }
}
