//! Selection of memory types. The tests expect properties of a type, not an index.

use ash::vk;
use ash::vk::MemoryPropertyFlags as Properties;
use sublet::sim::Gpu;
use sublet::{
    AllocationCreateFlags as Flags, AllocationCreateInfo, AllocationError, AllocatorCreateFlags, CreateError,
    MemoryUsage, NoMemoryType,
};

use crate::common::*;

const UNIFORM: vk::BufferUsageFlags = vk::BufferUsageFlags::UNIFORM_BUFFER;
const STAGING: vk::BufferUsageFlags = vk::BufferUsageFlags::TRANSFER_SRC;
const SAMPLED: vk::ImageUsageFlags = vk::ImageUsageFlags::SAMPLED;

/// Returns the types that a buffer supports and the allocator may use.
fn buffer_types(fixture: &Fixture, usage: vk::BufferUsageFlags) -> Vec<u32> {
    let info = vk::BufferCreateInfo::default().size(KIB).usage(usage);
    // SAFETY: the create-info is valid.
    let buffer = unsafe { fixture.gpu.device().create_buffer(&info, None) }.unwrap();
    // SAFETY: the buffer is live.
    let bits = unsafe { fixture.gpu.device().get_buffer_memory_requirements(buffer) }.memory_type_bits;
    // SAFETY: the device does not use it.
    unsafe { fixture.gpu.device().destroy_buffer(buffer, None) };
    fixture.types().into_iter().filter(|index| bits & (1 << index) != 0).collect()
}

/// Creates a buffer and returns the properties of its memory type.
fn buffer_gets(
    fixture: &Fixture,
    usage: vk::BufferUsageFlags,
    info: &AllocationCreateInfo<'_>,
) -> Properties {
    let buffer = fixture.buffer(KIB, usage, info).unwrap();
    let memory_type = buffer.1.memory_type_index();
    // `find_memory_type_index_for_buffer_info` and `create_buffer` choose the same type.
    let buffer_info = vk::BufferCreateInfo::default().size(KIB).usage(usage);
    // SAFETY: the create-info is valid.
    let found =
        unsafe { fixture.allocator.find_memory_type_index_for_buffer_info(&buffer_info, info) }.unwrap();
    assert_eq!(found, memory_type);
    fixture.destroy_buffer(buffer);
    fixture.properties(memory_type)
}

/// The documented behaviour of the automatic usages on discrete GPUs.
#[test]
fn what_users_expect_of_a_discrete_gpu() {
    on_profiles(having(|profile| profile.device_type == vk::PhysicalDeviceType::DISCRETE_GPU), |profile| {
        let fixture = Fixture::new(profile);
        let gets = |usage, flags| buffer_gets(&fixture, UNIFORM, &with_flags(usage, flags));
        let stages = |flags| buffer_gets(&fixture, STAGING, &with_flags(MemoryUsage::Auto, flags));
        let auto = MemoryUsage::Auto;
        assert!(gets(auto, Flags::empty()).contains(DEVICE_LOCAL), "what only the device uses is its own");
        let staging = stages(Flags::HOST_ACCESS_SEQUENTIAL_WRITE);
        assert!(staging.contains(HOST_VISIBLE) && !staging.contains(DEVICE_LOCAL), "staging: {staging:?}");
        if !fixture.types_with(HOST_VISIBLE, HOST_CACHED | DEVICE_LOCAL).is_empty() {
            assert!(!staging.contains(HOST_CACHED), "written in order: write-combined");
        }
        let readback = stages(Flags::HOST_ACCESS_RANDOM);
        assert!(readback.contains(HOST_VISIBLE | HOST_CACHED), "readback: {readback:?}");
        let host = gets(MemoryUsage::AutoPreferHost, Flags::empty());
        assert!(!host.contains(DEVICE_LOCAL));
        if profile.types.iter().any(|kind| kind.flags.contains(DEVICE_LOCAL | HOST_VISIBLE)) {
            let written = gets(auto, Flags::HOST_ACCESS_SEQUENTIAL_WRITE);
            assert!(written.contains(DEVICE_LOCAL | HOST_VISIBLE), "a bar is used: {written:?}");
        }
    });
}

#[test]
fn images_are_where_the_driver_lets_them() {
    on_every_gpu(|fixture| {
        let auto = AllocationCreateInfo::new(MemoryUsage::Auto);
        let info = square(32, SAMPLED);
        let image = fixture.image(&info, &auto).unwrap();
        let memory_type = image.1.memory_type_index();
        assert!(fixture.properties(memory_type).contains(DEVICE_LOCAL));
        // SAFETY: the create-info is valid.
        let found = unsafe { fixture.allocator.find_memory_type_index_for_image_info(&info, &auto) }.unwrap();
        assert_eq!(found, memory_type);
        fixture.destroy_image(image);
    });
}

#[test]
fn transient_attachments_are_lazily_allocated() {
    on_every_gpu(|fixture| {
        let lazy = fixture.profile().types.iter().any(|kind| kind.flags.contains(LAZY));
        let usage = vk::ImageUsageFlags::TRANSIENT_ATTACHMENT | vk::ImageUsageFlags::COLOR_ATTACHMENT;
        let lazily = AllocationCreateInfo::new(MemoryUsage::GpuLazilyAllocated);
        let before = fixture.snapshot();
        match fixture.image(&square(32, usage), &lazily) {
            Ok(image) => {
                assert!(lazy && fixture.properties(image.1.memory_type_index()).contains(LAZY));
                fixture.destroy_image(image);
            }
            Err(error) => {
                assert!(!lazy, "{error:?}");
                assert!(
                    matches!(
                        error,
                        CreateError::Allocation(AllocationError::NoMemoryType(NoMemoryType::NoneFits { .. }))
                    ),
                    "{error:?}"
                );
                assert_eq!(error.vk_result(), vk::Result::ERROR_FEATURE_NOT_PRESENT);
                assert_eq!(fixture.snapshot(), before);
            }
        }
        // A preferred property is accepted on every GPU.
        let preferred =
            AllocationCreateInfo { preferred_flags: LAZY, ..AllocationCreateInfo::new(MemoryUsage::Auto) };
        let image = fixture.image(&square(32, usage), &preferred).unwrap();
        assert_eq!(fixture.properties(image.1.memory_type_index()).contains(LAZY), lazy);
        fixture.destroy_image(image);
    });
}

#[test]
fn cached_readback_without_coherence() {
    let incoherent = |flags: Properties| flags.contains(HOST_CACHED) && !flags.contains(HOST_COHERENT);
    on_profiles(having(|profile| profile.types.iter().any(|kind| incoherent(kind.flags))), |profile| {
        let fixture = Fixture::new(profile);
        let required = HOST_VISIBLE | HOST_CACHED;
        let among = fixture.types_with(required, HOST_COHERENT | PROTECTED);
        let info = AllocationCreateInfo {
            required_flags: required,
            memory_type_bits: among.iter().fold(0, |bits, at| bits | 1 << at),
            ..with_flags(MemoryUsage::Auto, Flags::HOST_ACCESS_RANDOM)
        };
        let got = buffer_gets(&fixture, vk::BufferUsageFlags::TRANSFER_DST, &info);
        assert!(incoherent(got), "{got:?}");
    });
}

#[test]
fn amd_coherent_memory_wants_its_flag() {
    on_profiles(having(|profile| profile.features.device_coherent_memory), |profile| {
        let asks = AllocationCreateInfo {
            required_flags: AMD_COHERENT,
            ..AllocationCreateInfo::new(MemoryUsage::Auto)
        };
        let fixture = Fixture::new(profile);
        let error = fixture.buffer(KIB, UNIFORM, &asks).unwrap_err();
        assert!(matches!(error, CreateError::Allocation(AllocationError::NoMemoryType(_))), "{error:?}");
        // It is not used even if all other types are excluded.
        let allowed = fixture.types();
        for bits in 0..profile.types.len() {
            let only = AllocationCreateInfo { memory_type_bits: 1 << bits, ..Default::default() };
            let index = fixture.allocator.find_memory_type_index(!0, &only);
            assert_eq!(index.ok(), allowed.contains(&(bits as u32)).then_some(bits as u32));
        }
        let pool = sublet::PoolCreateInfo::new(profile.types.len() as u32 - 1);
        assert!(fixture.properties(pool.memory_type_index).contains(AMD_COHERENT));
        assert!(fixture.pool(&pool).is_err());
        drop(fixture);

        let gpu = Gpu::new(profile);
        let flags = Some(enabled(&gpu) | AllocatorCreateFlags::AMD_DEVICE_COHERENT_MEMORY);
        let fixture = Fixture::with(gpu, &Options { flags, ..Options::default() });
        let buffer = fixture.buffer(KIB, UNIFORM, &asks).unwrap();
        assert!(fixture.properties(buffer.1.memory_type_index()).contains(AMD_COHERENT));
        fixture.destroy_buffer(buffer);
        // The type is used only on request.
        for usage in [MemoryUsage::Auto, MemoryUsage::GpuOnly, MemoryUsage::CpuToGpu, MemoryUsage::GpuToCpu] {
            let buffer = fixture.buffer(KIB, UNIFORM, &AllocationCreateInfo::new(usage)).unwrap();
            assert!(!fixture.properties(buffer.1.memory_type_index()).contains(AMD_COHERENT), "{usage:?}");
            fixture.destroy_buffer(buffer);
        }
    });
}

#[test]
fn a_full_type_is_followed_by_the_next() {
    on_profiles(
        having(|profile| {
            profile.heaps.len() > 1 && profile.device_type == vk::PhysicalDeviceType::DISCRETE_GPU
        }),
        |profile| {
            let fixture = Fixture::new(profile);
            let written = with_flags(MemoryUsage::Auto, Flags::HOST_ACCESS_SEQUENTIAL_WRITE);
            // The buffers exceed the small host-visible device heap, if there is one, so that it fills up.
            let size = 32 * MIB;
            let mut held = Vec::new();
            let mut seen = Vec::new();
            fixture.gpu.faults().fail_above(u64::MAX);
            let limit = 24 * GIB / size;
            for _ in 0..limit {
                let Ok(buffer) = fixture.buffer(size, UNIFORM, &written) else { break };
                let memory_type = buffer.1.memory_type_index();
                assert!(fixture.properties(memory_type).contains(HOST_VISIBLE));
                if seen.last() != Some(&memory_type) {
                    seen.push(memory_type);
                }
                held.push(buffer);
            }
            let smallest = profile.heaps.iter().map(|heap| heap.size).min().unwrap();
            if smallest < GIB {
                assert!(seen.len() > 1, "the window of {smallest} bytes was full, {seen:?}");
                assert!(fixture.properties(seen[0]).contains(DEVICE_LOCAL));
                assert!(held.len() as u64 > smallest / size);
            }
            fixture.validate();
            held.into_iter().for_each(|buffer| fixture.destroy_buffer(buffer));
        },
    );
}

/// The driver refuses the first type: the allocator tries all other ways, and reports the first error.
#[test]
fn the_first_types_error_is_the_one_reported() {
    on_every_gpu(|fixture| {
        let before = fixture.snapshot();
        fixture.gpu.faults().fail_always("vkAllocateMemory", vk::Result::ERROR_OUT_OF_HOST_MEMORY);
        let error = fixture.buffer(KIB, UNIFORM, &AllocationCreateInfo::new(MemoryUsage::Auto)).unwrap_err();
        assert_eq!(driver_result(&error), Some(vk::Result::ERROR_OUT_OF_HOST_MEMORY));
        assert_eq!(error.vk_result(), vk::Result::ERROR_OUT_OF_HOST_MEMORY);
        fixture.gpu.faults().clear();
        assert_eq!(fixture.snapshot(), before);
        // After a device loss, no other memory type is tried.
        fixture.gpu.faults().fail_always("vkAllocateMemory", vk::Result::ERROR_DEVICE_LOST);
        fixture.gpu.reset_calls();
        let error = fixture.buffer(KIB, UNIFORM, &AllocationCreateInfo::new(MemoryUsage::Auto)).unwrap_err();
        assert_eq!(driver_result(&error), Some(vk::Result::ERROR_DEVICE_LOST));
        assert_eq!(fixture.gpu.calls("vkAllocateMemory"), 1);
        fixture.gpu.faults().clear();
        assert_eq!(fixture.snapshot(), before);
    });
}

#[test]
fn memory_that_is_full_is_left_for_the_next_best() {
    on_profiles(having(|profile| profile.device_type == vk::PhysicalDeviceType::DISCRETE_GPU), |profile| {
        // Device-local heaps have no free space.
        let limits: Vec<_> = profile
            .heaps
            .iter()
            .map(
                |heap| {
                    if heap.flags.contains(vk::MemoryHeapFlags::DEVICE_LOCAL) { 0 } else { vk::WHOLE_SIZE }
                },
            )
            .collect();
        let fixture =
            Fixture::with(Gpu::new(profile), &Options { heap_size_limits: &limits, ..Options::default() });
        let buffer = fixture.buffer(KIB, UNIFORM, &AllocationCreateInfo::new(MemoryUsage::Auto)).unwrap();
        assert!(!fixture.properties(buffer.1.memory_type_index()).contains(DEVICE_LOCAL));
        fixture.destroy_buffer(buffer);
        // If the next type fails too, its error is reported, because the best type could never hold the request.
        fixture.allocator.trim();
        fixture.gpu.faults().fail_always("vkAllocateMemory", vk::Result::ERROR_OUT_OF_HOST_MEMORY);
        let error = fixture.buffer(KIB, UNIFORM, &AllocationCreateInfo::new(MemoryUsage::Auto)).unwrap_err();
        assert_eq!(driver_result(&error), Some(vk::Result::ERROR_OUT_OF_HOST_MEMORY), "{error:?}");
        fixture.gpu.faults().clear();
    });
}

#[test]
fn explicit_bits_and_properties_count() {
    on_every_gpu(|fixture| {
        for memory_type in buffer_types(&fixture, UNIFORM) {
            if fixture.properties(memory_type).contains(PROTECTED) {
                continue;
            }
            let buffer = fixture.buffer(KIB, UNIFORM, &in_type(memory_type)).unwrap();
            assert_eq!(buffer.1.memory_type_index(), memory_type);
            fixture.destroy_buffer(buffer);
            let required = AllocationCreateInfo {
                required_flags: fixture.properties(memory_type),
                ..AllocationCreateInfo::default()
            };
            let got = buffer_gets(&fixture, UNIFORM, &required);
            assert!(got.contains(fixture.properties(memory_type)));
        }
    });
}

/// A resource that is not protected never uses protected memory, even if all other memory is full.
#[test]
fn protected_memory_is_for_protected_resources() {
    on_profiles(
        having(|profile| profile.types.iter().any(|kind| kind.flags.contains(PROTECTED))),
        |profile| {
            let mut limits = vec![0; profile.heaps.len()];
            for kind in profile.types.iter().filter(|kind| kind.flags.contains(PROTECTED)) {
                limits[kind.heap as usize] = vk::WHOLE_SIZE;
            }
            let fixture = Fixture::with(
                Gpu::new(profile),
                &Options { heap_size_limits: &limits, ..Options::default() },
            );
            let auto = AllocationCreateInfo::new(MemoryUsage::Auto);
            let buffer = fixture.buffer(KIB, UNIFORM, &auto);
            assert!(buffer.is_err(), "{buffer:?}");
            let image = fixture.image(&square(32, SAMPLED), &auto);
            assert!(image.is_err(), "{image:?}");
        },
    );
}

/// Host image copies bypass the queues, but the image still prefers device-local memory, as in VMA.
#[test]
fn host_image_copies_do_not_move_an_image() {
    on_every_gpu(|fixture| {
        let sampled = vk::ImageUsageFlags::SAMPLED;
        let found = |usage, info: &AllocationCreateInfo<'_>| {
            // SAFETY: the create-info is valid.
            unsafe { fixture.allocator.find_memory_type_index_for_image_info(&square(64, usage), info) }
                .unwrap()
        };
        for usage in [MemoryUsage::Auto, MemoryUsage::AutoPreferHost, MemoryUsage::AutoPreferDevice] {
            let info = AllocationCreateInfo::new(usage);
            let host_copied = found(vk::ImageUsageFlags::HOST_TRANSFER_EXT, &info);
            assert_eq!(host_copied, found(sampled, &info));
            assert_eq!(found(sampled | vk::ImageUsageFlags::HOST_TRANSFER_EXT, &info), host_copied);
        }
    });
}
