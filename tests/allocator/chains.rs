//! The structures that the allocator adds to the program's `pNext` chain, for every kind of chain. The simulated driver
//! checks the result: the fixture fails at its end if there was a validation message.

use std::any::type_name;

use ash::vk::{self, ExternalMemoryHandleTypeFlags as Handles, Handle as _, TaggedStructure};
use sublet::sim::{AllocateCall, Gpu};
use sublet::{
    Allocation, AllocationCreateInfo, AllocatorCreateInfo, CreateError, MemoryAllocateNext, MemoryUsage,
    PoolCreateInfo,
};

use crate::common::*;

const EXPORT: vk::StructureType = vk::StructureType::EXPORT_MEMORY_ALLOCATE_INFO;
const PRIORITY: vk::StructureType = vk::StructureType::MEMORY_PRIORITY_ALLOCATE_INFO_EXT;
const FLAGS: vk::StructureType = vk::StructureType::MEMORY_ALLOCATE_FLAGS_INFO;
const DEDICATED: vk::StructureType = vk::StructureType::MEMORY_DEDICATED_ALLOCATE_INFO;

const ADDRESS: vk::MemoryAllocateFlags = vk::MemoryAllocateFlags::DEVICE_ADDRESS;
const REPLAY: vk::MemoryAllocateFlags = vk::MemoryAllocateFlags::DEVICE_ADDRESS_CAPTURE_REPLAY;
const MASK: vk::MemoryAllocateFlags = vk::MemoryAllocateFlags::DEVICE_MASK;

fn chain_of(structure: &impl Sized) -> MemoryAllocateNext {
    // SAFETY: the tests keep the structure, and the rest of its chain, alive for the call or the pool.
    unsafe { MemoryAllocateNext::new(std::ptr::from_ref(structure).cast()) }
}

/// Links `second` behind `first`. `second` must live as long.
fn linked<T: TaggedStructure>(mut first: T, second: &impl Sized) -> T {
    let base = (&raw mut first).cast::<vk::BaseOutStructure<'_>>();
    // SAFETY: every tagged structure starts with the fields of `VkBaseOutStructure`, and nothing else refers to this
    // one.
    unsafe { (*base).p_next = std::ptr::from_ref(second).cast_mut().cast() };
    first
}

/// Returns allocators that export all their memory, on GPUs that have every feature used here.
fn exporting(types: Handles) -> Vec<Held<Fixture>> {
    let profiles = having(|profile| {
        let features = profile.features;
        features.external_memory && features.memory_priority && features.buffer_device_address
    });
    let fixture = |&profile: &&'static _| {
        let gpu = Gpu::new(profile);
        let info = AllocatorCreateInfo {
            flags: enabled(&gpu),
            external_memory_handle_types: &[types; 32][..profile.types.len()],
            ..create_info(&gpu)
        };
        let allocator = new_allocator(&info).unwrap();
        gpu.log_allocations(true);
        hold(Fixture { allocator, gpu })
    };
    profiles.iter().map(fixture).collect()
}

/// Returns the only `vkAllocateMemory` call. No structure type occurs twice in its chain.
fn only_call(gpu: &Gpu) -> AllocateCall {
    let calls = gpu.take_log();
    assert_eq!(calls.len(), 1, "{calls:?}");
    let call = calls.into_iter().next().unwrap();
    let chain = &call.asked.chain;
    assert!((1..chain.len()).all(|at| !chain[..at].contains(&chain[at])), "{chain:?}");
    call
}

/// Returns true if shared memory has to be dedicated.
fn requires_dedicated(fixture: &Fixture) -> bool {
    fixture.profile().images.external_requires_dedicated
}

fn auto() -> AllocationCreateInfo<'static> {
    AllocationCreateInfo::new(MemoryUsage::Auto)
}

fn buffer_with(
    fixture: &Fixture,
    types: Handles,
    info: &AllocationCreateInfo<'_>,
    next: MemoryAllocateNext,
) -> Result<(vk::Buffer, Allocation), CreateError> {
    let mut shared = vk::ExternalMemoryBufferCreateInfo::default().handle_types(types);
    let usage = vk::BufferUsageFlags::STORAGE_BUFFER | vk::BufferUsageFlags::SHADER_DEVICE_ADDRESS;
    let buffer_info = vk::BufferCreateInfo::default().size(64 * KIB).usage(usage).push_next(&mut shared);
    // SAFETY: the create-info is valid, and names the handle types of the shared memory.
    unsafe { fixture.allocator.create_dedicated_buffer(&buffer_info, info, next) }
}

fn image_with(
    fixture: &Fixture,
    types: Handles,
    info: &AllocationCreateInfo<'_>,
    next: MemoryAllocateNext,
) -> Result<(vk::Image, Allocation), CreateError> {
    let mut shared = vk::ExternalMemoryImageCreateInfo::default().handle_types(types);
    let image_info = square(64, vk::ImageUsageFlags::SAMPLED).push_next(&mut shared);
    // SAFETY: as above.
    unsafe { fixture.allocator.create_dedicated_image(&image_info, info, next) }
}

fn dedicated_memory(fixture: &Fixture, next: MemoryAllocateNext) -> Allocation {
    let requirements = vk::MemoryRequirements { size: 64 * KIB, alignment: 1, memory_type_bits: !0 };
    fixture
        .allocator
        .allocate_dedicated_memory(&requirements, &AllocationCreateInfo::default(), next)
        .unwrap()
}

/// Imported memory is not exported as well. Its resources have the imported handle type, which need not be one of the
/// exported types (VUID-vkBindImageMemory-memory-02728). VulkanMemoryAllocator 508.
fn imports<T: TaggedStructure>(structure: &T, types: Handles) {
    for fixture in exporting(Handles::OPAQUE_FD) {
        let next = chain_of(structure);
        let is_host_pointer = types == Handles::HOST_ALLOCATION_EXT;
        let expected = |dedicated: bool| {
            let mut chain = vec![PRIORITY, FLAGS, DEDICATED, T::STRUCTURE_TYPE];
            chain.retain(|&kind| dedicated || kind != DEDICATED);
            chain
        };
        // A host pointer cannot be dedicated, so such resources do not exist if all external memory has to be
        // dedicated.
        if !(is_host_pointer && requires_dedicated(&fixture)) {
            let made = buffer_with(&fixture, types, &auto(), next).unwrap();
            let asked = only_call(&fixture.gpu).asked;
            assert_eq!(asked.chain, expected(!is_host_pointer), "{}", type_name::<T>());
            fixture.destroy_buffer(made);
            let made = image_with(&fixture, types, &auto(), next).unwrap();
            let mut image = expected(!is_host_pointer);
            image.retain(|&kind| kind != FLAGS);
            assert_eq!(only_call(&fixture.gpu).asked.chain, image, "{}", type_name::<T>());
            fixture.destroy_image(made);
        }
        let memory = dedicated_memory(&fixture, next);
        assert_eq!(only_call(&fixture.gpu).asked.chain, expected(false), "{}", type_name::<T>());
        fixture.free(memory);
    }
}

#[test]
fn imports_of_every_kind_are_not_exported() {
    let own = std::ptr::NonNull::<u64>::dangling().as_ptr();
    let fd = vk::ImportMemoryFdInfoKHR::default().handle_type(Handles::DMA_BUF_EXT).fd(-1);
    imports(&fd, Handles::DMA_BUF_EXT);
    let win32 = vk::ImportMemoryWin32HandleInfoKHR::default();
    imports(&win32.handle_type(Handles::OPAQUE_WIN32), Handles::OPAQUE_WIN32);
    imports(&win32.handle_type(Handles::D3D12_RESOURCE), Handles::D3D12_RESOURCE);
    let older = vk::ImportMemoryWin32HandleInfoNV::default();
    imports(&older.handle_type(vk::ExternalMemoryHandleTypeFlagsNV::OPAQUE_WIN32), Handles::empty());
    let host = vk::ImportMemoryHostPointerInfoEXT::default().handle_type(Handles::HOST_ALLOCATION_EXT);
    imports(&host, Handles::HOST_ALLOCATION_EXT);
    let android = vk::ImportAndroidHardwareBufferInfoANDROID { buffer: own.cast(), ..Default::default() };
    imports(&android, Handles::ANDROID_HARDWARE_BUFFER_ANDROID);
    let zircon = vk::ImportMemoryZirconHandleInfoFUCHSIA::default();
    imports(&zircon.handle_type(Handles::ZIRCON_VMO_FUCHSIA), Handles::ZIRCON_VMO_FUCHSIA);
    imports(&vk::ImportMemoryBufferCollectionFUCHSIA::default(), Handles::empty());
    let screen = vk::ImportScreenBufferInfoQNX { buffer: own.cast(), ..Default::default() };
    imports(&screen, Handles::SCREEN_BUFFER_QNX);
    imports(&vk::ImportMetalBufferInfoEXT::default(), Handles::empty());
}

/// An import structure without a handle imports nothing.
#[test]
fn what_imports_nothing_is_exported() {
    fn exports<T: TaggedStructure>(structure: &T) {
        for fixture in exporting(Handles::OPAQUE_FD) {
            let made = buffer_with(&fixture, Handles::OPAQUE_FD, &auto(), chain_of(structure)).unwrap();
            let asked = only_call(&fixture.gpu).asked;
            assert_eq!(asked.chain, [EXPORT, PRIORITY, FLAGS, DEDICATED, T::STRUCTURE_TYPE]);
            assert_eq!(asked.export_handle_types, Handles::OPAQUE_FD.as_raw());
            fixture.destroy_buffer(made);
        }
    }
    exports(&vk::ImportMemoryFdInfoKHR::default());
    exports(&vk::ImportMemoryWin32HandleInfoKHR::default());
    exports(&vk::ImportMemoryHostPointerInfoEXT::default());
    exports(&vk::ImportAndroidHardwareBufferInfoANDROID::default());
    exports(&vk::ExportMetalObjectCreateInfoEXT::default());
    exports(&vk::MemoryOpaqueCaptureAddressAllocateInfo::default());
}

/// VUID-VkMemoryAllocateInfo-pNext-00640.
#[test]
fn exports_of_the_older_extension_stay_alone() {
    fn alone<T: TaggedStructure>(structure: &T) {
        for fixture in exporting(Handles::OPAQUE_WIN32) {
            let made = buffer_with(&fixture, Handles::OPAQUE_WIN32, &auto(), chain_of(structure)).unwrap();
            let asked = only_call(&fixture.gpu).asked;
            assert_eq!(asked.chain, [PRIORITY, FLAGS, DEDICATED, T::STRUCTURE_TYPE]);
            fixture.destroy_buffer(made);
        }
    }
    alone(&vk::ExportMemoryAllocateInfoNV::default());
    alone(&vk::ExportMemoryWin32HandleInfoNV::default());
    // The attributes of a handle describe an export, but do not request one.
    for fixture in exporting(Handles::OPAQUE_WIN32) {
        let attributes = vk::ExportMemoryWin32HandleInfoKHR::default();
        let made = buffer_with(&fixture, Handles::OPAQUE_WIN32, &auto(), chain_of(&attributes)).unwrap();
        assert_eq!(only_call(&fixture.gpu).asked.export_handle_types, Handles::OPAQUE_WIN32.as_raw());
        fixture.destroy_buffer(made);
    }
}

/// Flags and device mask of the program are merged with the allocator's, at any position in the chain.
#[test]
fn flags_of_the_program_are_merged() {
    for fixture in exporting(Handles::OPAQUE_FD) {
        let flags = vk::MemoryAllocateFlagsInfo::default().flags(MASK).device_mask(1);
        let at = vk::MemoryOpaqueCaptureAddressAllocateInfo::default();
        let metal = vk::ExportMetalObjectCreateInfoEXT::default();
        let behind = linked(at, &flags);
        let further_behind = linked(metal, &behind);
        let before = linked(flags, &at);
        for (next, rest) in [
            (chain_of(&flags), vec![]),
            (chain_of(&before), vec![at.s_type]),
            (chain_of(&behind), vec![at.s_type]),
            (chain_of(&further_behind), vec![metal.s_type, at.s_type]),
        ] {
            let made = buffer_with(&fixture, Handles::OPAQUE_FD, &auto(), next).unwrap();
            let asked = only_call(&fixture.gpu).asked;
            assert_eq!(asked.chain, [&[EXPORT, PRIORITY, FLAGS, DEDICATED], &rest[..]].concat());
            assert_eq!((asked.flags, asked.device_mask), ((MASK | ADDRESS).as_raw(), 1));
            fixture.destroy_buffer(made);
            // An image has no address, so nothing is merged: the program's structure stays at its position.
            let made = image_with(&fixture, Handles::OPAQUE_FD, &auto(), next).unwrap();
            let asked = only_call(&fixture.gpu).asked;
            assert_eq!((asked.flags, asked.device_mask), (MASK.as_raw(), 1));
            fixture.destroy_image(made);
        }
        // Every block of a pool has the flags.
        let pool_info =
            PoolCreateInfo { memory_allocate_next: chain_of(&further_behind), ..PoolCreateInfo::new(0) };
        let pool = fixture.pool(&pool_info).unwrap();
        let memory = fixture.memory(KIB, 1, &AllocationCreateInfo::in_pool(&pool)).unwrap();
        let asked = only_call(&fixture.gpu).asked;
        assert_eq!(asked.chain, [EXPORT, PRIORITY, FLAGS, metal.s_type, at.s_type]);
        assert_eq!((asked.flags, asked.device_mask), ((MASK | ADDRESS).as_raw(), 1));
        fixture.free(memory);
        fixture.destroy_pool(pool);
    }
}

/// Capturing the address of a buffer needs the flag. Replaying it needs only the captured address.
#[test]
fn an_address_is_captured_and_replayed() {
    for fixture in exporting(Handles::empty()) {
        let buffer_info = vk::BufferCreateInfo::default()
            .flags(vk::BufferCreateFlags::DEVICE_ADDRESS_CAPTURE_REPLAY)
            .size(64 * KIB)
            .usage(vk::BufferUsageFlags::STORAGE_BUFFER | vk::BufferUsageFlags::SHADER_DEVICE_ADDRESS);
        let make = |next| {
            // SAFETY: the create-info is valid, and the chain requests memory with a replayable address.
            unsafe { fixture.allocator.create_dedicated_buffer(&buffer_info, &auto(), next) }.unwrap()
        };
        let flags = vk::MemoryAllocateFlagsInfo::default().flags(REPLAY);
        let captured = make(chain_of(&flags));
        assert_eq!(only_call(&fixture.gpu).asked.flags, (ADDRESS | REPLAY).as_raw());
        let info = vk::DeviceMemoryOpaqueCaptureAddressInfo::default().memory(captured.1.memory());
        // SAFETY: the memory is live, and has an address.
        let address = unsafe { fixture.gpu.device().get_device_memory_opaque_capture_address(&info) };
        // SAFETY: the buffer is live, and has an address.
        let was_at = unsafe { fixture.allocator.buffer_address(captured.0) };
        fixture.destroy_buffer(captured);

        let at = vk::MemoryOpaqueCaptureAddressAllocateInfo::default().opaque_capture_address(address);
        let replayed = make(chain_of(&at));
        let asked = only_call(&fixture.gpu).asked;
        assert_eq!(asked.chain, [PRIORITY, FLAGS, DEDICATED, at.s_type]);
        assert_eq!(asked.flags, (ADDRESS | REPLAY).as_raw());
        // SAFETY: as above.
        assert_eq!(unsafe { fixture.allocator.buffer_address(replayed.0) }, was_at);
        fixture.destroy_buffer(replayed);
        // The same in a pool whose blocks have the flag.
        let pool_info = PoolCreateInfo { memory_allocate_next: chain_of(&flags), ..PoolCreateInfo::new(0) };
        let pool = fixture.pool(&pool_info).unwrap();
        // SAFETY: the create-info is valid.
        let made =
            unsafe { fixture.allocator.create_buffer(&buffer_info, &AllocationCreateInfo::in_pool(&pool)) };
        if let Ok(made) = made {
            fixture.destroy_buffer(made);
        }
        fixture.destroy_pool(pool);
    }
}

/// The program supplies its own priority and dedication structures.
#[test]
fn a_structure_of_the_program_is_not_added_again() {
    for fixture in exporting(Handles::OPAQUE_FD) {
        let priority = vk::MemoryPriorityAllocateInfoEXT::default().priority(0.125);
        let made = buffer_with(&fixture, Handles::OPAQUE_FD, &auto(), chain_of(&priority)).unwrap();
        let asked = only_call(&fixture.gpu).asked;
        assert_eq!(asked.chain, [EXPORT, FLAGS, DEDICATED, PRIORITY]);
        assert_eq!(asked.priority, Some(0.125));
        fixture.destroy_buffer(made);

        if !requires_dedicated(&fixture) {
            let none = vk::MemoryDedicatedAllocateInfo::default();
            let made = buffer_with(&fixture, Handles::OPAQUE_FD, &auto(), chain_of(&none)).unwrap();
            let asked = only_call(&fixture.gpu).asked;
            assert_eq!(asked.chain, [EXPORT, PRIORITY, FLAGS, DEDICATED]);
            assert!(asked.dedicated_buffer.is_null());
            fixture.destroy_buffer(made);
        }

        // The program creates and binds this resource itself.
        let mut shared = vk::ExternalMemoryBufferCreateInfo::default().handle_types(Handles::OPAQUE_FD);
        let usage = vk::BufferUsageFlags::STORAGE_BUFFER;
        let info = vk::BufferCreateInfo::default().size(64 * KIB).usage(usage).push_next(&mut shared);
        // SAFETY: the create-info is valid.
        let buffer = unsafe { fixture.gpu.device().create_buffer(&info, None) }.unwrap();
        let own = vk::MemoryDedicatedAllocateInfo::default().buffer(buffer);
        // SAFETY: the buffer is live.
        let requirements = unsafe { fixture.gpu.device().get_buffer_memory_requirements(buffer) };
        let info = AllocationCreateInfo::default();
        let memory =
            fixture.allocator.allocate_dedicated_memory(&requirements, &info, chain_of(&own)).unwrap();
        assert_eq!(only_call(&fixture.gpu).asked.dedicated_buffer, buffer);
        // SAFETY: the buffer is not bound, and the memory was allocated for it.
        unsafe { fixture.allocator.bind_buffer_memory(&memory, 0, buffer) }.unwrap();
        fixture.destroy_buffer((buffer, memory));
    }
}

/// The driver chooses the size of an Android hardware buffer for an image (VUID-VkMemoryAllocateInfo-pNext-01874).
#[test]
fn an_image_that_is_exported_to_android_has_no_size() {
    for fixture in exporting(Handles::ANDROID_HARDWARE_BUFFER_ANDROID) {
        let mut shared = vk::ExternalMemoryImageCreateInfo::default()
            .handle_types(Handles::ANDROID_HARDWARE_BUFFER_ANDROID);
        let info = square(64, vk::ImageUsageFlags::SAMPLED).push_next(&mut shared);
        // SAFETY: the create-info is valid.
        let image = unsafe { fixture.gpu.device().create_image(&info, None) }.unwrap();
        // SAFETY: the image is live.
        let requirements = unsafe { fixture.gpu.device().get_image_memory_requirements(image) };
        let own = vk::MemoryDedicatedAllocateInfo::default().image(image);
        let info = AllocationCreateInfo::default();
        let memory =
            fixture.allocator.allocate_dedicated_memory(&requirements, &info, chain_of(&own)).unwrap();
        assert_eq!(only_call(&fixture.gpu).asked.size, 0);
        assert_eq!((memory.size(), fixture.memory_size(&memory)), (requirements.size, requirements.size));
        // SAFETY: the image is not bound, and the memory was allocated for it.
        unsafe { fixture.allocator.bind_image_memory(&memory, 0, image) }.unwrap();
        fixture.destroy_image((image, memory));
        // The memory of a buffer has a size.
        let made =
            buffer_with(&fixture, Handles::ANDROID_HARDWARE_BUFFER_ANDROID, &auto(), Default::default());
        let made = made.unwrap();
        assert_eq!(only_call(&fixture.gpu).asked.size, made.1.size());
        fixture.destroy_buffer(made);
    }
}

/// Dedicated memory is imported as dedicated. Other memory is imported with `CAN_ALIAS`
/// (VUID-VkMemoryDedicatedAllocateInfo-image-01878, -buffer-01879).
#[cfg(unix)]
#[test]
fn a_descriptor_is_imported_as_it_was_exported() {
    use std::os::fd::IntoRawFd as _;
    use sublet::AllocationCreateFlags;

    let opaque = Handles::OPAQUE_FD;
    for fixture in exporting(opaque) {
        for flags in [AllocationCreateFlags::empty(), AllocationCreateFlags::CAN_ALIAS] {
            let info = AllocationCreateInfo { flags, ..auto() };
            let import_of = |memory: &Allocation| {
                // SAFETY: the allocator exports all its memory with this handle type.
                let fd = unsafe { fixture.allocator.memory_fd(memory, opaque) }.unwrap();
                vk::ImportMemoryFdInfoKHR::default().handle_type(opaque).fd(fd.into_raw_fd())
            };
            let exported = image_with(&fixture, opaque, &info, Default::default()).unwrap();
            let in_its_type =
                AllocationCreateInfo { memory_type_bits: 1 << exported.1.memory_type_index(), ..info };
            let import = import_of(&exported.1);
            let imported = image_with(&fixture, opaque, &in_its_type, chain_of(&import)).unwrap();
            fixture.destroy_image(imported);
            fixture.destroy_image(exported);
            let exported = buffer_with(&fixture, opaque, &info, Default::default()).unwrap();
            let in_its_type =
                AllocationCreateInfo { memory_type_bits: 1 << exported.1.memory_type_index(), ..info };
            let import = import_of(&exported.1);
            let imported = buffer_with(&fixture, opaque, &in_its_type, chain_of(&import)).unwrap();
            fixture.destroy_buffer(imported);
            fixture.destroy_buffer(exported);
        }
    }
}
