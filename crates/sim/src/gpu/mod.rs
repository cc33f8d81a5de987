//! A simulated GPU as a test holds it: the ash objects, and the state behind them.

pub(crate) mod builder;
pub(crate) mod faults;
pub(crate) mod hold;
pub(crate) mod inspect;
pub(crate) mod kernels;
pub(crate) mod live;
pub(crate) mod null;
pub(crate) mod pools;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use ash::vk;

use crate::driver::environment::print;
use crate::driver::get_instance_proc_addr;
use crate::facts::extensions::NEWEST_MINOR;
use crate::facts::profiles::Profile;
use crate::gpu::builder::{GpuBuilder, create_device, create_instance, expect};
use crate::gpu::faults::Faults;
use crate::objects::log::{AllocateCall, SyncedRange};
use crate::objects::memory::MemoryInfo;
use crate::objects::messages::Message;
use crate::objects::registry;
use crate::objects::state::{DeviceObject, GpuState};

/// A simulated GPU with an instance, a device and a queue.
///
/// The objects are ash's own, loaded through function pointers as from any driver. Several GPUs at once are
/// independent, on any number of threads. Dropping a GPU destroys its device and its instance, reports what the program
/// left on the device as a leak, and prints messages that nobody read to standard error.
///
/// ```
/// use ash::vk;
/// use sublet_sim::{Gpu, profiles::Profile};
/// let gpu = Gpu::new(Profile::by_name("lavapipe").unwrap());
/// let info = vk::BufferCreateInfo::default().size(1000).usage(vk::BufferUsageFlags::TRANSFER_SRC);
/// let buffer = unsafe { gpu.device().create_buffer(&info, None) }.unwrap();
/// let needs = unsafe { gpu.device().get_buffer_memory_requirements(buffer) };
/// assert!(needs.size >= 1000 && needs.memory_type_bits != 0);
/// unsafe { gpu.device().destroy_buffer(buffer, None) };
/// gpu.assert_silent();
/// ```
pub struct Gpu {
    gpu_state: Arc<GpuState>,
    entry: ash::Entry,
    instance: ash::Instance,
    physical_device: vk::PhysicalDevice,
    device: ash::Device,
    queue: vk::Queue,
    alive: bool,
}

impl std::fmt::Debug for Gpu {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gpu").field("profile", &self.gpu_state.profile.name).finish_non_exhaustive()
    }
}

#[expect(unsafe_code, reason = "the functions have the C ABI")]
impl Gpu {
    /// A GPU with everything that the profile has. Never panics.
    pub fn new(profile: &'static Profile) -> Self {
        Self::builder(profile).build()
    }

    /// A GPU with a version, extensions, queues and limits of your choice.
    pub fn builder(profile: &'static Profile) -> GpuBuilder {
        GpuBuilder::new(profile)
    }

    pub(crate) fn with(gpu_state: Arc<GpuState>, enabled: &[String]) -> Self {
        let get_instance_proc_addr = match gpu_state.instance_minor {
            0 => get_instance_proc_addr::<0>,
            1 => get_instance_proc_addr::<1>,
            2 => get_instance_proc_addr::<2>,
            3 => get_instance_proc_addr::<3>,
            _ => get_instance_proc_addr::<NEWEST_MINOR>,
        };
        // SAFETY: it answers as `vkGetInstanceProcAddr` must, and code is there for ever.
        let entry = unsafe { ash::Entry::from_static_fn(ash::StaticFn { get_instance_proc_addr }) };
        let instance = create_instance(&entry, &gpu_state);
        // SAFETY: `instance` is live.
        let devices = unsafe { instance.enumerate_physical_devices() };
        let physical_device = expect(devices, "vkEnumeratePhysicalDevices")[0];
        let device = create_device(&instance, physical_device, &gpu_state, enabled);
        // SAFETY: `device` was created with the queue 0 of family 0.
        let queue = unsafe { device.get_device_queue(0, 0) };
        // Only the program's own calls count.
        gpu_state.faults.reset_counts();
        Self { gpu_state, entry, instance, physical_device, device, queue, alive: true }
    }

    /// Vulkan without an instance. Each instance that the program creates from it is another GPU, see
    /// [`get_instance_proc_addr`](crate::get_instance_proc_addr).
    pub fn entry(&self) -> &ash::Entry {
        &self.entry
    }

    /// The instance.
    pub fn instance(&self) -> &ash::Instance {
        &self.instance
    }

    /// The physical device.
    pub fn physical_device(&self) -> vk::PhysicalDevice {
        self.physical_device
    }

    /// The device.
    pub fn device(&self) -> &ash::Device {
        &self.device
    }

    /// The first queue. It takes every kind of work.
    pub fn queue(&self) -> vk::Queue {
        self.queue
    }

    /// The family of [`queue`](Self::queue).
    pub fn queue_family_index(&self) -> u32 {
        0
    }

    /// The queue with this index among the queues of all families, one family after another; 0 is
    /// [`queue`](Self::queue).
    ///
    /// # Panics
    ///
    /// If the device has no such queue, see [`GpuBuilder::queues`] and [`GpuBuilder::family`].
    #[track_caller]
    pub fn queue_at(&self, index: usize) -> vk::Queue {
        let queue = self.state().and_then(|device| device.queues.get(index).copied());
        match queue {
            Some(queue) => queue,
            None => panic!("the simulated device has no queue {index}"),
        }
    }

    /// The version of Vulkan that instance and device report.
    pub fn api_version(&self) -> u32 {
        vk::make_api_version(0, 1, self.gpu_state.instance_minor, 0)
    }

    /// The GPU that this one poses as.
    pub fn profile(&self) -> &'static Profile {
        self.gpu_state.profile
    }

    /// The device extensions that are enabled, sorted.
    pub fn extensions(&self) -> Vec<String> {
        self.state().map(|device| device.extensions.clone()).unwrap_or_default()
    }

    /// Every report so far.
    pub fn messages(&self) -> Vec<Message> {
        self.gpu_state.messages.all()
    }

    /// Takes every report so far out of the list.
    pub fn take_messages(&self) -> Vec<Message> {
        self.gpu_state.messages.take()
    }

    /// Fails the test if there was a report.
    ///
    /// # Panics
    ///
    /// If there is a report that [`take_messages`](Self::take_messages) has not taken.
    #[track_caller]
    pub fn assert_silent(&self) {
        let messages = self.messages();
        if !messages.is_empty() {
            let lines: Vec<_> = messages.iter().map(Message::to_string).collect();
            panic!("the simulated device reports wrong use:\n{}", lines.join("\n"));
        }
    }

    /// Destroys device and instance, and returns the remaining reports, leaks included.
    ///
    /// ```
    /// use ash::vk;
    /// use sublet_sim::{Gpu, profiles::Profile};
    /// let gpu = Gpu::new(Profile::by_name("lavapipe").unwrap());
    /// let info = vk::MemoryAllocateInfo::default().allocation_size(64);
    /// let _leaked = unsafe { gpu.device().allocate_memory(&info, None) }.unwrap();
    /// assert_eq!(gpu.finish()[0].vuid, "VUID-vkDestroyDevice-device-05137");
    /// ```
    pub fn finish(mut self) -> Vec<Message> {
        self.destroy();
        self.gpu_state.messages.take()
    }

    /// Makes calls fail, wait or take longer, see [`Faults`].
    pub fn faults(&self) -> Faults<'_> {
        Faults { state: &self.gpu_state.faults, device: self.device.handle() }
    }

    /// How many times a function was called since the GPU was made, or since [`reset_calls`](Self::reset_calls).
    ///
    /// # Panics
    ///
    /// If the driver has no such function.
    ///
    /// ```
    /// use sublet_sim::{Gpu, profiles::Profile};
    /// let gpu = Gpu::new(Profile::by_name("lavapipe").unwrap());
    /// let _ = unsafe { gpu.instance().get_physical_device_memory_properties(gpu.physical_device()) };
    /// assert_eq!(gpu.calls("vkGetPhysicalDeviceMemoryProperties"), 1);
    /// assert_eq!(gpu.call_counts(), [("vkGetPhysicalDeviceMemoryProperties", 1)]);
    /// gpu.reset_calls();
    /// assert!(gpu.call_counts().is_empty());
    /// ```
    #[track_caller]
    pub fn calls(&self, call: &str) -> u64 {
        self.gpu_state.faults.count(faults::known(call))
    }

    /// The functions that were called, sorted by name, each with its count.
    pub fn call_counts(&self) -> Vec<(&'static str, u64)> {
        self.gpu_state.faults.counts()
    }

    /// Counts from zero again.
    pub fn reset_calls(&self) {
        self.gpu_state.faults.reset_counts();
    }

    /// Switches the log of [`take_log`](Self::take_log) and [`take_synced`](Self::take_synced) on or off. It is off at
    /// first, because a long run makes a long list.
    pub fn log_allocations(&self, on: bool) {
        self.gpu_state.log.switch(on);
    }

    /// Takes the calls of `vkAllocateMemory` out of the log, in their order. [`log_allocations`](Self::log_allocations)
    /// switches the log on.
    pub fn take_log(&self) -> Vec<AllocateCall> {
        self.gpu_state.log.take()
    }

    /// Takes the flushed and invalidated ranges out of the log, in their order.
    pub fn take_synced(&self) -> Vec<SyncedRange> {
        self.gpu_state.log.take_synced()
    }

    /// Lets resources share bytes of any memory without a report, or no longer.
    pub fn allow_aliasing(&self, allow: bool) {
        self.gpu_state.aliasing.store(allow, Ordering::Relaxed);
    }

    /// Lets resources share this range of a memory without a report. Offset and size are in bytes.
    pub fn declare_aliasing(&self, memory: vk::DeviceMemory, offset: u64, size: u64) {
        self.gpu_state.aliases.lock().push((memory, offset, offset.saturating_add(size)));
    }

    /// The request that a memory was allocated with. `None` if the memory was freed, or never allocated.
    pub fn memory_info(&self, memory: vk::DeviceMemory) -> Option<MemoryInfo> {
        self.state()?.state.lock().memories.get(&memory).map(|memory| memory.info.clone())
    }

    /// The device's view of a memory. If the memory is not coherent, it lacks what the host wrote and did not flush.
    /// `None` outside of the memory. Offset and size are in bytes.
    ///
    /// # Safety
    ///
    /// Nothing writes the bytes meanwhile: no other thread through a pointer or a reference to mapped memory, and no
    /// submission that another thread runs.
    pub unsafe fn read_memory(&self, memory: vk::DeviceMemory, offset: u64, size: usize) -> Option<Vec<u8>> {
        let store = Arc::clone(&self.state()?.state.lock().memories.get(&memory)?.store);
        let mut bytes = vec![0; size];
        store.read(offset, &mut bytes).then_some(bytes)
    }

    /// Writes to a memory as the device does: the host sees it after an invalidate, if the memory is not coherent.
    /// Outside of the memory it does nothing and returns false. The offset is in bytes.
    ///
    /// # Safety
    ///
    /// Nothing reads or writes the bytes meanwhile, as in [`read_memory`](Self::read_memory), and there is no reference
    /// to them.
    ///
    /// A program without `unsafe` cannot race with what is mapped:
    ///
    /// ```compile_fail,E0133
    /// use sublet_sim::Gpu;
    /// fn race(gpu: &Gpu, memory: ash::vk::DeviceMemory) -> bool {
    ///     gpu.write_memory(memory, 0, &[1])
    /// }
    /// ```
    pub unsafe fn write_memory(&self, memory: vk::DeviceMemory, offset: u64, bytes: &[u8]) -> bool {
        let Some(device) = self.state() else { return false };
        let store = device.state.lock().memories.get(&memory).map(|memory| Arc::clone(&memory.store));
        store.is_some_and(|store| store.write(offset, bytes))
    }

    /// The GPU behind instance and device.
    pub(crate) fn gpu_state(&self) -> &GpuState {
        &self.gpu_state
    }

    /// The device's state; `None` once the program has destroyed it.
    pub(crate) fn state(&self) -> Option<Arc<DeviceObject>> {
        registry::device(self.device.handle())
    }

    fn destroy(&mut self) {
        if std::mem::take(&mut self.alive) {
            if self.state().is_some() {
                // SAFETY: the device is live; whoever uses it still has borrowed `self` or broken Vulkan's rules.
                unsafe { self.device.destroy_device(None) };
            }
            // SAFETY: as above, unless the program has destroyed it: then its handle is unknown, and nothing happens.
            unsafe { self.instance.destroy_instance(None) };
        }
    }
}

impl Drop for Gpu {
    fn drop(&mut self) {
        self.destroy();
        print(&self.gpu_state.messages.unread());
    }
}
