//! The objects behind the handles, and how a C function finds them.
//!
//! - A [`Hub`] is one simulated GPU: its profile, its messages, its faults and counts.
//! - An [`Instance`] and a [`Device`] are what the program made of it. `entry::on_device` and its siblings find them.
//! - A [`DeviceState`] is everything on a device that is not a dispatchable handle, behind the device's one lock.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use ash::vk;
use parking_lot::{Condvar, Mutex};

use super::commands::CommandState;
use super::describe::Broken;
use super::descriptor_buffer::DescriptorTable;
use super::descriptors::{Behaviour, DescriptorFeatures, DescriptorState};
use super::faults::FaultState;
use super::hazards::Judge;
use super::kernel::Kernels;
use super::log::Log;
use super::memory::Memory;
use super::messages::Messages;
use super::messenger::Messenger;
use super::passes::PassState;
use super::pipeline::PipelineState;
use super::profiles::{DescriptorHeapLimits, Profile};
use super::queue::QueueState;
pub(super) use super::registry;
use super::resource::{Bound, Buffer, BufferView, Image, ImageView};
use super::store::{Room, Store};
use super::sync::SyncState;
use crate::arithmetic::index;

/// The minor version that stands for the environment's choice, see [`minor`].
pub(super) const ENVIRONMENT: u32 = u32::MAX;

/// The newest minor version of the driver: Vulkan 1.4.
pub(super) const NEWEST_MINOR: u32 = 4;

/// The minor version of an entry point that was made for version 1.`minor`.
pub(super) fn minor(minor: u32) -> u32 {
    if minor == ENVIRONMENT { super::environment_minor() } else { minor.min(NEWEST_MINOR) }
}

/// What the first family can do.
pub(super) const ALL_WORK: vk::QueueFlags = vk::QueueFlags::from_raw(
    vk::QueueFlags::GRAPHICS.as_raw() | vk::QueueFlags::COMPUTE.as_raw() | vk::QueueFlags::TRANSFER.as_raw(),
);

/// One simulated GPU, whatever instances and devices are made of it.
#[derive(Debug)]
pub(super) struct Hub {
    /// A part of every handle, so that handles of two GPUs always differ.
    pub(super) id: u64,
    pub(super) profile: &'static Profile,
    /// Minor version of the instance, see [`minor`].
    pub(super) instance_minor: u32,
    /// Minor version of the physical device.
    pub(super) device_minor: u32,
    /// What the queues of each family can do, and how many there are.
    pub(super) families: Vec<(vk::QueueFlags, u32)>,
    /// The driver's identity and version.
    pub(super) driver: (vk::DriverId, u32),
    /// Whether devices do nothing, see the module `null`.
    pub(super) null: bool,
    /// Whether devices look for hazards.
    pub(super) hazards: bool,
    /// The device extensions that the GPU has, sorted.
    pub(super) extensions: Vec<String>,
    pub(super) messages: Messages,
    pub(super) faults: FaultState,
    pub(super) log: Log,
    /// The closures for shaders.
    pub(super) kernels: Kernels,
    /// How descriptor pools behave.
    pub(super) descriptors: Behaviour,
    /// The limits of descriptor heaps, if the GPU has them.
    pub(super) descriptor_heap: Option<DescriptorHeapLimits>,
    /// Whether resources may overlap without a report.
    pub(super) aliasing: AtomicBool,
    /// Ranges of memories where resources may overlap: memory, start and end.
    pub(super) aliases: Mutex<Vec<(vk::DeviceMemory, u64, u64)>>,
    /// Host memory for the bytes of device memory.
    pub(super) room: Arc<Room>,
    /// Bytes that all devices have allocated from each heap.
    heap_used: [AtomicU64; vk::MAX_MEMORY_HEAPS],
    /// Callbacks that get every report.
    pub(super) messengers: Mutex<Vec<Messenger>>,
    /// The next handle's number.
    handles: AtomicU64,
}

impl Hub {
    pub(super) fn new(
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
            log: Log::default(),
            kernels: Kernels::default(),
            descriptors: Behaviour::new(profile),
            descriptor_heap: profile.limits.descriptor_heap,
            aliasing: AtomicBool::new(false),
            aliases: Mutex::default(),
            messengers: Mutex::default(),
            room: Arc::new(Room::new(u64::MAX)),
            heap_used: [const { AtomicU64::new(0) }; vk::MAX_MEMORY_HEAPS],
            handles: AtomicU64::new(1),
        }
    }

    /// Whether the GPU has a device extension.
    pub(super) fn offers(&self, extension: &str) -> bool {
        self.extensions.iter().any(|offered| offered == extension)
    }

    /// Bytes that all devices have allocated from a heap.
    pub(super) fn heap_used(&self, heap: u32) -> u64 {
        self.heap_used.get(index(heap)).map_or(0, |used| used.load(Ordering::Relaxed))
    }

    /// Takes bytes from a heap, if it has so many left.
    pub(super) fn take(&self, heap: u32, size: u64) -> bool {
        let (Some(used), Some(heap)) = (self.heap_used.get(index(heap)), self.profile.heaps.get(index(heap)))
        else {
            return false;
        };
        let more = |used: u64| used.checked_add(size).filter(|&sum| sum <= heap.size);
        used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    /// Gives bytes back to a heap.
    pub(super) fn give_back(&self, heap: u32, size: u64) {
        if let Some(used) = self.heap_used.get(index(heap)) {
            used.fetch_sub(size, Ordering::Relaxed);
        }
    }

    /// Reports once that the limit on host memory was reached. The call that got no memory returns an error, or leaves
    /// the bytes as they are.
    #[inline]
    pub(super) fn report_limit(&self) {
        if let Some(size) = self.room.take_refusal() {
            let limit = self.room.limit;
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
    pub(super) fn fate<H: vk::Handle>(&self, handle: H) -> &'static str {
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
    pub(super) fn handle<H: vk::Handle>(&self) -> H {
        let number = self.handles.fetch_add(1, Ordering::Relaxed);
        H::from_raw((self.id & 0xff_ffff) << 40 | number & 0xff_ffff_ffff)
    }
}

/// A `VkInstance` and its one `VkPhysicalDevice`.
pub(super) struct Instance {
    pub(super) handle: vk::Instance,
    pub(super) physical_device: vk::PhysicalDevice,
    pub(super) hub: Arc<Hub>,
    /// The minor version that the program may use: the one that it asked for, or the driver's if that is older.
    pub(super) minor: u32,
    /// The instance extensions that are enabled.
    pub(super) extensions: Vec<String>,
    /// Devices that are not destroyed yet.
    pub(super) devices: AtomicU64,
    /// Whether to print unread messages when the instance is destroyed: for programs without a `Gpu` to read them from.
    pub(super) orphan: bool,
}

/// A `VkDevice` and its `VkQueue`s.
pub(super) struct Device {
    pub(super) handle: vk::Device,
    /// The queues, those of each family one after another.
    pub(super) queues: Vec<vk::Queue>,
    /// The family of each queue.
    pub(super) families: Vec<u32>,
    pub(super) hub: Arc<Hub>,
    pub(super) instance: Arc<Instance>,
    /// The minor version that the program may use on this device.
    pub(super) minor: u32,
    /// The device extensions that are enabled.
    pub(super) extensions: Vec<String>,
    pub(super) features: Features,
    lost: AtomicBool,
    /// Everything else. Held for one call at a time, and never while bytes are copied or a call is delayed.
    pub(super) state: Mutex<DeviceState>,
    /// A wait for a fence or semaphore sleeps on it, with `state`. A change of one notifies all.
    pub(super) changed: Condvar,
}

/// The features that the program enabled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Features {
    pub(super) buffer_device_address: bool,
    /// `bufferDeviceAddressCaptureReplay`.
    pub(super) capture_replay: bool,
    pub(super) memory_priority: bool,
    pub(super) pageable_device_local_memory: bool,
    pub(super) device_coherent_memory: bool,
    pub(super) timeline_semaphore: bool,
    pub(super) synchronization2: bool,
    pub(super) dynamic_rendering: bool,
    pub(super) maintenance4: bool,
    pub(super) protected_memory: bool,
    pub(super) sparse_binding: bool,
    pub(super) descriptor_buffer: bool,
    pub(super) descriptor_buffer_push: bool,
    pub(super) descriptor_heap: bool,
    pub(super) descriptors: DescriptorFeatures,
}

impl Device {
    pub(super) fn new(
        handle: vk::Device,
        (queues, families): (Vec<vk::Queue>, Vec<u32>),
        instance: &Arc<Instance>,
        minor: u32,
        extensions: Vec<String>,
        features: Features,
    ) -> Self {
        let queue = QueueState::new(queues.len());
        let hazards = instance.hub.hazards.then(|| Box::new(Judge::new(families.clone())));
        Self {
            handle,
            queues,
            families,
            hub: Arc::clone(&instance.hub),
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
    pub(super) fn lane(&self, queue: vk::Queue) -> usize {
        self.queues.iter().position(|&known| known == queue).unwrap_or(0)
    }

    /// The queue with an index in a family.
    pub(super) fn queue_of(&self, family: u32, index: u32) -> Option<vk::Queue> {
        let queues = self.queues.iter().zip(&self.families).filter(|(_, of)| **of == family);
        queues.map(|(queue, _)| *queue).nth(crate::arithmetic::index(index))
    }

    /// Whether the device is lost. It stays so.
    pub(super) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Acquire)
    }

    pub(super) fn lose(&self) {
        self.lost.store(true, Ordering::Release);
    }

    pub(super) fn profile(&self) -> &'static Profile {
        self.hub.profile
    }

    /// Whether a device extension is enabled.
    pub(super) fn has(&self, extension: &str) -> bool {
        self.extensions.iter().any(|enabled| enabled == extension)
    }

    /// Whether the program can query `maxBufferSize`, so that a larger buffer breaks a rule.
    pub(super) fn has_buffer_size_rule(&self) -> bool {
        self.minor >= 3 || self.has("VK_KHR_maintenance4")
    }

    /// Reports wrong use, see [`Hub::report`]. May be called with `state` locked.
    pub(super) fn report(&self, vuid: &'static str, text: impl Into<String>) {
        self.hub.report(vuid, text);
    }

    /// Reports wrong use by a call that then does nothing, and returns the call's result.
    pub(super) fn refuse(&self, vuid: &'static str, text: impl Into<String>) -> vk::Result {
        self.report(vuid, text);
        vk::Result::ERROR_VALIDATION_FAILED_EXT
    }
}

/// All objects of a device with non-dispatchable handles, by handle. The maps are ordered, so that lists are the same
/// on every run.
#[derive(Default)]
pub(super) struct DeviceState {
    pub(super) memories: BTreeMap<vk::DeviceMemory, Memory>,
    pub(super) buffers: BTreeMap<vk::Buffer, Buffer>,
    pub(super) images: BTreeMap<vk::Image, Image>,
    pub(super) buffer_views: BTreeMap<vk::BufferView, BufferView>,
    pub(super) image_views: BTreeMap<vk::ImageView, ImageView>,
    /// The end of the device addresses that were given out.
    pub(super) address_end: u64,
    /// Memories by their device address.
    pub(super) addresses: BTreeMap<u64, vk::DeviceMemory>,
    /// The meaning of bytes in descriptor buffers.
    pub(super) descriptor_bytes: DescriptorTable,
    /// Shader modules and pipelines.
    pub(super) pipelines: PipelineState,
    /// Render passes and framebuffers.
    pub(super) passes: PassState,
    /// Names from `vkSetDebugUtilsObjectNameEXT`, by handle.
    pub(super) names: BTreeMap<u64, String>,
    /// Command pools and command buffers.
    pub(super) commands: CommandState,
    /// Descriptor pools, sets, and what goes with them.
    pub(super) descriptors: DescriptorState,
    /// Submissions.
    pub(super) queue: QueueState,
    /// Fences and semaphores.
    pub(super) sync: SyncState,
    /// Who looks for hazards, if anybody does.
    pub(super) hazards: Option<Box<Judge>>,
}

/// Where the bytes of a resource are.
#[derive(Debug, Clone)]
pub(super) struct Bytes {
    pub(super) store: Arc<Store>,
    /// Where the resource starts in `store`.
    pub(super) offset: u64,
}

/// Why a command cannot use a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unusable {
    /// No object has this handle: it was never created, or is destroyed.
    Unknown,
    /// No memory is bound to it.
    Unbound,
    /// The memory that was bound to it is freed.
    MemoryFreed,
}

impl DeviceState {
    /// The bytes of a buffer, for a command.
    pub(super) fn buffer_bytes(&self, buffer: vk::Buffer) -> Result<Bytes, Unusable> {
        let buffer = self.buffers.get(&buffer).ok_or(Unusable::Unknown)?;
        if let Some(pages) = &buffer.pages {
            return self.sparse_bytes(pages, buffer.requirements.size);
        }
        self.bound_bytes(buffer.bound.as_ref())
    }

    /// The bytes of an image, for a command.
    pub(super) fn image_bytes(&self, image: vk::Image) -> Result<Bytes, Unusable> {
        let image = self.images.get(&image).ok_or(Unusable::Unknown)?;
        self.bound_bytes(image.bound.as_ref())
    }

    fn bound_bytes(&self, bound: Option<&Bound>) -> Result<Bytes, Unusable> {
        let bound = bound.ok_or(Unusable::Unbound)?;
        if !self.memories.contains_key(&bound.memory) {
            return Err(Unusable::MemoryFreed);
        }
        Ok(Bytes { store: Arc::clone(&bound.store), offset: bound.offset })
    }

    /// The name of an object in messages: its handle, and the name that the program gave it.
    pub(super) fn name<H: vk::Handle>(&self, handle: H) -> String {
        self.label(handle).to_string()
    }

    /// The text of a report about a handle that has no object.
    pub(super) fn missing<H: vk::Handle + Copy>(&self, device: &Device, handle: H) -> String {
        format!("{} {}", self.label(handle), device.hub.fate(handle))
    }

    /// The object of a handle, if one was found; else `rule` as broken.
    pub(super) fn known<H: vk::Handle + Copy, T>(
        &self,
        device: &Device,
        handle: H,
        found: Option<T>,
        rule: &'static str,
    ) -> Result<T, Broken> {
        found.ok_or_else(|| (rule, self.missing(device, handle)))
    }

    /// As [`name`](Self::name), but the text is made only when it is printed.
    pub(super) fn label<H: vk::Handle>(&self, handle: H) -> Label {
        let raw = handle.as_raw();
        Label { kind: H::TYPE, raw, given: self.names.get(&raw).cloned() }
    }
}

/// The name of an object in messages.
pub(super) struct Label {
    kind: vk::ObjectType,
    raw: u64,
    given: Option<String>,
}

impl Label {
    pub(super) fn raw(&self) -> u64 {
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
