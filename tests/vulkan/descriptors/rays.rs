//! An acceleration structure in Vulkan's own heap, read by a ray query. Simulated devices have none.

use ash::{khr, vk};
use sublet::{AllocationCreateFlags as Flags, AllocationCreateInfo, MemoryUsage};
use sublet_descriptors::{AccelerationStructureDescriptor, Descriptor, DescriptorKind, HeapKind};
use sublet_examples::Compute;

use super::native::{heap, info, on_each_native_device};
use super::{Data, show_to_host, words};
use crate::{Buffer, Fixture};

/// Follows four rays, and writes the distances to the triangle, or -1.
const RAYS: &[u8] = include_bytes!("rays.spv");

/// The corners of a triangle that covers x = 0 and x = 1 of the axis.
const TRIANGLE: [f32; 9] = [-1.5, -1.5, 0.0, 3.0, -1.5, 0.0, -1.5, 3.0, 0.0];

/// An acceleration structure and its buffer.
struct Structure {
    handle: vk::AccelerationStructureKHR,
    buffer: Buffer,
    address: vk::DeviceAddress,
}

fn address(fixture: &Fixture<'_>, buffer: &Buffer) -> vk::DeviceAddress {
    let info = vk::BufferDeviceAddressInfo::default().buffer(buffer.0);
    // SAFETY: the buffer is live and bound, and all buffers here have the usage for addresses.
    unsafe { fixture.context.device().get_buffer_device_address(&info) }
}

/// Returns a buffer that builds read.
fn input(fixture: &Fixture<'_>, values: &[u32]) -> (Buffer, vk::DeviceAddress) {
    let usage = vk::BufferUsageFlags::ACCELERATION_STRUCTURE_BUILD_INPUT_READ_ONLY_KHR
        | vk::BufferUsageFlags::SHADER_DEVICE_ADDRESS;
    let host = AllocationCreateInfo {
        flags: Flags::HOST_ACCESS_SEQUENTIAL_WRITE,
        min_alignment: 16,
        ..AllocationCreateInfo::new(MemoryUsage::Auto)
    };
    let mut buffer = fixture.buffer(size_of_val(values) as u64, usage, &host);
    fixture.allocator.write_slice(values, &mut buffer.1, 0).unwrap();
    let address = address(fixture, &buffer);
    (buffer, address)
}

impl Structure {
    /// Builds a structure of one geometry with one primitive.
    fn build(
        fixture: &Fixture<'_>,
        vulkan: &khr::acceleration_structure::Device,
        ty: vk::AccelerationStructureTypeKHR,
        geometry: vk::AccelerationStructureGeometryKHR<'_>,
    ) -> Self {
        let geometries = [geometry];
        let mut info = vk::AccelerationStructureBuildGeometryInfoKHR::default()
            .ty(ty)
            .mode(vk::BuildAccelerationStructureModeKHR::BUILD)
            .geometries(&geometries);
        let mut sizes = vk::AccelerationStructureBuildSizesInfoKHR::default();
        let on_device = vk::AccelerationStructureBuildTypeKHR::DEVICE;
        // SAFETY: there is one count for the one geometry.
        unsafe { vulkan.get_acceleration_structure_build_sizes(on_device, &info, &[1], &mut sizes) };
        // Every device allows this offset of scratch memory.
        let in_device =
            AllocationCreateInfo { min_alignment: 256, ..AllocationCreateInfo::new(MemoryUsage::Auto) };
        let usage = vk::BufferUsageFlags::ACCELERATION_STRUCTURE_STORAGE_KHR
            | vk::BufferUsageFlags::SHADER_DEVICE_ADDRESS;
        let buffer = fixture.buffer(sizes.acceleration_structure_size, usage, &in_device);
        let usage = vk::BufferUsageFlags::STORAGE_BUFFER | vk::BufferUsageFlags::SHADER_DEVICE_ADDRESS;
        let scratch = fixture.buffer(sizes.build_scratch_size, usage, &in_device);
        let create_info = vk::AccelerationStructureCreateInfoKHR::default()
            .buffer(buffer.0)
            .size(sizes.acceleration_structure_size)
            .ty(ty);
        // SAFETY: the buffer has this size and the usage for structures.
        let handle = unsafe { vulkan.create_acceleration_structure(&create_info, None) }.unwrap();
        info.dst_acceleration_structure = handle;
        info.scratch_data.device_address = address(fixture, &scratch);
        let ranges = [vk::AccelerationStructureBuildRangeInfoKHR::default().primitive_count(1)];
        let record = |_: &ash::Device, commands| {
            // SAFETY: the command buffer is being recorded, and all buffers live until the queue is idle.
            unsafe { vulkan.cmd_build_acceleration_structures(commands, &[info], &[&ranges]) };
        };
        fixture.context.submit(record).unwrap();
        fixture.destroy(scratch);
        let info = vk::AccelerationStructureDeviceAddressInfoKHR::default().acceleration_structure(handle);
        // SAFETY: the structure is live.
        let address = unsafe { vulkan.get_acceleration_structure_device_address(&info) };
        Self { handle, buffer, address }
    }

    fn destroy(self, fixture: &Fixture<'_>, vulkan: &khr::acceleration_structure::Device) {
        // SAFETY: the queue is idle.
        unsafe { vulkan.destroy_acceleration_structure(self.handle, None) };
        fixture.destroy(self.buffer);
    }
}

/// Builds a triangle, and a scene with one instance of it.
fn scene(fixture: &Fixture<'_>, vulkan: &khr::acceleration_structure::Device) -> [Structure; 2] {
    let (vertices, vertices_at) = input(fixture, &TRIANGLE.map(f32::to_bits));
    let triangles = vk::AccelerationStructureGeometryTrianglesDataKHR::default()
        .vertex_format(vk::Format::R32G32B32_SFLOAT)
        .vertex_data(vk::DeviceOrHostAddressConstKHR { device_address: vertices_at })
        .vertex_stride(12)
        .max_vertex(2)
        .index_type(vk::IndexType::NONE_KHR);
    let geometry = vk::AccelerationStructureGeometryKHR::default()
        .geometry_type(vk::GeometryTypeKHR::TRIANGLES)
        .geometry(vk::AccelerationStructureGeometryDataKHR { triangles })
        .flags(vk::GeometryFlagsKHR::OPAQUE);
    let bottom = vk::AccelerationStructureTypeKHR::BOTTOM_LEVEL;
    let triangle = Structure::build(fixture, vulkan, bottom, geometry);
    // The words of `VkAccelerationStructureInstanceKHR`: an identity matrix, a mask of all bits, and the address.
    let one = 1.0_f32.to_bits();
    let mut instance = [0; 16];
    (instance[0], instance[5], instance[10], instance[12]) = (one, one, one, 0xff << 24);
    (instance[14], instance[15]) = (triangle.address as u32, (triangle.address >> 32) as u32);
    let (instances, instances_at) = input(fixture, &instance);
    let data = vk::AccelerationStructureGeometryInstancesDataKHR::default()
        .data(vk::DeviceOrHostAddressConstKHR { device_address: instances_at });
    let geometry = vk::AccelerationStructureGeometryKHR::default()
        .geometry_type(vk::GeometryTypeKHR::INSTANCES)
        .geometry(vk::AccelerationStructureGeometryDataKHR { instances: data });
    let top = vk::AccelerationStructureTypeKHR::TOP_LEVEL;
    let scene = Structure::build(fixture, vulkan, top, geometry);
    fixture.destroy(vertices);
    fixture.destroy(instances);
    [triangle, scene]
}

#[test]
fn a_ray_query_reads_an_acceleration_structure_of_a_native_heap() {
    on_each_native_device(|fixture| {
        let context = fixture.context;
        if !context.enabled().is_some_and(|enabled| enabled.ray_query) {
            println!("{}: skipped, no ray queries", context.device_name());
            return;
        }
        let vulkan = khr::acceleration_structure::Device::new(context.instance(), context.device());
        let [triangle, scene] = scene(fixture, &vulkan);
        let device = fixture.descriptor_device();
        let types = [DescriptorKind::AccelerationStructure, DescriptorKind::StorageBuffer];
        let heap = heap(fixture, &device, &info(HeapKind::Resource, &types));
        let data = Data::new(fixture, 1);
        let range = heap.allocate(2).unwrap();
        let structure =
            AccelerationStructureDescriptor { handle: scene.handle, address: Some(scene.address) };
        let all = [Descriptor::AccelerationStructure(structure), Descriptor::StorageBuffer(data.target(0))];
        for (at, descriptor) in (0..).zip(&all) {
            // SAFETY: the scene and the buffer are live, and no shader reads the slot.
            let slot = unsafe { heap.write(range.id(), at, descriptor) }.unwrap();
            assert_eq!(slot, at, "the shader expects these slots");
        }
        let compute = Compute::with_heaps(context, &words(RAYS), heap.store().mappings(0)).unwrap();
        let record = |vulkan: &ash::Device, commands: vk::CommandBuffer| {
            // SAFETY: the command buffer is being recorded, and inherits nothing.
            unsafe { heap.store().cmd_bind(commands) };
            // SAFETY: it is a compute pipeline.
            unsafe { vulkan.cmd_bind_pipeline(commands, vk::PipelineBindPoint::COMPUTE, compute.pipeline) };
            // SAFETY: everything that the pipeline needs is bound.
            unsafe { vulkan.cmd_dispatch(commands, 1, 1, 1) };
            show_to_host(vulkan, commands);
        };
        context.submit(record).unwrap();
        let found: Vec<_> = data.read(0)[..4].iter().map(|&bits| f32::from_bits(bits)).collect();
        assert!(
            found.iter().zip([2.0, 3.0, -1.0, -1.0]).all(|(at, wanted)| (at - wanted).abs() < 1e-4),
            "{found:?}"
        );
        drop(compute);
        // SAFETY: all submissions were waited for, and their command buffers are freed.
        unsafe { heap.into_store().destroy() };
        data.destroy();
        scene.destroy(fixture, &vulkan);
        triangle.destroy(fixture, &vulkan);
    });
}
