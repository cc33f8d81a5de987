//! Headings, tables and human-readable units.

use std::error::Error;
use std::io::{IsTerminal, Write};

/// Prints a line. A closed pipe ends the program without an error: `head` closes it after ten lines.
fn line(text: &str) {
    if writeln!(std::io::stdout(), "{text}").is_err() {
        std::process::exit(0);
    }
}

/// Prints a heading, bold on a terminal.
pub fn heading(text: &str) {
    if std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none() {
        line(&format!("\n\x1b[1m{text}\x1b[0m"));
    } else {
        line(&format!("\n{text}"));
    }
    line(&"─".repeat(text.chars().count()));
}

/// Prints a line of explanation.
pub fn note(text: &str) {
    line(text);
}

/// Returns an error and its causes, in one line.
pub fn chain(error: &(dyn Error + 'static)) -> String {
    let causes = std::iter::successors(error.source(), |&cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

/// Formats bytes in the most readable unit.
pub fn bytes(bytes: u64) -> String {
    let mut unit = "B";
    // In tenths of the unit, so that rounding happens once.
    let mut tenths = u128::from(bytes) * 10;
    for next in ["KiB", "MiB", "GiB", "TiB", "PiB"] {
        if tenths < 10_240 {
            break;
        }
        (tenths, unit) = ((tenths + 512) / 1024, next);
    }
    match tenths % 10 {
        rest if rest > 0 && tenths < 1_000 => format!("{}.{rest} {unit}", tenths / 10),
        _ => format!("{} {unit}", (tenths + 5) / 10),
    }
}

/// Formats a number with separated thousands.
pub fn count(number: impl TryInto<u64>) -> String {
    let digits = number.try_into().map_or_else(|_| "?".to_owned(), |number: u64| number.to_string());
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A table with columns as wide as their content.
pub struct Table {
    right: Vec<bool>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Creates a table with these headings. A heading that begins with `>` aligns its column to the right.
    pub fn new(headings: &[&str]) -> Self {
        let right = headings.iter().map(|text| text.starts_with('>')).collect();
        let row = headings.iter().map(|text| text.trim_start_matches('>').to_owned());
        Self { right, rows: vec![row.collect()] }
    }

    pub fn row<const N: usize>(&mut self, cells: [&dyn ToString; N]) {
        self.rows.push(cells.iter().map(|cell| cell.to_string()).collect());
    }

    /// Adds an empty row, which prints as a rule.
    pub fn rule(&mut self) {
        self.rows.push(Vec::new());
    }

    pub fn print(&self) {
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<_> = (0..self.right.len()).map(width).collect();
        let rule = "─".repeat(widths.iter().sum::<usize>() + 2 * widths.len().saturating_sub(1));
        for (at, row) in self.rows.iter().enumerate() {
            if row.is_empty() {
                line(&format!("  {rule}"));
                continue;
            }
            let mut cells = String::new();
            for ((cell, &width), &right) in row.iter().zip(&widths).zip(&self.right) {
                cells += &if right { format!("  {cell:>width$}") } else { format!("  {cell:<width$}") };
            }
            line(cells.trim_end());
            if at == 0 {
                line(&format!("  {rule}"));
            }
        }
    }
}
