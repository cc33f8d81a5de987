//! Buffers over memory of the host.

use std::ptr::NonNull;
use std::sync::Arc;

use ash::vk;
use sublet::{CreateError, HostImportError};
use sublet_frame::CreateResourceError;

use crate::fixture::{FrameFixture, gpu};
use crate::make::{begin_list, end_with};

#[repr(align(4096))]
#[derive(Clone)]
struct Page([u8; 4096]);

fn pages(count: usize, seed: u64) -> Arc<[Page]> {
    let mut random = fastrand::Rng::with_seed(seed);
    let page = |_| {
        let mut page = Page([0; 4096]);
        random.fill(&mut page.0);
        page
    };
    (0..count).map(page).collect()
}

fn bytes(pages: &[Page]) -> NonNull<[u8]> {
    NonNull::slice_from_raw_parts(NonNull::from(pages).cast(), size_of_val(pages))
}

fn info(size: u64) -> vk::BufferCreateInfo<'static> {
    vk::BufferCreateInfo::default().size(size).usage(vk::BufferUsageFlags::TRANSFER_SRC)
}

#[test]
fn lists_copy_from_host_memory_and_keep_it() {
    for profile in ["lavapipe", "nvidia-h200", "intel-arc-a770", "amd-raphael"] {
        let mut fixture = FrameFixture::new(profile, 1);
        let memory = pages(16, 5);
        let target = fixture.buffer(3 * 4096);
        let frames = fixture.frames();
        let source =
            unsafe { frames.import_host_memory(&info(16 * 4096), bytes(&memory), Arc::clone(&memory)) };
        let source = source.unwrap();
        let mut list = begin_list(frames);
        let copy = vk::BufferCopy { src_offset: 7 * 4096, dst_offset: 0, size: 3 * 4096 };
        list.copy_buffer(&source, &target, &[copy]).unwrap();
        let read = list.read_buffer(&target, 0..3 * 4096).unwrap();
        drop(source);
        assert_eq!(Arc::strong_count(&memory), 2, "the list needs the memory");
        let ticket = end_with(frames, list);
        frames.wait(ticket).unwrap();
        let expected: Vec<u8> = memory[7..10].iter().flat_map(|page| page.0).collect();
        assert!(read.bytes().unwrap() == expected, "{profile}");
        drop(read);
        assert_eq!(Arc::strong_count(&memory), 1, "{profile}: the memory is kept too long");
    }
}

#[test]
fn unsuitable_host_memory_is_refused() {
    let mut fixture = FrameFixture::new("nvidia-h200", 1);
    let memory = pages(4, 6);
    let all = bytes(&memory);
    let frames = fixture.frames();
    let import =
        |info, memory, owner| unsafe { frames.import_host_memory(&info, memory, owner) }.unwrap_err();
    let refused = |error| CreateResourceError::HostImport(error);
    let part = |from, to| {
        let first = unsafe { all.cast::<u8>().add(from) };
        NonNull::slice_from_raw_parts(first, to - from)
    };
    let address = all.cast::<u8>().addr().get() as u64;
    let misaligned = |address, size| refused(HostImportError::Misaligned { address, size, alignment: 4096 });
    let owner = || Arc::clone(&memory);
    assert_eq!(import(info(64), part(64, 8192), owner()), misaligned(address + 64, 8128));
    assert_eq!(import(info(64), part(0, 8191), owner()), misaligned(address, 8191));
    let small = HostImportError::TooSmall { needed: 8208, given: 8192 };
    assert_eq!(import(info(8200), part(0, 8192), owner()), refused(small));
    let zero = refused(HostImportError::Create(CreateError::ZeroExtent));
    assert_eq!(import(info(0), part(0, 8192), owner()), zero);
    assert_eq!(Arc::strong_count(&memory), 1, "a failed import keeps nothing");

    let gpu = sublet::sim::Gpu::builder(sublet::sim::Profile::by_name("lavapipe").unwrap())
        .without_extension("VK_EXT_external_memory_host")
        .build();
    let mut fixture = FrameFixture::of(gpu, 1);
    let frames = fixture.frames();
    assert_eq!(frames.allocator().host_import_alignment(), None);
    let made = unsafe { frames.import_host_memory(&info(4096), all, ()) };
    assert_eq!(made.unwrap_err(), refused(HostImportError::NotEnabled));
}

#[test]
fn a_failed_import_leaves_nothing_behind() {
    let calls =
        ["vkGetMemoryHostPointerPropertiesEXT", "vkCreateBuffer", "vkAllocateMemory", "vkBindBufferMemory"];
    for call in calls {
        let mut fixture = FrameFixture::of(gpu("lavapipe", 1), 1);
        let memory = pages(2, 7);
        let before = fixture.gpu.live();
        fixture.gpu.faults().fail_nth(call, 0, vk::Result::ERROR_OUT_OF_HOST_MEMORY);
        let frames = fixture.frames();
        let import =
            || unsafe { frames.import_host_memory(&info(8192), bytes(&memory), Arc::clone(&memory)) };
        let error = import().unwrap_err();
        assert!(std::error::Error::source(&error).is_some(), "{call}: {error}");
        assert_eq!(Arc::strong_count(&memory), 1, "{call}");
        let buffer = import().unwrap();
        drop(buffer);
        let after = fixture.gpu.live();
        assert_eq!((after.buffers, after.memories), (before.buffers, before.memories), "{call}");
    }
}
