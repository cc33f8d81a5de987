//! A program with a `log` logger and no `tracing` subscriber: with the feature `log` it receives leak reports.
#![allow(clippy::unwrap_used, reason = "a test that meets the unexpected is to fail")]

use std::sync::Mutex;

use ash::vk;
use sublet::{AllocationCreateInfo, Allocator, AllocatorCreateInfo, sim};

static HEARD: Mutex<Vec<(log::Level, String, String)>> = Mutex::new(Vec::new());

struct Logger;

impl log::Log for Logger {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        let text = record.args().to_string();
        HEARD.lock().unwrap().push((record.level(), record.target().to_owned(), text));
    }

    fn flush(&self) {}
}

/// The logger is global, so this test has a process of its own.
#[test]
fn a_program_without_a_subscriber_of_tracing_hears_of_its_leaks() {
    log::set_logger(&Logger).unwrap();
    log::set_max_level(log::LevelFilter::Warn);
    let gpu = sim::Gpu::new(sim::Profile::by_name("lavapipe").unwrap());
    // SAFETY: the simulated device outlives the allocator.
    let allocator = unsafe { Allocator::new(&AllocatorCreateInfo::for_gpu(&gpu)) }.unwrap();
    let needed = vk::MemoryRequirements { size: 4096, alignment: 256, memory_type_bits: !0 };
    let named = AllocationCreateInfo { name: Some("forgotten"), ..Default::default() };
    let _lost = allocator.allocate_memory(&needed, &named).unwrap();
    assert!(HEARD.lock().unwrap().is_empty(), "nothing is wrong yet");
    drop(allocator);
    let heard = HEARD.lock().unwrap();
    let [(level, target, text)] = &heard[..] else { panic!("{heard:?}") };
    assert_eq!((*level, target.as_str()), (log::Level::Warn, "sublet::leak"));
    for part in ["was never freed", "forgotten", "4096"] {
        assert!(text.contains(part), "{text}");
    }
}
