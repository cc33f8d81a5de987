//! The choice of a device on the command line.

use std::path::Path;

use sublet::sim::profiles::{self, Profile};
use sublet::sim::{self, Gpu, GpuBuilder};

use crate::failure::CommandFailure;
use crate::files;
use crate::text;
use crate::vulkan::{Physical, Vulkan};

/// A device named on the command line.
#[derive(Clone, Debug)]
pub(crate) enum Choice {
    /// The best device of a driver.
    Best,
    /// An index in the list of a driver's devices.
    Number(usize),
    /// Part of the name of a driver's device.
    Named(String),
    /// A simulated device.
    Simulated(&'static Profile),
}

impl Choice {
    /// Parses `--device`. Looks up and reads profiles.
    pub(crate) fn parse(said: &str) -> Result<Self, CommandFailure> {
        if let Some(name) = said.strip_prefix("sim:") {
            return Profile::by_name(name).map(Self::Simulated).ok_or_else(|| {
                let known = Profile::names().collect::<Vec<_>>().join(", ");
                CommandFailure::no_device(format!(
                    "there is no simulated device {name:?}; there are: {known}"
                ))
            });
        }
        if let Ok(number) = said.parse() {
            return Ok(Self::Number(number));
        }
        let path = Path::new(said);
        if path.extension().is_some_and(|ending| ending == "json") || path.is_file() {
            let text = files::read_text(path)?;
            let read = Profile::from_json(&text);
            return read.map(Self::Simulated).map_err(|error| {
                CommandFailure::file(format!("{said} is no profile to simulate a device with"), error)
            });
        }
        Ok(Self::Named(said.to_owned()))
    }

    /// Passes the device to a closure. [`limited`] describes the limit.
    pub(crate) fn with<R>(
        &self,
        memory_limit: Option<u64>,
        task: impl FnOnce(Physical<'_>) -> Result<R, CommandFailure>,
    ) -> Result<R, CommandFailure> {
        if let Self::Simulated(profile) = self {
            let gpu = limited(Gpu::builder(profile), memory_limit);
            return task(Physical::simulated(&gpu));
        }
        let vulkan = Vulkan::open()?;
        let devices = vulkan.devices()?;
        let found = match self {
            Self::Number(number) => devices.get(*number),
            Self::Named(name) => {
                let name = name.to_lowercase();
                devices
                    .iter()
                    .find(|device| text::device_name(&device.properties()).to_lowercase().contains(&name))
            }
            _ => devices.first(),
        };
        let missing = || {
            let names: Vec<_> = devices
                .iter()
                .enumerate()
                .map(|(number, device)| format!("{number}: {}", text::device_name(&device.properties())))
                .collect();
            let there = if names.is_empty() {
                "no Vulkan driver has a device".to_owned()
            } else {
                format!("there is {}", names.join(", "))
            };
            CommandFailure::no_device(match self {
                Self::Number(number) => format!("there is no device {number}; {there}"),
                Self::Named(name) => format!("there is no device {name:?}; {there}"),
                _ => there,
            })
        };
        task(*found.ok_or_else(missing)?)
    }
}

/// Creates a simulated device that uses at most this many MiB of the machine's memory, or half of it by default. The
/// limit protects against untrusted traces.
pub(crate) fn limited(gpu: GpuBuilder, mib: Option<u64>) -> Gpu {
    let bytes = match mib {
        Some(mib) => mib.saturating_mul(1 << 20),
        None => sim::host_memory().map_or(u64::MAX, |bytes| bytes / 2),
    };
    gpu.memory_limit(bytes).build()
}

/// Returns the built-in simulated devices.
pub(crate) fn simulated() -> impl Iterator<Item = &'static Profile> {
    profiles::ALL.iter().copied()
}
