//! If a query reports that an allocation fits, the allocation succeeds at the reported place.

use ash::vk;
use sublet::sim::LiveObjects;
use sublet::{
    Algorithm, Allocation, AllocationCreateFlags as Flags, AllocationCreateInfo, AllocationError,
    AllocatorCreateFlags, CreateError, FitPlace, MemoryError, MemoryUsage, PoolCreateInfo, ScopeCreateInfo,
};

use crate::common::*;

/// Queries the fit, allocates, and compares the two results.
fn look_and_take(
    fixture: &Fixture,
    requirements: &vk::MemoryRequirements,
    info: &AllocationCreateInfo<'_>,
) -> Result<(Allocation, FitPlace), AllocationError> {
    let before = fixture.snapshot();
    let said = fixture.allocator.would_fit(requirements, info);
    assert_eq!(fixture.snapshot(), before, "a look changes nothing");
    let returned = fixture.gpu.calls("vkFreeMemory");
    let taken = fixture.allocator.allocate_memory(requirements, info);
    let (said, taken) = match (said, taken) {
        // Before an allocation fails or falls back to a worse memory type, the allocator returns empty blocks to the
        // driver. The query does not take this into account.
        (said, Ok(taken))
            if fixture.gpu.calls("vkFreeMemory") > returned
                && said.map(|said| said.memory_type_index) != Ok(taken.memory_type_index()) =>
        {
            let size = fixture.memory_size(&taken);
            return Ok((taken, FitPlace::NewBlock { size }));
        }
        (Ok(said), Ok(taken)) => (said, taken),
        (said, taken) => {
            assert_eq!(said.err(), taken.as_ref().err().copied());
            return taken.map(|_| unreachable!("one of them is an error"));
        }
    };
    assert_eq!(said.memory_type_index, taken.memory_type_index());
    assert_eq!(said.heap_index, fixture.heap_of(taken.memory_type_index()));
    let bytes = |live: &LiveObjects| live.memory_bytes_by_heap.iter().sum::<u64>();
    assert_eq!(said.place.new_bytes(), bytes(&fixture.gpu.live()) - bytes(&before.live));
    match said.place {
        FitPlace::Block => assert_eq!(fixture.gpu.live().memories, before.live.memories),
        FitPlace::NewBlock { size } => {
            assert!(!taken.is_dedicated());
            assert_eq!(fixture.memory_size(&taken), size);
        }
        FitPlace::Dedicated { size } => {
            assert!(taken.is_dedicated());
            assert_eq!(fixture.memory_size(&taken), size);
        }
        other => panic!("{other:?}"),
    }
    let budget = fixture.allocator.heap_budgets()[said.heap_index as usize];
    assert_eq!(said.budget, budget.budget);
    assert_eq!(said.usage, before.usage[said.heap_index as usize]);
    assert_eq!(said.within_budget, budget.usage <= budget.budget);
    Ok((taken, said.place))
}

#[test]
fn what_fits_is_had_where_it_was_said() {
    on_every_profile(|profile| {
        let limits: Vec<u64> = profile.heaps.iter().map(|heap| heap.size.min(192 * MIB)).collect();
        let options = Options { heap_size_limits: &limits, large_block: 32 * MIB, ..Options::default() };
        let fixture = Fixture::with(sublet::sim::Gpu::new(profile), &options);
        let types = fixture.types();
        let pool = |info: PoolCreateInfo<'static>| fixture.pool(&info).unwrap();
        let of_type = |memory_type| PoolCreateInfo { block_size: MIB, ..PoolCreateInfo::new(memory_type) };
        let pools = [
            pool(PoolCreateInfo { max_block_count: 2, ..of_type(types[0]) }),
            pool(PoolCreateInfo { algorithm: Algorithm::Linear, max_block_count: 1, ..of_type(types[0]) }),
            pool(PoolCreateInfo { algorithm: Algorithm::Buddy, ..of_type(types[types.len() - 1]) }),
        ];
        let scope = fixture.allocator.create_scope(&ScopeCreateInfo::default()).unwrap();
        let mut random = Random::new(4);
        let mut held: Vec<Allocation> = Vec::new();
        let mut counts = [0; 4];
        for _ in 0..from_environment("SUBLET_CASES", 96) {
            if held.len() > 6 && random.below(3) == 0 {
                fixture.free(held.swap_remove(random.below(held.len() as u64) as usize));
            }
            let flags = random.pick(&[
                Flags::empty(),
                Flags::empty(),
                Flags::WITHIN_BUDGET,
                Flags::NEVER_ALLOCATE,
                Flags::DEDICATED_MEMORY,
                Flags::STRATEGY_MIN_OFFSET,
                Flags::UPPER_ADDRESS,
            ]);
            let place = match random.below(4) {
                0 => AllocationCreateInfo::in_pool(&pools[random.below(3) as usize]),
                1 => AllocationCreateInfo::in_scope(&scope),
                2 => in_type(random.pick(&types)),
                _ => AllocationCreateInfo::new(MemoryUsage::CpuToGpu),
            };
            let info = AllocationCreateInfo { flags, ..place };
            let alignment = 1 << random.below(12);
            let size = random.size(26);
            let requirements = vk::MemoryRequirements { size, alignment, memory_type_bits: !0 };
            match look_and_take(&fixture, &requirements, &info) {
                Ok((taken, place)) => {
                    held.push(taken);
                    counts[match place {
                        FitPlace::Block => 0,
                        FitPlace::NewBlock { .. } => 1,
                        _ => 2,
                    }] += 1;
                }
                Err(_) => counts[3] += 1,
            }
        }
        assert!(counts.iter().all(|&count| count > 0), "{counts:?}");
        // SAFETY: nothing was bound to it.
        unsafe { fixture.allocator.free_scope(scope) }.unwrap();
        for allocation in held {
            // The allocations of the scope are already freed, so the result is ignored.
            // SAFETY: nothing was bound to it.
            let _ = unsafe { fixture.allocator.free_memory(allocation) };
        }
        pools.into_iter().for_each(|pool| fixture.destroy_pool(pool));
    });
}

/// A scope creates its pool lazily, and a query does not create it.
#[test]
fn a_look_into_a_scope_makes_no_pool() {
    let fixture = Fixture::new(sublet::sim::Profile::by_name("lavapipe").unwrap());
    let scope =
        fixture.allocator.create_scope(&ScopeCreateInfo { block_size: MIB, ..Default::default() }).unwrap();
    let info = AllocationCreateInfo::in_scope(&scope);
    let requirements = vk::MemoryRequirements { size: 100, alignment: 1, memory_type_bits: !0 };
    let fit = fixture.allocator.would_fit(&requirements, &info).unwrap();
    assert_eq!(fit.place, FitPlace::NewBlock { size: MIB });
    assert!(scope.pool(0).is_none());
    assert_eq!(fixture.allocator.memory_map().vectors.len(), 1);
    // SAFETY: nothing was bound to it.
    unsafe { fixture.allocator.free_scope(scope) }.unwrap();
}

#[test]
fn free_bytes_are_those_of_the_vector() {
    let fixture = Fixture::new(sublet::sim::Profile::by_name("lavapipe").unwrap());
    let pool = fixture.pool(&PoolCreateInfo { block_size: MIB, ..PoolCreateInfo::new(0) }).unwrap();
    let info = AllocationCreateInfo::in_pool(&pool);
    let held = [256 * KIB, 512 * KIB, 128 * KIB].map(|size| fixture.memory(size, 1, &info).unwrap());
    let [first, second, third] = held;
    fixture.free(first);
    let fit = |size, flags| {
        let requirements = vk::MemoryRequirements { size, alignment: 1, memory_type_bits: !0 };
        fixture.allocator.would_fit(&requirements, &AllocationCreateInfo { flags, ..info })
    };
    let found = fit(256 * KIB, Flags::empty()).unwrap();
    assert_eq!((found.place, found.free_bytes, found.largest_free), (FitPlace::Block, 384 * KIB, 256 * KIB));
    assert_eq!(fit(257 * KIB, Flags::empty()).unwrap().place, FitPlace::NewBlock { size: MIB });
    let refused = fit(257 * KIB, Flags::NEVER_ALLOCATE).unwrap_err();
    assert!(matches!(refused, AllocationError::Full { free, .. } if free == 384 * KIB), "{refused:?}");
    fixture.free_all([second, third]);
    fixture.destroy_pool(pool);
}

/// The query checks the budget only with `WITHIN_BUDGET`, but always checks the size of the heap.
#[test]
fn budgets_and_heaps_are_looked_at() {
    let gpu = sublet::sim::Gpu::new(sublet::sim::Profile::by_name("lavapipe").unwrap());
    let fixture = Fixture::with(gpu, &Options { heap_size_limits: &[100 * MIB], ..Options::default() });
    let fit = |size, flags| {
        let requirements = vk::MemoryRequirements { size, alignment: 1, memory_type_bits: !0 };
        fixture.allocator.would_fit(&requirements, &AllocationCreateInfo { flags, ..Default::default() })
    };
    let budget = fixture.allocator.heap_budgets()[0].budget;
    let within = fit(budget, Flags::empty()).unwrap();
    assert_eq!((within.place, within.within_budget), (FitPlace::Dedicated { size: budget }, true));
    if budget < 100 * MIB {
        assert!(!fit(budget + 1, Flags::empty()).unwrap().within_budget);
        let refused = fit(budget + 1, Flags::WITHIN_BUDGET).unwrap_err();
        assert!(matches!(refused, AllocationError::Memory(MemoryError::OverBudget { .. })), "{refused:?}");
    }
    let refused = fit(100 * MIB + 1, Flags::empty()).unwrap_err();
    assert!(matches!(refused, AllocationError::Memory(MemoryError::HeapTooSmall { .. })), "{refused:?}");
}

#[test]
fn resources_are_looked_at_without_being_kept() {
    on_every_gpu(|fixture| {
        let before = fixture.snapshot();
        let auto = AllocationCreateInfo::new(MemoryUsage::Auto);
        let buffer_info =
            vk::BufferCreateInfo::default().size(MIB).usage(vk::BufferUsageFlags::VERTEX_BUFFER);
        let image_info = square(64, vk::ImageUsageFlags::SAMPLED);
        // SAFETY: the create-info is valid.
        let of_buffer = unsafe { fixture.allocator.would_buffer_fit(&buffer_info, &auto) }.unwrap();
        // SAFETY: the create-info is valid.
        let of_image = unsafe { fixture.allocator.would_image_fit(&image_info, &auto) }.unwrap();
        assert_eq!(fixture.snapshot(), before);
        let buffer = fixture.buffer(MIB, vk::BufferUsageFlags::VERTEX_BUFFER, &auto).unwrap();
        assert_eq!(of_buffer.memory_type_index, buffer.1.memory_type_index());
        fixture.destroy_buffer(buffer);
        let image = fixture.image(&image_info, &auto).unwrap();
        assert_eq!(of_image.memory_type_index, image.1.memory_type_index());
        fixture.destroy_image(image);
    });
}

/// wgpu 9745: a query accepted a request that creation then rejected. Neither calls the driver.
#[test]
fn a_look_refuses_what_creation_refuses() {
    on_every_profile(|profile| {
        let gpu = sublet::sim::Gpu::new(profile);
        let flags = Some(enabled(&gpu) - AllocatorCreateFlags::BUFFER_DEVICE_ADDRESS);
        let fixture = Fixture::with(gpu, &Options { flags, ..Options::default() });
        let auto = AllocationCreateInfo::new(MemoryUsage::Auto);
        let mut reported = Vec::new();

        let good = vk::BufferCreateInfo::default().size(64).usage(vk::BufferUsageFlags::STORAGE_BUFFER);
        let max = fixture.allocator.max_buffer_size();
        let sparse = vk::BufferCreateFlags::SPARSE_BINDING;
        let residency =
            sparse | vk::BufferCreateFlags::SPARSE_RESIDENCY | vk::BufferCreateFlags::SPARSE_ALIASED;
        let mut buffers = vec![
            good.size(0),
            good.flags(sparse),
            good.flags(residency),
            good.usage(good.usage | vk::BufferUsageFlags::SHADER_DEVICE_ADDRESS),
        ];
        buffers.extend(max.checked_add(1).map(|size| good.size(size)));
        let mut in_chain = vk::BufferUsageFlags2CreateInfoKHR::default()
            .usage(vk::BufferUsageFlags2KHR::SHADER_DEVICE_ADDRESS);
        if profile.api_version >= vk::make_api_version(0, 1, 4, 0) {
            buffers.push(good.push_next(&mut in_chain));
        }
        for info in &buffers {
            // SAFETY: the driver is not called.
            let created = unsafe { fixture.allocator.create_buffer(info, &auto) }.unwrap_err();
            // SAFETY: the driver is not called.
            let looked = unsafe { fixture.allocator.would_buffer_fit(info, &auto) };
            assert_eq!(looked.unwrap_err(), created);
            reported.push(created);
        }

        let good = square(16, vk::ImageUsageFlags::SAMPLED);
        let flat = good.extent(vk::Extent3D { depth: 0, ..good.extent });
        let of = |flags| good.flags(flags);
        let sparse = vk::ImageCreateFlags::SPARSE_BINDING;
        for info in [
            flat,
            good.mip_levels(0),
            good.array_layers(0),
            of(sparse),
            of(sparse | vk::ImageCreateFlags::SPARSE_RESIDENCY),
            of(vk::ImageCreateFlags::DISJOINT),
            of(vk::ImageCreateFlags::DISJOINT | vk::ImageCreateFlags::MUTABLE_FORMAT),
        ] {
            // SAFETY: the driver is not called.
            let created = unsafe { fixture.allocator.create_image(&info, &auto) }.unwrap_err();
            // SAFETY: the driver is not called.
            let looked = unsafe { fixture.allocator.would_image_fit(&info, &auto) };
            assert_eq!(looked.unwrap_err(), created);
            reported.push(created);
        }
        assert_eq!(fixture.gpu.call_counts(), []);
        for error in
            [CreateError::ZeroExtent, CreateError::Sparse, CreateError::Disjoint, CreateError::DeviceAddress]
        {
            assert!(reported.contains(&error), "{error}");
        }
    });
}

/// Exceeds `maxMemoryAllocationCount` if the debug settings allow it.
#[test]
fn a_look_counts_allocations_as_creation_does() {
    let few = having(|profile| profile.limits.max_memory_allocation_count == 4096)[0];
    for exceed_max_allocation_count in [false, true] {
        let gpu = sublet::sim::Gpu::new(few);
        let debug = sublet::DebugSettings { exceed_max_allocation_count, ..Default::default() };
        let info = sublet::AllocatorCreateInfo { debug, flags: enabled(&gpu), ..create_info(&gpu) };
        // SAFETY: the GPU outlives the allocator.
        let allocator = unsafe { sublet::Allocator::new(&info) }.unwrap();
        let fixture = hold(Fixture { allocator, gpu });
        let memory_type = fixture.types().into_iter().max_by_key(|&at| fixture.heap_size(at)).unwrap();
        let own = in_type_with(memory_type, Flags::DEDICATED_MEMORY);
        let held: Vec<_> = (0..4096).map(|_| fixture.memory(KIB, 1, &own).unwrap()).collect();
        let requirements = vk::MemoryRequirements { size: KIB, alignment: 1, memory_type_bits: !0 };
        let looked = fixture.allocator.would_fit(&requirements, &own);
        assert_eq!(looked.is_ok(), exceed_max_allocation_count, "{looked:?}");
        fixture.free_all(held);
    }
}
