//! Medians, percentiles, and their formatting.

/// Returns the middle value, or the mean of the two middle ones. `None` if `values` is empty.
pub(crate) fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let half = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        count if count % 2 == 1 => Some(sorted[half]),
        _ => Some((sorted[half - 1] + sorted[half]) / 2.0),
    }
}

/// Latencies of single calls, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub(crate) struct Percentiles {
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    pub(crate) p999: f64,
    pub(crate) max: f64,
}

impl Percentiles {
    /// Computes percentiles by nearest rank: the smallest value that at least this share of all does not exceed. `None`
    /// if `values` is empty.
    pub(crate) fn of(values: &mut [f32]) -> Option<Self> {
        values.sort_unstable_by(f32::total_cmp);
        let last = values.len().checked_sub(1)?;
        let rank = |permille: usize| f64::from(values[(values.len() * permille).div_ceil(1000).max(1) - 1]);
        Some(Self { p50: rank(500), p99: rank(990), p999: rank(999), max: f64::from(values[last]) })
    }
}

/// Formats with two or three significant digits, and commas between thousands.
pub(crate) fn number(value: f64) -> String {
    if !value.is_finite() {
        return "-".to_owned();
    }
    let magnitude = value.abs();
    if magnitude < 9.995 {
        return format!("{value:.2}");
    }
    if magnitude < 99.95 {
        return format!("{value:.1}");
    }
    let digits = format!("{:.0}", magnitude);
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    if value < 0.0 { format!("-{text}") } else { text }
}

/// Formats the ratio `of` / `by` as `x 6.1`.
pub(crate) fn ratio(of: Option<f64>, by: Option<f64>) -> String {
    match (of, by) {
        (Some(of), Some(by)) if by > 0.0 => format!("x {}", number(of / by)),
        _ => "-".to_owned(),
    }
}

/// Formats a number of bytes.
pub(crate) fn bytes(value: f64) -> String {
    const UNITS: [(&str, f64); 3] =
        [("GiB", (1_u64 << 30) as f64), ("MiB", (1_u64 << 20) as f64), ("KiB", 1024.0)];
    let unit = UNITS.iter().find(|(_, size)| value >= *size);
    unit.map_or_else(|| format!("{value:.0} B"), |(name, size)| format!("{} {name}", number(value / size)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0]), Some(3.0));
        assert_eq!(median(&[9.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 100.0]), Some(3.0));
    }

    #[test]
    fn percentiles_are_of_the_nearest_rank() {
        assert_eq!(Percentiles::of(&mut []), None);
        let one = Percentiles::of(&mut [5.0]).unwrap();
        assert_eq!(one, Percentiles { p50: 5.0, p99: 5.0, p999: 5.0, max: 5.0 });
        let mut values: Vec<f32> = (1..=1000).rev().map(|value| value as f32).collect();
        let found = Percentiles::of(&mut values).unwrap();
        assert_eq!(found, Percentiles { p50: 500.0, p99: 990.0, p999: 999.0, max: 1000.0 });
        let mut values: Vec<f32> = (1..=2001).map(|value| value as f32).collect();
        let found = Percentiles::of(&mut values).unwrap();
        assert_eq!(found, Percentiles { p50: 1001.0, p99: 1981.0, p999: 1999.0, max: 2001.0 });
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!(number(3.256), "3.26");
        assert_eq!(number(9.996), "10.0");
        assert_eq!(number(54.26), "54.3");
        assert_eq!(number(99.96), "100");
        assert_eq!(number(329.4), "329");
        assert_eq!(number(51_000.0), "51,000");
        assert_eq!(number(1_234_567.0), "1,234,567");
        assert_eq!(number(-1234.0), "-1,234");
        assert_eq!(number(f64::NAN), "-");
    }

    #[test]
    fn ratios() {
        assert_eq!(ratio(Some(329.0), Some(54.0)), "x 6.09");
        assert_eq!(ratio(Some(1.0), Some(0.0)), "-");
        assert_eq!(ratio(None, Some(1.0)), "-");
        assert_eq!(ratio(Some(1.0), None), "-");
    }

    #[test]
    fn sizes() {
        assert_eq!(bytes(10.0), "10 B");
        assert_eq!(bytes(2048.0), "2.00 KiB");
        assert_eq!(bytes(1.5 * 1024.0 * 1024.0 * 1024.0), "1.50 GiB");
    }
}
