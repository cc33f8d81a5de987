//! The requests of a foreign program.

use ash::vk;
use sublet::sim::{Gpu, Profile};
use sublet::trace::{
    Allocate, Event, ForeignImage, ForeignMemoryFlags, ForeignObject, ForeignRequirements, MemoryNumber,
    Record, Replay, ResourceNumber, Trace,
};
use sublet::{AllocationCreateFlags, ResourceKind};

use crate::fixture::*;

fn memory(number: u64, size: u64) -> Event {
    let (memory, flags) = (MemoryNumber(number), ForeignMemoryFlags::empty());
    Event::MemoryAllocated { memory, memory_type: 0, size, flags, resource: None }
}

fn freed(number: u64) -> Event {
    Event::MemoryFreed { memory: MemoryNumber(number) }
}

/// A buffer with its requirements and its bind.
fn buffer(number: u64, size: u64, at: (u64, u64)) -> [Event; 3] {
    let resource = ResourceNumber(number);
    let requirements =
        ForeignRequirements { size, alignment: 256, memory_type_bits: !0, ..ForeignRequirements::default() };
    [
        Event::BufferCreated { resource, size: size - 1, usage: 0x20, flags: 0 },
        Event::Requirements { resource, requirements: Box::new(requirements) },
        Event::Bound { resource, plane: None, memory: MemoryNumber(at.0), offset: at.1 },
    ]
}

/// An image with its requirements and its bind to memory 1.
fn image(number: u64, tiling: vk::ImageTiling, offset: u64, size: u64) -> [Event; 3] {
    let (resource, memory) = (ResourceNumber(number), MemoryNumber(1));
    let image = ForeignImage { tiling, ..ForeignImage::default() };
    let requirements =
        ForeignRequirements { size, alignment: 256, memory_type_bits: 1, ..ForeignRequirements::default() };
    [
        Event::ImageCreated { resource, image: Box::new(image) },
        Event::Requirements { resource, requirements: Box::new(requirements) },
        Event::Bound { resource, plane: None, memory, offset },
    ]
}

fn destroyed(number: u64) -> Event {
    Event::ResourceDestroyed { resource: ResourceNumber(number) }
}

fn named(object: ForeignObject, name: &str) -> Event {
    Event::Named { object, name: name.into() }
}

fn requests(events: impl IntoIterator<Item = Event>) -> Trace {
    let records = events.into_iter().map(|event| Record { event, ..Record::default() }).collect();
    let requests = Trace { records, ..Trace::default() }.resource_requests();
    check(&requests);
    requests
}

fn made(trace: &Trace) -> Vec<&Allocate> {
    let made = trace.records.iter().filter_map(|record| match &record.event {
        Event::Allocate(made) => Some(&**made),
        _ => None,
    });
    made.collect()
}

fn frees(trace: &Trace) -> Vec<u32> {
    let frees = trace.records.iter().filter_map(|record| match record.event {
        Event::Free { allocation } => Some(allocation.0),
        _ => None,
    });
    frees.collect()
}

#[test]
fn a_request_is_a_bound_resource_and_not_its_block() {
    let events =
        [memory(1, 64 * MIB)].into_iter().chain(buffer(1, 4096, (1, 0))).chain(buffer(2, 8192, (1, 4096)));
    let trace = requests(events.chain([destroyed(1), freed(1), destroyed(2)]));
    let all = made(&trace);
    assert_eq!(all.iter().map(|made| made.resource.size).collect::<Vec<_>>(), [4096, 8192]);
    assert_eq!(all[0].resource.kind, ResourceKind::Buffer);
    assert_eq!((all[0].resource.alignment, all[0].resource.usage), (256, 0x20));
    assert_eq!(all[0].wanted.memory_type_bits, 1, "the type that the program chose");
    assert_eq!(frees(&trace), [0, 1], "with the resource, and with its memory");
}

#[test]
fn memory_without_a_resource_is_a_request_of_its_own() {
    let events = [
        memory(1, MIB),
        memory(2, 2 * MIB),
        named(ForeignObject::Memory(MemoryNumber(2)), "scratch"),
        freed(2),
    ];
    let trace = requests(events);
    let names: Vec<_> = made(&trace).iter().map(|made| made.wanted.name.clone().unwrap()).collect();
    assert_eq!(names, ["memory without a resource".into(), Box::from("scratch")]);
    assert!(made(&trace).iter().all(|made| made.resource.kind == ResourceKind::Unknown));
    assert_eq!(frees(&trace), [1]);
}

#[test]
fn shared_memory_is_one_request_with_whatever_is_bound_to_it() {
    let mut shared = memory(1, MIB);
    if let Event::MemoryAllocated { flags, .. } = &mut shared {
        *flags = ForeignMemoryFlags::IMPORTED;
    }
    let trace = requests([shared].into_iter().chain(buffer(1, 4096, (1, 0))).chain([destroyed(1), freed(1)]));
    let all = made(&trace);
    assert_eq!((all.len(), all[0].resource.size), (1, MIB));
    assert!(all[0].wanted.has_chain && all[0].granted.dedicated);
    assert_eq!(frees(&trace), [0]);
}

/// A render graph puts targets of disjoint lifetimes into the same memory.
#[test]
fn resources_that_alias_are_one_request() {
    let events =
        [memory(1, MIB)].into_iter().chain(buffer(1, 4096, (1, 4096))).chain(buffer(2, 4096, (1, 0)));
    let aliases = buffer(3, 8192, (1, 6144)).into_iter().chain(buffer(4, 1024, (1, 4096)));
    let trace = requests(events.chain(aliases).chain([1, 3, 2, 4].map(destroyed)));
    let all = made(&trace);
    assert_eq!(all.len(), 2);
    assert_eq!(all[0].resource.size, 14336 - 4096, "from the start of the first to the end of the last");
    assert!(all[0].wanted.flags.contains(AllocationCreateFlags::CAN_ALIAS));
    assert_eq!(all[1].wanted.flags, AllocationCreateFlags::empty(), "it only touches them");
    assert_eq!(frees(&trace), [1, 0], "with the last of them");
}

/// A third resource overlaps both. The two are one request from then on, as if it had been bound first.
#[test]
fn a_resource_that_overlaps_two_requests_joins_them() {
    let events =
        [memory(1, MIB)].into_iter().chain(buffer(1, 4096, (1, 8192))).chain(buffer(2, 4096, (1, 0)));
    let bridge = buffer(3, 8192, (1, 2048)).into_iter().chain(buffer(4, 256, (1, 4096)));
    let name = named(ForeignObject::Resource(ResourceNumber(2)), "depth");
    let trace = requests(events.chain(bridge).chain([name]).chain([3, 4, 1, 2].map(destroyed)));
    let all = made(&trace);
    assert_eq!(all.iter().map(|made| made.resource.size).collect::<Vec<_>>(), [12288]);
    assert!(all[0].wanted.flags.contains(AllocationCreateFlags::CAN_ALIAS));
    assert_eq!(all[0].wanted.name.as_deref(), Some("depth"), "the first name of one of them");
    assert_eq!(frees(&trace), [0], "with the last of them");
    assert!(matches!(trace.records.last().unwrap().event, Event::Free { .. }));
}

/// Each resource overlaps the request before and the one after it, so that requests join in a chain.
#[test]
fn requests_join_in_a_chain() {
    let apart = (0..8).flat_map(|at| buffer(at, 64, (1, (7 - at) * 128)));
    let bridges = (0..7).flat_map(|at| buffer(8 + at, 192, (1, at * 128)));
    let events = [memory(1, MIB)].into_iter().chain(apart).chain(bridges);
    let trace = requests(events.chain((0..15).map(destroyed)));
    let sizes: Vec<_> = made(&trace).iter().map(|made| made.resource.size).collect();
    assert_eq!((sizes, frees(&trace)), (vec![7 * 128 + 64], vec![0]));
}

#[test]
fn requests_are_mapped_if_their_memory_was() {
    let map = |number| Event::MemoryMapped { memory: MemoryNumber(number), offset: 0, size: None };
    let before = [memory(1, MIB), map(1)].into_iter().chain(buffer(1, 4096, (1, 0)));
    let after = [memory(2, MIB)].into_iter().chain(buffer(2, 4096, (2, 0))).chain([map(2)]);
    let ended = buffer(3, 4096, (3, 0)).into_iter().chain([destroyed(3), map(3)]);
    let trace = requests(before.chain(after).chain([memory(3, MIB)]).chain(ended));
    let mapped: Vec<_> =
        made(&trace).iter().map(|made| made.wanted.flags.contains(AllocationCreateFlags::MAPPED)).collect();
    assert_eq!(mapped, [true, true, false]);
}

/// Other allocators keep all host-visible memory mapped, also below images that no host can read.
#[test]
fn images_with_optimal_tiling_are_not_mapped() {
    let map = Event::MemoryMapped { memory: MemoryNumber(1), offset: 0, size: None };
    let both = |first| {
        let optimal = image(first, vk::ImageTiling::OPTIMAL, first * 65536, 65536);
        optimal.into_iter().chain(image(first + 1, vk::ImageTiling::LINEAR, (first + 1) * 65536, 65536))
    };
    let trace = requests([memory(1, MIB)].into_iter().chain(both(1)).chain([map]).chain(both(3)));
    let mapped: Vec<_> =
        made(&trace).iter().map(|made| made.wanted.flags.contains(AllocationCreateFlags::MAPPED)).collect();
    assert_eq!(mapped, [false, true, false, true]);
}

/// A request for several resources is mapped if the host can read one of them.
#[test]
fn requests_are_mapped_if_one_of_their_resources_is() {
    let map = Event::MemoryMapped { memory: MemoryNumber(1), offset: 0, size: None };
    let optimal = image(1, vk::ImageTiling::OPTIMAL, 0, 65536);
    // The second resource aliases the first, or a third one joins both.
    let alias = vec![image(2, vk::ImageTiling::LINEAR, 0, 4096)];
    let joined = vec![
        image(2, vk::ImageTiling::LINEAR, 65536, 65536),
        image(3, vk::ImageTiling::OPTIMAL, 32768, 65536),
    ];
    for others in [alias, joined] {
        for maps_first in [true, false] {
            let bound = optimal.iter().chain(others.iter().flatten()).cloned();
            let events: Vec<_> = match maps_first {
                true => [memory(1, MIB), map.clone()].into_iter().chain(bound).collect(),
                false => [memory(1, MIB)].into_iter().chain(bound).chain([map.clone()]).collect(),
            };
            let trace = requests(events);
            let first = made(&trace)[0].wanted.flags;
            assert!(first.contains(AllocationCreateFlags::MAPPED), "{maps_first} {first:?}");
        }
    }
}

#[test]
fn names_and_frames_are_those_of_the_program() {
    let name = |name| named(ForeignObject::Resource(ResourceNumber(1)), name);
    let bound = [memory(1, MIB)].into_iter().chain(buffer(1, 4096, (1, 0)));
    let trace = requests(bound.chain([name("mesh"), Event::Presented, name("mesh 2"), Event::Presented]));
    assert_eq!(made(&trace)[0].wanted.name.as_deref(), Some("mesh"));
    let later: Vec<_> = trace.records[1..].iter().map(|record| record.event.clone()).collect();
    let allocation = made(&trace)[0].allocation;
    let renamed = Event::SetName { allocation, name: Some("mesh 2".into()) };
    assert_eq!(later, [Event::Frame { index: 0 }, renamed, Event::Frame { index: 1 }]);
}

#[test]
fn planes_are_requests_and_end_with_their_image() {
    let resource = ResourceNumber(1);
    let image = Box::new(ForeignImage { usage: vk::ImageUsageFlags::SAMPLED, ..ForeignImage::default() });
    let plane = |plane, size| {
        let requirements = ForeignRequirements {
            plane: Some(plane),
            size,
            alignment: 16,
            memory_type_bits: 1,
            ..ForeignRequirements::default()
        };
        [
            Event::Requirements { resource, requirements: Box::new(requirements) },
            Event::Bound {
                resource,
                plane: Some(plane),
                memory: MemoryNumber(1),
                offset: u64::from(plane) * 8192,
            },
        ]
    };
    let events = [memory(1, MIB), Event::ImageCreated { resource, image }];
    let trace =
        requests(events.into_iter().chain(plane(0, 4096)).chain(plane(1, 2048)).chain([destroyed(1)]));
    assert_eq!(made(&trace).iter().map(|made| made.resource.size).collect::<Vec<_>>(), [4096, 2048]);
    assert_eq!(made(&trace)[0].resource.kind, ResourceKind::ImageOptimal);
    assert_eq!(frees(&trace), [0, 1]);
}

#[test]
fn the_device_ends_everything() {
    let events = [memory(1, MIB), memory(2, MIB)].into_iter().chain(buffer(1, 4096, (1, 0)));
    let trace = requests(events.chain([Event::DeviceDestroyed]));
    assert_eq!(frees(&trace).len(), 2);
}

#[test]
fn the_requests_can_be_replayed_and_nothing_is_left() {
    let gpu = Gpu::new(Profile::by_name("intel-uhd-630").unwrap());
    let allocator = allocator(&gpu);
    let many = (1..200).flat_map(|number| buffer(number, 65536, (1, number * 65536)));
    let ends = (1..200).map(destroyed);
    let trace = requests([memory(1, 64 * MIB), memory(2, MIB)].into_iter().chain(many).chain(ends));
    let report = Replay::new(&trace, &allocator).finish();
    assert_eq!((report.unknown, report.refused), (0, 0));
    assert_eq!(report.memory.peak_used_bytes, 199 * 65536 + MIB);
    gpu.assert_silent();
}

/// A faulty file cannot make more records than a few for each of its own.
#[test]
fn a_resource_that_is_bound_again_makes_no_requests() {
    const MANY: u64 = 50;
    let small = (1..=MANY).flat_map(|number| buffer(number, 4096, (1, number * 4096)));
    let large = buffer(MANY + 1, MIB, (1, 0));
    let again = std::iter::repeat_n(large[2].clone(), 50);
    let name = named(ForeignObject::Resource(ResourceNumber(MANY + 1)), "large");
    let named = std::iter::repeat_n(name, 50);
    let once =
        requests([memory(1, 64 * MIB)].into_iter().chain(small).chain(large).chain(again).chain(named));
    assert_eq!(made(&once).len(), 1, "the large one overlaps all others");
    assert_eq!(once.records.len(), 50, "the first name is part of the request");
}
