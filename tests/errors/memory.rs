//! Errors of the allocator.

use ash::vk;
use sublet::retire::Clock;
use sublet::*;

use super::{DRIVER, RenderedError, each, rendered, saying};
use sublet::device::MissingFunction;

pub(crate) fn all() -> Vec<RenderedError> {
    let mut all = plain();
    all.extend(wrapping());
    all.extend(virtual_blocks());
    all.extend(provoked());
    all
}

const FULL: AllocationError = AllocationError::Full {
    size: 1001,
    alignment: 256,
    free: 1003,
    largest_free: 1004,
    block_count: 105,
    max_block_count: 106,
};

const REFUSED: MemoryError = MemoryError::Driver { size: 1001, memory_type: 17, heap: 13, error: DRIVER };

fn plain() -> Vec<RenderedError> {
    let mut all: Vec<RenderedError> = [ForeignHandle::Pool, ForeignHandle::Allocation].map(rendered).into();
    all.extend(each([
        Contradiction::DedicatedNeverAllocate,
        Contradiction::DedicatedInFixedPool,
        Contradiction::DedicatedUpperAddress,
        Contradiction::TwoHostAccesses,
        Contradiction::TransferInsteadOfNothing,
        Contradiction::MappedWithoutHostAccess,
        Contradiction::SeveralStrategies,
        Contradiction::TwoMemoryAllocateChains,
        Contradiction::PoolAndScope,
    ]));
    all.extend(each([
        MemoryError::HeapTooSmall { size: 1001, heap: 13, heap_size: 1002 },
        MemoryError::HeapLimit { size: 1001, heap: 13, used: 1002, limit: 1003 },
        MemoryError::OverBudget { size: 1001, heap: 13, usage: 1002, budget: 1003 },
        MemoryError::TooManyAllocations { limit: 4097 },
        REFUSED,
    ]));
    all.extend([
        saying(none_fits(0), &["no memory type is allowed"]),
        rendered(none_fits(0b1010)),
        rendered(auto()),
    ]);
    all.extend(each([
        BeginDefragmentationError::Foreign(ForeignHandle::Pool),
        BeginDefragmentationError::Algorithm { algorithm: Algorithm::Linear },
        BeginDefragmentationError::InProgress { memory_type: 17, is_pool: true },
        BeginDefragmentationError::InProgress { memory_type: 17, is_pool: false },
    ]));
    all.extend(each([
        AliasError::OutOfRange { offset: 1001, size: 1002, allocation_size: 1003 },
        AliasError::Alignment { offset: 1001, alignment: 256 },
        AliasError::MemoryType { memory_type: 17, memory_type_bits: 0b1010 },
        AliasError::RequiresDedicated,
        AliasError::Foreign(ForeignHandle::Allocation),
    ]));
    all.extend(each([
        PriorityError::NotEnabled,
        PriorityError::Priority { priority: 1.5 },
        PriorityError::NotDedicated,
        PriorityError::Foreign(ForeignHandle::Pool),
    ]));
    all.extend(each([
        ReserveMemoryError::MemoryType { memory_type: 17, allowed: 0b1010 },
        ReserveMemoryError::TooManyBlocks {
            bytes: 1001,
            blocks: 1002,
            block_count: 105,
            max_block_count: 106,
        },
        ReserveMemoryError::Memory(REFUSED),
        ReserveMemoryError::Foreign(ForeignHandle::Pool),
    ]));
    all
}

fn none_fits(memory_type_bits: u32) -> NoMemoryType {
    let required = vk::MemoryPropertyFlags::PROTECTED;
    NoMemoryType::NoneFits { usage: MemoryUsage::Auto, required, memory_type_bits }
}

fn auto() -> NoMemoryType {
    NoMemoryType::AutoWithoutResource { usage: MemoryUsage::AutoPreferHost }
}

fn wrapping() -> Vec<RenderedError> {
    let mut all = Vec::from(each([
        MapError::NotHostVisible { memory_type: 17 },
        MapError::NoHostAccess,
        MapError::OutOfRange { offset: 1001, size: 1002, allocation_size: 1003 },
        MapError::Foreign(ForeignHandle::Allocation),
        MapError::NotMapped,
        MapError::Driver(DRIVER),
        MapError::AddressSpace { size: 1002, mapped: 1003, limit: 1001 },
    ]));
    all.extend(each([
        BindError::OutOfRange { offset: 1001, allocation_size: 1002 },
        BindError::Foreign(ForeignHandle::Allocation),
        BindError::ExtensionNotPresent,
        BindError::Driver(DRIVER),
    ]));
    all.extend(each([
        ExportError::NotEnabled,
        ExportError::Foreign(ForeignHandle::Allocation),
        ExportError::Driver(DRIVER),
    ]));
    all.push(saying(
        HostImportError::Misaligned { address: 0x1234, size: 1002, alignment: 4096 },
        &["1002", "0x1234", "4096"],
    ));
    all.push(saying(HostImportError::MemoryTypes { host: 0b1010, buffer: 0b1100 }, &["0b1010", "0b1100"]));
    all.extend(each([
        HostImportError::NotEnabled,
        HostImportError::TooSmall { needed: 1002, given: 1001 },
        HostImportError::Driver(DRIVER),
        HostImportError::Create(CreateError::Sparse),
    ]));
    all.extend(each([
        CorruptionError::NotDetected,
        CorruptionError::Foreign(ForeignHandle::Pool),
        CorruptionError::Damaged(Box::default()),
        CorruptionError::Map(MapError::Driver(DRIVER)),
    ]));
    all.extend(each([
        AllocationError::ZeroSize,
        AllocationError::Alignment { alignment: 1003 },
        AllocationError::Priority { priority: 1.5 },
        AllocationError::Contradiction(Contradiction::PoolAndScope),
        AllocationError::NoMemoryType(none_fits(0b1010)),
        AllocationError::PoolMemoryType { memory_type: 17, memory_type_bits: 0b1010 },
        AllocationError::ForeignPool,
        AllocationError::UpperAddress { algorithm: Algorithm::Tlsf, max_block_count: 123 },
        AllocationError::UpperAddressInRing,
        AllocationError::BlockTooSmall { size: 1002, block_size: 1001 },
        FULL,
        AllocationError::Memory(REFUSED),
        AllocationError::Map(MapError::Driver(DRIVER)),
    ]));
    // Without a limit, the line says so in words.
    let unlimited = AllocationError::UpperAddress { algorithm: Algorithm::Tlsf, max_block_count: 0 };
    all.push(saying(unlimited, &["Tlsf", "any number of blocks"]));
    all.extend(each([
        AllocatePagesError::Lengths { requirements: 103, create_infos: 102 },
        AllocatePagesError::Element { index: 107, error: FULL },
        AllocatePagesError::Element { index: 107, error: AllocationError::Memory(REFUSED) },
    ]));
    all.extend(each([
        CreatePoolError::MemoryType { memory_type: 17, allowed: 0b1010 },
        CreatePoolError::BlockCounts { min: 103, max: 102 },
        CreatePoolError::BlockSize { block_size: 1002, max: 1001 },
        CreatePoolError::Alignment { alignment: 1003 },
        CreatePoolError::Priority { priority: 1.5 },
        CreatePoolError::TooMany,
        CreatePoolError::Memory(REFUSED),
    ]));
    all.extend(each([
        CreateError::ZeroExtent,
        CreateError::BufferTooLarge { size: 1002, max: 1001 },
        CreateError::DeviceAddress,
        CreateError::Sparse,
        CreateError::Disjoint,
        CreateError::Resource(DRIVER),
        CreateError::Allocation(FULL),
        CreateError::Allocation(AllocationError::Memory(REFUSED)),
        CreateError::Bind(DRIVER),
        CreateError::Alias(AliasError::RequiresDedicated),
    ]));
    all.extend(each([
        FindMemoryTypeError::Contradiction(Contradiction::TwoHostAccesses),
        FindMemoryTypeError::NoMemoryType(none_fits(0b1010)),
        FindMemoryTypeError::Disjoint,
        FindMemoryTypeError::BufferTooLarge { size: 1002, max: 1001 },
        FindMemoryTypeError::Resource(DRIVER),
    ]));
    let missing = MissingFunction { name: "vkAllocateMemory" };
    let api_version = vk::make_api_version(0, 2, 7, 0);
    all.push(saying(CreateAllocatorError::ApiVersion { api_version }, &["2.7"]));
    all.extend(each([
        CreateAllocatorError::MissingFunction(missing),
        CreateAllocatorError::ExtensionNotPresent { function: "vkGetMemoryFdKHR" },
        CreateAllocatorError::HeapLimits { limits: 103, heaps: 102 },
        CreateAllocatorError::NoMargin,
        CreateAllocatorError::BlockSizes { sizes: 103, types: 102 },
        CreateAllocatorError::ExternalMemoryHandleTypes { handle_types: 103, types: 102 },
    ]));
    all.push(rendered(TimelineError::MissingFunction(missing)));
    let timeline = Clock::new().add_timeline().unwrap();
    all.push(saying(
        TimelineError::Driver { timeline, source: DRIVER },
        &["timeline 0", "vkBindBufferMemory failed with ERROR_"],
    ));
    all
}

fn virtual_blocks() -> Vec<RenderedError> {
    let mut all = vec![rendered(VirtualBlockError::Size { size: 1002, max: 1001 })];
    all.extend(each([
        VirtualAllocationError::ZeroSize,
        VirtualAllocationError::Alignment { alignment: 1003 },
        VirtualAllocationError::NoSpace { size: 1001, alignment: 256, free: 1002, largest_free: 1003 },
        VirtualAllocationError::UpperUnsupported { algorithm: Algorithm::Buddy },
        VirtualAllocationError::UpperInRing,
    ]));
    all.extend([VirtualHandleError::ForeignBlock, VirtualHandleError::Cleared].map(rendered));

    let mut block = VirtualBlock::new(&VirtualBlockCreateInfo { size: 4096, ..Default::default() }).unwrap();
    let wanted = VirtualAllocationCreateInfo { size: 1024, ..Default::default() };
    let (_first, second) = (block.allocate(&wanted).unwrap(), block.allocate(&wanted).unwrap());
    block.clear();
    let refused = block.free(second).unwrap_err();
    all.push(saying(refused, &["1024 units", "at 1024", "was cleared"]));
    all
}

/// Errors that return a handle, which only a failed call can create.
fn provoked() -> Vec<RenderedError> {
    let gpu = sim::Gpu::new(sim::Profile::by_name("lavapipe").unwrap());
    // SAFETY: instance and device outlive the allocators.
    let new = || unsafe { Allocator::new(&AllocatorCreateInfo::for_gpu(&gpu)) }.unwrap();
    let (one, other) = (new(), new());
    let requirements = vk::MemoryRequirements { size: 4096, alignment: 256, memory_type_bits: !0 };
    let allocate = || one.allocate_memory(&requirements, &AllocationCreateInfo::default()).unwrap();
    let (first, kept, second) = (allocate(), allocate(), allocate());
    let mut all = Vec::new();

    // SAFETY: nothing was bound to it.
    let refused = unsafe { other.free_memory(second) }.unwrap_err();
    all.push(saying(&refused, &["4096 bytes at 8192 in memory type 0", "not freed", "another allocator"]));
    let mut second = refused.allocation;

    let pool = one.create_pool(&PoolCreateInfo::new(0)).unwrap();
    // SAFETY: the pool is empty.
    let refused = unsafe { other.destroy_pool(pool) }.unwrap_err();
    all.push(saying(refused, &["pool 0 of memory type 0", "not destroyed", "another allocator"]));
    let scope = one.create_scope(&ScopeCreateInfo { name: Some("level 3"), ..Default::default() }).unwrap();
    // SAFETY: the scope is empty.
    let refused = unsafe { other.free_scope(scope) }.unwrap_err();
    all.push(saying(refused, &["\"level 3\"", "not freed", "another allocator"]));

    let clock = Clock::new();
    let ticket = clock.open(clock.add_timeline().unwrap());
    let retired = RetiredResources::new();
    let doomed = one.create_pool(&PoolCreateInfo::new(0)).unwrap();
    let inside = AllocationCreateInfo { pool: Some(&doomed), ..Default::default() };
    // SAFETY: nothing was bound to it.
    unsafe { retired.retire_memory(ticket, one.allocate_memory(&requirements, &inside).unwrap()) };
    // SAFETY: the device never used its memory.
    unsafe { one.destroy_pool(doomed) }.unwrap();
    // SAFETY: as above.
    let refused = unsafe { retired.drain(&one) }.unwrap_err();
    all.push(saying(
        refused,
        &["0 resources", "1 were in a pool", "4096 bytes at 0", "its pool was destroyed"],
    ));

    // SAFETY: nothing was bound to it.
    unsafe { one.free_memory(first) }.unwrap();
    let mut moving = one.begin_defragmentation(&DefragmentationInfo::default()).unwrap();
    let mut pass = moving.begin_pass().unwrap();
    let moved = pass.next().unwrap();
    let mut wrong = if moved.source() == second.id() { kept } else { std::mem::replace(&mut second, kept) };
    let ids = [moved.source().to_string(), wrong.id().to_string()];
    let [right, given] = ids.each_ref().map(String::as_str);
    // SAFETY: the call is rejected.
    let refused = unsafe { moved.complete(&mut wrong) }.unwrap_err();
    all.push(saying(refused.error(), &[right, given]));
    all.push(saying(&refused, &["not completed", right, given]));
    let moved = refused.unfinished;
    // SAFETY: the call is rejected.
    let refused = unsafe { moved.free(wrong) }.unwrap_err();
    all.push(saying(&refused, &["4096 bytes", "not freed", right, given]));
    all.push(rendered(MoveError::Foreign(ForeignHandle::Allocation)));
    all.push(rendered(MoveError::Map(MapError::Driver(DRIVER))));
    all
}
