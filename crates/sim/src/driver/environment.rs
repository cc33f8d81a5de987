//! The GPU that the environment variables ask for.

use ash::vk;

use crate::facts::extensions;
use crate::facts::extensions::NEWEST_MINOR;
use crate::facts::machine::host_memory;
use crate::facts::profiles::{Profile, default_profile};
use crate::objects::messages::Message;
use crate::objects::state::GpuState;
use crate::objects::store::HostMemoryLimit;

/// The minor version that stands for the environment's choice, see [`minor`].
pub(crate) const ENVIRONMENT: u32 = u32::MAX;

/// The minor version of an entry point that was made for version 1.`minor`.
pub(crate) fn minor(minor: u32) -> u32 {
    if minor == ENVIRONMENT { environment_minor() } else { minor.min(NEWEST_MINOR) }
}

/// The environment variable that chooses the profile of
/// [`get_instance_proc_addr`](crate::get_instance_proc_addr).
pub const PROFILE_VARIABLE: &str = "SUBLET_SIM_PROFILE";

/// The environment variable that chooses the version of Vulkan of
/// [`get_instance_proc_addr`](crate::get_instance_proc_addr): `1.0` to `1.4`.
pub const VERSION_VARIABLE: &str = "SUBLET_SIM_API_VERSION";

/// The environment variable with the most host memory that the bytes of device memory may take, in MiB: see
/// [`GpuBuilder::memory_limit`](crate::GpuBuilder::memory_limit). It is for GPUs of
/// [`get_instance_proc_addr`](crate::get_instance_proc_addr). By default it is half of [`host_memory`].
pub const MEMORY_LIMIT_VARIABLE: &str = "SUBLET_SIM_MEMORY_LIMIT";

/// The profile that the environment names, or what is wrong with that name.
pub(crate) fn environment_profile() -> Result<&'static Profile, String> {
    match std::env::var(PROFILE_VARIABLE).ok().filter(|named| !named.is_empty()) {
        None => Ok(default_profile()),
        Some(named) => Profile::by_name(&named).map_or_else(|| profile_of_file(&named), Ok),
    }
}

pub(crate) fn profile_of_file(path: &str) -> Result<&'static Profile, String> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| format!("{path:?} is no profile's name, and cannot be read as a file: {error}"))?;
    Profile::from_json(&text).map_err(|error| format!("{path:?} is no profile: {error}"))
}

pub(crate) fn environment_minor() -> u32 {
    minor_of(environment_profile().unwrap_or_else(|_| default_profile()))
}

/// The minor version that the environment asks for, else the profile's.
pub(crate) fn minor_of(profile: &Profile) -> u32 {
    let asked = std::env::var(VERSION_VARIABLE).ok();
    let minor = asked.and_then(|version| version.strip_prefix("1.")?.parse::<u32>().ok());
    minor.unwrap_or(vk::api_version_minor(profile.api_version)).min(NEWEST_MINOR)
}

/// The GPU that the environment asks for, with an instance of this minor version.
pub(crate) fn environment_state(minor: u32) -> GpuState {
    let named = environment_profile();
    let profile = named.as_ref().copied().unwrap_or_else(|_| default_profile());
    let device_minor = minor_of(profile).min(minor);
    let mut gpu_state = GpuState::new(profile, minor, device_minor, extensions::device(profile));
    let limit = environment_memory_limit();
    gpu_state.host_limit =
        std::sync::Arc::new(HostMemoryLimit::new(*limit.as_ref().unwrap_or_else(|(_, usual)| usual)));
    if let Err((wrong, usual)) = limit {
        gpu_state.report(
            "SUBLET-memory-limit",
            format!("{MEMORY_LIMIT_VARIABLE}: {wrong:?} is no number of MiB. It is {usual} bytes"),
        );
    }
    if let Err(wrong) = named {
        gpu_state.report("SUBLET-profile", format!("{PROFILE_VARIABLE}: {wrong}. It is {}", profile.name));
    }
    gpu_state
}

/// Bytes, or what is wrong with the variable, and the usual bytes.
pub(crate) fn environment_memory_limit() -> Result<u64, (String, u64)> {
    let usual = || host_memory().map_or(u64::MAX, |bytes| bytes / 2);
    match std::env::var(MEMORY_LIMIT_VARIABLE).ok().filter(|asked| !asked.is_empty()) {
        None => Ok(usual()),
        Some(asked) => {
            asked.parse::<u64>().map(|mib| mib.saturating_mul(1 << 20)).map_err(|_| (asked, usual()))
        }
    }
}

/// Prints the messages that the program has not read.
pub(crate) fn print(messages: &[Message]) {
    for message in messages {
        eprintln!("sublet::sim: {message}");
    }
}
