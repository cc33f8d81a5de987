//! Memory for the attachments. Those that are not used at the same time share it; those that nobody reads take none at
//! all where the GPU keeps them in its tiles.

use ash::vk;
use sublet::metadata::Strategy;
use sublet::{
    AllocationCreateInfo, MemoryUsage, VirtualAllocationCreateInfo, VirtualBlock, VirtualBlockCreateInfo,
};
use sublet_frame::{Frames, Image, SharedMemory};

use crate::passes::{Attachment, attachments, order};
use crate::support::{Context, Result, Table, bytes, heading, note};

pub(crate) struct Attachments {
    pub(crate) table: Vec<Attachment>,
    pub(crate) images: Vec<Image>,
    /// Where in the shared memory each of them is, as begin and end; of images in memory of their own there is none.
    places: Vec<Option<[u64; 2]>>,
    shared: SharedMemory,
}

impl Attachments {
    pub(crate) fn new(context: &Context, frames: &Frames) -> Result<Self> {
        let table = attachments();
        let mut images: Vec<Option<Image>> = vec![None; table.len()];
        let mut needs = vec![vk::MemoryRequirements::default(); table.len()];
        for (at, attachment) in table.iter().enumerate() {
            let info = attachment.image_info();
            let tiles = AllocationCreateInfo {
                name: Some(&attachment.name),
                ..AllocationCreateInfo::new(MemoryUsage::GpuLazilyAllocated)
            };
            if attachment.is_transient() {
                // SAFETY: every device can render to these formats. It is an error where there is no such memory.
                images[at] = unsafe { frames.create_image(&info, &tiles) }.ok();
            }
            needs[at] = requirements(context, &info)?;
        }
        let shares: Vec<bool> = images.iter().map(Option::is_none).collect();
        let places = place(&table, &needs, &shares)?;
        let shared = needs.iter().zip(&shares).filter(|(_, shares)| **shares).map(|(needs, _)| *needs);
        let shared = shared.reduce(|a, b| vk::MemoryRequirements {
            size: 0,
            alignment: a.alignment.max(b.alignment),
            memory_type_bits: a.memory_type_bits & b.memory_type_bits,
        });
        let size = places.iter().flatten().map(|place| place[1]).max().unwrap_or(1);
        let device_local = AllocationCreateInfo {
            preferred_flags: vk::MemoryPropertyFlags::DEVICE_LOCAL,
            priority: 1.0,
            name: Some("attachments"),
            ..Default::default()
        };
        let needs = vk::MemoryRequirements { size, ..shared.unwrap_or_default() };
        let shared = frames.allocate_shared(&needs, &device_local)?;
        for ((attachment, image), place) in table.iter().zip(&mut images).zip(&places) {
            if let Some([offset, _]) = *place {
                // SAFETY: the create-info is valid.
                *image = Some(unsafe { frames.create_image_in(&shared, offset, &attachment.image_info()) }?);
            }
        }
        Ok(Self { table, images: images.into_iter().flatten().collect(), places, shared })
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
        let shared = self.shared.allocation().size();
        let (saved, percent) = (bytes(all - shared), (all - shared) * 100 / all);
        note(&format!(
            "{} of images in {} of memory: {saved} saved, {percent} %.",
            bytes(all),
            bytes(shared)
        ));
    }
}

/// The place of each attachment that shares memory, as begin and end: taken with the first pass that uses it, and given
/// back behind the last one.
fn place(
    table: &[Attachment],
    needs: &[vk::MemoryRequirements],
    shares: &[bool],
) -> Result<Vec<Option<[u64; 2]>>> {
    let mut block = VirtualBlock::new(&VirtualBlockCreateInfo { size: 1 << 40, ..Default::default() })?;
    let (mut places, mut live) = (vec![None; table.len()], Vec::new());
    for pass in order() {
        for at in (0..table.len()).filter(|&at| shares[at] && table[at].life().0 == pass) {
            let vk::MemoryRequirements { size, alignment, .. } = needs[at];
            let strategy = Strategy::MinOffset;
            let info = VirtualAllocationCreateInfo { size, alignment, strategy, ..Default::default() };
            let made = block.allocate(&info)?;
            places[at] = Some([made.offset(), made.offset() + size]);
            live.push((at, made));
        }
        let (over, on): (Vec<_>, Vec<_>) = live.into_iter().partition(|(at, _)| table[*at].life().1 == pass);
        live = on;
        over.into_iter().try_for_each(|(_, made)| block.free(made))?;
    }
    Ok(places)
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
