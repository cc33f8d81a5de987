//! Many descriptors of one set, combined into the writes of one call.

use ash::vk;

use super::counts::DescriptorKind;
use super::descriptor::{Descriptor, DescriptorWrite};
use sublet_engines::cast::index;

/// Descriptors for one `vkUpdateDescriptorSets`. Descriptors of one type in consecutive slots form one write.
#[derive(Debug, Default)]
pub(super) struct WriteBatch {
    runs: Vec<WriteRun>,
    images: Vec<vk::DescriptorImageInfo>,
    buffers: Vec<vk::DescriptorBufferInfo>,
    texels: Vec<vk::BufferView>,
    structures: Vec<vk::AccelerationStructureKHR>,
}

/// One write.
#[derive(Debug)]
struct WriteRun {
    kind: DescriptorKind,
    binding: u32,
    element: u32,
    count: u32,
    /// The start of the data of this run in the array for its type. The data is contiguous, because any other
    /// descriptor ends the run.
    data: usize,
}

/// Adds a value, and returns its index.
fn add<T>(all: &mut Vec<T>, value: T) -> usize {
    all.push(value);
    all.len() - 1
}

impl WriteBatch {
    pub(super) fn push(&mut self, binding: u32, element: u32, descriptor: &Descriptor) {
        let kind = descriptor.kind();
        let data = match descriptor.write_data() {
            DescriptorWrite::Image(image) => add(&mut self.images, image),
            DescriptorWrite::Buffer(buffer) => add(&mut self.buffers, buffer),
            DescriptorWrite::Texels(view) => add(&mut self.texels, view),
            DescriptorWrite::AccelerationStructure(handle) => add(&mut self.structures, handle),
        };
        match self.runs.last_mut() {
            Some(run)
                if (run.kind, run.binding) == (kind, binding)
                    && run.element.checked_add(run.count) == Some(element) =>
            {
                run.count += 1;
            }
            _ => self.runs.push(WriteRun { kind, binding, element, count: 1, data }),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Removes all descriptors, and keeps the memory.
    pub(super) fn clear(&mut self) {
        self.runs.clear();
        self.images.clear();
        self.buffers.clear();
        self.texels.clear();
        self.structures.clear();
    }

    /// Calls `then` with the writes of all descriptors into `set`.
    pub(super) fn show<R>(
        &self,
        set: vk::DescriptorSet,
        then: impl FnOnce(&[vk::WriteDescriptorSet<'_>]) -> R,
    ) -> R {
        let is_structure = |run: &&WriteRun| run.kind == DescriptorKind::AccelerationStructure;
        let mut chains: Vec<_> = (self.runs.iter().filter(is_structure))
            .map(|run| {
                let handles = &self.structures[run.data..][..index(run.count)];
                vk::WriteDescriptorSetAccelerationStructureKHR::default().acceleration_structures(handles)
            })
            .collect();
        let mut chains = chains.iter_mut();
        let writes: Vec<_> = (self.runs.iter())
            .map(|&WriteRun { kind, binding, element, count, data }| {
                let write = vk::WriteDescriptorSet::default()
                    .dst_set(set)
                    .dst_binding(binding)
                    .dst_array_element(element)
                    .descriptor_type(kind.to_vk());
                let all = data..data + index(count);
                match kind {
                    DescriptorKind::AccelerationStructure => {
                        let write = write.descriptor_count(count);
                        chains.next().map_or(write, |chain| write.push_next(chain))
                    }
                    DescriptorKind::UniformTexelBuffer | DescriptorKind::StorageTexelBuffer => {
                        write.texel_buffer_view(&self.texels[all])
                    }
                    DescriptorKind::UniformBuffer
                    | DescriptorKind::StorageBuffer
                    | DescriptorKind::UniformBufferDynamic
                    | DescriptorKind::StorageBufferDynamic => write.buffer_info(&self.buffers[all]),
                    DescriptorKind::Sampler
                    | DescriptorKind::CombinedImageSampler
                    | DescriptorKind::SampledImage
                    | DescriptorKind::StorageImage
                    | DescriptorKind::InputAttachment
                    | DescriptorKind::InlineUniformBlock
                    | DescriptorKind::Mutable => write.image_info(&self.images[all]),
                }
            })
            .collect();
        then(&writes)
    }
}

#[cfg(test)]
mod tests {
    use ash::vk::Handle;

    use super::*;
    use crate::{AccelerationStructureDescriptor, BufferDescriptor, ImageDescriptor, TexelBufferDescriptor};

    fn buffer(handle: u64) -> Descriptor {
        Descriptor::StorageBuffer(BufferDescriptor::new(vk::Buffer::from_raw(handle), 0, 16))
    }

    fn image(handle: u64) -> Descriptor {
        let view = vk::ImageView::from_raw(handle);
        Descriptor::SampledImage(ImageDescriptor::new(view, vk::ImageLayout::GENERAL))
    }

    fn texels(handle: u64) -> Descriptor {
        Descriptor::UniformTexelBuffer(TexelBufferDescriptor::new(vk::BufferView::from_raw(handle)))
    }

    fn structure(handle: u64) -> Descriptor {
        let handle = vk::AccelerationStructureKHR::from_raw(handle);
        Descriptor::AccelerationStructure(AccelerationStructureDescriptor { handle, address: None })
    }

    /// Returns binding, element and count of each write.
    fn shown(batch: &WriteBatch) -> Vec<(u32, u32, u32)> {
        batch.show(vk::DescriptorSet::null(), |writes| {
            writes
                .iter()
                .map(|write| (write.dst_binding, write.dst_array_element, write.descriptor_count))
                .collect()
        })
    }

    #[test]
    fn descriptors_of_one_type_side_by_side_are_one_write() {
        let mut batch = WriteBatch::default();
        assert!(batch.is_empty());
        (0..4).for_each(|at| batch.push(3, 10 + at, &buffer(at.into())));
        batch.push(0, 14, &image(7));
        batch.push(0, 15, &image(8));
        // A gap, another binding, another type, and back again.
        batch.push(0, 17, &image(9));
        batch.push(1, 18, &image(9));
        batch.push(1, 19, &texels(1));
        batch.push(1, 20, &structure(1));
        batch.push(1, 21, &structure(2));
        batch.push(1, 22, &buffer(1));
        batch.push(1, 21, &buffer(1));
        let expected =
            [(3, 10, 4), (0, 14, 2), (0, 17, 1), (1, 18, 1), (1, 19, 1), (1, 20, 2), (1, 22, 1), (1, 21, 1)];
        assert_eq!(shown(&batch), expected);
        batch.clear();
        assert!(batch.is_empty() && shown(&batch).is_empty());
    }
}
