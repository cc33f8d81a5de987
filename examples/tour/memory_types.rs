//! The default vectors: the program states the usage, and the allocator finds the memory type.

use ash::vk;
use sublet::{AllocationCreateFlags as Flags, AllocationCreateInfo, MemoryUsage};

use crate::kept::{Kept, image, texture};
use sublet_examples::{Result, Table, bytes, heading, note};

/// Prints the heaps and types of the device.
pub(crate) fn show_device(kept: &Kept<'_>) {
    heading("The device's memory");
    note("A heap is memory; a type is a way to use a heap.");
    let memory = kept.context.memory_properties();
    let mut table = Table::new(&[">heap", ">size", ">type", "properties"]);
    for (index, kind) in memory.memory_types_as_slice().iter().enumerate() {
        let heap = memory.memory_heaps_as_slice().get(usize::try_from(kind.heap_index).unwrap_or(0));
        table.row([
            &kind.heap_index,
            &bytes(heap.map_or(0, |heap| heap.size)),
            &index,
            &properties(kind.property_flags),
        ]);
    }
    table.print();
}

pub(crate) fn run(kept: &mut Kept<'_>) -> Result<()> {
    note("create_buffer() and create_image() take what the memory is for, not a memory type.");
    let mut table = Table::new(&["for", "asked with", ">size", ">type", "properties"]);
    let mut reached = 0;
    for (purpose, usage, flags) in [
        ("vertex buffer", MemoryUsage::Auto, Flags::empty()),
        ("uniform buffer", MemoryUsage::Auto, Flags::HOST_ACCESS_SEQUENTIAL_WRITE.union(Flags::MAPPED)),
        ("staging buffer", MemoryUsage::AutoPreferHost, Flags::HOST_ACCESS_SEQUENTIAL_WRITE),
        ("read-back buffer", MemoryUsage::Auto, Flags::HOST_ACCESS_RANDOM.union(Flags::MAPPED)),
        ("cold data", MemoryUsage::AutoPreferHost, Flags::empty()),
    ] {
        let uses = match purpose {
            "vertex buffer" | "cold data" => vk::BufferUsageFlags::VERTEX_BUFFER,
            "uniform buffer" => vk::BufferUsageFlags::UNIFORM_BUFFER,
            "staging buffer" => vk::BufferUsageFlags::TRANSFER_SRC,
            _ => vk::BufferUsageFlags::TRANSFER_DST,
        };
        let info = AllocationCreateInfo { flags, name: Some(purpose), ..AllocationCreateInfo::new(usage) };
        let (buffer, allocation) = kept.buffer(1 << 20, uses, &info)?;
        let asked = format!("{usage:?} {}", host_access(flags));
        reached |= add(kept, &mut table, purpose, &asked, allocation.size(), allocation.memory_type_index());
        kept.buffers.push((buffer, allocation));
    }
    let info = AllocationCreateInfo { name: Some("texture"), ..AllocationCreateInfo::new(MemoryUsage::Auto) };
    // SAFETY: the create-info is valid.
    let (image, allocation) = unsafe { kept.allocator.create_image(&texture(512, 512), &info) }?;
    reached |= add(kept, &mut table, "texture", "Auto", allocation.size(), allocation.memory_type_index());
    kept.images.push((image, allocation));

    // Then all other types: requested by index, for a buffer or else for an attachment that stays on the GPU.
    let types = kept.context.memory_properties().memory_type_count;
    let mut unreached = Vec::new();
    for memory_type in (0..types).filter(|memory_type| reached & (1 << memory_type) == 0) {
        if take_type(kept, &mut table, memory_type).is_err() {
            unreached.push(memory_type.to_string());
        }
    }
    table.print();
    if !unreached.is_empty() {
        note(&format!(
            "  This device has neither buffers nor attachments in: type {}.",
            unreached.join(", ")
        ));
    }
    Ok(())
}

/// Allocates in a memory type that no usage chose.
fn take_type(kept: &mut Kept<'_>, table: &mut Table, memory_type: u32) -> Result<()> {
    let flags = kept.context.memory_properties().memory_types[usize::try_from(memory_type)?].property_flags;
    let lazy = flags.contains(vk::MemoryPropertyFlags::LAZILY_ALLOCATED);
    let info = AllocationCreateInfo {
        memory_type_bits: 1 << memory_type,
        name: Some("chosen by its bit"),
        ..AllocationCreateInfo::new(if lazy { MemoryUsage::GpuLazilyAllocated } else { MemoryUsage::Unknown })
    };
    let asked = if lazy { "GpuLazilyAllocated" } else { "memory_type_bits" };
    if let (false, Ok((buffer, allocation))) =
        (lazy, kept.buffer(1 << 20, vk::BufferUsageFlags::STORAGE_BUFFER, &info))
    {
        add(kept, table, "storage buffer", asked, allocation.size(), memory_type);
        kept.buffers.push((buffer, allocation));
        return Ok(());
    }
    let mut attachment =
        image(512, 512, vk::Format::R8G8B8A8_UNORM).usage(vk::ImageUsageFlags::COLOR_ATTACHMENT);
    if lazy {
        attachment.usage |= vk::ImageUsageFlags::TRANSIENT_ATTACHMENT;
    }
    // SAFETY: the create-info is valid.
    let (image, allocation) = unsafe { kept.allocator.create_image(&attachment, &info) }
        .map_err(|error| sublet_examples::chain(&error))?;
    add(kept, table, "attachment", asked, allocation.size(), memory_type);
    kept.images.push((image, allocation));
    Ok(())
}

/// Adds a row, and returns the type's bit.
fn add(kept: &Kept<'_>, table: &mut Table, purpose: &str, asked: &str, size: u64, memory_type: u32) -> u32 {
    let types = kept.context.memory_properties().memory_types;
    let flags =
        usize::try_from(memory_type).map_or_else(|_| Default::default(), |at| types[at].property_flags);
    table.row([&purpose, &asked.trim_end(), &bytes(size), &memory_type, &properties(flags)]);
    1 << memory_type
}

fn host_access(flags: Flags) -> &'static str {
    if flags.contains(Flags::HOST_ACCESS_RANDOM) {
        "+ host reads"
    } else if flags.contains(Flags::HOST_ACCESS_SEQUENTIAL_WRITE) {
        "+ host writes"
    } else {
        ""
    }
}

/// Returns Vulkan's flags as words.
fn properties(flags: vk::MemoryPropertyFlags) -> String {
    let text = format!("{flags:?}").to_lowercase().replace('_', "-").replace(" | ", ", ");
    if text.is_empty() { "(none)".into() } else { text }
}
