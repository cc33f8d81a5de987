//! Reads recordings that a program is still writing.

use std::fs;
use std::hash::{DefaultHasher, Hasher as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::value::RawValue;
use sublet::trace::{Event, ForeignRecords, Trace};
use sublet_report::{Findings, History};

use crate::{files, play};

/// The least time between two reads of a file.
const PAUSE: Duration = Duration::from_millis(400);
/// Reads may take one part in so many of the time, and those with findings another.
const SHARE: u32 = 10;
/// The most bytes of the head of a recording, which describes its device.
pub(crate) const HEAD: u64 = 1 << 16;

/// The newest file of a device.
pub(crate) struct FoundRecording {
    /// Is different for each device of a run.
    pub(crate) device: String,
    pub(crate) path: PathBuf,
}

/// The recordings of a program: one for each device, of which a page shows one at a time.
pub(crate) struct GrowingRecordings {
    /// Finds the files, which appear when the program creates devices.
    find: Box<dyn Fn() -> Vec<FoundRecording> + Send>,
    title: String,
    /// In the order in which they were found.
    devices: Vec<GrowingRecording>,
    /// The index of the device that is shown.
    shown: usize,
    /// Counts the states, from 1; 0 before the first.
    version: u64,
    /// True if the end of the first recording is that of the program.
    pub(crate) is_whole: bool,
    pub(crate) has_ended: bool,
}

impl GrowingRecordings {
    pub(crate) fn new(title: String, find: impl Fn() -> Vec<FoundRecording> + Send + 'static) -> Self {
        Self {
            find: Box::new(find),
            title,
            devices: Vec::new(),
            shown: 0,
            version: 0,
            is_whole: false,
            has_ended: false,
        }
    }

    /// Looks for new devices, and reads the file of the shown device again.
    pub(crate) fn refresh(&mut self) {
        if self.has_ended {
            return;
        }
        for found in (self.find)() {
            match self.devices.iter_mut().find(|known| known.key == found.device) {
                Some(known) if known.path == found.path => {}
                Some(known) => {
                    (known.path, known.is_complete) = (found.path, false);
                    (known.seen, known.judged, known.findings) = (None, None, Findings::default());
                }
                None => {
                    self.devices.push(GrowingRecording::new(self.devices.len() + 1, found));
                    self.version += 1;
                }
            }
        }
        self.read_shown(false);
        self.has_ended = self.is_whole && self.devices.first().is_some_and(|device| device.is_complete);
    }

    /// Reads the last state.
    pub(crate) fn end(&mut self) {
        self.refresh();
        self.has_ended = true;
        self.read_shown(true);
    }

    fn read_shown(&mut self, now: bool) {
        let Some(device) = self.devices.get_mut(self.shown) else { return };
        if device.refresh(now) {
            self.version += 1;
            device.version = self.version;
            device.history.title = Some(self.title.as_str().into());
        }
        device.is_complete |= self.has_ended;
    }

    /// Returns the page of the shown device.
    pub(crate) fn to_html(&self) -> String {
        match self.devices.get(self.shown) {
            Some(device) if device.version > 0 => device.history.to_live_html(),
            _ => {
                let mut empty = History::default();
                empty.title = Some(self.title.as_str().into());
                empty.to_live_html()
            }
        }
    }

    /// Returns the data of the current state of a device, or `None` if a page with this version has it already.
    pub(crate) fn since(&mut self, version: u64, device: usize) -> Option<String> {
        #[derive(Serialize)]
        struct LiveData<'a> {
            version: u64,
            ended: bool,
            devices: Vec<&'a str>,
            history: Option<&'a RawValue>,
        }
        self.shown = device;
        // The page may have just chosen it.
        if self.has_ended || self.devices.get(device).is_some_and(|shown| shown.version == 0) {
            self.read_shown(true);
        }
        if version == self.version && !self.has_ended {
            return None;
        }
        let has_ended = self.has_ended;
        let history = self.devices.get_mut(device).and_then(|shown| {
            shown.was_sent = has_ended;
            let is_new = shown.version > version;
            is_new.then(|| RawValue::from_string(shown.history.to_json()).ok()).flatten()
        });
        let devices = self.devices.iter().map(|device| device.label.as_str()).collect();
        let data = LiveData { version: self.version, ended: has_ended, devices, history: history.as_deref() };
        serde_json::to_string(&data).ok()
    }

    /// Returns true for the index of a device. A page that is open before the first device asks for it.
    pub(crate) fn has(&self, device: usize) -> bool {
        device < self.devices.len().max(1)
    }

    /// Returns true after the last state of every device was sent.
    pub(crate) fn is_sent(&self) -> bool {
        self.has_ended && self.devices.iter().all(|device| device.was_sent)
    }
}

/// The recording of one device.
struct GrowingRecording {
    key: String,
    path: PathBuf,
    label: String,
    history: History,
    findings: Findings,
    /// The hash of the file when it was decoded last, and when the findings were.
    seen: Option<u64>,
    judged: Option<u64>,
    /// The version of all recordings when this one changed last; 0 before it was read.
    version: u64,
    /// True if the program has ended the recording, or had ended itself when the file was read last.
    is_complete: bool,
    /// True if its last state was sent.
    was_sent: bool,
    /// When it was read last, and how long that took without findings; and the same of the last read with findings.
    read: Option<(Instant, Duration)>,
    judging: Option<(Instant, Duration)>,
}

/// Returns true if a read that may take a tenth of the time is not due yet.
fn is_early(last: Option<(Instant, Duration)>) -> bool {
    last.is_some_and(|(at, took)| at.elapsed() < PAUSE.max(took.saturating_mul(SHARE)))
}

impl GrowingRecording {
    fn new(number: usize, found: FoundRecording) -> Self {
        Self {
            label: label(number, &found.path),
            key: found.device,
            path: found.path,
            history: History::default(),
            findings: Findings::default(),
            seen: None,
            judged: None,
            version: 0,
            is_complete: false,
            was_sent: false,
            read: None,
            judging: None,
        }
    }

    /// Reads the file again, unless that was done a moment ago. A large file is read less often, and the findings, which
    /// take longer, less often than the rest. Returns true if the state is another.
    fn refresh(&mut self, now: bool) -> bool {
        let is_known = self.is_complete && self.judged.is_some() && self.judged == self.seen;
        if is_known || (!now && is_early(self.read)) {
            return false;
        }
        let judges = now || !is_early(self.judging);
        let start = Instant::now();
        let changed = fs::read(&self.path).is_ok_and(|bytes| self.take(&bytes, judges));
        let last = (Instant::now(), start.elapsed());
        if judges {
            self.judging = Some(last);
            self.read = Some((last.0, self.read.map_or(Duration::ZERO, |(_, took)| took)));
        } else {
            self.read = Some(last);
        }
        changed
    }

    /// Decodes the intact part of a file, unless that was done. A file without a complete head is read again later.
    fn take(&mut self, bytes: &[u8], judges: bool) -> bool {
        let mut hasher = DefaultHasher::new();
        hasher.write(bytes);
        let seen = Some(hasher.finish());
        if seen == self.judged || (seen == self.seen && !judges) {
            return false;
        }
        let Some(GrownState { mut history, findings, is_complete }) = state(bytes, judges) else {
            return false;
        };
        (self.seen, self.is_complete) = (seen, is_complete);
        if let Some(findings) = findings {
            (self.judged, self.findings) = (seen, findings);
        }
        history.add_findings(&self.findings);
        self.history = history;
        true
    }
}

/// Returns `2: NVIDIA H200, process 71`, or only the number if the head of the file is not complete.
fn label(number: usize, path: &Path) -> String {
    // A file that cannot be read has no device to name.
    let head = files::read_head(path, HEAD).unwrap_or_default();
    match ForeignRecords::new(&head) {
        Ok(records) => {
            let header = records.header();
            format!("{number}: {}, process {}", header.device_name, header.process)
        }
        Err(_) => number.to_string(),
    }
}

/// The state of a file.
struct GrownState {
    history: History,
    /// `None` without judging, which takes longer than the rest.
    findings: Option<Findings>,
    is_complete: bool,
}

/// Decodes a file, once.
fn state(bytes: &[u8], judges: bool) -> Option<GrownState> {
    if let Ok(records) = ForeignRecords::new(bytes) {
        let header = records.header().clone();
        let mut is_complete = false;
        let all = records.inspect(|record| is_complete = record.event == Event::DeviceDestroyed);
        let (history, findings) = if judges {
            let (history, findings) = History::with_findings(&header, all);
            (history, Some(findings))
        } else {
            (History::of_foreign(&header, all), None)
        };
        return Some(GrownState { history, findings, is_complete });
    }
    let prefix = Trace::read_prefix(bytes).ok()?;
    let history = play::history_of(&prefix.trace, None).ok()?;
    let findings = judges.then(|| Findings::of(&prefix.trace));
    Some(GrownState { history, findings, is_complete: prefix.end.is_none() })
}

#[cfg(test)]
mod tests {
    use sublet::private::foreign_recording;
    use sublet::trace::{ForeignMemoryFlags, MemoryNumber, Record};

    use super::*;

    #[test]
    fn a_state_is_decoded_once_and_judged_once() {
        let (memory, flags) = (MemoryNumber(1), ForeignMemoryFlags::empty());
        let event = Event::MemoryAllocated { memory, memory_type: 0, size: 4096, flags, resource: None };
        let mut trace = Trace { records: vec![Record { event, ..Record::default() }], ..Trace::default() };
        let found = FoundRecording { device: String::new(), path: PathBuf::new() };
        let mut device = GrowingRecording::new(1, found);
        let first = foreign_recording(&trace);
        trace.records.push(Record { event: Event::DeviceDestroyed, ..Record::default() });
        let second = foreign_recording(&trace);
        assert!(device.take(&first, false) && device.findings.findings.is_empty());
        assert!(!device.take(&first, false));
        assert!(device.take(&first, true) && !device.findings.findings.is_empty());
        assert!(!device.take(&first, true) && !device.is_complete);
        assert!(device.take(&second, true) && device.is_complete);
        assert!(!device.take(&second, false) && !device.take(&second, true));
    }
}
