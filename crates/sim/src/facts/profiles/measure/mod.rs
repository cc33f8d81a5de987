//! Makes a profile of a real device: what Vulkan reports, and the rules behind its requirements, which it finds by
//! querying many buffers and images.
//!
//! ```text
//! facts    what the physical device says: heaps, types, limits, features
//! probe    a device, made for asking what buffers and images need
//! buffers  alignments, rounding, memory types, and from which size on a dedicated allocation is preferred
//! images   the same of images; `fit` finds the tile whose arithmetic agrees with the most of them
//! pools    when descriptor pools refuse
//! ```

mod buffers;
mod error;
mod facts;
mod fit;
mod images;
mod pools;
mod probe;
#[cfg(test)]
mod tests;

use ash::vk;

use super::document::{Identity, ProfileDocument};
use super::{Profile, document};
use facts::MeasuredFacts;
use probe::Probe;

pub use error::MeasureError;

#[expect(unsafe_code, reason = "calls Vulkan")]
impl Profile {
    /// Measures a device: a simulated one with this profile has its heaps, memory types, limits, features, and, as far
    /// as the model of this crate goes, its requirements. `api_version` is what the **instance** was made for.
    ///
    /// It takes fractions of a second: it makes a device, creates several hundred buffers and images on it, and
    /// destroys them. It allocates no memory. [`source`](Self::source) says what was measured, and what was not.
    ///
    /// The profile stays until the process ends.
    ///
    /// # Errors
    ///
    /// If no device can be made of it, or if its driver reports impossible values. Nothing stays on the device.
    ///
    /// # Safety
    ///
    /// 1. `instance` is live.
    /// 2. It was made for this version.
    /// 3. `physical_device` is one of its own (VUID-vkCreateDevice-physicalDevice-parameter).
    ///
    /// ```
    /// use sublet_sim::{Gpu, profiles::Profile};
    /// let gpu = Gpu::new(Profile::by_name("nvidia-gtx-1060").unwrap());
    /// // SAFETY: the instance is live, and the physical device is its own.
    /// let measured = unsafe { Profile::measure(gpu.instance(), gpu.physical_device(), gpu.api_version()) }?;
    /// assert_eq!(measured.types.len(), 11);
    /// assert_eq!(measured.buffers.prefers_dedicated_from, Some(64 << 20));
    /// # Ok::<(), sublet_sim::profiles::MeasureError>(())
    /// ```
    pub unsafe fn measure(
        instance: &ash::Instance,
        physical_device: vk::PhysicalDevice,
        api_version: u32,
    ) -> Result<&'static Self, MeasureError> {
        // SAFETY: 1 to 3 of `measure`.
        let facts = unsafe { MeasuredFacts::read(instance, physical_device, api_version) }?;
        // SAFETY: 1 to 3 of `measure`; `facts` were read for this version, and the probe is dropped here.
        let probe = unsafe { Probe::new(instance, physical_device, &facts) }?;
        let buffers = buffers::measure(&probe, &facts);
        let images = images::measure(&probe, &facts);
        let descriptor_pools = pools::measure(&probe);
        let source = source(&facts, &probe, &images);
        let MeasuredFacts { properties, .. } = facts;
        let document = ProfileDocument {
            format: document::FORMAT.to_owned(),
            version: document::VERSION,
            name: name(&facts.device_name),
            description: format!("{}, as it was measured.", facts.device_name),
            source,
            device: Identity {
                name: facts.device_name,
                kind: properties.device_type,
                vendor_id: properties.vendor_id,
                device_id: properties.device_id,
                api_version: facts.api_version,
                driver_version: properties.driver_version,
                driver_id: facts.driver_id,
            },
            heaps: facts.heaps,
            types: facts.types,
            limits: facts.limits,
            features: facts.features,
            descriptor_pools,
            buffers,
            images: images.rules,
        };
        Ok(document::checked(document)?)
    }
}

/// A profile's name for a device: its letters and digits, with hyphens between.
fn name(device: &str) -> String {
    let lower = device.to_ascii_lowercase();
    let words = lower.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let name = words.collect::<Vec<_>>().join("-");
    if name.is_empty() { "unnamed".to_owned() } else { name }
}

/// The text that says where the numbers come from, and which of them were not measured.
fn source(facts: &MeasuredFacts, probe: &Probe<'_>, images: &images::Measured) -> String {
    let mut source = format!(
        "Measured by Sublet {} through Vulkan: heaps, types, limits, features, when descriptor pools refuse, and the \
         requirements of {} buffers and images. Of the {} images that the tiles were found by, {} are as large as the driver \
         has them.",
        env!("CARGO_PKG_VERSION"),
        probe.asked(),
        images.sized,
        images.exact,
    );
    let missing: Vec<_> = facts.missing.iter().copied().chain(images.missing.iter().copied()).collect();
    if !missing.is_empty() {
        source += " Not measured, typical: ";
        source += &missing.join(", ");
        source.push('.');
    }
    source
}
