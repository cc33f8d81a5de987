//! Errors of descriptor pools, sets, binders and heaps.

use ash::vk;
use sublet::device::MissingFunction;
use sublet::{AllocationError, CreateError, MapError, sim};
use sublet_descriptors::*;

use super::{DRIVER, RenderedError, each, rendered, saying, unnumbered};

const KIND: DescriptorKind = DescriptorKind::StorageImage;
const NO_TYPE: vk::DescriptorType = vk::DescriptorType::from_raw(4711);
const MISSING: MissingFunction = MissingFunction { name: "vkGetDescriptorEXT" };
const NEEDED: DescriptorFeatures = DescriptorFeatures::DESCRIPTOR_BUFFER;

pub(crate) fn all() -> Vec<RenderedError> {
    let mut all = sets();
    all.extend(binders());
    all.extend(heaps());
    all
}

fn counts(count: u32) -> DescriptorCounts {
    DescriptorCounts::new().with(KIND, count)
}

fn sets() -> Vec<RenderedError> {
    let refused = || CreateDescriptorPoolError::Driver { sets: 1001, descriptors: 1002, source: DRIVER };
    let mut all = Vec::from(each([
        refused(),
        CreateDescriptorPoolError::UpdateAfterBindLimit { needed: 1002, left: 1001, source: DRIVER },
        CreateDescriptorPoolError::Unsupported { missing: NEEDED },
    ]));
    let flags = vk::DescriptorSetLayoutCreateFlags::DESCRIPTOR_BUFFER_EXT;
    let (need, capacity) = (Box::new(counts(1002)), Box::new(counts(1001)));
    all.extend(each([
        TransientError::TooLarge { need: need.clone(), capacity: capacity.clone() },
        TransientError::NoSetsOfLayout { flags },
        TransientError::VariableCount { count: 1002, max: 1001 },
        TransientError::MutableType { descriptor_type: NO_TYPE },
        TransientError::PoolLimit { max_pools: 1001 },
        TransientError::Pool { source: refused() },
        TransientError::Refused { need, capacity, source: DRIVER },
        TransientError::Driver { need: Box::new(counts(1002)), source: DRIVER },
        TransientError::TooManyPools { asked: 1002, max_pools: 1001 },
    ]));
    all.extend(each([
        CreateTransientSetsError::Unsupported { missing: NEEDED },
        CreateTransientSetsError::NoSets,
        CreateTransientSetsError::MinPools { min_pools: 1002, max_pools: 1001 },
        CreateTransientSetsError::Pool { source: refused() },
    ]));
    all.push(rendered(CollectPoolsError {
        collected: 1001,
        left: 1002,
        source: Some(DRIVER),
        other_clock: None,
    }));
    all.extend(each([
        PoolTemplateError::NoSets,
        PoolTemplateError::NoSizes,
        PoolTemplateError::ZeroSize { index: 107 },
        PoolTemplateError::UnknownType { index: 107, descriptor_type: NO_TYPE },
        PoolTemplateError::TooMany { descriptor_type: NO_TYPE },
        PoolTemplateError::UnknownStructure { s_type: vk::StructureType::from_raw(4711) },
    ]));
    all.push(rendered(SetLayoutError::UnknownType { binding: 107, descriptor_type: NO_TYPE }));
    all.extend(each([
        AllocateDescriptorSetError::NotForSets { flags },
        AllocateDescriptorSetError::NoVariableBinding { asked: 1001 },
        AllocateDescriptorSetError::VariableCountTooHigh { asked: 1002, most: 1001 },
        AllocateDescriptorSetError::UpdateAfterBindLimit { needed: 1002, left: 1001, source: DRIVER },
        AllocateDescriptorSetError::NoPool { sets: 1003, counts: counts(1002), source: refused() },
        AllocateDescriptorSetError::FreshPoolRefused { counts: counts(1002), source: DRIVER },
        AllocateDescriptorSetError::Driver { counts: counts(1002), source: DRIVER },
        AllocateDescriptorSetError::HostMemory { sets: 1001 },
        AllocateDescriptorSetError::TooManySets,
    ]));
    all.extend(
        [
            CreateDescriptorDeviceError::Missing(MISSING),
            CreateDescriptorDeviceError::NoDescriptorBuffer,
            CreateDescriptorDeviceError::NoDescriptorHeap,
        ]
        .map(rendered),
    );

    let gpu = sim::Gpu::new(sim::Profile::by_name("lavapipe").unwrap());
    // SAFETY: instance and device outlive the value.
    let device = unsafe { DescriptorDevice::new(&DescriptorDeviceCreateInfo::for_gpu(&gpu)) }.unwrap();
    let new = || PersistentSets::new(&PersistentSetsCreateInfo::new(&device));
    let (one, other) = (new(), new());
    let bindings = [vk::DescriptorSetLayoutBinding::default()
        .descriptor_type(vk::DescriptorType::UNIFORM_BUFFER)
        .descriptor_count(1)
        .stage_flags(vk::ShaderStageFlags::ALL)];
    let info = vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings);
    // SAFETY: the create-info is valid.
    let handle = unsafe { gpu.device().create_descriptor_set_layout(&info, None) }.unwrap();
    // SAFETY: the layout was created from this create-info.
    let layout = unsafe { SetLayout::new(handle, &info) }.unwrap();
    // SAFETY: the layout outlives the set.
    let set = unsafe { one.allocate(&layout) }.unwrap();
    all.push(saying(StaleDescriptorSet { id: set.id() }, &["descriptor set 0", "freed or retired"]));
    // SAFETY: no submission used the set.
    let refused = unsafe { other.free(set) }.unwrap_err();
    all.push(saying(&refused, &["descriptor set 0", "given to another one"]));
    // SAFETY: as above.
    unsafe { one.free(refused.set) }.unwrap();
    drop((one, other));
    // SAFETY: none of its sets is left.
    unsafe { gpu.device().destroy_descriptor_set_layout(handle, None) };
    all
}

fn binders() -> Vec<RenderedError> {
    let (set, binding) = (103, 107);
    let mut all = Vec::from(each([
        PipelineLayoutError::TooManySets { asked: 1002, most: 1001 },
        PipelineLayoutError::TwoPushSets { first: 103, second: 104 },
        PipelineLayoutError::PushNotEnabled { set },
        PipelineLayoutError::TooManyPushDescriptors { set, asked: 1002, most: 1001 },
        PipelineLayoutError::TooManyDescriptors { kind: KIND, asked: 1002, most: 1001 },
        PipelineLayoutError::WrongModel { set, model: BindingModel::Buffer },
        PipelineLayoutError::NotInBuffers { set, binding, kind: KIND },
        PipelineLayoutError::SetSize { set, bytes: 1001 },
        PipelineLayoutError::BindingOffset { set, binding, offset: 1002, bytes: 1001 },
        PipelineLayoutError::Template(DRIVER),
    ]));
    let no_address = DescriptorDataError::NoAddress { kind: KIND };
    all.extend(each([
        StageError::NoLayout { point: BindPoint::Compute, set },
        StageError::NoSuchSet { set, sets: 102 },
        StageError::NoSuchBinding { set, binding },
        StageError::SetTooLarge { set, descriptors: 1002, most: 1001 },
        StageError::OutOfRange { binding, first: 1001, asked: 1002, count: 1003 },
        StageError::WrongType { binding, expected: KIND, given: DescriptorKind::Sampler },
        StageError::Data { binding, element: 109, source: no_address },
        StageError::Immutable { binding },
        StageError::NotDynamic { binding, kind: KIND },
        StageError::Misaligned { binding, given: 1001, alignment: 256 },
        StageError::NoSets { set },
        StageError::NoBuffers { set },
        StageError::MisalignedSet { set, given: 1001, alignment: 256 },
        StageError::NullSet { set },
    ]));
    all.push(rendered(UseLayoutError::LargerThanPage { bytes: 1002, page_size: 1001 }));
    all.push(saying(UseLayoutError::Foreign { layout: vk::PipelineLayout::null() }, &[]));
    all.extend(each([
        CreateBinderError::Sets(CreateTransientSetsError::MinPools { min_pools: 1002, max_pools: 1001 }),
        CreateBinderError::Pages(sublet::upload::CreateUploadError::Size { size: 1001 }),
    ]));
    all.extend(each([
        CommitError::Sets(TransientError::PoolLimit { max_pools: 1001 }),
        CommitError::Pages(sublet::upload::UploadError::Oversize { size: 1002, max: 1001 }),
        CommitError::TooManyBuffers { most: 117 },
    ]));
    all.extend(each([
        no_address,
        DescriptorDataError::Range { kind: KIND, range: 1001 },
        DescriptorDataError::NoCreateInfo { kind: KIND },
        DescriptorDataError::Dynamic { kind: KIND },
    ]));
    all
}

fn heaps() -> Vec<RenderedError> {
    let mut all = Vec::from(each([
        HeapError::ZeroCount,
        HeapError::HostMemory { asked: 1001 },
        HeapError::TooMany { asked: 1002, most: 1001 },
        HeapError::Full { asked: 1001, free: 1002, largest_free: 1003, retiring: 1004 },
        HeapError::NotGrown { asked: 1001, source: Box::new(CreateHeapError::Copies { copies: 1002 }) },
    ]));
    let outside = OutOfRange { slot: 1002, count: 1001 };
    let gpu = sim::Gpu::new(sim::Profile::by_name("lavapipe").unwrap());
    // SAFETY: instance and device outlive the value.
    let device = unsafe { DescriptorDevice::new(&DescriptorDeviceCreateInfo::for_gpu(&gpu)) }.unwrap();
    let mut heap = HostHeap::new(&device, &HostHeapCreateInfo::default()).unwrap();
    let range = heap.allocate(5).unwrap();
    all.push(rendered(outside));
    all.extend(unnumbered([
        RangeError::StaleHandle { range: range.id() },
        RangeError::ForeignHeap { range: range.id() },
    ]));
    all.push(saying(HeapWriteError::Range(RangeError::StaleHandle { range: range.id() }), &[]));
    let mut other = HostHeap::new(&device, &HostHeapCreateInfo::default()).unwrap();
    all.push(saying(other.free(range).unwrap_err(), &[]));
    all.extend(each([
        HeapWriteError::OutOfRange(outside),
        HeapWriteError::Kind { kind: KIND },
        HeapWriteError::Data(DescriptorDataError::Range { kind: KIND, range: 1001 }),
        HeapWriteError::Driver(DRIVER),
        HeapWriteError::Unlike { from: 1002, to: 1001 },
    ]));
    all.extend(each([
        CreateHeapError::Slots { slots: 1001, transient: 1002 },
        CreateHeapError::Block { block: 1002, max_slots: 1001 },
        CreateHeapError::HostMemory { slots: 1001, types: 107, copies: 17 },
        CreateHeapError::Kind { heap: HeapKind::Sampler, kind: KIND },
        CreateHeapError::Unsupported { missing: NEEDED },
        CreateHeapError::Limit { limit: "maxDescriptorSetSampledImages", asked: 1002, allowed: 1001 },
        CreateHeapError::Layout { descriptors: 1001 },
        CreateHeapError::NoSize { kind: KIND },
        CreateHeapError::NoDefault { kind: KIND },
        CreateHeapError::Copies { copies: 1001 },
        CreateHeapError::SplitArrays,
        CreateHeapError::Absurd { size: 1001, needed: 1002 },
        CreateHeapError::ForeignAllocator,
        CreateHeapError::Fixed { slots: 1001 },
        CreateHeapError::Pool(CreateDescriptorPoolError::Driver {
            sets: 1001,
            descriptors: 1002,
            source: DRIVER,
        }),
        CreateHeapError::Buffer(CreateError::Allocation(AllocationError::Map(MapError::Driver(DRIVER)))),
        CreateHeapError::Missing(MISSING),
        CreateHeapError::Driver(DRIVER),
    ]));
    all
}
