//! `sublet replay`: replays the requests of a recorded program, and measures them.

use std::path::Path;

use ash::vk;
use serde_json::{Map, Value, json};
use sublet::trace::{CallKind, Header, Latencies, ReplayReport, Trace};
use sublet::{BlockSizes, GrowthPreset};

use crate::answer::Answer;
use crate::arguments::ReplayArguments;
use crate::change::{NumberChange, Unit};
use crate::failure::CommandFailure;
use crate::files;
use crate::findings;
use crate::outcome::result;
use crate::play;
use crate::progress::Progress;
use crate::select::Choice;
use crate::table::{TextTable, and_more, heading};
use crate::text::{bytes, count};
use crate::vulkan::Opened;

/// The value of `format` in the `--json` document.
pub(crate) const FORMAT: &str = "sublet-replay";
const VERSION: u32 = 1;

/// Maximum number of listed differences. The rest is only counted.
const LONGEST: usize = 20;

pub(crate) fn run(arguments: &ReplayArguments) -> Result<Answer, CommandFailure> {
    if arguments.compare {
        return findings::compare(&arguments.trace, arguments.partial);
    }
    let mut trace = play::read_requests(&arguments.trace, arguments.partial)?;
    let what_if = change_growth(&mut trace.header, arguments);
    let choice = arguments.device.as_deref().map(Choice::parse).transpose()?;
    let expected = arguments.expect.as_deref().map(|path| {
        let text = files::read_text(path)?;
        let key = match &choice {
            Some(Choice::Simulated(profile)) => profile.name,
            _ => "recorded device",
        };
        expectation(&text, key).map_err(|error| {
            CommandFailure::file(format!("{} says nothing of this replay", path.display()), error)
        })
    });
    let expected = expected.transpose()?;
    let progress = Progress::new(!arguments.no_progress);
    let (device, report, map) = play::on_device(&trace, choice.as_ref(), arguments.memory_limit, |device| {
        let (report, map) = play::whole(&trace, device, arguments.map.is_some(), &progress)?;
        if let Some(path) = &arguments.plot {
            plot(path, &trace, device, &what_if)?;
        }
        Ok((device.name(), report, map))
    })?;
    if let (Some(path), Some(map)) = (&arguments.map, &map) {
        files::write(path, &map.to_json())?;
    }
    let result = result(&report);
    let differences = expected.map(|expected| {
        let mut found = Vec::new();
        differences("", &expected, &result, &mut found);
        found
    });
    let mut text =
        format!("{}: {}, on {device}{what_if}\n", arguments.trace.display(), &*trace.header.program);
    text += &tables(&report);
    if let Some(differences) = &differences {
        text += &differences_text(differences);
    }
    let document = json!({
        "trace": arguments.trace,
        "program": &*trace.header.program,
        "recorded_device": &*trace.header.device_name,
        "device": device,
        "growth": arguments.growth.map(GrowthPreset::name),
        "block_size": arguments.block_size,
        "result": result,
        "times": times(&report),
        "differences": differences,
        "map": arguments.map,
        "plot": arguments.plot,
    });
    let differs = differences.is_some_and(|found| !found.is_empty());
    Ok(Answer::new(FORMAT, VERSION, text, &document).differs(differs))
}

/// Replays once more, and writes a page of the reserved and used bytes over time.
fn plot(path: &Path, trace: &Trace, device: &Opened<'_>, what_if: &str) -> Result<(), CommandFailure> {
    let mut history = play::history_on(trace, device)?;
    history.title = Some(format!("{} on {}{what_if}", trace.header.program, device.name()).into());
    files::write(path, &history.to_html())
}

/// Changes the growth of blocks as the arguments say. Returns a text for the title.
fn change_growth(header: &mut Header, arguments: &ReplayArguments) -> String {
    if let Some(mib) = arguments.block_size {
        let size = mib << 20;
        header.block_sizes = vec![BlockSizes { first: size, largest: size }; vk::MAX_MEMORY_TYPES];
        return format!(", with blocks of {}", bytes(size));
    }
    let Some(preset) = arguments.growth else { return String::new() };
    header.growth = preset;
    header.preferred_large_heap_block_size = 0;
    header.block_sizes.clear();
    format!(", with growth {}", preset.name())
}

/// Returns whole nanoseconds.
fn nanoseconds(time: std::time::Duration) -> u64 {
    time.as_nanos().try_into().unwrap_or(u64::MAX)
}

fn percentiles(latencies: &Latencies) -> [(&'static str, u64); 5] {
    let at = |per_mille| nanoseconds(latencies.percentile(per_mille));
    [
        ("p50", at(500)),
        ("p90", at(900)),
        ("p99", at(990)),
        ("p99.9", at(999)),
        ("max", nanoseconds(latencies.max())),
    ]
}

fn times(report: &ReplayReport) -> Value {
    let mut calls = Map::new();
    for kind in CallKind::ALL {
        let call = report.call(*kind);
        if call.made > 0 {
            let mut call_times = Map::new();
            call_times.insert("total".to_owned(), nanoseconds(call.latencies.total()).into());
            let tails = percentiles(&call.latencies);
            call_times.extend(tails.into_iter().map(|(name, time)| (name.to_owned(), time.into())));
            calls.insert(kind.name().to_owned(), call_times.into());
        }
    }
    json!({ "unit": "nanoseconds", "total": nanoseconds(report.time), "calls": calls })
}

fn tables(report: &ReplayReport) -> String {
    let mut text = heading("Calls, in nanoseconds");
    let mut table = TextTable::new(&[
        "call",
        ">made",
        ">failed",
        ">p50",
        ">p90",
        ">p99",
        ">p99.9",
        ">max",
        ">all, in ms",
    ]);
    for kind in CallKind::ALL {
        let call = report.call(*kind);
        if call.made > 0 {
            let cells = [kind.name().to_owned(), count(call.made), count(call.failed)];
            let tails = percentiles(&call.latencies).map(|(_, time)| count(time));
            let all = format!("{:.3}", call.latencies.total().as_secs_f64() * 1000.0);
            table.row(cells.into_iter().chain(tails).chain([all]));
        }
    }
    text += &table.text();
    text += &format!("  all calls: {:.3} ms\n", report.time.as_secs_f64() * 1000.0);
    text += &heading("Memory");
    let mut table = TextTable::new(&[
        "",
        ">peak reserved",
        ">peak used",
        ">reserved at end",
        ">used at end",
        ">memories at peak",
    ]);
    let heaps = report.heaps.iter().enumerate().map(|(heap, found)| (format!("heap {heap}"), found));
    for (name, found) in heaps.chain([("all".to_owned(), &report.memory)]) {
        table.row([
            name,
            bytes(found.peak_reserved_bytes),
            bytes(found.peak_used_bytes),
            bytes(found.at_end.reserved_bytes),
            bytes(found.at_end.used_bytes),
            count(found.at_peak.memory_count),
        ]);
    }
    text += &table.text();
    let ranges = &report.free_ranges;
    text += &format!(
        "\n  Free at the end: {} (ranges: {}), {} of it in one piece.\n",
        bytes(ranges.bytes),
        count(ranges.count),
        bytes(ranges.largest_bytes),
    );
    text += &format!("  Events: {}. Dedicated: {}.", count(report.events), count(report.dedicated));
    for (number, what) in [
        (report.refused, "allocations refused, which the recording has as granted"),
        (report.refused_in_recording, "allocations refused in the recording"),
        (report.granted_after_all, "allocations granted, which the recording has as refused"),
        (report.other_memory_type, "allocations in another memory type than recorded"),
        (report.unknown, "events about what is not there"),
        (report.moves_missing, "moves of the recording not planned"),
    ] {
        if number > 0 {
            text += &format!(" {}: {what}.", count(number));
        }
    }
    text + &format!("\n  Placements: {:#018x}\n", report.placements)
}

/// Returns the expectation in a file: the document of `replay --json`, or a list of results by device.
fn expectation(text: &str, key: &str) -> Result<Value, Box<dyn std::error::Error>> {
    let document: Value = serde_json::from_str(text)?;
    let found = if document.get("format").is_some_and(|format| format == FORMAT) {
        document.get("result")
    } else {
        document.get(key)
    };
    found
        .filter(|found| found.is_object())
        .cloned()
        .ok_or_else(|| format!("it is no result of replay --json, and has no {key:?}").into())
}

/// Collects the paths at which two documents differ.
fn differences(path: &str, expected: &Value, found: &Value, all: &mut Vec<Value>) {
    match (expected, found) {
        (Value::Object(before), Value::Object(now)) => {
            let more = now.keys().filter(|key| !before.contains_key(*key));
            for key in before.keys().chain(more) {
                let at = |object: &Map<String, Value>| object.get(key).cloned().unwrap_or_default();
                differences(&format!("{path}/{key}"), &at(before), &at(now), all);
            }
        }
        (Value::Array(before), Value::Array(now)) if before.len() == now.len() => {
            for (at, (before, now)) in before.iter().zip(now).enumerate() {
                differences(&format!("{path}/{at}"), before, now, all);
            }
        }
        _ if expected == found => {}
        _ => all.push(json!({ "where": path, "expected": expected, "found": found })),
    }
}

fn differences_text(differences: &[Value]) -> String {
    if differences.is_empty() {
        return "\nAs expected.\n".to_owned();
    }
    let mut table = TextTable::new(&["where", ">expected", ">found"]);
    for difference in differences.iter().take(LONGEST) {
        let plain = |key: &str| match &difference[key] {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        table.row([plain("where"), plain("expected"), plain("found")]);
    }
    heading("Not as expected") + &table.text() + &and_more(differences.len(), LONGEST, "differences")
}

/// A result of `replay --json`, for comparisons.
pub(crate) struct ReplayOutcome(Value);

impl ReplayOutcome {
    pub(crate) fn from_json(text: &str) -> Result<Self, Box<dyn std::error::Error>> {
        let document: Value = serde_json::from_str(text)?;
        if document.get("version") != Some(&VERSION.into()) {
            return Err(format!("its version is not {VERSION}").into());
        }
        if !document.pointer("/result/memory/peak_reserved").is_some_and(Value::is_u64) {
            return Err("it has no result".into());
        }
        Ok(Self(document))
    }

    /// Returns the numbers of two replays.
    pub(crate) fn changes(before: &Self, now: &Self) -> Vec<NumberChange> {
        let at = |outcome: &Self, path: &str| outcome.0.pointer(path).and_then(Value::as_u64);
        let change = |name: &str, unit, path: &str| {
            let (before, now) = (at(before, path)?, at(now, path)?);
            Some(NumberChange::new(name, unit, before, now))
        };
        let judged = [
            ("peak reserved", Unit::Bytes, "/result/memory/peak_reserved"),
            ("peak used", Unit::Bytes, "/result/memory/peak_used"),
            ("memories at peak", Unit::Count, "/result/memory/at_peak/memories"),
            ("reserved at end", Unit::Bytes, "/result/memory/at_end/reserved"),
            ("allocations refused", Unit::Count, "/result/refused"),
        ];
        let told = [
            ("free ranges at end", Unit::Count, "/result/free_ranges"),
            ("dedicated", Unit::Count, "/result/dedicated"),
            ("events", Unit::Count, "/result/events"),
            ("all calls", Unit::Nanoseconds, "/times/total"),
            ("allocate, p50", Unit::Nanoseconds, "/times/calls/allocate/p50"),
            ("allocate, p99", Unit::Nanoseconds, "/times/calls/allocate/p99"),
            ("allocate, p99.9", Unit::Nanoseconds, "/times/calls/allocate/p99.9"),
            ("allocate, max", Unit::Nanoseconds, "/times/calls/allocate/max"),
            ("free, p50", Unit::Nanoseconds, "/times/calls/free/p50"),
            ("free, p99", Unit::Nanoseconds, "/times/calls/free/p99"),
        ];
        let judged = judged.into_iter().filter_map(|(name, unit, path)| change(name, unit, path));
        let told =
            told.into_iter().filter_map(|(name, unit, path)| Some(change(name, unit, path)?.unjudged()));
        judged.chain(told).collect()
    }
}
