//! Materials that come and go while frames are in flight: each is a few descriptors in a row, and shaders know it by
//! one number. The heap is a descriptor buffer, one set, or a copy of a set for each frame, whichever the device is
//! best at.
//!
//! `cargo run --example descriptor_heap`

mod support;

use std::collections::VecDeque;
use std::process::ExitCode;

use ash::vk;
use sublet::descriptor::{
    BindingModel, BufferDescriptor, BufferStore, ClassicStore, CreateHeapError, Descriptor, DescriptorDevice,
    DescriptorFeatures, DescriptorHeap, DescriptorKind, DescriptorRange, HeapCreateInfo, HeapKind, HeapStore,
    SetStore, SlotState,
};
use sublet::retire::Clock;
use sublet::{AllocationCreateInfo, Allocator, MemoryUsage};
use support::{Context, Frames, Result, Table, note};

const IN_FLIGHT: u32 = 3;
/// Few, so that the table below shows them all.
const SLOTS: u32 = 24;
/// Bytes that one descriptor shows.
const PIECE: u64 = 256;

fn main() -> ExitCode {
    support::run(heaps)
}

fn heaps(context: &Context) -> Result<()> {
    // SAFETY: the context has made instance and device, has enabled what it says, and outlives all that is made here.
    let allocator = unsafe { Allocator::new(&context.allocator_info()) }?;
    // SAFETY: as above.
    let device = unsafe { DescriptorDevice::new(&context.descriptor_info()) }?;

    let mut usage = vk::BufferUsageFlags::STORAGE_BUFFER;
    let has_addresses = device.features().contains(DescriptorFeatures::BUFFER_DEVICE_ADDRESS);
    if has_addresses {
        usage |= vk::BufferUsageFlags::SHADER_DEVICE_ADDRESS;
    }
    let info = vk::BufferCreateInfo::default().size(PIECE * u64::from(SLOTS)).usage(usage);
    // SAFETY: the create-info is valid.
    let (buffer, memory) =
        unsafe { allocator.create_buffer(&info, &AllocationCreateInfo::new(MemoryUsage::Auto)) }?;
    let address = has_addresses.then(|| {
        let info = vk::BufferDeviceAddressInfo::default().buffer(buffer);
        // SAFETY: the buffer is live, was made for it, and the feature is enabled.
        unsafe { context.device().get_buffer_device_address(&info) }
    });
    let piece = |at: u32| {
        let piece = BufferDescriptor::new(buffer, PIECE * u64::from(at % SLOTS), PIECE);
        Descriptor::StorageBuffer(address.map_or(piece, |address| piece.with_buffer_address(address)))
    };

    let info = HeapCreateInfo {
        slots: SLOTS,
        types: &[DescriptorKind::StorageBuffer],
        name: "materials",
        ..HeapCreateInfo::new(HeapKind::Resource)
    };
    if device.model() == BindingModel::Buffer {
        note("The heap is a descriptor buffer.");
        let heap = DescriptorHeap::new(BufferStore::new(&device, &allocator, &info)?);
        stream(context, &heap, piece, |_, commands| {
            // SAFETY: the command buffer is being recorded, and every device allows one buffer.
            unsafe { BufferStore::cmd_bind_all(commands, &[heap.store()]) };
        })?;
        // SAFETY: `stream` has waited for the device, here and below.
        unsafe { heap.into_store().destroy() };
    } else {
        match SetStore::new(&device, &info) {
            Ok(store) => {
                note("The heap is one set, which is written while it is bound.");
                let heap = DescriptorHeap::new(store);
                // And `SetStore::cmd_bind` once for each command buffer.
                stream(context, &heap, piece, |_, _| ())?;
                // SAFETY: as above.
                unsafe { heap.into_store().destroy() };
            }
            Err(CreateHeapError::Unsupported { .. }) => {
                note("The heap is a copy of a set for each frame in flight.");
                // SAFETY: the buffer outlives the store.
                let store = unsafe { ClassicStore::new(&device, &info, IN_FLIGHT, &[piece(0)]) }?;
                let heap = DescriptorHeap::new(store);
                stream(context, &heap, piece, |slot, _| {
                    // SAFETY: the slot's fence was waited for, and the buffer is live.
                    unsafe { heap.store().update(slot) };
                })?;
                // SAFETY: as above.
                unsafe { heap.into_store().destroy() };
            }
            Err(error) => return Err(error.into()),
        }
    }
    // SAFETY: the device is idle.
    unsafe { allocator.destroy_buffer(buffer, memory) }?;
    let leaks = allocator.destroy();
    if leaks.is_empty() { Ok(()) } else { Err(format!("forgotten: {leaks:?}").into()) }
}

/// A material of 1 to 5 descriptors comes with each frame, and stays for four.
fn stream<S: HeapStore>(
    context: &Context,
    heap: &DescriptorHeap<S>,
    piece: impl Fn(u32) -> Descriptor,
    bind: impl Fn(u32, vk::CommandBuffer),
) -> Result<()> {
    let clock = Clock::new();
    let lane = clock.add_lane()?;
    let mut frames = Frames::new(context, IN_FLIGHT)?;
    let mut alive: VecDeque<DescriptorRange> = VecDeque::new();
    let mut table = Table::new(&[">frame", ">descriptors", ">first index", ">largest free", "the heap"]);
    for frame in 0..12 {
        let slot = u32::try_from(frames.wait()?)?;
        let ticket = clock.begin_frame(lane, slot);
        heap.collect(&clock)?;

        let material = heap.allocate(1 + frame * 3 % 5)?;
        for at in 0..material.count() {
            // SAFETY: the buffer is live, and no shader looks at slots that were just allocated.
            unsafe { heap.write(material, at, &piece(frame + at)) }?;
        }
        alive.push_back(material);
        table.row([&frame, &material.count(), &material.first(), &heap.largest_free(), &drawing(heap)]);
        // Shaders get `material.first()` in push constants.
        frames.submit(|_, commands| bind(slot, commands))?;
        if alive.len() > 3 {
            if let Some(oldest) = alive.pop_front() {
                // Dead for the program now, and for the device once it is done with this frame.
                // SAFETY: no later recording uses it.
                unsafe { heap.retire(ticket, oldest) }?;
            }
        }
        clock.end_frame(ticket)?;
    }
    table.print();
    note("#: alive, -: waits for the device, .: free.");
    frames.wait_for_all()
}

fn drawing<S: HeapStore>(heap: &DescriptorHeap<S>) -> String {
    let mut line = String::new();
    heap.walk(|run| {
        let signs = [(SlotState::Free, "."), (SlotState::Live, "#")];
        let sign = signs.iter().find(|(state, _)| *state == run.state).map_or("-", |&(_, sign)| sign);
        line += &sign.repeat(usize::try_from(run.count).unwrap_or(0));
    });
    line
}
