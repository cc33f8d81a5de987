//! One piece of advice.

use serde::Serialize;

use crate::words::{clean, count};
use sublet::trace::{ForeignProgram, MemoryNumber, ResourceNumber};

/// One piece of advice. See [`Findings`](super::Findings).
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[non_exhaustive]
pub struct MemoryFinding {
    /// Its kind.
    pub kind: FindingKind,
    /// True if only the program's author knows whether it applies.
    pub is_candidate: bool,
    /// The bytes that it would save. 0 if it saves none, or none that a recording shows.
    pub bytes: u64,
    /// Number of objects concerned.
    pub count: u64,
    /// One sentence about the fact.
    pub text: Box<str>,
    /// One sentence on what to do.
    pub advice: &'static str,
    /// The largest of the objects concerned, at most [`Self::MAX_OBJECTS`].
    pub objects: Vec<FindingObject>,
}

/// An object of a finding.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct FindingObject {
    /// Its number in the recording, and its name if it has one: `memory 3`, `resource 7 "mesh"`.
    pub label: Box<str>,
    /// Its bytes.
    pub bytes: u64,
    /// Its state, for example what keeps a block alive. Empty if there is nothing to say.
    pub about: Box<str>,
}

/// The kind of a [`MemoryFinding`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum FindingKind {
    /// Memory and resources that were live when the program destroyed its device.
    Leak,
    /// Allocations that the driver refused.
    AllocationFailed,
    /// A heap had more bytes in use than its budget.
    OverBudget,
    /// Memory without coherence that was mapped, and never flushed or invalidated.
    NeverSynchronized,
    /// Memory that was allocated and never bound.
    NeverBound,
    /// Blocks of which less than a quarter is in use.
    NearlyEmpty,
    /// Blocks without any resource.
    Empty,
    /// Most resources have a `VkDeviceMemory` of their own.
    OneEach,
    /// Resources in a memory type that does not suit their use best.
    MemoryType,
    /// Host-visible memory that was never mapped.
    NeverMapped,
    /// Blocks that are created and destroyed in the second half of the recording.
    Churn,
    /// Blocks that moving their resources would free.
    Defragmentation,
    /// The same requests take less memory on Sublet.
    Preset,
    /// Attachments with disjoint lifetimes in separate memory.
    Aliasing,
    /// Attachments that nothing but a render pass uses.
    LazyAllocation,
}

impl FindingKind {
    /// All kinds.
    pub const ALL: &'static [Self] = &[
        Self::Leak,
        Self::AllocationFailed,
        Self::OverBudget,
        Self::NeverSynchronized,
        Self::NeverBound,
        Self::NearlyEmpty,
        Self::Empty,
        Self::OneEach,
        Self::MemoryType,
        Self::NeverMapped,
        Self::Churn,
        Self::Defragmentation,
        Self::Preset,
        Self::Aliasing,
        Self::LazyAllocation,
    ];

    /// Returns the name in JSON and JUnit.
    ///
    /// ```
    /// use sublet_report::FindingKind;
    /// assert_eq!(FindingKind::NearlyEmpty.name(), "nearly-empty");
    /// ```
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Leak => "leak",
            Self::AllocationFailed => "allocation-failed",
            Self::OverBudget => "over-budget",
            Self::NeverSynchronized => "never-synchronized",
            Self::NeverBound => "never-bound",
            Self::NearlyEmpty => "nearly-empty",
            Self::Empty => "empty",
            Self::OneEach => "one-each",
            Self::MemoryType => "memory-type",
            Self::NeverMapped => "never-mapped",
            Self::Churn => "churn",
            Self::Defragmentation => "defragmentation",
            Self::Preset => "preset",
            Self::Aliasing => "aliasing",
            Self::LazyAllocation => "lazy-allocation",
        }
    }

    /// Returns what to do.
    pub(super) const fn advice(self) -> &'static str {
        match self {
            Self::Leak => "Destroy the resources and free the memory before the device.",
            Self::AllocationFailed => "Use less memory, or fall back to another memory type.",
            Self::OverBudget => "Query the budget in each frame, and free or move what is needed least.",
            Self::NeverSynchronized => {
                "Flush after the host has written, and invalidate before it reads, or use a coherent memory type."
            }
            Self::NeverBound => "Free the memory, or allocate it when a resource needs it.",
            Self::NearlyEmpty => "Move the resources that keep the blocks alive, or use smaller blocks.",
            Self::Empty => "Free empty blocks, or keep only one of them.",
            Self::OneEach => "Suballocate: bind many resources to one block.",
            Self::MemoryType => "Choose the memory type by the use of the resource.",
            Self::NeverMapped => {
                "Use memory that only the device accesses, and copy into it with a transfer."
            }
            Self::Churn => "Keep an empty block between frames instead of freeing it.",
            Self::Defragmentation => "Defragment after a level was unloaded.",
            Self::Preset => "Let an allocator like Sublet divide the memory.",
            Self::Aliasing => "Bind resources that are never in use at the same time to the same memory.",
            Self::LazyAllocation => {
                "Create them with TRANSIENT_ATTACHMENT, in a memory type that is LAZILY_ALLOCATED."
            }
        }
    }
}

impl MemoryFinding {
    /// The most objects that a finding lists.
    pub const MAX_OBJECTS: usize = 20;

    /// Creates a finding of all of these objects. `bytes` is what it saves.
    pub(super) fn new(kind: FindingKind, bytes: u64, text: String, objects: Vec<FindingObject>) -> Self {
        let count = crate::cast::widen(objects.len());
        Self::of_many(kind, bytes, count, text, objects)
    }

    /// Same, with more objects than are listed.
    pub(super) fn of_many(
        kind: FindingKind,
        bytes: u64,
        count: u64,
        text: String,
        mut objects: Vec<FindingObject>,
    ) -> Self {
        objects.sort_by_key(|object| std::cmp::Reverse(object.bytes));
        objects.truncate(Self::MAX_OBJECTS);
        let is_candidate = matches!(kind, FindingKind::Aliasing | FindingKind::LazyAllocation);
        Self { kind, is_candidate, bytes, count, text: text.into(), advice: kind.advice(), objects }
    }
}

/// Describes the bytes of a finding about refused requests: those of the only one, or of the largest.
pub(super) fn largest_of(times: u64) -> String {
    match times {
        1 => "the only request".to_owned(),
        _ => format!("the largest of {}", count(times, "request")),
    }
}

pub(super) fn label(kind: &str, number: u64, name: Option<&str>) -> Box<str> {
    match name.filter(|name| !name.is_empty()) {
        Some(name) => format!("{kind} {number} \u{201c}{}\u{201d}", clean(name)).into(),
        None => format!("{kind} {number}").into(),
    }
}

impl FindingObject {
    pub(super) fn new(label: impl Into<Box<str>>, bytes: u64, about: impl Into<Box<str>>) -> Self {
        Self { label: label.into(), bytes, about: about.into() }
    }

    pub(super) fn memory(program: &ForeignProgram, number: MemoryNumber, about: impl Into<Box<str>>) -> Self {
        let memory = program.memories.get(&number);
        let name = memory.and_then(|memory| memory.name.as_deref());
        Self::new(label("memory", number.0, name), memory.map_or(0, |memory| memory.size), about)
    }

    pub(super) fn resource(
        program: &ForeignProgram,
        number: ResourceNumber,
        about: impl Into<Box<str>>,
    ) -> Self {
        let resource = program.resources.get(&number);
        let bytes = resource.map_or(0, |resource| {
            resource.bound.iter().fold(0, |sum: u64, binding| sum.saturating_add(binding.size))
        });
        Self::new(label_of_resource(program, number), bytes, about)
    }
}

/// Returns `resource 7 "mesh"`.
pub(super) fn label_of_resource(program: &ForeignProgram, number: ResourceNumber) -> Box<str> {
    let resource = program.resources.get(&number);
    label("resource", number.0, resource.and_then(|resource| resource.name.as_deref()))
}
