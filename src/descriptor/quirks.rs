//! What drivers do that they should not, and what is done about it.
#![forbid(unsafe_code)]

use ash::vk;
use bitflags::bitflags;

bitflags! {
    /// Faults of drivers that the library works around. [`DescriptorDevice`](super::DescriptorDevice) knows them by
    /// driver and version; a program that knows better says so in
    /// [`DescriptorDeviceCreateInfo::quirks`](super::DescriptorDeviceCreateInfo::quirks).
    ///
    /// ```
    /// use sublet::descriptor::DescriptorQuirks;
    /// assert!(DescriptorQuirks::default().is_empty());
    /// ```
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
    pub struct DescriptorQuirks: u32 {
        /// `vkResetDescriptorPool` forgets to lower the number of sets, unless the pool was made with
        /// `VK_DESCRIPTOR_POOL_CREATE_FREE_DESCRIPTOR_SET_BIT`: such pools get that flag. Seen with Intel's driver for
        /// Windows 31.0.101.4502.
        const RESET_KEEPS_SET_COUNT = 1;
        /// `vkResetDescriptorPool` leaks: pools are destroyed and made anew instead. Seen with Qualcomm's drivers 512.597
        /// to 512.671 for Adreno 730.
        const RESET_LEAKS = 1 << 1;
        /// `VK_ERROR_FRAGMENTED_POOL` comes although the specification rules it out: pools are left to drain once they
        /// have answered so, instead of being asked again. Seen with Arm's drivers for Mali G76. It is handled without
        /// this switch as well; with it a pool from which sets were freed gives no more sets before it is empty.
        const FRAGMENTS = 1 << 2;
    }
}

/// Qualcomm's `driverVersion` is Vulkan's encoding; these are the versions seen to leak.
const QUALCOMM_LEAKS: std::ops::RangeInclusive<u32> =
    vk::make_api_version(0, 512, 597, 0)..=vk::make_api_version(0, 512, 671, 4095);
/// Intel's drivers for Windows encode a version as `major << 14 | minor`, of the last two numbers that are written.
const INTEL_KEEPS_COUNT: u32 = 101 << 14 | 4502;

impl DescriptorQuirks {
    /// What is known of a driver.
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
