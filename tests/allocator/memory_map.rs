//! The memory map contains every allocation with its place, and nothing else.

use std::collections::BTreeMap;

use ash::vk;
use sublet::{
    Allocation, AllocationCreateFlags as Flags, AllocationCreateInfo, AllocationId, MemoryMap, MemoryUsage,
    PoolCreateInfo, ResourceKind,
};

use crate::common::*;

/// Returns memory, offset and size of every allocation by id. Checks that the chunks tile their blocks.
fn places(map: &MemoryMap) -> BTreeMap<AllocationId, (vk::DeviceMemory, u64, u64)> {
    let mut places = BTreeMap::new();
    for vector in &map.vectors {
        assert!(
            vector.blocks.windows(2).all(|pair| pair[0].id < pair[1].id),
            "blocks in the order of their ids"
        );
        for block in &vector.blocks {
            let mut end = 0;
            for chunk in &block.chunks {
                assert_eq!(chunk.offset, end, "chunks tile their block");
                assert!(chunk.size > 0);
                end += chunk.size;
                if let Some(allocation) = &chunk.allocation {
                    let place = (block.memory, chunk.offset, chunk.size);
                    assert_eq!(places.insert(allocation.id, place), None, "ids are unique");
                }
            }
            assert_eq!(end, block.size);
        }
        for dedicated in &vector.dedicated {
            let place = (dedicated.memory, 0, dedicated.size);
            assert_eq!(places.insert(dedicated.allocation.id, place), None, "ids are unique");
        }
    }
    assert_eq!(places.len(), map.allocations().count());
    places
}

fn check(fixture: &Fixture, held: &[Allocation]) {
    let map = fixture.allocator.memory_map();
    let places = places(&map);
    assert_eq!(places.len(), held.len());
    for allocation in held {
        let (memory, offset, size) = places[&allocation.id()];
        assert_eq!((memory, offset), (allocation.memory(), allocation.offset()));
        assert!(size >= allocation.size());
    }
    let memories: u64 =
        map.vectors.iter().map(|vector| (vector.blocks.len() + vector.dedicated.len()) as u64).sum();
    assert_eq!(memories, fixture.gpu.live().memories, "every block is in the map, empty ones too");
}

#[test]
fn everything_is_where_the_map_says() {
    on_every_gpu(|fixture| {
        let types = fixture.types();
        let info = PoolCreateInfo { block_size: 256 * KIB, ..PoolCreateInfo::new(*types.last().unwrap()) };
        let pool = fixture.pool(&PoolCreateInfo { min_block_count: 2, ..info }).unwrap();
        let mut random = Random::new(20);
        let mut held = Vec::new();
        for round in 0..from_environment("SUBLET_CASES", 64) {
            if held.len() > 4 && random.below(3) == 0 {
                fixture.free(held.swap_remove(random.below(held.len() as u64) as usize));
            } else {
                let flags = if random.below(8) == 0 { Flags::DEDICATED_MEMORY } else { Flags::empty() };
                let from_pool = flags.is_empty() && random.below(3) == 0;
                let info = if from_pool {
                    AllocationCreateInfo::in_pool(&pool)
                } else {
                    in_type_with(random.pick(&types), flags)
                };
                held.push(fixture.memory(random.size(16), 1 << random.below(9), &info).unwrap());
            }
            if round % 8 == 0 {
                check(&fixture, &held);
            }
        }
        check(&fixture, &held);
        fixture.free_all(held);
        fixture.destroy_pool(pool);
        check(&fixture, &[]);
    });
}

/// A block keeps its id, and no id is used twice, although indices of blocks are reused.
#[test]
fn blocks_keep_their_ids() {
    let fixture = Fixture::new(sublet::sim::Profile::by_name("lavapipe").unwrap());
    let pool = fixture.pool(&PoolCreateInfo { block_size: MIB, ..PoolCreateInfo::new(0) }).unwrap();
    let ids = || -> Vec<(u32, vk::DeviceMemory)> {
        let map = fixture.allocator.pool_memory_map(&pool).unwrap();
        map.blocks.iter().map(|block| (block.id, block.memory)).collect()
    };
    let block = || fixture.memory(MIB, 1, &AllocationCreateInfo::in_pool(&pool)).unwrap();
    let mut held: Vec<_> = (0..4).map(|_| block()).collect();
    let of = |held: &[Allocation], from: u32| -> Vec<_> {
        (from..).zip(held).map(|(id, it)| (id, it.memory())).collect()
    };
    assert_eq!(ids(), of(&held, 0));
    fixture.free(held.remove(0));
    fixture.free(held.remove(0));
    fixture.allocator.trim();
    assert_eq!(ids(), of(&held, 2));
    held.extend([block(), block()]);
    assert_eq!(ids(), of(&held, 2));
    fixture.free_all(held);
    fixture.destroy_pool(pool);
}

/// The map records the kind of each resource, its usage, and the mapping count of its memory.
#[test]
fn resources_are_told_apart() {
    on_every_gpu(|fixture| {
        let auto = AllocationCreateInfo::new(MemoryUsage::Auto);
        let usage = vk::BufferUsageFlags::INDEX_BUFFER | vk::BufferUsageFlags::TRANSFER_DST;
        let buffer =
            fixture.buffer(1000, usage, &AllocationCreateInfo { name: Some("indices"), ..auto }).unwrap();
        let sampled = vk::ImageUsageFlags::SAMPLED;
        let image = fixture.image(&square(64, sampled), &auto).unwrap();
        let raw = fixture.memory(500, 4, &in_type(fixture.types()[0])).unwrap();
        let map = fixture.allocator.memory_map();
        let entry = |allocation: &Allocation| map.allocations().find(|it| it.id == allocation.id()).unwrap();
        let shown = entry(&buffer.1);
        assert_eq!((shown.kind, shown.usage), (ResourceKind::Buffer, usage.as_raw()));
        assert_eq!(shown.name.as_deref(), Some("indices"));
        let shown = entry(&image.1);
        assert_eq!((shown.kind, shown.usage), (ResourceKind::ImageOptimal, sampled.as_raw()));
        assert_eq!((shown.name.as_deref(), shown.user_data, shown.caller), (None, None, None));
        assert_eq!((entry(&raw).kind, entry(&raw).usage), (ResourceKind::Unknown, 0));
        fixture.free(raw);
        fixture.destroy_buffer(buffer);
        fixture.destroy_image(image);
    });
}

#[test]
fn users_of_mappings_are_counted() {
    on_every_gpu(|fixture| {
        let memory_type = fixture.types_with(HOST_VISIBLE, PROTECTED)[0];
        let count = || {
            let map = fixture.allocator.memory_map();
            let vector = &map.vectors[memory_type as usize];
            assert_eq!((vector.memory_type_index, vector.pool), (memory_type, None));
            let dedicated: Vec<_> = vector.dedicated.iter().map(|it| it.map_count).collect();
            (vector.blocks[0].map_count, dedicated)
        };
        let mut plain = fixture.memory(100, 1, &in_type(memory_type)).unwrap();
        assert_eq!(count(), (0, vec![]));
        let mapped = fixture.memory(100, 1, &in_type_with(memory_type, Flags::MAPPED)).unwrap();
        let own = fixture
            .memory(100, 1, &in_type_with(memory_type, Flags::MAPPED | Flags::DEDICATED_MEMORY))
            .unwrap();
        let guard = fixture.allocator.map(&mut plain).unwrap();
        assert_eq!(count(), (2, vec![1]));
        drop(guard);
        assert_eq!(count(), (1, vec![1]));
        fixture.free_all([plain, mapped, own]);
    });
}
