//! Memory for the attachments. Those that are not used at the same time share it; those that nobody reads take none at
//! all where the GPU keeps them in its tiles.

use ash::vk;
use sublet::{Allocation, AllocationCreateInfo, Allocator, MemoryUsage, ResourceKind};

use crate::passes::{Attachment, Use, attachments};
use crate::places::{Transient, place};
use crate::support::{Context, Result, Table, bytes, heading, note};

pub(crate) struct Attachments {
    pub(crate) table: Vec<Attachment>,
    pub(crate) images: Vec<vk::Image>,
    /// Where in the shared memory each of them is, as begin and end; of images in memory of their own there is none.
    pub(crate) places: Vec<Option<[u64; 2]>>,
    lazy: Vec<Allocation>,
    shared: Allocation,
}

impl Attachments {
    pub(crate) fn new(context: &Context, allocator: &Allocator) -> Result<Self> {
        let table = attachments();
        let mut images = vec![vk::Image::null(); table.len()];
        let (mut lazy, mut wanted, mut types) = (Vec::new(), Vec::new(), !0);
        for (at, attachment) in table.iter().enumerate() {
            let info = attachment.image_info();
            if attachment.is_transient() {
                let tiles = AllocationCreateInfo {
                    name: Some(&attachment.name),
                    ..AllocationCreateInfo::new(MemoryUsage::GpuLazilyAllocated)
                };
                // SAFETY: every device can render to these formats. It is an error where there is no such memory.
                if let Ok((image, memory)) = unsafe { allocator.create_image(&info, &tiles) } {
                    images[at] = image;
                    lazy.push(memory);
                    continue;
                }
            }
            let needs = requirements(context, &info)?;
            types &= needs.memory_type_bits;
            wanted.push(Transient {
                at,
                size: needs.size,
                alignment: needs.alignment,
                life: attachment.life(),
            });
        }
        let (places, size) = place(&wanted, table.len());
        let alignment = wanted.iter().map(|wanted| wanted.alignment).max().unwrap_or(1);
        let needs = vk::MemoryRequirements { size, alignment, memory_type_bits: types };
        let device_local = AllocationCreateInfo {
            preferred_flags: vk::MemoryPropertyFlags::DEVICE_LOCAL,
            priority: 1.0,
            name: Some("attachments"),
            ..Default::default()
        };
        let kind = ResourceKind::ImageOptimal;
        // SAFETY: only optimal images are bound to it.
        let shared = unsafe { allocator.allocate_memory_of_kind(&needs, kind, &device_local) }?;
        for (at, place) in places.iter().enumerate() {
            if let Some([offset, _]) = *place {
                let info = table[at].image_info();
                // SAFETY: the create-info is valid, and images that share bytes are not used in the same pass.
                images[at] = unsafe { allocator.create_aliasing_image(&shared, offset, &info) }?;
            }
        }
        Ok(Self { table, images, places, lazy, shared })
    }

    /// The last uses of all that shares memory with an attachment, itself included.
    pub(crate) fn last_uses(&self, at: usize) -> Vec<Use> {
        let shares = |other: usize| match (self.places[at], self.places[other]) {
            (Some([from, to]), Some([other_from, other_to])) => from < other_to && other_from < to,
            _ => at == other,
        };
        let all = (0..self.table.len()).filter(|&other| shares(other));
        all.filter_map(|other| self.table[other].uses.last()).map(|&(_, how)| how).collect()
    }

    /// Prints when and where each attachment lives.
    pub(crate) fn show(&self) {
        heading("Attachments, and what they share");
        let mut table = Table::new(&["attachment", ">size", "from", "to", ">at"]);
        let mut all = 0;
        for (attachment, place) in self.table.iter().zip(&self.places) {
            let (first, last) = attachment.life();
            let (size, at) = match place {
                Some([from, to]) => (to - from, bytes(*from)),
                None => (0, "in the tiles".to_owned()),
            };
            all += size;
            table.row([&attachment.name, &bytes(size), &format!("{first:?}"), &format!("{last:?}"), &at]);
        }
        table.print();
        let shared = self.shared.size();
        note(&format!(
            "{} of images in {} of memory: {} saved, {} %.",
            bytes(all),
            bytes(shared),
            bytes(all - shared),
            (all - shared) * 100 / all
        ));
        if !self.lazy.is_empty() {
            note(&format!("{} more need no memory at all on this GPU.", self.lazy.len()));
        }
    }

    /// # Safety
    /// The device is done with the images.
    pub(crate) unsafe fn destroy(self, context: &Context, allocator: &Allocator) -> Result<()> {
        for image in self.images {
            // SAFETY: the caller's own promise.
            unsafe { context.device().destroy_image(image, None) };
        }
        for memory in self.lazy.into_iter().chain([self.shared]) {
            // SAFETY: the caller's own promise, and nothing is bound to it any more.
            unsafe { allocator.free_memory(memory) }?;
        }
        Ok(())
    }
}

/// What an image of this kind needs: one is made for the question, because version 1.0 has no other way.
fn requirements(context: &Context, info: &vk::ImageCreateInfo<'_>) -> Result<vk::MemoryRequirements> {
    let device = context.device();
    // SAFETY: every device can render to these formats.
    let image = unsafe { device.create_image(info, None) }?;
    // SAFETY: the image is live.
    let requirements = unsafe { device.get_image_memory_requirements(image) };
    // SAFETY: nobody else knows of it.
    unsafe { device.destroy_image(image, None) };
    Ok(requirements)
}
