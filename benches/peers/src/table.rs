//! Markdown tables.

use std::fmt;

/// A table with its title and a note. The first column is left-aligned, the others right-aligned.
#[derive(Clone, Debug)]
pub(crate) struct AlignedTable {
    title: String,
    note: String,
    head: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl AlignedTable {
    pub(crate) fn new<T: Into<String>>(title: &str, note: &str, head: impl IntoIterator<Item = T>) -> Self {
        let head = head.into_iter().map(Into::into).collect();
        Self { title: title.to_owned(), note: note.to_owned(), head, rows: Vec::new() }
    }

    /// Adds a row. Missing cells are empty.
    pub(crate) fn row<T: Into<String>>(&mut self, cells: impl IntoIterator<Item = T>) {
        let mut cells: Vec<String> = cells.into_iter().map(Into::into).collect();
        cells.resize(self.head.len(), String::new());
        self.rows.push(cells);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Removes columns that are empty in every row.
    pub(crate) fn without_empty_columns(mut self) -> Self {
        let said = |at: usize| at == 0 || self.rows.iter().any(|row| !matches!(row[at].as_str(), "" | "-"));
        let kept: Vec<bool> = (0..self.head.len()).map(said).collect();
        let keep = |cells: &mut Vec<String>| {
            let mut kept = kept.iter();
            cells.retain(|_| kept.next().is_some_and(|kept| *kept));
        };
        keep(&mut self.head);
        self.rows.iter_mut().for_each(keep);
        self
    }
}

impl fmt::Display for AlignedTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "## {}\n", self.title)?;
        let lines = || std::iter::once(&self.head).chain(&self.rows);
        let width = |at: usize| lines().map(|line| line[at].chars().count()).max().unwrap_or(0).max(3);
        let widths: Vec<usize> = (0..self.head.len()).map(width).collect();
        for (number, line) in lines().enumerate() {
            for (at, (cell, width)) in line.iter().zip(&widths).enumerate() {
                if at == 0 {
                    write!(f, "| {cell:<width$} |")?;
                } else {
                    write!(f, " {cell:>width$} |")?;
                }
            }
            writeln!(f)?;
            if number == 0 {
                for (at, width) in widths.iter().enumerate() {
                    let dashes = "-".repeat(width + 1);
                    if at == 0 { write!(f, "|{dashes}-|")? } else { write!(f, "{dashes}:|")? }
                }
                writeln!(f)?;
            }
        }
        if self.note.is_empty() { Ok(()) } else { writeln!(f, "\n{}", self.note) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_markdown() {
        let mut table = AlignedTable::new("Times", "Medians.", ["", "Sublet", "VMA"]);
        table.row(["churn", "54.0", "329"]);
        table.row(["frame"]);
        let text = table.to_string();
        let expected = "## Times\n\n|       | Sublet | VMA |\n|-------|-------:|----:|\n| churn |   54.0 | 329 |\n| frame |        |     |\n\nMedians.\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn columns_that_say_nothing_go() {
        let mut table = AlignedTable::new("", "", ["", "a", "b"]);
        table.row(["x", "-", "1"]);
        table.row(["y", "", "2"]);
        let text = table.without_empty_columns().to_string();
        assert!(!text.contains('a') && text.contains("| x   |   1 |"), "{text}");
    }
}
