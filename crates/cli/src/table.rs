//! Tables with columns as wide as their content.

use crate::text::is_command;

/// A table of text cells.
pub(crate) struct TextTable {
    right: Vec<bool>,
    rows: Vec<Vec<String>>,
}

impl TextTable {
    /// Creates a table with these headings. A heading that begins with `>` aligns its column to the right.
    pub(crate) fn new(headings: &[&str]) -> Self {
        let right = headings.iter().map(|text| text.starts_with('>')).collect();
        let row = headings.iter().map(|text| text.trim_start_matches('>').to_owned());
        Self { right, rows: vec![row.collect()] }
    }

    /// Adds a row. Each cell becomes one line, because untrusted names may contain line breaks.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().map(|cell| cell.replace(is_command, "\u{FFFD}")).collect());
    }

    /// Returns the table, with a rule below its headings.
    pub(crate) fn text(&self) -> String {
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<_> = (0..self.right.len()).map(width).collect();
        let rule = "─".repeat(widths.iter().sum::<usize>() + 2 * widths.len().saturating_sub(1));
        let mut text = String::new();
        for (at, row) in self.rows.iter().enumerate() {
            let mut line = String::new();
            for ((cell, &width), &right) in row.iter().zip(&widths).zip(&self.right) {
                line += &if right { format!("  {cell:>width$}") } else { format!("  {cell:<width$}") };
            }
            text += line.trim_end();
            text.push('\n');
            if at == 0 {
                text += &format!("  {rule}\n");
            }
        }
        text
    }
}

/// Returns the line below a list that is cut.
pub(crate) fn and_more(all: usize, shown: usize, what: &str) -> String {
    match all.checked_sub(shown) {
        None | Some(0) => String::new(),
        Some(more) => format!("  and {more} more {what}\n"),
    }
}

/// Returns a heading.
pub(crate) fn heading(text: &str) -> String {
    format!("\n{text}\n{}\n", "─".repeat(text.chars().count()))
}
