//! Images in shaders.
#![expect(unsafe_code, reason = "tests call Vulkan")]

use vk::ImageLayout as Layout;

use super::super::*;
use super::buffers::*;

const COLOR: vk::ImageAspectFlags = vk::ImageAspectFlags::COLOR;
const EXTENT: vk::Extent3D = vk::Extent3D { width: 4, height: 2, depth: 1 };

/// An image of two levels and two layers, and a view of its second level.
struct Picture {
    image: vk::Image,
    view: vk::ImageView,
}

impl Picture {
    fn new(device: &ash::Device) -> Self {
        let info = vk::ImageCreateInfo::default()
            .image_type(vk::ImageType::TYPE_2D)
            .format(vk::Format::R8G8_UINT)
            .extent(vk::Extent3D { width: 8, height: 4, depth: 1 })
            .mip_levels(2)
            .array_layers(2)
            .samples(vk::SampleCountFlags::TYPE_1)
            .usage(
                vk::ImageUsageFlags::STORAGE
                    | vk::ImageUsageFlags::SAMPLED
                    | vk::ImageUsageFlags::TRANSFER_SRC,
            );
        let image = unsafe { device.create_image(&info, None) }.unwrap();
        let needs = unsafe { device.get_image_memory_requirements(image) };
        let info = vk::MemoryAllocateInfo::default()
            .allocation_size(needs.size)
            .memory_type_index(needs.memory_type_bits.trailing_zeros());
        let memory = unsafe { device.allocate_memory(&info, None) }.unwrap();
        unsafe { device.bind_image_memory(image, memory, 0) }.unwrap();
        let range = vk::ImageSubresourceRange {
            aspect_mask: COLOR,
            base_mip_level: 1,
            level_count: vk::REMAINING_MIP_LEVELS,
            base_array_layer: 0,
            layer_count: vk::REMAINING_ARRAY_LAYERS,
        };
        let info = vk::ImageViewCreateInfo::default()
            .image(image)
            .view_type(vk::ImageViewType::TYPE_2D_ARRAY)
            .format(vk::Format::R8G8_UINT)
            .subresource_range(range);
        let view = unsafe { device.create_image_view(&info, None) }.unwrap();
        Self { image, view }
    }

    fn barrier(
        &self,
        device: &ash::Device,
        commands: vk::CommandBuffer,
        (old, new): (Layout, Layout),
        (src, dst): (vk::AccessFlags, vk::AccessFlags),
    ) {
        let range = vk::ImageSubresourceRange {
            aspect_mask: COLOR,
            base_mip_level: 0,
            level_count: 2,
            base_array_layer: 0,
            layer_count: 2,
        };
        let bar = vk::ImageMemoryBarrier::default()
            .image(self.image)
            .old_layout(old)
            .new_layout(new)
            .src_access_mask(src)
            .dst_access_mask(dst)
            .subresource_range(range);
        let stages = vk::PipelineStageFlags::COMPUTE_SHADER | vk::PipelineStageFlags::TRANSFER;
        let none = vk::DependencyFlags::empty();
        unsafe { device.cmd_pipeline_barrier(commands, stages, stages, none, &[], &[], &[bar]) };
    }
}

fn write_image(
    fixture: &KernelFixture,
    set: vk::DescriptorSet,
    binding: u32,
    kind: Type,
    view: vk::ImageView,
    layout: Layout,
) {
    let infos =
        [vk::DescriptorImageInfo { sampler: vk::Sampler::null(), image_view: view, image_layout: layout }];
    let write = vk::WriteDescriptorSet::default().dst_set(set).dst_binding(binding).descriptor_type(kind);
    unsafe { fixture.device().update_descriptor_sets(&[write.image_info(&infos)], &[]) };
}

/// A dispatch writes an image, and, after a barrier with these accesses, another one reads it with this layout. Then it
/// is copied to a buffer. The texels, and what is reported.
fn written_and_read(
    accesses: (vk::AccessFlags, vk::AccessFlags),
    read_in: Layout,
) -> (Vec<u8>, Vec<&'static str>) {
    let fixture =
        KernelFixture::of(Gpu::builder(Profile::by_name("nvidia-h200").unwrap()).hazards(true).build());
    let device = fixture.device();
    let set_layout =
        fixture.set_layout(LayoutFlags::empty(), &[(Type::STORAGE_IMAGE, 1), (Type::SAMPLED_IMAGE, 1)]);
    let layout = fixture.layout(&[set_layout]);
    let (write, read) = (fixture.pipeline(layout, c"write"), fixture.pipeline(layout, c"read"));
    fixture.gpu.set_kernel("write", |kernel| {
        let image = kernel.texels(0, 0, 0);
        assert_eq!((image.levels(), image.layers(), image.extent(0)), (1, 2, [4, 2, 1]));
        assert_eq!(image.extent(1), [0; 3]);
        for (y, x) in (0..2).flat_map(|y| (0..4).map(move |x| (y, x))) {
            image.write(0, 1, [x, y, 0], &[u8::try_from(x).unwrap(), u8::try_from(y).unwrap()]);
        }
    });
    fixture.gpu.set_kernel("read", |kernel| {
        let image = kernel.texels(0, 1, 0);
        assert_eq!(image.read(0, 1, [3, 1, 0]), [3, 1]);
    });
    let picture = Picture::new(device);
    let down = fixture.buffer(16, Usage::TRANSFER_DST);
    let set = set(&fixture, set_layout, &[Type::STORAGE_IMAGE, Type::SAMPLED_IMAGE]);
    write_image(&fixture, set, 0, Type::STORAGE_IMAGE, picture.view, Layout::GENERAL);
    write_image(&fixture, set, 1, Type::SAMPLED_IMAGE, picture.view, read_in);
    fixture.run(|commands| {
        let (none, shader) = (vk::AccessFlags::empty(), vk::AccessFlags::SHADER_WRITE);
        picture.barrier(device, commands, (Layout::UNDEFINED, Layout::GENERAL), (none, shader));
        dispatch(&fixture, commands, write, layout, set, &[]);
        picture.barrier(device, commands, (Layout::GENERAL, Layout::SHADER_READ_ONLY_OPTIMAL), accesses);
        dispatch(&fixture, commands, read, layout, set, &[]);
        let (from, to) = (Layout::SHADER_READ_ONLY_OPTIMAL, Layout::TRANSFER_SRC_OPTIMAL);
        picture.barrier(device, commands, (from, to), (none, vk::AccessFlags::TRANSFER_READ));
        let region = vk::BufferImageCopy {
            image_subresource: vk::ImageSubresourceLayers {
                aspect_mask: COLOR,
                mip_level: 1,
                base_array_layer: 1,
                layer_count: 1,
            },
            image_extent: EXTENT,
            ..Default::default()
        };
        unsafe { device.cmd_copy_image_to_buffer(commands, picture.image, to, down.handle, &[region]) };
    });
    let (texels, reports) = (fixture.bytes(down, 16), fixture.reports());
    (texels, reports)
}

#[test]
fn a_shader_writes_and_reads_texels() {
    let accesses = (vk::AccessFlags::SHADER_WRITE, vk::AccessFlags::SHADER_READ);
    let (texels, reports) = written_and_read(accesses, Layout::SHADER_READ_ONLY_OPTIMAL);
    assert_eq!(texels, [0, 0, 1, 0, 2, 0, 3, 0, 0, 1, 1, 1, 2, 1, 3, 1]);
    assert_eq!(reports, [""; 0]);
}

#[test]
fn texels_are_judged_as_a_subresource() {
    let (write, read) = (vk::AccessFlags::SHADER_WRITE, vk::AccessFlags::SHADER_READ);
    let rules = |accesses| written_and_read(accesses, Layout::SHADER_READ_ONLY_OPTIMAL).1;
    // A change of layout is a write itself.
    assert_eq!(rules((vk::AccessFlags::empty(), read)), ["SYNC-HAZARD-WRITE-AFTER-WRITE"]);
    assert_eq!(rules((write, vk::AccessFlags::empty())), ["SYNC-HAZARD-READ-AFTER-WRITE"]);
}

#[test]
fn an_image_is_in_the_layout_of_its_descriptor() {
    let accesses = (vk::AccessFlags::SHADER_WRITE, vk::AccessFlags::SHADER_READ);
    // The layout is that of its time: the command buffer changes it before and after.
    assert_eq!(written_and_read(accesses, Layout::GENERAL).1, ["VUID-vkCmdDraw-None-09600"]);
    assert_eq!(written_and_read(accesses, Layout::TRANSFER_SRC_OPTIMAL).1, ["VUID-vkCmdDraw-None-09600"]);
}

#[test]
fn texels_outside_of_the_view_are_reported() {
    let fixture = KernelFixture::new("nvidia-h200");
    let device = fixture.device();
    let kinds = [Type::STORAGE_IMAGE, Type::SAMPLED_IMAGE, Type::STORAGE_BUFFER];
    let set_layout = fixture.set_layout(LayoutFlags::empty(), &kinds.map(|kind| (kind, 1)));
    let layout = fixture.layout(&[set_layout]);
    let pipeline = fixture.pipeline(layout, c"wrong");
    fixture.gpu.set_kernel("wrong", |kernel| {
        let (stored, sampled) = (kernel.texels(0, 0, 0), kernel.texels(0, 1, 0));
        assert!(stored.read(0, 0, [4, 0, 0]).is_empty());
        assert!(stored.read(1, 0, [0; 3]).is_empty());
        stored.write(0, 2, [0; 3], &[1, 2]);
        stored.write(0, 0, [0; 3], &[1, 2, 3]);
        sampled.write(0, 0, [0; 3], &[1, 2]);
        let none = kernel.texels(0, 2, 0);
        assert_eq!((none.levels(), none.layers(), none.extent(0)), (0, 0, [0; 3]));
        none.write(0, 0, [0; 3], &[1, 2]);
        assert!(none.read(0, 0, [0; 3]).is_empty());
    });
    let picture = Picture::new(device);
    let buffer = fixture.buffer(16, Usage::STORAGE_BUFFER);
    let set = set(&fixture, set_layout, &kinds);
    write_image(&fixture, set, 0, kinds[0], picture.view, Layout::GENERAL);
    write_image(&fixture, set, 1, kinds[1], picture.view, Layout::GENERAL);
    write_buffer(&fixture, set, 2, kinds[2], (buffer.handle, 0, 16));
    fixture.run(|commands| {
        let none = vk::AccessFlags::empty();
        picture.barrier(device, commands, (Layout::UNDEFINED, Layout::GENERAL), (none, none));
        dispatch(&fixture, commands, pipeline, layout, set, &[]);
    });
    let outside = "SUBLET-descriptor-range";
    let expected =
        [outside, outside, outside, outside, "SUBLET-descriptor-read-only", "SUBLET-descriptor-type"];
    assert_eq!(fixture.reports(), expected);
}
