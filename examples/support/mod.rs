//! What every example needs before it can show anything: a Vulkan device, a queue, and a way to print.
//!
//! The device is the best one that a driver offers, else a simulated one, so that an example runs anywhere.
#![allow(dead_code, unused_imports, reason = "each example uses a part of this")]

mod arguments;
mod commands;
mod compute;
mod copies;
mod data;
mod features;
mod frames;
mod loaded;
mod messenger;
mod text;

use std::error::Error;
use std::ffi::CStr;
use std::process::ExitCode;

use ash::vk;
use clap::{Arg, ArgMatches};
use sublet::descriptor::{DescriptorDeviceCreateInfo, DescriptorFeatures};
use sublet::{AllocatorCreateFlags, AllocatorCreateInfo, sim};

pub(crate) use arguments::Choice;
pub(crate) use commands::{Commands, make_visible};
pub(crate) use compute::{Compute, compile};
pub(crate) use copies::{
    COPIED_FROM, COPIED_TO, ImageUse, OVERWRITTEN, Resource, buffer_info, change_use, image_info,
};
pub(crate) use data::{Random, checksum};
pub(crate) use frames::Frames;
pub(crate) use text::{Table, bytes, chain, count, heading, note};

/// Whatever may go wrong in an example.
pub(crate) type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// The simulated device that is taken where there is no driver.
const DEFAULT_PROFILE: &str = "nvidia-gtx-1060";

/// The driver behind the Vulkan calls. Both variants are destroyed when they are dropped.
enum Driver {
    Loaded(loaded::Device),
    Simulated(sim::Gpu),
}

/// A Vulkan device with one queue.
pub(crate) struct Context {
    /// Destroyed before the device that it was made on: fields are dropped in this order.
    commands: Commands,
    instance: ash::Instance,
    device: ash::Device,
    physical_device: vk::PhysicalDevice,
    queue: vk::Queue,
    queue_family_index: u32,
    api_version: u32,
    flags: AllocatorCreateFlags,
    descriptors: DescriptorFeatures,
    frames: sublet_frame::Features,
    driver: Driver,
    /// Why it is a simulated device, if nobody asked for one.
    why: Option<String>,
}

/// The `main` of an example: opens the device that the arguments ask for, says which, runs `scene`, and destroys the
/// device again. Errors are printed with all their causes, and so is what the driver had to say against the program.
pub(crate) fn run(scene: impl FnOnce(&Context) -> Result<()>) -> ExitCode {
    run_with(Vec::new(), |context, _| scene(context))
}

/// The same for an example that takes arguments of its own.
pub(crate) fn run_with(own: Vec<Arg>, scene: impl FnOnce(&Context, &ArgMatches) -> Result<()>) -> ExitCode {
    tracing_subscriber::fmt()
        .with_max_level(tracing_subscriber::filter::LevelFilter::WARN)
        .with_writer(std::io::stderr)
        .init();
    let outcome = arguments::parse(own).and_then(|parsed| {
        let Some((choice, matches)) = parsed else { return Ok(()) };
        let context = Context::open(&choice, std::env::var_os("SUBLET_VALIDATION").is_some())?;
        note(&context.introduction());
        let outcome = scene(&context, &matches);
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
    /// Opens the device that was chosen. Validation, if it is asked for, has to be there: else the answer is an error.
    pub(crate) fn open(choice: &Choice, validation: bool) -> Result<Self> {
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

    /// The simulated device that poses as the GPU `name`.
    pub(crate) fn simulated(name: &str) -> Result<Self> {
        let profile = sim::Profile::by_name(name).ok_or_else(|| {
            let known = sim::Profile::names().collect::<Vec<_>>().join(", ");
            format!("there is no simulated device {name:?}; there are: {known}")
        })?;
        Self::on_gpu(sim::Gpu::builder(profile).hazards(true).build())
    }

    /// A simulated device that the caller made.
    pub(crate) fn on_gpu(gpu: sim::Gpu) -> Result<Self> {
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
            descriptors: DescriptorDeviceCreateInfo::for_gpu(&gpu).features,
            frames: sublet_frame::Features::for_gpu(&gpu),
            driver: Driver::Simulated(gpu),
            why: None,
        })
    }

    /// One of the driver's physical devices, in the order of [`Context::driver_devices`].
    pub(crate) fn on_driver(index: usize, validation: bool) -> Result<Self> {
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
            descriptors: loaded.descriptors,
            frames: loaded.frames,
            driver: Driver::Loaded(loaded),
            why: None,
        })
    }

    /// Names and types of the physical devices that drivers offer, best first.
    pub(crate) fn driver_devices() -> Result<Vec<String>> {
        loaded::device_names()
    }

    pub(crate) fn instance(&self) -> &ash::Instance {
        &self.instance
    }

    pub(crate) fn device(&self) -> &ash::Device {
        &self.device
    }

    pub(crate) fn physical_device(&self) -> vk::PhysicalDevice {
        self.physical_device
    }

    pub(crate) fn queue(&self) -> vk::Queue {
        self.queue
    }

    pub(crate) fn queue_family_index(&self) -> u32 {
        self.queue_family_index
    }

    pub(crate) fn api_version(&self) -> u32 {
        self.api_version
    }

    /// What is enabled on the device, in the allocator's words.
    pub(crate) fn allocator_flags(&self) -> AllocatorCreateFlags {
        self.flags
    }

    /// The create-info of an allocator for this device; the allocator has to go before the context does.
    pub(crate) fn allocator_info(&self) -> AllocatorCreateInfo<'static> {
        AllocatorCreateInfo {
            flags: self.flags,
            ..AllocatorCreateInfo::new(&self.instance, &self.device, self.physical_device, self.api_version)
        }
    }

    /// The create-info of a descriptor device, with everything enabled that there is; what is made from it has to go
    /// before the context does.
    pub(crate) fn descriptor_info(&self) -> DescriptorDeviceCreateInfo {
        DescriptorDeviceCreateInfo {
            features: self.descriptors,
            ..DescriptorDeviceCreateInfo::new(
                &self.instance,
                &self.device,
                self.physical_device,
                self.api_version,
            )
        }
    }

    /// What is enabled on the device, in the words of `sublet-frame`.
    pub(crate) fn frame_features(&self) -> sublet_frame::Features {
        self.frames
    }

    /// The functions that need no instance; `None` of a simulated device.
    pub(crate) fn entry(&self) -> Option<&ash::Entry> {
        match &self.driver {
            Driver::Loaded(loaded) => Some(loaded.entry()),
            Driver::Simulated(_) => None,
        }
    }

    /// Whether surfaces of this extension can be made and presented to. A simulated device has none.
    pub(crate) fn has_surface(&self, extension: &CStr) -> bool {
        match &self.driver {
            Driver::Loaded(loaded) => loaded.has_surface(extension),
            Driver::Simulated(_) => false,
        }
    }

    /// Whether the device draws to attachments: a simulated one has no graphics pipelines.
    pub(crate) fn draws(&self) -> bool {
        self.frames.dynamic_rendering && matches!(self.driver, Driver::Loaded(_))
    }

    /// Whether the queue binds pages of sparse buffers; the feature is enabled wherever the device has it.
    pub(crate) fn has_sparse_binding(&self) -> bool {
        // SAFETY: the physical device is of this instance, which lives as long as `self`.
        let features = unsafe { self.instance.get_physical_device_features(self.physical_device) };
        // SAFETY: as above.
        let families =
            unsafe { self.instance.get_physical_device_queue_family_properties(self.physical_device) };
        let family = usize::try_from(self.queue_family_index).ok().and_then(|index| families.get(index));
        features.sparse_binding == vk::TRUE
            && family.is_some_and(|family| family.queue_flags.contains(vk::QueueFlags::SPARSE_BINDING))
    }

    /// Records commands, submits them, and waits until the device is done. What they wrote is visible to the host and
    /// to later submissions.
    pub(crate) fn submit(&self, record: impl FnOnce(&ash::Device, vk::CommandBuffer)) -> Result<()> {
        self.commands.submit(record)
    }

    pub(crate) fn properties(&self) -> vk::PhysicalDeviceProperties {
        // SAFETY: the physical device is of this instance, which lives as long as `self`.
        unsafe { self.instance.get_physical_device_properties(self.physical_device) }
    }

    pub(crate) fn memory_properties(&self) -> vk::PhysicalDeviceMemoryProperties {
        // SAFETY: the physical device is of this instance, which lives as long as `self`.
        unsafe { self.instance.get_physical_device_memory_properties(self.physical_device) }
    }

    pub(crate) fn device_name(&self) -> String {
        loaded::name(&self.properties())
    }

    /// The simulated GPU, if it is one.
    pub(crate) fn gpu(&self) -> Option<&sim::Gpu> {
        match &self.driver {
            Driver::Simulated(gpu) => Some(gpu),
            Driver::Loaded(_) => None,
        }
    }

    /// What the validation layer or the simulated device had to say since the last call.
    pub(crate) fn messages(&self) -> Vec<String> {
        match &self.driver {
            Driver::Loaded(loaded) => loaded.take_messages(),
            Driver::Simulated(gpu) => gpu.take_messages().iter().map(ToString::to_string).collect(),
        }
    }

    /// Destroys the device, and answers what there was to say, leaks included.
    pub(crate) fn finish(self) -> Vec<String> {
        drop(self.commands);
        match self.driver {
            Driver::Loaded(loaded) => loaded.finish(),
            Driver::Simulated(gpu) => gpu.finish().iter().map(ToString::to_string).collect(),
        }
    }

    /// Two lines that say what the example runs on, and what else it could run on.
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
