//! Profiles as JSON: of a device that was measured, or written by hand.
//!
//! ```text
//! {"format": "sublet-device-profile", "version": 1, "name": .., "description": .., "source": ..,
//!  "device": {"name", "type", "vendor_id", "device_id", "api_version": "1.3.230", "driver_version", "driver_id"},
//!  "heaps": [{"size", "flags": [..]}], "types": [{"flags": [..], "heap"}],
//!  "limits": {..}, "features": {..}, "descriptor_pools": .., "buffers": {..}, "images": {..}}
//! ```
//!
//! Members have the names of the fields of [`Profile`] and of what it holds; flags are lists of Vulkan's names.

mod check;
mod error;
mod names;
#[cfg(test)]
mod tests;

use ash::vk;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::pool_policy::DescriptorPoolPolicy;
use super::{BufferRules, FeaturesProfile, HeapProfile, ImageRules, LimitsProfile, Profile, TypeProfile};

pub use error::{InvalidProfile, ReadProfileError};

pub(crate) use names::{flags, format};

/// The value of the first member of every profile.
pub(crate) const FORMAT: &str = "sublet-device-profile";
/// The version of the schema.
pub(crate) const VERSION: u64 = 1;

/// The members that say whether the rest can be read.
#[derive(Deserialize)]
struct ProfileHead {
    format: Option<String>,
    version: Option<u64>,
}

/// A profile that owns its parts, in the order in which they are written.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProfileDocument {
    pub(crate) format: String,
    pub(crate) version: u64,
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) source: String,
    pub(crate) device: Identity,
    pub(crate) heaps: Vec<HeapProfile>,
    pub(crate) types: Vec<TypeProfile>,
    pub(crate) limits: LimitsProfile,
    pub(crate) features: FeaturesProfile,
    pub(crate) descriptor_pools: DescriptorPoolPolicy,
    pub(crate) buffers: BufferRules,
    pub(crate) images: ImageRules,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Identity {
    pub(crate) name: String,
    #[serde(rename = "type", with = "names::device_type")]
    pub(crate) kind: vk::PhysicalDeviceType,
    pub(crate) vendor_id: u32,
    pub(crate) device_id: u32,
    #[serde(with = "names::version")]
    pub(crate) api_version: u32,
    pub(crate) driver_version: u32,
    #[serde(with = "names::driver_id")]
    pub(crate) driver_id: vk::DriverId,
}

impl From<&Profile> for ProfileDocument {
    fn from(profile: &Profile) -> Self {
        Self {
            format: FORMAT.to_owned(),
            version: VERSION,
            name: profile.name.to_owned(),
            description: profile.description.to_owned(),
            source: profile.source.to_owned(),
            device: Identity {
                name: profile.device_name.to_owned(),
                kind: profile.device_type,
                vendor_id: profile.vendor_id,
                device_id: profile.device_id,
                api_version: profile.api_version,
                driver_version: profile.driver_version,
                driver_id: profile.driver_id,
            },
            heaps: profile.heaps.to_vec(),
            types: profile.types.to_vec(),
            limits: profile.limits,
            features: profile.features,
            descriptor_pools: profile.descriptor_pools,
            buffers: profile.buffers.clone(),
            images: profile.images.clone(),
        }
    }
}

impl ProfileDocument {
    /// The profile, for as long as the process runs.
    pub(crate) fn keep(self) -> &'static Profile {
        let device = self.device;
        Box::leak(Box::new(Profile {
            name: self.name.leak(),
            description: self.description.leak(),
            source: self.source.leak(),
            device_name: device.name.leak(),
            device_type: device.kind,
            vendor_id: device.vendor_id,
            device_id: device.device_id,
            api_version: device.api_version,
            driver_version: device.driver_version,
            driver_id: device.driver_id,
            descriptor_pools: self.descriptor_pools,
            heaps: self.heaps.leak(),
            types: self.types.leak(),
            limits: self.limits,
            features: self.features,
            buffers: self.buffers,
            images: self.images,
        }))
    }
}

/// The profiles that were read, each with its JSON: the same profile is kept once.
static KEPT: Mutex<Vec<(String, &'static Profile)>> = Mutex::new(Vec::new());

/// The profile of a text, checked.
pub(crate) fn read(text: &str) -> Result<ProfileDocument, ReadProfileError> {
    let head: ProfileHead = serde_json::from_str(text).map_err(ReadProfileError::json)?;
    match (head.format.as_deref(), head.version) {
        (Some(FORMAT), Some(VERSION)) => {}
        (Some(FORMAT), version) => return Err(ReadProfileError::Version { version }),
        _ => return Err(ReadProfileError::OtherFormat),
    }
    let document: ProfileDocument = serde_json::from_str(text).map_err(ReadProfileError::json)?;
    check::check(&document)?;
    Ok(document)
}

/// Checks a profile, and keeps it for as long as the process runs.
pub(crate) fn checked(document: ProfileDocument) -> Result<&'static Profile, InvalidProfile> {
    check::check(&document)?;
    Ok(keep_once(document))
}

fn keep_once(document: ProfileDocument) -> &'static Profile {
    let text = text_of(&document);
    let mut kept = KEPT.lock();
    if let Some((_, profile)) = kept.iter().find(|(known, _)| *known == text) {
        return profile;
    }
    let profile = document.keep();
    kept.push((text, profile));
    profile
}

fn text_of(document: &ProfileDocument) -> String {
    // A profile has only strings, numbers and lists, so that JSON can hold it.
    serde_json::to_string_pretty(document).unwrap_or_default()
}

impl Profile {
    /// The profile as JSON, for [`from_json`](Self::from_json): one object whose `"format"` is
    /// `"sublet-device-profile"`, its members named as the fields are. The text ends with a line feed.
    #[must_use]
    pub fn to_json(&self) -> String {
        text_of(&ProfileDocument::from(self)) + "\n"
    }

    /// Reads a profile that [`to_json`](Self::to_json) or `sublet profile` wrote, or that was written by hand.
    ///
    /// It stays until the process ends, as those of [`ALL`](super::ALL) do; the same text read again is the same
    /// profile. [`by_name`](Self::by_name) does not know it.
    ///
    /// # Errors
    ///
    /// If the text is no JSON, no profile, or one of a later version; if a member is missing, unknown or of another
    /// type; and if the values describe no device that could be: see [`InvalidProfile`]. Nothing is kept then.
    ///
    /// ```
    /// use sublet_sim::{Gpu, profiles::Profile};
    /// let text = Profile::by_name("arm-mali-g52").unwrap().to_json();
    /// let smaller = text.replacen("\"size\": ", "\"size\": 1", 1);
    /// let profile = Profile::from_json(&smaller)?;
    /// assert_eq!(Gpu::new(profile).profile().types.len(), 3);
    /// assert!(Profile::from_json("{}").is_err());
    /// # Ok::<(), sublet_sim::profiles::ReadProfileError>(())
    /// ```
    pub fn from_json(text: &str) -> Result<&'static Self, ReadProfileError> {
        Ok(keep_once(read(text)?))
    }
}
