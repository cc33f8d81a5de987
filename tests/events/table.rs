//! The tables of the guide's chapter on events.

use std::collections::{BTreeMap, BTreeSet};

/// An event or span: as documented, as in the source, or as emitted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Row {
    pub(crate) target: String,
    pub(crate) level: String,
    pub(crate) is_span: bool,
    pub(crate) fields: BTreeSet<String>,
}

/// By name.
pub(crate) type Rows = BTreeMap<String, Row>;

/// Returns the texts between backticks.
fn quoted(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

/// Returns the fields of a cell: texts between backticks and outside of parentheses.
fn fields(cell: &str) -> BTreeSet<String> {
    let mut depth = 0_u32;
    let outside: String = cell
        .chars()
        .filter(|&c| {
            match c {
                '(' => depth += 1,
                ')' => depth -= 1,
                _ => {}
            }
            depth == 0
        })
        .collect();
    quoted(&outside).into_iter().map(str::to_owned).collect()
}

/// Returns all rows of the chapter's tables of events and spans.
pub(crate) fn promised() -> Rows {
    let mut rows = Rows::new();
    let mut is_span = false;
    for line in include_str!("../../src/guide/debugging.md").lines() {
        if line.starts_with('#') {
            is_span = line == "# Spans";
        }
        let cells: Vec<_> = line.split('|').map(str::trim).collect();
        let ["", target, name, level, _when, field_list, ""] = *cells else { continue };
        let (&[target], &[name]) = (&*quoted(target), &*quoted(name)) else { continue };
        let row = Row { target: target.into(), level: level.into(), is_span, fields: fields(field_list) };
        assert!(rows.insert(name.into(), row).is_none(), "{name} is there twice");
    }
    assert!(rows.len() > 40, "{} rows were read", rows.len());
    rows
}
