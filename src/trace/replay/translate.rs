//! Maps the memory types of the recorded device to those of another device.

use ash::vk;

use crate::record::header::{Header, TraceMemoryType};
use sublet_engines::cast::index;

/// The memory types that replace each type of the recorded device.
#[derive(Debug)]
pub(super) struct Translation {
    /// Indexed by recorded memory type: a mask of types of this device. `None` if the devices are equal.
    types: Option<Vec<u32>>,
    /// A mask of all recorded types.
    all_there: u32,
}

/// The flags by which programs choose memory types.
const LOOKED_AT: vk::MemoryPropertyFlags = vk::MemoryPropertyFlags::from_raw(
    vk::MemoryPropertyFlags::DEVICE_LOCAL.as_raw()
        | vk::MemoryPropertyFlags::HOST_VISIBLE.as_raw()
        | vk::MemoryPropertyFlags::HOST_COHERENT.as_raw()
        | vk::MemoryPropertyFlags::HOST_CACHED.as_raw()
        | vk::MemoryPropertyFlags::LAZILY_ALLOCATED.as_raw()
        | vk::MemoryPropertyFlags::PROTECTED.as_raw(),
);

fn all(count: usize) -> u32 {
    (0..count.min(vk::MAX_MEMORY_TYPES)).fold(0, |bits, _| bits << 1 | 1)
}

impl Translation {
    pub(super) fn new(header: &Header, here: &vk::PhysicalDeviceMemoryProperties) -> Self {
        let (there, here) = (&header.memory_types, here.memory_types_as_slice());
        let equal = |(there, here): (&TraceMemoryType, &vk::MemoryType)| {
            there.flags == here.property_flags && there.heap == here.heap_index
        };
        let is_same = there.len() == here.len() && there.iter().zip(here).all(equal);
        // Vulkan has no more memory types, and a mask no more bits.
        let there = there.get(..vk::MAX_MEMORY_TYPES).unwrap_or(there);
        let types = there.iter().map(|there| like(there.flags, here)).collect();
        Self { types: (!is_same).then_some(types), all_there: all(there.len()) }
    }

    /// Translates the mask of a resource or a program. A mask of all types stays a mask of all types. Otherwise each
    /// type becomes the most similar ones.
    pub(super) fn bits(&self, there: u32) -> u32 {
        let Some(types) = &self.types else { return there };
        if there & self.all_there == self.all_there {
            return u32::MAX;
        }
        let chosen = types.iter().enumerate().filter(|(index, _)| there & (1 << index) != 0);
        // The mask contains no type of the recording.
        match chosen.fold(0, |bits, (_, here)| bits | here) {
            0 => u32::MAX,
            bits => bits,
        }
    }

    /// Translates the mask of types that a program allows. 0 means all.
    pub(super) fn wish(&self, there: u32) -> u32 {
        match self.types {
            Some(_) if there != 0 => self.bits(there),
            _ => there,
        }
    }

    /// Translates one type to the first of the most similar ones.
    pub(super) fn one(&self, there: u32) -> u32 {
        let Some(types) = &self.types else { return there };
        let here = types.get(index(there));
        here.map_or(there, |bits| bits.trailing_zeros())
    }
}

/// Returns a mask of the types that share the most flags with `flags`; among those, the types with the fewest others.
fn like(flags: vk::MemoryPropertyFlags, here: &[vk::MemoryType]) -> u32 {
    let likeness = |kind: &vk::MemoryType| {
        let common = (kind.property_flags & flags & LOOKED_AT).as_raw().count_ones();
        let other = (kind.property_flags & !flags).as_raw().count_ones();
        (common, std::cmp::Reverse(other))
    };
    let best = here.iter().map(likeness).max();
    let chosen = here.iter().enumerate().filter(|(_, kind)| Some(likeness(kind)) == best);
    chosen.fold(0, |bits, (index, _)| bits | 1 << index)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCAL: vk::MemoryPropertyFlags = vk::MemoryPropertyFlags::DEVICE_LOCAL;
    const VISIBLE: vk::MemoryPropertyFlags = vk::MemoryPropertyFlags::from_raw(0b110);
    const CACHED: vk::MemoryPropertyFlags = vk::MemoryPropertyFlags::from_raw(0b1110);

    fn header(types: &[vk::MemoryPropertyFlags]) -> Header {
        let memory_types = types.iter().map(|flags| TraceMemoryType { heap: 0, flags: *flags }).collect();
        Header { memory_types, ..Header::default() }
    }

    fn device(types: &[vk::MemoryPropertyFlags]) -> vk::PhysicalDeviceMemoryProperties {
        let mut memory = vk::PhysicalDeviceMemoryProperties::default();
        for (to, flags) in memory.memory_types.iter_mut().zip(types) {
            to.property_flags = *flags;
            memory.memory_type_count += 1;
        }
        memory
    }

    #[test]
    fn on_the_same_memory_types_nothing_is_changed() {
        let types = [LOCAL, VISIBLE];
        let same = Translation::new(&header(&types), &device(&types));
        for bits in [0, 1, 2, 3, 0xff00, u32::MAX] {
            assert_eq!((same.bits(bits), same.wish(bits)), (bits, bits));
        }
        assert_eq!((same.one(1), same.one(9)), (1, 9));
    }

    #[test]
    fn each_type_becomes_what_is_most_like_it_and_all_become_all() {
        let there = [LOCAL, VISIBLE, CACHED];
        let here = [VISIBLE, vk::MemoryPropertyFlags::empty(), LOCAL, LOCAL | VISIBLE];
        let other = Translation::new(&header(&there), &device(&here));
        assert_eq!(other.bits(0b001), 0b0100, "device memory, and not the one that the host sees as well");
        assert_eq!(other.bits(0b010), 0b0001);
        assert_eq!(other.bits(0b100), 0b0001, "nothing is cached, and the host's own memory is nearer");
        assert_eq!(other.bits(0b011), 0b0101);
        assert_eq!(other.bits(0b111), u32::MAX);
        assert_eq!(other.bits(u32::MAX), u32::MAX);
        assert_eq!(other.bits(0b1000), u32::MAX, "no type that there was");
        assert_eq!((other.wish(0), other.wish(0b001)), (0, 0b0100));
        assert_eq!((other.one(0), other.one(1), other.one(7)), (2, 0, 7));
    }

    #[test]
    fn where_there_was_one_type_any_will_do_here() {
        let other = Translation::new(&header(&[LOCAL | CACHED]), &device(&[LOCAL, VISIBLE]));
        assert_eq!((other.bits(1), other.wish(1)), (u32::MAX, u32::MAX));
    }
}
