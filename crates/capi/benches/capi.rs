//! Compares the cost of the C interface with the Rust one: the same work through both, in turn, on a device whose calls
//! do nothing.
//!
//! Run it with `cargo bench -p sublet-capi --bench capi`. Times are nanoseconds for one pair of allocate and free (or
//! create and destroy), medians of rounds. An argument such as `churn-c` or `churn-rust` selects one row. The number
//! after it sets how often the row runs, for `valgrind --tool=callgrind`.
#![allow(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    reason = "a benchmark's own arithmetic on small numbers"
)]

use std::ptr::{null, null_mut};
use std::time::Instant;

use ash::vk;
use sublet::sim::{NullGpu, Profile};
use sublet::{
    Algorithm, Allocation, AllocationCreateInfo, Allocator, AllocatorCreateInfo, MemoryUsage, PoolCreateInfo,
};
use sublet_capi::{
    VmaAllocation, VmaAllocationCreateInfo, VmaAllocator, VmaAllocatorCreateInfo, VmaPool, VmaPoolCreateInfo,
    VmaVulkanFunctions, vmaAllocateMemory, vmaCreateAllocator, vmaCreateBuffer, vmaCreatePool,
    vmaDestroyAllocator, vmaDestroyBuffer, vmaDestroyPool, vmaFreeMemory,
};

const SEED: u64 = 0x5eed;
const LIVE: usize = 10_000;
const FRAME: usize = 1_000;
const ROUNDS: usize = 301;
const PAIRS: usize = 20_000;

/// Multiplicative congruential generator with Steele and Vigna's constants: small, seeded, the same on every platform.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(0xd134_2543_de82_ef95).wrapping_add(1);
        self.0 >> 32
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}

/// Returns sizes from 256 bytes to 1 MiB with common alignments.
fn requirements(random: &mut Random) -> vk::MemoryRequirements {
    let exponent = 8 + random.below(12);
    let size = (1 << exponent) + random.below(1 << exponent);
    let alignment = match random.below(100) {
        0..40 => 16,
        40..90 => 256,
        90..98 => 4096,
        _ => 65_536,
    };
    vk::MemoryRequirements { size, alignment, memory_type_bits: !0 }
}

fn gpu() -> NullGpu {
    NullGpu::new(Profile::by_name("nvidia-h200").expect("it is one of the profiles"))
}

fn rust_allocator(gpu: &NullGpu) -> Allocator {
    let info =
        AllocatorCreateInfo::new(gpu.instance(), gpu.device(), gpu.physical_device(), gpu.api_version());
    // SAFETY: the null device outlives the allocator.
    unsafe { Allocator::new(&info) }.expect("the null device has every function")
}

fn c_allocator(gpu: &NullGpu) -> VmaAllocator {
    let functions = VmaVulkanFunctions {
        get_instance_proc_addr: Some(gpu.entry().static_fn().get_instance_proc_addr),
        get_device_proc_addr: Some(gpu.instance().fp_v1_0().get_device_proc_addr),
        ..VmaVulkanFunctions::default()
    };
    let info = VmaAllocatorCreateInfo {
        flags: 0,
        physical_device: gpu.physical_device(),
        device: gpu.device().handle(),
        preferred_large_heap_block_size: 0,
        allocation_callbacks: null(),
        device_memory_callbacks: null(),
        heap_size_limit: null(),
        vulkan_functions: &functions,
        instance: gpu.instance().handle(),
        vulkan_api_version: gpu.api_version(),
        type_external_memory_handle_types: null(),
    };
    let mut allocator = null_mut();
    // SAFETY: the null device outlives the allocator.
    assert_eq!(unsafe { vmaCreateAllocator(&info, &mut allocator) }, vk::Result::SUCCESS);
    allocator
}

fn c_info(usage: u32, pool: VmaPool) -> VmaAllocationCreateInfo {
    VmaAllocationCreateInfo {
        flags: 0,
        usage,
        required_flags: vk::MemoryPropertyFlags::empty(),
        preferred_flags: vk::MemoryPropertyFlags::empty(),
        memory_type_bits: 0,
        pool,
        user_data: null_mut(),
        priority: 0.0,
        #[cfg(not(sublet_vma_3_3))]
        min_alignment: 0,
    }
}

/// One kind of work through one interface. Each call runs one round.
trait Round {
    fn round(&mut self);
}

type Script = Vec<(usize, vk::MemoryRequirements)>;

fn churn_script() -> (Vec<vk::MemoryRequirements>, Script) {
    let mut random = Random(SEED);
    let first = (0..LIVE).map(|_| requirements(&mut random)).collect();
    let script =
        (0..PAIRS).map(|_| (random.below(LIVE as u64) as usize, requirements(&mut random))).collect();
    (first, script)
}

struct RustChurn {
    held: Vec<Option<Allocation>>,
    script: Script,
    info: AllocationCreateInfo<'static>,
    allocator: Allocator,
    _gpu: NullGpu,
}

impl RustChurn {
    fn new() -> Self {
        let (gpu, (first, script)) = (gpu(), churn_script());
        let allocator = rust_allocator(&gpu);
        let info = AllocationCreateInfo::new(MemoryUsage::GpuOnly);
        let held = first.iter().map(|needs| allocator.allocate_memory(needs, &info).ok()).collect();
        Self { held, script, info, allocator, _gpu: gpu }
    }
}

impl Round for RustChurn {
    fn round(&mut self) {
        for (at, needs) in &self.script {
            if let Some(allocation) = self.held[*at].take() {
                // SAFETY: no device uses it.
                unsafe { self.allocator.free_memory(allocation) }.expect("it is this allocator's");
            }
            self.held[*at] = self.allocator.allocate_memory(needs, &self.info).ok();
        }
    }
}

/// Destroys a C allocator when dropped.
struct Owned(VmaAllocator);

impl Drop for Owned {
    fn drop(&mut self) {
        // SAFETY: the allocator is not used any more.
        unsafe { vmaDestroyAllocator(self.0) };
    }
}

struct CChurn {
    held: Vec<VmaAllocation>,
    script: Script,
    info: VmaAllocationCreateInfo,
    allocator: Owned,
    _gpu: NullGpu,
}

impl CChurn {
    fn new() -> Self {
        let (gpu, (first, script)) = (gpu(), churn_script());
        let allocator = Owned(c_allocator(&gpu));
        let info = c_info(1, null_mut());
        let held = first.iter().map(|needs| c_allocate(&allocator, needs, &info)).collect();
        Self { held, script, info, allocator, _gpu: gpu }
    }
}

#[inline]
fn c_allocate(
    allocator: &Owned,
    needs: &vk::MemoryRequirements,
    info: &VmaAllocationCreateInfo,
) -> VmaAllocation {
    let mut allocation = null_mut();
    // SAFETY: all pointers are to live values.
    let result = unsafe { vmaAllocateMemory(allocator.0, needs, info, &mut allocation, null_mut()) };
    assert_eq!(result, vk::Result::SUCCESS);
    allocation
}

impl Round for CChurn {
    fn round(&mut self) {
        for (at, needs) in &self.script {
            // SAFETY: no device uses it.
            unsafe { vmaFreeMemory(self.allocator.0, self.held[*at]) };
            self.held[*at] = c_allocate(&self.allocator, needs, &self.info);
        }
    }
}

impl Drop for CChurn {
    fn drop(&mut self) {
        for allocation in self.held.drain(..) {
            // SAFETY: no device uses it.
            unsafe { vmaFreeMemory(self.allocator.0, allocation) };
        }
    }
}

fn frame_script() -> Vec<vk::MemoryRequirements> {
    let mut random = Random(SEED);
    (0..FRAME)
        .map(|_| vk::MemoryRequirements {
            size: 256 + random.below(4096),
            alignment: 256,
            memory_type_bits: !0,
        })
        .collect()
}

struct RustFrame {
    held: Vec<Allocation>,
    script: Vec<vk::MemoryRequirements>,
    pool: sublet::Pool,
    allocator: Allocator,
    _gpu: NullGpu,
}

impl RustFrame {
    fn new() -> Self {
        let gpu = gpu();
        let allocator = rust_allocator(&gpu);
        let info = PoolCreateInfo {
            block_size: 64 << 20,
            max_block_count: 1,
            algorithm: Algorithm::Linear,
            ..PoolCreateInfo::new(0)
        };
        let pool = allocator.create_pool(&info).expect("the null device has memory");
        Self { held: Vec::with_capacity(FRAME), script: frame_script(), pool, allocator, _gpu: gpu }
    }
}

impl Round for RustFrame {
    fn round(&mut self) {
        let info = AllocationCreateInfo::in_pool(&self.pool);
        for _ in 0..PAIRS / FRAME {
            self.held.extend(
                self.script.iter().filter_map(|needs| self.allocator.allocate_memory(needs, &info).ok()),
            );
            for allocation in self.held.drain(..) {
                // SAFETY: no device uses it.
                unsafe { self.allocator.free_memory(allocation) }.expect("it is this allocator's");
            }
        }
    }
}

struct CFrame {
    held: Vec<VmaAllocation>,
    script: Vec<vk::MemoryRequirements>,
    pool: VmaPool,
    allocator: Owned,
    _gpu: NullGpu,
}

impl CFrame {
    fn new() -> Self {
        let gpu = gpu();
        let allocator = Owned(c_allocator(&gpu));
        let info = VmaPoolCreateInfo {
            memory_type_index: 0,
            flags: 4,
            block_size: 64 << 20,
            min_block_count: 0,
            max_block_count: 1,
            priority: 0.0,
            min_allocation_alignment: 0,
            memory_allocate_next: null(),
        };
        let mut pool = null_mut();
        // SAFETY: all pointers are to live values.
        let result = unsafe { vmaCreatePool(allocator.0, &info, &mut pool) };
        assert_eq!(result, vk::Result::SUCCESS);
        Self { held: Vec::with_capacity(FRAME), script: frame_script(), pool, allocator, _gpu: gpu }
    }
}

impl Round for CFrame {
    fn round(&mut self) {
        let info = c_info(0, self.pool);
        for _ in 0..PAIRS / FRAME {
            self.held.extend(self.script.iter().map(|needs| c_allocate(&self.allocator, needs, &info)));
            for allocation in self.held.drain(..) {
                // SAFETY: no device uses it.
                unsafe { vmaFreeMemory(self.allocator.0, allocation) };
            }
        }
    }
}

impl Drop for CFrame {
    fn drop(&mut self) {
        // SAFETY: nothing is in it.
        unsafe { vmaDestroyPool(self.allocator.0, self.pool) };
    }
}

fn buffer_info() -> vk::BufferCreateInfo<'static> {
    vk::BufferCreateInfo::default().size(4096).usage(vk::BufferUsageFlags::STORAGE_BUFFER)
}

struct RustBuffers {
    allocator: Allocator,
    _gpu: NullGpu,
}

impl RustBuffers {
    fn new() -> Self {
        let gpu = gpu();
        Self { allocator: rust_allocator(&gpu), _gpu: gpu }
    }
}

impl Round for RustBuffers {
    fn round(&mut self) {
        let (buffer_info, info) = (buffer_info(), AllocationCreateInfo::new(MemoryUsage::Auto));
        for _ in 0..PAIRS {
            // SAFETY: the create-info is valid.
            let made = unsafe { self.allocator.create_buffer(&buffer_info, &info) };
            let (buffer, allocation) = made.expect("the null device has memory");
            // SAFETY: no device uses it.
            unsafe { self.allocator.destroy_buffer(buffer, allocation) }.expect("it is this allocator's");
        }
    }
}

struct CBuffers {
    allocator: Owned,
    _gpu: NullGpu,
}

impl CBuffers {
    fn new() -> Self {
        let gpu = gpu();
        Self { allocator: Owned(c_allocator(&gpu)), _gpu: gpu }
    }
}

impl Round for CBuffers {
    fn round(&mut self) {
        let (buffer_info, info) = (buffer_info(), c_info(7, null_mut()));
        for _ in 0..PAIRS {
            let (mut buffer, mut allocation) = (vk::Buffer::null(), null_mut());
            // SAFETY: all pointers are to live values.
            let result = unsafe {
                vmaCreateBuffer(
                    self.allocator.0,
                    &buffer_info,
                    &info,
                    &mut buffer,
                    &mut allocation,
                    null_mut(),
                )
            };
            assert_eq!(result, vk::Result::SUCCESS);
            // SAFETY: no device uses it.
            unsafe { vmaDestroyBuffer(self.allocator.0, buffer, allocation) };
        }
    }
}

fn work(name: &str) -> Option<Box<dyn Round>> {
    Some(match name {
        "churn-rust" => Box::new(RustChurn::new()),
        "churn-c" => Box::new(CChurn::new()),
        "frame-rust" => Box::new(RustFrame::new()),
        "frame-c" => Box::new(CFrame::new()),
        "buffers-rust" => Box::new(RustBuffers::new()),
        "buffers-c" => Box::new(CBuffers::new()),
        _ => return None,
    })
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    if let Some(mut only) = arguments.first().and_then(|name| work(name)) {
        let rounds = arguments.get(1).and_then(|rounds| rounds.parse().ok()).unwrap_or(1);
        (0..rounds).for_each(|_| only.round());
        return;
    }
    // Run as a test, each kind of work runs once.
    let rounds = if arguments.iter().any(|argument| argument == "--test") { 1 } else { ROUNDS };
    println!("work      |  Rust |     C | C / Rust");
    for kind in ["churn", "frame", "buffers"] {
        let names = ["rust", "c"].map(|interface| format!("{kind}-{interface}"));
        let mut all: Vec<Box<dyn Round>> = names.iter().filter_map(|name| work(name)).collect();
        let mut times = vec![Vec::new(); all.len()];
        for _ in 0..rounds {
            for (one, times) in all.iter_mut().zip(&mut times) {
                let started = Instant::now();
                one.round();
                times.push(started.elapsed().as_secs_f64() * 1e9 / PAIRS as f64);
            }
        }
        let medians: Vec<f64> = times.into_iter().map(median).collect();
        println!("{kind:9} | {:5.1} | {:5.1} | {:.2}", medians[0], medians[1], medians[1] / medians[0]);
    }
}
