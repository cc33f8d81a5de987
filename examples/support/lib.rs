//! Shared set-up of the examples: a Vulkan device, a queue, and functions to print.
//!
//! Uses the best device of a driver, or else a simulated one, so that an example runs anywhere.
#![allow(
    missing_docs,
    clippy::missing_errors_doc,
    reason = "only the examples and a test use this, and print errors"
)]

mod arguments;
mod commands;
mod compute;
mod copies;
mod data;
mod features;
#[cfg(feature = "frame")]
mod frame_features;
mod frames;
mod loaded;
mod messenger;
mod text;

use std::error::Error;
use std::ffi::CStr;
use std::process::ExitCode;

use ash::vk;
use sublet::{AllocatorCreateFlags, AllocatorCreateInfo, sim};
#[cfg(feature = "descriptors")]
use sublet_descriptors::DescriptorDeviceCreateInfo;

pub use arguments::{Arguments, Choice};
pub use commands::{Commands, make_visible};
pub use compute::Compute;
pub use copies::{
    COPIED_FROM, COPIED_TO, ImageUse, OVERWRITTEN, Resource, buffer_info, change_use, image_info,
};
pub use data::{Random, checksum};
pub use features::Enabled;
#[cfg(feature = "frame")]
pub use frame_features::frame_features;
pub use frames::Frames;
pub use text::{Table, bytes, chain, count, heading, note};

/// The result of an example.
pub type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// The simulated device to use without a driver.
const DEFAULT_PROFILE: &str = "nvidia-gtx-1060";

/// The driver behind the Vulkan calls. Both variants destroy it when dropped.
enum Driver {
    Loaded(loaded::Device),
    Simulated(sim::Gpu),
}

/// A Vulkan device with one queue.
pub struct Context {
    /// Fields drop in this order, so this is destroyed before its device.
    commands: Commands,
    instance: ash::Instance,
    device: ash::Device,
    physical_device: vk::PhysicalDevice,
    queue: vk::Queue,
    queue_family_index: u32,
    api_version: u32,
    flags: AllocatorCreateFlags,
    driver: Driver,
    /// Why it is a simulated device, if the user did not ask for one.
    why: Option<String>,
}

/// The `main` of an example. Opens the device that the arguments select, prints it, runs `scene`, and destroys the
/// device. Prints errors with all their causes, and the driver's messages about wrong usage.
pub fn run(scene: impl FnOnce(&Context) -> Result<()>) -> ExitCode {
    run_with("", |_| Ok(()), |context, ()| scene(context))
}

/// Same for an example with its own arguments, which `own` takes and `help` describes in lines.
pub fn run_with<T>(
    help: &str,
    own: impl FnOnce(&mut Arguments) -> Result<T>,
    scene: impl FnOnce(&Context, T) -> Result<()>,
) -> ExitCode {
    tracing_subscriber::fmt()
        .with_max_level(tracing_subscriber::filter::LevelFilter::WARN)
        .with_writer(std::io::stderr)
        .init();
    let outcome = arguments::parse(help, own).and_then(|parsed| {
        let Some((choice, own)) = parsed else { return Ok(()) };
        let context = Context::open(&choice, std::env::var_os("SUBLET_VALIDATION").is_some())?;
        note(&context.introduction());
        let outcome = scene(&context, own);
        let messages = context.finish();
        for message in &messages {
            eprintln!("the driver reports: {message}");
        }
        match outcome {
            Ok(()) if !messages.is_empty() => Err("the driver found wrong use, see above".into()),
            outcome => outcome,
        }
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("\nThis did not work: {}", chain(&*error));
            ExitCode::FAILURE
        }
    }
}

impl Context {
    /// Opens the chosen device. Returns an error if validation is requested and not available.
    pub fn open(choice: &Choice, validation: bool) -> Result<Self> {
        match choice {
            Choice::Simulated(name) => Self::simulated(name),
            Choice::Vulkan => Self::on_driver(0, validation),
            Choice::Any => Self::on_driver(0, validation).or_else(|error| {
                let mut context = Self::simulated(DEFAULT_PROFILE)?;
                context.why = Some(chain(&*error));
                Ok(context)
            }),
        }
    }

    /// Opens the simulated device with the profile `name`.
    pub fn simulated(name: &str) -> Result<Self> {
        let profile = sim::Profile::by_name(name).ok_or_else(|| {
            let known = sim::Profile::names().collect::<Vec<_>>().join(", ");
            format!("there is no simulated device {name:?}; there are: {known}")
        })?;
        Self::on_gpu(sim::Gpu::builder(profile).hazards(true).build())
    }

    /// Wraps a simulated device.
    pub fn on_gpu(gpu: sim::Gpu) -> Result<Self> {
        let extensions = gpu.extensions();
        let flags = loaded::flags(|name| extensions.iter().any(|extension| extension == name));
        Ok(Self {
            commands: Commands::new(gpu.device(), gpu.queue(), gpu.queue_family_index())?,
            instance: gpu.instance().clone(),
            device: gpu.device().clone(),
            physical_device: gpu.physical_device(),
            queue: gpu.queue(),
            queue_family_index: gpu.queue_family_index(),
            api_version: gpu.api_version(),
            flags,
            driver: Driver::Simulated(gpu),
            why: None,
        })
    }

    /// Opens one of the driver's physical devices, in the order of [`Context::driver_devices`].
    pub fn on_driver(index: usize, validation: bool) -> Result<Self> {
        let loaded = loaded::Device::new(index, validation)?;
        Ok(Self {
            commands: Commands::new(&loaded.device, loaded.queue, loaded.queue_family_index)?,
            instance: loaded.instance().clone(),
            device: loaded.device.clone(),
            physical_device: loaded.physical_device,
            queue: loaded.queue,
            queue_family_index: loaded.queue_family_index,
            api_version: loaded.api_version,
            flags: loaded.flags,
            driver: Driver::Loaded(loaded),
            why: None,
        })
    }

    /// Returns names and types of the drivers' physical devices, best first.
    pub fn driver_devices() -> Result<Vec<String>> {
        loaded::device_names()
    }

    pub fn instance(&self) -> &ash::Instance {
        &self.instance
    }

    pub fn device(&self) -> &ash::Device {
        &self.device
    }

    pub fn physical_device(&self) -> vk::PhysicalDevice {
        self.physical_device
    }

    pub fn queue(&self) -> vk::Queue {
        self.queue
    }

    pub fn queue_family_index(&self) -> u32 {
        self.queue_family_index
    }

    pub fn api_version(&self) -> u32 {
        self.api_version
    }

    /// Returns the enabled features as flags of the allocator.
    pub fn allocator_flags(&self) -> AllocatorCreateFlags {
        self.flags
    }

    /// Returns the create-info of an allocator for this device. The allocator must be destroyed before the context.
    pub fn allocator_info(&self) -> AllocatorCreateInfo<'static> {
        AllocatorCreateInfo {
            flags: self.flags,
            ..AllocatorCreateInfo::new(&self.instance, &self.device, self.physical_device, self.api_version)
        }
    }

    /// Returns the create-info of a descriptor device, with all available features. Objects made from it must be
    /// destroyed before the context.
    #[cfg(feature = "descriptors")]
    pub fn descriptor_info(&self) -> DescriptorDeviceCreateInfo {
        let features = match &self.driver {
            Driver::Loaded(loaded) => loaded.descriptors,
            Driver::Simulated(gpu) => DescriptorDeviceCreateInfo::for_gpu(gpu).features,
        };
        DescriptorDeviceCreateInfo {
            features,
            ..DescriptorDeviceCreateInfo::new(
                &self.instance,
                &self.device,
                self.physical_device,
                self.api_version,
            )
        }
    }

    /// Returns the enabled features that flags and descriptors do not show. `None` for a simulated device.
    pub fn enabled(&self) -> Option<Enabled> {
        match &self.driver {
            Driver::Loaded(loaded) => Some(loaded.enabled),
            Driver::Simulated(_) => None,
        }
    }

    /// Returns the functions that need no instance. `None` for a simulated device.
    pub fn entry(&self) -> Option<&ash::Entry> {
        match &self.driver {
            Driver::Loaded(loaded) => Some(loaded.entry()),
            Driver::Simulated(_) => None,
        }
    }

    /// Returns true if surfaces of this extension can be created and presented to. Always false for a simulated device.
    pub fn has_surface(&self, extension: &CStr) -> bool {
        match &self.driver {
            Driver::Loaded(loaded) => loaded.has_surface(extension),
            Driver::Simulated(_) => false,
        }
    }

    /// Returns true if the device can draw to attachments. A simulated one has no graphics pipelines.
    pub fn draws(&self) -> bool {
        self.enabled().is_some_and(|enabled| enabled.dynamic_rendering)
    }

    /// Returns true if the queue can bind pages of sparse buffers. The feature is enabled if the device has it.
    pub fn has_sparse_binding(&self) -> bool {
        // SAFETY: the physical device belongs to this instance, which lives as long as `self`.
        let features = unsafe { self.instance.get_physical_device_features(self.physical_device) };
        // SAFETY: as above.
        let families =
            unsafe { self.instance.get_physical_device_queue_family_properties(self.physical_device) };
        let family = usize::try_from(self.queue_family_index).ok().and_then(|index| families.get(index));
        features.sparse_binding == vk::TRUE
            && family.is_some_and(|family| family.queue_flags.contains(vk::QueueFlags::SPARSE_BINDING))
    }

    /// Records commands, submits them, and waits for the device. Their writes are visible to the host and to later
    /// submissions.
    pub fn submit(&self, record: impl FnOnce(&ash::Device, vk::CommandBuffer)) -> Result<()> {
        self.commands.submit(record)
    }

    pub fn properties(&self) -> vk::PhysicalDeviceProperties {
        // SAFETY: the physical device belongs to this instance, which lives as long as `self`.
        unsafe { self.instance.get_physical_device_properties(self.physical_device) }
    }

    pub fn memory_properties(&self) -> vk::PhysicalDeviceMemoryProperties {
        // SAFETY: the physical device belongs to this instance, which lives as long as `self`.
        unsafe { self.instance.get_physical_device_memory_properties(self.physical_device) }
    }

    pub fn device_name(&self) -> String {
        loaded::name(&self.properties())
    }

    /// Returns the simulated GPU, if it is one.
    pub fn gpu(&self) -> Option<&sim::Gpu> {
        match &self.driver {
            Driver::Simulated(gpu) => Some(gpu),
            Driver::Loaded(_) => None,
        }
    }

    /// Returns the messages of the validation layer or the simulated device since the last call.
    pub fn messages(&self) -> Vec<String> {
        match &self.driver {
            Driver::Loaded(loaded) => loaded.take_messages(),
            Driver::Simulated(gpu) => gpu.take_messages().iter().map(ToString::to_string).collect(),
        }
    }

    /// Destroys the device, and returns all messages, including leaks.
    pub fn finish(self) -> Vec<String> {
        drop(self.commands);
        match self.driver {
            Driver::Loaded(loaded) => loaded.finish(),
            Driver::Simulated(gpu) => gpu.finish().iter().map(ToString::to_string).collect(),
        }
    }

    /// Returns two lines with the device in use and the alternatives.
    fn introduction(&self) -> String {
        let version = self.api_version;
        let kind = loaded::kind(self.properties().device_type);
        let origin = match &self.driver {
            Driver::Loaded(_) => "through its Vulkan driver",
            Driver::Simulated(_) => "SIMULATED: a Vulkan driver in Rust, on host memory",
        };
        let mut lines = format!(
            "Device: {} ({kind}, Vulkan {}.{}), {origin}.\n",
            self.device_name(),
            vk::api_version_major(version),
            vk::api_version_minor(version),
        );
        if let Some(why) = &self.why {
            lines += &format!("        Simulated because no driver was found: {why}.\n");
        }
        lines
            + "        `-- --device list` shows what else there is, `-- --device sim:NAME` simulates another GPU."
    }
}
