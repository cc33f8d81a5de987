//! Shared fixture: an allocator on a simulated GPU, with short wrappers around its calls.

use std::error::Error;
use std::sync::atomic::{AtomicBool, Ordering};

use ash::vk;
use sublet::sim::profiles::{self, Profile};
use sublet::sim::{Gpu, LiveObjects};
use sublet::{
    Allocation, AllocationCreateFlags as Flags, AllocationCreateInfo, AllocationError, Allocator,
    AllocatorCreateFlags, AllocatorCreateInfo, CreateAllocatorError, CreateError, CreatePoolError,
    MemoryUsage, Pool, PoolCreateInfo, Statistics,
};

pub use crate::held::{End, Held, hold};

pub const KIB: u64 = 1 << 10;
pub const MIB: u64 = 1 << 20;
pub const GIB: u64 = 1 << 30;

pub const DEVICE_LOCAL: vk::MemoryPropertyFlags = vk::MemoryPropertyFlags::DEVICE_LOCAL;
pub const HOST_VISIBLE: vk::MemoryPropertyFlags = vk::MemoryPropertyFlags::HOST_VISIBLE;
pub const HOST_COHERENT: vk::MemoryPropertyFlags = vk::MemoryPropertyFlags::HOST_COHERENT;
pub const HOST_CACHED: vk::MemoryPropertyFlags = vk::MemoryPropertyFlags::HOST_CACHED;
pub const LAZY: vk::MemoryPropertyFlags = vk::MemoryPropertyFlags::LAZILY_ALLOCATED;
pub const PROTECTED: vk::MemoryPropertyFlags = vk::MemoryPropertyFlags::PROTECTED;
pub const AMD_COHERENT: vk::MemoryPropertyFlags = vk::MemoryPropertyFlags::DEVICE_COHERENT_AMD;

/// Prints the profile on which a test failed.
struct OnProfile(&'static str);

impl Drop for OnProfile {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the test failed on the profile {}", self.0);
        }
    }
}

/// Runs a test on every simulated GPU.
pub fn on_every_profile(test: impl Fn(&'static Profile)) {
    for &profile in profiles::ALL {
        on(profile, &test);
    }
}

/// Runs a test on every simulated GPU, with an allocator on it.
pub fn on_every_gpu(test: impl Fn(Held<Fixture>)) {
    on_every_profile(|profile| test(Fixture::new(profile)));
}

/// Runs a test on every simulated GPU, with an allocator whose blocks grow as in VMA.
pub fn on_every_vma_gpu(test: impl Fn(Held<Fixture>)) {
    on_every_profile(|profile| test(Fixture::with(Gpu::new(profile), &Options::vma())));
}

/// Runs a test on one simulated GPU.
pub fn on(profile: &'static Profile, test: impl Fn(&'static Profile)) {
    let _name = OnProfile(profile.name);
    test(profile);
}

/// Runs a test on each of `profiles`.
pub fn on_profiles(profiles: Vec<&'static Profile>, test: impl Fn(&'static Profile)) {
    profiles.into_iter().for_each(|profile| on(profile, &test));
}

/// Returns the profiles that `which` accepts. Panics if there is none.
pub fn having(which: impl Fn(&Profile) -> bool) -> Vec<&'static Profile> {
    let profiles: Vec<_> = profiles::ALL.iter().copied().filter(|profile| which(profile)).collect();
    assert!(!profiles.is_empty(), "no profile is left to test on");
    profiles
}

/// Creates an allocator on a GPU that outlives it.
pub fn new_allocator(info: &AllocatorCreateInfo<'_>) -> Result<Allocator, CreateAllocatorError> {
    // SAFETY: a fixture keeps its GPU alive until its allocator is dropped.
    unsafe { Allocator::new(info) }
}

/// Options for the allocator of a test.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// `None`: everything that the device enables, except AMD's device-coherent memory.
    pub flags: Option<AllocatorCreateFlags>,
    pub heap_size_limits: &'a [u64],
    pub empty_blocks_kept: u32,
    pub large_block: u64,
}

impl Default for Options<'_> {
    fn default() -> Self {
        Self { flags: None, heap_size_limits: &[], empty_blocks_kept: 1, large_block: 0 }
    }
}

impl Options<'_> {
    /// Blocks grow as in VMA: they double from an eighth of the full size.
    pub fn vma() -> Self {
        Self { large_block: 256 * MIB, ..Self::default() }
    }

    /// Budgets are the allocator's own estimates.
    pub fn without_budget(gpu: &Gpu) -> Self {
        Self { flags: Some(enabled(gpu) - AllocatorCreateFlags::EXT_MEMORY_BUDGET), ..Self::default() }
    }
}

/// Returns the flags for everything that the device enables, except AMD's device-coherent memory.
pub fn enabled(gpu: &Gpu) -> AllocatorCreateFlags {
    let extensions = gpu.extensions();
    let by_extension = [
        ("VK_KHR_dedicated_allocation", AllocatorCreateFlags::KHR_DEDICATED_ALLOCATION),
        ("VK_KHR_bind_memory2", AllocatorCreateFlags::KHR_BIND_MEMORY2),
        ("VK_EXT_memory_budget", AllocatorCreateFlags::EXT_MEMORY_BUDGET),
        ("VK_KHR_buffer_device_address", AllocatorCreateFlags::BUFFER_DEVICE_ADDRESS),
        ("VK_EXT_memory_priority", AllocatorCreateFlags::EXT_MEMORY_PRIORITY),
        ("VK_KHR_maintenance4", AllocatorCreateFlags::KHR_MAINTENANCE4),
    ];
    let flags = by_extension.into_iter().filter(|(name, _)| extensions.iter().any(|it| it == name));
    flags.map(|(_, flag)| flag).collect()
}

/// An allocator on a simulated GPU. The test fails at the end if an object is left or the driver emitted a message.
pub struct Fixture {
    // The first field, so that it is dropped first.
    pub allocator: Allocator,
    pub gpu: Gpu,
}

impl End for Fixture {
    fn end(self) {
        self.validate();
        let Self { allocator, gpu } = self;
        let leaks = allocator.destroy();
        assert!(leaks.is_empty(), "left in the allocator: {leaks:?}");
        assert!(gpu.live().is_empty(), "left on the device: {:?}", gpu.live());
        gpu.assert_silent();
        let messages = gpu.finish();
        assert!(messages.is_empty(), "{messages:?}");
    }
}

/// The state of driver and allocator, for a comparison before and after.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Snapshot {
    pub live: LiveObjects,
    pub types: Vec<Statistics>,
    /// Bytes in use of each heap, as counted by the allocator.
    pub usage: Vec<u64>,
}

impl Fixture {
    pub fn new(profile: &'static Profile) -> Held<Self> {
        Self::with(Gpu::new(profile), &Options::default())
    }

    pub fn with(gpu: Gpu, options: &Options<'_>) -> Held<Self> {
        let info = AllocatorCreateInfo {
            flags: options.flags.unwrap_or_else(|| enabled(&gpu)),
            heap_size_limits: options.heap_size_limits,
            empty_blocks_kept: options.empty_blocks_kept,
            preferred_large_heap_block_size: options.large_block,
            ..create_info(&gpu)
        };
        let allocator = new_allocator(&info).unwrap();
        gpu.reset_calls();
        hold(Self { allocator, gpu })
    }
}

impl Fixture {
    /// Runs `meanwhile` while another thread is blocked inside the driver's `call`, which `slow` makes. The driver call
    /// returns only after `meanwhile`. If `meanwhile` waits for the driver, the test therefore never ends.
    pub fn while_in<R>(&self, call: &str, slow: impl FnOnce() + Send, meanwhile: impl FnOnce() -> R) -> R {
        struct Release<'a>(&'a Gpu, &'a str);
        impl Drop for Release<'_> {
            fn drop(&mut self) {
                self.0.faults().release(self.1);
            }
        }

        self.gpu.reset_calls();
        self.gpu.faults().hold(call);
        let finished = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let _release = Release(&self.gpu, call);
            scope.spawn(|| {
                slow();
                finished.store(true, Ordering::Release);
            });
            while self.gpu.calls(call) == 0 {
                assert!(!finished.load(Ordering::Acquire), "{call} was never called");
                std::thread::yield_now();
            }
            meanwhile()
        })
    }
}

/// Returns the plain create-info for a GPU, with the entry's functions, which Vulkan 1.0 needs.
pub fn create_info(gpu: &Gpu) -> AllocatorCreateInfo<'static> {
    let info =
        AllocatorCreateInfo::new(gpu.instance(), gpu.device(), gpu.physical_device(), gpu.api_version());
    AllocatorCreateInfo { functions: info.functions.clone().with_entry(gpu.entry()), ..info }
}

impl Fixture {
    /// Reads memory as the device sees it.
    pub fn read_memory(&self, memory: vk::DeviceMemory, offset: u64, size: usize) -> Option<Vec<u8>> {
        // SAFETY: tests read only ranges that no other thread writes.
        unsafe { self.gpu.read_memory(memory, offset, size) }
    }

    /// Writes memory as the device does.
    pub fn write_memory(&self, memory: vk::DeviceMemory, offset: u64, bytes: &[u8]) -> bool {
        // SAFETY: tests write only ranges that no other thread uses.
        unsafe { self.gpu.write_memory(memory, offset, bytes) }
    }

    pub fn profile(&self) -> &'static Profile {
        self.gpu.profile()
    }

    /// Returns the memory types that allocations may use.
    pub fn types(&self) -> Vec<u32> {
        let types = (0..).zip(self.profile().types);
        types.filter(|(_, kind)| !kind.flags.intersects(AMD_COHERENT)).map(|(index, _)| index).collect()
    }

    /// Returns those of [`Self::types`] with all of `with` and none of `without`.
    pub fn types_with(&self, with: vk::MemoryPropertyFlags, without: vk::MemoryPropertyFlags) -> Vec<u32> {
        let fits = |&index: &u32| {
            let flags = self.properties(index);
            flags.contains(with) && !flags.intersects(without)
        };
        self.types().into_iter().filter(fits).collect()
    }

    pub fn properties(&self, memory_type: u32) -> vk::MemoryPropertyFlags {
        self.profile().types[memory_type as usize].flags
    }

    pub fn heap_of(&self, memory_type: u32) -> u32 {
        self.profile().types[memory_type as usize].heap
    }

    pub fn heap_size(&self, memory_type: u32) -> u64 {
        self.profile().heaps[self.heap_of(memory_type) as usize].size
    }

    /// Returns the size of a full-grown block by VMA's rule.
    pub fn block_size(&self, memory_type: u32) -> u64 {
        let heap = self.heap_size(memory_type);
        if heap <= GIB { (heap / 8).next_multiple_of(32) } else { 256 * MIB }
    }

    /// Returns the size of the allocation's `VkDeviceMemory`, as recorded by the driver.
    pub fn memory_size(&self, allocation: &Allocation) -> u64 {
        self.gpu.memory_info(allocation.memory()).unwrap().size
    }

    /// Allocates memory without a resource.
    pub fn memory(
        &self,
        size: u64,
        alignment: u64,
        info: &AllocationCreateInfo<'_>,
    ) -> Result<Allocation, AllocationError> {
        let requirements = vk::MemoryRequirements { size, alignment, memory_type_bits: !0 };
        self.allocator.allocate_memory(&requirements, info)
    }

    pub fn free(&self, allocation: Allocation) {
        // SAFETY: the tests submit no work that outlives the resources it uses.
        unsafe { self.allocator.free_memory(allocation) }.unwrap();
    }

    pub fn free_all(&self, allocations: impl IntoIterator<Item = Allocation>) {
        allocations.into_iter().for_each(|allocation| self.free(allocation));
    }

    pub fn buffer(
        &self,
        size: u64,
        usage: vk::BufferUsageFlags,
        info: &AllocationCreateInfo<'_>,
    ) -> Result<(vk::Buffer, Allocation), CreateError> {
        let buffer_info = vk::BufferCreateInfo::default().size(size).usage(usage);
        // SAFETY: the create-info is valid.
        unsafe { self.allocator.create_buffer(&buffer_info, info) }
    }

    pub fn image(
        &self,
        image_info: &vk::ImageCreateInfo<'_>,
        info: &AllocationCreateInfo<'_>,
    ) -> Result<(vk::Image, Allocation), CreateError> {
        // SAFETY: the create-info is valid.
        unsafe { self.allocator.create_image(image_info, info) }
    }

    pub fn destroy_buffer(&self, (buffer, allocation): (vk::Buffer, Allocation)) {
        // SAFETY: the tests submit no work that outlives the resources it uses.
        unsafe { self.allocator.destroy_buffer(buffer, allocation) }.unwrap();
    }

    pub fn destroy_image(&self, (image, allocation): (vk::Image, Allocation)) {
        // SAFETY: the tests submit no work that outlives the resources it uses.
        unsafe { self.allocator.destroy_image(image, allocation) }.unwrap();
    }

    pub fn pool(&self, info: &PoolCreateInfo<'_>) -> Result<Pool, CreatePoolError> {
        self.allocator.create_pool(info)
    }

    /// Destroys a pool, which must be empty.
    pub fn destroy_pool(&self, pool: Pool) {
        // SAFETY: the tests submit no work that outlives the resources it uses.
        let leaks = unsafe { self.allocator.destroy_pool(pool) }.unwrap();
        assert!(leaks.is_empty(), "left in the pool: {leaks:?}");
    }

    pub fn statistics(&self, memory_type: u32) -> Statistics {
        self.allocator.memory_type_statistics()[memory_type as usize]
    }

    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            live: self.gpu.live(),
            types: self.allocator.memory_type_statistics(),
            usage: self.usage(),
        }
    }

    /// Returns the bytes in use of each heap, as counted by the allocator.
    fn usage(&self) -> Vec<u64> {
        self.allocator.heap_budgets().iter().map(|budget| budget.usage).collect()
    }

    /// Compares the allocator's figures with the driver's, and checks its state for consistency.
    pub fn validate(&self) {
        self.allocator.validate();
        let live = self.gpu.live();
        let mut heaps = vec![0; self.profile().heaps.len()];
        let mut blocks = 0;
        for (memory_type, statistics) in (0..).zip(self.allocator.memory_type_statistics()) {
            heaps[self.heap_of(memory_type) as usize] += statistics.block_bytes;
            blocks += statistics.block_count;
            assert!(statistics.allocation_bytes <= statistics.block_bytes, "type {memory_type}");
        }
        assert_eq!(blocks, live.memories, "the allocator's blocks are the driver's memories");
        assert_eq!(heaps, live.memory_bytes_by_heap, "the allocator's bytes are the driver's");
        if !self.profile().features.memory_budget {
            assert_eq!(self.usage(), heaps, "without the driver's word, usage is what the allocator has");
        }
    }
}

/// Returns a create-info for any allocation in one memory type.
pub fn in_type(memory_type: u32) -> AllocationCreateInfo<'static> {
    AllocationCreateInfo { memory_type_bits: 1 << memory_type, ..AllocationCreateInfo::default() }
}

/// The same as [`in_type`], with flags.
pub fn in_type_with(memory_type: u32, flags: Flags) -> AllocationCreateInfo<'static> {
    AllocationCreateInfo { flags, ..in_type(memory_type) }
}

pub fn with_flags(usage: MemoryUsage, flags: Flags) -> AllocationCreateInfo<'static> {
    AllocationCreateInfo { flags, ..AllocationCreateInfo::new(usage) }
}

/// A square image with 32 bits per texel.
pub fn square(side: u32, usage: vk::ImageUsageFlags) -> vk::ImageCreateInfo<'static> {
    vk::ImageCreateInfo::default()
        .image_type(vk::ImageType::TYPE_2D)
        .format(vk::Format::R8G8B8A8_UNORM)
        .extent(vk::Extent3D { width: side, height: side, depth: 1 })
        .mip_levels(1)
        .array_layers(1)
        .samples(vk::SampleCountFlags::TYPE_1)
        .usage(usage)
}

/// Returns the Vulkan result at the end of an error's source chain.
pub fn driver_result(error: &(dyn Error + 'static)) -> Option<vk::Result> {
    let mut at = Some(error);
    while let Some(error) = at {
        if let Some(&result) = error.downcast_ref::<vk::Result>() {
            return Some(result);
        }
        at = error.source();
    }
    None
}

/// A seeded generator, so that every run has the same sequence.
#[derive(Clone, Debug)]
pub struct Random(fastrand::Rng);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(fastrand::Rng::with_seed(seed))
    }

    pub fn next(&mut self) -> u64 {
        self.0.u64(..)
    }

    /// Returns a number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.0.u64(..end)
    }

    /// Returns a number between 1 and `2^bits`, with small magnitudes as likely as large ones.
    pub fn size(&mut self, bits: u64) -> u64 {
        let high = 1 << self.below(bits + 1);
        high - self.below(high)
    }

    pub fn pick<V: Copy>(&mut self, from: &[V]) -> V {
        from[self.0.usize(..from.len())]
    }
}

/// Reads a number from the environment, which can raise the amount of work of a test.
pub fn from_environment(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}
