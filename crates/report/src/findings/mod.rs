//! Advice from a recording.

mod churn;
mod finding;
mod limits;
mod lives;
mod moment;
mod nearly_empty;
mod outcomes;
mod own;
mod survey;
mod text;
mod types;
mod unused;

use std::borrow::Borrow;

use serde::Serialize;

pub use finding::{FindingKind, FindingObject, MemoryFinding};
pub use limits::{FindingLimit, LimitBreach, ReadLimitError};
pub use outcomes::PresetOutcome;
pub use survey::MomentSums;

use self::lives::Lives;
use self::survey::Survey;
use sublet::trace::{ForeignRecords, Header, Record, ResourceRequests, Trace};

/// Advice on a program's use of memory. Each finding states the bytes that it would save, the objects concerned, and
/// what to do.
///
/// It comes from the recording of a foreign program, or of an allocator. Findings about mapping, binding and lifetimes
/// need a foreign recording, because that of an allocator lacks its `VkDeviceMemory`.
///
/// ```
/// use sublet::trace::{Event, ForeignMemoryFlags, MemoryNumber, Record, Trace};
/// use sublet_report::{FindingKind, Findings};
///
/// let (memory, flags) = (MemoryNumber(1), ForeignMemoryFlags::empty());
/// let event = Event::MemoryAllocated { memory, memory_type: 0, size: 4096, flags, resource: None };
/// let trace = Trace { records: vec![Record { event, ..Record::default() }], ..Trace::default() };
/// let findings = Findings::of(&trace);
/// assert_eq!(findings.findings[0].kind, FindingKind::NeverBound);
/// assert_eq!(findings.findings[0].bytes, 4096);
/// ```
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct Findings {
    /// The program.
    pub program: Box<str>,
    /// The name of its device.
    pub device: Box<str>,
    /// True if the program allocates its memory without Sublet.
    pub is_foreign: bool,
    /// The number of a part of a recording, from 2, which begins with the objects that are live at its start; 0 for the
    /// first. All sums and counts are those of the part.
    pub part: u32,
    /// Number of records.
    pub records: u64,
    /// Bytes of the file that could not be read.
    pub damaged_bytes: u64,
    /// `maxMemoryAllocationCount` of the device.
    pub max_memory_allocation_count: u32,
    /// The most live `VkDeviceMemory`.
    pub peak_memory_count: u64,
    /// When the most bytes were reserved.
    pub at_peak: MomentSums,
    /// Before shutdown: after the last call that frees nothing. Submissions after the last frame are part of the
    /// shutdown.
    pub at_end: MomentSums,
    /// The findings, those with the most bytes first. Candidates come last.
    pub findings: Vec<MemoryFinding>,
    /// The memory of the program itself, and of its requests on Sublet: see [`PresetOutcome`].
    pub presets: Vec<PresetOutcome>,
}

impl Findings {
    /// Returns the findings of a recording.
    ///
    /// # Complexity
    /// O(n log m) for n records and m live objects, and one replay for each preset.
    #[must_use]
    pub fn of(trace: &Trace) -> Self {
        if trace.is_foreign() {
            return Self::foreign(&trace.header, &trace.records);
        }
        let mut found = Self::about(&trace.header);
        found.records = crate::cast::widen(trace.records.len());
        outcomes::of_requests(&mut found, trace);
        own::of_blocks(&mut found, trace);
        found.sorted()
    }

    /// Returns the findings of a foreign recording without keeping all of its records in memory. The file is decoded
    /// once; the memory is proportional to the live objects and to the requests. Afterwards `records` is at its end and
    /// knows all damage.
    #[must_use]
    pub fn of_records(records: &mut ForeignRecords<'_>) -> Self {
        let header = records.header().clone();
        let mut found = Self::foreign(&header, records.by_ref());
        found.damaged_bytes = records.damaged_bytes();
        found
    }

    fn about(header: &Header) -> Self {
        Self {
            program: header.program.clone(),
            device: header.device_name.clone(),
            part: header.part,
            max_memory_allocation_count: header.max_memory_allocation_count,
            ..Self::default()
        }
    }

    pub(crate) fn foreign(header: &Header, records: impl IntoIterator<Item: Borrow<Record>>) -> Self {
        let mut requests = ResourceRequests::new(header.clone());
        let (mut survey, mut lives) = (Survey::default(), Lives::default());
        for record in records {
            let record = record.borrow();
            requests.add(record);
            lives.before(&survey.program, record);
            survey.add(header, record);
            lives.after(&survey.program, record);
        }
        lives.finish(&survey.program);
        survey.finish(header);
        let requests = requests.finish();
        let mut found = Self {
            is_foreign: true,
            records: survey.records,
            peak_memory_count: survey.peak_memory_count,
            at_peak: survey.at_peak,
            at_end: survey.at_end,
            ..Self::about(header)
        };
        found.findings.extend(survey.findings(header));
        found.findings.extend(lives.findings(&survey.at_end));
        found.findings.extend(moment::findings(header, &lives.at_end));
        found.findings.extend(types::findings(header, &lives.at_end, &survey));
        found.presets.push(survey.own.clone());
        outcomes::of_requests(&mut found, &requests);
        outcomes::of_moves(&mut found, &requests, survey.at_end.time);
        found.sorted()
    }

    fn sorted(mut self) -> Self {
        self.findings
            .sort_by_key(|finding| (finding.is_candidate, std::cmp::Reverse(finding.bytes), finding.kind));
        self
    }

    /// Returns the share of the reserved bytes that no resource uses, when the most are reserved: 0 to 1.
    #[must_use]
    pub fn waste(&self) -> f64 {
        let free = self.at_peak.reserved_bytes.saturating_sub(self.at_peak.used_bytes);
        crate::figures::share(free, self.at_peak.reserved_bytes)
    }
}
