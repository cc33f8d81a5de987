//! A whole recording: the device memory and the allocations of each moment.

mod builder;
mod bursts;
mod data;
mod foreign;
mod parts;
mod replayed;
#[cfg(test)]
#[cfg(not(loom))]
mod tests;
mod thin;

#[cfg(feature = "findings")]
use crate::findings::{Findings, MemoryFinding};
use crate::page;
use crate::snapshot::{Device, Heap, MemoryType, Vector};
use parts::{HeapBytes, HeldMemory, HistoryMoment, HistoryPlacement, Texts};

/// Maximum number of placements in a page, about 35 bytes each.
const MOST_PLACED: usize = 200_000;
/// The same for a page that grows, which fetches all of them again.
const MOST_LIVE: usize = 20_000;
/// Maximum number of frames and of failures in a page.
const MOST_MARKS: usize = 20_000;

/// The device memory and the allocations of a whole recording, with the moments at which each of them began and ended.
///
/// [`Self::to_html`] writes it as a page: memory over time at the top, and below it the map of a chosen moment, or the
/// differences of two moments. Allocations of two moments are matched by their numbers in the recording, so the
/// differences are exact.
///
/// ```
/// # use sublet::*; use sublet::trace::*; use ash::vk;
/// # let (_gpu, allocator, allocate) = include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/example/gpu.rs"));
/// use sublet_report::History;
///
/// # let file = TraceBuffer::new();
/// # allocator.start_recording(file.clone())?;
/// # let mesh = allocate(&allocator, "mesh", 4096);
/// # allocator.stop_recording()?;
/// # let bytes = file.bytes();
/// // `bytes` is the content of a recorded file.
/// let trace = Trace::read(&bytes)?;
/// let gpu = trace.header.simulated().build();
/// // SAFETY: instance and device are live, and outlive the allocator.
/// let allocator = unsafe { Allocator::new(&trace.header.create_info(&gpu)) }?;
/// let history = History::replayed(&trace, &allocator);
/// assert_eq!(history.allocation_count(), 1);
/// assert!(history.to_html().contains("mesh"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct History {
    /// A human-readable title.
    pub title: Option<Box<str>>,
    device: Device,
    heaps: Vec<Heap>,
    types: Vec<MemoryType>,
    /// Without their blocks, which are in `memories`.
    vectors: Vec<Vector>,
    /// In the order in which they began.
    moments: Vec<HistoryMoment>,
    memories: Vec<HeldMemory>,
    /// In the order in which they began.
    placed: Vec<HistoryPlacement>,
    texts: Texts,
    /// The moments at which frames begin, and their numbers.
    frames: Vec<(u32, u64)>,
    /// True if these are submissions, because the program presented nothing.
    has_submissions: bool,
    /// The budgets of heaps, from a moment on.
    budgets: Vec<HeapBytes>,
    /// Bytes of the driver's own objects in heaps, from a moment on.
    driver: Vec<HeapBytes>,
    /// `None` if the recording was not judged.
    #[cfg(feature = "findings")]
    findings: Option<Vec<MemoryFinding>>,
    /// True for a program that allocates its memory without Sublet.
    is_foreign: bool,
    /// The moments of failed allocations.
    failures: Vec<u32>,
    /// Calls in the whole recording.
    calls: u64,
    /// Nanoseconds from the start to the last call.
    duration: u64,
}

impl History {
    /// Returns the number of allocations in the recording.
    #[must_use]
    pub fn allocation_count(&self) -> usize {
        self.placed.iter().filter(|placed| placed.is_first).count()
    }

    /// Returns the number of calls in the recording.
    #[must_use]
    pub fn call_count(&self) -> u64 {
        self.calls
    }

    /// Adds the findings of the same recording to the page. Their objects are links to the map.
    ///
    /// ```
    /// use sublet::trace::{Event, ForeignMemoryFlags, MemoryNumber, Record, Trace};
    /// use sublet_report::{Findings, History};
    ///
    /// let (memory, flags) = (MemoryNumber(1), ForeignMemoryFlags::empty());
    /// let event = Event::MemoryAllocated { memory, memory_type: 0, size: 4096, flags, resource: None };
    /// let trace = Trace { records: vec![Record { event, ..Record::default() }], ..Trace::default() };
    /// let mut history = History::of_foreign(&trace.header, &trace.records);
    /// history.add_findings(&Findings::of(&trace));
    /// assert!(history.to_html().contains(r#""kind":"never-bound""#));
    /// ```
    #[cfg(feature = "findings")]
    pub fn add_findings(&mut self, findings: &Findings) {
        self.findings.get_or_insert_default().extend(findings.findings.iter().cloned());
    }

    /// Returns the data of the page as JSON, for a page of [`Self::to_live_html`], with at most 20,000 placements. Its
    /// schema is not stable.
    #[must_use]
    pub fn to_json(&self) -> String {
        // Cannot fail, because all map keys are strings.
        serde_json::to_string(&self.live_data()).unwrap_or_default()
    }

    /// Returns a page that fetches newer states while the program runs. Its server answers
    /// `data?since=VERSION&device=INDEX`, next to the page, or with the status 204 if nothing is newer. The page
    /// requests nothing else. The members of an answer are `version`, `ended`, `devices` (the names of all devices,
    /// once each) and `history` ([`Self::to_json`] of the device, or null if it is not newer).
    #[must_use]
    pub fn to_live_html(&self) -> String {
        page::of_live_history(self.title.as_deref().unwrap_or("Memory over time"), &self.live_data())
    }

    /// Returns a complete HTML file. The same recording gives the same text.
    ///
    /// The page has at most 200,000 placements. If a recording has more, those that were live for the shortest time
    /// are left out of the map, and the page says so. The graph still includes their bytes.
    ///
    /// # Complexity
    /// O(n log n) for n placements.
    #[must_use]
    pub fn to_html(&self) -> String {
        page::of_history(self.title.as_deref().unwrap_or("Memory over time"), &self.data())
    }
}
