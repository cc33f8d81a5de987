//! Resources in a memory type that does not suit their use best, by the library's own choice of memory types.

use std::collections::BTreeMap;

use ash::vk;

use super::finding::{FindingKind, FindingObject, MemoryFinding};
use super::survey::Survey;
use crate::cast::index;
use crate::flags::{TYPE_FLAGS, words};
use crate::words::{bytes, count, flags};
use sublet::AllocationCreateFlags;
use sublet::trace::{ForeignProgram, Header};

const VISIBLE: vk::MemoryPropertyFlags = vk::MemoryPropertyFlags::HOST_VISIBLE;
const LOCAL: vk::MemoryPropertyFlags = vk::MemoryPropertyFlags::DEVICE_LOCAL;
const CACHED: vk::MemoryPropertyFlags = vk::MemoryPropertyFlags::HOST_CACHED;

pub(super) fn findings(header: &Header, program: &ForeignProgram, survey: &Survey) -> Vec<MemoryFinding> {
    let mut found = BTreeMap::<(u32, u32), Vec<FindingObject>>::new();
    // No allocator supports the device of a faulty header. Then there is no choice to compare with.
    let _ = header.with_allocator(|_, allocator| {
        for (number, resource) in &program.resources {
            for binding in &resource.bound {
                let Some(memory) = program.memories.get(&binding.memory) else { continue };
                let actual = memory.memory_type;
                let Some(kind) = header.memory_types.get(index(actual)) else { continue };
                let mut needs = resource.needs(binding.plane);
                if memory.is_shared()
                    || needs.memory_type_bits.checked_shr(actual).is_none_or(|it| it & 1 == 0)
                {
                    continue;
                }
                // The bits of a file may name types that the device does not have.
                needs.alignment = needs.alignment.max(1);
                let is_mapped =
                    kind.flags.contains(VISIBLE) && !survey.never_mapped.contains(&binding.memory);
                let access = match (is_mapped, kind.flags.contains(CACHED)) {
                    (false, _) => AllocationCreateFlags::empty(),
                    (true, true) => AllocationCreateFlags::HOST_ACCESS_RANDOM,
                    (true, false) => AllocationCreateFlags::HOST_ACCESS_SEQUENTIAL_WRITE,
                };
                let Some(best) = needs.memory_type(allocator, access) else { continue };
                let Some(better) = header.memory_types.get(index(best)) else { continue };
                // Host access decides about visible memory only if the host accesses it.
                let judged = if is_mapped { LOCAL } else { LOCAL | VISIBLE };
                if kind.flags & judged != better.flags & judged {
                    let about = if is_mapped { "mapped" } else { "never mapped" };
                    let object = FindingObject::resource(program, *number, about);
                    found.entry((actual, best)).or_default().push(object);
                }
            }
        }
    });
    let described = |memory_type: u32| {
        let kind = header.memory_types.get(index(memory_type)).map(|kind| kind.flags).unwrap_or_default();
        format!("{memory_type} ({})", flags(&words(kind.as_raw(), TYPE_FLAGS)))
    };
    let finding = |((actual, best), objects): ((u32, u32), Vec<FindingObject>)| {
        let moved = objects.iter().fold(0, |sum: u64, object| sum.saturating_add(object.bytes));
        let text = format!(
            "Memory type {} has {} with {}. Type {} suits their use better.",
            described(actual),
            count(crate::cast::widen(objects.len()), "resource"),
            bytes(moved),
            described(best),
        );
        MemoryFinding::new(FindingKind::MemoryType, moved, text, objects)
    };
    found.into_iter().map(finding).collect()
}
