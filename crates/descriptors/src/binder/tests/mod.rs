//! Tests of the writes without templates.
#![expect(unsafe_code, reason = "tests call Vulkan")]

use ash::vk::{self, Handle as _};

use super::area::{CommittedSet, SetArea};
use super::plan::SetPlan;
use super::writes::for_writes;
use crate::{
    AccelerationStructureDescriptor, BindingModel, BufferDescriptor, Descriptor, DescriptorDevice,
    DescriptorDeviceCreateInfo, DescriptorKind as K, ImageDescriptor, SetLayout, TexelBufferDescriptor,
};
use sublet_sim::{Gpu, Profile};

/// Returns a plan for sets of these bindings; a mutable binding accepts buffers, texel buffers and images.
fn plan(gpu: &Gpu, shapes: &[(u32, K, u32)]) -> SetPlan {
    let info =
        DescriptorDeviceCreateInfo { model: BindingModel::Sets, ..DescriptorDeviceCreateInfo::for_gpu(gpu) };
    // SAFETY: instance and device are live, and outlive the value.
    let device = unsafe { DescriptorDevice::new(&info) }.unwrap();
    let bindings: Vec<_> = shapes
        .iter()
        .map(|&(number, kind, count)| {
            vk::DescriptorSetLayoutBinding::default()
                .binding(number)
                .descriptor_type(kind.to_vk())
                .descriptor_count(count)
        })
        .collect();
    let types = [
        vk::DescriptorType::STORAGE_BUFFER,
        vk::DescriptorType::UNIFORM_TEXEL_BUFFER,
        vk::DescriptorType::SAMPLED_IMAGE,
    ];
    let lists: Vec<_> =
        shapes.iter().map(|_| vk::MutableDescriptorTypeListEXT::default().descriptor_types(&types)).collect();
    let mut mutable = vk::MutableDescriptorTypeCreateInfoEXT::default().mutable_descriptor_type_lists(&lists);
    let info = vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings).push_next(&mut mutable);
    // SAFETY: the create-info is valid; the layout is only inspected.
    let layout = unsafe { SetLayout::new(vk::DescriptorSetLayout::null(), &info) }.unwrap();
    // SAFETY: the model is sets, so the driver gets no queries about the layout.
    unsafe { SetPlan::new(&device, 0, &layout) }.unwrap()
}

/// A write: binding, first element, type and count, and the first words behind its pointer.
type Seen = (u32, u32, vk::DescriptorType, u32, Vec<u64>);

fn writes(plan: &SetPlan, area: &SetArea) -> (Vec<Seen>, usize) {
    let mut seen = Vec::new();
    let mut calls = 0;
    for_writes(vk::DescriptorSet::from_raw(7), plan, area, |writes| {
        calls += 1;
        for write in writes {
            assert_eq!(write.dst_set, vk::DescriptorSet::from_raw(7));
            let given = [
                (write.p_image_info.cast::<u64>(), 3),
                (write.p_buffer_info.cast::<u64>(), 3),
                (write.p_texel_buffer_view.cast::<u64>(), 1),
            ];
            let mut words = Vec::new();
            for (pointer, each) in given.into_iter().filter(|(pointer, _)| !pointer.is_null()) {
                let count = each * sublet_engines::cast::index(write.descriptor_count);
                // SAFETY: Vulkan would read this many words through the pointer; the test checks that it is valid.
                words.extend_from_slice(unsafe { std::slice::from_raw_parts(pointer, count) });
            }
            if !write.p_next.is_null()
                && write.descriptor_type == vk::DescriptorType::ACCELERATION_STRUCTURE_KHR
            {
                // SAFETY: the chain of such a write has this structure.
                let next =
                    unsafe { &*write.p_next.cast::<vk::WriteDescriptorSetAccelerationStructureKHR<'_>>() };
                assert_eq!(next.acceleration_structure_count, write.descriptor_count);
                let count = sublet_engines::cast::index(next.acceleration_structure_count);
                // SAFETY: as above.
                let handles = unsafe { std::slice::from_raw_parts(next.p_acceleration_structures, count) };
                words.extend(handles.iter().map(|handle| handle.as_raw()));
            }
            seen.push((
                write.dst_binding,
                write.dst_array_element,
                write.descriptor_type,
                write.descriptor_count,
                words,
            ));
        }
    });
    (seen, calls)
}

fn stage(plan: &SetPlan, area: &mut SetArea, binding: u32, first: u32, descriptors: &[Descriptor]) {
    let binding = plan.binding(binding).unwrap();
    assert!(area.stage(plan, binding, first, descriptors));
    area.validate(plan);
}

fn gpu() -> Gpu {
    Gpu::new(Profile::by_name("nvidia-h200").unwrap())
}

fn buffer(raw: u64) -> Descriptor {
    Descriptor::StorageBuffer(BufferDescriptor::new(vk::Buffer::from_raw(raw), 16, 64))
}

fn texels(raw: u64) -> Descriptor {
    Descriptor::UniformTexelBuffer(TexelBufferDescriptor::new(vk::BufferView::from_raw(raw)))
}

fn image(raw: u64) -> Descriptor {
    Descriptor::SampledImage(ImageDescriptor::new(vk::ImageView::from_raw(raw), vk::ImageLayout::GENERAL))
}

#[test]
fn runs_of_what_is_staged_are_one_write_each() {
    let gpu = gpu();
    let plan = plan(&gpu, &[(2, K::StorageBuffer, 5), (9, K::UniformTexelBuffer, 3)]);
    let mut area = SetArea::default();
    stage(&plan, &mut area, 2, 0, &[buffer(1), buffer(2)]);
    stage(&plan, &mut area, 2, 4, &[buffer(3)]);
    stage(&plan, &mut area, 9, 1, &[texels(4), texels(5)]);
    let (seen, calls) = writes(&plan, &area);
    assert_eq!(calls, 1);
    assert_eq!(
        seen,
        [
            (2, 0, vk::DescriptorType::STORAGE_BUFFER, 2, vec![1, 16, 64, 2, 16, 64]),
            (2, 4, vk::DescriptorType::STORAGE_BUFFER, 1, vec![3, 16, 64]),
            (9, 1, vk::DescriptorType::UNIFORM_TEXEL_BUFFER, 2, vec![4, 5]),
        ]
    );
}

#[test]
fn mutable_descriptors_are_written_as_what_each_of_them_is() {
    let gpu = gpu();
    let plan = plan(&gpu, &[(0, K::Mutable, 6)]);
    assert!(!plan.may_have_template());
    let mut area = SetArea::default();
    let all = [buffer(1), buffer(2), texels(3), texels(4), image(5), buffer(6)];
    stage(&plan, &mut area, 0, 0, &all);
    let layout = u64::from_ne_bytes({
        let mut bytes = [0; 8];
        bytes[..4].copy_from_slice(&vk::ImageLayout::GENERAL.as_raw().to_ne_bytes());
        bytes
    });
    assert_eq!(
        writes(&plan, &area).0,
        [
            (0, 0, vk::DescriptorType::STORAGE_BUFFER, 2, vec![1, 16, 64, 2, 16, 64]),
            (0, 2, vk::DescriptorType::UNIFORM_TEXEL_BUFFER, 1, vec![3]),
            (0, 3, vk::DescriptorType::UNIFORM_TEXEL_BUFFER, 1, vec![4]),
            (0, 4, vk::DescriptorType::SAMPLED_IMAGE, 1, vec![0, 5, layout]),
            (0, 5, vk::DescriptorType::STORAGE_BUFFER, 1, vec![6, 16, 64]),
        ]
    );
    // The same words with another type are a different descriptor.
    let storage = Descriptor::UniformTexelBuffer(TexelBufferDescriptor::new(vk::BufferView::from_raw(6)));
    stage(&plan, &mut area, 0, 5, &[storage]);
    assert_eq!(writes(&plan, &area).0[4].2, vk::DescriptorType::UNIFORM_TEXEL_BUFFER);
}

#[test]
fn acceleration_structures_are_in_the_chain_of_their_write() {
    let gpu = gpu();
    let plan = plan(&gpu, &[(0, K::AccelerationStructure, 3), (1, K::StorageBuffer, 1)]);
    let structure = |raw| {
        let handle = vk::AccelerationStructureKHR::from_raw(raw);
        Descriptor::AccelerationStructure(AccelerationStructureDescriptor { handle, address: None })
    };
    let mut area = SetArea::default();
    stage(&plan, &mut area, 0, 1, &[structure(8), structure(9)]);
    stage(&plan, &mut area, 1, 0, &[buffer(1)]);
    let (seen, _) = writes(&plan, &area);
    assert!(
        seen.contains(&(0, 1, vk::DescriptorType::ACCELERATION_STRUCTURE_KHR, 2, vec![8, 9])),
        "{seen:?}"
    );
    assert!(seen.contains(&(1, 0, vk::DescriptorType::STORAGE_BUFFER, 1, vec![1, 16, 64])), "{seen:?}");
}

/// A null sampler is all zeros, like an unstaged element, but staging it is a change.
#[test]
fn what_is_staged_for_the_first_time_is_new_whatever_it_is() {
    let gpu = gpu();
    let plan = plan(&gpu, &[(0, K::Sampler, 2)]);
    let mut area = SetArea::default();
    stage(&plan, &mut area, 0, 0, &[Descriptor::Sampler(vk::Sampler::from_raw(1))]);
    area.set_made(CommittedSet::Pushed);
    assert!(area.is_as_made());
    stage(&plan, &mut area, 0, 1, &[Descriptor::Sampler(vk::Sampler::null())]);
    assert!(!area.is_as_made());
}

#[test]
fn as_many_writes_as_there_are_runs_however_many() {
    let gpu = gpu();
    let plan = plan(&gpu, &[(0, K::StorageBuffer, 101)]);
    let mut area = SetArea::default();
    for element in (0..101).step_by(2) {
        stage(&plan, &mut area, 0, element, &[buffer(u64::from(element) + 1)]);
    }
    let (seen, calls) = writes(&plan, &area);
    assert_eq!((seen.len(), calls), (51, 4));
    for (at, write) in (0..).zip(&seen) {
        assert_eq!((write.1, write.4[0]), (at * 2, u64::from(at) * 2 + 1));
    }
}
