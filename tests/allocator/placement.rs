//! Placement of resources. The simulated device checks every bind and flush (overlaps, granularity pages, atoms,
//! alignments, ranges). The tests repeatedly compare the bytes of every live resource.

use ash::vk;
use sublet::{Allocation, AllocationCreateFlags as Flags, AllocationCreateInfo, MemoryUsage};

use crate::common::*;

/// Steps of a random run. `SUBLET_OPERATIONS` overrides the number.
fn steps() -> u64 {
    from_environment("SUBLET_OPERATIONS", 20_000)
}

enum Resource {
    Buffer(vk::Buffer),
    Image(vk::Image),
}

struct Item {
    resource: Resource,
    allocation: Allocation,
    stamp: u64,
}

/// A pattern that is unique for each item and position.
fn pattern(stamp: u64, size: usize) -> Vec<u8> {
    (0..size).map(|at| (stamp.wrapping_mul(0x9e37_79b9) >> (at % 4 * 8)) as u8 ^ (at as u8)).collect()
}

/// The first and last bytes, which an overlapping neighbour would overwrite.
fn edges(allocation: &Allocation) -> impl Iterator<Item = (u64, usize)> {
    let length = allocation.size().min(24);
    [
        (allocation.offset(), length as usize),
        (allocation.offset() + allocation.size() - length, length as usize),
    ]
    .into_iter()
}

fn stamp(fixture: &Fixture, item: &Item) {
    for (at, (offset, length)) in edges(&item.allocation).enumerate() {
        let bytes = pattern(item.stamp + at as u64, length);
        assert!(fixture.write_memory(item.allocation.memory(), offset, &bytes));
    }
}

fn check(fixture: &Fixture, item: &Item) {
    let single = item.allocation.size() < 48;
    for (at, (offset, length)) in edges(&item.allocation).enumerate() {
        if single && at == 0 {
            continue; // The second stamp has overwritten part of the first one.
        }
        let bytes = fixture.read_memory(item.allocation.memory(), offset, length).unwrap();
        assert_eq!(bytes, pattern(item.stamp + at as u64, length), "{:?} was overwritten", item.allocation);
    }
}

fn make(fixture: &Fixture, random: &mut Random, stamp: u64) -> Option<Item> {
    let usage = random.pick(&[
        MemoryUsage::Auto,
        MemoryUsage::Auto,
        MemoryUsage::AutoPreferHost,
        MemoryUsage::GpuOnly,
        MemoryUsage::CpuToGpu,
        MemoryUsage::GpuToCpu,
        MemoryUsage::Unknown,
    ]);
    let strategy = random.pick(&[
        Flags::empty(),
        Flags::STRATEGY_MIN_MEMORY,
        Flags::STRATEGY_MIN_TIME,
        Flags::STRATEGY_MIN_OFFSET,
    ]);
    let info = AllocationCreateInfo { min_alignment: 1 << random.below(10), ..with_flags(usage, strategy) };
    if random.below(3) > 0 {
        let buffer_usage = random.pick(&[
            vk::BufferUsageFlags::UNIFORM_BUFFER,
            vk::BufferUsageFlags::STORAGE_BUFFER,
            vk::BufferUsageFlags::VERTEX_BUFFER,
            vk::BufferUsageFlags::TRANSFER_SRC,
        ]);
        let (buffer, allocation) = fixture.buffer(random.size(18), buffer_usage, &info).ok()?;
        Some(Item { resource: Resource::Buffer(buffer), allocation, stamp })
    } else {
        let mut image_info = square(1 + random.below(96) as u32, vk::ImageUsageFlags::SAMPLED);
        if random.below(3) == 0 {
            image_info = image_info.tiling(vk::ImageTiling::LINEAR);
        }
        let (image, allocation) = fixture.image(&image_info, &info).ok()?;
        Some(Item { resource: Resource::Image(image), allocation, stamp })
    }
}

fn destroy(fixture: &Fixture, item: Item) {
    match item.resource {
        Resource::Buffer(buffer) => fixture.destroy_buffer((buffer, item.allocation)),
        Resource::Image(image) => fixture.destroy_image((image, item.allocation)),
    }
}

/// Creates and destroys at random, and compares the contents of live resources with the expected ones.
fn churn(fixture: &Fixture, seed: u64, steps: u64) {
    let mut random = Random::new(seed);
    let mut items: Vec<Item> = Vec::new();
    let mut most = 0;
    for step in 0..steps {
        most = most.max(items.len());
        // Growing and shrinking phases alternate.
        let grows = if step / 512 % 2 == 0 { 3 } else { 1 };
        if items.is_empty() || random.below(4) < grows {
            // Skips an image that the driver does not support with its usage.
            if let Some(item) = make(fixture, &mut random, step * 2) {
                stamp(fixture, &item);
                items.push(item);
            }
        } else {
            let at = random.below(items.len() as u64) as usize;
            let item = items.swap_remove(at);
            check(fixture, &item);
            destroy(fixture, item);
        }
        if step % 1024 == 0 {
            items.iter().for_each(|item| check(fixture, item));
            fixture.validate();
        }
        if random.below(256) == 0 {
            fixture.allocator.trim();
        }
        if let Some(message) =
            (step % 64 == 0).then(|| fixture.gpu.messages()).and_then(|list| list.first().cloned())
        {
            panic!("step {step}: {message}");
        }
    }
    assert!(most > 100, "the run was about something: {most} were alive at once");
    items.iter().for_each(|item| check(fixture, item));
    items.into_iter().for_each(|item| destroy(fixture, item));
}

#[test]
fn random_resources_never_meet() {
    on_every_gpu(|fixture| {
        churn(&fixture, 1, steps());
    });
}

/// Adjacent host writes in non-coherent memory: each flush makes only its own bytes visible to the device, not the
/// unflushed bytes of a neighbour.
#[test]
fn atoms_are_not_shared() {
    on_every_gpu(|fixture| {
        for memory_type in fixture.types_with(HOST_VISIBLE, HOST_COHERENT | PROTECTED) {
            let mut random = Random::new(5);
            let pool = fixture.pool(&sublet::PoolCreateInfo::new(memory_type)).unwrap();
            let info = AllocationCreateInfo { flags: Flags::MAPPED, ..AllocationCreateInfo::in_pool(&pool) };
            let pooled: Vec<_> =
                (0..50).map(|_| fixture.memory(random.size(10), 1, &info).unwrap()).collect();
            assert!(
                pooled.iter().all(|it| it.offset() % fixture.profile().limits.non_coherent_atom_size == 0)
            );
            fixture.free_all(pooled);
            fixture.destroy_pool(pool);
            let info = in_type_with(memory_type, Flags::MAPPED);
            let mut held: Vec<_> =
                (0..200).map(|_| fixture.memory(random.size(10), 1, &info).unwrap()).collect();
            let atom = fixture.profile().limits.non_coherent_atom_size;
            for allocation in &held {
                assert_eq!(allocation.offset() % atom, 0);
            }
            let mut ends: Vec<_> =
                held.iter().map(|it| (it.memory(), it.offset(), it.offset() + it.size())).collect();
            ends.sort_unstable();
            for pair in ends.windows(2) {
                let apart = pair[0].0 != pair[1].0 || pair[0].2.next_multiple_of(atom) <= pair[1].1;
                assert!(apart, "{pair:?} share an atom");
            }
            for (at, allocation) in held.iter_mut().enumerate() {
                let bytes = pattern(at as u64, allocation.size() as usize);
                fixture.allocator.copy_to_allocation(&bytes, allocation, 0).unwrap();
            }
            for (at, allocation) in held.iter().enumerate() {
                let size = allocation.size() as usize;
                let bytes = fixture.read_memory(allocation.memory(), allocation.offset(), size).unwrap();
                assert_eq!(bytes, pattern(at as u64, size));
            }
            fixture.gpu.assert_silent();
            fixture.free_all(held);
            fixture.allocator.trim();
        }
    });
}

/// Places buffers and images on both sides of every granularity page, without randomness.
#[test]
fn pages_are_not_shared_between_kinds() {
    on_every_gpu(|fixture| {
        let page = fixture.profile().limits.buffer_image_granularity;
        let auto = AllocationCreateInfo::new(MemoryUsage::GpuOnly);
        let mut buffers = Vec::new();
        let mut images = Vec::new();
        for round in 0..60 {
            buffers.push(fixture.buffer(16, vk::BufferUsageFlags::VERTEX_BUFFER, &auto).unwrap());
            let info = square(4, vk::ImageUsageFlags::SAMPLED);
            if round % 3 == 0 {
                images.push(fixture.image(&info, &auto).unwrap());
                continue;
            }
            // The allocator does not know the tiling, or not even that the resource is an image.
            // SAFETY: the create-info is valid.
            let image = unsafe { fixture.gpu.device().create_image(&info, None) }.unwrap();
            let allocation = if round % 3 == 1 {
                // SAFETY: the image is live.
                unsafe { fixture.allocator.allocate_memory_for_image(image, &auto) }.unwrap()
            } else {
                // SAFETY: the image is live.
                let requirements = unsafe { fixture.gpu.device().get_image_memory_requirements(image) };
                fixture.allocator.allocate_memory(&requirements, &auto).unwrap()
            };
            // SAFETY: the memory was allocated for the image, which is not bound.
            unsafe { fixture.allocator.bind_image_memory(&allocation, 0, image) }.unwrap();
            images.push((image, allocation));
        }
        let mut ranges = Vec::new();
        for (linear, allocations) in [
            (true, buffers.iter().map(|it| &it.1).collect::<Vec<_>>()),
            (false, images.iter().map(|it| &it.1).collect()),
        ] {
            for it in allocations {
                ranges.push((it.memory(), it.offset(), it.offset() + it.size(), linear));
            }
        }
        ranges.sort_unstable();
        for pair in ranges.windows(2) {
            let (first, second) = (pair[0], pair[1]);
            if first.0 == second.0 && first.3 != second.3 {
                assert_ne!((first.2 - 1) / page, second.1 / page, "{pair:?} share a page of {page} bytes");
            }
            assert!(first.0 != second.0 || first.2 <= second.1, "{pair:?} overlap");
        }
        buffers.into_iter().for_each(|it| fixture.destroy_buffer(it));
        images.into_iter().for_each(|it| fixture.destroy_image(it));
    });
}

/// A pool that ignores the granularity loses no space to it.
#[test]
fn the_granularity_is_ignored_on_request() {
    on_profiles(having(|profile| profile.limits.buffer_image_granularity > 256), |profile| {
        let fixture = Fixture::new(profile);
        for (flags, apart) in [
            (sublet::PoolCreateFlags::empty(), profile.limits.buffer_image_granularity),
            (sublet::PoolCreateFlags::IGNORE_BUFFER_IMAGE_GRANULARITY, 256),
        ] {
            let info = sublet::PoolCreateInfo { flags, block_size: MIB, ..sublet::PoolCreateInfo::new(0) };
            let pool = fixture.pool(&info).unwrap();
            let lowest = AllocationCreateInfo {
                flags: Flags::STRATEGY_MIN_OFFSET,
                ..AllocationCreateInfo::in_pool(&pool)
            };
            let first = fixture.memory(256, 256, &lowest).unwrap();
            let second = fixture.memory(256, 256, &lowest).unwrap();
            assert_eq!(second.offset() - first.offset(), apart);
            fixture.free_all([first, second]);
            fixture.destroy_pool(pool);
        }
    });
}

/// The same calls result in the same places.
#[test]
fn placement_is_deterministic() {
    let run = |profile| {
        let fixture = Fixture::new(profile);
        let mut random = Random::new(11);
        let mut places = Vec::new();
        let mut items = Vec::new();
        for step in 0..800 {
            if random.below(3) > 0 || items.is_empty() {
                let made: Option<Item> = make(&fixture, &mut random, step);
                places.extend(
                    made.as_ref().map(|item| (item.allocation.memory_type_index(), item.allocation.offset())),
                );
                items.extend(made);
            } else {
                let at = random.below(items.len() as u64) as usize;
                destroy(&fixture, items.swap_remove(at));
            }
        }
        items.into_iter().for_each(|item| destroy(&fixture, item));
        drop(fixture);
        places
    };
    on_every_profile(|profile| assert_eq!(run(profile), run(profile)));
}
