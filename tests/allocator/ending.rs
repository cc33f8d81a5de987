//! Programs that use `ash` destroy their device in a `Drop` impl, and Rust drops the fields only afterwards. The
//! simulated driver reports objects that are still live when the device is destroyed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use ash::vk;
use sublet::device::DeviceMemoryCallbacks;
use sublet::sim::Gpu;
use sublet::sim::profiles::Profile;
use sublet::{
    AllocationCreateFlags as Flags, AllocationCreateInfo, Allocator, AllocatorCreateInfo, DebugSettings,
    Leak, MemoryUsage, PoolCreateInfo, ScopeCreateInfo,
};

use super::common::{new_allocator, on_every_profile};

const ALIVE: &str = "VUID-vkDestroyDevice-device-05137";

/// The owner of a device. Its `Drop` impl destroys the device, as in typical programs.
struct Program {
    device: ash::Device,
    /// The position of this field makes no difference.
    allocator: Allocator,
    /// The drop ends the allocator before it destroys the device.
    ends: bool,
    leaks: Arc<std::sync::Mutex<Vec<Leak>>>,
}

impl Drop for Program {
    fn drop(&mut self) {
        if self.ends {
            // SAFETY: nothing was submitted, and the allocator is only dropped after this.
            *self.leaks.lock().unwrap() = unsafe { self.allocator.destroy_in_place() };
        }
        // SAFETY: nothing was submitted. If objects are still live, the simulated driver reports them and continues.
        unsafe { self.device.destroy_device(None) };
    }
}

/// Leaves an empty block behind, as in every program that has freed all its resources.
fn use_memory(allocator: &Allocator) {
    let info = vk::BufferCreateInfo::default().size(4096).usage(vk::BufferUsageFlags::VERTEX_BUFFER);
    // SAFETY: the create-info is valid.
    let made = unsafe { allocator.create_buffer(&info, &AllocationCreateInfo::new(MemoryUsage::Auto)) };
    let (buffer, memory) = made.unwrap();
    // SAFETY: the device never used it.
    unsafe { allocator.destroy_buffer(buffer, memory) }.unwrap();
    assert_eq!(allocator.statistics().block_count, 1, "it is kept for later");
}

fn run(profile: &'static Profile, ends: bool) -> Vec<String> {
    let gpu = Gpu::new(profile);
    let allocator = new_allocator(&AllocatorCreateInfo::for_gpu(&gpu)).unwrap();
    use_memory(&allocator);
    drop(Program { device: gpu.device().clone(), allocator, ends, leaks: Arc::default() });
    gpu.take_messages().into_iter().map(|message| message.vuid.to_string()).collect()
}

#[test]
fn a_device_that_is_destroyed_before_its_allocator_is_reported() {
    on_every_profile(|profile| assert_eq!(run(profile, false), [ALIVE]));
}

#[test]
fn an_allocator_that_ended_in_place_leaves_nothing_to_its_drop() {
    on_every_profile(|profile| {
        assert!(run(profile, true).is_empty());
    });
}

/// Blocks of every kind, mappings, margins and callbacks end with the call. The drop makes no driver call.
#[test]
fn everything_ends_in_place_and_the_leaks_are_named() {
    on_every_profile(|profile| {
        for debug in [DebugSettings::default(), DebugSettings { margin: 16, ..Default::default() }] {
            let gpu = Gpu::new(profile);
            let events = Arc::new(AtomicU32::new(0));
            let seen = Arc::clone(&events);
            let callbacks = DeviceMemoryCallbacks::new(move |_| {
                seen.fetch_add(1, Ordering::Relaxed);
            });
            let info = AllocatorCreateInfo {
                device_memory_callbacks: Some(callbacks),
                debug,
                ..AllocatorCreateInfo::for_gpu(&gpu)
            };
            let allocator = new_allocator(&info).unwrap();
            let pool = allocator
                .create_pool(&PoolCreateInfo {
                    min_block_count: 2,
                    block_size: 1 << 20,
                    ..PoolCreateInfo::new(0)
                })
                .unwrap();
            let scope = allocator.create_scope(&ScopeCreateInfo::default()).unwrap();
            let mapped = AllocationCreateInfo {
                flags: Flags::MAPPED,
                name: Some("mapped"),
                ..AllocationCreateInfo::new(MemoryUsage::CpuOnly)
            };
            let dedicated = AllocationCreateInfo {
                flags: Flags::DEDICATED_MEMORY,
                name: Some("dedicated"),
                ..AllocationCreateInfo::default()
            };
            let in_pool =
                AllocationCreateInfo { name: Some("in the pool"), ..AllocationCreateInfo::in_pool(&pool) };
            let in_scope =
                AllocationCreateInfo { name: Some("in the scope"), ..AllocationCreateInfo::in_scope(&scope) };
            let needed = vk::MemoryRequirements { size: 4096, alignment: 256, memory_type_bits: !0 };
            for info in [mapped, dedicated, in_pool, in_scope] {
                let _lost = allocator.allocate_memory(&needed, &info).unwrap();
            }
            let leaks = Arc::default();
            let program =
                Program { device: gpu.device().clone(), allocator, ends: true, leaks: Arc::clone(&leaks) };
            // The pool and scope of an ended allocator are plain values: dropping them does nothing.
            drop((program, pool, scope));
            gpu.assert_silent();
            let mut names: Vec<_> =
                leaks.lock().unwrap().iter().map(|leak| leak.name.clone().unwrap().into_string()).collect();
            names.sort();
            assert_eq!(names, ["dedicated", "in the pool", "in the scope", "mapped"]);
            let count = events.load(Ordering::Relaxed);
            assert!(count > 0 && count % 2 == 0, "each memory is allocated and freed: {count}");
        }
    });
}

/// Dropping an allocator that was ended frees nothing and does not report the leaks again.
#[test]
fn the_drop_after_the_end_tells_no_leak_again() {
    let gpu = Gpu::new(Profile::by_name("lavapipe").unwrap());
    let mut allocator = new_allocator(&AllocatorCreateInfo::for_gpu(&gpu)).unwrap();
    let needed = vk::MemoryRequirements { size: 4096, alignment: 256, memory_type_bits: !0 };
    let _lost = allocator.allocate_memory(&needed, &AllocationCreateInfo::default()).unwrap();
    let said = super::said::said(tracing::Level::INFO, || {
        // SAFETY: the device never used the memory, and the allocator is only dropped after this.
        assert_eq!(unsafe { allocator.destroy_in_place() }.len(), 1);
        drop(allocator);
    });
    assert_eq!(said.lines().count(), 1, "{said}");
}
