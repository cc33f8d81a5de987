//! The binding models, and the best model for each driver.

use std::ops::RangeInclusive;

use ash::vk;

/// The way in which shaders access descriptors. A device has one model, because binding sets invalidates descriptor
/// buffers and vice versa.
///
/// ```
/// use ash::vk::DriverId;
/// use sublet_descriptors::BindingModel;
/// // A Turing card, and a Pascal card of the same driver.
/// assert_eq!(BindingModel::of_driver(DriverId::NVIDIA_PROPRIETARY, 0x1e04), BindingModel::Buffer);
/// assert_eq!(BindingModel::of_driver(DriverId::NVIDIA_PROPRIETARY, 0x1c03), BindingModel::Sets);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub enum BindingModel {
    /// [`Self::of_driver`], or [`Self::Sets`] if the program has not enabled the required extension.
    #[default]
    Auto,
    /// `VkDescriptorSet`s, and push descriptors if they are enabled.
    Sets,
    /// `VK_EXT_descriptor_buffer`.
    Buffer,
    /// `VK_EXT_descriptor_heap`, for heaps only: pipelines then have no sets. Only chosen if the program requests it.
    /// **Tested on lavapipe of Mesa 26.2 and on the simulated driver, but on no GPU yet.**
    Heap,
}

/// The best model of a driver for a range of devices.
struct KnownModel {
    driver: vk::DriverId,
    /// `VkPhysicalDeviceProperties::deviceID`.
    devices: RangeInclusive<u32>,
    model: BindingModel,
}

const fn known(driver: vk::DriverId, devices: RangeInclusive<u32>, model: BindingModel) -> KnownModel {
    KnownModel { driver, devices, model }
}

/// Lower device ids are of cards before Turing.
const TURING: u32 = 0x1e00;
/// Lower device ids are of cards before RDNA 3, or of integrated graphics.
const RDNA3: u32 = 0x7440;
const ALL: RangeInclusive<u32> = 0..=u32::MAX;

/// Each row has its source above it: a measurement of this repository, or a pull request of DXVK, which also chooses by
/// driver. Other drivers get sets, for which every driver is tuned.
///
/// No row selects heaps. Their pipelines have mappings and no layout, and a [`Binder`](crate::Binder) cannot bind them,
/// so a program that did not request them would not work. No source names a driver on which they are better: NVIDIA's
/// 595.71 lists the extension without its feature (HansKristian-Work/vkd3d-proton#3127), and DXVK, which uses them from
/// 595.84 on, reports that they were slower with the first such drivers.
const TABLE: [KnownModel; 8] = [
    // Half the CPU cycles (H200, driver 580: `benches/RESULTS.md`). GPU time is equal, or up to 5 % higher:
    // doitsujin/dxvk#4964.
    known(vk::DriverId::NVIDIA_PROPRIETARY, TURING..=u32::MAX, BindingModel::Buffer),
    // 40 % slower: doitsujin/dxvk#5044.
    known(vk::DriverId::NVIDIA_PROPRIETARY, 0..=TURING - 1, BindingModel::Sets),
    // 10 % faster if the CPU is the limit: doitsujin/dxvk#4948.
    known(vk::DriverId::MESA_RADV, ALL, BindingModel::Buffer),
    known(vk::DriverId::AMD_PROPRIETARY, RDNA3..=u32::MAX, BindingModel::Buffer),
    // 90 % slower before RDNA 3, where multisampling loses its compression (GPUOpen-Drivers/AMDVLK#410). The Windows
    // driver inherited this: doitsujin/dxvk#5045.
    known(vk::DriverId::AMD_OPEN_SOURCE, ALL, BindingModel::Sets),
    // 2 to 4 % slower: doitsujin/dxvk#5009.
    known(vk::DriverId::INTEL_OPEN_SOURCE_MESA, ALL, BindingModel::Sets),
    // Faults: doitsujin/dxvk#5497.
    known(vk::DriverId::INTEL_PROPRIETARY_WINDOWS, ALL, BindingModel::Sets),
    // A CPU driver, which reads descriptors from memory in both models: doitsujin/dxvk#4964.
    known(vk::DriverId::MESA_LLVMPIPE, ALL, BindingModel::Buffer),
];

impl BindingModel {
    /// Returns the best known model of a driver, on a device with this id (`VkPhysicalDeviceProperties::deviceID`).
    /// [`Self::Sets`] for unknown drivers. Never [`Self::Auto`], and never [`Self::Heap`]: its pipelines have no layout,
    /// so programs must request it.
    ///
    /// [The guide](crate::guide#which-driver-gets-what) has the table with its sources. A program with
    /// better measurements sets [`DescriptorDeviceCreateInfo::model`](super::DescriptorDeviceCreateInfo::model).
    #[must_use]
    pub fn of_driver(driver: vk::DriverId, device_id: u32) -> Self {
        let row = TABLE.iter().find(|known| known.driver == driver && known.devices.contains(&device_id));
        row.map_or(Self::Sets, |known| known.model)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_driver_gets_what_it_is_known_to_be_best_at_and_others_get_sets() {
        let of = BindingModel::of_driver;
        assert_eq!(of(vk::DriverId::NVIDIA_PROPRIETARY, 0x2335), BindingModel::Buffer, "H200");
        assert_eq!(of(vk::DriverId::NVIDIA_PROPRIETARY, 0x1dff), BindingModel::Sets, "Volta");
        assert_eq!(of(vk::DriverId::AMD_PROPRIETARY, 0x73bf), BindingModel::Sets, "RX 6800");
        assert_eq!(of(vk::DriverId::AMD_PROPRIETARY, 0x744c), BindingModel::Buffer, "RX 7900");
        assert_eq!(of(vk::DriverId::AMD_OPEN_SOURCE, 0x744c), BindingModel::Sets);
        assert_eq!(of(vk::DriverId::ARM_PROPRIETARY, 0), BindingModel::Sets, "not listed");
    }

    /// A program that did not request them creates its pipelines with layouts.
    #[test]
    fn no_driver_gets_heaps_unasked() {
        assert!(TABLE.iter().all(|known| known.model != BindingModel::Heap));
    }

    #[test]
    fn no_two_rows_speak_of_one_device() {
        for (at, one) in TABLE.iter().enumerate() {
            for other in &TABLE[at + 1..] {
                let apart =
                    one.devices.end() < other.devices.start() || other.devices.end() < one.devices.start();
                assert!(one.driver != other.driver || apart, "{:?}", one.driver);
            }
        }
    }
}
