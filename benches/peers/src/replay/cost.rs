//! The modelled time of `vkAllocateMemory`, so that few large blocks can be compared with many small ones.

use ash::vk;

use super::script::Host;

const MIB: f64 = (1 << 20) as f64;

/// The sizes of the table, in MiB.
const SIZES: [f64; 4] = [1.0, 16.0, 64.0, 256.0];

/// The kind of memory, which determines the time of an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MemoryCost {
    DeviceLocal,
    /// Host memory that is not cached.
    Uncached,
    /// Host memory that is cached.
    Cached,
}

impl MemoryCost {
    /// Returns the kind of a memory type. If every type of the device is device-local, the access of the request
    /// decides: the kind is that of the type that a discrete GPU would use.
    pub(super) fn of(memory: &vk::PhysicalDeviceMemoryProperties, memory_type: u32, host: Host) -> Self {
        let types = memory.memory_types_as_slice();
        let is = |memory_type: &vk::MemoryType, flag| memory_type.property_flags.contains(flag);
        if types.iter().all(|memory_type| is(memory_type, vk::MemoryPropertyFlags::DEVICE_LOCAL)) {
            return match host {
                Host::Never => Self::DeviceLocal,
                Host::Writes => Self::Uncached,
                Host::Reads => Self::Cached,
            };
        }
        match &types[memory_type as usize] {
            it if is(it, vk::MemoryPropertyFlags::DEVICE_LOCAL) => Self::DeviceLocal,
            it if is(it, vk::MemoryPropertyFlags::HOST_CACHED) => Self::Cached,
            _ => Self::Uncached,
        }
    }

    /// Milliseconds by [`SIZES`], medians of 7 on an H200 with driver 580.
    const fn table(self) -> [f64; 4] {
        match self {
            Self::DeviceLocal => [0.25, 0.54, 1.3, 4.1],
            Self::Uncached => [0.66, 5.0, 18.0, 77.0],
            Self::Cached => [0.15, 2.1, 14.0, 58.0],
        }
    }

    /// Returns the modelled milliseconds for a memory object of this size. Linear between the sizes of the table and
    /// beyond the last, and constant below the first.
    pub(super) fn milliseconds(self, bytes: u64) -> f64 {
        let (size, table) = (bytes as f64 / MIB, self.table());
        if size <= SIZES[0] {
            return table[0];
        }
        let at = SIZES.iter().position(|&end| size <= end).unwrap_or(SIZES.len() - 1);
        let (low, high) = (SIZES[at - 1], SIZES[at]);
        table[at - 1] + (table[at] - table[at - 1]) * (size - low) / (high - low)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_table_and_linear_between_them() {
        let of = |kind: MemoryCost, mib: f64| kind.milliseconds((mib * MIB) as u64);
        assert_eq!(
            [0.1, 1.0, 16.0, 64.0, 256.0].map(|mib| of(MemoryCost::Uncached, mib)),
            [0.66, 0.66, 5.0, 18.0, 77.0]
        );
        assert!((of(MemoryCost::DeviceLocal, 40.0) - 0.92).abs() < 1e-9);
        assert!((of(MemoryCost::Cached, 448.0) - 102.0).abs() < 1e-9, "as between 64 and 256");
    }

    #[test]
    fn a_device_with_only_device_local_types_is_classified_by_use() {
        let flags = |all: &[vk::MemoryPropertyFlags]| {
            let mut memory = vk::PhysicalDeviceMemoryProperties {
                memory_type_count: all.len() as u32,
                ..Default::default()
            };
            memory.memory_types.iter_mut().zip(all).for_each(|(it, &flags)| it.property_flags = flags);
            memory
        };
        let (local, host) = (vk::MemoryPropertyFlags::DEVICE_LOCAL, vk::MemoryPropertyFlags::HOST_VISIBLE);
        let one = flags(&[local | host | vk::MemoryPropertyFlags::HOST_CACHED]);
        let by_use = [Host::Never, Host::Writes, Host::Reads].map(|host| MemoryCost::of(&one, 0, host));
        assert_eq!(by_use, [MemoryCost::DeviceLocal, MemoryCost::Uncached, MemoryCost::Cached]);
        let several = flags(&[local, host, host | vk::MemoryPropertyFlags::HOST_CACHED, local | host]);
        let by_type = [0, 1, 2, 3].map(|at| MemoryCost::of(&several, at, Host::Writes));
        let expected =
            [MemoryCost::DeviceLocal, MemoryCost::Uncached, MemoryCost::Cached, MemoryCost::DeviceLocal];
        assert_eq!(by_type, expected);
    }
}
