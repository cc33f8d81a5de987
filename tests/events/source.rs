//! The events and spans in the source match the guide's tables in name, level and fields. This includes events for
//! faults that no test can cause.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::table::{Row, Rows, promised};

const LEVELS: [&str; 5] = ["trace", "debug", "info", "warn", "error"];

/// Collects the source files, without tests.
fn files(folder: &Path, found: &mut Vec<String>) {
    let mut entries: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() {
            if name != "tests" {
                files(&path, found);
            }
        } else if name.ends_with(".rs") && name != "tests.rs" {
            found.push(fs::read_to_string(&path).unwrap());
        }
    }
}

/// Returns the sources of every package that emits events.
fn sources() -> Vec<String> {
    let mut texts = Vec::new();
    for folder in ["src", "crates/capi/src", "crates/descriptors/src", "crates/report/src", "crates/sim/src"]
    {
        files(Path::new(folder), &mut texts);
    }
    texts
}

/// Returns the arguments of a macro call. `text` starts after the opening parenthesis.
fn arguments(text: &str) -> Vec<String> {
    let mut arguments = vec![String::new()];
    let (mut depth, mut in_string, mut escaped) = (0_u32, false, false);
    for c in text.chars() {
        if in_string {
            in_string = escaped || c != '"';
            escaped = c == '\\' && !escaped;
        } else {
            match c {
                '"' => in_string = true,
                '(' | '[' | '{' => depth += 1,
                ')' if depth == 0 => break,
                ')' | ']' | '}' => depth -= 1,
                ',' if depth == 0 => {
                    arguments.push(String::new());
                    continue;
                }
                _ => {}
            }
        }
        arguments.last_mut().unwrap().push(c);
    }
    arguments.into_iter().map(|it| it.trim().to_owned()).filter(|it| !it.is_empty()).collect()
}

fn literal(text: &str) -> Option<String> {
    Some(text.strip_prefix('"')?.strip_suffix('"')?.to_owned())
}

/// Returns the event or span of a macro call.
fn row(level: &str, is_span: bool, call: &str) -> (String, Row) {
    let (mut name, mut target, mut fields) = (None, None, BTreeSet::new());
    for argument in arguments(call) {
        if let Some(given) = argument.strip_prefix("name:") {
            name = literal(given.trim());
        } else if let Some(given) = argument.strip_prefix("target:") {
            target = literal(given.trim());
        } else if let Some(text) = literal(&argument) {
            // The name of a span, or the message of an event.
            if is_span && name.is_none() {
                name = Some(text);
            }
        } else {
            let field = argument.split_once('=').map_or(&*argument, |(field, _)| field);
            fields.insert(field.trim().trim_start_matches(['%', '?']).to_owned());
        }
    }
    let name = name.unwrap_or_else(|| panic!("without a name: {}", &call[..call.len().min(200)]));
    let target = target.unwrap_or_else(|| panic!("without a target: {name}"));
    (name, Row { target, level: level.to_owned(), is_span, fields })
}

fn of_source() -> Rows {
    let mut rows = Rows::new();
    let texts = sources();
    for text in &texts {
        // Skips comments.
        let code: Vec<_> = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
        let code = code.join("\n");
        for (at, prefix) in code.match_indices("tracing::") {
            let Some((called, call)) = code[at + prefix.len()..].split_once("!(") else { continue };
            let (level, is_span) = match called.strip_suffix("_span") {
                Some(level) => (level, true),
                None => (called, false),
            };
            if !LEVELS.contains(&level) {
                continue;
            }
            let (name, row) = row(level, is_span, call);
            if let Some(before) = rows.insert(name.clone(), row.clone()) {
                assert_eq!(before, row, "{name} has two forms");
            }
        }
    }
    rows
}

#[test]
fn the_guide_lists_every_event_and_span_of_the_source() {
    let (promised, there) = (promised(), of_source());
    for (name, row) in &there {
        let promise = promised.get(name).unwrap_or_else(|| panic!("{name} is not in the guide: {row:?}"));
        assert_eq!(row, promise, "{name}: the source, and the guide");
    }
    for name in promised.keys() {
        assert!(there.contains_key(name), "{name} is in the guide and nowhere else");
    }
}

#[test]
fn names_and_targets_are_in_the_form_that_filters_expect() {
    for (name, row) in promised() {
        assert!(name.chars().all(|c| c.is_ascii_lowercase() || c == '_'), "{name}");
        assert!(row.target.starts_with("sublet::"), "{name}: {}", row.target);
        assert!(LEVELS.contains(&&*row.level), "{name}: {}", row.level);
    }
}

/// The library or the simulated driver uses each message identifier that the chapter explains. Where the two forms of a
/// call share rules, the name of the call and the end of the identifier are apart.
#[test]
fn the_messages_that_the_guide_explains_are_known_to_the_source() {
    let texts = sources();
    let chapter = include_str!("../../src/guide/debugging.md");
    let named: BTreeSet<_> =
        chapter.split('`').skip(1).step_by(2).filter(|it| it.starts_with("VUID-")).collect();
    assert!(named.len() > 20, "{named:?}");
    for vuid in named {
        let (call, end) = vuid["VUID-".len()..].split_once('-').unwrap();
        let parts = [call, end].map(|part| format!("\"{part}\""));
        let uses = |text: &String| text.contains(vuid) || parts.iter().all(|part| text.contains(part));
        assert!(texts.iter().any(uses), "{vuid}");
    }
}
