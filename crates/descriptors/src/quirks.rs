//! Driver faults and their workarounds.

use ash::vk;
use bitflags::bitflags;

bitflags! {
    /// Driver faults that the library works around. [`DescriptorDevice`](super::DescriptorDevice) selects them by
    /// driver and version; a program can override them with
    /// [`DescriptorDeviceCreateInfo::quirks`](super::DescriptorDeviceCreateInfo::quirks).
    ///
    /// ```
    /// use sublet_descriptors::DescriptorQuirks;
    /// assert!(DescriptorQuirks::default().is_empty());
    /// ```
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
    pub struct DescriptorQuirks: u32 {
        /// `vkResetDescriptorPool` does not reset the number of sets, unless the pool has
        /// `VK_DESCRIPTOR_POOL_CREATE_FREE_DESCRIPTOR_SET_BIT`: pools get that flag. Seen with Intel's Windows driver
        /// 31.0.101.4502.
        const RESET_KEEPS_SET_COUNT = 1;
        /// `vkResetDescriptorPool` leaks: pools are destroyed and recreated instead. Seen with Qualcomm's drivers
        /// 512.597 to 512.671 for Adreno 730.
        const RESET_LEAKS = 1 << 1;
        /// The driver returns `VK_ERROR_FRAGMENTED_POOL` where the specification excludes it. With this flag, the
        /// library never frees single sets in the driver. Without it, the error is handled as well: the pool provides
        /// no more sets until it is empty. Seen with Arm's drivers for Mali G76.
        const FRAGMENTS = 1 << 2;
    }
}

/// Qualcomm's `driverVersion` is Vulkan's encoding; these are the versions seen to leak.
const QUALCOMM_LEAKS: std::ops::RangeInclusive<u32> =
    vk::make_api_version(0, 512, 597, 0)..=vk::make_api_version(0, 512, 671, 4095);
/// Intel's Windows drivers encode a version as `major << 14 | minor`, from the last two numbers of the written version.
const INTEL_KEEPS_COUNT: u32 = 101 << 14 | 4502;

impl DescriptorQuirks {
    /// Returns the known faults of a driver version.
    #[must_use]
    pub fn of_driver(driver: vk::DriverId, version: u32) -> Self {
        match driver {
            vk::DriverId::INTEL_PROPRIETARY_WINDOWS if version == INTEL_KEEPS_COUNT => {
                Self::RESET_KEEPS_SET_COUNT
            }
            vk::DriverId::QUALCOMM_PROPRIETARY if QUALCOMM_LEAKS.contains(&version) => Self::RESET_LEAKS,
            vk::DriverId::ARM_PROPRIETARY => Self::FRAGMENTS,
            _ => Self::empty(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drivers_that_are_known_are_recognised_and_their_neighbours_are_not() {
        let intel = |version| DescriptorQuirks::of_driver(vk::DriverId::INTEL_PROPRIETARY_WINDOWS, version);
        assert_eq!(intel(101 << 14 | 4502), DescriptorQuirks::RESET_KEEPS_SET_COUNT);
        assert!(intel(101 << 14 | 4503).is_empty());
        let adreno = |minor| {
            DescriptorQuirks::of_driver(
                vk::DriverId::QUALCOMM_PROPRIETARY,
                vk::make_api_version(0, 512, minor, 0),
            )
        };
        assert!(adreno(596).is_empty() && adreno(672).is_empty());
        assert_eq!(adreno(597), DescriptorQuirks::RESET_LEAKS);
        assert_eq!(adreno(671), DescriptorQuirks::RESET_LEAKS);
        assert_eq!(
            DescriptorQuirks::of_driver(vk::DriverId::ARM_PROPRIETARY, 1),
            DescriptorQuirks::FRAGMENTS
        );
    }
}
