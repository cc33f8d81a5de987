//! Replays a recorded program on a device.

use std::path::Path;

use sublet::Tracking;
use sublet::trace::{Event, Replay, ReplayReport, Trace};
use sublet_report::Snapshot;

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

/// Reads a trace. With `partial`, reads its intact part.
pub(crate) fn read(path: &Path, partial: bool) -> Result<Trace, CommandFailure> {
    let bytes = files::read(path)?;
    let wrong = |error| CommandFailure::file(format!("{} cannot be read as a trace", path.display()), error);
    if !partial {
        return Trace::read(&bytes).map_err(|error| match Trace::read_prefix(&bytes) {
            Ok(prefix) if !prefix.trace.records.is_empty() => {
                wrong(error).hint(format!("--partial takes the {} events before", prefix.trace.records.len()))
            }
            _ => wrong(error),
        });
    }
    let prefix = Trace::read_prefix(&bytes).map_err(wrong)?;
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
    let count = trace.records.len();
    let events = match at {
        Moment::End => Some(count),
        Moment::PerMille(part) => Some(thousandths(count, part)),
        Moment::Frame(wanted) => trace
            .records
            .iter()
            .position(|record| matches!(record.event, Event::Frame { index } if index == wanted)),
        Moment::Peak => Some(peak(trace, device)?),
    };
    let Some(events) = events else { return Ok(None) };
    device.with_allocator_like(&trace.header, SHOWN, |allocator| {
        let mut replay = Replay::new(trace, allocator);
        let _ = (0..events).take_while(|_| replay.step().is_some()).count();
        Some(Snapshot::of(allocator))
    })
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
