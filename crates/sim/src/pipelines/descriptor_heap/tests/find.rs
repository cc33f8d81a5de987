//! Descriptors in heaps that shaders find.
#![expect(unsafe_code, reason = "tests call Vulkan")]

pub(super) use ash::vk;
pub(super) use ash::vk::BufferUsageFlags as Usage;
pub(super) use ash::vk::DescriptorType as Type;

pub(super) use crate::Gpu;
pub(super) use crate::execution::kernel::tests::fixture::{Buffer, KernelFixture, POINT, STAGE};
pub(super) use crate::facts::arithmetic::host_size;
pub(super) use crate::facts::ffi;
pub(super) use crate::facts::ffi::{mapping_source as source, resource_type as resource};
pub(super) use crate::facts::profiles::{DescriptorHeapLimits, Profile};
pub(super) use crate::objects::kernels::Kernel;

pub(super) const LIMITS: DescriptorHeapLimits = DescriptorHeapLimits::NVIDIA;
/// Bytes of a heap that are not reserved.
pub(super) const ROOM: u64 = 4096;
pub(super) const HEAP: Usage =
    Usage::from_raw(ffi::BUFFER_USAGE_DESCRIPTOR_HEAP.as_raw() | Usage::SHADER_DEVICE_ADDRESS.as_raw());
pub(super) const STORAGE: Usage =
    Usage::from_raw(Usage::STORAGE_BUFFER.as_raw() | Usage::SHADER_DEVICE_ADDRESS.as_raw());
pub(super) const UNIFORM: Usage =
    Usage::from_raw(Usage::UNIFORM_BUFFER.as_raw() | Usage::SHADER_DEVICE_ADDRESS.as_raw());

/// A fixture with the functions of the extension.
pub(super) struct HeapFixture {
    pub(super) kernels: KernelFixture,
    write: ffi::PFN_vkWriteResourceDescriptorsEXT,
    write_samplers: ffi::PFN_vkWriteSamplerDescriptorsEXT,
    bind_samplers: ffi::PFN_vkCmdBindHeapEXT,
    bind_resources: ffi::PFN_vkCmdBindHeapEXT,
    push: ffi::PFN_vkCmdPushDataEXT,
    size: ffi::PFN_vkGetPhysicalDeviceDescriptorSizeEXT,
}

impl HeapFixture {
    pub(super) fn new() -> Self {
        let profile = Profile::by_name("nvidia-rtx-5070-ti").unwrap();
        let fixture = KernelFixture::of(Gpu::builder(profile).descriptor_heap(LIMITS).build());
        let instance = fixture.gpu.instance();
        let of_device = |name: &std::ffi::CStr| unsafe {
            (instance.fp_v1_0().get_device_proc_addr)(fixture.device().handle(), name.as_ptr()).unwrap()
        };
        let of_instance = |name: &std::ffi::CStr| unsafe {
            fixture.gpu.entry().get_instance_proc_addr(instance.handle(), name.as_ptr()).unwrap()
        };
        // Each function has the type of its name.
        unsafe {
            Self {
                write: std::mem::transmute(of_device(c"vkWriteResourceDescriptorsEXT")),
                write_samplers: std::mem::transmute(of_device(c"vkWriteSamplerDescriptorsEXT")),
                bind_samplers: std::mem::transmute(of_device(c"vkCmdBindSamplerHeapEXT")),
                bind_resources: std::mem::transmute(of_device(c"vkCmdBindResourceHeapEXT")),
                push: std::mem::transmute(of_device(c"vkCmdPushDataEXT")),
                size: std::mem::transmute(of_instance(c"vkGetPhysicalDeviceDescriptorSizeEXT")),
                kernels: fixture,
            }
        }
    }

    pub(super) fn write(
        &self,
        kind: Type,
        data: ffi::ResourceDescriptorDataEXT,
        bytes: &mut [u8],
    ) -> vk::Result {
        let info = ffi::ResourceDescriptorInfoEXT { ty: kind, data, ..Default::default() };
        let to = ffi::HostAddressRangeEXT { address: bytes.as_mut_ptr().cast(), size: bytes.len() };
        unsafe { (self.write)(self.kernels.device().handle(), 1, &info, &to) }
    }

    /// The bytes of a buffer's descriptor.
    pub(super) fn buffer(&self, kind: Type, address: u64, size: u64) -> Vec<u8> {
        let range = ffi::DeviceAddressRangeKHR { address, size };
        let mut bytes = vec![0; host_size(LIMITS.buffer).unwrap()];
        let _ = self.write(kind, ffi::ResourceDescriptorDataEXT { p_address_range: &range }, &mut bytes);
        bytes
    }

    pub(super) fn sampler(&self, info: &vk::SamplerCreateInfo<'_>) -> Vec<u8> {
        let mut bytes = vec![0; host_size(LIMITS.sampler).unwrap()];
        let to = ffi::HostAddressRangeEXT { address: bytes.as_mut_ptr().cast(), size: bytes.len() };
        let _ = unsafe { (self.write_samplers)(self.kernels.device().handle(), 1, info, &to) };
        bytes
    }

    /// A buffer for a resource heap, the reserved range at its end.
    pub(super) fn heap(&self) -> Buffer {
        self.kernels.buffer(ROOM + LIMITS.resource_reserved, HEAP)
    }

    pub(super) fn bind(&self, commands: vk::CommandBuffer, heap: Buffer) {
        unsafe { (self.bind_resources)(commands, &resources(heap)) };
    }

    pub(super) fn push(&self, commands: vk::CommandBuffer, offset: u32, bytes: &[u8]) {
        let data = ffi::HostAddressRangeConstEXT { address: bytes.as_ptr().cast(), size: bytes.len() };
        unsafe { (self.push)(commands, &ffi::PushDataInfoEXT { offset, data, ..Default::default() }) };
    }

    pub(super) fn pipeline(
        &self,
        layout: vk::PipelineLayout,
        mappings: &[ffi::DescriptorSetAndBindingMappingEXT],
    ) -> Result<vk::Pipeline, vk::Result> {
        let device = self.kernels.device();
        let code = [0x0723_0203];
        let mut module = vk::ShaderModuleCreateInfo::default().code(&code);
        let mut mapped = ffi::ShaderDescriptorSetAndBindingMappingInfoEXT {
            mapping_count: u32::try_from(mappings.len()).unwrap(),
            p_mappings: mappings.as_ptr(),
            ..Default::default()
        };
        let mut flags =
            vk::PipelineCreateFlags2CreateInfoKHR::default().flags(ffi::PIPELINE_CREATE_2_DESCRIPTOR_HEAP);
        let stage = vk::PipelineShaderStageCreateInfo::default().stage(STAGE).name(c"main");
        let stage = stage.push_next(&mut module).push_next(&mut mapped);
        let info = vk::ComputePipelineCreateInfo::default().stage(stage).layout(layout).push_next(&mut flags);
        let made = unsafe { device.create_compute_pipelines(vk::PipelineCache::null(), &[info], None) };
        made.map(|made| made[0]).map_err(|(_, error)| error)
    }

    /// Runs a shader with these mappings, and says which rules were broken.
    pub(super) fn run(
        &self,
        mappings: &[ffi::DescriptorSetAndBindingMappingEXT],
        kernel: impl Fn(&mut Kernel<'_>) + Send + Sync + 'static,
        record: impl FnOnce(vk::CommandBuffer),
    ) -> Vec<&'static str> {
        self.kernels.gpu.set_kernel("main", kernel);
        let pipeline = self.pipeline(vk::PipelineLayout::null(), mappings).unwrap();
        self.kernels.dispatch(pipeline, record);
        unsafe { self.kernels.device().destroy_pipeline(pipeline, None) };
        self.kernels.reports()
    }
}

pub(super) fn resources(heap: Buffer) -> ffi::BindHeapInfoEXT {
    ffi::BindHeapInfoEXT {
        heap_range: ffi::DeviceAddressRangeKHR {
            address: heap.address,
            size: ROOM + LIMITS.resource_reserved,
        },
        reserved_range_offset: ROOM,
        reserved_range_size: LIMITS.resource_reserved,
        ..Default::default()
    }
}

pub(super) fn mapping(
    mask: u32,
    source: i32,
    source_data: ffi::DescriptorMappingSourceDataEXT,
) -> ffi::DescriptorSetAndBindingMappingEXT {
    ffi::DescriptorSetAndBindingMappingEXT {
        binding_count: 1,
        resource_mask: mask,
        source,
        source_data,
        ..Default::default()
    }
}

pub(super) fn constant(
    mask: u32,
    heap_offset: u32,
    heap_array_stride: u32,
) -> ffi::DescriptorSetAndBindingMappingEXT {
    let constant_offset = ffi::DescriptorMappingSourceConstantOffsetEXT {
        heap_offset,
        heap_array_stride,
        ..Default::default()
    };
    let data = ffi::DescriptorMappingSourceDataEXT { constant_offset };
    mapping(mask, source::HEAP_WITH_CONSTANT_OFFSET, data)
}

pub(super) fn push_index(pushed: u32, stride: u32) -> ffi::DescriptorMappingSourcePushIndexEXT {
    ffi::DescriptorMappingSourcePushIndexEXT {
        push_offset: pushed,
        heap_index_stride: stride,
        heap_array_stride: 16,
        ..Default::default()
    }
}

pub(super) fn by_push_index(pushed: u32, stride: u32) -> ffi::DescriptorSetAndBindingMappingEXT {
    let data = ffi::DescriptorMappingSourceDataEXT { push_index: push_index(pushed, stride) };
    mapping(resource::READ_WRITE_STORAGE_BUFFER, source::HEAP_WITH_PUSH_INDEX, data)
}

pub(super) const BUFFERS: u32 = resource::READ_WRITE_STORAGE_BUFFER;

/// Adds one to the first word of set 0, binding 0, element 1.
pub(super) fn increment(kernel: &mut Kernel<'_>) {
    let buffer = kernel.buffer(0, 0, 1);
    buffer.write_u32(0, buffer.read_u32(0) + 1);
}

#[test]
fn a_gpu_says_what_it_was_given() {
    let fixture = HeapFixture::new();
    let mut heap = ffi::PhysicalDeviceDescriptorHeapPropertiesEXT::default();
    let mut properties = vk::PhysicalDeviceProperties2::default().push_next(&mut heap);
    let (instance, physical) = (fixture.kernels.gpu.instance(), fixture.kernels.gpu.physical_device());
    unsafe { instance.get_physical_device_properties2(physical, &mut properties) };
    assert_eq!(heap.min_resource_heap_reserved_range, LIMITS.resource_reserved);
    assert_eq!((heap.sampler_descriptor_size, heap.max_push_data_size), (32, 256));
    assert_eq!(unsafe { (fixture.size)(physical, Type::STORAGE_BUFFER) }, LIMITS.buffer);
    assert_eq!(unsafe { (fixture.size)(physical, Type::COMBINED_IMAGE_SAMPLER) }, 0);
    assert_eq!(fixture.kernels.reports(), ["VUID-vkGetPhysicalDeviceDescriptorSizeEXT-type-11362"]);
}

#[test]
fn every_source_of_a_buffer_leads_to_it() {
    let fixture = HeapFixture::new();
    let heap = fixture.heap();
    let target = fixture.kernels.buffer(1024, STORAGE);
    let table = fixture.kernels.buffer(256, UNIFORM);
    // Slots of 16 bytes; the descriptor is in slot 5.
    fixture.kernels.write(heap, 80, &fixture.buffer(Type::STORAGE_BUFFER, target.address + 256, 64));
    // Indices and addresses that shaders find in memory.
    fixture.kernels.write(table, 0, &4_u32.to_le_bytes());
    fixture.kernels.write(table, 4, &5_u32.to_le_bytes());
    fixture.kernels.write(table, 16, &(target.address + 256).to_le_bytes());
    let indirect = ffi::DescriptorMappingSourceIndirectIndexEXT {
        push_offset: 8,
        heap_index_stride: 16,
        heap_array_stride: 16,
        ..Default::default()
    };
    let each = ffi::DescriptorMappingSourceIndirectIndexArrayEXT {
        push_offset: 8,
        heap_index_stride: 16,
        ..Default::default()
    };
    type Data = ffi::DescriptorMappingSourceDataEXT;
    let address = ffi::DescriptorMappingSourceIndirectAddressEXT { push_offset: 8, address_offset: 16 };
    let sources = [
        constant(BUFFERS, 64, 16),
        by_push_index(0, 16),
        mapping(BUFFERS, source::HEAP_WITH_INDIRECT_INDEX, Data { indirect_index: indirect }),
        mapping(BUFFERS, source::HEAP_WITH_INDIRECT_INDEX_ARRAY, Data { indirect_index_array: each }),
        mapping(BUFFERS, source::PUSH_ADDRESS, Data { push_address_offset: 16 }),
        mapping(BUFFERS, source::INDIRECT_ADDRESS, Data { indirect_address: address }),
    ];
    for (count, source) in (1_u8..).zip(sources) {
        let reports = fixture.run(&[source], increment, |commands| {
            fixture.bind(commands, heap);
            fixture.push(commands, 0, &4_u64.to_le_bytes());
            fixture.push(commands, 8, &table.address.to_le_bytes());
            fixture.push(commands, 16, &(target.address + 256).to_le_bytes());
        });
        assert!(reports.is_empty(), "{reports:?}");
        assert_eq!(fixture.kernels.bytes(target, 257)[256], count);
    }
}

#[test]
fn data_of_the_heap_and_push_data_are_uniform_buffers() {
    let fixture = HeapFixture::new();
    let heap = fixture.heap();
    fixture.kernels.write(heap, 1024 + 256, &[7, 0, 0, 0]);
    type Data = ffi::DescriptorMappingSourceDataEXT;
    let heap_data = ffi::DescriptorMappingSourceHeapDataEXT { heap_offset: 1024, push_offset: 4 };
    let uniform = resource::UNIFORM_BUFFER;
    let mut pushed = mapping(uniform, source::PUSH_DATA, Data { push_data_offset: 8 });
    pushed.first_binding = 1;
    let mappings = [mapping(uniform, source::RESOURCE_HEAP_DATA, Data { heap_data }), pushed];
    let kernel = |kernel: &mut Kernel<'_>| {
        assert_eq!(kernel.buffer(0, 0, 0).read_u32(0), 7);
        assert_eq!(kernel.buffer(0, 0, 0).len(), ROOM - 1280);
        assert_eq!(kernel.buffer(0, 1, 0).read_u32(4), 9);
        assert_eq!(kernel.buffer(0, 1, 0).len(), 8);
        // Neither may be written.
        kernel.buffer(0, 0, 0).write_u32(0, 1);
        kernel.buffer(0, 1, 0).write_u32(0, 1);
    };
    let reports = fixture.run(&mappings, kernel, |commands| {
        fixture.bind(commands, heap);
        fixture.push(commands, 4, &256_u32.to_le_bytes());
        fixture.push(commands, 8, &[8, 0, 0, 0, 9, 0, 0, 0]);
    });
    assert_eq!(reports, ["SUBLET-descriptor-read-only"; 2]);
}

#[test]
fn a_combined_index_has_an_image_and_a_sampler() {
    let fixture = HeapFixture::new();
    let heap = fixture.heap();
    let size = ROOM + LIMITS.sampler_reserved;
    let samplers = fixture.kernels.buffer(size, HEAP);
    let linear = vk::SamplerCreateInfo::default().mag_filter(vk::Filter::LINEAR);
    fixture.kernels.write(samplers, 3 * 32, &fixture.sampler(&linear));
    let mut index = push_index(0, 32);
    index.use_combined_image_sampler_index = vk::TRUE;
    index.sampler_heap_index_stride = 32;
    let data = ffi::DescriptorMappingSourceDataEXT { push_index: index };
    let mappings = [mapping(resource::COMBINED_SAMPLED_IMAGE, source::HEAP_WITH_PUSH_INDEX, data)];
    let kernel = |kernel: &mut Kernel<'_>| {
        assert_eq!(kernel.mapped_sampler(0, 0, 0).unwrap().mag_filter, vk::Filter::LINEAR);
        assert_eq!(kernel.heap_sampler(96).unwrap().mag_filter, vk::Filter::LINEAR);
        assert_eq!(kernel.mapped_image(0, 0, 0), vk::Image::null());
    };
    let reports = fixture.run(&mappings, kernel, |commands| {
        fixture.bind(commands, heap);
        let info = ffi::BindHeapInfoEXT {
            heap_range: ffi::DeviceAddressRangeKHR { address: samplers.address, size },
            reserved_range_offset: ROOM,
            reserved_range_size: LIMITS.sampler_reserved,
            ..Default::default()
        };
        unsafe { (fixture.bind_samplers)(commands, &info) };
        fixture.push(commands, 0, &(3_u32 << 20 | 2).to_le_bytes());
    });
    assert_eq!(reports, ["SUBLET-descriptor-unwritten"], "there is no image at index 2");
}

#[test]
fn a_heap_that_is_bound_against_the_rules_is_refused() {
    let fixture = HeapFixture::new();
    let heap = fixture.kernels.buffer((32 << 20) + 64, HEAP);
    let plain = fixture.kernels.buffer(ROOM + LIMITS.resource_reserved, STORAGE);
    let good = resources(heap);
    type Change = fn(&mut ffi::BindHeapInfoEXT);
    let changes: [(Change, &str); 6] = [
        (|info| info.reserved_range_offset += 32, "VUID-vkCmdBindResourceHeapEXT-pBindInfo-11232"),
        (|info| info.reserved_range_size -= 4, "VUID-vkCmdBindResourceHeapEXT-pBindInfo-11233"),
        (|info| info.heap_range.size = (32 << 20) + 1, "VUID-vkCmdBindResourceHeapEXT-pBindInfo-11234"),
        (|info| info.heap_range.address += 16, "VUID-vkCmdBindResourceHeapEXT-pBindInfo-11235"),
        (|info| info.reserved_range_offset -= 8, "VUID-vkCmdBindResourceHeapEXT-pBindInfo-11435"),
        (|info| info.reserved_range_offset -= 16, "VUID-vkCmdBindResourceHeapEXT-pBindInfo-11436"),
    ];
    for (change, rule) in changes {
        let mut info = good;
        change(&mut info);
        fixture.kernels.run(|commands| unsafe { (fixture.bind_resources)(commands, &info) });
        assert_eq!(fixture.kernels.reports(), [rule]);
    }
    fixture.kernels.run(|commands| fixture.bind(commands, plain));
    assert_eq!(fixture.kernels.reports(), ["VUID-vkCmdBindResourceHeapEXT-heapRange-11237"]);
    // The edge: what is right in every way. Other command buffers bind the same, or no reserved range of it.
    fixture.kernels.run(|commands| unsafe { (fixture.bind_resources)(commands, &good) });
    fixture.kernels.run(|commands| unsafe { (fixture.bind_resources)(commands, &good) });
    assert!(fixture.kernels.reports().is_empty());
    let mut other = good;
    other.heap_range.size += 32;
    other.reserved_range_offset += 32;
    fixture.kernels.run(|commands| unsafe { (fixture.bind_resources)(commands, &other) });
    assert_eq!(fixture.kernels.reports(), ["VUID-vkCmdBindResourceHeapEXT-pBindInfo-11236"]);
}

#[test]
fn push_data_beyond_its_room_is_refused() {
    let fixture = HeapFixture::new();
    let cases = [
        (252, 8, "VUID-VkPushDataInfoEXT-offset-11243"),
        (2, 4, "VUID-VkPushDataInfoEXT-offset-11418"),
        (0, 6, "VUID-VkPushDataInfoEXT-data-11419"),
    ];
    for (offset, size, rule) in cases {
        fixture.kernels.run(|commands| fixture.push(commands, offset, &vec![0; size]));
        assert_eq!(fixture.kernels.reports(), [rule]);
    }
    fixture.kernels.run(|commands| fixture.push(commands, 248, &[0; 8]));
}

#[test]
fn a_descriptor_that_breaks_a_rule_is_not_written() {
    let fixture = HeapFixture::new();
    let storage = fixture.kernels.buffer(1024, STORAGE);
    let cases = [
        (Type::UNIFORM_BUFFER, storage.address, 64, "VUID-VkResourceDescriptorInfoEXT-type-11461"),
        (Type::STORAGE_BUFFER, storage.address, 0, "VUID-VkResourceDescriptorInfoEXT-type-11433"),
        (Type::STORAGE_BUFFER, storage.address + 1, 64, "VUID-VkResourceDescriptorInfoEXT-type-12351"),
        (Type::STORAGE_BUFFER, storage.address, 1025, "VUID-VkResourceDescriptorInfoEXT-type-11462"),
        (Type::ACCELERATION_STRUCTURE_KHR, 128, 0, "VUID-VkResourceDescriptorInfoEXT-type-11454"),
        (Type::SAMPLER, storage.address, 64, "VUID-VkResourceDescriptorInfoEXT-type-11210"),
    ];
    for (kind, address, size, rule) in cases {
        assert!(fixture.buffer(kind, address, size).iter().all(|&byte| byte == 0));
        assert_eq!(fixture.kernels.reports(), [rule]);
    }
    let null = ffi::ResourceDescriptorDataEXT { p_address_range: std::ptr::null() };
    assert!(fixture.write(Type::STORAGE_BUFFER, null, &mut [0; 16]).result().is_err());
    assert_eq!(fixture.kernels.reports(), ["VUID-VkResourceDescriptorInfoEXT-None-11213"]);
    assert!(fixture.write(Type::STORAGE_BUFFER, null, &mut [0; 15]).result().is_err());
    assert_eq!(fixture.kernels.reports(), ["VUID-vkWriteResourceDescriptorsEXT-size-11207"]);
    let border = vk::SamplerCreateInfo::default().border_color(vk::BorderColor::INT_CUSTOM_EXT);
    fixture.sampler(&border);
    assert_eq!(fixture.kernels.reports(), ["VUID-vkWriteSamplerDescriptorsEXT-borderColor-11444"]);
    assert!(fixture.buffer(Type::STORAGE_BUFFER, storage.address, 1024).iter().any(|&byte| byte != 0));
}

#[test]
fn a_pipeline_with_wrong_mappings_is_not_made() {
    let fixture = HeapFixture::new();
    type Data = ffi::DescriptorMappingSourceDataEXT;
    let address = |push_offset, address_offset| {
        let indirect_address = ffi::DescriptorMappingSourceIndirectAddressEXT { push_offset, address_offset };
        vec![mapping(BUFFERS, source::INDIRECT_ADDRESS, Data { indirect_address })]
    };
    let pushed = |mask, push_data_offset| vec![mapping(mask, source::PUSH_DATA, Data { push_data_offset })];
    let mut several = by_push_index(0, 16);
    several.binding_count = 3;
    let mut last = constant(BUFFERS, 0, 16);
    last.first_binding = 2;
    let mut wide = pushed(resource::UNIFORM_BUFFER, 0);
    wide[0].binding_count = 2;
    let cases = [
        (vec![several, last], "VUID-VkShaderDescriptorSetAndBindingMappingInfoEXT-pMappings-11244"),
        (wide, "VUID-VkDescriptorSetAndBindingMappingEXT-source-11245"),
        (pushed(resource::UNIFORM_BUFFER, 2), "VUID-VkDescriptorSetAndBindingMappingEXT-source-11246"),
        (pushed(BUFFERS, 0), "VUID-VkDescriptorSetAndBindingMappingEXT-source-11356"),
        (
            vec![constant(resource::SAMPLED_IMAGE, 16, 32)],
            "VUID-VkDescriptorSetAndBindingMappingEXT-source-11251",
        ),
        (vec![constant(BUFFERS, 0, 8)], "VUID-VkDescriptorSetAndBindingMappingEXT-source-11252"),
        (vec![constant(0, 0, 16)], "VUID-VkDescriptorSetAndBindingMappingEXT-resourceMask-requiredbitmask"),
        (vec![by_push_index(2, 16)], "VUID-VkDescriptorMappingSourcePushIndexEXT-pushOffset-11258"),
        (vec![by_push_index(256, 16)], "VUID-VkDescriptorMappingSourcePushIndexEXT-pushOffset-11259"),
        (address(4, 0), "VUID-VkDescriptorMappingSourceIndirectAddressEXT-pushOffset-11266"),
        (address(256, 0), "VUID-VkDescriptorMappingSourceIndirectAddressEXT-pushOffset-11267"),
        (address(0, 4), "VUID-VkDescriptorMappingSourceIndirectAddressEXT-addressOffset-11268"),
    ];
    refused(&fixture, cases);
    let layout = fixture.kernels.layout(&[]);
    assert!(fixture.pipeline(layout, &[]).is_err());
    assert_eq!(fixture.kernels.reports(), ["VUID-VkComputePipelineCreateInfo-flags-11311"]);
}

pub(super) fn refused<const N: usize>(
    fixture: &HeapFixture,
    cases: [(Vec<ffi::DescriptorSetAndBindingMappingEXT>, &'static str); N],
) {
    for (mappings, rule) in cases {
        assert!(fixture.pipeline(vk::PipelineLayout::null(), &mappings).is_err(), "{rule}");
        assert_eq!(fixture.kernels.reports(), [rule]);
    }
}

#[test]
fn a_shader_that_looks_where_nothing_is_is_reported() {
    let fixture = HeapFixture::new();
    let heap = fixture.heap();
    let target = fixture.kernels.buffer(1024, STORAGE);
    fixture.kernels.write(heap, 0, &fixture.buffer(Type::STORAGE_BUFFER, target.address, 64));
    let look = |mappings: &[ffi::DescriptorSetAndBindingMappingEXT], bound: bool, index: Option<u32>| {
        fixture.run(
            mappings,
            |kernel| drop(kernel.buffer(0, 0, 0)),
            |commands| {
                if bound {
                    fixture.bind(commands, heap);
                }
                if let Some(index) = index {
                    fixture.push(commands, 0, &index.to_le_bytes());
                }
            },
        )
    };
    let index = [by_push_index(0, 16)];
    assert!(look(&index, true, Some(0)).is_empty());
    assert_eq!(look(&index, false, Some(0)), ["VUID-vkCmdDispatch-None-11308"]);
    assert_eq!(look(&index, true, None), ["VUID-vkCmdDispatch-None-11376"]);
    assert_eq!(look(&index, true, Some(1)), ["SUBLET-descriptor-unwritten"]);
    // The last slot before the reserved range, and the first in it.
    assert_eq!(look(&index, true, Some(255)), ["SUBLET-descriptor-unwritten"]);
    assert_eq!(look(&index, true, Some(256)), ["VUID-vkCmdDispatch-None-11309"]);
    assert_eq!(look(&[by_push_index(0, 8)], true, Some(1)), ["VUID-vkCmdDispatch-None-11297"]);
    assert_eq!(look(&[], true, None), ["VUID-VkComputePipelineCreateInfo-flags-11312"]);
    fixture.kernels.write(heap, 16, &[1, 2, 3, 4]);
    assert_eq!(look(&index, true, Some(1)), ["SUBLET-descriptor-garbage"]);
    fixture.kernels.destroy(target);
    assert_eq!(look(&index, true, Some(0)), ["SUBLET-descriptor-destroyed"]);
}

#[test]
fn an_embedded_sampler_wants_its_room() {
    let fixture = HeapFixture::new();
    let size = ROOM + LIMITS.sampler_reserved_with_embedded;
    let heap = fixture.kernels.buffer(size, HEAP);
    let linear = vk::SamplerCreateInfo::default().mag_filter(vk::Filter::LINEAR);
    let mut embedded = constant(resource::SAMPLER, 0, 0);
    embedded.source_data.constant_offset.p_embedded_sampler = std::ptr::from_ref(&linear).cast();
    let look = |reserved| {
        fixture.run(
            &[embedded],
            |kernel| {
                let _ = kernel.mapped_sampler(0, 0, 0);
            },
            |commands| {
                let info = ffi::BindHeapInfoEXT {
                    heap_range: ffi::DeviceAddressRangeKHR { address: heap.address, size },
                    reserved_range_offset: ROOM,
                    reserved_range_size: reserved,
                    ..Default::default()
                };
                unsafe { (fixture.bind_samplers)(commands, &info) };
            },
        )
    };
    assert_eq!(look(LIMITS.sampler_reserved), ["VUID-vkCmdDispatch-pBindInfo-11375"]);
    fixture.kernels.reset();
    assert!(look(LIMITS.sampler_reserved_with_embedded).is_empty());
}

#[test]
fn heaps_and_sets_undo_each_other() {
    let fixture = HeapFixture::new();
    let heap = fixture.heap();
    let target = fixture.kernels.buffer(1024, STORAGE);
    fixture.kernels.write(heap, 0, &fixture.buffer(Type::STORAGE_BUFFER, target.address, 64));
    let layout = fixture.kernels.layout(&[]);
    let mappings = [constant(BUFFERS, 0, 16)];
    let reports = fixture.run(
        &mappings,
        |kernel| drop(kernel.buffer(0, 0, 0)),
        |commands| {
            fixture.bind(commands, heap);
            unsafe { fixture.kernels.device().cmd_push_constants(commands, layout, STAGE, 0, &[0; 4]) };
        },
    );
    assert_eq!(reports, ["VUID-vkCmdDispatch-None-11308"]);
    fixture
        .kernels
        .gpu
        .set_kernel("plain", |kernel: &mut Kernel<'_>| kernel.read_push_constants(0, &mut [0; 4]));
    let plain = fixture.kernels.pipeline(layout, c"plain");
    fixture.kernels.run(|commands| unsafe {
        let device = fixture.kernels.device();
        device.cmd_bind_pipeline(commands, POINT, plain);
        device.cmd_push_constants(commands, layout, STAGE, 0, &[0; 4]);
        fixture.bind(commands, heap);
        device.cmd_dispatch(commands, 1, 1, 1);
    });
    assert_eq!(fixture.kernels.reports(), ["VUID-vkCmdDispatch-maintenance4-08602"]);
}

#[test]
fn a_device_that_has_not_enabled_it_has_no_heaps() {
    let profile = Profile::by_name("nvidia-rtx-5070-ti").unwrap();
    let builder = Gpu::builder(profile).descriptor_heap(LIMITS);
    let gpu = builder.extension("VK_KHR_buffer_device_address").build();
    let info = vk::BufferCreateInfo::default().size(64).usage(HEAP);
    assert!(unsafe { gpu.device().create_buffer(&info, None) }.is_err());
    assert_eq!(gpu.take_messages()[0].vuid, "VUID-VkBufferCreateInfo-usage-parameter");
    assert!(gpu.finish().is_empty());
}
