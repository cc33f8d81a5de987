//! Replays a recorded program on a device.

use std::path::Path;

use sublet::Tracking;
use sublet::trace::{Event, ForeignProgram, ForeignRecords, Replay, ReplayReport, ResourceRequests, Trace};
use sublet_report::{Findings, History, Snapshot};

use crate::answer::complain;
use crate::failure::CommandFailure;
use crate::files;
use crate::progress::Progress;
use crate::select::{Choice, limited};
use crate::vulkan::{Opened, Physical};

/// The moment of a replay to show.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Moment {
    /// When the most memory is reserved. Of several such moments, the one with the most in use.
    Peak,
    /// After the last event.
    End,
    /// When this frame begins.
    Frame(u32),
    /// After this many thousandths of the events.
    PerMille(u32),
}

impl Moment {
    /// Parses `--at`.
    pub(crate) fn parse(said: &str) -> Result<Self, CommandFailure> {
        let wrong = || {
            CommandFailure::usage(format!(
                "--at takes peak, end, a frame's number, or a percentage, not {said:?}"
            ))
        };
        match said {
            "peak" => Ok(Self::Peak),
            "end" => Ok(Self::End),
            _ => match said.strip_suffix('%') {
                None => said.parse().map(Self::Frame).map_err(|_| wrong()),
                Some(percent) => per_mille(percent).map(Self::PerMille).ok_or_else(wrong),
            },
        }
    }
}

/// Parses percent from 0 to 100 with at most one decimal.
fn per_mille(percent: &str) -> Option<u32> {
    let (whole, tenths) = percent.split_once('.').unwrap_or((percent, "0"));
    let (whole, tenths) = match tenths.len() {
        1 => (whole.parse::<u32>().ok()?, tenths.parse::<u32>().ok()?),
        _ => return None,
    };
    whole.checked_mul(10)?.checked_add(tenths).filter(|&all| all <= 1000)
}

/// Reads the requests of a trace. Those of a foreign program are its resources: see [`Trace::resource_requests`].
pub(crate) fn read_requests(path: &Path, partial: bool) -> Result<Trace, CommandFailure> {
    let bytes = files::read(path)?;
    let Ok(mut records) = ForeignRecords::new(&bytes) else { return of_bytes(path, &bytes, partial) };
    // A recording of many calls would not fit the memory as a trace.
    let mut requests = ResourceRequests::new(records.header().clone());
    records.by_ref().for_each(|record| requests.add(&record));
    undamaged(path, &records, partial)?;
    Ok(requests.finish())
}

/// Returns an error if some bytes of a foreign recording could not be read, or with `partial` a message. Says if the file
/// is a later part.
pub(crate) fn undamaged(
    path: &Path,
    records: &ForeignRecords<'_>,
    partial: bool,
) -> Result<(), CommandFailure> {
    let part = records.header().part;
    if part > 0 {
        let path = path.display();
        complain(&format!(
            "sublet: {path} is part {part} of a recording, and begins with the objects live then"
        ));
    }
    let Some(error) = records.damage() else { return Ok(()) };
    let lost = records.damaged_bytes();
    if partial {
        complain(&format!("sublet: {} is not whole, {lost} bytes are damaged: {error}", path.display()));
        return Ok(());
    }
    let failure = CommandFailure::file(format!("{} cannot be read as a trace", path.display()), error);
    Err(failure.hint(format!("--partial reads all but {lost} bytes")))
}

/// Reads a trace from the bytes of its file. With `partial`, reads the intact part.
pub(crate) fn of_bytes(path: &Path, bytes: &[u8], partial: bool) -> Result<Trace, CommandFailure> {
    let wrong = |error| CommandFailure::file(format!("{} cannot be read as a trace", path.display()), error);
    if !partial {
        return Trace::read(bytes).map_err(|error| match Trace::read_prefix(bytes) {
            Ok(prefix) if !prefix.trace.records.is_empty() => {
                wrong(error).hint(format!("--partial takes the {} events before", prefix.trace.records.len()))
            }
            _ => wrong(error),
        });
    }
    let prefix = Trace::read_prefix(bytes).map_err(wrong)?;
    if let Some(end) = prefix.end {
        let count = prefix.trace.records.len();
        if count == 0 {
            let what = format!("no event of {} is whole", path.display());
            return Err(CommandFailure::file(what, end));
        }
        complain(&format!("sublet: {} is not whole, {count} events are: {end}", path.display()));
    }
    Ok(prefix.trace)
}

/// Passes the chosen device, or one like the recorded one, to a closure. [`limited`] describes the limit.
pub(crate) fn on_device<R>(
    trace: &Trace,
    choice: Option<&Choice>,
    memory_limit: Option<u64>,
    task: impl FnOnce(&Opened<'_>) -> Result<R, CommandFailure>,
) -> Result<R, CommandFailure> {
    match choice {
        Some(choice) => choice.with(memory_limit, |physical| task(&physical.open()?)),
        None => {
            let gpu = limited(trace.header.simulated(), memory_limit);
            task(&Physical::simulated(&gpu).open()?)
        }
    }
}

/// The tracking of a replay besides names. Callers would be lines of the replay.
const SHOWN: Tracking = Tracking::USER_DATA;

/// Replays everything, and takes a snapshot of what the program left.
pub(crate) fn whole(
    trace: &Trace,
    device: &Opened<'_>,
    with_map: bool,
    progress: &Progress,
) -> Result<(ReplayReport, Option<Snapshot>), CommandFailure> {
    let tracking = if with_map { SHOWN } else { Tracking::empty() };
    device.with_allocator_like(&trace.header, tracking, |allocator| {
        let mut replay = Replay::new(trace, allocator);
        progress.begin(trace.records.len());
        while replay.step().is_some() {
            progress.tick();
        }
        progress.end();
        let map = with_map.then(|| Snapshot::of(allocator));
        (replay.finish(), map)
    })
}

/// Takes a snapshot of the allocator at a moment. `None` if there is no such frame.
pub(crate) fn picture(
    trace: &Trace,
    device: &Opened<'_>,
    at: Moment,
) -> Result<Option<Snapshot>, CommandFailure> {
    let Some(events) = events_before(trace, at, |trace| peak(trace, device))? else { return Ok(None) };
    device.with_allocator_like(&trace.header, SHOWN, |allocator| {
        let mut replay = Replay::new(trace, allocator);
        let _ = (0..events).take_while(|_| replay.step().is_some()).count();
        Some(Snapshot::of_replay(trace, &replay, allocator))
    })
}

/// Collects what was live at each moment of a recording, and the findings. A recording of Sublet is replayed for that.
/// A foreign recording may have too many records to keep them: see [`History::with_findings`].
pub(crate) fn history(
    path: &Path,
    bytes: &[u8],
    partial: bool,
    memory_limit: Option<u64>,
) -> Result<History, CommandFailure> {
    if let Ok(mut records) = ForeignRecords::new(bytes) {
        let (mut history, findings) = History::with_findings(&records.header().clone(), records.by_ref());
        undamaged(path, &records, partial)?;
        history.add_findings(&findings);
        return Ok(history);
    }
    let trace = of_bytes(path, bytes, partial)?;
    let mut history = history_of(&trace, memory_limit)?;
    history.add_findings(&Findings::of(&trace));
    Ok(history)
}

/// Replays a recording of Sublet, and collects what was live at each moment.
pub(crate) fn history_of(trace: &Trace, memory_limit: Option<u64>) -> Result<History, CommandFailure> {
    on_device(trace, None, memory_limit, |device| history_on(trace, device))
}

/// [`history_of`], on an open device.
pub(crate) fn history_on(trace: &Trace, device: &Opened<'_>) -> Result<History, CommandFailure> {
    device.with_allocator_like(&trace.header, Tracking::empty(), |allocator| {
        History::replayed(trace, allocator)
    })
}

/// Takes a snapshot of the memory of a foreign program at a moment. `None` if there is no such frame.
pub(crate) fn foreign_picture(trace: &Trace, at: Moment) -> Option<Snapshot> {
    let events = events_before(trace, at, |trace| Ok(foreign_peak(trace))).ok().flatten()?;
    Some(Snapshot::of_trace_at(trace, events))
}

/// Returns the number of events before a moment. `None` if there is no such frame.
fn events_before(
    trace: &Trace,
    at: Moment,
    peak: impl FnOnce(&Trace) -> Result<usize, CommandFailure>,
) -> Result<Option<usize>, CommandFailure> {
    let count = trace.records.len();
    Ok(match at {
        Moment::End => Some(count),
        Moment::PerMille(part) => Some(thousandths(count, part)),
        Moment::Frame(wanted) => {
            let mut presented = 0..;
            trace.records.iter().position(|record| match record.event {
                Event::Frame { index } => index == wanted,
                Event::Presented => presented.next() == Some(wanted),
                _ => false,
            })
        }
        Moment::Peak => Some(peak(trace)?),
    })
}

/// Same as [`peak`], for a foreign program.
fn foreign_peak(trace: &Trace) -> usize {
    let mut program = ForeignProgram::default();
    let (mut most, mut at) = ((0, 0), 0);
    for (events, record) in (1..).zip(&trace.records) {
        program.follow(record);
        let now = program.types.values().fold((0, 0), |(reserved, used): (u64, u64), usage| {
            (reserved.saturating_add(usage.reserved_bytes), used.saturating_add(usage.used_bytes))
        });
        if now > most {
            (most, at) = (now, events);
        }
    }
    at
}

/// Returns the number of events after which the most memory is reserved. Of several, the one with the most in use.
fn peak(trace: &Trace, device: &Opened<'_>) -> Result<usize, CommandFailure> {
    device.with_allocator_like(&trace.header, Tracking::empty(), |allocator| {
        let mut replay = Replay::new(trace, allocator);
        let (mut most, mut at, mut events) = ((0, 0), 0, 0);
        while replay.step().is_some() {
            events += 1;
            let footprint = replay.report().memory.at_end;
            let now = (footprint.reserved_bytes, footprint.used_bytes);
            if now > most {
                (most, at) = (now, events);
            }
        }
        at
    })
}

fn thousandths(count: usize, part: u32) -> usize {
    let events = u128::try_from(count).unwrap_or(0) * u128::from(part) / 1000;
    usize::try_from(events).unwrap_or(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_read() {
        for (said, moment) in [
            ("peak", Moment::Peak),
            ("end", Moment::End),
            ("0", Moment::Frame(0)),
            ("120", Moment::Frame(120)),
            ("50%", Moment::PerMille(500)),
            ("99.9%", Moment::PerMille(999)),
            ("100%", Moment::PerMille(1000)),
        ] {
            assert_eq!(Moment::parse(said).unwrap(), moment);
        }
        for said in ["", "%", "101%", "100.9%", "429496730%", "1.23%", "1.05%", "1.%", "-1", "later", "5 %"] {
            assert!(Moment::parse(said).is_err(), "{said}");
        }
        assert_eq!((thousandths(10, 500), thousandths(0, 1000), thousandths(7, 1000)), (5, 0, 7));
    }
}
