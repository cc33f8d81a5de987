//! Pairs of numbers, before and now, and the detection of regressions.

use serde::Serialize;

use crate::table::TextTable;
use crate::text::{bytes, count};

/// The unit of a number.
#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Unit {
    Bytes,
    Count,
    Nanoseconds,
}

impl Unit {
    pub(crate) fn text(self, value: u64) -> String {
        match self {
            Self::Bytes => bytes(value),
            Self::Count => count(value),
            Self::Nanoseconds => format!("{} ns", count(value)),
        }
    }
}

/// A number in two documents.
#[derive(Clone, Serialize)]
pub(crate) struct NumberChange {
    pub(crate) name: String,
    pub(crate) unit: Unit,
    pub(crate) before: u64,
    pub(crate) now: u64,
    /// `null` if the number was 0 before.
    pub(crate) growth_percent: Option<f64>,
    /// True if growth counts as a regression. It does for memory; time is too noisy.
    pub(crate) judged: bool,
}

impl NumberChange {
    pub(crate) fn new(name: impl Into<String>, unit: Unit, before: u64, now: u64) -> Self {
        let name = name.into();
        Self {
            name,
            unit,
            before,
            now,
            growth_percent: growth(before, now),
            judged: unit != Unit::Nanoseconds,
        }
    }

    /// Excludes the number from the detection of regressions.
    pub(crate) fn unjudged(self) -> Self {
        Self { judged: false, ..self }
    }

    /// Returns true if it grew by more than `percent`.
    pub(crate) fn is_above(&self, percent: f64) -> bool {
        self.judged && self.growth_percent.map_or(self.now > 0, |growth| growth > percent)
    }

    /// Returns the cells of a row after the name: before, now, difference, and difference in percent.
    pub(crate) fn cells(&self) -> [String; 4] {
        let difference = self.unit.text(self.now.abs_diff(self.before));
        let sign = match self.now.cmp(&self.before) {
            std::cmp::Ordering::Greater => "+",
            std::cmp::Ordering::Less => "-",
            std::cmp::Ordering::Equal => "",
        };
        let percent = match self.growth_percent {
            _ if self.now == self.before => String::new(),
            Some(growth) => format!("{growth:+.1} %"),
            None => "new".to_owned(),
        };
        let difference = if sign.is_empty() { "=".to_owned() } else { format!("{sign}{difference}") };
        [self.unit.text(self.before), self.unit.text(self.now), difference, percent]
    }
}

/// Returns the change in percent, exact in the digits that are printed. `None` from 0 to another number.
fn growth(before: u64, now: u64) -> Option<f64> {
    if before == now {
        return Some(0.0);
    }
    if before == 0 {
        return None;
    }
    // In thousandths of a percent, so that the conversion keeps all printed digits.
    let thousandths = u128::from(now.abs_diff(before)) * 100_000 / u128::from(before);
    let percent = f64::from(u32::try_from(thousandths).unwrap_or(u32::MAX)) / 1000.0;
    Some(if now < before { -percent } else { percent })
}

/// Returns the changes as a table.
pub(crate) fn table(changes: &[NumberChange]) -> String {
    let mut table = TextTable::new(&["", ">before", ">now", ">change", ">"]);
    for change in changes {
        table.row(std::iter::once(change.name.clone()).chain(change.cells()));
    }
    table.text()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_exact_and_never_divides_by_nothing() {
        assert_eq!(growth(100, 105), Some(5.0));
        assert_eq!(growth(200, 100), Some(-50.0));
        assert_eq!(growth(0, 0), Some(0.0));
        assert_eq!(growth(0, 1), None);
        assert!(growth(1, u64::MAX).is_some_and(f64::is_finite));
        let change = |before, now| NumberChange::new("x", Unit::Bytes, before, now);
        assert!(!change(100, 105).is_above(5.0) && change(100, 106).is_above(5.0));
        assert!(change(0, 1).is_above(1e9) && !change(5, 0).is_above(0.0));
        assert!(!NumberChange::new("t", Unit::Nanoseconds, 1, 9).is_above(1.0));
    }
}
