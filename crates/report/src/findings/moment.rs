//! Findings about the blocks of a foreign program at one moment.

use ash::vk;

use super::finding::{FindingKind, FindingObject, MemoryFinding, label_of_resource};
use super::nearly_empty::{self, MAX_KEEPERS, is_nearly_empty};
use crate::cast::index;
use crate::words::{bytes, count};
use sublet::trace::{ForeignMemory, ForeignProgram, ForeignShape, Header};

/// Fewer memory objects are not too many.
const MIN_OBJECTS: u64 = 32;

pub(super) fn findings(header: &Header, program: &ForeignProgram) -> Vec<MemoryFinding> {
    [nearly_empty(program), empty(program), one_each(header, program), lazy(header, program)]
        .into_iter()
        .flatten()
        .collect()
}

/// Returns the bytes of a block that resources occupy. Ranges of several resources count once.
fn occupied(program: &ForeignProgram, memory: &ForeignMemory) -> u64 {
    let (mut used, mut end) = (0_u64, 0_u64);
    for (offset, resource, plane) in &memory.bound {
        let bound = program.resources.get(resource).and_then(|live| live.binding(*plane));
        let size = bound.filter(|bound| bound.offset == *offset).map_or(0, |bound| bound.size);
        let last = offset.saturating_add(size).min(memory.size);
        used = used.saturating_add(last.saturating_sub(end.max(*offset)));
        end = end.max(last);
    }
    used
}

/// True for memory whose content is known: no other process and no sparse resource uses it.
fn is_known(memory: &ForeignMemory) -> bool {
    !memory.is_shared() && !memory.has_sparse && memory.was_bound
}

fn nearly_empty(program: &ForeignProgram) -> Option<MemoryFinding> {
    let known = program.memories.iter().filter(|(_, memory)| is_known(memory) && !memory.bound.is_empty());
    nearly_empty::finding(known.filter_map(|(number, memory)| {
        let used = occupied(program, memory);
        if !is_nearly_empty(memory.size, used) {
            return None;
        }
        let keepers: Vec<Box<str>> = memory
            .bound
            .iter()
            .take(MAX_KEEPERS)
            .map(|(_, resource, _)| label_of_resource(program, *resource))
            .collect();
        let more = match memory.bound.len().saturating_sub(MAX_KEEPERS) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let about = format!("{} in use, kept alive by {}{more}", bytes(used), keepers.join(", "));
        Some((memory.size - used, FindingObject::memory(program, *number, about)))
    }))
}

fn empty(program: &ForeignProgram) -> Option<MemoryFinding> {
    let is_empty = |memory: &ForeignMemory| is_known(memory) && memory.bound.is_empty();
    let found = program.memories.iter().filter(|(_, memory)| is_empty(memory));
    let objects: Vec<_> =
        found.map(|(number, _)| FindingObject::memory(program, *number, "no resource is left")).collect();
    let free = objects.iter().fold(0, |sum: u64, object| sum.saturating_add(object.bytes));
    let blocks = count(crate::cast::widen(objects.len()), "block");
    let text = format!("No resource is left in {blocks}: {}.", bytes(free));
    (!objects.is_empty()).then(|| MemoryFinding::new(FindingKind::Empty, free, text, objects))
}

/// Most memory has one resource that fills most of it.
fn one_each(header: &Header, program: &ForeignProgram) -> Option<MemoryFinding> {
    let all = crate::cast::widen(program.memories.len());
    let is_single = |memory: &ForeignMemory| {
        memory.bound.len() == 1 && !memory.is_shared() && occupied(program, memory) > memory.size / 2
    };
    let single: Vec<_> = program.memories.iter().filter(|(_, memory)| is_single(memory)).collect();
    let found = crate::cast::widen(single.len());
    if found < MIN_OBJECTS || found < all / 2 {
        return None;
    }
    let rounding = single
        .iter()
        .fold(0, |sum: u64, (_, memory)| sum.saturating_add(memory.size - occupied(program, memory)));
    let text = format!(
        "{found} of {} have one resource. The device allows {}.",
        count(all, "memory object"),
        header.max_memory_allocation_count
    );
    let objects = single.iter().map(|(number, memory)| {
        let resource = memory.bound.first().map(|(_, resource, _)| label_of_resource(program, *resource));
        FindingObject::memory(program, **number, resource.unwrap_or_default())
    });
    Some(MemoryFinding::new(FindingKind::OneEach, rounding, text, objects.collect()))
}

/// Attachments that only render passes use, on a device with memory for them.
fn lazy(header: &Header, program: &ForeignProgram) -> Option<MemoryFinding> {
    let lazily = vk::MemoryPropertyFlags::LAZILY_ALLOCATED;
    let is_lazy = |memory_type: u32| {
        header.memory_types.get(index(memory_type)).is_some_and(|kind| kind.flags.contains(lazily))
    };
    if !header.memory_types.iter().any(|kind| kind.flags.contains(lazily)) {
        return None;
    }
    let passes = vk::ImageUsageFlags::COLOR_ATTACHMENT
        | vk::ImageUsageFlags::DEPTH_STENCIL_ATTACHMENT
        | vk::ImageUsageFlags::INPUT_ATTACHMENT
        | vk::ImageUsageFlags::TRANSIENT_ATTACHMENT;
    let mut objects = Vec::new();
    for (number, resource) in &program.resources {
        let ForeignShape::Image(image) = resource.shape else { continue };
        let Some(binding) = resource.bound.first() else { continue };
        let Some(memory) = program.memories.get(&binding.memory) else { continue };
        if image.usage.is_empty() || !passes.contains(image.usage) || is_lazy(memory.memory_type) {
            continue;
        }
        objects.push(FindingObject::resource(program, *number, format!("{:?}", image.usage)));
    }
    let saved = objects.iter().fold(0, |sum: u64, object| sum.saturating_add(object.bytes));
    let images = count(crate::cast::widen(objects.len()), "image");
    let text = format!("Only render passes use {images}: {}.", bytes(saved));
    (!objects.is_empty()).then(|| MemoryFinding::new(FindingKind::LazyAllocation, saved, text, objects))
}
