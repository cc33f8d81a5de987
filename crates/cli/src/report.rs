//! `sublet report`: shows a memory map as a page, a picture, a trace, or tables.

use std::path::{Path, PathBuf};

use serde::Serialize;
use sublet::Statistics;
use sublet_report::{Comparison, Figures, Fragmentation, Group, Page, Snapshot};

use crate::answer::Answer;
use crate::arguments::{OutputFormat, ReportArguments};
use crate::change;
use crate::compare;
use crate::failure::CommandFailure;
use crate::files;
use crate::maps;
use crate::play::{self, Moment};
use crate::table::{TextTable, and_more, heading};
use crate::text::{bytes, count, pool};

/// Maximum number of listed allocations and groups.
const LARGEST: usize = 15;

/// The document of `--json`.
#[derive(Serialize)]
struct ReportDocument<'a> {
    map: &'a Path,
    written: Option<&'a PathBuf>,
    kind: &'static str,
    #[serde(flatten)]
    sums: &'a ReportSums<'a>,
}

/// The sums of a map.
#[derive(Serialize)]
struct ReportSums<'a> {
    #[serde(with = "Total")]
    total: Statistics,
    figures: Figures,
    /// Present with an earlier map.
    comparison: Option<Comparison<'a>>,
}

/// The sums of all memory, including dedicated allocations, in bytes except for the counts.
#[derive(Serialize)]
#[serde(remote = "Statistics")]
struct Total {
    block_count: u64,
    block_bytes: u64,
    allocation_count: u64,
    allocation_bytes: u64,
}

impl ReportSums<'_> {
    /// Returns the sums in one line.
    fn text(&self) -> String {
        let Statistics { block_count, block_bytes, allocation_count, allocation_bytes } = self.total;
        let Fragmentation { free_ranges, largest_free, .. } = self.figures.total;
        format!(
            "  {} reserved (blocks: {}), {} used (allocations: {}); free ranges: {}, the largest {}\n",
            bytes(block_bytes),
            count(block_count),
            bytes(allocation_bytes),
            count(allocation_count),
            count(free_ranges),
            bytes(largest_free),
        )
    }
}

pub(crate) fn run(arguments: &ReportArguments) -> Result<Answer, CommandFailure> {
    let of_trace = arguments.at.is_some() || arguments.partial || arguments.memory_limit.is_some();
    if arguments.trace.is_none() && of_trace {
        return Err(CommandFailure::usage("--at, --partial and --memory-limit are for a --trace"));
    }
    let format = format(arguments)?;
    if arguments.before.is_some() && !matches!(format, OutputFormat::Html | OutputFormat::Text) {
        return Err(CommandFailure::usage(
            "--before is for --format html and text: nothing else shows an earlier map",
        ));
    }
    let at = arguments.at.as_deref().unwrap_or("peak");
    let (source, mut snapshot) = match (&arguments.map, &arguments.trace) {
        (Some(map), _) => (map, maps::read(map)?),
        (None, Some(trace)) => (trace, replayed(trace, at, arguments)?),
        (None, None) => return Err(CommandFailure::usage("a map or --trace is needed")),
    };
    if let Some(title) = &arguments.title {
        snapshot.title = Some(title.as_str().into());
    }
    let before = arguments.before.as_deref().map(maps::read).transpose()?;
    let sums = ReportSums {
        total: snapshot.statistics().total.statistics,
        figures: snapshot.figures(),
        comparison: before.as_ref().map(|before| Comparison::new(before, &snapshot)),
    };
    let (written, kind) = match format {
        OutputFormat::Html => (page(&snapshot, before.as_ref()), "html"),
        OutputFormat::Svg => (sublet_report::svg(&snapshot), "svg"),
        OutputFormat::Perfetto => (sublet_report::perfetto(&snapshot), "perfetto"),
        OutputFormat::Json => (snapshot.to_json(), "json"),
        OutputFormat::Text => (tables(&snapshot, &sums), "text"),
    };
    let text = match &arguments.output {
        // The report itself is JSON.
        None if matches!(format, OutputFormat::Json | OutputFormat::Perfetto) => {
            return Ok(Answer::document(written));
        }
        None => written,
        Some(output) => {
            files::write(output, &written)?;
            let size = written.len().try_into().unwrap_or(u64::MAX);
            format!("{}: {kind}, {}\n{}", output.display(), bytes(size), sums.text())
        }
    };
    let document = ReportDocument { map: source, written: arguments.output.as_ref(), kind, sums: &sums };
    let answer = Answer::new("sublet-report", 1, text, &document);
    let is_file = arguments.output.is_none() && matches!(format, OutputFormat::Html | OutputFormat::Svg);
    Ok(if is_file { answer.file() } else { answer })
}

/// Returns the format of the report.
fn format(arguments: &ReportArguments) -> Result<OutputFormat, CommandFailure> {
    match (arguments.format, &arguments.output) {
        (Some(format), _) => Ok(format),
        (None, Some(output)) => ending(output),
        (None, None) => Ok(OutputFormat::Text),
    }
}

fn page(snapshot: &Snapshot, before: Option<&Snapshot>) -> String {
    let page = Page::new(snapshot);
    match before {
        Some(before) => page.before(before).to_html(),
        None => page.to_html(),
    }
}

/// Returns the format for a file's extension.
fn ending(path: &Path) -> Result<OutputFormat, CommandFailure> {
    let name = path.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
    let ends = |ending: &str| name.ends_with(ending);
    if ends(".html") || ends(".htm") {
        Ok(OutputFormat::Html)
    } else if ends(".svg") {
        Ok(OutputFormat::Svg)
    } else if ends(".trace.json") || ends(".perfetto.json") {
        Ok(OutputFormat::Perfetto)
    } else if ends(".json") {
        Ok(OutputFormat::Json)
    } else if ends(".txt") {
        Ok(OutputFormat::Text)
    } else {
        Err(CommandFailure::usage(format!(
            "what {} is to be is not known: it ends in none of .html, .svg, .trace.json, .json and .txt, and there is no --format",
            path.display()
        )))
    }
}

/// Returns the map of a recorded program at a moment, replayed on a simulated device like its own.
fn replayed(path: &Path, at: &str, arguments: &ReportArguments) -> Result<Snapshot, CommandFailure> {
    let moment = Moment::parse(at)?;
    let trace = play::read(path, arguments.partial)?;
    let found = play::on_device(&trace, None, arguments.memory_limit, |device| {
        play::picture(&trace, device, moment)
    })?;
    let mut snapshot = found.ok_or_else(|| {
        CommandFailure::file(
            format!("{} has no frame {at}", path.display()),
            "it was not recorded, or has another number",
        )
    })?;
    snapshot.title = Some(format!("{} at {at}", path.display()).into());
    Ok(snapshot)
}

/// Returns the whole map as text for a terminal.
fn tables(snapshot: &Snapshot, sums: &ReportSums<'_>) -> String {
    let figures = &sums.figures;
    let title = snapshot.title.as_deref().unwrap_or("Memory map");
    let mut text = heading(title).trim_start().to_owned();
    if let Some(name) = &snapshot.device.name {
        text += &format!("  {name}\n");
    }
    text += &sums.text();
    text += &heading("Heaps: blocks, without dedicated memory");
    text += &figures_table(
        "heap",
        figures.heaps.iter().enumerate().map(|(heap, found)| (heap.to_string(), found)),
    );
    text += &heading("Memory types and pools: blocks, without dedicated memory");
    let vectors = snapshot.vectors.iter().zip(&figures.vectors).map(|(vector, found)| {
        let label = match vector.pool {
            Some(number) => format!("{}, {}", vector.memory_type, pool(number, vector.name.as_deref())),
            None => vector.memory_type.to_string(),
        };
        (label, found)
    });
    text += &figures_table("type", vectors);
    text += &groups("By kind", "kinds", &Group::by_kind(snapshot.allocations()));
    text += &groups("By name", "names", &Group::by_name(snapshot.allocations()));
    let largest = snapshot.largest(LARGEST);
    if !largest.is_empty() {
        text += &heading("The largest");
        text += &compare::listed(&largest);
    }
    if let Some(comparison) = &sums.comparison {
        text += &heading("Since the earlier map");
        text += &change::table(&compare::changes(&comparison.total.before, &comparison.total.now));
        text += &compare::details(comparison);
    }
    text
}

fn figures_table<'a>(of: &str, rows: impl Iterator<Item = (String, &'a Fragmentation)>) -> String {
    let mut table = TextTable::new(&[
        of,
        ">blocks",
        ">reserved",
        ">allocations",
        ">used",
        ">free ranges",
        ">largest free",
        ">scatter",
        ">removable blocks",
    ]);
    for (name, found) in rows {
        table.row([
            name,
            count(found.blocks),
            bytes(found.block_bytes),
            count(found.allocations),
            bytes(found.used_bytes),
            count(found.free_ranges),
            bytes(found.largest_free),
            format!("{:.2}", found.scatter()),
            count(found.removable_blocks),
        ]);
    }
    table.text()
}

fn groups(title: &str, what: &str, groups: &[Group]) -> String {
    if groups.is_empty() {
        return String::new();
    }
    let mut table = TextTable::new(&["", ">allocations", ">bytes", ">largest"]);
    for group in groups.iter().take(LARGEST) {
        let label = group.label.as_deref().unwrap_or("(without)").to_owned();
        table.row([label, count(group.count), bytes(group.bytes), bytes(group.largest)]);
    }
    heading(title) + &table.text() + &and_more(groups.len(), LARGEST, what)
}
