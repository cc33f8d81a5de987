//! The allocator on every Vulkan device of this machine, with the validation layer, and on every simulated device.
//! These tests cover what only a device can show: it accepts the allocator's calls, and bytes are where they should be.
//! The layer must emit no message.
//!
//! Without a driver or the layer, the tests use only simulated devices and print a note. With `SUBLET_REQUIRE_VULKAN=1`
//! they fail instead. With `SUBLET_WITHOUT_LAYER=1` they use drivers without the layer, as in Wine, which has none.
//! `.ci/newer-driver` runs them on a second driver, with `SUBLET_REQUIRE_NEWER=1`.
#![allow(
    clippy::unwrap_used,
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    reason = "a test may panic, and counts small things"
)]

mod contents;
mod defragment;
mod descriptors;
mod figures;
mod newer;
mod pools;
mod random;
mod resources;
mod uploads;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Once;

use ash::vk;
use sublet::{Allocation, AllocationCreateInfo, Allocator, sim};
use sublet_examples::{Context, chain};

/// A device under test, with an allocator.
pub(crate) struct Fixture<'a> {
    pub(crate) context: &'a Context,
    pub(crate) allocator: &'a Allocator,
}

pub(crate) type Buffer = (vk::Buffer, Allocation);
pub(crate) type Image = (vk::Image, Allocation);

impl Fixture<'_> {
    pub(crate) fn buffer(
        &self,
        size: u64,
        usage: vk::BufferUsageFlags,
        info: &AllocationCreateInfo<'_>,
    ) -> Buffer {
        let buffer_info = vk::BufferCreateInfo::default().size(size).usage(usage);
        // SAFETY: the create-info is valid.
        unsafe { self.allocator.create_buffer(&buffer_info, info) }.unwrap()
    }

    pub(crate) fn image(
        &self,
        image_info: &vk::ImageCreateInfo<'_>,
        info: &AllocationCreateInfo<'_>,
    ) -> Image {
        // SAFETY: the callers check that the device supports such images.
        unsafe { self.allocator.create_image(image_info, info) }.unwrap()
    }

    pub(crate) fn destroy(&self, (buffer, allocation): Buffer) {
        // SAFETY: the tests wait for all their submissions.
        unsafe { self.allocator.destroy_buffer(buffer, allocation) }.unwrap();
    }

    pub(crate) fn destroy_image(&self, (image, allocation): Image) {
        // SAFETY: the tests wait for all their submissions.
        unsafe { self.allocator.destroy_image(image, allocation) }.unwrap();
    }

    /// Copies the first `size` bytes of a buffer to another.
    pub(crate) fn copy(&self, from: &Buffer, to: &Buffer, size: u64) {
        let region = [vk::BufferCopy::default().size(size)];
        let record = |device: &ash::Device, commands| {
            // SAFETY: both buffers have at least as many bytes, and the transfer usage.
            unsafe { device.cmd_copy_buffer(commands, from.0, to.0, &region) };
        };
        self.context.submit(record).unwrap();
    }

    pub(crate) fn host_visible_types(&self) -> Vec<u32> {
        self.types_with(vk::MemoryPropertyFlags::HOST_VISIBLE)
    }

    /// Returns the memory types that have these properties and need no rarely enabled feature.
    pub(crate) fn types_with(&self, wanted: vk::MemoryPropertyFlags) -> Vec<u32> {
        let special = vk::MemoryPropertyFlags::DEVICE_COHERENT_AMD
            | vk::MemoryPropertyFlags::DEVICE_UNCACHED_AMD
            | vk::MemoryPropertyFlags::PROTECTED;
        let memory = self.context.memory_properties();
        (0..)
            .zip(memory.memory_types_as_slice())
            .filter(|(_, kind)| {
                kind.property_flags.contains(wanted) && !kind.property_flags.intersects(special)
            })
            .map(|(index, _)| index)
            .collect()
    }
}

/// Runs a test on every available device. The test frees its resources, and the layer must emit no message.
pub(crate) fn on_each_device(test: impl Fn(&Fixture<'_>)) {
    on_each_context(|context| {
        // SAFETY: the context created instance and device for this version and these flags, and outlives the allocator.
        let allocator = unsafe { Allocator::new(&context.allocator_info()) }.unwrap();
        test(&Fixture { context, allocator: &allocator });
        allocator.validate();
        let left = allocator.destroy();
        assert!(left.is_empty(), "still allocated: {left:?}");
    });
}

/// Runs a test on every device, for tests that create their own allocators.
pub(crate) fn on_each_context(test: impl Fn(&Context)) {
    for profile in sim::Profile::names() {
        check(profile, Context::simulated(profile).unwrap(), &test);
    }
    on_each_driver(|name, context| check(name, context, &test));
}

fn check(name: &str, context: Context, test: &impl Fn(&Context)) {
    // The layer's messages often explain a failure, so they are printed in either case.
    let outcome = catch_unwind(AssertUnwindSafe(|| test(&context)));
    let messages = context.finish();
    if let Err(panic) = outcome {
        eprintln!("this was on {name}, which says: {messages:#?}");
        resume_unwind(panic);
    }
    assert!(messages.is_empty(), "{name} says: {messages:#?}");
}

/// Keeps the drivers loaded until the process ends. Some crash if they are loaded and unloaded repeatedly, or by
/// several threads at once.
fn keep_drivers() {
    static KEPT: Once = Once::new();
    KEPT.call_once(|| Context::on_driver(0, false).map_or((), std::mem::forget));
}

fn is_set(variable: &str) -> bool {
    std::env::var_os(variable).is_some_and(|value| value == "1")
}

/// Opens each physical device of each driver, with validation unless `SUBLET_WITHOUT_LAYER=1`.
pub(crate) fn on_each_driver(mut test: impl FnMut(&str, Context)) {
    keep_drivers();
    let required = is_set("SUBLET_REQUIRE_VULKAN");
    let validation = !is_set("SUBLET_WITHOUT_LAYER");
    let skip = |why: String| {
        assert!(!required, "SUBLET_REQUIRE_VULKAN=1, and there is none: {why}");
        println!("skipped: {why}");
    };
    let names = match Context::driver_devices() {
        Ok(names) => names,
        Err(error) => return skip(chain(&*error)),
    };
    for (index, name) in names.iter().enumerate() {
        match Context::on_driver(index, validation) {
            Ok(context) => test(name, context),
            Err(error) => skip(format!("{name}: {}", chain(&*error))),
        }
    }
}

/// The other tests expect no messages, which proves something only if the layer is active.
#[test]
fn the_validation_layer_is_heard() {
    if is_set("SUBLET_WITHOUT_LAYER") {
        return;
    }
    on_each_driver(|name, context| {
        let nothing = vk::BufferCreateInfo::default();
        // SAFETY: a buffer of zero bytes is invalid on purpose, and the layer must report it. Drivers tolerate it.
        if let Ok(buffer) = unsafe { context.device().create_buffer(&nothing, None) } {
            // SAFETY: the device does not use it.
            unsafe { context.device().destroy_buffer(buffer, None) };
        }
        let messages = context.messages();
        assert!(
            messages.iter().any(|text| text.contains("VUID-VkBufferCreateInfo-size-00912")),
            "{name}: {messages:?}"
        );
        let memory = vk::MemoryAllocateInfo::default().allocation_size(4096);
        // SAFETY: the create-info is valid. The missing free is the error to report.
        let _leaked = unsafe { context.device().allocate_memory(&memory, None) }.unwrap();
        let messages = context.finish();
        assert!(
            messages.iter().any(|text| text.contains("VUID-vkDestroyDevice-device-")),
            "{name}: {messages:?}"
        );
    });
}
