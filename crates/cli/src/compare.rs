//! `sublet compare`: compares two memory maps, or two replays.

use std::path::Path;

use serde::{Deserialize, Serialize};
use sublet::Statistics;
use sublet_report::{Comparison, Located, NameChange, VectorChange};

use crate::answer::Answer;
use crate::arguments::CompareArguments;
use crate::change::{self, NumberChange, Unit};
use crate::failure::CommandFailure;
use crate::files;
use crate::maps;
use crate::replay::ReplayOutcome;
use crate::table::{TextTable, and_more, heading};
use crate::text::{bytes, count, pool};

/// Maximum number of names and allocations in a list. The rest is only counted.
const LONGEST: usize = 20;

/// The kind of document in a file.
#[derive(Deserialize)]
struct DocumentHead {
    format: Option<String>,
}

/// The document of `--json`.
#[derive(Serialize)]
struct CompareDocument<'a> {
    kind: &'static str,
    changes: &'a [NumberChange],
    fail_above: Option<f64>,
    /// The names of the changes above the limit.
    above: Vec<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    comparison: Option<&'a Comparison<'a>>,
}

pub(crate) fn run(arguments: &CompareArguments) -> Result<Answer, CommandFailure> {
    if arguments.fail_above.is_some_and(|percent| !percent.is_finite() || percent < 0.0) {
        return Err(CommandFailure::usage("--fail-above takes a number of percent from 0 on"));
    }
    let (before, now) = (files::read_text(&arguments.before)?, files::read_text(&arguments.now)?);
    match (is_replay(&before), is_replay(&now)) {
        (true, true) => replays(arguments, &before, &now),
        (false, false) => snapshots(arguments, &before, &now),
        (first, _) => {
            let kind = |is_replay| if is_replay { "a replay" } else { "no replay" };
            let what =
                format!("{} and {} are not of one kind", arguments.before.display(), arguments.now.display());
            Err(CommandFailure::file(
                what,
                format!("the first is {}, the second {}", kind(first), kind(!first)),
            ))
        }
    }
}

fn is_replay(text: &str) -> bool {
    let head: Result<DocumentHead, _> = serde_json::from_str(text);
    head.is_ok_and(|head| head.format.as_deref() == Some(crate::replay::FORMAT))
}

fn replays(arguments: &CompareArguments, before: &str, now: &str) -> Result<Answer, CommandFailure> {
    let read = |path: &Path, text: &str| {
        ReplayOutcome::from_json(text).map_err(|error| {
            CommandFailure::file(format!("{} cannot be read as a replay", path.display()), error)
        })
    };
    let (before, now) = (read(&arguments.before, before)?, read(&arguments.now, now)?);
    let changes = ReplayOutcome::changes(&before, &now);
    Ok(answer(arguments, "replays", &changes, None, String::new()))
}

fn snapshots(arguments: &CompareArguments, before: &str, now: &str) -> Result<Answer, CommandFailure> {
    let before = maps::parse(&arguments.before, before)?;
    let now = maps::parse(&arguments.now, now)?;
    let comparison = Comparison::new(&before, &now);
    let changes = changes(&comparison.total.before, &comparison.total.now);
    Ok(answer(arguments, "maps", &changes, Some(&comparison), details(&comparison)))
}

fn answer(
    arguments: &CompareArguments,
    kind: &'static str,
    changes: &[NumberChange],
    comparison: Option<&Comparison<'_>>,
    details: String,
) -> Answer {
    let above: Vec<&str> = arguments
        .fail_above
        .iter()
        .flat_map(|&percent| changes.iter().filter(move |change| change.is_above(percent)))
        .map(|change| change.name.as_str())
        .collect();
    let mut text = format!(
        "{} -> {}\n\n{}{details}",
        arguments.before.display(),
        arguments.now.display(),
        change::table(changes)
    );
    if let Some(percent) = arguments.fail_above {
        text += &if above.is_empty() {
            format!("\nNothing grew by more than {percent} %.\n")
        } else {
            format!("\nGrew by more than {percent} %: {}.\n", above.join(", "))
        };
    }
    let failed = !above.is_empty();
    let document = CompareDocument { kind, changes, fail_above: arguments.fail_above, above, comparison };
    Answer::new("sublet-comparison", 1, text, &document).differs(failed)
}

/// Returns the sums of two maps.
pub(crate) fn changes(before: &Statistics, now: &Statistics) -> Vec<NumberChange> {
    vec![
        NumberChange::new("reserved", Unit::Bytes, before.block_bytes, now.block_bytes),
        NumberChange::new("used", Unit::Bytes, before.allocation_bytes, now.allocation_bytes),
        NumberChange::new("blocks", Unit::Count, before.block_count, now.block_count),
        NumberChange::new("allocations", Unit::Count, before.allocation_count, now.allocation_count)
            .unjudged(),
    ]
}

/// Returns tables of heaps, vectors, names and allocations.
pub(crate) fn details(comparison: &Comparison<'_>) -> String {
    let mut text = String::new();
    let heaps = comparison.heaps.iter().enumerate().flat_map(|(heap, sums)| {
        [
            NumberChange::new(
                format!("heap {heap} reserved"),
                Unit::Bytes,
                sums.before.block_bytes,
                sums.now.block_bytes,
            ),
            NumberChange::new(
                format!("heap {heap} used"),
                Unit::Bytes,
                sums.before.allocation_bytes,
                sums.now.allocation_bytes,
            ),
        ]
    });
    text += &heading("By heap");
    text += &change::table(&heaps.collect::<Vec<_>>());
    let vectors: Vec<_> = comparison.vectors.iter().filter_map(vector).collect();
    if !vectors.is_empty() {
        text += &heading("Vectors that changed: used bytes");
        text += &change::table(&vectors);
    }
    let names: Vec<_> = comparison.names.iter().filter_map(name).collect();
    if !names.is_empty() {
        text += &heading("Names that changed");
        text += &change::table(&names[..names.len().min(LONGEST)]);
        text += &and_more(names.len(), LONGEST, "names");
    }
    text += &allocations("New", &comparison.new);
    text += &allocations("Gone", &comparison.gone);
    let kept: u64 = comparison.kept.iter().map(|(_, now)| now.size).sum();
    text + &format!("\n{} allocations of {} are in both.\n", comparison.kept.len(), bytes(kept))
}

fn vector(vector: &VectorChange) -> Option<NumberChange> {
    let VectorChange { memory_type, name, change, .. } = vector;
    let label = match vector.pool {
        Some(number) => format!("{} in type {memory_type}", pool(number, name.as_deref())),
        None => format!("type {memory_type}"),
    };
    let (before, now) = (change.before.allocation_bytes, change.now.allocation_bytes);
    (change.before != change.now).then(|| NumberChange::new(label, Unit::Bytes, before, now))
}

fn name(name: &NameChange) -> Option<NumberChange> {
    let label = name.name.as_deref().unwrap_or("(without a name)");
    let change = NumberChange::new(label, Unit::Bytes, name.bytes_before, name.bytes_now);
    (name.bytes_before != name.bytes_now || name.count_before != name.count_now).then_some(change)
}

/// Returns allocations as a table, the largest first.
fn allocations(title: &str, found: &[Located<'_>]) -> String {
    if found.is_empty() {
        return String::new();
    }
    let sum: u64 = found.iter().map(|found| found.size).sum();
    let title =
        format!("{title}: {} allocations of {}", count(found.len().try_into().unwrap_or(0)), bytes(sum));
    let mut sorted = found.to_vec();
    sorted.sort_by_key(|found| std::cmp::Reverse(found.size));
    heading(&title)
        + &listed(&sorted[..sorted.len().min(LONGEST)])
        + &and_more(found.len(), LONGEST, "allocations")
}

/// Returns a row for each allocation.
pub(crate) fn listed(found: &[Located<'_>]) -> String {
    let mut table = TextTable::new(&[">size", "kind", ">type", ">pool", ">block", "name", "caller"]);
    for found in found {
        let entry = found.entry;
        table.row([
            bytes(found.size),
            entry.kind.to_string(),
            found.vector.memory_type.to_string(),
            found.vector.pool.map_or_else(String::new, |pool| pool.to_string()),
            found.block.map_or_else(|| "own".to_owned(), |block| block.id.to_string()),
            entry.name.as_deref().unwrap_or("").to_owned(),
            entry.caller.as_deref().unwrap_or("").to_owned(),
        ]);
    }
    table.text()
}
