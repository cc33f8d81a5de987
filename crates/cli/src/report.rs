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
use crate::findings;
use crate::live;
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
    if let (true, Some(trace)) = (arguments.judges(), arguments.trace.as_ref().or(arguments.map.as_ref())) {
        return findings::run(trace, arguments);
    }
    if let (true, Some(path)) = (arguments.live, &arguments.map) {
        if !files::is_recording(&files::read_head(path, 8)?) {
            let what = format!("--live is for a recording, which {} is not", path.display());
            return Err(CommandFailure::usage(what));
        }
        return live::run(path, arguments.title.as_deref());
    }
    let format = format(arguments)?;
    if arguments.before.is_some() && !matches!(format, OutputFormat::Html | OutputFormat::Text) {
        return Err(CommandFailure::usage(
            "--before is for --format html and text: nothing else shows an earlier map",
        ));
    }
    let Some(source) = arguments.map.as_ref().or(arguments.trace.as_ref()) else {
        return Err(CommandFailure::usage("a map or a recording is needed"));
    };
    let at = arguments.at.as_deref().unwrap_or("peak");
    let moment = Moment::parse(at)?;
    // Once: a pipe has its content only once.
    let content = files::read(source)?;
    let is_recording = arguments.trace.is_some() || files::is_recording(&content);
    let of_moment = arguments.trace.is_some() || arguments.at.is_some() || arguments.before.is_some();
    if is_recording && format == OutputFormat::Html && !of_moment {
        return whole(source, &content, arguments);
    }
    let of_recording = arguments.at.is_some() || arguments.partial || arguments.memory_limit.is_some();
    if !is_recording && of_recording {
        return Err(CommandFailure::usage("--at, --partial and --memory-limit are for a recording"));
    }
    let mut snapshot = if is_recording {
        replayed(source, &content, (at, moment), arguments)?
    } else {
        maps::parse(source, &files::text_of(source, content)?)?
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
            "the format of {} is unknown: it ends in none of .html, .svg, .trace.json, .json and .txt, and there is no --format",
            path.display()
        )))
    }
}

/// The document of `--json` for the page of a whole recording.
#[derive(Serialize)]
struct HistoryDocument<'a> {
    recording: &'a Path,
    written: Option<&'a PathBuf>,
    kind: &'static str,
    allocations: usize,
}

/// Makes the page of a whole recording.
fn whole(path: &Path, content: &[u8], arguments: &ReportArguments) -> Result<Answer, CommandFailure> {
    let mut history = play::history(path, content, arguments.partial, arguments.memory_limit)?;
    let title = arguments.title.clone().unwrap_or_else(|| files::name(path));
    history.title = Some(title.into());
    let html = history.to_html();
    let allocations = history.allocation_count();
    let written = arguments.output.as_ref();
    let document = HistoryDocument { recording: path, written, kind: "html", allocations };
    let Some(output) = written else {
        return Ok(Answer::new("sublet-report", 1, html, &document).file());
    };
    files::write(output, &html)?;
    let sizes = bytes(html.len().try_into().unwrap_or(u64::MAX));
    let count = count(allocations.try_into().unwrap_or(u64::MAX));
    let text = format!("{}: html, {sizes}\n  {count} allocations\n", output.display());
    Ok(Answer::new("sublet-report", 1, text, &document))
}

/// Returns the map of a recorded program at a moment, replayed on a simulated device like its own.
fn replayed(
    path: &Path,
    content: &[u8],
    (at, moment): (&str, Moment),
    arguments: &ReportArguments,
) -> Result<Snapshot, CommandFailure> {
    let trace = play::of_bytes(path, content, arguments.partial)?;
    let found = if trace.is_foreign() {
        play::foreign_picture(&trace, moment)
    } else {
        play::on_device(&trace, None, arguments.memory_limit, |device| play::picture(&trace, device, moment))?
    };
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
