//! `sublet report --findings`: advice from a recording, and limits for continuous integration.

use std::path::Path;

use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};
use serde::Serialize;
use sublet::trace::ForeignRecords;
use sublet_report::{FindingKind, FindingLimit, Findings, LimitBreach, MemoryFinding, PresetOutcome};

use crate::answer::Answer;
use crate::arguments::{FindingsFormat, ReportArguments};
use crate::failure::CommandFailure;
use crate::files;
use crate::play;
use crate::table::TextTable;
use crate::text::{bytes, count, is_command};

/// The document of `--findings json`, and of `--json`.
#[derive(Serialize)]
struct FindingsDocument<'a> {
    trace: &'a Path,
    #[serde(flatten)]
    found: &'a Findings,
    waste: f64,
    breaches: Vec<&'a str>,
}

/// The document of `sublet replay --compare --json`.
#[derive(Serialize)]
struct PresetsDocument<'a> {
    trace: &'a Path,
    program: &'a str,
    recorded_device: &'a str,
    outcomes: &'a [PresetOutcome],
}

/// Returns the answer of a report with findings or limits.
pub(crate) fn run(trace: &Path, arguments: &ReportArguments) -> Result<Answer, CommandFailure> {
    let others = arguments.before.is_some() || arguments.at.is_some() || arguments.format.is_some();
    if others {
        return Err(CommandFailure::usage("--findings and --fail-on take no --before, --at and --format"));
    }
    let found = read(trace, arguments.partial)?;
    let breaches: Vec<LimitBreach> =
        arguments.fail_on.iter().filter_map(|limit| limit.breach(&found)).collect();
    let document = FindingsDocument {
        trace,
        found: &found,
        waste: found.waste(),
        breaches: breaches.iter().map(|breach| breach.text.as_str()).collect(),
    };
    let format = arguments.findings.unwrap_or(FindingsFormat::Text);
    let text = match format {
        FindingsFormat::Text => text(&found, &breaches),
        FindingsFormat::Json => String::new(),
        FindingsFormat::Junit => junit(&found, &arguments.fail_on, &breaches)?,
    };
    let answer = Answer::new("sublet-findings", 1, text, &document).differs(!breaches.is_empty());
    let answer = if format == FindingsFormat::Json { answer.only_document() } else { answer };
    let Some(output) = &arguments.output else { return Ok(answer) };
    files::write(output, &answer.content())?;
    let limits = text_of_breaches(&breaches);
    let line = format!("{}: findings: {}\n{limits}", output.display(), found.findings.len());
    Ok(Answer::new("sublet-findings", 1, line, &document).differs(!breaches.is_empty()))
}

/// Returns the answer of `sublet replay --compare`: what the program takes itself, and on Sublet.
pub(crate) fn compare(trace: &Path, partial: bool) -> Result<Answer, CommandFailure> {
    let found = read(trace, partial)?;
    let mut table = TextTable::new(&[
        "",
        ">peak reserved",
        ">reserved at end",
        ">memories at peak",
        ">driver allocations",
        ">driver frees",
        ">driver, in ms",
        ">longest, in ms",
        ">refused",
    ]);
    for outcome in &found.presets {
        table.row([
            outcome.preset.to_owned(),
            bytes(outcome.peak_reserved_bytes),
            bytes(outcome.end_reserved_bytes),
            count(outcome.peak_memory_count),
            count(outcome.driver_allocations),
            count(outcome.driver_frees),
            format!("{:.1}", outcome.driver_milliseconds),
            format!("{:.1}", outcome.longest_milliseconds),
            count(outcome.refused),
        ]);
    }
    let text = format!(
        "{}: {}, on a simulated {}\n\n{}\n  The times are modelled: medians of vkAllocateMemory on an H200.\n",
        trace.display(),
        &*found.program,
        &*found.device,
        table.text()
    );
    let document = PresetsDocument {
        trace,
        program: &found.program,
        recorded_device: &found.device,
        outcomes: &found.presets,
    };
    Ok(Answer::new("sublet-replay-compare", 1, text, &document))
}

/// Reads a foreign recording without keeping all of its records.
fn read(path: &Path, partial: bool) -> Result<Findings, CommandFailure> {
    let bytes = files::read(path)?;
    match ForeignRecords::new(&bytes) {
        Ok(mut records) => {
            let found = Findings::of_records(&mut records);
            if found.damaged_bytes > 0 {
                play::undamaged(path, &records, partial)?;
            }
            Ok(found)
        }
        Err(_) => play::of_bytes(path, &bytes, partial).map(|trace| Findings::of(&trace)),
    }
}

fn text(found: &Findings, breaches: &[LimitBreach]) -> String {
    // A name may hold any character. A finding has one line for each sentence.
    format!("{found}{}", text_of_breaches(breaches)).replace(|c| c != '\n' && is_command(c), "\u{FFFD}")
}

fn text_of_breaches(breaches: &[LimitBreach]) -> String {
    breaches.iter().map(|breach| format!("\nFAILED {}", breach.text)).collect::<String>()
        + if breaches.is_empty() { "" } else { "\n" }
}

/// Returns a JUnit file. Each kind of finding and each limit is a test. Findings alone do not fail: they are the output
/// of their test. A limit that is exceeded fails.
fn junit(
    found: &Findings,
    limits: &[FindingLimit],
    breaches: &[LimitBreach],
) -> Result<String, CommandFailure> {
    let mut suite = TestSuite::new("memory findings");
    for kind in FindingKind::ALL {
        let mut case = TestCase::new(kind.name(), TestCaseStatus::success());
        case.set_classname(&*found.program);
        let of_kind = found.findings.iter().filter(|finding| finding.kind == *kind);
        let output: String = of_kind.map(MemoryFinding::to_string).collect();
        if !output.is_empty() {
            case.set_system_out(output);
        }
        suite.add_test_case(case);
    }
    for limit in limits {
        let breach = breaches.iter().find(|breach| breach.limit == *limit);
        let status = breach.map_or_else(TestCaseStatus::success, |breach| {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
            status.set_message(breach.text.as_str()).set_type("limit");
            status
        });
        let mut case = TestCase::new(limit.to_string(), status);
        case.set_classname(&*found.program);
        suite.add_test_case(case);
    }
    let mut report = Report::new("sublet");
    report.add_test_suite(suite);
    let written = report.to_string();
    written.map_err(|error| CommandFailure::file("the findings cannot be written as JUnit", error))
}
