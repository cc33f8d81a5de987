//! Tests a program's own Vulkan code without a GPU: its bytes, failures, leaks and misuse.
//!
//! `cargo run --release --example test_your_code`
//!
//! In a program, each function below would be a `#[test]`, and `sublet` a dev-dependency with the feature `sim`. To the
//! code under test, the simulated device is an ordinary Vulkan driver. The code needs no changes.

use ash::vk;
use sublet::sim::{Gpu, Profile};
use sublet::{
    Allocation, AllocationCreateFlags, AllocationCreateInfo, Allocator, AllocatorCreateInfo, MemoryUsage,
};
use sublet_examples::{Result, Table, chain, heading, note};

/// The code under test: settings that the host reads and writes, and shaders read.
struct Settings {
    buffer: vk::Buffer,
    allocation: Allocation,
}

impl Settings {
    fn new(allocator: &Allocator) -> Result<Self> {
        let buffer_info =
            vk::BufferCreateInfo::default().size(256).usage(vk::BufferUsageFlags::UNIFORM_BUFFER);
        let info = AllocationCreateInfo {
            flags: AllocationCreateFlags::HOST_ACCESS_RANDOM,
            name: Some("settings"),
            ..AllocationCreateInfo::new(MemoryUsage::AutoPreferHost)
        };
        // SAFETY: the create-info is valid.
        let (buffer, allocation) = unsafe { allocator.create_buffer(&buffer_info, &info) }?;
        Ok(Self { buffer, allocation })
    }

    fn write(&mut self, allocator: &Allocator, text: &[u8], flush: bool) -> Result<()> {
        let mut mapping = allocator.map(&mut self.allocation)?;
        mapping.write(0, text)?;
        if flush {
            mapping.flush(0, vk::WHOLE_SIZE)?;
        }
        Ok(())
    }

    fn destroy(self, allocator: &Allocator) -> Result<()> {
        // SAFETY: the device never uses it in these tests.
        Ok(unsafe { allocator.destroy_buffer(self.buffer, self.allocation) }?)
    }
}

fn main() -> Result<()> {
    forgotten_flush()?;
    failing_driver()?;
    leak()?;
    misuse()
}

fn allocator(gpu: &Gpu) -> Result<Allocator> {
    let info =
        AllocatorCreateInfo::new(gpu.instance(), gpu.device(), gpu.physical_device(), gpu.api_version());
    // SAFETY: the handles are live, belong together, and outlive the allocator in each of the tests.
    Ok(unsafe { Allocator::new(&info) }?)
}

/// Runs the code on every GPU profile, and compares the device's view of the host's writes.
fn forgotten_flush() -> Result<()> {
    heading("Content: a forgotten flush, on every GPU");
    note("Where memory is host-coherent nobody notices it. Somewhere else it is a bug report.");
    let mut table = Table::new(&["profile", ">type", "flushed", "not flushed"]);
    for profile in Profile::names().filter_map(Profile::by_name) {
        let gpu = Gpu::new(profile);
        let allocator = allocator(&gpu)?;
        let mut settings = Settings::new(&allocator)?;
        let mut try_it = |text: &[u8], flush| -> Result<bool> {
            settings.write(&allocator, text, flush)?;
            let (memory, offset) = (settings.allocation.memory(), settings.allocation.offset());
            // SAFETY: no other thread writes to the memory.
            let found = unsafe { gpu.read_memory(memory, offset, text.len()) };
            Ok(found.as_deref() == Some(text))
        };
        let seen = |arrived| if arrived { "arrives" } else { "THE DEVICE SEES OLD BYTES" };
        let (with, without) = (try_it(b"gamma = 2.2", true)?, try_it(b"gamma = 1.8", false)?);
        assert!(with, "what is flushed arrives on {}", profile.name);
        table.row([&profile.name, &settings.allocation.memory_type_index(), &seen(with), &seen(without)]);
        settings.destroy(&allocator)?;
        drop(allocator);
        gpu.assert_silent();
    }
    table.print();
    Ok(())
}

/// Fails each driver call of the code under test in turn. Each failure must return an error and leak nothing.
fn failing_driver() -> Result<()> {
    heading("Faults: each driver call fails in turn");
    let mut table = Table::new(&["failing call", "left behind", "the code's error"]);
    for call in ["vkCreateBuffer", "vkAllocateMemory", "vkBindBufferMemory", "vkMapMemory"] {
        let gpu = Gpu::new(Profile::by_name("nvidia-gtx-1060").ok_or("no such profile")?);
        let allocator = allocator(&gpu)?;
        gpu.faults().fail_always(call, vk::Result::ERROR_OUT_OF_HOST_MEMORY);
        let error = match Settings::new(&allocator) {
            Err(error) => error,
            Ok(mut settings) => {
                let outcome = settings.write(&allocator, b"x", true);
                settings.destroy(&allocator)?;
                outcome.err().ok_or_else(|| format!("nobody noticed that {call} failed"))?
            }
        };
        assert!(allocator.destroy().is_empty(), "a failure leaks when {call} fails");
        assert!(gpu.live().is_empty(), "something is left on the device when {call} fails");
        table.row([&call, &"nothing", &chain(&*error)]);
        gpu.assert_silent();
    }
    table.print();
    Ok(())
}

/// A leak is reported by name.
fn leak() -> Result<()> {
    heading("Leaks: nothing goes missing quietly");
    let gpu = Gpu::new(Profile::by_name("apple-m1").ok_or("no such profile")?);
    let allocator = allocator(&gpu)?;
    // Dropped without being destroyed, on purpose.
    Settings::new(&allocator)?;
    allocator.destroy().iter().for_each(|leak| note(&format!("  allocator: {leak}")));
    let messages = gpu.finish();
    assert_eq!(messages.len(), 1, "the buffer is still there when the device goes");
    messages.iter().for_each(|message| note(&format!("  device: {message}")));
    Ok(())
}

/// Misuse is reported with its valid-usage identifier, as by the validation layer.
fn misuse() -> Result<()> {
    heading("Misuse: a bind at a misaligned offset");
    let gpu = Gpu::new(Profile::by_name("amd-rx-6700-xt").ok_or("no such profile")?);
    let allocator = allocator(&gpu)?;
    let settings = Settings::new(&allocator)?;
    let info = vk::BufferCreateInfo::default().size(16).usage(vk::BufferUsageFlags::UNIFORM_BUFFER);
    // SAFETY: the create-info is valid.
    let second = unsafe { gpu.device().create_buffer(&info, None) }?;
    // SAFETY: violated on purpose: the test makes this mistake on a device that survives it.
    let bound = unsafe { allocator.bind_buffer_memory(&settings.allocation, 3, second) };
    note(&format!("  the call itself: {bound:?}"));
    let messages = gpu.take_messages();
    assert!(!messages.is_empty(), "a misaligned bind has to be reported");
    messages.iter().for_each(|message| note(&format!("  device: {message}")));
    // SAFETY: nothing uses it.
    unsafe { gpu.device().destroy_buffer(second, None) };
    settings.destroy(&allocator)
}
