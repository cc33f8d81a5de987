//! Snapshots of programs that allocate their memory without Sublet.

use ash::vk;
use sublet::ResourceKind;
use sublet::trace::{Event, ForeignMemoryFlags, ForeignObject, MemoryNumber, ResourceNumber, SparseBinding};
use sublet_report::{Snapshot, recording_to_perfetto};

use crate::watched::{Watched, any_trace};

const MIB: u64 = 1 << 20;
const SAMPLED: vk::ImageUsageFlags = vk::ImageUsageFlags::SAMPLED;

#[test]
fn blocks_are_the_memory_and_allocations_the_resources() {
    let mut game = Watched::on("nvidia-rtx-5070-ti");
    let block = game.allocate(1, 64 * MIB);
    let mesh = game.buffer(4 * MIB, vk::BufferUsageFlags::VERTEX_BUFFER);
    game.bind(mesh, block, MIB);
    game.name(mesh, "mesh");
    let moment = game.trace.records.len();
    let target = game.image(8 * MIB, vk::ImageUsageFlags::COLOR_ATTACHMENT);
    let dedicated = game.dedicate(1, target, 9 * MIB);
    game.map(block);
    game.event(Event::Budget { heap: 0, budget: 77, usage: 66 });

    let before = Snapshot::of_trace_at(&game.trace, moment);
    assert_eq!(before.allocations().count(), 1);
    let snapshot = Snapshot::of_trace_at(&game.trace, usize::MAX);
    let vector = &snapshot.vectors[0];
    assert_eq!((vector.memory_type, vector.blocks.len(), vector.dedicated.len()), (1, 1, 1));
    assert_eq!(u64::from(vector.blocks[0].id), block.0);
    assert_eq!(vector.blocks[0].map_count, 1);
    let chunks: Vec<_> = vector.blocks[0].chunks.iter().map(|chunk| (chunk.offset, chunk.size)).collect();
    assert_eq!(chunks, [(0, MIB), (MIB, 4 * MIB), (5 * MIB, 59 * MIB)]);
    let found = snapshot.allocations().next().unwrap();
    assert_eq!((found.entry.kind, found.entry.name.as_deref()), (ResourceKind::Buffer, Some("mesh")));
    assert_eq!(vector.dedicated[0].size, 9 * MIB);
    assert_eq!(vector.dedicated[0].allocation.usage, 0x10);
    assert_eq!((snapshot.heaps[0].budget, snapshot.heaps[0].usage), (77, 66));
    assert_eq!(before.run, snapshot.run, "moments of one recording match by identity");
    game.free(dedicated);
    assert_eq!(Snapshot::of_trace_at(&game.trace, usize::MAX).allocations().count(), 1);
}

#[test]
fn resources_that_alias_are_one_allocation() {
    let mut game = Watched::on("nvidia-rtx-5070-ti");
    let block = game.allocate(1, 16 * MIB);
    for (name, offset) in [("first", 0), ("second", MIB), ("third", 4 * MIB)] {
        let image = game.image(2 * MIB, SAMPLED);
        game.bind(image, block, offset);
        game.name(image, name);
    }
    let snapshot = Snapshot::of_trace_at(&game.trace, usize::MAX);
    let found: Vec<_> =
        snapshot.allocations().map(|it| (it.offset, it.size, it.entry.name.clone().unwrap())).collect();
    assert_eq!(found, [(0, 3 * MIB, "first + second".into()), (4 * MIB, 2 * MIB, "third".into())]);
}

#[test]
fn memory_for_other_processes_and_sparse_ranges_is_in_use() {
    let mut game = Watched::on("nvidia-rtx-5070-ti");
    let (memory, flags) = (MemoryNumber(100), ForeignMemoryFlags::EXPORTABLE);
    game.event(Event::MemoryAllocated { memory, memory_type: 1, size: MIB, flags, resource: None });
    game.event(Event::Named { object: ForeignObject::Memory(memory), name: "for the encoder".into() });
    let sparse = game.allocate(1, 2 * MIB);
    let binding = SparseBinding { memory: Some(sparse), size: 65536, ..SparseBinding::default() };
    game.event(Event::SparseBound { resource: ResourceNumber(9), binding: Box::new(binding) });
    let empty = game.allocate(1, 4 * MIB);
    let snapshot = Snapshot::of_trace_at(&game.trace, usize::MAX);
    let names: Vec<_> = snapshot.allocations().map(|it| it.entry.name.clone().unwrap()).collect();
    assert_eq!(names, ["sparse ranges".into(), Box::from("for the encoder")]);
    assert_eq!(snapshot.figures().total.empty_bytes, 4 * MIB, "{empty:?}");
}

#[test]
fn a_timeline_has_the_lives_of_resources() {
    let mut game = Watched::on("nvidia-rtx-5070-ti");
    let block = game.allocate(1, 64 * MIB);
    let mesh = game.buffer(4 * MIB, vk::BufferUsageFlags::VERTEX_BUFFER);
    game.name(mesh, "mesh");
    game.bind(mesh, block, 0);
    game.event(Event::Presented);
    let json = recording_to_perfetto(&game.trace);
    assert!(
        json.contains(r#"{"ph":"b","name":"mesh","cat":"allocation""#) && json.contains("frame 0"),
        "{json}"
    );
}

/// A recording comes from anywhere. Each of its moments is a snapshot that can be read again.
#[test]
fn any_recording_has_consistent_snapshots() {
    let mut random = fastrand::Rng::with_seed(3);
    for _ in 0..60 {
        let trace = any_trace(&mut random);
        let snapshot = Snapshot::of_trace_at(&trace, usize::MAX);
        assert_eq!(Snapshot::from_json(&snapshot.to_json()).unwrap(), snapshot);
        let _ = snapshot.figures();
    }
}
