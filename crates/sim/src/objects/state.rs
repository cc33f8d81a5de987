//! The objects behind the handles, and how a C function finds them.
//!
//! - A [`GpuState`] is one simulated GPU: its profile, its messages, its faults and counts.
//! - An [`Instance`] and a [`DeviceObject`] are what the program made of it. `entry::on_device` and its siblings find
//!   them.
//! - A [`DeviceState`] is everything on a device that is not a dispatchable handle, behind the device's one lock.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use ash::vk;
use parking_lot::{Condvar, Mutex};

use crate::facts::arithmetic::index;
use crate::facts::broken::Broken;
use crate::facts::profiles::{DescriptorHeapLimits, Profile};
use crate::hazards::Judge;
use crate::objects::commands::CommandState;
use crate::objects::descriptor_table::DescriptorTable;
use crate::objects::descriptors::DescriptorState;
use crate::objects::descriptors::policy::Behaviour;
use crate::objects::faults::FaultState;
use crate::objects::features::EnabledFeatures;
use crate::objects::handle_map::HandleMap;
use crate::objects::kernels::Kernels;
use crate::objects::log::CallLog;
use crate::objects::memory::MemoryObject;
use crate::objects::messages::{Messages, Messenger};
use crate::objects::passes::PassState;
use crate::objects::pipelines::PipelineState;
use crate::objects::queues::QueueState;
use crate::objects::resources::{
    BufferObject, BufferView, ImageObject, ImageView, MemoryBinding, SparsePages, SparseRange,
};
use crate::objects::store::{HostMemoryLimit, Piece, Store};
use crate::objects::sync::SyncState;

/// The capabilities of the first family.
pub(crate) const ALL_WORK: vk::QueueFlags = vk::QueueFlags::from_raw(
    vk::QueueFlags::GRAPHICS.as_raw() | vk::QueueFlags::COMPUTE.as_raw() | vk::QueueFlags::TRANSFER.as_raw(),
);

/// One simulated GPU, whatever instances and devices are made of it.
#[derive(Debug)]
pub(crate) struct GpuState {
    /// A part of every handle, so that handles of two GPUs always differ.
    pub(crate) id: u64,
    pub(crate) profile: &'static Profile,
    /// Minor version of the instance, see `driver::environment`.
    pub(crate) instance_minor: u32,
    /// Minor version of the physical device.
    pub(crate) device_minor: u32,
    /// The capabilities of each family, and its number of queues.
    pub(crate) families: Vec<(vk::QueueFlags, u32)>,
    /// The driver's identity and version.
    pub(crate) driver: (vk::DriverId, u32),
    /// True if devices do nothing, see the module `null`.
    pub(crate) null: bool,
    /// True if devices look for hazards.
    pub(crate) hazards: bool,
    /// The device extensions that the GPU has, sorted.
    pub(crate) extensions: Vec<String>,
    pub(crate) messages: Messages,
    pub(crate) faults: FaultState,
    pub(crate) log: CallLog,
    /// The closures for shaders.
    pub(crate) kernels: Kernels,
    /// How descriptor pools behave.
    pub(crate) descriptors: Behaviour,
    /// The limits of descriptor heaps, if the GPU has them.
    pub(crate) descriptor_heap: Option<DescriptorHeapLimits>,
    /// True if resources may overlap without a report.
    pub(crate) aliasing: AtomicBool,
    /// Ranges of memories where resources may overlap: memory, start and end.
    pub(crate) aliases: Mutex<Vec<(vk::DeviceMemory, u64, u64)>>,
    /// Host memory for the bytes of device memory.
    pub(crate) host_limit: Arc<HostMemoryLimit>,
    /// Bytes that all devices have allocated from each heap.
    heap_used: [AtomicU64; vk::MAX_MEMORY_HEAPS],
    /// Callbacks that get every report.
    pub(crate) messengers: Mutex<Vec<Messenger>>,
    /// The next handle's number.
    handles: AtomicU64,
}

impl GpuState {
    pub(crate) fn new(
        profile: &'static Profile,
        instance_minor: u32,
        device_minor: u32,
        mut extensions: Vec<String>,
    ) -> Self {
        static HUBS: AtomicU64 = AtomicU64::new(1);
        extensions.sort_unstable();
        extensions.dedup();
        Self {
            id: HUBS.fetch_add(1, Ordering::Relaxed),
            profile,
            instance_minor,
            device_minor,
            families: vec![(ALL_WORK, 1)],
            driver: (profile.driver_id, profile.driver_version),
            null: false,
            hazards: false,
            extensions,
            messages: Messages::default(),
            faults: FaultState::default(),
            log: CallLog::default(),
            kernels: Kernels::default(),
            descriptors: Behaviour::new(profile),
            descriptor_heap: profile.limits.descriptor_heap,
            aliasing: AtomicBool::new(false),
            aliases: Mutex::default(),
            messengers: Mutex::default(),
            host_limit: Arc::new(HostMemoryLimit::new(u64::MAX)),
            heap_used: [const { AtomicU64::new(0) }; vk::MAX_MEMORY_HEAPS],
            handles: AtomicU64::new(1),
        }
    }

    /// Returns whether the GPU has a device extension.
    pub(crate) fn offers(&self, extension: &str) -> bool {
        self.extensions.iter().any(|offered| offered == extension)
    }

    /// Bytes that all devices have allocated from a heap.
    pub(crate) fn heap_used(&self, heap: u32) -> u64 {
        self.heap_used.get(index(heap)).map_or(0, |used| used.load(Ordering::Relaxed))
    }

    /// Takes bytes from a heap, if it has so many left.
    pub(crate) fn take(&self, heap: u32, size: u64) -> bool {
        let (Some(used), Some(heap)) = (self.heap_used.get(index(heap)), self.profile.heaps.get(index(heap)))
        else {
            return false;
        };
        let more = |used: u64| used.checked_add(size).filter(|&sum| sum <= heap.size);
        used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    /// Gives bytes back to a heap.
    pub(crate) fn give_back(&self, heap: u32, size: u64) {
        if let Some(used) = self.heap_used.get(index(heap)) {
            used.fetch_sub(size, Ordering::Relaxed);
        }
    }

    /// Reports once that the limit on host memory was reached. The call that got no memory returns an error, or leaves
    /// the bytes as they are.
    #[inline]
    pub(crate) fn report_limit(&self) {
        if let Some(size) = self.host_limit.take_refusal() {
            let limit = self.host_limit.limit;
            self.report(
                "SUBLET-memory-limit",
                format!(
                    "a device memory of {size} bytes has no host memory: with those in use it would be more than the limit of \
                     {limit} bytes (GpuBuilder::memory_limit, SUBLET_SIM_MEMORY_LIMIT, sublet replay --memory-limit)"
                ),
            );
        }
    }

    /// Why a handle has no object. The text follows the handle's name.
    pub(crate) fn fate<H: vk::Handle>(&self, handle: H) -> &'static str {
        let raw = handle.as_raw();
        if raw == 0 {
            "is NULL"
        } else if raw >> 40 != self.id & 0xff_ffff {
            "is not a handle of this device"
        } else {
            "is destroyed, or of another kind"
        }
    }

    /// A new non-dispatchable handle. Handles are never used again, so that a stale one is known as stale.
    pub(crate) fn handle<H: vk::Handle>(&self) -> H {
        let number = self.handles.fetch_add(1, Ordering::Relaxed);
        H::from_raw((self.id & 0xff_ffff) << 40 | number & 0xff_ffff_ffff)
    }
}

/// A `VkInstance` and its one `VkPhysicalDevice`.
pub(crate) struct Instance {
    pub(crate) handle: vk::Instance,
    pub(crate) physical_device: vk::PhysicalDevice,
    pub(crate) gpu_state: Arc<GpuState>,
    /// The minor version that the program may use: the one that it asked for, or the driver's if that is older.
    pub(crate) minor: u32,
    /// The instance extensions that are enabled.
    pub(crate) extensions: Vec<String>,
    /// Devices that are not destroyed yet.
    pub(crate) devices: AtomicU64,
    /// True if unread messages are printed when the instance is destroyed: its program has no `Gpu` to read them from.
    pub(crate) orphan: bool,
}

/// A `VkDevice` and its `VkQueue`s.
pub(crate) struct DeviceObject {
    pub(crate) handle: vk::Device,
    /// The queues, those of each family one after another.
    pub(crate) queues: Vec<vk::Queue>,
    /// The family of each queue.
    pub(crate) families: Vec<u32>,
    pub(crate) gpu_state: Arc<GpuState>,
    pub(crate) instance: Arc<Instance>,
    /// The minor version that the program may use on this device.
    pub(crate) minor: u32,
    /// The device extensions that are enabled.
    pub(crate) extensions: Vec<String>,
    pub(crate) features: EnabledFeatures,
    lost: AtomicBool,
    /// Everything else. Held for one call at a time, and never while bytes are copied or a call is delayed.
    pub(crate) state: Mutex<DeviceState>,
    /// A wait for a fence or semaphore sleeps on it, with `state`. A change of one notifies all.
    pub(crate) changed: Condvar,
}

impl DeviceObject {
    pub(crate) fn new(
        handle: vk::Device,
        (queues, families): (Vec<vk::Queue>, Vec<u32>),
        instance: &Arc<Instance>,
        minor: u32,
        extensions: Vec<String>,
        features: EnabledFeatures,
    ) -> Self {
        let queue = QueueState::new(queues.len());
        let hazards = instance.gpu_state.hazards.then(|| Box::new(Judge::new(families.clone())));
        Self {
            handle,
            queues,
            families,
            gpu_state: Arc::clone(&instance.gpu_state),
            instance: Arc::clone(instance),
            minor,
            extensions,
            features,
            lost: AtomicBool::new(false),
            state: Mutex::new(DeviceState { queue, hazards, ..DeviceState::default() }),
            changed: Condvar::new(),
        }
    }

    /// The index of a queue of the device. The registry does not find queues that the device does not have.
    pub(crate) fn timeline(&self, queue: vk::Queue) -> usize {
        self.queues.iter().position(|&known| known == queue).unwrap_or(0)
    }

    /// The queue with an index in a family.
    pub(crate) fn queue_of(&self, family: u32, index: u32) -> Option<vk::Queue> {
        let queues = self.queues.iter().zip(&self.families).filter(|(_, of)| **of == family);
        queues.map(|(queue, _)| *queue).nth(crate::facts::arithmetic::index(index))
    }

    /// Returns whether the device is lost. It stays so.
    pub(crate) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Acquire)
    }

    pub(crate) fn lose(&self) {
        self.lost.store(true, Ordering::Release);
    }

    pub(crate) fn profile(&self) -> &'static Profile {
        self.gpu_state.profile
    }

    /// Returns whether a device extension is enabled.
    pub(crate) fn has(&self, extension: &str) -> bool {
        self.extensions.iter().any(|enabled| enabled == extension)
    }

    /// Returns whether the program can query `maxBufferSize`, so that a larger buffer breaks a rule.
    pub(crate) fn has_buffer_size_rule(&self) -> bool {
        self.minor >= 3 || self.has("VK_KHR_maintenance4")
    }

    /// Reports wrong use, see [`GpuState::report`]. May be called with `state` locked.
    pub(crate) fn report(&self, vuid: &'static str, text: impl Into<String>) {
        self.gpu_state.report(vuid, text);
    }

    /// Reports wrong use by a call that then does nothing, and returns the call's result.
    pub(crate) fn refuse(&self, vuid: &'static str, text: impl Into<String>) -> vk::Result {
        self.report(vuid, text);
        vk::Result::ERROR_VALIDATION_FAILED_EXT
    }
}

/// All objects of a device with non-dispatchable handles, by handle. The maps are ordered, so that lists are the same
/// on every run.
#[derive(Default)]
pub(crate) struct DeviceState {
    pub(crate) memories: HandleMap<vk::DeviceMemory, MemoryObject>,
    pub(crate) buffers: HandleMap<vk::Buffer, BufferObject>,
    pub(crate) images: HandleMap<vk::Image, ImageObject>,
    pub(crate) buffer_views: HandleMap<vk::BufferView, BufferView>,
    pub(crate) image_views: HandleMap<vk::ImageView, ImageView>,
    /// The end of the device addresses that were given out.
    pub(crate) address_end: u64,
    /// Memories by their device address.
    pub(crate) addresses: BTreeMap<u64, vk::DeviceMemory>,
    /// The meaning of bytes in descriptor buffers.
    pub(crate) descriptor_bytes: DescriptorTable,
    /// Shader modules and pipelines.
    pub(crate) pipelines: PipelineState,
    /// Render passes and framebuffers.
    pub(crate) passes: PassState,
    /// Names from `vkSetDebugUtilsObjectNameEXT`, by handle.
    pub(crate) names: BTreeMap<u64, String>,
    /// Command pools and command buffers.
    pub(crate) commands: CommandState,
    /// Descriptor pools, sets, and what goes with them.
    pub(crate) descriptors: DescriptorState,
    /// Submissions.
    pub(crate) queue: QueueState,
    /// Fences and semaphores.
    pub(crate) sync: SyncState,
    /// The hazard judge, if hazards are looked for.
    pub(crate) hazards: Option<Box<Judge>>,
}

/// The location of a resource's bytes.
#[derive(Debug, Clone)]
pub(crate) struct StoreRange {
    pub(crate) store: Arc<Store>,
    /// The offset of the resource in `store`.
    pub(crate) offset: u64,
}

/// Why a command cannot use a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unusable {
    /// No object has this handle: it was never created, or is destroyed.
    Unknown,
    /// No memory is bound to it.
    Unbound,
    /// The memory that was bound to it is freed.
    MemoryFreed,
}

impl DeviceState {
    /// The bytes of a buffer, for a command.
    pub(crate) fn buffer_bytes(&self, buffer: vk::Buffer) -> Result<StoreRange, Unusable> {
        let buffer = self.buffers.get(&buffer).ok_or(Unusable::Unknown)?;
        if let Some(pages) = &buffer.pages {
            return self.sparse_bytes(pages, buffer.requirements.size);
        }
        self.bound_bytes(buffer.bound.as_ref())
    }

    /// The bytes of an image, for a command.
    pub(crate) fn image_bytes(&self, image: vk::Image) -> Result<StoreRange, Unusable> {
        let image = self.images.get(&image).ok_or(Unusable::Unknown)?;
        self.bound_bytes(image.bound.as_ref())
    }

    /// The bytes of a sparse buffer, for a command: those of its pages. Bytes of pages that are not bound cannot be
    /// read or written.
    fn sparse_bytes(&self, pages: &SparsePages, size: u64) -> Result<StoreRange, Unusable> {
        let piece = |(&start, bound): (&u64, &SparseRange)| {
            let memory = self.memories.get(&bound.memory).ok_or(Unusable::MemoryFreed)?;
            let store = Arc::clone(&memory.store);
            Ok(Piece { start, size: bound.size, store, offset: bound.offset })
        };
        let pieces = pages.iter().map(piece).collect::<Result<_, _>>()?;
        Ok(StoreRange { store: Arc::new(Store::of_pieces(size, pieces)), offset: 0 })
    }

    fn bound_bytes(&self, bound: Option<&MemoryBinding>) -> Result<StoreRange, Unusable> {
        let bound = bound.ok_or(Unusable::Unbound)?;
        if !self.memories.contains_key(&bound.memory) {
            return Err(Unusable::MemoryFreed);
        }
        Ok(StoreRange { store: Arc::clone(&bound.store), offset: bound.offset })
    }

    /// The name of an object in messages: its handle, and the name that the program gave it.
    pub(crate) fn name<H: vk::Handle>(&self, handle: H) -> String {
        self.label(handle).to_string()
    }

    /// The text of a report about a handle that has no object.
    pub(crate) fn missing<H: vk::Handle + Copy>(&self, device: &DeviceObject, handle: H) -> String {
        format!("{} {}", self.label(handle), device.gpu_state.fate(handle))
    }

    /// The object of a handle, if one was found; else `rule` as broken.
    pub(crate) fn known<H: vk::Handle + Copy, T>(
        &self,
        device: &DeviceObject,
        handle: H,
        found: Option<T>,
        rule: &'static str,
    ) -> Result<T, Broken> {
        found.ok_or_else(|| (rule, self.missing(device, handle)))
    }

    /// As [`name`](Self::name), but the text is made only when it is printed.
    pub(crate) fn label<H: vk::Handle>(&self, handle: H) -> Label {
        let raw = handle.as_raw();
        Label { kind: H::TYPE, raw, given: self.names.get(&raw).cloned() }
    }
}

/// The name of an object in messages.
pub(crate) struct Label {
    kind: vk::ObjectType,
    raw: u64,
    given: Option<String>,
}

impl Label {
    pub(crate) fn raw(&self) -> u64 {
        self.raw
    }
}

impl std::fmt::Display for Label {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} {:#x}", self.kind, self.raw)?;
        match &self.given {
            // Escaped: a message stays one line.
            Some(given) => write!(f, " {given:?}"),
            None => Ok(()),
        }
    }
}
