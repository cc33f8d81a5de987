//! The driver's calls and the events of one growth and of one warm allocation, in order.

use std::sync::{Arc, Mutex};

use ash::vk;
use sublet::sim::{Gpu, Profile};
use sublet::{AllocationCreateInfo, Allocator, AllocatorCreateInfo, MemoryUsage};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// Counts of the calls that create a resource, allocate memory, and bind.
type Counts = [u64; 3];

fn counts(gpu: &Gpu) -> Counts {
    let calls = gpu.call_counts();
    ["vkCreateBuffer", "vkAllocateMemory", "vkBindBufferMemory"].map(|call| {
        calls
            .iter()
            .filter(|(name, _)| name.trim_end_matches("2KHR").trim_end_matches('2') == call)
            .map(|it| it.1)
            .sum()
    })
}

/// Records the events and spans of blocks, with the counts at that time.
#[derive(Clone)]
struct Steps {
    gpu: Arc<Gpu>,
    seen: Arc<Mutex<Vec<(&'static str, Counts)>>>,
}

impl Steps {
    fn add(&self, metadata: &'static Metadata<'static>) {
        self.seen.lock().unwrap().push((metadata.name(), counts(&self.gpu)));
    }

    fn take(&self) -> Vec<(&'static str, Counts)> {
        std::mem::take(&mut self.seen.lock().unwrap())
    }
}

impl Subscriber for Steps {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "sublet::block"
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        self.add(span.metadata());
        Id::from_u64(1)
    }

    fn event(&self, event: &Event<'_>) {
        self.add(event.metadata());
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[test]
fn a_growth_allocates_before_it_binds_and_a_warm_allocation_only_binds() {
    let gpu = Arc::new(Gpu::new(Profile::by_name("lavapipe").unwrap()));
    // SAFETY: the simulated device outlives the allocator.
    let allocator = unsafe { Allocator::new(&AllocatorCreateInfo::for_gpu(&gpu)) }.unwrap();
    let steps = Steps { gpu: Arc::clone(&gpu), seen: Arc::default() };
    let info = AllocationCreateInfo::new(MemoryUsage::Auto);
    let buffer_info = vk::BufferCreateInfo::default().size(256).usage(vk::BufferUsageFlags::VERTEX_BUFFER);
    let create = || {
        gpu.reset_calls();
        // SAFETY: the create-info is valid for the device.
        let made = tracing::subscriber::with_default(steps.clone(), || unsafe {
            allocator.create_buffer(&buffer_info, &info)
        });
        (made.unwrap(), steps.take(), counts(&gpu))
    };

    let (first, seen, after) = create();
    assert_eq!(seen, [("grow", [1, 0, 0]), ("block_created", [1, 1, 0])], "the growth");
    assert_eq!(after, [1, 1, 1]);

    let (second, seen, after) = create();
    assert_eq!((seen, after), (vec![], [1, 0, 1]), "the warm allocation");
    let calls = gpu.call_counts();
    let is_expected = |name: &str| {
        ["vkCreateBuffer", "vkGetBufferMemoryRequirements", "vkBindBufferMemory"]
            .iter()
            .any(|it| name.starts_with(it))
    };
    assert!(calls.iter().all(|&(name, count)| count == 0 || is_expected(name)), "{calls:?}");

    for (buffer, allocation) in [first, second] {
        // SAFETY: the device does not use it.
        unsafe { allocator.destroy_buffer(buffer, allocation) }.unwrap();
    }
    assert!(allocator.destroy().is_empty());
    gpu.assert_silent();
}
