//! The kind of memory of a request, whose modelled time makes few large blocks comparable with many small ones.

use ash::vk;
use sublet::trace::DriverCost;

use super::script::Host;

/// Returns the kind of a memory type. If every type of the device is device-local, the access of the request decides:
/// the kind is that of the type that a discrete GPU would use.
pub(super) fn cost_of(
    memory: &vk::PhysicalDeviceMemoryProperties,
    memory_type: u32,
    host: Host,
) -> DriverCost {
    let types = memory.memory_types_as_slice();
    let is_local = |it: &vk::MemoryType| it.property_flags.contains(vk::MemoryPropertyFlags::DEVICE_LOCAL);
    if types.iter().all(is_local) {
        return match host {
            Host::Never => DriverCost::DeviceLocal,
            Host::Writes => DriverCost::Uncached,
            Host::Reads => DriverCost::Cached,
        };
    }
    DriverCost::of(types[memory_type as usize].property_flags)
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let by_use = [Host::Never, Host::Writes, Host::Reads].map(|host| cost_of(&one, 0, host));
        assert_eq!(by_use, [DriverCost::DeviceLocal, DriverCost::Uncached, DriverCost::Cached]);
        let several = flags(&[local, host, host | vk::MemoryPropertyFlags::HOST_CACHED, local | host]);
        let by_type = [0, 1, 2, 3].map(|at| cost_of(&several, at, Host::Writes));
        let expected =
            [DriverCost::DeviceLocal, DriverCost::Uncached, DriverCost::Cached, DriverCost::DeviceLocal];
        assert_eq!(by_type, expected);
    }
}
